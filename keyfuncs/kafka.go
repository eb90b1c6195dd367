package keyfuncs

import (
	"context"
	"strconv"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// KafkaRecord handles each record of a topic once. Name is topic, partition,
// offset and timestamp, Event the last three of them. No Order: offsets start
// again at zero when a topic is deleted and created again, and all its records
// would look stale. For the same reason the timestamp is part of the key. A
// record does not say which cluster it comes from: use [Prefix] if one function
// serves two.
//
// Sources: https://docs.aws.amazon.com/lambda/latest/dg/with-msk.html,
// https://kafka.apache.org/documentation/#intro_concepts_and_terms.
func KafkaRecord(_ context.Context, r events.KafkaRecord) (lock.Key, error) {
	if r.Topic == "" {
		return lock.Key{}, keyparts.Missing("topic")
	}
	event := strconv.FormatInt(r.Partition, 10) + "/" + strconv.FormatInt(r.Offset, 10) + "/" + strconv.FormatInt(r.Timestamp.UnixMilli(), 10)
	return lock.Key{Name: keyparts.Name("kafka", r.Topic) + "/" + event, Event: event}, nil
}
