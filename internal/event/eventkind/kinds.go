package eventkind

import (
	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
)

// Kind is a source of events: how they are recognised, and what one uses for
// them. The nil Kind is an unknown one.
type Kind struct {
	name  string // as an error calls an event
	types []any  // a value of each Go type that stands for an event
	one   any    // a value of the type of a record; nil: key functions take the whole
	// kept says that the source keeps records until they are acknowledged: an event
	// source mapping delivers them.
	// https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventsourcemapping.html
	kept bool

	// Of its JSON. What is not recognised by these is by [Of] itself.
	sources []string // what records, or events, have as their eventSource
	record  string   // a member that only its Records have, for those that name no source; empty: it has no Records
	members []string // what its events have, if they name no source

	// From package keyfuncs, unless another one is named.
	key   string // the key function, for a record if there is a wrapper
	whole string // the same for an event of one record, if that is not a Single
	each  string // the wrapper of package middleware for handlers of one record
	body  string // the envelope for what a record carries
}

// String returns what an error calls an event of this kind.
func (k *Kind) String() string {
	if k == nil {
		return ""
	}
	return k.name
}

// The kinds of events.
var (
	S3 = &Kind{
		name: "an S3 notification", types: []any{events.S3Event{}}, one: events.S3EventRecord{}, sources: []string{"aws:s3"}, record: "s3",
		key: "S3Record", whole: "S3Object", each: "EachS3Record",
	}
	S3Test = &Kind{name: "the s3:TestEvent", key: "S3Object"}
	SQS    = &Kind{
		name: "an SQS event", types: []any{events.SQSEvent{}}, one: events.SQSMessage{}, kept: true, sources: []string{"aws:sqs"}, record: "messageId",
		key: "SQSMessage, or SQSBody(S3Object) if S3 notifications come through the queue", each: "EachSQSMessage", body: "SQSBody",
	}
	SNS = &Kind{
		name: "an SNS event", types: []any{events.SNSEvent{}}, one: events.SNSEventRecord{}, sources: []string{"aws:sns"}, record: "Sns",
		key: "SNSRecord, or SNSBody(S3Object) if S3 notifications come through the topic", each: "EachSNSRecord", body: "SNSBody",
	}
	SNSMessage = &Kind{ // as a topic puts it into a queue
		name: "an SNS message", types: []any{events.SNSEventRecord{}, events.SNSEntity{}},
		key: "SQSBody(SNSBody(S3Object)) if it is an S3 notification, else SQSMessage",
	}
	EventBridge = &Kind{
		name: "an EventBridge event", types: []any{events.EventBridgeEvent{}}, members: []string{"detail-type", "detail"},
		key: "EventBridgeEvent, or EventBridgeS3Object if it comes from S3",
	}
	CustomBus = &Kind{ // no one: with a MaxBatchSize of 1 it comes alone, and key functions take the whole
		name: "an event of an EventBridge Custom Event Bus", types: []any{awsevents.CustomBusEvent{}}, members: []string{"Data", "SystemMetadata"},
		key: "CustomBusEvent", each: "EachEventBridgeEvent", body: "CustomBusData",
	}
	Kinesis = &Kind{
		name: "a Kinesis event", types: []any{events.KinesisEvent{}}, one: events.KinesisEventRecord{}, kept: true, sources: []string{"aws:kinesis"}, record: "kinesis",
		key: "KinesisRecord", each: "EachKinesisRecord", body: "KinesisBody",
	}
	DynamoDB = &Kind{
		name: "an event of a DynamoDB stream", types: []any{events.DynamoDBEvent{}}, one: events.DynamoDBEventRecord{}, kept: true, sources: []string{"aws:dynamodb"}, record: "dynamodb",
		key: "DynamoDBRecord", each: "EachDynamoDBRecord",
	}
	DocumentDB = &Kind{
		name: "an event of a DocumentDB change stream", types: []any{awsevents.DocumentDBEvent{}}, one: awsevents.DocumentDBEventRecord{}, kept: true, sources: []string{"aws:docdb"},
		key: "DocumentDBRecord", each: "EachDocumentDBRecord",
	}
	Kafka = &Kind{ // AWS shows two spellings of a source that one manages oneself
		name: "a Kafka event", types: []any{events.KafkaEvent{}}, one: events.KafkaRecord{}, kept: true, sources: []string{"aws:kafka", "SelfManagedKafka", "aws:SelfManagedKafka"},
		key: "KafkaRecord", each: "EachKafkaRecord",
	}
	ActiveMQ = &Kind{ // AWS shows two spellings
		name: "an ActiveMQ event", types: []any{events.ActiveMQEvent{}}, kept: true, sources: []string{"aws:mq", "aws:amq"},
		key: "ActiveMQEvent",
	}
	RabbitMQ = &Kind{name: "a RabbitMQ event", types: []any{events.RabbitMQEvent{}}, kept: true, sources: []string{"aws:rmq"}, key: "RabbitMQEvent"}
	SES      = &Kind{
		name: "an SES event", types: []any{events.SimpleEmailEvent{}}, one: events.SimpleEmailRecord{}, sources: []string{"aws:ses"}, record: "ses",
		key: "Single[events.SimpleEmailEvent](SESRecord)",
	}
	CodeCommit = &Kind{
		name: "a CodeCommit event", types: []any{events.CodeCommitEvent{}}, one: events.CodeCommitRecord{}, sources: []string{"aws:codecommit"}, record: "codecommit",
		key: "Single[events.CodeCommitEvent](CodeCommitRecord)",
	}
	CodePipeline   = &Kind{name: "a CodePipeline job", types: []any{events.CodePipelineJobEvent{}}, members: []string{"CodePipeline.job"}, key: "services.CodePipelineJob"}
	CloudFormation = &Kind{
		name: "a request of CloudFormation", types: []any{cfn.Event{}}, members: []string{"RequestType", "StackId", "LogicalResourceId"},
		key: "services.CloudFormation",
	}
	ConfigRule     = &Kind{name: "an event of an AWS Config rule", types: []any{events.ConfigEvent{}}, members: []string{"invokingEvent", "configRuleArn"}, key: "services.ConfigRule"}
	SecretRotation = &Kind{
		name: "a rotation step of Secrets Manager", types: []any{events.SecretsManagerSecretRotationEvent{}}, members: []string{"Step", "SecretId", "ClientRequestToken"},
		key: "services.SecretRotation",
	}
	S3Batch = &Kind{
		name: "an S3 Batch Operations task", types: []any{events.S3BatchJobEvent{}, events.S3BatchJobEventV2{}}, members: []string{"invocationSchemaVersion", "invocationId", "tasks"},
		key: "services.S3BatchTask",
	}
	CloudWatchLogs = &Kind{name: "a CloudWatch Logs event", types: []any{events.CloudwatchLogsEvent{}}, members: []string{"awslogs"}, key: "services.CloudWatchLogs"}
	Alarm          = &Kind{name: "a CloudWatch alarm", types: []any{awsevents.AlarmEvent{}}, members: []string{"alarmArn", "alarmData"}, key: "services.CloudWatchAlarm"}
	AlarmMessage   = &Kind{
		name: "a CloudWatch alarm as an SNS topic gets it", types: []any{events.CloudWatchAlarmSNSPayload{}}, members: []string{"AlarmArn", "NewStateValue"},
		key: "services.SNSAlarmRecord",
	}
	InvocationRecord = &Kind{name: "an invocation record of a Lambda destination", types: []any{awsevents.InvocationRecord{}}, key: "services.InvocationRecord"}
	HTTP             = &Kind{name: "an HTTP request", members: []string{"requestContext"}, key: "IdempotencyKey for the event type of the gateway"}
)

// kinds has them in the order in which they are recognised.
var kinds = []*Kind{
	S3, S3Test, SQS, SNS, SNSMessage, EventBridge, CustomBus, Kinesis, DynamoDB, DocumentDB, Kafka, ActiveMQ, RabbitMQ, SES, CodeCommit, CodePipeline,
	CloudFormation, ConfigRule, SecretRotation, S3Batch, CloudWatchLogs, Alarm, AlarmMessage, InvocationRecord, HTTP,
}
