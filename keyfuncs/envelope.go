package keyfuncs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
)

// envelope returns the key of the JSON text that a message of carrier has in
// field. If that key has no Event, the id of the message becomes it.
func envelope[E any](ctx context.Context, carrier eventkind.Kind, field, text, id string, inner Func[E]) (lock.Key, error) {
	event, err := decode[E](carrier, field, text)
	if err != nil {
		return lock.Key{}, err
	}
	k, err := inner(ctx, event)
	k.Event = cmp.Or(k.Event, id)
	if _, ok := any(event).(events.SNSEventRecord); ok {
		err = relocated(err, func(e *lock.KeyError) { e.Field = strings.TrimPrefix(e.Field, "Sns.") })
	}
	return k, within(field, err)
}

// decode reads the JSON of one message of carrier. It must hold the kind of
// event that E stands for: an event of another source may decode without an
// error, and then look as if there were nothing in it.
func decode[E any](carrier eventkind.Kind, field, text string) (event E, err error) {
	if want := kindOf[reflect.TypeFor[E]()]; want != "" {
		kind := eventkind.Of([]byte(text))
		if kind != "" && kind != want && (kind != eventkind.S3Test || want != eventkind.S3) {
			return event, &lock.KeyError{Field: field, Reason: kind.Refusal(carrier)}
		}
	}
	target := any(&event)
	if record, ok := target.(*events.SNSEventRecord); ok {
		target = &record.SNS // a topic puts only this part of a record into a message
	}
	if err := json.Unmarshal([]byte(text), target); err != nil {
		return event, &lock.KeyError{Field: field, Reason: "is not JSON of the expected shape", Err: fmt.Errorf("as %T: %w", event, err)}
	}
	if s3, ok := any(event).(events.S3Event); ok && len(s3.Records) == 0 {
		if reason := eventkind.NoS3Records([]byte(text), carrier); reason != "" {
			return event, &lock.KeyError{Field: field, Reason: reason}
		}
	}
	return event, nil
}

// kindOf has the kind of event that a type stands for, and none for the user's
// own types.
var kindOf = map[reflect.Type]eventkind.Kind{
	reflect.TypeFor[events.S3Event]():                           eventkind.S3,
	reflect.TypeFor[events.SQSEvent]():                          eventkind.SQS,
	reflect.TypeFor[events.SNSEvent]():                          eventkind.SNS,
	reflect.TypeFor[events.SNSEventRecord]():                    eventkind.SNSMessage,
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
	reflect.TypeFor[awsevents.DocumentDBEvent]():                eventkind.DocumentDB,
	reflect.TypeFor[events.KafkaEvent]():                        eventkind.Kafka,
	reflect.TypeFor[events.ActiveMQEvent]():                     eventkind.ActiveMQ,
	reflect.TypeFor[events.RabbitMQEvent]():                     eventkind.RabbitMQ,
	reflect.TypeFor[events.CloudwatchLogsEvent]():               eventkind.CloudWatchLogs,
	reflect.TypeFor[awsevents.AlarmEvent]():                     eventkind.Alarm,
	reflect.TypeFor[events.CloudWatchAlarmSNSPayload]():         eventkind.AlarmMessage,
}
