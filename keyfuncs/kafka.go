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
// again at zero when a topic is deleted and created again. If one function
// serves two clusters, use [Prefix].
func KafkaRecord(_ context.Context, r events.KafkaRecord) (lock.Key, error) {
	if r.Topic == "" {
		return lock.Key{}, keyparts.Missing("topic")
	}
	event := strconv.FormatInt(r.Partition, 10) + "/" + strconv.FormatInt(r.Offset, 10) + "/" + strconv.FormatInt(r.Timestamp.UnixMilli(), 10)
	return lock.Key{Name: keyparts.Name("kafka", r.Topic) + "/" + event, Event: event}, nil
}
