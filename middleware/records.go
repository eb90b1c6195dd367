package middleware

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
)

// EachSQSMessage makes a handler of one message a handler of batches: each message
// under the lock of its own key, up to [Concurrency] of them at a time. What was
// completed, now or earlier, is acknowledged; what failed, is held or was not begun
// is returned as a batch item failure and comes back after its visibility timeout.
//
// The event source mapping must have ReportBatchItemFailures: without it Lambda
// ignores the answer and deletes every message. When nothing succeeded, the handler returns
// a [*BatchError] besides: the whole batch comes back just the same, and Lambda's metric
// Errors counts it.
//
// A key that occurs twice in a batch is not in its own way: the second record
// follows the first, and then finds it done. In a FIFO queue the messages of a group
// are handled in their order, and after a failure the rest of the group is
// returned untouched, which counts as a receive of each; other groups go on. A message that cannot be read, or whose
// handler panics, fails alone. Near the deadline nothing new is begun, and the
// rest is returned; what runs then is waited for.
//
// OnHeld([Skip]) acknowledges a message while another invocation still works on it, or
// on another message of the same name: if that one fails, the message is lost. The
// default, [Fail], returns it.
//
// The options Respond and Replay need results, which handlers of records do not
// have. EachSQSMessage panics like [WithLock] when something does not fit.
//
// Source: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html.
func EachSQSMessage(key keyfuncs.Func[events.SQSMessage], handler func(context.Context, events.SQSMessage) error, opts ...Option) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	b := newBatch(key, handler, opts)
	src := source[events.SQSMessage]{strict: true, group: fifoGroup}
	return func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		failed, err := partialAnswer(&src, b.run(ctx, src, e.Records), e.Records, func(m *events.SQSMessage) (events.SQSBatchItemFailure, bool) {
			return events.SQSBatchItemFailure{ItemIdentifier: m.MessageId}, m.MessageId != ""
		})
		return events.SQSEventResponse{BatchItemFailures: failed}, err
	}
}

// fifoGroup: standard queues may have message groups too, for fairness and without
// order; only a FIFO queue numbers its messages.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
func fifoGroup(m *events.SQSMessage) string {
	if m.Attributes["SequenceNumber"] == "" {
		return ""
	}
	return m.EventSourceARN + " " + m.Attributes["MessageGroupId"]
}

// EachKinesisRecord is [EachSQSMessage] for a Kinesis stream. The records of a shard
// are handled one after the other, and after a failure the rest is returned;
// [OrderByName] handles different names side by side. Lambda delivers again from the
// first failed record on: what was completed after it is then skipped.
//
// Source: https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html.
func EachKinesisRecord(key keyfuncs.Func[events.KinesisEventRecord], handler func(context.Context, events.KinesisEventRecord) error, opts ...Option) func(context.Context, events.KinesisEvent) (events.KinesisEventResponse, error) {
	b := newBatch(key, handler, opts)
	src := source[events.KinesisEventRecord]{group: func(r *events.KinesisEventRecord) string {
		shard, _, _ := strings.Cut(r.EventID, ":")
		return r.EventSourceArn + " " + shard
	}}
	return func(ctx context.Context, e events.KinesisEvent) (events.KinesisEventResponse, error) {
		failed, err := partialAnswer(&src, b.run(ctx, src, e.Records), e.Records, func(r *events.KinesisEventRecord) (events.KinesisBatchItemFailure, bool) {
			return events.KinesisBatchItemFailure{ItemIdentifier: r.Kinesis.SequenceNumber}, r.Kinesis.SequenceNumber != ""
		})
		return events.KinesisEventResponse{BatchItemFailures: failed}, err
	}
}

