// Package eventkind tells AWS events apart by their JSON. Decoded into the type
// of another source, an event may look as if there were nothing in it, and
// would be acknowledged. Its JSON shows what it is and which key function it
// needs.
package eventkind

import (
	"cmp"
	"encoding/json"
)

// Kind is a source of events. The zero Kind is an unknown one.
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

	InvocationRecord Kind = "an invocation record of a Lambda destination"
)

// bySource has the kinds whose records or events name their source.
var bySource = map[string]Kind{
	"aws:s3": S3, "aws:sqs": SQS, "aws:sns": SNS, "aws:kinesis": Kinesis, "aws:dynamodb": DynamoDB, "aws:docdb": DocumentDB,
	"aws:kafka": Kafka, "aws:rmq": RabbitMQ, "aws:ses": SES, "aws:codecommit": CodeCommit,
	// AWS shows two spellings of these.
	"SelfManagedKafka": Kafka, "aws:SelfManagedKafka": Kafka, "aws:mq": ActiveMQ, "aws:amq": ActiveMQ,
}

// byMembers has the kinds that are recognised by their members.
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

// byRecord has a member that only the records of that kind have, for records
// that do not name their source, as in events built by hand.
var byRecord = []struct {
	kind   Kind
	member string
}{
	{S3, "s3"}, {SQS, "messageId"}, {SNS, "Sns"}, {Kinesis, "kinesis"}, {DynamoDB, "dynamodb"}, {SES, "ses"}, {CodeCommit, "codecommit"},
}

// keyFunctions are those for a whole event.
var keyFunctions = map[Kind]string{
	S3:             "S3Object, or S3Record with middleware.EachS3Record",
	S3Test:         "S3Object",
	SQS:            "SQSMessage, or SQSBody(S3Object) if S3 notifications come through the queue, " + oneByOne("SQS", "Message"),
	SNS:            "SNSRecord, or SNSBody(S3Object) if S3 notifications come through the topic, " + oneByOne("SNS", "Record"),
	SNSMessage:     "SQSBody(SNSBody(S3Object)) if it is an S3 notification, else SQSMessage",
	EventBridge:    "EventBridgeEvent, or EventBridgeS3Object if it comes from S3",
	Kinesis:        "KinesisRecord, " + oneByOne("Kinesis", "Record"),
	DynamoDB:       "DynamoDBRecord, " + oneByOne("DynamoDB", "Record"),
	DocumentDB:     "DocumentDBRecord, with middleware.EachDocumentDBRecord",
	Kafka:          "KafkaRecord, with middleware.EachKafkaRecord",
	ActiveMQ:       "ActiveMQEvent",
	RabbitMQ:       "RabbitMQEvent",
	SES:            "Single[events.SimpleEmailEvent](SESRecord)",
	CodeCommit:     "Single[events.CodeCommitEvent](CodeCommitRecord)",
	CodePipeline:   "services.CodePipelineJob",
	CloudFormation: "services.CloudFormation",
	ConfigRule:     "services.ConfigRule",
	SecretRotation: "services.SecretRotation",
	S3Batch:        "services.S3BatchTask",
	CloudWatchLogs: "services.CloudWatchLogs",
	Alarm:          "services.CloudWatchAlarm",
	AlarmMessage:   "services.SNSAlarmRecord",
	HTTP:           "IdempotencyKey for the event type of the gateway",

	InvocationRecord: "services.InvocationRecord",
}

// oneByOne says how a function for one record is given a whole event.
func oneByOne(source, record string) string {
	return "with middleware.Each" + source + record + ", or in Single[events." + source + "Event] for an event of one"
}

// envelopes are the lifters for what a message of an SQS queue or SNS topic, or
// a record of a Kinesis stream, holds.
var envelopes = map[Kind]string{SQS: "SQSBody", SNS: "SNSBody", Kinesis: "KinesisBody"}

// KeyFunction returns what to use for an event in a message of carrier, which
// is SQS, SNS, Kinesis or EventBridge, or empty for a whole event.
func (k Kind) KeyFunction(carrier Kind) string {
	if envelope := envelopes[carrier]; envelope != "" {
		switch k {
		case S3, S3Test:
			return envelope + "(S3Object)"
		case InvocationRecord:
			return envelope + "(services.InvocationRecord)"
		case EventBridge:
			return envelope + "(EventBridgeEvent), or " + envelope + "(EventBridgeS3Object) if it comes from S3"
		}
	}
	return keyFunctions[k]
}

// OfSource returns the kind of a record by the source that it names.
func OfSource(source string) Kind { return bySource[source] }

// Of returns the kind of a JSON document, or "" if it is unknown.
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
	var requestContext struct {
		FunctionARN string `json:"functionArn"` // no gateway sends it
	}
	if json.Unmarshal(members["requestContext"], &requestContext) == nil && requestContext.FunctionARN != "" {
		return InvocationRecord
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
	_ = json.Unmarshal(v, &s) // s stays empty if v is not a string
	return s
}

// NoS3Records returns what is wrong with a document that should be an S3
// notification and has no records. It returns "" for the s3:TestEvent, which S3
// sends when a notification is set up, and which is not about any object.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
func NoS3Records(doc []byte, carrier Kind) string {
	switch k := Of(doc); k {
	case S3Test:
		return ""
	case "", S3:
		if carrier == EventBridge {
			return "holds no S3 notification: for events of S3 on EventBridge the key function is EventBridgeS3Object"
		}
		return "holds no S3 notification and no s3:TestEvent"
	default:
		return k.Refusal(carrier)
	}
}

// Refusal returns why an event of this kind is refused, and what to use
// instead.
func (k Kind) Refusal(carrier Kind) string {
	return "holds " + string(k) + ": its key function is " + k.KeyFunction(carrier)
}
