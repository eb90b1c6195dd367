package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/keyfuncs/services"
	"github.com/lambdalock/lambdalock/lock"
)

// function is a key function of one record or of a whole event.
type function struct {
	name  string // as one writes it
	whole string // for an event of exactly one record; empty: there is none, or name is for the whole
	each  string // the wrapper for a function of one record; empty for one of the whole
	note  string // see Key
	key   func(context.Context, []byte) (lock.Key, error)
}

const (
	redriven = "a message that is redriven from a dead-letter queue has a new id: it is a new event and runs, even if it was completed; docs/SOURCES.md#redriven-messages says what to do"
	digested = "the digest in it is one of the input as the handler's event type reads it, here of all members; the function's own may differ"
)

// noted adds a note to a function.
func noted(f function, note string) function {
	f.note = note
	return f
}

// written returns how one writes the function for an event.
func (f *function) written(only bool) string {
	switch {
	case f.each == "":
		return f.name
	case only && f.whole != "":
		return f.whole + ", or " + f.name + " with middleware." + f.each
	}
	return f.name + " with middleware." + f.each
}

// of makes a key function take JSON, as the runtime gives it to a handler.
func of[E any](name string, key keyfuncs.Func[E]) function {
	return function{name: name, key: func(ctx context.Context, doc []byte) (lock.Key, error) {
		var e E
		if err := json.Unmarshal(doc, &e); err != nil {
			return lock.Key{}, fmt.Errorf("the runtime cannot decode it as %T: %w", e, err)
		}
		return key(ctx, e)
	}}
}

// record is of for a function of one record of an event of type event.
func record[R any](each, event, name string, key keyfuncs.Func[R]) function {
	f := of(name, key)
	f.each, f.whole = each, "Single[events."+event+"]("+name+")"
	return f
}

func sqs(name string, key keyfuncs.Func[events.SQSMessage]) function {
	return record("EachSQSMessage", "SQSEvent", name, key)
}

func sns(name string, key keyfuncs.Func[events.SNSEventRecord]) function {
	return record("EachSNSRecord", "SNSEvent", name, key)
}

func kinesis(name string, key keyfuncs.Func[events.KinesisEventRecord]) function {
	return record("EachKinesisRecord", "KinesisEvent", name, key)
}

// s3Object is how the S3 functions are written; S3Object is itself a Single.
func s3Object() function {
	f := record("EachS3Record", "S3Event", "S3Record", keyfuncs.S3Record)
	f.whole = "S3Object"
	return f
}

// changeOf takes an event of one change, because only the event names the
// cluster.
func changeOf(ctx context.Context, e awsevents.DocumentDBEvent) (lock.Key, error) {
	return keyfuncs.DocumentDBRecord(ctx, e.Events[0])
}

// withoutWhole is for sources without a Single.
func withoutWhole(each string, f function) []function {
	f.each = each
	return []function{f}
}

// byKind has the functions of each kind of event.
var byKind = map[eventkind.Kind][]function{
	eventkind.S3: {s3Object(), record("EachS3Record", "S3Event", "S3LatestRecord", keyfuncs.S3LatestRecord)},
	eventkind.SQS: {
		noted(sqs("SQSMessage", keyfuncs.SQSMessage), redriven), noted(sqs("SQSFIFOMessage", keyfuncs.SQSFIFOMessage), redriven),
		sqs("SQSBody(S3Object)", keyfuncs.SQSBody(keyfuncs.S3Object)),
		sqs("SQSBody(SNSBody(S3Object))", keyfuncs.SQSBody(keyfuncs.SNSBody(keyfuncs.S3Object))),
		sqs("SQSBody(EventBridgeS3Object)", keyfuncs.SQSBody(keyfuncs.EventBridgeS3Object)),
		sqs("SQSBody(EventBridgeEvent)", keyfuncs.SQSBody(keyfuncs.EventBridgeEvent)),
		sqs("SQSBody(services.InvocationRecord)", keyfuncs.SQSBody(services.InvocationRecord)),
		sqs("SQSBody(SNSRecord)", keyfuncs.SQSBody(keyfuncs.SNSRecord)),
		sqs("SQSBody(services.SNSAlarmRecord)", keyfuncs.SQSBody(services.SNSAlarmRecord)),
	},
	eventkind.SNS: {
		sns("SNSRecord", keyfuncs.SNSRecord),
		sns("SNSBody(S3Object)", keyfuncs.SNSBody(keyfuncs.S3Object)),
		sns("services.SNSAlarmRecord", services.SNSAlarmRecord),
		sns("SNSBody(EventBridgeS3Object)", keyfuncs.SNSBody(keyfuncs.EventBridgeS3Object)),
		sns("SNSBody(EventBridgeEvent)", keyfuncs.SNSBody(keyfuncs.EventBridgeEvent)),
		sns("SNSBody(services.InvocationRecord)", keyfuncs.SNSBody(services.InvocationRecord)),
	},
	eventkind.Kinesis: {
		kinesis("KinesisRecord", keyfuncs.KinesisRecord),
		kinesis("KinesisBody(EventBridgeEvent)", keyfuncs.KinesisBody(keyfuncs.EventBridgeEvent)),
	},
	eventkind.DynamoDB:   {record("EachDynamoDBRecord", "DynamoDBEvent", "DynamoDBRecord", keyfuncs.DynamoDBRecord)},
	eventkind.DocumentDB: withoutWhole("EachDocumentDBRecord", of("DocumentDBRecord", changeOf)),
	eventkind.Kafka:      withoutWhole("EachKafkaRecord", of("KafkaRecord", keyfuncs.KafkaRecord)),
	eventkind.EventBridge: {
		of("EventBridgeSchedule", keyfuncs.EventBridgeSchedule), of("EventBridgeS3Object", keyfuncs.EventBridgeS3Object),
		of("EventBridgeEvent", keyfuncs.EventBridgeEvent),
	},
	eventkind.ActiveMQ:       {of("ActiveMQEvent", keyfuncs.ActiveMQEvent)},
	eventkind.RabbitMQ:       {of("RabbitMQEvent", keyfuncs.RabbitMQEvent)},
	eventkind.SES:            {of("Single[events.SimpleEmailEvent](SESRecord)", keyfuncs.Single[events.SimpleEmailEvent](keyfuncs.SESRecord))},
	eventkind.CodeCommit:     {of("Single[events.CodeCommitEvent](CodeCommitRecord)", keyfuncs.Single[events.CodeCommitEvent](keyfuncs.CodeCommitRecord))},
	eventkind.CodePipeline:   {of("services.CodePipelineJob", services.CodePipelineJob)},
	eventkind.CloudFormation: {of("services.CloudFormation", keyfuncs.Func[cfn.Event](services.CloudFormation))},
	eventkind.ConfigRule:     {of("services.ConfigRule", services.ConfigRule)},
	eventkind.SecretRotation: {of("services.SecretRotation", services.SecretRotation)},
	eventkind.CloudWatchLogs: {of("services.CloudWatchLogs", services.CloudWatchLogs)},
	eventkind.Alarm:          {of("services.CloudWatchAlarm", services.CloudWatchAlarm)},

	eventkind.InvocationRecord: {of("services.InvocationRecord", keyfuncs.Func[awsevents.InvocationRecord](services.InvocationRecord))},
}

