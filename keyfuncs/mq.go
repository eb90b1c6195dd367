package keyfuncs

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// oneMQMessage: Lambda takes no list of failed messages for a batch of Amazon MQ, with
// which a wrapper for single messages could give back some of them.
// https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html
const oneMQMessage = "set the batch size to 1"

// ActiveMQ handles each message of an ActiveMQ queue once, for events of exactly
// one message (an event source mapping with a batch size of 1). Name is queue and
// message id, Event the message id, which stays with a message through all its
// deliveries: distinct messages never wait for each other. The queue is in the
// name because a broker that copies a message to several queues keeps its id. What
// a producer sends twice has two ids. No Order: Lambda works on a queue in up to
// five environments at once.
//
// Sources: https://docs.aws.amazon.com/lambda/latest/dg/with-mq.html,
// https://activemq.apache.org/activemq-message-properties.html.
func ActiveMQ(ctx context.Context, e events.ActiveMQEvent) (lock.Key, error) {
	if err := foreign("eventSource", e.EventSource, eventkind.ActiveMQ); err != nil {
		return lock.Key{}, err
	}
	return only(ctx, "messages", e.Messages, ActiveMQRecord, oneMQMessage)
}

// ActiveMQRecord is [ActiveMQ] for one message of a batch.
func ActiveMQRecord(_ context.Context, m events.ActiveMQMessage) (lock.Key, error) {
	switch "" {
	case m.MessageID:
		return lock.Key{}, missing("messageID")
	case m.Destination.PhysicalName:
		return lock.Key{}, missing("destination.physicalName")
	}
	return once("activemq", m.MessageID, m.Destination.PhysicalName), nil
}

// RabbitMQ handles each message of a RabbitMQ queue once, for events of exactly one
// message (an event source mapping with a batch size of 1). Event is the property
// message-id, which RabbitMQ does not give: the publisher must set it, to an id that
// it never uses for anything else. A publisher that sends again because it was not
// confirmed should send the same id; both then count as one message. Name is queue,
// app-id and message-id: ids are unique for one publisher only, and an exchange may
// route one message to several queues. Two publishers with ids that may meet must
// set app-id. No Order: a message that is returned to its queue comes after later ones.
//
// Sources: https://docs.aws.amazon.com/lambda/latest/dg/with-mq.html,
// https://www.rabbitmq.com/docs/publishers#message-properties.
func RabbitMQ(ctx context.Context, e events.RabbitMQEvent) (lock.Key, error) {
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
		return rabbitMQ(m.RabbitMQMessage, m.queue)
	}, oneMQMessage)
}

// RabbitMQRecord is [RabbitMQ] for one message of a batch. A message does not say of
// which queue it is, so that the name is without it: use [Prefix] if one function
// serves two queues to which one exchange may route the same message.
func RabbitMQRecord(_ context.Context, m events.RabbitMQMessage) (lock.Key, error) {
	return rabbitMQ(m)
}

func rabbitMQ(m events.RabbitMQMessage, queue ...string) (lock.Key, error) {
	id, app := m.BasicProperties.MessageID, ""
	if id == nil || *id == "" {
		return lock.Key{}, &lock.KeyError{Field: "basicProperties.messageId", Reason: "is missing: let the publisher set message-id, or use a key function of your own on the body"}
	}
	if m.BasicProperties.AppID != nil {
		app = *m.BasicProperties.AppID
	}
	return once("rabbitmq", *id, append(queue, app)...), nil
}
