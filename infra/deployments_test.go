package infra_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskinesis"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"github.com/lambdalock/lambdalock/infra"
)

const failedQueue = "arn:aws:sqs:eu-west-1:111111111111:failed"

// mapped is a mapping in which only what change does may be wrong.
func mapped(arn string, change func(*awslambda.CfnEventSourceMappingProps)) buildFunc {
	return func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
		props := &awslambda.CfnEventSourceMappingProps{
			FunctionName: fn.FunctionName(), EventSourceArn: s(arn), FunctionResponseTypes: jsii.Strings("ReportBatchItemFailures"),
			MaximumRetryAttempts: jsii.Number(5), DestinationConfig: object{"onFailure": object{"destination": failedQueue}},
		}
		change(props)
		awslambda.NewCfnEventSourceMapping(stack, s("Mapping"), props)
	}
}

// queued is a queue and its dead-letter queue, which keep messages for so many
// days, and a mapping with a window.
func queued(days, deadDays, window float64, fifo bool) buildFunc {
	return func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
		props := func(days float64) *awssqs.QueueProps {
			p := &awssqs.QueueProps{RetentionPeriod: awscdk.Duration_Days(jsii.Number(days)), VisibilityTimeout: awscdk.Duration_Seconds(jsii.Number(70))}
			if fifo {
				p.Fifo = jsii.Bool(true)
			}
			return p
		}
		source := props(days)
		source.DeadLetterQueue = &awssqs.DeadLetterQueue{Queue: awssqs.NewQueue(stack, s("Dead"), props(deadDays)), MaxReceiveCount: jsii.Number(5)}
		from := &awslambdaeventsources.SqsEventSourceProps{ReportBatchItemFailures: jsii.Bool(true)}
		if window > 0 {
			from.MaxBatchingWindow = awscdk.Duration_Seconds(jsii.Number(window))
		}
		fn.AddEventSource(awslambdaeventsources.NewSqsEventSource(awssqs.NewQueue(stack, s("Queue"), source), from))
	}
}

// consumed is a stream with a registered consumer.
func consumed(hours float64, props *awslambdaeventsources.KinesisEventSourceProps) buildFunc {
	return func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
		stream := awskinesis.NewStream(stack, s("Stream"), &awskinesis.StreamProps{RetentionPeriod: awscdk.Duration_Hours(jsii.Number(hours))})
		consumer := awskinesis.NewStreamConsumer(stack, s("Consumer"), &awskinesis.StreamConsumerProps{Stream: stream, StreamConsumerName: s("c")})
		with := *props
		with.StartingPosition = awslambda.StartingPosition_LATEST
		if with.OnFailure == nil {
			with.OnFailure = kept(stack)
		}
		fn.AddEventSource(awslambdaeventsources.NewKinesisConsumerEventSource(consumer, &with))
	}
}

// configured is how S3 invokes the function.
func configured(change func(*awslambda.CfnEventInvokeConfigProps)) buildFunc {
	return func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
		fn.AddPermission(s("Permission"), &awslambda.Permission{Principal: awsiam.NewServicePrincipal(s("s3.amazonaws.com"), nil)})
		props := &awslambda.CfnEventInvokeConfigProps{FunctionName: fn.FunctionName(), Qualifier: s("$LATEST"), DestinationConfig: object{"onFailure": object{"destination": failedQueue}}}
		change(props)
		awslambda.NewCfnEventInvokeConfig(stack, s("Config"), props)
	}
}

// Sources that are in another stack.
const (
	streamARN = "arn:aws:kinesis:eu-west-1:111111111111:stream/orders"
	tableARN  = "arn:aws:dynamodb:eu-west-1:111111111111:table/orders/stream/2026"
	topicARN  = "arn:aws:kafka:eu-west-1:111111111111:cluster/orders/0"
	queueARN  = "arn:aws:sqs:eu-west-1:111111111111:orders"
)

type props = awslambda.CfnEventSourceMappingProps

