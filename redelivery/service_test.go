package redelivery_test

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	// largest is the size of the largest message.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
	largest = 1 << 20
	// longestInvisible is the longest visibility timeout in seconds.
	longestInvisible = 43_200
)

// answered returns err as the SDK does if the service answered with a status.
func answered(status int, err error) error {
	return &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: err,
	}}
}

func invalid(why string) error {
	return answered(400, &smithy.GenericAPIError{Code: "InvalidParameterValue", Message: "One or more parameters are invalid. Reason: " + why, Fault: smithy.FaultClient})
}

// refusesSend returns the error with which SQS refuses a message whose queue
// takes so many bytes, or nil.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
func refusesSend(in *sqs.SendMessageInput, most int) error {
	fifo := strings.HasSuffix(*in.QueueUrl, ".fifo")
	bytes := len(*in.MessageBody)
	for name, a := range in.MessageAttributes {
		value := len(a.BinaryValue)
		if a.StringValue != nil {
			value += len(*a.StringValue)
		}
		if value == 0 || !regexp.MustCompile(`^[\w.-]{1,256}$`).MatchString(name) || !regexp.MustCompile(`^(String|Number|Binary)`).MatchString(*a.DataType) {
			return invalid("The message attribute '" + name + "' is not valid.")
		}
		bytes += len(name) + len(*a.DataType) + value
	}
	switch {
	case bytes > most:
		return invalid("Message must be shorter than the queue's maximum.")
	case len(in.MessageAttributes) > 10:
		return invalid("Number of message attributes exceeds the allowed maximum [10].")
	case *in.MessageBody == "":
		return invalid("The request must contain the parameter MessageBody.")
	case fifo && (in.MessageGroupId == nil || in.MessageDeduplicationId == nil):
		return invalid("The request must contain the parameter MessageGroupId, and the queue has no ContentBasedDeduplication.")
	case !fifo && in.MessageDeduplicationId != nil:
		return invalid("The request includes a parameter that is not valid for this queue type.")
	}
	return nil
}

// refusesChange returns the error with which SQS refuses a whole request, or
// nil.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibilityBatch.html
func refusesChange(in *sqs.ChangeMessageVisibilityBatchInput) error {
	ids := map[string]bool{}
	for _, e := range in.Entries {
		if !regexp.MustCompile(`^[\w-]{1,80}$`).MatchString(*e.Id) {
			return answered(400, &types.InvalidBatchEntryId{})
		}
		ids[*e.Id] = true
	}
	switch {
	case len(in.Entries) == 0:
		return answered(400, &types.EmptyBatchRequest{})
	case len(in.Entries) > 10:
		return answered(400, &types.TooManyEntriesInBatchRequest{})
	case len(ids) < len(in.Entries):
		return answered(400, &types.BatchEntryIdsNotDistinct{})
	}
	return nil
}

// refusesEntry returns the code with which SQS refuses an entry, or "". A
// receipt handle must not be empty.
func refusesEntry(e types.ChangeMessageVisibilityBatchRequestEntry) string {
	switch {
	case *e.ReceiptHandle == "":
		return "ReceiptHandleIsInvalid"
	case e.VisibilityTimeout < 0 || e.VisibilityTimeout > longestInvisible:
		return "InvalidParameterValue"
	}
	return ""
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
		code := refusesEntry(e)
		if code != "" {
			q.t.Errorf("entry %s of %d s: %s", *e.Id, e.VisibilityTimeout, code)
		} else if applied && !q.makeVisible(*e.ReceiptHandle, time.Duration(e.VisibilityTimeout)*time.Second) {
			code = "MessageNotInflight"
		}
		if code != "" {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: &code})
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
	if refusal := refusesSend(in, largest); refusal != nil {
		return nil, refusal
	}
	if applied {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.dead = append(q.dead, in)
	}
	return &sqs.SendMessageOutput{}, err
}
