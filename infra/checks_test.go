package infra_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskinesis"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdadestinations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"github.com/lambdalock/lambdalock/infra"
)

// checkCase is a stack with the function Test/Fn, connected after build, and what
// must be said of it: each text must be in one message, and no more messages may be.
type checkCase struct {
	fn    *awslambda.FunctionProps
	table *infra.LockTableProps
	build func(k awscdk.Stack, fn awslambda.Function, l infra.LockTable)
	want  []string
}

func (c checkCase) run(t *testing.T, level string) {
	t.Helper()
	stack := newStack()
	fn := newFunction(stack, "Fn", c.fn)
	l := infra.NewLockTable(stack, s("Locks"), c.table)
	l.Connect(fn, nil)
	if c.build != nil {
		c.build(stack, fn, l)
	}
	got := notes(fn, level)
	if len(got) != len(c.want) {
		t.Errorf("%d messages, want %d: %q", len(got), len(c.want), got)
		return
	}
	for _, w := range c.want {
		if !strings.Contains(strings.Join(got, "\n"), w) {
			t.Errorf("no message says %q: %q", w, got)
		}
	}
	for _, m := range got {
		if !strings.HasPrefix(m, "lambdalock: function Test/Fn") {
			t.Errorf("a message does not name the function: %q", m)
		}
	}
}

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

func TestFailureDestination(t *testing.T) {
	invokedBy := func(principal string) func(awscdk.Stack, awslambda.Function, infra.LockTable) {
		return func(_ awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddPermission(s("Permission"), &awslambda.Permission{Principal: awsiam.NewServicePrincipal(s(principal), nil)})
		}
	}
	cases := map[string]checkCase{
		"API Gateway": {build: invokedBy("apigateway.amazonaws.com")},
		"nobody":      {},
		"subscription": {build: func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			awssns.NewTopic(k, s("Topic"), nil).AddSubscription(awssnssubscriptions.NewLambdaSubscription(fn, nil))
		}, want: []string{"asynchronously (sns) and has neither dead-letter queue nor failure destination"}},
		"alias": {build: func(_ awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddAlias(s("live"), nil).AddPermission(s("Permission"), &awslambda.Permission{Principal: awsiam.NewServicePrincipal(s("s3.amazonaws.com"), nil)})
		}, want: []string{"asynchronously (s3)"}},
		"another function": {build: func(k awscdk.Stack, _ awslambda.Function, l infra.LockTable) {
			invokedBy("s3.amazonaws.com")(k, newFunction(k, "Other", nil), l)
		}},
		"dead-letter queue": {fn: &awslambda.FunctionProps{DeadLetterQueueEnabled: jsii.Bool(true)}, build: invokedBy("s3.amazonaws.com")},
		"failure destination": {build: func(k awscdk.Stack, fn awslambda.Function, l infra.LockTable) {
			invokedBy("s3.amazonaws.com")(k, fn, l)
			fn.ConfigureAsyncInvoke(&awslambda.EventInvokeConfigOptions{OnFailure: awslambdadestinations.NewSqsDestination(awssqs.NewQueue(k, s("Failed"), nil))})
		}},
		"success destination only": {build: func(k awscdk.Stack, fn awslambda.Function, l infra.LockTable) {
			invokedBy("s3.amazonaws.com")(k, fn, l)
			fn.ConfigureAsyncInvoke(&awslambda.EventInvokeConfigOptions{OnSuccess: awslambdadestinations.NewSqsDestination(awssqs.NewQueue(k, s("Done"), nil))})
		}, want: []string{"asynchronously (s3)"}},
	}
	for name, c := range destinationsOfAliases() {
		cases[name] = c
	}
	cases["logs of a Region"] = checkCase{build: func(k awscdk.Stack, fn awslambda.Function, l infra.LockTable) {
		invokedBy("logs."+*k.Region()+".amazonaws.com")(k, fn, l)
	}, want: []string{"asynchronously (logs)"}}
	cases["two services"] = checkCase{build: func(_ awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
		for i, principal := range []string{"s3.amazonaws.com", "sns.amazonaws.com", "s3.amazonaws.com"} {
			awslambda.NewCfnPermission(fn, s(fmt.Sprint("P", i)), &awslambda.CfnPermissionProps{
				Action: s("lambda:InvokeFunction"), FunctionName: fn.FunctionArn(), Principal: s(principal),
			})
		}
	}, want: []string{"asynchronously (s3, sns)"}}
	cases["part of a name"] = checkCase{build: invokedBy("lambda.amazonaws.com")}
	cases["more than a name"] = checkCase{build: invokedBy("iotevents.amazonaws.com")}
	for _, service := range []string{"s3", "sns", "events", "scheduler", "iot", "logs", "lambda.alarms.cloudwatch", "ses", "codecommit", "config", "cloudformation"} {
		cases[service] = checkCase{build: invokedBy(service + ".amazonaws.com"), want: []string{"asynchronously (" + service + ")"}}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { c.run(t, "warning") })
	}
}

