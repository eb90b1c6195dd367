package keyfuncs

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// batchOfOne is the only advice for events of Amazon MQ that hold several
// messages: Lambda takes no list of failed messages from the handler of such a
// batch, so a wrapper for single messages could not return some of them.
// https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html
const batchOfOne = "set the batch size to 1"

// ActiveMQEvent handles each message of an ActiveMQ queue once, for events of
// exactly one message (an event source mapping with a batch size of 1). Name is
// queue and message id, Event the message id. A message that a producer sends
// twice has two ids. No Order: Lambda handles a queue in several environments
// at a time.
func ActiveMQEvent(ctx context.Context, e events.ActiveMQEvent) (lock.Key, error) {
	// A broker that copies a message to several queues keeps its id.
	if err := keyparts.Foreign("eventSource", e.EventSource, eventkind.ActiveMQ); err != nil {
		return lock.Key{}, err
	}
	return only(ctx, "messages", e.Messages, activeMQMessage, batchOfOne)
}

func activeMQMessage(_ context.Context, m events.ActiveMQMessage) (lock.Key, error) {
	queue := m.Destination.PhysicalName
	if err := keyparts.Required("messageID", m.MessageID, "destination.physicalName", queue); err != nil {
		return lock.Key{}, err
	}
	return keyparts.Once("activemq", m.MessageID, queue), nil
}
