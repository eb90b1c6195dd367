package infra_test

import (
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskinesis"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"github.com/lambdalock/lambdalock/infra"
)

// TestVisibilityTimeout: the function's timeout is 10 s.
func TestVisibilityTimeout(t *testing.T) {
	for name, c := range map[string]checkCase{
		"59 s": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddEventSource(fromQueue(newQueue(stack, 59)))
		}, want: []string{
			"visibility timeout of its queue Test/Queue/Resource is 59 s, less than six times the function's timeout of 10 s, so messages come back while the function works on them: set VisibilityTimeout to at least 60 s",
		}},
		"60 s": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddEventSource(fromQueue(newQueue(stack, 60)))
		}},
		"default of 30 s": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddEventSource(fromQueue(awssqs.NewQueue(stack, s("Queue"), &awssqs.QueueProps{DeadLetterQueue: newDeadLetterQueue(stack, 5)})))
		}, want: []string{"is 30 s"}},
		"default timeout of 3 s": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.Node().DefaultChild().(awslambda.CfnFunction).SetTimeout(nil)
			fn.AddEventSource(fromQueue(newQueue(stack, 17)))
		}, want: []string{"is 17 s, less than six times the function's timeout of 3 s"}},
		"alias": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddAlias(s("live"), nil).AddEventSource(fromQueue(newQueue(stack, 59)))
		}, want: []string{"is 59 s"}},
		"queue in another stack": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			other := awscdk.NewStack(awscdk.App_Of(stack), s("Other"), nil)
			fn.AddEventSource(fromQueue(newQueue(other, 59)))
		}, want: []string{"queue Other/Queue/Resource is 59 s"}},
		"parameter": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			q := awssqs.NewCfnQueue(stack, s("Queue"), &awssqs.CfnQueueProps{
				VisibilityTimeout: awscdk.NewCfnParameter(stack, s("P"), &awscdk.CfnParameterProps{Type: s("Number")}).ValueAsNumber(),
				RedrivePolicy:     object{"deadLetterTargetArn": "arn:aws:sqs:eu-west-1:111111111111:failed", "maxReceiveCount": 5},
			})
			fn.AddEventSource(fromQueue(awssqs.Queue_FromQueueArn(stack, s("Q"), q.AttrArn())))
		}},
		"queue by Fn::GetAtt": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			q := newQueue(stack, 59).Node().DefaultChild().(awssqs.CfnQueue)
			id := stack.Resolve(q.LogicalId()).(string)
			fn.AddEventSource(fromQueue(awssqs.Queue_FromQueueArn(stack, s("Q"), awscdk.Token_AsString(awscdk.Fn_GetAtt(s(id), s("Arn")), nil))))
		}, want: []string{"queue Test/Queue/Resource is 59 s"}},
		"queue of another app": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddEventSource(fromQueue(awssqs.Queue_FromQueueArn(stack, s("Q"), s("arn:aws:sqs:eu-west-1:111111111111:orders"))))
		}},
		"queue of another function": {build: func(stack awscdk.Stack, _ awslambda.Function, _ infra.LockTable) {
			newFunction(stack, "Other", nil).AddEventSource(fromQueue(newQueue(stack, 59)))
		}},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, "warning") })
	}
}

