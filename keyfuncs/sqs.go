package keyfuncs

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// SQSMessage handles each message of a queue once. Name and Event are the
// message id, which is the same in every delivery of a message: distinct
// messages never wait for each other. No Order: a standard queue has none.
//
// A message that is redriven from a dead-letter queue has a new id, and so is a
// new event, even if it was completed before: completed messages get into a
// dead-letter queue along with one that stops their batch each time. The same
// holds for a message that its producer sends twice. To recognise such a
// message, take the Event from what its producer put into the body, such as an
// order id: SQSBody(Once(byOrderID)).
//
// Sources: https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html,
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html,
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-queue-message-identifiers.html.
func SQSMessage(_ context.Context, m events.SQSMessage) (lock.Key, error) {
	if err := foreignRecord(m); err != nil {
		return lock.Key{}, err
	}
	if m.MessageId == "" {
		return lock.Key{}, keyparts.Missing("messageId")
	}
	return keyparts.Once("sqs", m.MessageId), nil
}

// SQSFIFOMessage works on one message of a message group at a time, each once
// and in order. Name is queue and message group, Event and Order are the
// sequence number, which rises within a group and stays with a message through
// all its deliveries. A message that comes back after a later one of its group
// was completed is stale, and skipped. The queue itself never causes that,
// because it holds back a group until the messages before are deleted.
//
// Name contains the queue, so that the messages of a dead-letter queue that the
// same function handles do not look stale.
//
// A message that is redriven from a dead-letter queue has a new sequence
// number: it is a new event, even if it was completed before, and comes after
// all messages that its group has by then. To recognise it, take the Event from
// the body, with EventFrom(SQSFIFOMessage, SQSBody(Once(byOrderID))). That
// keeps the order of the queue. A group remembers its last eight completed
// events, unless middleware.RememberEvents says more.
//
// Sources: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html,
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html,
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html.
func SQSFIFOMessage(_ context.Context, m events.SQSMessage) (lock.Key, error) {
	if err := foreignRecord(m); err != nil {
		return lock.Key{}, err
	}
	if m.EventSourceARN == "" {
		return lock.Key{}, keyparts.Missing("eventSourceARN")
	}
	for _, a := range []string{"MessageGroupId", "SequenceNumber"} {
		if m.Attributes[a] != "" {
			continue
		}
		reason := "is missing: this is not a message of a FIFO queue; use SQSMessage"
		if eventkind.IsFIFO(&m) {
			reason = "is missing, although the queue is a FIFO queue: AWS sends it, and SQSMessage does without it"
		}
		return lock.Key{}, &lock.NoKeyError{Field: "attributes." + a, Reason: reason}
	}
	number := m.Attributes["SequenceNumber"]
	order, err := ordinal("attributes.SequenceNumber", number)
	return lock.Key{Name: keyparts.Name("sqs", m.EventSourceARN, m.Attributes["MessageGroupId"]), Event: number, Order: order}, err
}

// SQSBody takes the key of one message from the JSON in its body, decoded as E:
// another AWS event, a type of your own, or json.RawMessage for package
// jmespath. If that key has no Event, the message id becomes it, so that each
// message is handled once. Errors of inner name their field inside the body:
// body.order. If inner takes an AWS event, and the body holds one of another
// source, the error is a [*lock.NoKeyError] that names the key function for it.
// Other bodies that give a *lock.NoKeyError are those that are not JSON of the
// shape of E, not UTF-8, null, or the pointer of a library for large messages.
// A number for which E has no type, as in map[string]any, is a json.Number,
// which keeps all its digits.
//
// SQSBody(SNSBody(inner)) takes what a topic puts into a queue. With raw
// message delivery the topic leaves no trace in the message: use
// SQSBody(inner).
//
// Source: https://docs.aws.amazon.com/sns/latest/dg/sns-large-payload-raw-message-delivery.html.
func SQSBody[E any](inner Func[E]) Func[events.SQSMessage] {
	notNil("SQSBody", inner)
	return func(ctx context.Context, m events.SQSMessage) (lock.Key, error) {
		if err := foreignRecord(m); err != nil {
			return lock.Key{}, err
		}
		if eventkind.IsMarkedPointer(m.MessageAttributes) {
			return lock.Key{}, &lock.NoKeyError{Field: "body", Reason: eventkind.PointerRefusal}
		}
		return envelope(ctx, eventkind.SQS, "body", []byte(m.Body), m.MessageId, inner)
	}
}