// destinationsOfAliases: a failure destination is for what it is set on, and for no
// other version of the function.
func destinationsOfAliases() map[string]checkCase {
	invoke := func(fn awslambda.IFunction) {
		fn.AddPermission(s("Permission"), &awslambda.Permission{Principal: awsiam.NewServicePrincipal(s("s3.amazonaws.com"), nil)})
	}
	keep := func(k awscdk.Stack) *awslambda.EventInvokeConfigOptions {
		return &awslambda.EventInvokeConfigOptions{OnFailure: awslambdadestinations.NewSqsDestination(awssqs.NewQueue(k, s("Failed"), nil))}
	}
	alias := func(fn awslambda.Function, name string, keep *awslambda.EventInvokeConfigOptions) awslambda.Alias {
		props := &awslambda.AliasProps{AliasName: s(name), Version: fn.CurrentVersion()}
		if keep != nil {
			props.OnFailure = keep.OnFailure
		}
		return awslambda.NewAlias(fn, s(name), props)
	}
	configure := func(k awscdk.Stack, fn awslambda.Function, qualifier string) {
		awslambda.NewCfnEventInvokeConfig(k, s("Config"), &awslambda.CfnEventInvokeConfigProps{
			FunctionName: fn.FunctionName(), Qualifier: s(qualifier),
			DestinationConfig: object{"onFailure": object{"destination": "arn:aws:sqs:eu-west-1:111111111111:failed"}},
		})
	}
	const says = "asynchronously (s3)"
	return map[string]checkCase{
		"on the alias": {build: func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			invoke(alias(fn, "live", keep(k)))
		}},
		"on another alias": {build: func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			alias(fn, "test", keep(k))
			invoke(alias(fn, "live", nil))
		}, want: []string{says + " through Test/Fn/live/Resource"}},
		"on the function, not on the alias": {build: func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.ConfigureAsyncInvoke(keep(k))
			invoke(alias(fn, "live", nil))
		}, want: []string{says + " through Test/Fn/live/Resource"}},
		"on the alias, not on the function": {build: func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			alias(fn, "live", keep(k))
			invoke(fn)
		}, want: []string{says + " and has neither"}},
		"on the version": {build: func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.CurrentVersion().ConfigureAsyncInvoke(keep(k))
			invoke(fn.CurrentVersion())
		}},
		"on the version, not on the alias": {build: func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.CurrentVersion().ConfigureAsyncInvoke(keep(k))
			invoke(alias(fn, "live", nil))
		}, want: []string{says + " through Test/Fn/live/Resource"}},
		"on the alias by its name": {build: func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			invoke(alias(fn, "live", nil))
			configure(k, fn, "live")
		}},
		"on another alias by its name": {build: func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			invoke(alias(fn, "live", nil))
			configure(k, fn, "test")
		}, want: []string{says}},
		"on an alias of that name of another function": {build: func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			other := newFunction(k, "Other", nil)
			alias(other, "live", nil)
			invoke(alias(fn, "live", nil))
			configure(k, other, "live")
		}, want: []string{says}},
		"alias and function": {build: func(k awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			invoke(alias(fn, "live", nil))
			invoke(fn)
		}, want: []string{says + " and has neither", says + " through Test/Fn/live/Resource"}},
	}
}

