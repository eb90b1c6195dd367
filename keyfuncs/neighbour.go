package keyfuncs

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// foreign refuses what names another source than the one that is wanted. An event
// built by hand need not name any.
func foreign(field, source string, want eventkind.Kind) error {
	kind := eventkind.OfSource(source)
	switch {
	case source == "" || kind == want:
		return nil
	case kind == "":
		return &lock.KeyError{Field: field, Reason: fmt.Sprintf("is %.40q, which is no source of %s", source, want)}
	}
	return &lock.KeyError{Field: field, Reason: fmt.Sprintf("is %s, so the event %s", source, kind.Refusal(""))}
}

// sourceOf refuses a record of another source than its type stands for.
func sourceOf(record any) error {
	switch r := record.(type) {
	case events.S3EventRecord:
		return foreign("eventSource", r.EventSource, eventkind.S3)
	case events.SQSMessage:
		return foreign("eventSource", r.EventSource, eventkind.SQS)
	case events.SNSEventRecord:
		return foreign("EventSource", r.EventSource, eventkind.SNS)
	case events.KinesisEventRecord:
		return foreign("eventSource", r.EventSource, eventkind.Kinesis)
	case events.DynamoDBEventRecord:
		return foreign("eventSource", r.EventSource, eventkind.DynamoDB)
	case events.SimpleEmailRecord:
		return foreign("eventSource", r.EventSource, eventkind.SES)
	case events.CodeCommitRecord:
		return foreign("eventSource", r.EventSource, eventkind.CodeCommit)
	}
	return nil
}

// decode reads the JSON of one message of carrier. What it holds must be of the kind
// that E stands for: an event of a neighbouring source may decode without an error,
// and then look as if it held nothing.
func decode[E any](carrier eventkind.Kind, field, text string) (event E, err error) {
	if want := kindOf[reflect.TypeFor[E]()]; want != "" {
		kind := eventkind.Of([]byte(text))
		if kind != "" && kind != want && !(kind == eventkind.S3Test && want == eventkind.S3) {
			return event, &lock.KeyError{Field: field, Reason: kind.Refusal(carrier)}
		}
	}
	if err := json.Unmarshal([]byte(text), &event); err != nil {
		return event, &lock.KeyError{Field: field, Reason: "is not JSON of the expected shape", Err: fmt.Errorf("as %T: %w", event, err)}
	}
	if s3, ok := any(event).(events.S3Event); ok && len(s3.Records) == 0 {
		if reason := eventkind.NoS3Records([]byte(text), carrier); reason != "" {
			return event, &lock.KeyError{Field: field, Reason: reason}
		}
	}
	return event, nil
}

// kindOf is the kind of event that a type stands for; none for a type of the user's.
var kindOf = map[reflect.Type]eventkind.Kind{
	reflect.TypeFor[events.S3Event]():                           eventkind.S3,
	reflect.TypeFor[events.SQSEvent]():                          eventkind.SQS,
	reflect.TypeFor[events.SNSEvent]():                          eventkind.SNS,
	reflect.TypeFor[events.SNSEntity]():                         eventkind.SNSMessage,
	reflect.TypeFor[events.EventBridgeEvent]():                  eventkind.EventBridge,
	reflect.TypeFor[events.KinesisEvent]():                      eventkind.Kinesis,
	reflect.TypeFor[events.DynamoDBEvent]():                     eventkind.DynamoDB,
	reflect.TypeFor[events.SimpleEmailEvent]():                  eventkind.SES,
	reflect.TypeFor[events.CodePipelineJobEvent]():              eventkind.CodePipeline,
	reflect.TypeFor[cfn.Event]():                                eventkind.CloudFormation,
	reflect.TypeFor[events.CodeCommitEvent]():                   eventkind.CodeCommit,
	reflect.TypeFor[events.ConfigEvent]():                       eventkind.ConfigRule,
	reflect.TypeFor[events.SecretsManagerSecretRotationEvent](): eventkind.SecretRotation,
	reflect.TypeFor[events.S3BatchJobEvent]():                   eventkind.S3Batch,
	reflect.TypeFor[events.S3BatchJobEventV2]():                 eventkind.S3Batch,
	reflect.TypeFor[DocumentDBEvent]():                          eventkind.DocumentDB,
	reflect.TypeFor[events.KafkaEvent]():                        eventkind.Kafka,
	reflect.TypeFor[events.ActiveMQEvent]():                     eventkind.ActiveMQ,
	reflect.TypeFor[events.RabbitMQEvent]():                     eventkind.RabbitMQ,
	reflect.TypeFor[events.CloudwatchLogsEvent]():               eventkind.CloudWatchLogs,
	reflect.TypeFor[AlarmEvent]():                               eventkind.Alarm,
	reflect.TypeFor[events.CloudWatchAlarmSNSPayload]():         eventkind.AlarmMessage,
}

// inBody is the key of what an SQS message carries.
func inBody[E any](ctx context.Context, m events.SQSMessage, inner Func[E]) (lock.Key, error) {
	if err := sourceOf(m); err != nil {
		return lock.Key{}, err
	}
	return envelope(ctx, eventkind.SQS, "body", m.Body, m.MessageId, inner)
}
