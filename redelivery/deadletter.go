package redelivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdalock/lambdalock/internal/awserror"
	"github.com/lambdalock/lambdalock/middleware"
)

const (
	// reasonAttribute says why a message was moved. Lambda's own dead-letter queues
	// have it with this name and length, too.
	// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
	reasonAttribute = "ErrorMessage"
	longestReason   = 1024
	// mostAttributes is how many message attributes a message may have.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
	mostAttributes = 10
)

// moveAway moves the messages that failed for good to the dead-letter queue,
// and acknowledges those that are there.
func (r *redeliverer) moveAway(ctx context.Context, failed []*failure) {
	var permanent []*failure
	for _, f := range failed {
		if errors.As(f.Err, new(*middleware.PermanentError)) {
			permanent = append(permanent, f)
		}
	}
	if len(permanent) == 0 {
		return
	}
	if r.DeadLetterQueue == "" {
		r.missing.Do(func() {
			r.Logger.WarnContext(ctx, "lambdalock: a message failed with middleware.Permanent but comes back like any other: set the DeadLetterQueue of redelivery.Options to the URL of the queue to move it to")
		})
		return
	}
	errs := each(len(permanent), func(i int) error { return r.send(ctx, permanent[i]) })
	var moved []string
	for i, err := range errs {
		if err == nil {
			permanent[i].Err = nil
			moved = append(moved, permanent[i].Record.MessageId)
		}
	}
	if len(moved) > 0 {
		r.Logger.InfoContext(ctx, "lambdalock: moved to the dead-letter queue", slog.Any("records", moved))
	}
	if stay := len(permanent) - len(moved); stay > 0 {
		r.Logger.WarnContext(ctx, "lambdalock: messages that failed with middleware.Permanent come back, because they could not be moved: is sqs:SendMessage allowed on the dead-letter queue, and is its maximum message size that of the queue?",
			slog.Int("messages", stay), slog.Int("of", len(permanent)), slog.Any("error", cmp.Or(errs...)))
	}
}

// send sends a copy of the message to the dead-letter queue. Like SQS itself,
// it takes the message id for the deduplication id, so that a FIFO queue drops
// a second copy but no other message:
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
func (r *redeliverer) send(ctx context.Context, f *failure) error {
	m := &f.Record
	if _, queue, err := parseARN(m.EventSourceARN); err == nil && strings.HasSuffix(r.DeadLetterQueue, queue) {
		return fmt.Errorf("the DeadLetterQueue %s is the queue that the message came from: name another one", r.DeadLetterQueue)
	}
	own := attributes(m)
	in := &sqs.SendMessageInput{QueueUrl: &r.DeadLetterQueue, MessageBody: &m.Body, MessageAttributes: withReason(own, f.Err)}
	group := m.Attributes["MessageGroupId"]
	if strings.HasSuffix(r.DeadLetterQueue, ".fifo") {
		group = cmp.Or(group, m.MessageId)
		in.MessageDeduplicationId = &m.MessageId
	}
	if group != "" {
		in.MessageGroupId = &group
	}
	_, err := r.client.SendMessage(ctx, in)
	if awserror.Status(err) == http.StatusBadRequest { // with the reason, the message may be too large
		in.MessageAttributes = own
		_, err = r.client.SendMessage(ctx, in)
	}
	if err != nil {
		return fmt.Errorf("a message of %d bytes: %w", size(in), err)
	}
	return nil
}

// attributes returns the attributes of the message.
func attributes(m *events.SQSMessage) map[string]types.MessageAttributeValue {
	all := map[string]types.MessageAttributeValue{}
	for name, a := range m.MessageAttributes {
		all[name] = types.MessageAttributeValue{DataType: aws.String(a.DataType), StringValue: a.StringValue, BinaryValue: a.BinaryValue}
	}
	return all
}

// withReason adds why the message failed, unless there are too many attributes.
func withReason(own map[string]types.MessageAttributeValue, failure error) map[string]types.MessageAttributeValue {
	all := maps.Clone(own)
	if _, has := all[reasonAttribute]; has || len(all) < mostAttributes {
		all[reasonAttribute] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(text(failure))}
	}
	return all
}

// size returns the size of a message as SQS counts it: of its body and of the
// names, types and values of its attributes.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
func size(in *sqs.SendMessageInput) int {
	n := len(*in.MessageBody)
	for name, a := range in.MessageAttributes {
		n += len(name) + len(*a.DataType) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue)
	}
	return n
}

// text returns what the handler said, as far as a message attribute can hold
// it: neither empty nor with control characters.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
func text(failure error) string {
	var permanent *middleware.PermanentError
	errors.As(failure, &permanent)
	s := strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return '\uFFFD'
		}
		return r
	}, cmp.Or(permanent.Error(), "permanent"))
	return strings.ToValidUTF8(s[:min(len(s), longestReason)], "")
}