func TestReplication(t *testing.T) {
	named := &infra.LockTableProps{TableName: s("orders-locks")}
	replica := func(table func(infra.LockTable) *string) func(awscdk.Stack, awslambda.Function, infra.LockTable) {
		return func(k awscdk.Stack, _ awslambda.Function, l infra.LockTable) {
			awscdk.NewCustomResource(k, s("Replica"), &awscdk.CustomResourceProps{
				ResourceType: s("Custom::DynamoDBReplica"), ServiceToken: s("arn:aws:lambda:eu-west-1:111111111111:function:replicas"),
				Properties: &object{"TableName": *table(l), "Region": "us-east-1"},
			})
		}
	}
	global := func(name string, consistency *string, regions ...string) func(awscdk.Stack, awslambda.Function, infra.LockTable) {
		return func(k awscdk.Stack, _ awslambda.Function, _ infra.LockTable) {
			var replicas []any
			for _, r := range regions {
				replicas = append(replicas, &awsdynamodb.CfnGlobalTable_ReplicaSpecificationProperty{Region: s(r)})
			}
			awsdynamodb.NewCfnGlobalTable(k, s("Global"), &awsdynamodb.CfnGlobalTableProps{
				TableName: s(name), MultiRegionConsistency: consistency, Replicas: replicas,
				KeySchema:            []any{&awsdynamodb.CfnGlobalTable_KeySchemaProperty{AttributeName: s("lock"), KeyType: s("HASH")}},
				AttributeDefinitions: []any{&awsdynamodb.CfnGlobalTable_AttributeDefinitionProperty{AttributeName: s("lock"), AttributeType: s("S")}},
			})
		}
	}
	const says = "locks in a table that Test/"
	for name, c := range map[string]checkCase{
		"replica":           {build: replica(func(l infra.LockTable) *string { return l.Table().TableName() }), want: []string{says + "Replica/Default replicates asynchronously"}},
		"replica by name":   {table: named, build: replica(func(infra.LockTable) *string { return s("orders-locks") }), want: []string{says + "Replica/Default"}},
		"replica of others": {table: named, build: replica(func(infra.LockTable) *string { return s("orders") })},
		"global":            {table: named, build: global("orders-locks", nil, "eu-west-1", "us-east-1"), want: []string{says + "Global replicates asynchronously"}},
		"global, eventual":  {table: named, build: global("orders-locks", s("EVENTUAL"), "eu-west-1", "us-east-1"), want: []string{says + "Global"}},
		"global, strong":    {table: named, build: global("orders-locks", s("STRONG"), "eu-west-1", "us-east-1", "us-east-2")},
		"global, others":    {table: named, build: global("orders", nil, "eu-west-1", "us-east-1")},
		"global, no name":   {build: global("orders-locks", nil, "eu-west-1", "us-east-1")},
		"one Region":        {table: named, build: global("orders-locks", nil, "eu-west-1")},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, "error") })
	}
	// Such a table is a lock, and lacks something.
	checkCase{
		table: named, build: global("orders-locks", s("STRONG"), "eu-west-1", "us-east-1", "us-east-2"),
		want: []string{"it locks in the global table Test/Global with MultiRegionConsistency STRONG: such a table has no TTL"},
	}.run(t, "warning")
	checkCase{table: named, build: global("orders", s("STRONG"), "eu-west-1", "us-east-1", "us-east-2")}.run(t, "warning")
}

func TestLeasesNotCounted(t *testing.T) {
	alarms := func(_ awscdk.Stack, _ awslambda.Function, l infra.LockTable) { l.Alarms(nil) }
	checkCase{build: alarms, want: []string{"its log group is not managed by the CDK"}}.run(t, "warning")
	checkCase{}.run(t, "warning") // nobody waits for the metric

	stack := newStack()
	l := infra.NewLockTable(stack, s("Locks"), nil)
	fn := newFunction(stack, "Fn", &awslambda.FunctionProps{LogGroup: awslogs.NewLogGroup(stack, s("Logs"), nil)})
	l.Connect(fn, nil)
	l.Alarms(nil)
	if got := notes(fn, "warning"); len(got) != 0 {
		t.Errorf("a function whose leases are counted: %q", got)
	}
}
