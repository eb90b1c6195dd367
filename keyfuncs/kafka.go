package keyfuncs

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// Kafka handles each record of a topic once, for events of exactly one record. Name
// and Event are topic, partition, offset and timestamp. No Order: offsets start
// again at zero when a topic is created anew, and all its records would then look
// overtaken; the timestamp is there for the same reason. A record does not say of
// which cluster it is: use [Prefix] if one function serves two.
//
// Sources: https://docs.aws.amazon.com/lambda/latest/dg/with-msk.html,
// https://kafka.apache.org/documentation/#intro_concepts_and_terms.
func Kafka(ctx context.Context, e events.KafkaEvent) (lock.Key, error) {
	return oneKafkaRecord(ctx, e, KafkaRecord)
}

// KafkaRecord is [Kafka] for one record of a batch.
func KafkaRecord(_ context.Context, r events.KafkaRecord) (lock.Key, error) {
	event, err := kafkaEvent(r)
	return lock.Key{Name: named("kafka", r.Topic) + "/" + event, Event: event}, err
}

// KafkaKey is [Kafka] for work on what a record's key names: Name is topic and key,
// whatever the partition, so that only one record of a key is worked on at a time. A
// name remembers at least its last eight events.
func KafkaKey(ctx context.Context, e events.KafkaEvent) (lock.Key, error) {
	return oneKafkaRecord(ctx, e, KafkaKeyRecord)
}

// KafkaKeyRecord is [KafkaKey] for one record of a batch.
func KafkaKeyRecord(_ context.Context, r events.KafkaRecord) (lock.Key, error) {
	if r.Key == "" {
		return lock.Key{}, &lock.KeyError{Field: "key", Reason: "is missing: use KafkaRecord for records without one"}
	}
	event, err := kafkaEvent(r)
	return lock.Key{Name: named("kafka", r.Topic, r.Key), Event: event}, err
}

func kafkaEvent(r events.KafkaRecord) (string, error) {
	if r.Topic == "" {
		return "", missing("topic")
	}
	return strconv.FormatInt(r.Partition, 10) + "/" + strconv.FormatInt(r.Offset, 10) + "/" + strconv.FormatInt(r.Timestamp.UnixMilli(), 10), nil
}

func oneKafkaRecord(ctx context.Context, e events.KafkaEvent, key Func[events.KafkaRecord]) (lock.Key, error) {
	if err := foreign("eventSource", e.EventSource, eventkind.Kafka); err != nil {
		return lock.Key{}, err
	}
	var all []events.KafkaRecord
	for _, partition := range slices.Sorted(maps.Keys(e.Records)) {
		all = append(all, e.Records[partition]...)
	}
	return only(ctx, "records", all, key, "wrap a handler of one record with middleware.EachKafkaRecord")
}
