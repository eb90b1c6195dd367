package middleware

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
)

// RecordHandler handles one record of a batch, or what it carries.
type RecordHandler[R any] = func(context.Context, R) error

// EachSQSMessage wraps a handler of one SQS message as a handler of batches.
// Each message runs under the lock of its own key, up to [Concurrency] of them
// at a time; those of a FIFO message group run in their order. A message that
// was completed, now or earlier, is acknowledged. One that failed, is held or
// was not begun is returned as a batch item failure and delivered again after
// its visibility timeout. If every message failed, the handler also returns a
// [*BatchError].
//
// The event source mapping must have ReportBatchItemFailures: without it Lambda
// ignores the partial answer and deletes every message. docs/GUIDE.md#batches
// says what happens to duplicates within a batch, to the rest of a message
// group after a failure, and near the deadline.
//
// A completed message is remembered for 4 days unless [Remember] says
// otherwise. EachSQSMessage panics with OnHeld([Skip]), which would lose
// messages, with Respond and Replay, which need a result, and like [WithLock].
//
// Source:
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html.
func EachSQSMessage[K keyfuncs.For[events.SQSMessage]](key K, handler RecordHandler[events.SQSMessage], opts ...Option) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	return eachSQS(newBatch(key, handler, opts))
}

func eachSQS(b *batch[events.SQSMessage]) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	src := source[events.SQSMessage]{group: eventkind.FIFOGroup}
	return func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		failed, err := partialAnswer(&src, b.run(ctx, src, e.Records), e.Records, func(m *events.SQSMessage) (events.SQSBatchItemFailure, bool) {
			return events.SQSBatchItemFailure{ItemIdentifier: m.MessageId}, m.MessageId != ""
		})
		return events.SQSEventResponse{BatchItemFailures: failed}, err
	}
}

// newBatch returns the batch for a handler that takes the record itself. A key
// function may look at nothing of it, and what is decoded of a record of
// another source is empty.
func newBatch[R any, K keyfuncs.For[R]](k K, handler RecordHandler[R], opts []Option) *batch[R] {
	key := funcOf[R](k)
	refuseNil(key == nil, handler == nil)
	ofSource := func(ctx context.Context, r R) (lock.Key, error) {
		if err := keyparts.ForeignRecord(r); err != nil {
			return lock.Key{}, err
		}
		return key(ctx, r)
	}
	return batchOf(whole(ofSource, handler), signatureOf(reflect.TypeOf(handler), reflect.TypeFor[R]()), opts)
}

// funcOf returns a key function as one of E.
func funcOf[E any, K keyfuncs.For[E]](key K) keyfuncs.Func[E] {
	var ofAny keyfuncs.Func[any]
	switch f := any(key).(type) {
	case keyfuncs.Func[E]:
		return f
	case func(context.Context, E) (lock.Key, error):
		return f
	case keyfuncs.Func[any]:
		ofAny = f
	case func(context.Context, any) (lock.Key, error):
		ofAny = f
	}
	if ofAny == nil {
		return nil
	}
	return func(ctx context.Context, event E) (lock.Key, error) { return ofAny(ctx, event) }
}

func batchOf[R any](opens openerOf[R], sig signature, opts []Option) *batch[R] {
	s := newSettings(reflect.TypeFor[R](), opts)
	s.each.concurrency = cmp.Or(s.each.concurrency, DefaultConcurrency)
	if s.each.onlyLatest {
		s.checkLatest()
	}
	s.checkPolicies(sig, true)
	if s.each.partialAnswers && reflect.TypeFor[R]() != reflect.TypeFor[events.KafkaRecord]() {
		refuse("PartialAnswers is for EachKafkaRecord: the wrappers for SQS, Kinesis and DynamoDB always return the records that failed, and other sources take no such answer: leave it out")
	}
	record := reflect.TypeFor[R]()
	if s.each.orderPerName && (eventkind.OfRecord(record) == eventkind.SQS || !eventkind.IsKept(record)) {
		refuse("OrderPerName is for streams: a FIFO queue and a custom event bus always keep the order of their groups, and other sources have no order: leave it out")
	}
	around, onFailed := aroundOf[R](s.each.around), onFailedOf[R](s.each.onFailed)
	return &batch[R]{wrapper: newWrapper(&s.config), each: s.each, open: opens(&s.config), around: around, onFailed: onFailed}
}

