package keyfuncs

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
)

// SQSMessage handles each message of a queue once, for events of exactly one
// record (an event source mapping with a batch size of 1). Name and Event are the
// message id, which is the same in every delivery of a message: distinct messages
// never wait for each other. No Order: a standard queue has none.
//
// Sources: https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html,
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-queue-message-identifiers.html.
func SQSMessage(ctx context.Context, e events.SQSEvent) (lock.Key, error) {
	switch len(e.Records) {
	case 0:
		return lock.Key{}, &lock.KeyError{Field: "Records", Reason: "is empty: this is no SQS event"}
	case 1:
		k, err := SQSRecord(ctx, e.Records[0])
		return k, inRecord(err)
	}
	return lock.Key{}, tooMany(len(e.Records), "middleware.EachSQSMessage, or set the batch size to 1")
}

// SQSRecord is [SQSMessage] for one message of a batch.
func SQSRecord(_ context.Context, m events.SQSMessage) (lock.Key, error) {
	if m.MessageId == "" {
		return lock.Key{}, missing("messageId")
	}
	return lock.Key{Name: "sqs/" + m.MessageId, Event: m.MessageId}, nil
}
