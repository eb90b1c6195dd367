package keyfuncs

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// RabbitMQEvent handles each message of a RabbitMQ queue once, for events of
// exactly one message (an event source mapping with a batch size of 1). Event
// is the property message-id, which the publisher must set, and repeat when it
// sends again. Name is queue, app-id and message-id: if the ids of two
// publishers may be equal, both must set app-id. No Order: a message that is
// returned to its queue comes after later ones.
func RabbitMQEvent(ctx context.Context, e events.RabbitMQEvent) (lock.Key, error) {
	// https://www.rabbitmq.com/docs/publishers#message-properties
	if err := keyparts.Foreign("eventSource", e.EventSource, eventkind.RabbitMQ); err != nil {
		return lock.Key{}, err
	}
	type message struct {
		queue string
		events.RabbitMQMessage
	}
	var all []message
	for _, queue := range slices.Sorted(maps.Keys(e.MessagesByQueue)) {
		for _, m := range e.MessagesByQueue[queue] {
			all = append(all, message{queue, m})
		}
	}
	return only(ctx, "rmqMessagesByQueue", all, func(_ context.Context, m message) (lock.Key, error) {
		id, app := m.BasicProperties.MessageID, ""
		if id == nil || *id == "" {
			return lock.Key{}, &lock.NoKeyError{Field: "basicProperties.messageId", Reason: "is missing: let the publisher set message-id, or write a key function of your own that takes an id from the body"}
		}
		if m.BasicProperties.AppID != nil {
			app = *m.BasicProperties.AppID
		}
		return keyparts.Once("rabbitmq", *id, m.queue, app), nil
	}, batchOfOne)
}
