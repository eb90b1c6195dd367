package infra_test

import (
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskinesis"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"github.com/lambdalock/lambdalock/infra"
)

// queue has nothing wrong but its visibility timeout.
func queue(k awscdk.Stack, visibility float64) awssqs.Queue {
	return awssqs.NewQueue(k, s("Queue"), &awssqs.QueueProps{
		VisibilityTimeout: awscdk.Duration_Seconds(jsii.Number(visibility)), DeadLetterQueue: failed(k, 5),
	})
}

func failed(k awscdk.Stack, receives float64) *awssqs.DeadLetterQueue {
	return &awssqs.DeadLetterQueue{Queue: awssqs.NewQueue(k, s("Failed"), nil), MaxReceiveCount: jsii.Number(receives)}
}

func reading(q awssqs.IQueue) awslambda.IEventSource {
	return awslambdaeventsources.NewSqsEventSource(q, &awslambdaeventsources.SqsEventSourceProps{ReportBatchItemFailures: jsii.Bool(true)})
}

// TestVisibilityTimeout: the function has 10 s.
func TestVisibilityTimeout(t *testing.T) {
	for name, c := range map[string]checkCase{
		"59 s": {build: func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddEventSource(reading(queue(k, 59)))
		}, want: []string{
			"visibility timeout of its queue Test/Queue/Resource is 59 s, less than six times the function's timeout of 10 s, so that messages come back while they are worked on: set VisibilityTimeout to 60 s at least",
		}},
		"60 s": {build: func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddEventSource(reading(queue(k, 60)))
		}},
		"default of 30 s": {build: func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddEventSource(reading(awssqs.NewQueue(k, s("Queue"), &awssqs.QueueProps{DeadLetterQueue: failed(k, 5)})))
		}, want: []string{"is 30 s"}},
		"default timeout of 3 s": {build: func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.Node().DefaultChild().(awslambda.CfnFunction).SetTimeout(nil)
			fn.AddEventSource(reading(queue(k, 17)))
		}, want: []string{"is 17 s, less than six times the function's timeout of 3 s"}},
		"alias": {build: func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddAlias(s("live"), nil).AddEventSource(reading(queue(k, 59)))
		}, want: []string{"is 59 s"}},
		"queue in another stack": {build: func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			other := awscdk.NewStack(awscdk.App_Of(k), s("Other"), nil)
			fn.AddEventSource(reading(queue(other, 59)))
		}, want: []string{"queue Other/Queue/Resource is 59 s"}},
		"parameter": {build: func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			q := awssqs.NewCfnQueue(k, s("Queue"), &awssqs.CfnQueueProps{
				VisibilityTimeout: awscdk.NewCfnParameter(k, s("P"), &awscdk.CfnParameterProps{Type: s("Number")}).ValueAsNumber(),
				RedrivePolicy:     object{"deadLetterTargetArn": "arn:aws:sqs:eu-west-1:111111111111:failed", "maxReceiveCount": 5},
			})
			fn.AddEventSource(reading(awssqs.Queue_FromQueueArn(k, s("Q"), q.AttrArn())))
		}},
		"queue of another app": {build: func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddEventSource(reading(awssqs.Queue_FromQueueArn(k, s("Q"), s("arn:aws:sqs:eu-west-1:111111111111:orders"))))
		}},
		"queue of another function": {build: func(k awscdk.Stack, _ awslambda.Function, _ infra.LockTable) {
			newFunction(k, "Other", nil).AddEventSource(reading(queue(k, 59)))
		}},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, "warning") })
	}
}

func TestPartialAnswer(t *testing.T) {
	mapping := func(arn string, report bool) func(awscdk.Stack, awslambda.Function, infra.LockTable) {
		return func(_ awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddEventSourceMapping(s("Source"), &awslambda.EventSourceMappingOptions{
				EventSourceArn: s(arn), StartingPosition: awslambda.StartingPosition_LATEST, ReportBatchItemFailures: jsii.Bool(report),
				RetryAttempts: jsii.Number(3),
			})
		}
	}
	const (
		sqs     = "arn:aws:sqs:eu-west-1:111111111111:orders"
		kinesis = "arn:aws:kinesis:eu-west-1:111111111111:stream/orders"
		changes = "arn:aws:dynamodb:eu-west-1:111111111111:table/orders/stream/2026-01-01T00:00:00.000"
		kafka   = "arn:aws:kafka:eu-west-1:111111111111:cluster/orders/0"
	)
	stream := func(report bool) func(awscdk.Stack, awslambda.Function, infra.LockTable) {
		return func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddEventSource(awslambdaeventsources.NewKinesisEventSource(awskinesis.NewStream(k, s("Stream"), nil), &awslambdaeventsources.KinesisEventSourceProps{
				StartingPosition: awslambda.StartingPosition_LATEST, ReportBatchItemFailures: jsii.Bool(report), RetryAttempts: jsii.Number(3),
			}))
		}
	}
	table := func(report bool) func(awscdk.Stack, awslambda.Function, infra.LockTable) {
		return func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			orders := awsdynamodb.NewTable(k, s("Orders"), &awsdynamodb.TableProps{
				PartitionKey: &awsdynamodb.Attribute{Name: s("id"), Type: awsdynamodb.AttributeType_STRING}, Stream: awsdynamodb.StreamViewType_NEW_IMAGE,
			})
			fn.AddEventSource(awslambdaeventsources.NewDynamoEventSource(orders, &awslambdaeventsources.DynamoEventSourceProps{
				StartingPosition: awslambda.StartingPosition_LATEST, ReportBatchItemFailures: jsii.Bool(report), RetryAttempts: jsii.Number(3),
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
		"Kafka of one's own": {build: func(_ awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddEventSourceMapping(s("Source"), &awslambda.EventSourceMappingOptions{KafkaBootstrapServers: jsii.Strings("kafka:9092"), KafkaTopic: s("orders")})
		}},
		"acknowledged": {build: func(k awscdk.Stack, fn awslambda.Function, l infra.LockTable) {
			mapping(sqs, false)(k, fn, l)
			awscdk.Annotations_Of(fn).AcknowledgeWarning(s(infra.WarnPartialAnswer), s("answers all or nothing"))
		}},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, "warning") })
	}
}

