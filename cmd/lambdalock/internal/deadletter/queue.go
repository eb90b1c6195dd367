// Package deadletter takes the messages out of a dead-letter queue of SQS.
// What the locks say was completed is deleted. What was not is sent back to the
// queue that it came from; if it is the event of an asynchronous invocation,
// the function is invoked with it again.
//
// A message is deleted from the dead-letter queue only after it was completed,
// or after SQS or Lambda has acknowledged that it was taken. A crash in between
// leaves it in both places, and never in none.
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

	received map[string]bool     // ids of messages that Receive returned
	sent     map[string]bool     // and of those that were sent, and of invocations
	again    int                 // messages that came again since one that is new
	hidden   map[string]*Message // by id: those that are ours
}

// Open returns the dead-letter queue. Names are those of queues of this account
// and Region, their URLs, or ARNs. Messages are sent to the queue to, or back
// to the queue that each came from if to is empty. Received messages stay
// invisible to others for hide.
func Open(ctx context.Context, client Client, name, to string, hide time.Duration) (*Queue, error) {
	q := &Queue{client: client, hide: hide, urls: map[string]string{}, received: map[string]bool{}, sent: map[string]bool{}, hidden: map[string]*Message{}}
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

// A ServiceError says that SQS or Lambda did not do what it was asked to.
type ServiceError struct {
	Of      string // the queue or the function, as it was named, or its ARN
	Err     error
	Unclear bool // it may have done it: nothing came back, or no word of this message
}

// Error implements error.
func (e *ServiceError) Error() string { return fmt.Sprintf("%s: %v", e.Of, e.Err) }

// Unwrap returns the cause.
func (e *ServiceError) Unwrap() error { return e.Err }

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
		return "", nil, &ServiceError{Of: "queue " + name, Err: err}
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
		return "", &ServiceError{Of: "queue " + name, Err: err}
	}
	return aws.ToString(out.QueueUrl), nil
}
