package deployed

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdalock/lambdalock/infra/rules"
)

// LambdaClient is the part of a *lambda.Client that a [Reader] needs.
type LambdaClient interface {
	ConfigurationClient
	lambda.ListAliasesAPIClient
	lambda.ListEventSourceMappingsAPIClient
	GetFunctionConcurrency(context.Context, *lambda.GetFunctionConcurrencyInput, ...func(*lambda.Options)) (*lambda.GetFunctionConcurrencyOutput, error)
	GetPolicy(context.Context, *lambda.GetPolicyInput, ...func(*lambda.Options)) (*lambda.GetPolicyOutput, error)
	GetFunctionEventInvokeConfig(context.Context, *lambda.GetFunctionEventInvokeConfigInput, ...func(*lambda.Options)) (*lambda.GetFunctionEventInvokeConfigOutput, error)
}

// SQSClient is the part of a *sqs.Client that a [Reader] needs.
type SQSClient interface {
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// KinesisClient is the part of a *kinesis.Client that a [Reader] needs.
type KinesisClient interface {
	DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput, ...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error)
}

// Reader reads functions and what invokes them.
type Reader struct {
	Lambda  LambdaClient
	SQS     SQSClient
	Kinesis KinesisClient
}

// Read reads a function and what invokes it. If the name has no alias, it also
// reads the function's aliases, each of which has its own invokers. The error
// is that of [Configuration]; what else could not be read is in Unread.
func (r *Reader) Read(ctx context.Context, name string) ([]*Function, error) {
	f, err := Configuration(ctx, r.Lambda, name)
	if err != nil {
		return nil, err
	}
	r.readConcurrency(ctx, f)
	all := []*Function{f}
	if !f.qualified {
		all = append(all, r.aliases(ctx, f)...)
	}
	for _, f := range all {
		r.readAsync(ctx, f)
		r.readMappings(ctx, f)
	}
	return all, nil
}

// unread notes what could not be read.
func (f *Function) unread(what, action string, err error) {
	f.Unread = append(f.Unread, failed(what, action, err))
}

func (r *Reader) aliases(ctx context.Context, f *Function) []*Function {
	var all []*Function
	pages := lambda.NewListAliasesPaginator(r.Lambda, &lambda.ListAliasesInput{FunctionName: &f.address})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			f.unread("the aliases of "+f.Name, "lambda:ListAliases", err)
			return all
		}
		for _, a := range page.Aliases {
			alias, err := Configuration(ctx, r.Lambda, aws.ToString(a.AliasArn))
			if err != nil {
				f.Unread = append(f.Unread, err)
				continue
			}
			all = append(all, alias)
		}
	}
	return all
}

// readConcurrency reads whether f is stopped. Lambda takes no alias for that.
func (r *Reader) readConcurrency(ctx context.Context, f *Function) {
	name := f.unqualified()
	out, err := r.Lambda.GetFunctionConcurrency(ctx, &lambda.GetFunctionConcurrencyInput{FunctionName: &name})
	if err != nil {
		f.unread("the concurrency of "+f.Name, "lambda:GetFunctionConcurrency", err)
		return
	}
	f.Stopped = out.ReservedConcurrentExecutions != nil && *out.ReservedConcurrentExecutions == 0
}

// readAsync reads how services invoke f asynchronously. Those that are allowed
// to by a role, such as EventBridge Scheduler, are not seen.
func (r *Reader) readAsync(ctx context.Context, f *Function) {
	policy, err := r.Lambda.GetPolicy(ctx, &lambda.GetPolicyInput{FunctionName: &f.address})
	switch {
	case missing(err): // nobody is allowed anything
		return
	case err != nil:
		f.unread("the policy of "+f.Name, "lambda:GetPolicy", err)
		return
	}
	services := asyncServices(aws.ToString(policy.Policy))
	if len(services) == 0 {
		return
	}
	async := rules.Async{Services: services}
	out, err := r.Lambda.GetFunctionEventInvokeConfig(ctx, &lambda.GetFunctionEventInvokeConfigInput{FunctionName: &f.address})
	switch {
	case missing(err): // the defaults
	case err != nil:
		f.unread("the asynchronous invocation of "+f.Name, "lambda:GetFunctionEventInvokeConfig", err)
		return
	default:
		d := out.DestinationConfig
		async.HasFailureDestination = d != nil && d.OnFailure != nil && aws.ToString(d.OnFailure.Destination) != ""
		async.Retries = number(out.MaximumRetryAttempts)
	}
	f.Settings.Async = []rules.Async{async}
}

