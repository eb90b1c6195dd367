// Package sqstest is as much of SQS as a redrive meets, in memory, with faults.
package sqstest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdalock/lambdalock/internal/local/sqslimits"
)

// ARNPrefix stands before the name of a queue in its ARN.
const ARNPrefix = "arn:aws:sqs:eu-west-1:123456789012:"

// dedupeTime is how long a FIFO queue drops messages of an id that it knows.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html
const dedupeTime = 5 * time.Minute

const urlPrefix = "https://"

// SQS is the queues of an account, and Lambda for asynchronous invocations.
type SQS struct {
	t      test
	queues map[string]*queue // by URL
	sent   int
	// Fault is asked before each request and after it was applied. An error is the
	// answer.
	Fault func(operation string, applied bool) error
	// Fail is asked about each message of a batch. An entry is the answer, and what
	// was asked for is not done.
	Fail func(operation, messageID string) *types.BatchResultErrorEntry
	// Requests counts them by their operation.
	Requests map[string]int
	// Unsendable is the body of a message that no queue takes.
	Unsendable string
	// Invoked has what Lambda took, in order.
	Invoked []Invoked
	// Source is the name of a queue that has a dead-letter queue.
	Source string
}

// test is the part of a *testing.T that a mistake fails.
type test interface{ Errorf(string, ...any) }

type queue struct {
	messages []*Message
	deduped  map[string]time.Time // when an id was sent
}

// Message is a message in a queue.
type Message struct {
	types.Message
	visible  time.Time
	received int
}

// New returns an account with queues of these names. A request that SQS refuses
// whatever is in the queues fails the test.
func New(t test, names ...string) *SQS {
	f := &SQS{
		t:      t,
		queues: map[string]*queue{}, Requests: map[string]int{},
		Fault: func(string, bool) error { return nil },
		Fail:  func(string, string) *types.BatchResultErrorEntry { return nil },
	}
	for _, name := range names {
		f.queues[urlPrefix+name] = &queue{deduped: map[string]time.Time{}}
	}
	return f
}

// mistake fails the test if there is an error, which it returns.
func (f *SQS) mistake(err error) error {
	if err != nil {
		f.t.Errorf("SQS refuses: %v", err)
	}
	return err
}

// Put puts a message into a queue, as SQS moves it there from another.
func (f *SQS) Put(queue, from, id, group, body string) *Message {
	m := &Message{Message: types.Message{MessageId: &id, Body: &body, Attributes: map[string]string{"DeadLetterQueueSourceArn": ARNPrefix + from}}}
	if group != "" {
		m.Attributes["MessageGroupId"] = group
	}
	if strings.HasSuffix(queue, ".fifo") {
		f.sent++
		m.Attributes["SequenceNumber"] = fmt.Sprintf("%020d", f.sent)
	}
	q := f.queues[urlPrefix+queue]
	q.messages = append(q.messages, m)
	return m
}

// Bodies returns the bodies in a queue.
func (f *SQS) Bodies(queue string) []string {
	all := []string{}
	for _, m := range f.queues[urlPrefix+queue].messages {
		all = append(all, *m.Body)
	}
	return all
}

// Hidden returns how many messages of a queue are invisible.
func (f *SQS) Hidden(queue string) (n int) {
	for _, m := range f.queues[urlPrefix+queue].messages {
		if m.visible.After(time.Now()) {
			n++
		}
	}
	return n
}

// do applies a request, unless a fault prevents it, and answers unless a fault
// loses the answer.
func do[O any](ctx context.Context, f *SQS, operation string, apply func() (*O, error)) (*O, error) {
	f.Requests[operation]++
	if err := cmp.Or(ctx.Err(), f.Fault(operation, false)); err != nil {
		return nil, err
	}
	out, err := apply()
	if err == nil {
		err = f.Fault(operation, true)
	}
	return out, err
}

// GetQueueUrl implements deadletter.Client.
func (f *SQS) GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) { //nolint:staticcheck // the SDK's name
	return do(ctx, f, "GetQueueUrl", func() (*sqs.GetQueueUrlOutput, error) {
		url := urlPrefix + *in.QueueName
		if f.queues[url] == nil {
			return nil, &types.QueueDoesNotExist{}
		}
		return &sqs.GetQueueUrlOutput{QueueUrl: &url}, nil
	})
}

