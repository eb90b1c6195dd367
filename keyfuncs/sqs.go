package keyfuncs

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// SQSMessage handles each message of a queue once. Name and Event are the
// message id: distinct messages never wait for each other. No Order. A message
// that its producer sends twice, or that is redriven from a dead-letter queue,
// has a new id: to recognise it, use SQSBody(Once(byOrderID)), and see
// docs/SOURCES.md#redriven-messages.
func SQSMessage(_ context.Context, m events.SQSMessage) (lock.Key, error) {
	// https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
	if err := keyparts.ForeignRecord(m); err != nil {
		return lock.Key{}, err
	}
	if m.MessageId == "" {
		return lock.Key{}, keyparts.Missing("messageId")
	}
	return keyparts.Once("sqs", m.MessageId), nil
}

// SQSFIFOMessage works on one message of a message group at a time, each once
// and in order: a message is stale once a later one of its group is completed.
// Name is queue and message group, Event and Order are the sequence number. A
// message that is redriven has a new sequence number: to recognise it, use
// EventFrom(SQSFIFOMessage, SQSBody(Once(byOrderID))), and see
// docs/SOURCES.md#redriven-messages.
func SQSFIFOMessage(_ context.Context, m events.SQSMessage) (lock.Key, error) {
	// The queue is in the name so that the messages of a dead-letter queue, which
	// the same function may handle, do not look stale.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
	if err := keyparts.ForeignRecord(m); err != nil {
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
// jmespath. A number for which E has no type is a json.Number. If that key has
// no Event, the message id becomes it.
//
// The error is a [*lock.NoKeyError] for a body that is not such JSON, not
// UTF-8, null, the pointer of a library for large messages, or the AWS event of
// another source, of which a type of your own takes nothing: it names the key
// function of that event. For the s3:TestEvent, the error is then [ErrIgnore].
// Errors of inner name their field inside the body: body.order.
func SQSBody[E any](inner Func[E]) Func[events.SQSMessage] {
	// With raw message delivery a topic leaves no trace in the message.
	// https://docs.aws.amazon.com/sns/latest/dg/sns-large-payload-raw-message-delivery.html
	notNil("SQSBody", inner)
	return func(ctx context.Context, m events.SQSMessage) (lock.Key, error) {
		if err := keyparts.ForeignRecord(m); err != nil {
			return lock.Key{}, err
		}
		if eventkind.IsMarkedPointer(m.MessageAttributes) {
			return lock.Key{}, &lock.NoKeyError{Field: "body", Reason: eventkind.PointerRefusal}
		}
		return envelope(ctx, eventkind.SQS, "body", []byte(m.Body), m.MessageId, inner)
	}
}