// functionsOf returns the functions for an event of a known kind.
func functionsOf(kind eventkind.Kind, doc []byte) []function {
	switch kind {
	case eventkind.HTTP:
		return httpFunctions(doc)
	case eventkind.S3Batch:
		if strings.HasPrefix(text(doc, "invocationSchemaVersion"), "1") {
			return []function{of("services.S3BatchTask[events.S3BatchJobEvent]", services.S3BatchTask[events.S3BatchJobEvent])}
		}
		return []function{of("services.S3BatchTask[events.S3BatchJobEventV2]", services.S3BatchTask[events.S3BatchJobEventV2])}
	}
	return byKind[kind]
}

// httpFunctions returns the function for the gateway that sent the request.
func httpFunctions(doc []byte) []function {
	var e struct {
		RequestContext struct {
			ConnectionID string `json:"connectionId"`
			DomainName   string `json:"domainName"`
		} `json:"requestContext"`
	}
	_ = json.Unmarshal(doc, &e) // GatewayOf has read more of it
	switch c := e.RequestContext; eventkind.GatewayOf(doc) {
	case eventkind.LoadBalancer:
		return []function{of("IdempotencyKey[events.ALBTargetGroupRequest]", keyfuncs.IdempotencyKey[events.ALBTargetGroupRequest])}
	case eventkind.Payload2:
		// https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html#urls-payloads
		if strings.Contains(c.DomainName, ".lambda-url.") {
			return []function{of("IdempotencyKey[events.LambdaFunctionURLRequest]", keyfuncs.IdempotencyKey[events.LambdaFunctionURLRequest])}
		}
		return []function{of("IdempotencyKey[events.APIGatewayV2HTTPRequest]", keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest])}
	case eventkind.Payload1:
		if c.ConnectionID != "" {
			return []function{of("IdempotencyKey[events.APIGatewayWebsocketProxyRequest]", keyfuncs.IdempotencyKey[events.APIGatewayWebsocketProxyRequest])}
		}
		return []function{of("IdempotencyKey[events.APIGatewayProxyRequest]", keyfuncs.IdempotencyKey[events.APIGatewayProxyRequest])}
	}
	return nil
}

// ofCognito returns the key of an event of any trigger. Their requests differ,
// down to the types of the user's attributes, but not the header.
func ofCognito(ctx context.Context, header events.CognitoEventUserPoolsHeader) (lock.Key, error) {
	return services.CognitoUser(ctx, events.CognitoEventUserPoolsPostAuthentication{CognitoEventUserPoolsHeader: header})
}

// unknown returns the functions for events that do not name their source, as
// far as the members of the event make sense to them.
func unknown(members map[string]json.RawMessage) []function {
	var all []function
	if members["triggerSource"] != nil && members["userPoolId"] != nil {
		all = append(all, of("services.CognitoUser", ofCognito))
	}
	if members["topic"] != nil && members["traceId"] != nil {
		all = append(all, of("services.IoTRule, with the members topic and traceId", services.IoTRule(func(m awsevents.IoTMessage) awsevents.IoTMessage { return m })))
	}
	if members["Execution"] != nil && members["State"] != nil {
		whole := services.StepFunctions(func(c awsevents.StepFunctionsContext) awsevents.StepFunctionsContext { return c })
		all = append(all, noted(of("services.StepFunctions, with the whole event", whole), digested))
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if text(members[name], "Execution", "Id") == "" {
			continue
		}
		find := func(e map[string]json.RawMessage) (c awsevents.StepFunctionsContext) {
			_ = json.Unmarshal(e[name], &c) // the key function refuses what is missing
			return c
		}
		all = append(all, noted(of(fmt.Sprintf("services.StepFunctions, with the member %q", name), services.StepFunctions(find)), digested))
	}
	return all
}

// text returns a string that is a member, or a member of a member, of a
// document.
func text(doc []byte, path ...string) (s string) {
	for _, name := range path {
		var members map[string]json.RawMessage
		if json.Unmarshal(doc, &members) != nil {
			return ""
		}
		doc = members[name]
	}
	_ = json.Unmarshal(doc, &s) // s stays empty if it is not a string
	return s
}
