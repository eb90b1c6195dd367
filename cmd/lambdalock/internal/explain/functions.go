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
	name string // as one writes it; empty: as the kind of event says
	note string // see Key
	key  func(context.Context, []byte) (lock.Key, error)
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

// written returns how one writes the function for an event of a kind. only:
// the event holds one record.
func (f *function) written(kind *eventkind.Kind, only bool) string {
	switch whole := kind.Whole(f.name); {
	case f.name == "":
		return kind.KeyFunction(nil)
	case kind.Each() == "":
		return f.name
	case only && whole != "":
		return whole + ", or " + f.name + " with middleware." + kind.Each()
	}
	return f.name + " with middleware." + kind.Each()
}

// names returns how one may write the function, without a wrapper.
func (f *function) names(kind *eventkind.Kind) []string {
	if f.name == "" {
		return []string{kind.KeyFunction(nil)}
	}
	return []string{f.name, kind.Whole(f.name)}
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

// whole is of for the only key function of a kind of event.
func whole[E any](key keyfuncs.Func[E]) []function { return []function{of("", key)} }

// changeOf takes an event of one change, because only the event names the
// cluster.
func changeOf(ctx context.Context, e awsevents.DocumentDBEvent) (lock.Key, error) {
	return keyfuncs.DocumentDBRecord(ctx, e.Events[0])
}

// ofBus is CustomBusEvent for an event with metadata: without, it is that of a
// classic bus.
func ofBus(ctx context.Context, e awsevents.CustomBusEvent) (lock.Key, error) {
	if e.SystemMetadata.EventID == "" {
		return lock.Key{}, &lock.NoKeyError{Field: "SystemMetadata", Reason: "is missing"}
	}
	return keyfuncs.CustomBusEvent(ctx, e)
}

// byKind has the functions of each kind of event.
var byKind = map[*eventkind.Kind][]function{
	eventkind.S3: {of("S3Record", keyfuncs.S3Record), of("S3LatestRecord", keyfuncs.S3LatestRecord)},
	eventkind.SQS: {
		noted(of("SQSMessage", keyfuncs.SQSMessage), redriven), noted(of("SQSFIFOMessage", keyfuncs.SQSFIFOMessage), redriven),
		of("SQSBody(S3Object)", keyfuncs.SQSBody(keyfuncs.S3Object)),
		of("SQSBody(SNSBody(S3Object))", keyfuncs.SQSBody(keyfuncs.SNSBody(keyfuncs.S3Object))),
		of("SQSBody(EventBridgeS3Object)", keyfuncs.SQSBody(keyfuncs.EventBridgeS3Object)),
		of("SQSBody(EventBridgeEvent)", keyfuncs.SQSBody(keyfuncs.EventBridgeEvent)),
		of("SQSBody(CustomBusEvent)", keyfuncs.SQSBody(ofBus)),
		of("SQSBody(services.InvocationRecord)", keyfuncs.SQSBody(services.InvocationRecord)),
		of("SQSBody(SNSRecord)", keyfuncs.SQSBody(keyfuncs.SNSRecord)),
		of("SQSBody(services.SNSAlarmRecord)", keyfuncs.SQSBody(services.SNSAlarmRecord)),
	},
	eventkind.SNS: {
		of("SNSRecord", keyfuncs.SNSRecord),
		of("SNSBody(S3Object)", keyfuncs.SNSBody(keyfuncs.S3Object)),
		of("services.SNSAlarmRecord", services.SNSAlarmRecord),
		of("SNSBody(EventBridgeS3Object)", keyfuncs.SNSBody(keyfuncs.EventBridgeS3Object)),
		of("SNSBody(EventBridgeEvent)", keyfuncs.SNSBody(keyfuncs.EventBridgeEvent)),
		of("SNSBody(services.InvocationRecord)", keyfuncs.SNSBody(services.InvocationRecord)),
	},
	eventkind.EventBridge: {
		of("EventBridgeSchedule", keyfuncs.EventBridgeSchedule), of("EventBridgeS3Object", keyfuncs.EventBridgeS3Object),
		of("EventBridgeEvent", keyfuncs.EventBridgeEvent),
	},
	eventkind.CustomBus: {
		of("CustomBusEvent", keyfuncs.CustomBusEvent), of("CustomBusGroup", keyfuncs.CustomBusGroup),
		of("CustomBusData(EventBridgeS3Object)", keyfuncs.CustomBusData(keyfuncs.EventBridgeS3Object)),
	},
	eventkind.Kinesis:          {of("KinesisRecord", keyfuncs.KinesisRecord), of("KinesisBody(EventBridgeEvent)", keyfuncs.KinesisBody(keyfuncs.EventBridgeEvent))},
	eventkind.DynamoDB:         {of("DynamoDBRecord", keyfuncs.DynamoDBRecord)},
	eventkind.DocumentDB:       {of("DocumentDBRecord", changeOf)},
	eventkind.Kafka:            {of("KafkaRecord", keyfuncs.KafkaRecord)},
	eventkind.ActiveMQ:         whole(keyfuncs.ActiveMQEvent),
	eventkind.RabbitMQ:         whole(keyfuncs.RabbitMQEvent),
	eventkind.SES:              whole(keyfuncs.Single[events.SimpleEmailEvent](keyfuncs.SESRecord)),
	eventkind.CodeCommit:       whole(keyfuncs.Single[events.CodeCommitEvent](keyfuncs.CodeCommitRecord)),
	eventkind.CodePipeline:     whole(services.CodePipelineJob),
	eventkind.CloudFormation:   whole[cfn.Event](services.CloudFormation),
	eventkind.ConfigRule:       whole(services.ConfigRule),
	eventkind.SecretRotation:   whole(services.SecretRotation),
	eventkind.CloudWatchLogs:   whole(services.CloudWatchLogs),
	eventkind.Alarm:            whole(services.CloudWatchAlarm),
	eventkind.InvocationRecord: whole[awsevents.InvocationRecord](services.InvocationRecord),
}

// functionsOf returns the functions for an event of a known kind.
func functionsOf(kind *eventkind.Kind, doc []byte) []function {
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
