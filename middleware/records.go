package middleware

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
)

// EachSQSMessage wraps a handler of one SQS message as a handler of batches.
// Each message runs under the lock of its own key, up to [Concurrency] of them
// at a time. A message that was completed, now or earlier, is acknowledged. One
// that failed, is held or was not begun is returned as a batch item failure,
// and SQS delivers it again after its visibility timeout; package redelivery
// makes that sooner for one that is held. A completed message is remembered for
// 4 days unless [Remember] says otherwise: as long as a queue keeps messages by
// default.
//
// The event source mapping must have ReportBatchItemFailures: without it Lambda
// ignores the partial answer and deletes every message. If every message
// failed, the handler also returns a [*BatchError], so that Lambda's metric
// Errors counts the batch.
//
// If two messages of a batch have the same key, the second one waits for the
// first, and is then skipped as completed. In a FIFO queue the messages of a
// group are handled in their order; after a failure the rest of the group is
// returned without being handled, which counts as a receive of each, and other
// groups go on. A message that cannot be read, or whose handler panics, fails
// alone. Near the deadline no further message begins: EachSQSMessage waits for
// the handlers that still run, and returns the rest. If the store throttles,
// the batch slows down, and returns only what could not begin before that.
//
// EachSQSMessage refuses OnHeld([Skip]), which would lose messages, and Respond
// and Replay, because handlers of records have no result. It panics like
// [WithLock] if handler, key function and options do not fit together.
//
// Source: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html.
func EachSQSMessage[K keyfuncs.For[events.SQSMessage]](key K, handler func(context.Context, events.SQSMessage) error, opts ...Option) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	return eachSQS(newBatch(key, handler, opts))
}

func eachSQS(b *batch[events.SQSMessage]) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	src := source[events.SQSMessage]{strict: true, group: eventkind.FIFOGroup}
	return func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		failed, err := partialAnswer(&src, b.run(ctx, src, e.Records), e.Records, func(m *events.SQSMessage) (events.SQSBatchItemFailure, bool) {
			return events.SQSBatchItemFailure{ItemIdentifier: m.MessageId}, m.MessageId != ""
		})
		return events.SQSEventResponse{BatchItemFailures: failed}, err
	}
}

// EachKinesisRecord is [EachSQSMessage] for a Kinesis stream. The records of a
// shard are handled one after the other, and after a failure the rest is
// returned; [OrderPerName] handles different names at the same time. Lambda
// delivers again from the first failed record on, and the records that were
// completed after it are skipped. A completed record is remembered for 24 h
// unless [Remember] says otherwise. A batch of a tumbling window is refused
// with a [*lock.NoKeyError].
//
// Source: https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html.
func EachKinesisRecord[K keyfuncs.For[events.KinesisEventRecord]](key K, handler func(context.Context, events.KinesisEventRecord) error, opts ...Option) func(context.Context, KinesisRecords) (events.KinesisEventResponse, error) {
	return eachKinesis(newBatch(key, handler, opts))
}

func eachKinesis(b *batch[events.KinesisEventRecord]) func(context.Context, KinesisRecords) (events.KinesisEventResponse, error) {
	src := source[events.KinesisEventRecord]{group: func(r *events.KinesisEventRecord) string {
		shard, _, _ := strings.Cut(r.EventID, ":")
		return r.EventSourceArn + " " + shard
	}}
	return func(ctx context.Context, e KinesisRecords) (events.KinesisEventResponse, error) {
		if err := b.refuseWindow(ctx, e.Window); err != nil {
			return events.KinesisEventResponse{}, err
		}
		failed, err := partialAnswer(&src, b.run(ctx, src, e.Records), e.Records, func(r *events.KinesisEventRecord) (events.KinesisBatchItemFailure, bool) {
			return events.KinesisBatchItemFailure{ItemIdentifier: r.Kinesis.SequenceNumber}, r.Kinesis.SequenceNumber != ""
		})
		return events.KinesisEventResponse{BatchItemFailures: failed}, err
	}
}

// EachDynamoDBRecord is [EachKinesisRecord] for a DynamoDB stream. The records
// of a batch come from one shard.
//
// Source: https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-batchfailurereporting.html.
func EachDynamoDBRecord[K keyfuncs.For[events.DynamoDBEventRecord]](key K, handler func(context.Context, events.DynamoDBEventRecord) error, opts ...Option) func(context.Context, DynamoDBRecords) (events.DynamoDBEventResponse, error) {
	b := newBatch(key, handler, opts)
	src := source[events.DynamoDBEventRecord]{group: func(*events.DynamoDBEventRecord) string { return "shard" }}
	return func(ctx context.Context, e DynamoDBRecords) (events.DynamoDBEventResponse, error) {
		if err := b.refuseWindow(ctx, e.Window); err != nil {
			return events.DynamoDBEventResponse{}, err
		}
		failed, err := partialAnswer(&src, b.run(ctx, src, e.Records), e.Records, func(r *events.DynamoDBEventRecord) (events.DynamoDBBatchItemFailure, bool) {
			return events.DynamoDBBatchItemFailure{ItemIdentifier: r.Change.SequenceNumber}, r.Change.SequenceNumber != ""
		})
		return events.DynamoDBEventResponse{BatchItemFailures: failed}, err
	}
}

