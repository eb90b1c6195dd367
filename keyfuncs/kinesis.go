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
// shard and sequence number, and Order the sequence number. A record without a
// partition key waits for no other: its Name is stream, shard and sequence
// number, and it has no Order.
//
// To process a stream again from the start, use a new [Prefix]: otherwise
// everything in it is stale. See docs/SOURCES.md#streams.
func KinesisRecord(_ context.Context, r events.KinesisEventRecord) (lock.Key, error) {
	// After a split or a merge a key goes on in another shard, in order: Lambda
	// reads a shard to its end before it begins with those that follow it.
	if err := keyparts.ForeignRecord(r); err != nil {
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

// KinesisBody takes the key of one record from the JSON in its data, decoded
// like the body in [SQSBody]. If that key has no Event, stream, shard and
// sequence number become it. Data that the Kinesis Producer Library aggregated,
// or that is compressed with gzip, gives a [*lock.NoKeyError].
//
// KinesisBody sets no Order, because records with one name may be in several
// shards. OrderFrom(KinesisBody(inner), KinesisRecord) adds that of the shard,
// and puts shard and partition key into the Name: records under two partition
// keys neither exclude nor overtake each other, whatever inner names them.
func KinesisBody[E any](inner Func[E]) Func[events.KinesisEventRecord] {
	notNil("KinesisBody", inner)
	return func(ctx context.Context, r events.KinesisEventRecord) (lock.Key, error) {
		if err := keyparts.ForeignRecord(r); err != nil {
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
