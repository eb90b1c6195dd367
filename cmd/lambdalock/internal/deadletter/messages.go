package deadletter

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	// A round is what a person is asked about in one question.
	roundMessages = 1000
	roundBytes    = 64 << 20
	// requestTimeout bounds a request, which an interrupt does not end: messages
	// of an answer that got lost would stay invisible.
	requestTimeout = 10 * time.Second
)

// Message is a message that was received, and is invisible for others.
type Message struct {
	ID    string
	Group string // empty: none
	From  string // the ARN of the queue that it came from; empty: unknown
	Queue string // the ARN of the dead-letter queue

	sqs    types.Message
	failed *invocation // nil: it is none
	until  time.Time   // others may receive it from then on
}

// event returns the bytes of the event that it carries.
func (m *Message) event() []byte {
	if m.failed != nil {
		return m.failed.event
	}
	return []byte(aws.ToString(m.sqs.Body))
}

// size returns how many bytes SQS counts.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
func (m *Message) size() int {
	n := len(aws.ToString(m.sqs.Body))
	for name, a := range m.sqs.MessageAttributes {
		n += len(name) + len(aws.ToString(a.DataType)) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue)
	}
	return n
}

// Receive returns the next round of messages, those of a group in their order.
// It returns none once SQS has none that were not received before. Of a group
// of a FIFO queue SQS returns no more until the messages before are deleted.
//
// A round takes at most a quarter of the time for which its messages are
// invisible, and at least one request.
func (q *Queue) Receive(ctx context.Context) ([]*Message, error) {
	var round []*Message
	began := time.Now()
	for size := 0; len(round)+batch <= roundMessages && size < roundBytes; {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		received, err := q.receive(ctx, q.wait(len(round)))
		if err != nil {
			return nil, err
		}
		fresh := q.keep(received)
		round = append(round, fresh...)
		for _, m := range fresh {
			size += m.size()
		}
		switch {
		case len(received) == 0, len(round) > 0 && time.Since(began) > q.hide/4:
			return round, nil
		case len(fresh) == 0 && (len(round) > 0 || q.CameBack()):
			return round, nil
		}
	}
	return round, nil
}

// receive asks for messages, once.
func (q *Queue) receive(ctx context.Context, wait int32) ([]*Message, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	until := time.Now().Add(q.hide)
	out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &q.url, MaxNumberOfMessages: batch, VisibilityTimeout: int32(q.hide / time.Second), WaitTimeSeconds: wait,
		MessageAttributeNames:       []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		return nil, &ServiceError{Of: "queue " + q.ARN, Err: err}
	}
	all := make([]*Message, 0, len(out.Messages))
	for _, m := range out.Messages {
		message := &Message{
			ID: aws.ToString(m.MessageId), Group: m.Attributes["MessageGroupId"], From: m.Attributes["DeadLetterQueueSourceArn"],
			Queue: q.ARN, sqs: m, until: until,
		}
		if q.to != "" {
			message.From = q.to
		}
		if message.From == "" {
			message.failed = invocationOf(&m)
		}
		all = append(all, message)
	}
	return all, nil
}

// keep notes the receipts of what was received, and returns the messages that
// this command did not know: a standard queue may deliver one twice, the time
// for which one is invisible may have ended, and one that was sent back may
// have failed again, as may an invocation, whose message is a new one.
func (q *Queue) keep(received []*Message) []*Message {
	var fresh []*Message
	for _, m := range received {
		q.hidden[m.ID] = m // with the newest receipt
		if q.received[m.ID] || q.sent[m.ID] || m.failed != nil && q.sent[m.failed.id] {
			q.again++
			continue
		}
		q.received[m.ID], q.again = true, 0
		fresh = append(fresh, m)
	}
	return fresh
}

// FailedAgain returns how many messages are here again because what was sent,
// or the invocation, has failed. Receive does not return them.
func (q *Queue) FailedAgain() (n int) {
	for id := range q.hidden {
		if !q.received[id] {
			n++
		}
	}
	return n
}

// CameBack reports whether the messages that stay came back faster than the
// queue could be read: as many came again as there are, and no new one.
func (q *Queue) CameBack() bool { return q.again > len(q.hidden) }

// wait returns how many seconds to wait for a message. Any wait asks all
// servers of the queue, so that no answer means no message. A FIFO queue often
// has none before those of the round are deleted, so only an empty round waits.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-short-and-long-polling.html
func (q *Queue) wait(received int) int32 {
	if q.FIFO && received > 0 {
		return 0
	}
	return 1
}

// Late reports whether so little is left of the time for which the message is
// invisible that others might receive it before it is deleted.
func (q *Queue) Late(m *Message) bool { return time.Until(m.until) < q.hide/4 }