// EachDynamoDBRecord is [EachKinesisRecord] for a DynamoDB stream. A batch is of one
// shard.
//
// Source: https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-batchfailurereporting.html.
func EachDynamoDBRecord(key keyfuncs.Func[events.DynamoDBEventRecord], handler func(context.Context, events.DynamoDBEventRecord) error, opts ...Option) func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	b := newBatch(key, handler, opts)
	src := source[events.DynamoDBEventRecord]{group: func(*events.DynamoDBEventRecord) string { return "shard" }}
	return func(ctx context.Context, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
		failed, err := partialAnswer(&src, b.run(ctx, src, e.Records), e.Records, func(r *events.DynamoDBEventRecord) (events.DynamoDBBatchItemFailure, bool) {
			return events.DynamoDBBatchItemFailure{ItemIdentifier: r.Change.SequenceNumber}, r.Change.SequenceNumber != ""
		})
		return events.DynamoDBEventResponse{BatchItemFailures: failed}, err
	}
}

// EachS3Record is [EachSQSMessage] for S3 notifications that reach the function
// directly. There is no partial answer: the handler returns a [*BatchError] when a
// record failed, and Lambda delivers all of them again. Those that were completed
// are then skipped. The s3:TestEvent, which S3 sends when a notification is set up, is
// acknowledged with a warning, and so is an event built by hand without records. The
// event of any other source is a [*lock.KeyError] that names what takes it.
func EachS3Record(key keyfuncs.Func[events.S3EventRecord], handler func(context.Context, events.S3EventRecord) error, opts ...Option) func(context.Context, S3Event) error {
	b := newBatch(key, handler, opts)
	return func(ctx context.Context, e S3Event) error {
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

// EachSNSRecord is [EachS3Record] for messages of SNS topics.
func EachSNSRecord(key keyfuncs.Func[events.SNSEventRecord], handler func(context.Context, events.SNSEventRecord) error, opts ...Option) func(context.Context, events.SNSEvent) error {
	b := newBatch(key, handler, opts)
	return func(ctx context.Context, e events.SNSEvent) error {
		src := source[events.SNSEventRecord]{}
		return src.wholeAnswer(b.run(ctx, src, e.Records), e.Records)
	}
}

// EachKafkaRecord is [EachSQSMessage] for Apache Kafka, on Amazon MSK or elsewhere.
// The records of a partition are handled one after the other, and after a failure
// the rest of the partition is left; [OrderByName] handles different names side by
// side. When a record failed the handler returns a [*BatchError], because most event
// source mappings for Kafka ignore a partial answer and would go on behind the
// failed records. Lambda then delivers the whole batch again, and what was
// completed is skipped.
//
// Source: https://docs.aws.amazon.com/lambda/latest/dg/kafka-retry-configurations.html.
func EachKafkaRecord(key keyfuncs.Func[events.KafkaRecord], handler func(context.Context, events.KafkaRecord) error, opts ...Option) func(context.Context, events.KafkaEvent) error {
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

// EachDocumentDBRecord is [EachKafkaRecord] for a DocumentDB change stream: the changes
// are handled one after the other, and after a failure the rest is left;
// [OrderByName] handles different documents side by side. Lambda delivers the
// whole batch again until it succeeds, and what was completed is skipped.
//
// Source: https://docs.aws.amazon.com/documentdb/latest/developerguide/using-lambda.html.
func EachDocumentDBRecord(key keyfuncs.Func[awsevents.DocumentDBEventRecord], handler func(context.Context, awsevents.DocumentDBEventRecord) error, opts ...Option) func(context.Context, awsevents.DocumentDBEvent) error {
	b := newBatch(key, handler, opts)
	src := source[awsevents.DocumentDBEventRecord]{
		group: func(*awsevents.DocumentDBEventRecord) string { return "stream" },
		place: func(_ *awsevents.DocumentDBEventRecord, i int) string { return fmt.Sprintf("events[%d]", i) },
	}
	return func(ctx context.Context, e awsevents.DocumentDBEvent) error {
		return src.wholeAnswer(b.run(ctx, src, e.Events), e.Events)
	}
}
