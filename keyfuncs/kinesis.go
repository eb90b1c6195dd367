package keyfuncs

import (
	"bytes"
	"context"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// KinesisRecord works on one record of a partition key in a shard at a time,
// each once and in order: a record is stale once a later one of the same key
// and shard is completed. Name is stream, shard and partition key, Event is
// shard and sequence number, and Order the sequence number, which rises for a
// partition key in its shard. To process a stream again from the start, wrap
// KinesisRecord in [Prefix] with a new prefix: otherwise everything in the
// stream is stale.
//
// A stream that distributes its records by itself keeps no order, and its
// records need no partition key. One without a key is handled once, and waits
// for no other: Name is stream, shard and sequence number, Event the last two
// of them, and there is no Order.
//
// Producers may put one partition key into several shards at a time: with an
// ExplicitHashKey, and with the Kinesis Producer Library, whose aggregated
// records all have the partition key "a". Such shards do not wait for each
// other. To work on one record of a key at a time whatever its shard, without
// an order, use EventFrom with KinesisRecord and a [ByField] that returns the
// partition key.
//
// When a shard is split or merged, a partition key goes on in another shard.
// That keeps the order, because Lambda reads a shard to its end before it
// begins with those that follow it.
//
// A record that the Kinesis Producer Library aggregated is one event: if the
// handler fails, all records inside come again.
//
// Sources: https://docs.aws.amazon.com/lambda/latest/dg/with-kinesis.html (eventID),
// https://docs.aws.amazon.com/streams/latest/dev/key-concepts.html,
// https://docs.aws.amazon.com/streams/latest/dev/service-managed-pk-considerations.html,
// https://docs.aws.amazon.com/kinesis/latest/APIReference/API_PutRecord.html (ExplicitHashKey),
// https://github.com/awslabs/amazon-kinesis-producer/blob/master/aws/kinesis/core/kinesis_record.cc,
// https://docs.aws.amazon.com/streams/latest/dev/kinesis-using-sdk-java-after-resharding.html.
func KinesisRecord(_ context.Context, r events.KinesisEventRecord) (lock.Key, error) {
	if err := foreignRecord(r); err != nil {
		return lock.Key{}, err
	}
	if err := ofPipe(r); err != nil {
		return lock.Key{}, err
	}
	if err := keyparts.Required("eventSourceARN", r.EventSourceArn, "eventID", r.EventID); err != nil {
		return lock.Key{}, err
	}
	shard, _, ok := strings.Cut(r.EventID, ":")
	if !ok {
		return lock.Key{}, &lock.NoKeyError{Field: "eventID", Reason: "does not name the shard, in which sequence numbers rise: Lambda sends shard and sequence number, with a colon between them"}
	}
	number := r.Kinesis.SequenceNumber
	order, err := ordinal("kinesis.sequenceNumber", number)
	if err != nil {
		return lock.Key{}, err
	}
	id := shard + ":" + number
	if r.Kinesis.PartitionKey == "" {
		return keyparts.Once("kinesis", id, r.EventSourceArn), nil
	}
	return lock.Key{Name: keyparts.Name("kinesis", r.EventSourceArn, shard, r.Kinesis.PartitionKey), Event: id, Order: order}, nil
}

// KinesisBody takes the key of one record from the JSON in its data, decoded as
// E: another AWS event, a type of your own, or json.RawMessage for package
// jmespath. If that key has no Event, stream, shard and sequence number become
// it, so that each record is handled once. If inner takes an AWS event, and the
// data holds one of another source, the error is a [*lock.NoKeyError] that
// names the key function for it. The data is decoded like the body in
// [SQSBody].
//
// KinesisBody sets no Order, because records with one name in their data may be
// in several shards, which keep no order between them: a record would look
// stale once a later one of another shard is completed, and be lost.
// OrderFrom(KinesisBody(inner), KinesisRecord) adds the Order of the shard, and
// makes shard and partition key part of the Name.
//
// A record that the Kinesis Producer Library aggregated from several is
// refused, because its records may have different names: [KinesisRecord] takes
// it as a whole. Data compressed with gzip is refused too.
//
// Sources: https://docs.aws.amazon.com/lambda/latest/dg/with-kinesis.html (eventID),
// https://docs.aws.amazon.com/streams/latest/dev/key-concepts.html,
// https://docs.aws.amazon.com/streams/latest/dev/kinesis-record-deaggregation.html.
func KinesisBody[E any](inner Func[E]) Func[events.KinesisEventRecord] {
	notNil("KinesisBody", inner)
	return func(ctx context.Context, r events.KinesisEventRecord) (lock.Key, error) {
		if err := foreignRecord(r); err != nil {
			return lock.Key{}, err
		}
		if err := ofPipe(r); err != nil {
			return lock.Key{}, err
		}
		if reason := packed(r.Kinesis.Data); reason != "" {
			return lock.Key{}, &lock.NoKeyError{Field: "kinesis.data", Reason: reason}
		}
		var id string
		if r.EventID != "" { // shard and sequence number
			id = keyparts.Name("kinesis", r.EventSourceArn, r.EventID)
		}
		k, err := envelope(ctx, eventkind.Kinesis, "data", r.Kinesis.Data, id, inner)
		return k, within("kinesis", err)
	}
}

// ofPipe returns an error for a record of EventBridge Pipes, which has no
// member kinesis: what belongs into it is beside it, and was lost in decoding.
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-pipes-kinesis.html
func ofPipe(r events.KinesisEventRecord) error {
	if r.EventID == "" || r.Kinesis.SequenceNumber != "" || r.Kinesis.PartitionKey != "" || r.Kinesis.Data != nil {
		return nil
	}
	return &lock.NoKeyError{Field: "kinesis", Reason: "is missing: if the record comes from EventBridge Pipes, which puts its members into the record itself, docs/SOURCES.md#eventbridge-pipes shows how to take them", Missing: true}
}

// packed returns what is wrong with data that must be unpacked to become JSON,
// or "".
// https://github.com/awslabs/amazon-kinesis-producer/blob/master/aggregation-format.md
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/SubscriptionFilters.html
func packed(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte{0xF3, 0x89, 0x9A, 0xC2}):
		return "is a record that the Kinesis Producer Library aggregated from several: wrap a handler of whole records, which deaggregates them, with middleware.EachKinesisRecord and the key function KinesisRecord; or set AggregationEnabled to false in the producer"
	case bytes.HasPrefix(data, []byte{0x1F, 0x8B}):
		return "is compressed with gzip, as CloudWatch Logs does for its subscribers: take the whole record with middleware.EachKinesisRecord and decompress it in the handler"
	}
	return ""
}
