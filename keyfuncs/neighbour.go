package keyfuncs

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/eventkind"
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
	if want := kindOf(any(event)); want != "" {
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

// kindOf is the kind of event that a type stands for; empty for a type of the
// user's.
func kindOf(event any) eventkind.Kind {
	switch event.(type) {
	case events.S3Event:
		return eventkind.S3
	case events.SQSEvent:
		return eventkind.SQS
	case events.SNSEvent:
		return eventkind.SNS
	case events.SNSEntity:
		return eventkind.SNSMessage
	case events.EventBridgeEvent:
		return eventkind.EventBridge
	case events.KinesisEvent:
		return eventkind.Kinesis
	case events.DynamoDBEvent:
		return eventkind.DynamoDB
	case events.SimpleEmailEvent:
		return eventkind.SES
	case events.CodePipelineJobEvent:
		return eventkind.CodePipeline
	case cfn.Event:
		return eventkind.CloudFormation
	case events.CodeCommitEvent:
		return eventkind.CodeCommit
	case events.ConfigEvent:
		return eventkind.ConfigRule
	case events.SecretsManagerSecretRotationEvent:
		return eventkind.SecretRotation
	case events.S3BatchJobEvent, events.S3BatchJobEventV2:
		return eventkind.S3Batch
	case DocumentDBEvent:
		return eventkind.DocumentDB
	case events.KafkaEvent:
		return eventkind.Kafka
	case events.ActiveMQEvent:
		return eventkind.ActiveMQ
	case events.RabbitMQEvent:
		return eventkind.RabbitMQ
	case events.CloudwatchLogsEvent:
		return eventkind.CloudWatchLogs
	case AlarmEvent:
		return eventkind.Alarm
	case events.CloudWatchAlarmSNSPayload:
		return eventkind.AlarmMessage
	}
	return ""
}

// inBody is the key of what an SQS message carries.
func inBody[E any](ctx context.Context, m events.SQSMessage, inner Func[E]) (lock.Key, error) {
	if err := sourceOf(m); err != nil {
		return lock.Key{}, err
	}
	return envelope(ctx, eventkind.SQS, "body", m.Body, m.MessageId, inner)
}
