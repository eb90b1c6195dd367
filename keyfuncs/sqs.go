package keyfuncs

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
)

// SQSMessage handles each message of a queue once, for events of exactly one
// message (an event source mapping with a batch size of 1). Name and Event are the
// message id, which is the same in every delivery of a message: distinct messages
// never wait for each other. No Order: a standard queue has none.
//
// Sources: https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html,
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-queue-message-identifiers.html.
func SQSMessage(ctx context.Context, e events.SQSEvent) (lock.Key, error) {
	return oneSQSMessage(ctx, e, SQSRecord)
}

// SQSRecord is [SQSMessage] for one message of a batch.
func SQSRecord(_ context.Context, m events.SQSMessage) (lock.Key, error) {
	if err := sourceOf(m); err != nil {
		return lock.Key{}, err
	}
	if m.MessageId == "" {
		return lock.Key{}, missing("messageId")
	}
	return once("sqs", m.MessageId), nil
}

// SQSFIFO works on one message of a group at a time, each once and in order, for
// events of exactly one message. Name is queue and message group, Event and Order
// are the sequence number, which rises within a group and stays with a message
// through all its deliveries. A message that comes back after a later one of its
// group was completed is skipped; the queue itself never does that, since it holds
// back a group until the messages before are deleted.
//
// Sources: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html,
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html.
func SQSFIFO(ctx context.Context, e events.SQSEvent) (lock.Key, error) {
	return oneSQSMessage(ctx, e, SQSFIFORecord)
}

// SQSFIFORecord is [SQSFIFO] for one message of a batch.
func SQSFIFORecord(_ context.Context, m events.SQSMessage) (lock.Key, error) {
	name, err := fifoName(m)
	if err != nil {
		return lock.Key{}, err
	}
	number := m.Attributes["SequenceNumber"]
	order, err := ordinal("attributes.SequenceNumber", number)
	return lock.Key{Name: name, Event: number, Order: order}, err
}

// SQSDeduplicated handles each deduplication id of a message group once, for as long
// as events are remembered and not for five minutes only, for events of exactly one
// message. It is for producers that give such an id themselves and may send again
// later. With content-based deduplication the id is a hash of the body: two
// messages that say the same on purpose would count as one. No Order: names are
// distinct for distinct ids.
//
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html.
func SQSDeduplicated(ctx context.Context, e events.SQSEvent) (lock.Key, error) {
	return oneSQSMessage(ctx, e, SQSDeduplicatedRecord)
}

// SQSDeduplicatedRecord is [SQSDeduplicated] for one message of a batch.
func SQSDeduplicatedRecord(_ context.Context, m events.SQSMessage) (lock.Key, error) {
	name, err := fifoName(m)
	if err != nil {
		return lock.Key{}, err
	}
	id := m.Attributes["MessageDeduplicationId"]
	if id == "" {
		return lock.Key{}, missing("attributes.MessageDeduplicationId")
	}
	return lock.Key{Name: named(name, id), Event: id}, nil
}

// SQSBody takes the key of one message from what its body holds as JSON: another
// AWS event, a type of yours, or json.RawMessage for [JSON]. If that key has no
// Event, the message id becomes it, so that each message is handled once. Errors of
// inner name their field behind that of the envelope: body.order. If inner takes an
// AWS event, a body that holds one of another source is a [*lock.KeyError] that names
// the key function for it.
func SQSBody[E any](inner Func[E]) Func[events.SQSMessage] {
	return func(ctx context.Context, m events.SQSMessage) (lock.Key, error) {
		return inBody(ctx, m, inner)
	}
}

// fifoName keeps queues apart, so that a dead-letter queue that is worked on by the
// same function does not look overtaken.
func fifoName(m events.SQSMessage) (string, error) {
	if err := sourceOf(m); err != nil {
		return "", err
	}
	if m.EventSourceARN == "" {
		return "", missing("eventSourceARN")
	}
	// Standard queues may have groups too, for fairness; only a FIFO queue numbers its messages.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
	for _, a := range []string{"MessageGroupId", "SequenceNumber"} {
		if m.Attributes[a] == "" {
			return "", &lock.KeyError{Field: "attributes." + a, Reason: "is missing: this is no message of a FIFO queue; use SQSRecord"}
		}
	}
	return named("sqs", m.EventSourceARN, m.Attributes["MessageGroupId"]), nil
}

func oneSQSMessage(ctx context.Context, e events.SQSEvent, key Func[events.SQSMessage]) (lock.Key, error) {
	return only(ctx, "Records", e.Records, key, "wrap a handler of one message with middleware.EachSQSMessage, or set the batch size to 1")
}
