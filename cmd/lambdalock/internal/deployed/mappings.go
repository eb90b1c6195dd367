package deployed

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	kinesistypes "github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/lambdalock/lambdalock/infra/rules"
)

// number returns a setting, which is unknown if it is not set.
func number(n *int32) rules.Number {
	if n == nil {
		return rules.Number{}
	}
	return rules.Known(float64(*n))
}

// limit returns a limit of retries.
func limit(n *int32) rules.Number {
	if n == nil {
		return rules.Known(rules.Unlimited)
	}
	return number(n)
}

func (r *Reader) readMappings(ctx context.Context, f *Function) {
	pages := lambda.NewListEventSourceMappingsPaginator(r.Lambda, &lambda.ListEventSourceMappingsInput{FunctionName: &f.address})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			f.unread("the event source mappings of "+f.Name, "lambda:ListEventSourceMappings", err)
			return
		}
		for i := range page.EventSourceMappings {
			// Those of an alias are the alias's, if Lambda lists them with the function's.
			if m := &page.EventSourceMappings[i]; m.FunctionArn == nil || latest(m.FunctionArn) == f.arn {
				r.readMapping(ctx, f, m)
			}
		}
	}
}

func (r *Reader) readMapping(ctx context.Context, f *Function, c *lambdatypes.EventSourceMappingConfiguration) {
	arn, to := aws.ToString(c.EventSourceArn), onFailure(c.DestinationConfig)
	m := rules.Mapping{
		Name: aws.ToString(c.UUID), Kind: rules.KindOf(arn), Source: resource(arn),
		ReportsFailures: slices.Contains(c.FunctionResponseTypes, lambdatypes.FunctionResponseTypeReportBatchItemFailures),
		Retries:         limit(c.MaximumRetryAttempts), RecordAge: limit(c.MaximumRecordAgeInSeconds),
		BatchingWindow: number(c.MaximumBatchingWindowInSeconds), TumblingWindow: number(c.TumblingWindowInSeconds),
		HasFailureDestination: to != "", GoneDestination: r.gone(ctx, f, to),
	}
	if len(c.Topics) > 0 { // brokers have none
		m.Kind, m.Source = rules.Kafka, strings.Join(c.Topics, ", ")
		k := c.SelfManagedKafkaEventSourceConfig
		m.SharesGroup = k != nil && k.ConsumptionMode == lambdatypes.KafkaEventSourceMappingConsumptionModeQueue
	}
	if strings.HasPrefix(aws.ToString(c.State), "Disabl") {
		f.Disabled = append(f.Disabled, fmt.Sprintf("%s (%s)", m.Name, m.Source))
	}
	switch m.Kind {
	case "":
		f.unseen("event source mapping %s (%s): its source is neither SQS, a stream, nor Kafka", m.Name, m.Source)
		return
	case rules.SQS:
		r.readQueue(ctx, f, &m, arn)
	case rules.Kinesis:
		r.readStream(ctx, f, &m, arn)
	}
	f.Mappings = append(f.Mappings, m)
}

// readStream reads a Kinesis stream. The ARN may be that of one of its
// consumers.
func (r *Reader) readStream(ctx context.Context, f *Function, m *rules.Mapping, arn string) {
	arn, _, _ = strings.Cut(arn, "/consumer/")
	out, err := r.Kinesis.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamARN: &arn})
	if err != nil {
		f.unread("the Kinesis stream "+m.Source, "kinesis:DescribeStreamSummary", err)
		return
	}
	d := out.StreamDescriptionSummary
	if d == nil {
		return
	}
	if d.RetentionPeriodHours != nil {
		m.Retention = rules.Known(float64(*d.RetentionPeriodHours) * 60 * 60)
	}
	if d.MaxRecordSizeInKiB != nil {
		m.RecordSize = rules.Known(float64(*d.MaxRecordSizeInKiB))
	}
	m.DistributesByItself = d.RecordDistributionStrategy == kinesistypes.RecordDistributionStrategyAuto
}

// resource returns what an ARN names, such as a queue or stream/orders.
func resource(arn string) string {
	part := strings.SplitN(arn, ":", 6)
	return part[len(part)-1]
}
