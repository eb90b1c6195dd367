package deadletter

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/internal/awserror"
)

const (
	// batch is the most messages that one request takes.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
	batch = 10
	// batchBytes is the most that a request of several messages has. An emulator
	// that takes less gets each message alone.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
	batchBytes = 1 << 20
	// attempts is how often a part is tried of which SQS says that the failure is
	// its own. The SDK repeats whole requests only.
	attempts = 3
	pause    = 200 * time.Millisecond
)

// parts is what SQS answers to a request of several messages.
type parts struct {
	done   []*string // ids
	failed []types.BatchResultErrorEntry
}

func entryID(i int) *string { return aws.String(strconv.Itoa(i)) }

// inParts makes one request about n messages of a queue, and again for those
// of which SQS says that it has failed by itself. It returns an error for each
// message that SQS does not say is done.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-batch-api-actions.html
func inParts(ctx context.Context, queue string, n int, request func(context.Context, []int) (*parts, error)) []error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	errs := repeated(&ServiceError{Of: "queue " + queue, Err: errors.New("SQS does not say what became of it"), Unclear: true}, n)
	var part []int
	for i := range n {
		part = append(part, i)
	}
	for attempt := range attempts {
		out, err := request(ctx, part)
		if err != nil {
			for _, i := range part {
				errs[i] = &requestError{&ServiceError{Of: "queue " + queue, Err: err, Unclear: !refused(err)}}
			}
			return errs
		}
		if part = out.read(queue, errs); len(part) == 0 || attempt == attempts-1 {
			break
		}
		select {
		case <-ctx.Done():
			return errs
		case <-time.After(pause << attempt):
		}
	}
	return errs
}

// read notes what became of the messages, and returns those to try again.
func (p *parts) read(queue string, errs []error) (again []int) {
	for _, id := range p.done {
		if i, err := strconv.Atoi(aws.ToString(id)); err == nil && i < len(errs) {
			errs[i] = nil
		}
	}
	for _, f := range p.failed {
		i, err := strconv.Atoi(aws.ToString(f.Id))
		if err != nil || i >= len(errs) {
			continue
		}
		errs[i] = &ServiceError{Of: "queue " + queue, Err: &smithy.GenericAPIError{Code: aws.ToString(f.Code), Message: aws.ToString(f.Message)}}
		if !f.SenderFault {
			again = append(again, i)
		}
	}
	return again
}

// requestError is the error of a request as a whole.
type requestError struct{ *ServiceError }

func (e *requestError) Unwrap() error { return e.ServiceError }

// wholly reports whether a request failed as a whole, and not for what is in
// one of its messages.
func wholly(err error) bool { return errors.As(err, new(*requestError)) }

// refused reports whether SQS has answered that it did not do what it was asked
// to.
func refused(err error) bool {
	status := awserror.Status(err)
	if status == 0 {
		var api smithy.APIError
		return errors.As(err, &api) && api.ErrorFault() != smithy.FaultServer
	}
	return status >= 400 && status < 500
}

// denied reports whether a permission is missing, for the queue or its key.
func denied(err error) bool {
	return awserror.Status(err) == 403 || strings.Contains(codeOf(err), "AccessDenied")
}

func codeOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// repeated returns the error n times.
func repeated(err error, n int) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// unclear reports whether SQS may have done it.
func unclear(err error) bool {
	var e *ServiceError
	return errors.As(err, &e) && e.Unclear
}