// asyncServices returns the services that a policy allows to invoke, and that
// do so asynchronously.
func asyncServices(policy string) []string {
	var p struct {
		Statement []struct{ Principal json.RawMessage }
	}
	if json.Unmarshal([]byte(policy), &p) != nil {
		return nil
	}
	var all []string
	for _, s := range p.Statement {
		var principal struct{ Service string }
		_ = json.Unmarshal(s.Principal, &principal) // "*" is no service
		if service := rules.AsyncService(principal.Service); service != "" && !slices.Contains(all, service) {
			all = append(all, service)
		}
	}
	return all
}

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
	arn := aws.ToString(c.EventSourceArn)
	m := rules.Mapping{
		Name: aws.ToString(c.UUID), Kind: rules.KindOf(arn), Source: resource(arn),
		ReportsFailures: slices.Contains(c.FunctionResponseTypes, lambdatypes.FunctionResponseTypeReportBatchItemFailures),
		Retries:         limit(c.MaximumRetryAttempts), RecordAge: limit(c.MaximumRecordAgeInSeconds),
	}
	if strings.HasPrefix(aws.ToString(c.State), "Disabl") {
		f.Disabled = append(f.Disabled, fmt.Sprintf("%s (%s)", m.Name, m.Source))
	}
	switch m.Kind {
	case "":
		return // takes no partial answers
	case rules.SQS:
		r.readQueue(ctx, f, &m, arn)
	case rules.Kinesis:
		out, err := r.Kinesis.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamARN: &arn})
		if err != nil {
			f.unread("the Kinesis stream "+m.Source, "kinesis:DescribeStreamSummary", err)
			break
		}
		if d := out.StreamDescriptionSummary; d != nil && d.RetentionPeriodHours != nil {
			m.Retention = rules.Known(float64(*d.RetentionPeriodHours) * 60 * 60)
		}
	}
	f.Mappings = append(f.Mappings, m)
}

// resource returns what an ARN names, such as a queue or stream/orders.
func resource(arn string) string {
	part := strings.SplitN(arn, ":", 6)
	return part[len(part)-1]
}

func (r *Reader) readQueue(ctx context.Context, f *Function, m *rules.Mapping, arn string) {
	in := &sqs.GetQueueUrlInput{QueueName: &m.Source}
	if part := strings.Split(arn, ":"); len(part) > 4 {
		in.QueueOwnerAWSAccountId = &part[4]
	}
	queue, err := r.SQS.GetQueueUrl(ctx, in)
	if err != nil {
		f.unread("the SQS queue "+m.Source, "sqs:GetQueueUrl", err)
		return
	}
	out, err := r.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: queue.QueueUrl, AttributeNames: []sqstypes.QueueAttributeName{
		sqstypes.QueueAttributeNameVisibilityTimeout, sqstypes.QueueAttributeNameRedrivePolicy, sqstypes.QueueAttributeNameMessageRetentionPeriod,
	}})
	if err != nil {
		f.unread("the SQS queue "+m.Source, "sqs:GetQueueAttributes", err)
		return
	}
	redrive := out.Attributes[string(sqstypes.QueueAttributeNameRedrivePolicy)]
	var policy struct {
		MaxReceiveCount json.RawMessage `json:"maxReceiveCount"` // a number, or one in quotes
	}
	_ = json.Unmarshal([]byte(redrive), &policy) // without a policy there is no count
	m.Queue = &rules.Queue{
		VisibilityTimeout: parsed(out.Attributes[string(sqstypes.QueueAttributeNameVisibilityTimeout)]),
		HasRedrivePolicy:  redrive != "",
		MaxReceiveCount:   parsed(strings.Trim(string(policy.MaxReceiveCount), `"`)),
	}
	m.Retention = parsed(out.Attributes[string(sqstypes.QueueAttributeNameMessageRetentionPeriod)])
}

// parsed returns the number in an attribute.
func parsed(text string) rules.Number {
	n, err := strconv.ParseFloat(text, 64)
	return rules.Number{Value: n, Known: err == nil}
}