// wrongDeployments each have one thing wrong.
func wrongDeployments() map[string]checkCase {
	yes := jsii.Bool(true)
	topic := func(change func(*props)) buildFunc {
		return mapped(topicARN, func(p *props) { p.Topics = jsii.Strings("orders"); change(p) })
	}
	seconds := func(n float64) *awslambda.FunctionProps {
		return &awslambda.FunctionProps{Timeout: awscdk.Duration_Seconds(jsii.Number(n))}
	}
	return map[string]checkCase{
		"few retries, not kept": {build: mapped(streamARN, func(p *props) { p.DestinationConfig = nil }), want: []string{"gives up a record after 5 retries, and has no failure destination"}},
		"age, not kept": {build: mapped(tableARN, func(p *props) {
			p.MaximumRetryAttempts, p.MaximumRecordAgeInSeconds, p.DestinationConfig = nil, jsii.Number(60), nil
		}), want: []string{"gives up a record after 60 s, and has no"}},
		"both, not kept":                {build: mapped(tableARN, func(p *props) { p.MaximumRecordAgeInSeconds, p.DestinationConfig = jsii.Number(60), object{} }), want: []string{"after 5 retries or 60 s"}},
		"one retry":                     {build: mapped(streamARN, func(p *props) { p.MaximumRetryAttempts = jsii.Number(1) }), want: []string{"RetryAttempts 1: a record that finds its lock held twice"}},
		"dead letters kept as long":     {build: queued(4, 4, 0, false), want: []string{"keeps messages for 4 days, and the queue for 4"}},
		"dead letters kept shorter":     {build: queued(3, 1, 0, false), want: []string{"keeps messages for 1 days, and the queue for 3"}},
		"age of 60 s":                   {build: configured(func(p *awslambda.CfnEventInvokeConfigProps) { p.MaximumEventAgeInSeconds = jsii.Number(60) }), want: []string{"with a MaxEventAge of 60 s"}},
		"one retry in the lease":        {fn: seconds(100), build: configured(func(p *awslambda.CfnEventInvokeConfigProps) { p.MaximumRetryAttempts = jsii.Number(1) }), want: []string{"RetryAttempts 1", "last attempt comes after 60 s"}},
		"window above the rest":         {build: queued(4, 14, 11, false), want: []string{"70 s, less than six times the function's timeout of 10 s and the batching window of 11 s"}},
		"consumer, no partial answers":  {build: consumed(24, &awslambdaeventsources.KinesisEventSourceProps{RetryAttempts: jsii.Number(3)}), want: []string{"(Kinesis) does not report batch item failures"}},
		"consumer, no limit":            {build: consumed(24, &awslambdaeventsources.KinesisEventSourceProps{ReportBatchItemFailures: yes}), want: []string{"(Kinesis) retries without limit"}},
		"consumer of a stream for long": {build: consumed(48, &awslambdaeventsources.KinesisEventSourceProps{ReportBatchItemFailures: yes, RetryAttempts: jsii.Number(3)}), want: []string{"keeps what it delivers for 2 days"}},
		"tumbling window":               {build: mapped(streamARN, func(p *props) { p.TumblingWindowInSeconds = jsii.Number(30) }), want: []string{"has a tumbling window of 30 s"}},
		"tumbling window of a table":    {build: mapped(tableARN, func(p *props) { p.TumblingWindowInSeconds = jsii.Number(900) }), want: []string{"has a tumbling window of 900 s"}},
		"topic, no limit":               {build: topic(func(p *props) { p.MaximumRetryAttempts, p.DestinationConfig = nil, nil }), want: []string{"(Kafka) retries without limit"}},
		"topic, not kept":               {build: topic(func(p *props) { p.DestinationConfig = nil }), want: []string{"(Kafka) gives up a record after 5 retries"}},
		"topic, no retries":             {build: topic(func(p *props) { p.MaximumRetryAttempts = jsii.Number(0) }), want: []string{"(Kafka) has RetryAttempts 0"}},
		"dead letters of a FIFO queue, no receives": {build: func(stack awscdk.Stack, fn awslambda.Function, locks infra.LockTable) {
			queued(4, 4, 0, true)(stack, fn, locks)
			q := stack.Node().FindChild(s("Queue")).Node().DefaultChild().(awssqs.CfnQueue)
			q.AddPropertyOverride(s("VisibilityTimeout"), 70)
			q.SetRedrivePolicy(object{"deadLetterTargetArn": failedQueue + ".fifo", "maxReceiveCount": 2})
		}, want: []string{"a MaxReceiveCount of 2"}},
		"level WARN":   {fn: &awslambda.FunctionProps{LoggingFormat: awslambda.LoggingFormat_JSON, ApplicationLogLevelV2: "WARN"}, want: []string{"log level is WARN"}},
		"S3, not kept": {build: configured(func(p *awslambda.CfnEventInvokeConfigProps) { p.DestinationConfig = nil }), want: []string{"has neither a dead-letter queue nor a failure destination"}},
		"S3, 173 s":    {fn: seconds(173), build: configured(func(*awslambda.CfnEventInvokeConfigProps) {}), want: []string{"has a timeout of 173 s"}},
		"queue by default": {build: func(stack awscdk.Stack, fn awslambda.Function, _ infra.LockTable) {
			fn.AddEventSource(awslambdaeventsources.NewSqsEventSource(awssqs.NewQueue(stack, s("Queue"), nil), nil))
		}, want: []string{"is 30 s, less than six times", "has no dead-letter queue", "(SQS) does not report"}},
	}
}

