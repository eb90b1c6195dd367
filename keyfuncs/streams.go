package keyfuncs

import (
	"context"
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
)

// Kinesis works on one record of a partition key at a time, each once and in order,
// for events of exactly one record. Name is stream and partition key, Event and
// Order are the sequence number, which rises for a partition key. To process a
// stream again from the start, give the function another middleware.Namespace:
// otherwise everything in it was overtaken.
//
// Source: https://docs.aws.amazon.com/streams/latest/dev/key-concepts.html.
func Kinesis(ctx context.Context, e events.KinesisEvent) (lock.Key, error) {
	return only(ctx, "Records", e.Records, KinesisRecord, "wrap a handler of one record with middleware.EachKinesisRecord")
}

// KinesisRecord is [Kinesis] for one record of a batch.
func KinesisRecord(_ context.Context, r events.KinesisEventRecord) (lock.Key, error) {
	if err := sourceOf(r); err != nil {
		return lock.Key{}, err
	}
	if r.EventSourceArn == "" {
		return lock.Key{}, missing("eventSourceARN")
	}
	if r.Kinesis.PartitionKey == "" {
		return lock.Key{}, missing("kinesis.partitionKey")
	}
	number := r.Kinesis.SequenceNumber
	order, err := ordinal("kinesis.sequenceNumber", number)
	return lock.Key{Name: named("kinesis", r.EventSourceArn, r.Kinesis.PartitionKey), Event: number, Order: order}, err
}

// DynamoDBStream works on one change of an item at a time, each once and in order,
// for events of exactly one record. Name is the table and the item's primary key,
// Event the sequence number, Order the time at which the stream was enabled
// and the sequence number, so that the changes of a new stream are never taken
// for overtaken ones.
//
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html.
func DynamoDBStream(ctx context.Context, e events.DynamoDBEvent) (lock.Key, error) {
	return only(ctx, "Records", e.Records, DynamoDBRecord, "wrap a handler of one record with middleware.EachDynamoDBRecord")
}

// DynamoDBRecord is [DynamoDBStream] for one record of a batch.
func DynamoDBRecord(_ context.Context, r events.DynamoDBEventRecord) (lock.Key, error) {
	if err := sourceOf(r); err != nil {
		return lock.Key{}, err
	}
	table, label, ok := strings.Cut(r.EventSourceArn, "/stream/")
	if !ok || len(label) > 64 {
		return lock.Key{}, &lock.KeyError{Field: "eventSourceARN", Reason: "is not the ARN of a DynamoDB stream"}
	}
	if len(r.Change.Keys) == 0 {
		return lock.Key{}, missing("dynamodb.Keys")
	}
	parts := []string{table}
	for _, name := range slices.Sorted(maps.Keys(r.Change.Keys)) {
		v := r.Change.Keys[name]
		if v == (events.DynamoDBAttributeValue{}) { // its accessors would panic
			return lock.Key{}, missing("dynamodb.Keys." + name)
		}
		switch v.DataType() {
		case events.DataTypeString:
			parts = append(parts, name, "S", v.String())
		case events.DataTypeNumber:
			parts = append(parts, name, "N", v.Number())
		case events.DataTypeBinary:
			parts = append(parts, name, "B", base64.StdEncoding.EncodeToString(v.Binary()))
		default:
			return lock.Key{}, &lock.KeyError{Field: "dynamodb.Keys." + name, Reason: "is no string, number or binary, as a primary key must be"}
		}
	}
	number := r.Change.SequenceNumber
	order, err := ordinal("dynamodb.SequenceNumber", number)
	return lock.Key{Name: named("dynamodb", parts...), Event: number, Order: label + " " + order}, err
}
