package infra_test

import (
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskinesis"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/jsii-runtime-go"

	"github.com/lambdalock/lambdalock/infra"
)

func TestPartialAnswer(t *testing.T) {
	mapping := func(arn string, report bool) buildFunc {
		return func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddEventSourceMapping(s("Source"), &awslambda.EventSourceMappingOptions{
				EventSourceArn: s(arn), StartingPosition: awslambda.StartingPosition_LATEST, ReportBatchItemFailures: jsii.Bool(report),
				RetryAttempts: jsii.Number(3), OnFailure: kept(stack),
			})
		}
	}
	const (
		sqs     = "arn:aws:sqs:eu-west-1:111111111111:orders"
		kinesis = "arn:aws:kinesis:eu-west-1:111111111111:stream/orders"
		changes = "arn:aws:dynamodb:eu-west-1:111111111111:table/orders/stream/2026-01-01T00:00:00.000"
		kafka   = "arn:aws:kafka:eu-west-1:111111111111:cluster/orders/0"
	)
	stream := func(report bool) buildFunc {
		return func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddEventSource(awslambdaeventsources.NewKinesisEventSource(awskinesis.NewStream(stack, s("Stream"), nil), &awslambdaeventsources.KinesisEventSourceProps{
				StartingPosition: awslambda.StartingPosition_LATEST, ReportBatchItemFailures: jsii.Bool(report), RetryAttempts: jsii.Number(3), OnFailure: kept(stack),
			}))
		}
	}
	table := func(report bool) buildFunc {
		return func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			orders := awsdynamodb.NewTable(stack, s("Orders"), &awsdynamodb.TableProps{
				PartitionKey: &awsdynamodb.Attribute{Name: s("id"), Type: awsdynamodb.AttributeType_STRING}, Stream: awsdynamodb.StreamViewType_NEW_IMAGE,
			})
			fn.AddEventSource(awslambdaeventsources.NewDynamoEventSource(orders, &awslambdaeventsources.DynamoEventSourceProps{
				StartingPosition: awslambda.StartingPosition_LATEST, ReportBatchItemFailures: jsii.Bool(report), RetryAttempts: jsii.Number(3), OnFailure: kept(stack),
			}))
		}
	}
	const says = "does not report batch item failures"
	for name, c := range map[string]checkCase{
		"SQS without":               {build: mapping(sqs, false), want: []string{"its event source mapping Test/Fn/Source/Resource (SQS) " + says}},
		"SQS with":                  {build: mapping(sqs, true)},
		"Kinesis without":           {build: mapping(kinesis, false), want: []string{"(Kinesis) " + says}},
		"Kinesis with":              {build: mapping(kinesis, true)},
		"DynamoDB stream without":   {build: mapping(changes, false), want: []string{"(DynamoDB stream) " + says}},
		"DynamoDB stream with":      {build: mapping(changes, true)},
		"Kafka":                     {build: mapping(kafka, false)},
		"stream of the app without": {build: stream(false), want: []string{"(Kinesis) " + says}},
		"stream of the app with":    {build: stream(true)},
		"table of the app without":  {build: table(false), want: []string{"(DynamoDB stream) " + says}},
		"table of the app with":     {build: table(true)},
		"self-managed Kafka": {build: func(_ awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddEventSourceMapping(s("Source"), &awslambda.EventSourceMappingOptions{KafkaBootstrapServers: jsii.Strings("kafka:9092"), KafkaTopic: s("orders")})
		}, want: []string{"(Kafka) retries without limit: a record that always fails blocks its partition"}},
		"acknowledged": {build: func(stack awscdk.Stack, fn awslambda.Function, locks infra.LockTable) {
			mapping(sqs, false)(stack, fn, locks)
			awscdk.Annotations_Of(fn).AcknowledgeWarning(s(infra.WarnReportBatchItemFailures), s("answers all or nothing"))
		}},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, "warning") })
	}
}

func TestRetryLimit(t *testing.T) {
	mapping := func(arn string, attempts, age *float64) buildFunc {
		return func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			awslambda.NewCfnEventSourceMapping(stack, s("Mapping"), &awslambda.CfnEventSourceMappingProps{
				FunctionName: fn.FunctionName(), EventSourceArn: s(arn), StartingPosition: s("LATEST"), FunctionResponseTypes: jsii.Strings("ReportBatchItemFailures"),
				MaximumRetryAttempts: attempts, MaximumRecordAgeInSeconds: age,
				DestinationConfig: object{"onFailure": object{"destination": "arn:aws:sqs:eu-west-1:111111111111:kept"}},
			})
		}
	}
	const (
		kinesis = "arn:aws:kinesis:eu-west-1:111111111111:stream/orders"
		changes = "arn:aws:dynamodb:eu-west-1:111111111111:table/orders/stream/2026-01-01T00:00:00.000"
	)
	says := []string{"its event source mapping Test/Mapping (Kinesis) retries without limit"}
	for name, c := range map[string]checkCase{
		"neither":         {build: mapping(kinesis, nil, nil), want: says},
		"both unlimited":  {build: mapping(kinesis, jsii.Number(-1), jsii.Number(-1)), want: says},
		"attempts":        {build: mapping(kinesis, jsii.Number(5), nil)},
		"no retry":        {build: mapping(kinesis, jsii.Number(0), jsii.Number(-1)), want: []string{"its event source mapping Test/Mapping (Kinesis) has RetryAttempts 0"}},
		"age":             {build: mapping(kinesis, jsii.Number(-1), jsii.Number(3600))},
		"DynamoDB stream": {build: mapping(changes, nil, nil), want: []string{"(DynamoDB stream) retries without limit"}},
		"SQS":             {build: mapping("arn:aws:sqs:eu-west-1:111111111111:orders", nil, nil)},
		"parameter": {build: func(stack awscdk.Stack, fn awslambda.Function, locks infra.LockTable) {
			mapping(kinesis, awscdk.NewCfnParameter(stack, s("P"), &awscdk.CfnParameterProps{Type: s("Number")}).ValueAsNumber(), nil)(stack, fn, locks)
		}},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, "warning") })
	}
}
