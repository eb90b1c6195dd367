package keyfuncs

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/lock"
)

// SNSRecord handles each message of a topic once. Name and Event are the
// message id, which SNS keeps in its retries. A message that a publisher sends
// twice has two ids. No Order: Lambda cannot subscribe to FIFO topics.
func SNSRecord(_ context.Context, r events.SNSEventRecord) (lock.Key, error) {
	// https://docs.aws.amazon.com/lambda/latest/dg/with-sns.html
	// https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html
	// https://docs.aws.amazon.com/sns/latest/dg/fifo-message-delivery.html
	if r.SNS.MessageID == "" {
		e := &lock.NoKeyError{Field: "Sns.MessageId", Reason: "is missing"}
		if kind := eventkind.OfSource(r.EventSource); kind != nil && kind != eventkind.SNS {
			e.Reason += ", because the event " + kind.Refusal(nil)
		}
		return lock.Key{}, e
	}
	return keyparts.Once("sns", r.SNS.MessageID), nil
}

// SNSBody takes the key of one record from the JSON in its message, decoded
// like the body in [SQSBody]. If that key has no Event, the message id becomes
// it. SQSBody(SNSBody(inner)) takes a notification that a topic puts into a
// queue.
func SNSBody[E any](inner Func[E]) Func[events.SNSEventRecord] {
	notNil("SNSBody", inner)
	return func(ctx context.Context, r events.SNSEventRecord) (lock.Key, error) {
		if err := keyparts.ForeignRecord(r); err != nil {
			return lock.Key{}, err
		}
		if eventkind.IsMarkedPointer(r.SNS.MessageAttributes) {
			return lock.Key{}, &lock.NoKeyError{Field: "Sns.Message", Reason: eventkind.PointerRefusal}
		}
		k, err := envelope(ctx, eventkind.SNS, "Message", []byte(r.SNS.Message), r.SNS.MessageID, inner)
		return k, within("Sns", err)
	}
}
