package middleware_test

import (
	"context"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/middleware"
)

// refusesEvents checks that a key function of records around a handler of the
// whole event panics, and names what to use instead.
func refusesEvents[R, E any](t *testing.T, name string, key keyfuncs.Func[R], within ...string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		opts := newFixture().options
		wantPanic(t, func() {
			middleware.WithLock(key, func(context.Context, E) error { return nil }, opts()...)
		}, within...)
		wantPanic(t, func() {
			middleware.WithLock(key, func(context.Context, *E) (string, error) { return "", nil }, opts()...)
		}, within...)
		wantPanic(t, func() {
			middleware.WithLock(key, func(context.Context, order) error { return nil }, opts()...)
		}, within...)
	})
}

// TestKeyOfRecordsAroundTheWholeEvent shows that the likeliest mistake is
// answered with the wrapper, and the key function, that fit.
func TestKeyOfRecordsAroundTheWholeEvent(t *testing.T) {
	t.Parallel()
	refusesEvents[events.SQSMessage, events.SQSEvent](t, "SQS", keyfuncs.SQSMessage, "EachSQSMessage", "Single[events.SQSEvent]", "EachSQSBody")
	refusesEvents[events.SNSEventRecord, events.SNSEvent](t, "SNS", keyfuncs.SNSRecord, "EachSNSRecord", "Single[events.SNSEvent]", "EachSNSBody")
	refusesEvents[events.S3EventRecord, events.S3Event](t, "S3", keyfuncs.S3Record, "EachS3Record", "Single[events.S3Event]")
	refusesEvents[events.KinesisEventRecord, events.KinesisEvent](t, "Kinesis", keyfuncs.KinesisRecord, "EachKinesisRecord", "Single[events.KinesisEvent]", "EachKinesisBody")
	refusesEvents[events.DynamoDBEventRecord, events.DynamoDBEvent](t, "DynamoDB", keyfuncs.DynamoDBRecord, "EachDynamoDBRecord", "Single[events.DynamoDBEvent]")
	refusesEvents[events.KafkaRecord, events.KafkaEvent](t, "Kafka", keyfuncs.KafkaRecord, "EachKafkaRecord")
	refusesEvents[awsevents.DocumentDBEventRecord, awsevents.DocumentDBEvent](t, "DocumentDB", keyfuncs.DocumentDBRecord, "EachDocumentDBRecord")
	refusesEvents[events.SimpleEmailRecord, events.SimpleEmailEvent](t, "SES", keyfuncs.SESRecord, "Single[events.SimpleEmailEvent]")
	refusesEvents[events.CodeCommitRecord, events.CodeCommitEvent](t, "CodeCommit", keyfuncs.CodeCommitRecord, "Single[events.CodeCommitEvent]")
}