// EachS3Record is [EachSQSMessage] for S3 notifications that reach the function
// directly. S3 takes no partial answer: if a record failed, the handler returns
// a [*BatchError], Lambda delivers all records again, and those that were
// completed are skipped. A completed record is remembered for 24 h unless
// [Remember] says otherwise.
//
// The s3:TestEvent, which S3 sends when a notification is set up, is
// acknowledged with a warning, and so is an event without records that a test
// builds. For an event of another source the handler returns a
// [*lock.NoKeyError] that names the function for that source.
func EachS3Record[K keyfuncs.For[events.S3EventRecord]](key K, handler func(context.Context, events.S3EventRecord) error, opts ...Option) func(context.Context, S3Records) error {
	b := newBatch(key, handler, opts)
	return func(ctx context.Context, e S3Records) error {
		ctx, done := b.measure(ctx)
		defer done()
		if e.refused != nil {
			b.report(ctx, lock.Observation{Outcome: lock.OutcomeRefused, Err: e.refused})
			return e.refused
		}
		if len(e.Records) == 0 {
			_, ignored := keyfuncs.S3Object(ctx, e.S3Event)
			b.report(ctx, lock.Observation{Outcome: OutcomeIgnored, Err: ignored})
			return nil
		}
		src := source[events.S3EventRecord]{broken: e.broken}
		return src.wholeAnswer(b.run(ctx, src, e.Records), e.Records)
	}
}

// EachSNSRecord is [EachS3Record] for messages of SNS topics. Every event
// without records is an error.
func EachSNSRecord[K keyfuncs.For[events.SNSEventRecord]](key K, handler func(context.Context, events.SNSEventRecord) error, opts ...Option) func(context.Context, events.SNSEvent) error {
	return eachSNS(newBatch(key, handler, opts))
}

func eachSNS(b *batch[events.SNSEventRecord]) func(context.Context, events.SNSEvent) error {
	return func(ctx context.Context, e events.SNSEvent) error {
		src := source[events.SNSEventRecord]{}
		return src.wholeAnswer(b.run(ctx, src, e.Records), e.Records)
	}
}

// EachKafkaRecord is [EachSQSMessage] for Apache Kafka, on Amazon MSK or
// elsewhere. The records of a partition are handled one after the other, and
// after a failure the rest of the partition is not begun; [OrderPerName]
// handles different names at the same time. If a record failed, the handler
// returns a [*BatchError], because most event source mappings for Kafka ignore
// a partial answer and would go on after the failed records. Lambda then
// delivers the whole batch again, and the completed records are skipped. A
// completed record is remembered for 7 days unless [Remember] says otherwise:
// as long as a topic keeps records by default.
//
// That is for the consumption mode Stream, the default. With Queue, use
// [OrderPerName] and a failure destination with 5 or more retries: the broker
// archives a record after five deliveries, also one that was not begun because
// another one of its partition failed.
//
// Sources: https://docs.aws.amazon.com/lambda/latest/dg/kafka-retry-configurations.html,
// https://docs.aws.amazon.com/lambda/latest/dg/polling-kafka-queue.html.
func EachKafkaRecord[K keyfuncs.For[events.KafkaRecord]](key K, handler func(context.Context, events.KafkaRecord) error, opts ...Option) func(context.Context, events.KafkaEvent) error {
	b := newBatch(key, handler, opts)
	partition := func(r *events.KafkaRecord) string { return fmt.Sprintf("%s-%d", r.Topic, r.Partition) }
	src := source[events.KafkaRecord]{group: partition, place: func(r *events.KafkaRecord, _ int) string {
		return fmt.Sprintf("records[%s] offset %d", partition(r), r.Offset)
	}}
	return func(ctx context.Context, e events.KafkaEvent) error {
		var records []events.KafkaRecord
		for _, p := range slices.Sorted(maps.Keys(e.Records)) {
			records = append(records, e.Records[p]...)
		}
		return src.wholeAnswer(b.run(ctx, src, records), records)
	}
}

// EachDocumentDBRecord is [EachKafkaRecord] for a DocumentDB change stream. The
// changes are handled one after the other, and after a failure the rest is not
// begun; [OrderPerName] handles different documents at the same time. Lambda
// delivers the whole batch again until it succeeds, and the completed changes
// are skipped. A completed change is remembered for 24 h unless [Remember] says
// otherwise.
//
// Source: https://docs.aws.amazon.com/documentdb/latest/developerguide/using-lambda.html.
func EachDocumentDBRecord[K keyfuncs.For[awsevents.DocumentDBEventRecord]](key K, handler func(context.Context, awsevents.DocumentDBEventRecord) error, opts ...Option) func(context.Context, awsevents.DocumentDBEvent) error {
	b := newBatch(key, handler, opts)
	src := source[awsevents.DocumentDBEventRecord]{
		group: func(*awsevents.DocumentDBEventRecord) string { return "stream" },
		place: func(_ *awsevents.DocumentDBEventRecord, i int) string { return fmt.Sprintf("events[%d]", i) },
	}
	return func(ctx context.Context, e awsevents.DocumentDBEvent) error {
		return src.wholeAnswer(b.run(ctx, src, e.Events), e.Events)
	}
}