// Send sends messages, in one request, to the queue that all of them came
// from. It returns an error for each that was not sent.
func (q *Queue) Send(ctx context.Context, all []*Message) []error {
	to := all[0].From
	url, err := q.target(ctx, to)
	if err != nil {
		return repeated(err, len(all))
	}
	return inParts(ctx, to, len(all), func(ctx context.Context, part []int) (*parts, error) {
		in := &sqs.SendMessageBatchInput{QueueUrl: &url}
		for _, i := range part {
			in.Entries = append(in.Entries, q.copyOf(all[i], entryID(i)))
		}
		out, err := q.client.SendMessageBatch(ctx, in)
		if err != nil {
			return nil, err
		}
		p := &parts{failed: out.Failed}
		for _, e := range out.Successful {
			p.done = append(p.done, e.Id)
			q.sent[aws.ToString(e.MessageId)] = true
		}
		return p, nil
	})
}

// target returns the URL of the queue with an ARN.
func (q *Queue) target(ctx context.Context, arn string) (string, error) {
	if url, ok := q.urls[arn]; ok {
		return url, nil
	}
	url, err := q.urlOf(ctx, arn)
	if err == nil {
		q.urls[arn] = url
	}
	return url, err
}

// copyOf returns a message as it is sent.
func (q *Queue) copyOf(m *Message, id *string) types.SendMessageBatchRequestEntry {
	e := types.SendMessageBatchRequestEntry{Id: id, MessageBody: m.sqs.Body, MessageAttributes: m.sqs.MessageAttributes}
	if m.Group != "" { // standard queues may have groups too, for fairness
		e.MessageGroupId = &m.Group
	}
	if q.FIFO {
		e.MessageDeduplicationId = aws.String(deduplication(m.ID))
	}
	// It is the only attribute of SQS that a sender can set.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
	if trace := m.sqs.Attributes["AWSTraceHeader"]; trace != "" {
		e.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{"AWSTraceHeader": {DataType: aws.String("String"), StringValue: &trace}}
	}
	return e
}

// deduplication returns an id that is the same if the command is run again
// after a crash, so that SQS drops what it sends a second time within five
// minutes. It must not be that of the message: if the message itself was sent
// less than five minutes ago, SQS would drop it, and it would be lost.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html
func deduplication(id string) string { return "redrive-" + id }

// Delete deletes messages that were completed, or sent, in one request. It
// returns an error for each that was not deleted.
func (q *Queue) Delete(ctx context.Context, all []*Message) []error {
	errs := inParts(ctx, q.ARN, len(all), func(ctx context.Context, part []int) (*parts, error) {
		in := &sqs.DeleteMessageBatchInput{QueueUrl: &q.url}
		for _, i := range part {
			in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: entryID(i), ReceiptHandle: q.hidden[all[i].ID].sqs.ReceiptHandle})
		}
		out, err := q.client.DeleteMessageBatch(ctx, in)
		if err != nil {
			return nil, err
		}
		p := &parts{failed: out.Failed}
		for _, e := range out.Successful {
			p.done = append(p.done, e.Id)
		}
		return p, nil
	})
	for i, err := range errs {
		if err == nil {
			delete(q.hidden, all[i].ID)
		}
	}
	return errs
}

// Release makes all messages that were received and not deleted visible again.
// It returns how many of them stay invisible for a while, and why.
func (q *Queue) Release(ctx context.Context) (int, error) {
	left := make([]*Message, 0, len(q.hidden))
	for _, m := range q.hidden {
		left = append(left, m)
	}
	clear(q.hidden)
	var err error
	for range attempts {
		if left, err = q.showAll(ctx, left); len(left) == 0 || denied(err) {
			break
		}
	}
	return len(left), err
}

// showAll makes messages visible. It returns those that it did not, and ends
// with the first request that fails as a whole.
func (q *Queue) showAll(ctx context.Context, all []*Message) (left []*Message, last error) {
	for some := range slices.Chunk(all, batch) {
		if wholly(last) {
			left = append(left, some...)
			continue
		}
		for i, err := range q.show(ctx, some) {
			if err != nil && !visible(err) {
				left, last = append(left, some[i]), err
			}
		}
	}
	return left, last
}

// show makes messages visible, in one request.
func (q *Queue) show(ctx context.Context, some []*Message) []error {
	return inParts(ctx, q.ARN, len(some), func(ctx context.Context, part []int) (*parts, error) {
		in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q.url}
		for _, i := range part {
			in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: entryID(i), ReceiptHandle: some[i].sqs.ReceiptHandle, VisibilityTimeout: 0})
		}
		out, err := q.client.ChangeMessageVisibilityBatch(ctx, in)
		if err != nil {
			return nil, err
		}
		p := &parts{failed: out.Failed}
		for _, e := range out.Successful {
			p.done = append(p.done, e.Id)
		}
		return p, nil
	})
}

// visible reports that a message is in flight no more, or that its receipt is
// void: others may receive it, or it is gone.
func visible(err error) bool {
	code := codeOf(err)
	return strings.Contains(code, "MessageNotInflight") || strings.Contains(code, "ReceiptHandleIsInvalid") || strings.Contains(code, "InvalidParameterValue")
}
