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
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
}

// Queue is a dead-letter queue that is emptied. It must not be used by several
// goroutines.
type Queue struct {
	// ARN of the queue.
	ARN string
	// FIFO reports that groups have an order, which has to be kept.
	FIFO bool
	// Messages is how many are in it, approximately, and InFlight how many more
	// have been received.
	Messages, InFlight int

	client Client
	url    string
	to     string // the ARN of the queue that messages are sent to; empty: each to that it came from
	hide   time.Duration
	urls   map[string]string // of queues, by ARN

	seen   map[string]bool     // ids of messages that were received or sent
	again  int                 // messages that came again since one that is new
	hidden map[string]*Message // by id: those that are ours
}

// Open returns the dead-letter queue. Names are those of queues of this account
// and Region, their URLs, or ARNs. Messages are sent to the queue to, or back
// to the queue that each came from if to is empty. Received messages stay
// invisible to others for hide.
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
	Queue   string // as it was named, or its ARN
	Err     error
	Unclear bool // it may have done it: nothing came back, or no word of this message
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
		return "", nil, &QueueError{Queue: name, Err: err}
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
		return "", &QueueError{Queue: name, Err: err}
	}
	return aws.ToString(out.QueueUrl), nil
}
