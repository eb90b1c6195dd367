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
// again at zero when a topic is deleted and created again.
//
// A record does not name its cluster. If one function serves two, wrap the
// handler once for each, with another [Prefix], and let the EventSourceARN of
// the event, or its BootstrapServers, decide which of them gets it.
func KafkaRecord(_ context.Context, r events.KafkaRecord) (lock.Key, error) {
	if r.Topic == "" {
		return lock.Key{}, keyparts.Missing("topic")
	}
	event := strconv.FormatInt(r.Partition, 10) + "/" + strconv.FormatInt(r.Offset, 10) + "/" + strconv.FormatInt(r.Timestamp.UnixMilli(), 10)
	return lock.Key{Name: keyparts.Name("kafka", r.Topic) + "/" + event, Event: event}, nil
}
