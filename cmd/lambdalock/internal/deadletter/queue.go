// Package deadletter takes the messages out of a dead-letter queue of SQS.
// What the locks say was completed is deleted, and what was not is sent back to
// the queue that it came from.
//
// A message is deleted from the dead-letter queue only after it was completed,
// or after SQS has acknowledged that it was sent. A crash in between leaves it
// in both queues, and never in none.
package deadletter

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Client is what a queue needs of an SQS client.
type Client interface {
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	DeleteMessage(context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
}

const (
	// batch is the most that one request takes.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
	batch = 10
	// A round is what a person is asked about in one question.
	roundMessages = 1000
	roundBytes    = 64 << 20
	// releaseTimeout is how long an ending command still gives messages back.
	releaseTimeout = 10 * time.Second
)

// Queue is a dead-letter queue that is emptied. It must not be used by several
// goroutines.
type Queue struct {
	// ARN of the queue.
	ARN string
	// FIFO reports that groups have an order, which has to be kept.
	FIFO bool
	// Messages is how many are in it, approximately, and InFlight how many more
	// somebody has received.
	Messages, InFlight int

	client Client
	url    string
	to     string // the ARN of the queue that messages are sent to; empty: each to that it came from
	hide   time.Duration
	urls   map[string]string // of queues, by ARN

	seen   map[string]bool     // ids of messages that were received or sent
	hidden map[string]*Message // by id: those that are ours
}

// Message is a message that was received, and is invisible for others.
type Message struct {
	ID    string
	Group string // empty: none
	From  string // the ARN of the queue that it came from; empty: unknown

	sqs   types.Message
	until time.Time // others may receive it from then on
}

// Open returns the dead-letter queue. Names are those of queues of this account
// and Region, their URLs, or ARNs. Messages are sent to the queue to, or back
// to the queue that each came from if to is empty. What is received stays
// invisible for others for hide.
func Open(ctx context.Context, client Client, name, to string, hide time.Duration) (*Queue, error) {
	q := &Queue{client: client, hide: hide, urls: map[string]string{}, seen: map[string]bool{}, hidden: map[string]*Message{}}
	var err error
	var has attributes
	if q.url, has, err = q.find(ctx, name); err != nil {
		return nil, err
	}
	if policy := has[types.QueueAttributeNameRedrivePolicy]; policy != "" {
		return nil, &driver.ConfigError{Reason: "queue " + name + " has a dead-letter queue: " + policy + "; each look at a message here spends a receive, and may move it there: name the dead-letter queue"}
	}
	q.ARN = has[types.QueueAttributeNameQueueArn]
	q.Messages = has.number(types.QueueAttributeNameApproximateNumberOfMessages)
	q.InFlight = has.number(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible)
	q.FIFO = isFIFO(q.ARN)
	if to == "" {
		return q, nil
	}
	url, target, err := q.find(ctx, to)
	arn := target[types.QueueAttributeNameQueueArn]
	switch {
	case err != nil:
		return nil, err
	case arn == q.ARN:
		return nil, &driver.ConfigError{Reason: "--to names the dead-letter queue itself: name the queue to send to"}
	case isFIFO(arn) != q.FIFO:
		return nil, &driver.ConfigError{Reason: "one of the queues is a FIFO queue, and the other a standard queue: send to one of the same kind"}
	}
	q.to, q.urls[arn] = arn, url
	return q, nil
}

// A QueueError says that SQS did not do what it was asked to.
type QueueError struct {
	Queue string // as it was named, or its ARN
	Err   error
}

// Error implements error.
func (e *QueueError) Error() string { return fmt.Sprintf("queue %s: %v", e.Queue, e.Err) }

// Unwrap returns the cause.
func (e *QueueError) Unwrap() error { return e.Err }

func isFIFO(arn string) bool { return strings.HasSuffix(arn, ".fifo") }

// attributes are what a queue says of itself.
type attributes map[types.QueueAttributeName]string

func (a attributes) number(name types.QueueAttributeName) int {
	n, _ := strconv.Atoi(a[name])
	return n
}

// find returns a queue's URL and its attributes.
func (q *Queue) find(ctx context.Context, name string) (string, attributes, error) {
	url, err := q.urlOf(ctx, name)
	if err != nil {
		return "", nil, err
	}
	out, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &url,
		AttributeNames: []types.QueueAttributeName{
			types.QueueAttributeNameQueueArn, types.QueueAttributeNameApproximateNumberOfMessages,
			types.QueueAttributeNameApproximateNumberOfMessagesNotVisible, types.QueueAttributeNameRedrivePolicy,
		},
	})
	if err != nil {
		return "", nil, &QueueError{name, err}
	}
	has := attributes{}
	for attribute, value := range out.Attributes {
		has[types.QueueAttributeName(attribute)] = value
	}
	if arn := has[types.QueueAttributeNameQueueArn]; queueARN.MatchString(name) && name != arn {
		return "", nil, &driver.ConfigError{Reason: "queue " + name + " is not in the Region that was asked, which has " + arn + ": correct AWS_REGION"}
	}
	return url, has, nil
}

