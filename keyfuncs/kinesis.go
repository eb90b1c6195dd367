package keyfuncs

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
)

// KinesisRecord works on one record of a partition key at a time, each once and
// in order: a record is stale once a later one of the key is completed. Name is
// stream and partition key, Event and Order are the sequence number, which
// rises for a partition key. To process a stream again from the start, wrap
// KinesisRecord in [Prefix] with a new prefix: otherwise everything in the
// stream is stale.
//
// Source: https://docs.aws.amazon.com/streams/latest/dev/key-concepts.html.
func KinesisRecord(_ context.Context, r events.KinesisEventRecord) (lock.Key, error) {
	if err := foreignRecord(r); err != nil {
		return lock.Key{}, err
	}
	if err := required(part{"eventSourceARN", r.EventSourceArn}, part{"kinesis.partitionKey", r.Kinesis.PartitionKey}); err != nil {
		return lock.Key{}, err
	}
	number := r.Kinesis.SequenceNumber
	order, err := ordinal("kinesis.sequenceNumber", number)
	return lock.Key{Name: named("kinesis", r.EventSourceArn, r.Kinesis.PartitionKey), Event: number, Order: order}, err
}
