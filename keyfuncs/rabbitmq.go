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

// RabbitMQEvent handles each message of a RabbitMQ queue once, for events
// of exactly one message (an event source mapping with a batch size of 1).
// Event is the property message-id. RabbitMQ does not set it: the
// publisher must set it to an id that it never uses for anything else. A
// publisher that sends again because it got no confirm should send the same id;
// both then count as one message. Name is queue, app-id and message-id, because
// ids are unique for one publisher only, and an exchange may route one message
// to several queues. If the ids of two publishers may be equal, both must set
// app-id. No Order: a message that is returned to its queue comes after later
// ones.
//
// Sources: https://docs.aws.amazon.com/lambda/latest/dg/with-mq.html,
// https://www.rabbitmq.com/docs/publishers#message-properties.
func RabbitMQEvent(ctx context.Context, e events.RabbitMQEvent) (lock.Key, error) {
	if err := foreign("eventSource", e.EventSource, eventkind.RabbitMQ); err != nil {
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
