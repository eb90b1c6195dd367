package redelivery_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"runtime"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lambdalock/lambdalock/internal/local/sqslimits"
)

// answered returns err as the SDK does if the service answered with a status.
func answered(status int, err error) error {
	return &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: err,
	}}
}

// refusesSend returns the error with which SQS refuses a message whose queue
// takes so many bytes, or nil.
func refusesSend(in *sqs.SendMessageInput, most int) error {
	m := &sqslimits.Message{
		Queue: *in.QueueUrl, Body: *in.MessageBody, Group: in.MessageGroupId, Deduplication: in.MessageDeduplicationId,
		Attributes: map[string]sqslimits.Attribute{},
	}
	for name, a := range in.MessageAttributes {
		m.Attributes[name] = sqslimits.Attribute{Type: *a.DataType, Text: aws.ToString(a.StringValue), Binary: a.BinaryValue}
	}
	if err := m.Refusal(most); err != nil {
		return answered(400, err)
	}
	return nil
}

// refusesChange returns the error with which SQS refuses a whole request or one
// of its entries, or nil.
func refusesChange(in *sqs.ChangeMessageVisibilityBatchInput) error {
	var ids []*string
	var err error
	for _, e := range in.Entries {
		ids = append(ids, e.Id)
		err = cmp.Or(err, sqslimits.Change(*e.ReceiptHandle, e.VisibilityTimeout))
	}
	if err = cmp.Or(err, sqslimits.Batch(ids, 0)); err != nil {
		return answered(400, err)
	}
	return nil
}

// errDenied is what SQS answers if the role does not allow an action.
var errDenied = answered(403, errors.New("AccessDenied"))

// meet lets a request meet its fault. It returns whether the request is
// applied, and its error.
func (q *queue) meet(ctx context.Context, request string) (applied bool, err error) {
	q.mu.Lock()
	q.requests++
	q.mu.Unlock()
	time.Sleep(latency)
	does := ""
	if q.fault != nil {
		does = q.fault(request)
	}
	switch does {
	case "denied":
		return false, errDenied
	case "lost":
		return true, errors.New("connection reset")
	case "hangs":
		<-ctx.Done()
		return false, ctx.Err()
	case "panics":
		panic("client")
	case "exits":
		runtime.Goexit()
	}
	return true, ctx.Err()
}

// ChangeMessageVisibilityBatch implements [redelivery.Client]. An entry of a
// message that is not in flight fails.
func (q *queue) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	applied, err := q.meet(ctx, "change")
	q.mu.Lock()
	defer q.mu.Unlock()
	if refusal := refusesChange(in); refusal != nil || *in.QueueUrl != url && !q.messages.FIFO {
		q.t.Errorf("a request for %d messages of %s: %v", len(in.Entries), *in.QueueUrl, refusal)
		return nil, refusal
	}
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	for _, e := range in.Entries {
		if applied && !q.makeVisible(*e.ReceiptHandle, time.Duration(e.VisibilityTimeout)*time.Second) {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: aws.String("MessageNotInflight")})
		}
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (q *queue) makeVisible(handle string, after time.Duration) bool {
	now := time.Now()
	for _, group := range q.messages.Visible(now.Add(1000 * time.Hour)) {
		for _, m := range group {
			if receipt(m) == handle && m.Visible.After(now) {
				m.Visible = now.Add(after)
				q.change()
				return true
			}
		}
	}
	return false
}

// SendMessage implements [redelivery.Client].
func (q *queue) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	applied, err := q.meet(ctx, "send")
	if refusal := refusesSend(in, sqslimits.Largest); refusal != nil {
		return nil, refusal
	}
	if applied {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.dead = append(q.dead, in)
	}
	return &sqs.SendMessageOutput{}, err
}