// EachKinesisRecord is [EachSQSMessage] for a Kinesis stream. The records of a
// shard are handled in order, and after a failure the rest is returned;
// [OrderPerName] relaxes both to the records of a name. Lambda delivers again
// from the first failed record on. A completed record is remembered for 24 h
// unless [Remember] says otherwise. A batch of a tumbling window fails with a
// [*lock.NoKeyError].
//
// Source:
// https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html.
func EachKinesisRecord[K keyfuncs.For[events.KinesisEventRecord]](key K, handler RecordHandler[events.KinesisEventRecord], opts ...Option) func(context.Context, KinesisRecords) (events.KinesisEventResponse, error) {
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
func EachDynamoDBRecord[K keyfuncs.For[events.DynamoDBEventRecord]](key K, handler RecordHandler[events.DynamoDBEventRecord], opts ...Option) func(context.Context, DynamoDBRecords) (events.DynamoDBEventResponse, error) {
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
// a [*BatchError], and Lambda delivers all records again. A completed record is
// remembered for 24 h unless [Remember] says otherwise.
//
// The s3:TestEvent, which S3 sends when a notification is set up, is
// acknowledged with a warning. For an event of another source the handler
// returns a [*lock.NoKeyError] that names the function for it.
func EachS3Record[K keyfuncs.For[events.S3EventRecord]](key K, handler RecordHandler[events.S3EventRecord], opts ...Option) func(context.Context, S3Records) error {
	b := newBatch(key, handler, opts)
	return func(ctx context.Context, e S3Records) error {
		ctx, done := b.measure(ctx)
		defer done()
		if e.refused != nil {
			b.report(ctx, lock.Observation{Outcome: lock.OutcomeRefused, Err: e.refused})
			return e.refused
		}
		if len(e.Records) == 0 {
			_, ignored := keyfuncs.S3Object(eventkind.WithJSON(ctx, false), e.S3Event)
			b.report(ctx, lock.Observation{Outcome: OutcomeIgnored, Err: ignored})
			return nil
		}
		src := source[events.S3EventRecord]{broken: e.broken}
		return src.wholeAnswer(b.run(ctx, src, e.Records), e.Records)
	}
}

// EachSNSRecord is [EachS3Record] for messages of SNS topics. Every event
// without records is an error.
func EachSNSRecord[K keyfuncs.For[events.SNSEventRecord]](key K, handler RecordHandler[events.SNSEventRecord], opts ...Option) func(context.Context, events.SNSEvent) error {
	return eachSNS(newBatch(key, handler, opts))
}

func eachSNS(b *batch[events.SNSEventRecord]) func(context.Context, events.SNSEvent) error {
	return func(ctx context.Context, e events.SNSEvent) error {
		src := source[events.SNSEventRecord]{}
		return src.wholeAnswer(b.run(ctx, src, e.Records), e.Records)
	}
}

// EachEventBridgeEvent is [EachS3Record] for what a subscriber of a Custom
// Event Bus of EventBridge sends: an array of events, or one event alone. The
// events of a group are handled in order, and after a failure the rest of the
// group is not begun; only the transformer WITH_METADATA shows groups. If an
// event failed, the handler returns a [*BatchError], because AWS does not say
// how a partial answer names an event.
//
// For rules and the classic bus, use [WithLock] with
// [keyfuncs.EventBridgeEvent].
func EachEventBridgeEvent[K keyfuncs.For[awsevents.CustomBusEvent]](key K, handler RecordHandler[awsevents.CustomBusEvent], opts ...Option) func(context.Context, awsevents.CustomBusEvents) error {
	b := newBatch(key, handler, opts)
	src := source[awsevents.CustomBusEvent]{
		group: func(e *awsevents.CustomBusEvent) string { return e.SystemMetadata.EventGroupID },
		place: func(_ *awsevents.CustomBusEvent, i int) string { return fmt.Sprintf("[%d]", i) },
	}
	return func(ctx context.Context, e awsevents.CustomBusEvents) error {
		return src.wholeAnswer(b.run(ctx, src, e), e)
	}
}

// EachKafkaRecord is [EachSQSMessage] for Apache Kafka, on Amazon MSK or
// elsewhere. The records of a partition are handled in order, and after a
// failure the rest of the partition is not begun; [OrderPerName] relaxes both
// to the records of a name. If a record failed, the handler returns a
// [*BatchError], and Lambda delivers the whole batch again; with
// [PartialAnswers] it returns the records that failed. A completed record is
// remembered for 7 days unless [Remember] says otherwise.
//
// In the consumption mode Queue, use OrderPerName: see docs/SOURCES.md#streams.
func EachKafkaRecord[K keyfuncs.For[events.KafkaRecord]](key K, handler RecordHandler[events.KafkaRecord], opts ...Option) func(context.Context, events.KafkaEvent) (awsevents.KafkaEventResponse, error) {
	b := newBatch(key, handler, opts)
	partition := func(r *events.KafkaRecord) string { return fmt.Sprintf("%s-%d", r.Topic, r.Partition) }
	src := source[events.KafkaRecord]{group: partition, place: func(r *events.KafkaRecord, _ int) string {
		return fmt.Sprintf("records[%s] offset %d", partition(r), r.Offset)
	}}
	return func(ctx context.Context, e events.KafkaEvent) (awsevents.KafkaEventResponse, error) {
		var records []events.KafkaRecord
		for _, p := range slices.Sorted(maps.Keys(e.Records)) {
			records = append(records, e.Records[p]...)
		}
		failed, err := partialAnswer(&src, b.run(ctx, src, records), records, func(r *events.KafkaRecord) (awsevents.KafkaBatchItemFailure, bool) {
			_, known := e.Records[partition(r)] // Lambda repeats the batch if the answer names another partition
			return awsevents.KafkaBatchItemFailure{ItemIdentifier: awsevents.KafkaItemIdentifier{Partition: partition(r), Offset: r.Offset}}, known && b.each.partialAnswers
		})
		return awsevents.KafkaEventResponse{BatchItemFailures: failed}, err
	}
}

// EachDocumentDBRecord is [EachKafkaRecord] for a DocumentDB change stream. The
// changes are handled in order; [OrderPerName] keeps only that of each
// document. A completed change is remembered for 24 h unless [Remember] says
// otherwise.
func EachDocumentDBRecord[K keyfuncs.For[awsevents.DocumentDBEventRecord]](key K, handler RecordHandler[awsevents.DocumentDBEventRecord], opts ...Option) func(context.Context, awsevents.DocumentDBEvent) error {
	b := newBatch(key, handler, opts)
	src := source[awsevents.DocumentDBEventRecord]{
		group: func(*awsevents.DocumentDBEventRecord) string { return "stream" },
		place: func(_ *awsevents.DocumentDBEventRecord, i int) string { return fmt.Sprintf("events[%d]", i) },
	}
	return func(ctx context.Context, e awsevents.DocumentDBEvent) error {
		return src.wholeAnswer(b.run(ctx, src, e.Events), e.Events)
	}
}
