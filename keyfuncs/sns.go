package keyfuncs

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// SNSMessage handles each message of a topic once. Name and Event are the message
// id, which SNS keeps in its retries. What a publisher sends twice has two
// ids. No Order: Lambda cannot subscribe to the topics that have one.
//
// Sources: https://docs.aws.amazon.com/lambda/latest/dg/with-sns.html,
// https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html.
func SNSMessage(ctx context.Context, e events.SNSEvent) (lock.Key, error) {
	return oneSNSRecord(ctx, e, SNSRecord)
}

// SNSRecord is [SNSMessage] for one record.
func SNSRecord(_ context.Context, r events.SNSEventRecord) (lock.Key, error) {
	if r.SNS.MessageID == "" {
		e := &lock.KeyError{Field: "Sns.MessageId", Reason: "is missing"}
		if kind := eventkind.OfSource(r.EventSource); kind != "" && kind != eventkind.SNS {
			e.Reason += ", because the event " + kind.Refusal("")
		}
		return lock.Key{}, e
	}
	return once("sns", r.SNS.MessageID), nil
}

// SNSBody takes the key of one record from what its message holds as JSON: another
// AWS event, a type of yours, or json.RawMessage for [JSON]. If that key has no
// Event, the message id becomes it. If inner takes an AWS event, a message that holds
// one of another source is a [*lock.KeyError] that names the key function for it.
func SNSBody[E any](inner Func[E]) Func[events.SNSEventRecord] {
	return func(ctx context.Context, r events.SNSEventRecord) (lock.Key, error) {
		if err := sourceOf(r); err != nil {
			return lock.Key{}, err
		}
		k, err := notification(inner)(ctx, r.SNS)
		return k, within("Sns", err)
	}
}

// notification is the shape that a message of a topic also has in a queue.
func notification[E any](inner Func[E]) Func[events.SNSEntity] {
	return func(ctx context.Context, n events.SNSEntity) (lock.Key, error) {
		return envelope(ctx, eventkind.SNS, "Message", n.Message, n.MessageID, inner)
	}
}

func oneSNSRecord(ctx context.Context, e events.SNSEvent, key Func[events.SNSEventRecord]) (lock.Key, error) {
	return only(ctx, "Records", e.Records, key, "wrap a handler of one record with middleware.EachSNSRecord")
}