// TestDeadLetterQueue: nothing else is wrong with the queue.
func TestDeadLetterQueue(t *testing.T) {
	with := func(props awssqs.CfnQueueProps) func(awscdk.Stack, awslambda.Function, infra.LockTable) {
		return func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			props.VisibilityTimeout = jsii.Number(60)
			q := awssqs.NewCfnQueue(k, s("Queue"), &props)
			fn.AddEventSource(reading(awssqs.Queue_FromQueueArn(k, s("Q"), q.AttrArn())))
		}
	}
	redrive := func(count any) awssqs.CfnQueueProps {
		return awssqs.CfnQueueProps{RedrivePolicy: object{"deadLetterTargetArn": "arn:aws:sqs:eu-west-1:111111111111:failed", "maxReceiveCount": count}}
	}
	for name, c := range map[string]checkCase{
		"none":          {build: with(awssqs.CfnQueueProps{}), want: []string{"its queue Test/Queue has no dead-letter queue"}},
		"1 receive":     {build: with(redrive(1)), want: []string{"its queue Test/Queue has a MaxReceiveCount of 1: a message that finds its lock held once goes to the dead-letter queue. Set MaxReceiveCount to 5 at least"}},
		"\"1\" receive": {build: with(redrive("1")), want: []string{"has a MaxReceiveCount of 1"}},
		"2 receives":    {build: with(redrive(2))},
		"parameter": {build: func(k awscdk.Stack, fn awslambda.Function, l infra.LockTable) {
			with(redrive(awscdk.NewCfnParameter(k, s("P"), &awscdk.CfnParameterProps{Type: s("Number")}).ValueAsNumber()))(k, fn, l)
		}},
		"policy by a parameter": {build: func(k awscdk.Stack, fn awslambda.Function, l infra.LockTable) {
			with(awssqs.CfnQueueProps{RedrivePolicy: awscdk.Fn_ConditionIf(s("C"), object{}, awscdk.Aws_NO_VALUE())})(k, fn, l)
			awscdk.NewCfnCondition(k, s("C"), &awscdk.CfnConditionProps{Expression: awscdk.Fn_ConditionEquals(awscdk.Aws_REGION(), "eu-west-1")})
		}},
		"the dead-letter queue is read, too": {build: func(k awscdk.Stack, fn awslambda.Function, l infra.LockTable) {
			q := queue(k, 60)
			fn.AddEventSource(reading(q))
			newFunction(k, "Other", nil).AddEventSource(reading(q.DeadLetterQueue().Queue))
		}},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, "warning") })
	}
}

func TestRetryLimit(t *testing.T) {
	mapping := func(arn string, attempts, age *float64) func(awscdk.Stack, awslambda.Function, infra.LockTable) {
		return func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			awslambda.NewCfnEventSourceMapping(k, s("Mapping"), &awslambda.CfnEventSourceMappingProps{
				FunctionName: fn.FunctionName(), EventSourceArn: s(arn), StartingPosition: s("LATEST"), FunctionResponseTypes: jsii.Strings("ReportBatchItemFailures"),
				MaximumRetryAttempts: attempts, MaximumRecordAgeInSeconds: age,
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
		"no retry":        {build: mapping(kinesis, jsii.Number(0), jsii.Number(-1))},
		"age":             {build: mapping(kinesis, jsii.Number(-1), jsii.Number(3600))},
		"DynamoDB stream": {build: mapping(changes, nil, nil), want: []string{"(DynamoDB stream) retries without limit"}},
		"SQS":             {build: mapping("arn:aws:sqs:eu-west-1:111111111111:orders", nil, nil)},
		"parameter": {build: func(k awscdk.Stack, fn awslambda.Function, l infra.LockTable) {
			mapping(kinesis, awscdk.NewCfnParameter(k, s("P"), &awscdk.CfnParameterProps{Type: s("Number")}).ValueAsNumber(), nil)(k, fn, l)
		}},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, "warning") })
	}
}
