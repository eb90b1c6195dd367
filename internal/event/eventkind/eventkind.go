// Package eventkind tells AWS events apart by their JSON. Decoded into the type of
// another source, an event may look as if it held nothing to work on, and would be
// acknowledged; its JSON says what it is and which key function it needs.
package eventkind

import (
	"cmp"
	"encoding/json"
)

// Kind is a source of events. The zero Kind is none that is known.
type Kind string

// The kinds as an error calls them.
const (
	S3             Kind = "an S3 notification"
	S3Test         Kind = "the s3:TestEvent"
	SQS            Kind = "an SQS event"
	SNS            Kind = "an SNS event"
	SNSMessage     Kind = "an SNS message" // as a topic puts it into a queue
	EventBridge    Kind = "an EventBridge event"
	Kinesis        Kind = "a Kinesis event"
	DynamoDB       Kind = "an event of a DynamoDB stream"
	DocumentDB     Kind = "an event of a DocumentDB change stream"
	Kafka          Kind = "a Kafka event"
	ActiveMQ       Kind = "an ActiveMQ event"
	RabbitMQ       Kind = "a RabbitMQ event"
	SES            Kind = "an SES event"
	CodeCommit     Kind = "a CodeCommit event"
	CodePipeline   Kind = "a CodePipeline job"
	CloudFormation Kind = "a request of CloudFormation"
	ConfigRule     Kind = "an event of an AWS Config rule"
	SecretRotation Kind = "a rotation step of Secrets Manager"
	S3Batch        Kind = "an S3 Batch Operations task"
	CloudWatchLogs Kind = "a CloudWatch Logs event"
	Alarm          Kind = "a CloudWatch alarm"
	AlarmMessage   Kind = "a CloudWatch alarm as an SNS topic gets it"
	HTTP           Kind = "an HTTP request"
)

// bySource are the kinds whose records or events name their source.
var bySource = map[string]Kind{
	"aws:s3": S3, "aws:sqs": SQS, "aws:sns": SNS, "aws:kinesis": Kinesis, "aws:dynamodb": DynamoDB, "aws:docdb": DocumentDB,
	"aws:kafka": Kafka, "SelfManagedKafka": Kafka, "aws:mq": ActiveMQ, "aws:rmq": RabbitMQ, "aws:ses": SES, "aws:codecommit": CodeCommit,
}

// byMembers are the kinds that are known by their members.
var byMembers = []struct {
	kind    Kind
	members []string
}{
	{EventBridge, []string{"detail-type", "detail"}},
	{CodePipeline, []string{"CodePipeline.job"}},
	{CloudFormation, []string{"RequestType", "StackId", "LogicalResourceId"}},
	{ConfigRule, []string{"invokingEvent", "configRuleArn"}},
	{SecretRotation, []string{"Step", "SecretId", "ClientRequestToken"}},
	{S3Batch, []string{"invocationSchemaVersion", "invocationId", "tasks"}},
	{CloudWatchLogs, []string{"awslogs"}},
	{Alarm, []string{"alarmArn", "alarmData"}},
	{AlarmMessage, []string{"AlarmArn", "NewStateValue"}},
	{HTTP, []string{"requestContext"}},
}

// byRecord are the kinds of records that name no source, as in events built by hand,
// by a member that only they have.
var byRecord = []struct {
	kind   Kind
	member string
}{
	{S3, "s3"}, {SQS, "messageId"}, {SNS, "Sns"}, {Kinesis, "kinesis"}, {DynamoDB, "dynamodb"}, {SES, "ses"}, {CodeCommit, "codecommit"},
}