// GetQueueAttributes implements deadletter.Client.
func (f *SQS) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return do(ctx, f, "GetQueueAttributes", func() (*sqs.GetQueueAttributesOutput, error) {
		name := strings.TrimPrefix(*in.QueueUrl, urlPrefix)
		all, hidden := len(f.Messages(name)), f.Hidden(name)
		a := map[string]string{
			"QueueArn":                              ARNPrefix + name,
			"ApproximateNumberOfMessages":           fmt.Sprint(all - hidden),
			"ApproximateNumberOfMessagesNotVisible": fmt.Sprint(hidden),
		}
		maps.DeleteFunc(a, func(name, _ string) bool { return !slices.Contains(in.AttributeNames, types.QueueAttributeName(name)) })
		if name == f.Source && slices.Contains(in.AttributeNames, types.QueueAttributeNameRedrivePolicy) {
			a["RedrivePolicy"] = `{"deadLetterTargetArn":"` + ARNPrefix + `dlq","maxReceiveCount":2}`
		}
		return &sqs.GetQueueAttributesOutput{Attributes: a}, nil
	})
}

// ReceiveMessage implements deadletter.Client.
func (f *SQS) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	return do(ctx, f, "ReceiveMessage", func() (*sqs.ReceiveMessageOutput, error) {
		if err := f.mistake(sqslimits.Receive(in.MaxNumberOfMessages, in.VisibilityTimeout, in.WaitTimeSeconds)); err != nil {
			return nil, err
		}
		time.Sleep(10 * time.Millisecond)
		now, out := time.Now(), &sqs.ReceiveMessageOutput{}
		locked := map[string]bool{} // groups with a message in flight
		for _, m := range f.queues[*in.QueueUrl].messages {
			locked[m.Attributes["MessageGroupId"]] = locked[m.Attributes["MessageGroupId"]] || strings.HasSuffix(*in.QueueUrl, ".fifo") && m.visible.After(now)
		}
		for _, m := range f.inTurn(*in.QueueUrl) {
			if len(out.Messages) == int(in.MaxNumberOfMessages) {
				break
			}
			if m.visible.After(now) || locked[m.Attributes["MessageGroupId"]] {
				continue
			}
			m.received++
			m.visible = now.Add(time.Duration(in.VisibilityTimeout) * time.Second)
			m.ReceiptHandle = aws.String(fmt.Sprint(*m.MessageId, "#", m.received))
			out.Messages = append(out.Messages, m.as(in))
		}
		return out, nil
	})
}

// inTurn returns the messages in the order in which they are received: of a
// FIFO queue as many of one group as there are, and then of the next.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html
func (f *SQS) inTurn(url string) []*Message {
	all := f.queues[url].messages
	if !strings.HasSuffix(url, ".fifo") {
		return all
	}
	var groups []string
	of := map[string][]*Message{}
	for _, m := range all {
		group := m.Attributes["MessageGroupId"]
		if of[group] == nil {
			groups = append(groups, group)
		}
		of[group] = append(of[group], m)
	}
	var turns []*Message
	for _, group := range groups {
		turns = append(turns, of[group]...)
	}
	return turns
}

// as returns a message with what was asked for.
func (m *Message) as(in *sqs.ReceiveMessageInput) types.Message {
	asked := m.Message
	if !slices.Contains(in.MessageAttributeNames, "All") {
		asked.MessageAttributes = nil
	}
	if !slices.Contains(in.MessageSystemAttributeNames, types.MessageSystemAttributeNameAll) {
		asked.Attributes = nil
	}
	return asked
}

// Messages returns the messages in a queue.
func (f *SQS) Messages(queue string) []*Message { return f.queues[urlPrefix+queue].messages }

// Move moves all messages from a queue to the end of another, as SQS does: they
// keep their ids.
func (f *SQS) Move(from, to string) {
	a, b := f.queues[urlPrefix+from], f.queues[urlPrefix+to]
	a.messages, b.messages = nil, append(b.messages, a.messages...)
}

// Sent notes that a message with this deduplication id was sent to a FIFO queue
// now.
func (f *SQS) Sent(queue, id string) { f.queues[urlPrefix+queue].deduped[id] = time.Now() }