// queueARN has the account and the name of a queue.
var queueARN = regexp.MustCompile(`^arn:[a-z-]+:sqs:[a-z0-9-]+:([0-9]+):([A-Za-z0-9_.-]+)$`)

// urlOf returns the URL of a queue, whose name may be a URL or an ARN.
func (q *Queue) urlOf(ctx context.Context, name string) (string, error) {
	if strings.Contains(name, "://") {
		return name, nil
	}
	in := &sqs.GetQueueUrlInput{QueueName: &name}
	if m := queueARN.FindStringSubmatch(name); m != nil {
		in.QueueOwnerAWSAccountId, in.QueueName = &m[1], &m[2]
	}
	out, err := q.client.GetQueueUrl(ctx, in)
	if errors.As(err, new(*types.QueueDoesNotExist)) {
		return "", &driver.ConfigError{Reason: "there is no queue " + name + " in this account and Region"}
	}
	if err != nil {
		return "", &QueueError{name, err}
	}
	return aws.ToString(out.QueueUrl), nil
}

// Receive returns the next round of messages, those of a group in their order.
// It returns none once SQS has none that were not received before. Of a group
// of a FIFO queue SQS returns no more until the messages before are deleted.
func (q *Queue) Receive(ctx context.Context) ([]*Message, error) {
	var round []*Message
	for size := 0; len(round)+batch <= roundMessages && size < roundBytes; {
		until := time.Now().Add(q.hide)
		out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &q.url, MaxNumberOfMessages: batch, VisibilityTimeout: int32(q.hide / time.Second),
			WaitTimeSeconds:             q.wait(len(round)),
			MessageAttributeNames:       []string{"All"},
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		if err != nil {
			return nil, &QueueError{q.ARN, err}
		}
		if len(out.Messages) == 0 {
			break
		}
		for _, m := range out.Messages {
			if message := q.received(m, until); message != nil {
				round = append(round, message)
				size += len(aws.ToString(m.Body))
			}
		}
	}
	return round, nil
}

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

// received returns a message, or nil if this command knows it already: a
// standard queue may deliver one twice, the time for which one is invisible may
// have ended, and one that was sent back may have failed again.
func (q *Queue) received(m types.Message, until time.Time) *Message {
	id := aws.ToString(m.MessageId)
	message := &Message{
		ID: id, Group: m.Attributes["MessageGroupId"], From: m.Attributes["DeadLetterQueueSourceArn"],
		sqs: m, until: until,
	}
	if q.to != "" {
		message.From = q.to
	}
	q.hidden[id] = message // with the newest receipt
	if q.seen[id] {
		return nil
	}
	q.seen[id] = true
	return message
}

// Late reports whether so little is left of the time for which the message is
// invisible that others might receive it before it is deleted.
func (q *Queue) Late(m *Message) bool { return time.Until(m.until) < q.hide/4 }

// Send sends a message to the queue that it came from.
func (q *Queue) Send(ctx context.Context, m *Message) error {
	url, ok := q.urls[m.From]
	if !ok {
		var err error
		if url, err = q.urlOf(ctx, m.From); err != nil {
			return err
		}
		q.urls[m.From] = url
	}
	in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: m.sqs.Body, MessageAttributes: m.sqs.MessageAttributes}
	if m.Group != "" { // standard queues may have groups too, for fairness
		in.MessageGroupId = &m.Group
	}
	if q.FIFO {
		in.MessageDeduplicationId = aws.String(deduplication(m.ID))
	}
	// It is the only attribute of SQS that a sender can set.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
	if trace := m.sqs.Attributes["AWSTraceHeader"]; trace != "" {
		in.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{"AWSTraceHeader": {DataType: aws.String("String"), StringValue: &trace}}
	}
	out, err := q.client.SendMessage(ctx, in)
	if err != nil {
		return &QueueError{m.From, err}
	}
	q.seen[aws.ToString(out.MessageId)] = true
	return nil
}

// deduplication returns an id that is the same if the command is run again
// after a crash, so that SQS drops what it sends a second time within five
// minutes. It must not be that of the message: if the message itself was sent
// less than five minutes ago, SQS would drop it, and it would be lost.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html
func deduplication(id string) string { return "redrive-" + id }

// Delete deletes a message that was completed, or sent.
func (q *Queue) Delete(ctx context.Context, m *Message) error {
	_, err := q.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &q.url, ReceiptHandle: q.hidden[m.ID].sqs.ReceiptHandle})
	if err != nil {
		return &QueueError{q.ARN, err}
	}
	delete(q.hidden, m.ID)
	return nil
}

// Release makes all messages that were received and not deleted visible again.
// The error says that some stay invisible for a while.
func (q *Queue) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	var failed error
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q.url}
	flush := func() {
		if len(in.Entries) == 0 {
			return
		}
		if _, err := q.client.ChangeMessageVisibilityBatch(ctx, in); err != nil {
			failed = &QueueError{q.ARN, err}
		}
		in.Entries = nil
	}
	for _, m := range q.hidden {
		in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
			Id: aws.String(strconv.Itoa(len(in.Entries))), ReceiptHandle: m.sqs.ReceiptHandle, VisibilityTimeout: 0,
		})
		if len(in.Entries) == batch {
			flush()
		}
	}
	flush()
	clear(q.hidden)
	return failed
}