// rightDeployments have nothing wrong.
func rightDeployments() map[string]checkCase {
	yes := jsii.Bool(true)
	return map[string]checkCase{
		"queue":             {build: queued(4, 14, 0, false)},
		"queue with window": {build: queued(4, 5, 10, false)},
		"FIFO queue":        {build: queued(4, 4, 0, true)},
		"queue elsewhere":   {build: mapped(queueARN, func(p *props) { p.MaximumRetryAttempts, p.DestinationConfig = nil, nil })},
		"stream":            {build: mapped(streamARN, func(*props) {})},
		"stream with age":   {build: mapped(streamARN, func(p *props) { p.MaximumRetryAttempts, p.MaximumRecordAgeInSeconds = nil, jsii.Number(3600) })},
		"window of nothing": {build: mapped(streamARN, func(p *props) { p.TumblingWindowInSeconds = jsii.Number(0) })},
		"consumer":          {build: consumed(24, &awslambdaeventsources.KinesisEventSourceProps{ReportBatchItemFailures: yes, RetryAttempts: jsii.Number(3)})},
		"topic": {build: mapped(topicARN, func(p *props) {
			p.Topics, p.FunctionResponseTypes, p.MaximumRetryAttempts = jsii.Strings("orders"), nil, nil
		})},
		"broker": {build: mapped("arn:aws:mq:eu-west-1:111111111111:broker:orders:b-1", func(p *props) {
			*p = props{FunctionName: p.FunctionName, EventSourceArn: p.EventSourceArn, Queues: jsii.Strings("q")}
		})},
		"asynchronous": {build: configured(func(p *awslambda.CfnEventInvokeConfigProps) { p.MaximumEventAgeInSeconds = jsii.Number(600) })},
		"unknown age": {build: func(stack awscdk.Stack, fn awslambda.Function, locks infra.LockTable) {
			number := func(name string, value float64) *float64 {
				return awscdk.NewCfnParameter(stack, s(name), &awscdk.CfnParameterProps{Type: s("Number"), Default: value}).ValueAsNumber()
			}
			configured(func(p *awslambda.CfnEventInvokeConfigProps) {
				p.MaximumEventAgeInSeconds, p.MaximumRetryAttempts = number("Age", 600), number("Retries", 2)
			})(stack, fn, locks)
		}},
		"level INFO":      {fn: &awslambda.FunctionProps{LoggingFormat: awslambda.LoggingFormat_JSON, ApplicationLogLevelV2: "INFO"}},
		"stopped":         {fn: &awslambda.FunctionProps{ReservedConcurrentExecutions: jsii.Number(0)}},
		"disabled stream": {build: mapped(streamARN, func(p *props) { p.Enabled = jsii.Bool(false) })},
	}
}

// TestDeployments: what is wrong is found, and nothing else. Their templates
// are kept with the warnings, without what all have: integration deploys them,
// and compares the warnings with what doctor finds there.
func TestDeployments(t *testing.T) {
	base, kept := deployed(t, checkCase{}), object{}
	for kind, cases := range map[string]map[string]checkCase{"wrong": wrongDeployments(), "right": rightDeployments()} {
		for name, c := range cases {
			t.Run(kind+"/"+name, func(t *testing.T) {
				template := deployed(t, c)
				shared := at(base, "Template", "Resources").(object)
				maps.DeleteFunc(at(template, "Template", "Resources").(object), func(id string, r any) bool { return encoded(r) == encoded(shared[id]) })
				kept[kind+"/"+name] = template
			})
		}
	}
	text, err := json.MarshalIndent(object{"Connected": base, "Deployments": kept}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`\n(?: {6,}| {5}([}\]]))`).ReplaceAll(text, []byte("$1")) // a line for each resource
	wantFile(t, "testdata/deployments.json", append(text, '\n'))
}

// deployed checks a case and returns its template, with the ids of its
// warnings.
func deployed(t *testing.T, c checkCase) object {
	t.Helper()
	stack, messages := c.run(t, "warning")
	ids := []string{}
	for _, m := range messages {
		_, id, _ := strings.Cut(m, "[ack: @lambdalock/infra:")
		ids = append(ids, strings.TrimSuffix(id, "]"))
	}
	slices.Sort(ids)
	template := *assertions.Template_FromStack(stack, nil).ToJSON()
	delete(template, "Rules") // of the version of the CDK's bootstrap
	delete(template["Parameters"].(object), "BootstrapVersion")
	for _, r := range template["Resources"].(object) {
		if properties, _ := r.(object)["Properties"].(object); properties["Runtime"] != nil {
			properties["Runtime"] = "of the CDK" // whose latest changes
		}
	}
	return object{"Warnings": ids, "Template": template}
}