// TestDeadLetterQueue: nothing else is wrong with the queues.
func TestDeadLetterQueue(t *testing.T) {
	with := func(props awssqs.CfnQueueProps) buildFunc {
		return func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			props.VisibilityTimeout = jsii.Number(60)
			q := awssqs.NewCfnQueue(stack, s("Queue"), &props)
			fn.AddEventSource(fromQueue(awssqs.Queue_FromQueueArn(stack, s("Q"), q.AttrArn())))
		}
	}
	redrive := func(count any) awssqs.CfnQueueProps {
		return awssqs.CfnQueueProps{RedrivePolicy: object{"deadLetterTargetArn": "arn:aws:sqs:eu-west-1:111111111111:failed", "maxReceiveCount": count}}
	}
	for name, c := range map[string]checkCase{
		"none":          {build: with(awssqs.CfnQueueProps{}), want: []string{"its queue Test/Queue has no dead-letter queue"}},
		"1 receive":     {build: with(redrive(1)), want: []string{"its queue Test/Queue has a MaxReceiveCount of 1: a message that finds its lock held once goes to the dead-letter queue. Set MaxReceiveCount to at least 5"}},
		"\"1\" receive": {build: with(redrive("1")), want: []string{"has a MaxReceiveCount of 1"}},
		"2 receives":    {build: with(redrive(2)), want: []string{"has a MaxReceiveCount of 2: a message that finds its lock held twice"}},
		"3 receives":    {build: with(redrive(3))},
		"parameter": {build: func(stack awscdk.Stack, fn awslambda.Function, locks infra.LockTable) {
			with(redrive(awscdk.NewCfnParameter(stack, s("P"), &awscdk.CfnParameterProps{Type: s("Number")}).ValueAsNumber()))(stack, fn, locks)
		}},
		"policy by a parameter": {build: func(stack awscdk.Stack, fn awslambda.Function, locks infra.LockTable) {
			with(awssqs.CfnQueueProps{RedrivePolicy: awscdk.Fn_ConditionIf(s("C"), object{}, awscdk.Aws_NO_VALUE())})(stack, fn, locks)
			awscdk.NewCfnCondition(stack, s("C"), &awscdk.CfnConditionProps{Expression: awscdk.Fn_ConditionEquals(awscdk.Aws_REGION(), "eu-west-1")})
		}},
		"a function reads the dead-letter queue": {build: func(stack awscdk.Stack, fn awslambda.Function, locks infra.LockTable) {
			q := newQueue(stack, 60)
			fn.AddEventSource(fromQueue(q))
			newFunction(stack, "Other", nil).AddEventSource(fromQueue(q.DeadLetterQueue().Queue))
		}},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, "warning") })
	}
}

// TestRetention: the library remembers completed events of SQS for four days,
// and those of Kinesis for one.
func TestRetention(t *testing.T) {
	queue := func(days float64) buildFunc {
		return func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			q := newQueue(stack, 60)
			if days > 0 {
				q.Node().DefaultChild().(awssqs.CfnQueue).SetMessageRetentionPeriod(jsii.Number(days * 24 * 60 * 60))
			}
			fn.AddEventSource(fromQueue(q))
		}
	}
	stream := func(hours float64) buildFunc {
		return func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddEventSource(awslambdaeventsources.NewKinesisEventSource(
				awskinesis.NewStream(stack, s("Stream"), &awskinesis.StreamProps{RetentionPeriod: awscdk.Duration_Hours(jsii.Number(hours))}),
				&awslambdaeventsources.KinesisEventSourceProps{
					StartingPosition: awslambda.StartingPosition_LATEST, ReportBatchItemFailures: jsii.Bool(true), RetryAttempts: jsii.Number(3), OnFailure: kept(stack),
				}))
		}
	}
	for name, c := range map[string]checkCase{
		"queue, default": {build: queue(0)},
		"queue, 4 days":  {build: queue(4)},
		"queue, 14 days": {build: queue(14), want: []string{
			"the dead-letter queue of its queue Test/Queue/Resource keeps messages for 14 days, and the queue for 14",
			"its source Test/Queue/Resource (SQS) keeps what it delivers for 14 days, but the library remembers completed events of SQS for 4 by default",
		}},
		"stream, 24 h": {build: stream(24)},
		"stream, 168 h": {build: stream(168), want: []string{
			"its source Test/Stream/Resource (Kinesis) keeps what it delivers for 7 days, but the library remembers completed events of Kinesis for 1 by default",
		}},
		"dead-letter queue": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			q := awssqs.NewQueue(stack, s("Dead"), &awssqs.QueueProps{RetentionPeriod: awscdk.Duration_Days(jsii.Number(14))})
			fn.AddEventSource(fromQueue(awssqs.NewQueue(stack, s("Queue"), &awssqs.QueueProps{
				VisibilityTimeout: awscdk.Duration_Seconds(jsii.Number(60)), DeadLetterQueue: &awssqs.DeadLetterQueue{Queue: q, MaxReceiveCount: jsii.Number(5)},
			})))
		}},
		"parameter": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			q := newQueue(stack, 60)
			q.Node().DefaultChild().(awssqs.CfnQueue).SetMessageRetentionPeriod(awscdk.NewCfnParameter(stack, s("Kept"), &awscdk.CfnParameterProps{Type: s("Number")}).ValueAsNumber())
			fn.AddEventSource(fromQueue(q))
		}},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, "warning") })
	}
}