// keyFunctions are those for a whole event.
var keyFunctions = map[Kind]string{
	S3: "S3Object, or middleware.EachS3Record for its records one by one", S3Test: "S3Object",
	SQS:         "SQSMessage, or S3ViaSQS if S3 notifications come through the queue; for its messages one by one middleware.EachSQSMessage",
	SNS:         "SNSMessage, or S3ViaSNS if S3 notifications come through the topic; for its records one by one middleware.EachSNSRecord",
	SNSMessage:  "S3ViaSNSAndSQS if it is an S3 notification, else SQSMessage",
	EventBridge: "EventBridge, or S3ViaEventBridge if it comes from S3",
	Kinesis:     "Kinesis, or middleware.EachKinesisRecord for its records one by one",
	DynamoDB:    "DynamoDBStream, or middleware.EachDynamoDBRecord for its records one by one",
	DocumentDB:  "DocumentDB, or middleware.EachDocumentDBRecord for its changes one by one",
	Kafka:       "Kafka, or middleware.EachKafkaRecord for its records one by one",
	ActiveMQ:    "ActiveMQ", RabbitMQ: "RabbitMQ", SES: "SESEmail", CodeCommit: "CodeCommit", CodePipeline: "CodePipelineJob",
	CloudFormation: "CloudFormation", ConfigRule: "ConfigRule", SecretRotation: "SecretRotation", S3Batch: "S3BatchTask",
	CloudWatchLogs: "CloudWatchLogs", Alarm: "CloudWatchAlarm", AlarmMessage: "CloudWatchAlarmViaSNS",
	HTTP: "that of the gateway, such as APIGatewayHTTP",
}

// viaFunctions are those for an event in a message of an SQS queue or SNS topic.
var viaFunctions = map[Kind]map[Kind]string{
	SQS: {S3: "S3ViaSQS", S3Test: "S3ViaSQS", EventBridge: "EventBridgeViaSQS, or SQSBody(S3ViaEventBridge) if it comes from S3"},
	SNS: {S3: "S3ViaSNS", S3Test: "S3ViaSNS", EventBridge: "SNSBody(EventBridge), or SNSBody(S3ViaEventBridge) if it comes from S3"},
}

// KeyFunction says what to use for an event in a message of carrier, which is SQS,
// SNS or, for a whole event, empty.
func (k Kind) KeyFunction(carrier Kind) string {
	return cmp.Or(viaFunctions[carrier][k], keyFunctions[k])
}

// OfSource is the kind of a record by the source that it names.
func OfSource(source string) Kind { return bySource[source] }

// Of is the kind of a JSON document; empty if it is none that is known.
func Of(doc []byte) Kind {
	var members map[string]json.RawMessage
	if json.Unmarshal(doc, &members) != nil {
		return ""
	}
	if text(members["Event"]) == "s3:TestEvent" && cmp.Or(text(members["Service"]), "Amazon S3") == "Amazon S3" && members["Records"] == nil {
		return S3Test
	}
	if k := ofRecords(members["Records"]); k != "" {
		return k
	}
	if k := OfSource(text(members["eventSource"])); k != "" {
		return k
	}
	switch text(members["Type"]) {
	case "Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation":
		if members["Message"] != nil {
			return SNSMessage
		}
	}
	for _, known := range byMembers {
		if has(members, known.members) {
			return known.kind
		}
	}
	return ""
}

func ofRecords(list json.RawMessage) Kind {
	var records []map[string]json.RawMessage
	if json.Unmarshal(list, &records) != nil || len(records) == 0 {
		return ""
	}
	source := cmp.Or(text(records[0]["eventSource"]), text(records[0]["EventSource"]))
	if source != "" {
		return OfSource(source)
	}
	for _, known := range byRecord {
		if records[0][known.member] != nil {
			return known.kind
		}
	}
	return ""
}

func has(members map[string]json.RawMessage, names []string) bool {
	for _, name := range names {
		if members[name] == nil {
			return false
		}
	}
	return true
}

func text(v json.RawMessage) (s string) {
	_ = json.Unmarshal(v, &s) // what is no string stays empty
	return s
}

// NoS3Records says what is wrong with a document that was expected to be an S3
// notification and has no records; empty for the s3:TestEvent, which S3 sends when a
// notification is set up, and which holds nothing to work on.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
func NoS3Records(doc []byte, carrier Kind) string {
	switch k := Of(doc); k {
	case S3Test:
		return ""
	case "", S3:
		if carrier == EventBridge {
			return "holds no S3 notification: for events of S3 on EventBridge the key function is S3ViaEventBridge"
		}
		return "holds no S3 notification and no s3:TestEvent"
	default:
		return k.Refusal(carrier)
	}
}

// Refusal is why an event of this kind is refused, and what to do instead.
func (k Kind) Refusal(carrier Kind) string {
	return "holds " + string(k) + ": its key function is " + k.KeyFunction(carrier)
}
