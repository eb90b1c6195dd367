package sqstest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// What SQS takes.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
const (
	maxEntries    = 10
	maxBytes      = 1 << 20 // of a message, and of a batch
	maxAttributes = 10
)

var batchID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// refusal is an answer of SQS to a request that it did not apply.
func refusal(code string) error {
	return &smithy.GenericAPIError{Code: code, Message: "refused", Fault: smithy.FaultClient}
}

// Denied is its answer if a permission is missing.
func Denied(action string) error {
	return &smithy.GenericAPIError{Code: "AccessDenied", Message: "User: somebody is not authorized to perform: " + action, Fault: smithy.FaultClient}
}

// checkIDs refuses a batch as SQS does.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
func checkIDs[E any](entries []E, id func(*E) *string) error {
	seen := map[string]bool{}
	for i := range entries {
		switch text := aws.ToString(id(&entries[i])); {
		case !batchID.MatchString(text):
			return &types.InvalidBatchEntryId{}
		case seen[text]:
			return &types.BatchEntryIdsNotDistinct{}
		default:
			seen[text] = true
		}
	}
	switch {
	case len(entries) == 0:
		return &types.EmptyBatchRequest{}
	case len(entries) > maxEntries:
		return &types.TooManyEntriesInBatchRequest{}
	}
	return nil
}

// failed is what SQS says of a message that it refuses.
func failed(code string) *types.BatchResultErrorEntry {
	return &types.BatchResultErrorEntry{Code: &code, Message: aws.String("refused"), SenderFault: true}
}

// SendMessageBatch implements deadletter.Client.
func (f *SQS) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return do(ctx, f, "SendMessageBatch", func() (*sqs.SendMessageBatchOutput, error) {
		if err := checkIDs(in.Entries, func(e *types.SendMessageBatchRequestEntry) *string { return e.Id }); err != nil {
			return nil, err
		}
		total := 0
		for i := range in.Entries {
			total += size(&in.Entries[i])
		}
		if total > maxBytes && len(in.Entries) > 1 {
			return nil, &types.BatchRequestTooLong{}
		}
		out := &sqs.SendMessageBatchOutput{}
		for i := range in.Entries {
			e := &in.Entries[i]
			id, wrong := f.send(*in.QueueUrl, e)
			if wrong != nil {
				wrong.Id = e.Id
				out.Failed = append(out.Failed, *wrong)
				continue
			}
			out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id, MessageId: &id})
		}
		return out, nil
	})
}

func size(e *types.SendMessageBatchRequestEntry) int {
	n := len(aws.ToString(e.MessageBody))
	for name, a := range e.MessageAttributes {
		n += len(name) + len(aws.ToString(a.DataType)) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue)
	}
	return n
}

// send puts a message of a batch into a queue, unless SQS refuses it.
func (f *SQS) send(url string, e *types.SendMessageBatchRequestEntry) (id string, wrong *types.BatchResultErrorEntry) {
	fifo := strings.HasSuffix(url, ".fifo")
	switch body := aws.ToString(e.MessageBody); {
	case f.Unsendable != "" && body == f.Unsendable, body == "":
		return "", failed("InvalidMessageContents")
	case size(e) > maxBytes, len(e.MessageAttributes) > maxAttributes:
		return "", failed("InvalidParameterValue")
	case fifo && (e.MessageGroupId == nil || e.MessageDeduplicationId == nil):
		return "", failed("MissingParameter")
	}
	if wrong := f.Fail("SendMessageBatch", *e.MessageBody); wrong != nil {
		return "", wrong
	}
	q, dedupe := f.queues[url], aws.ToString(e.MessageDeduplicationId)
	if at, ok := q.deduped[dedupe]; ok && time.Since(at) < dedupeTime {
		return "of the first", nil
	}
	if fifo {
		q.deduped[dedupe] = time.Now()
	}
	f.sent++
	m := &Message{Message: types.Message{
		MessageId: aws.String(fmt.Sprint("sent-", f.sent)), Body: e.MessageBody, MessageAttributes: e.MessageAttributes,
		Attributes: map[string]string{"MessageGroupId": aws.ToString(e.MessageGroupId)},
	}}
	for name, a := range e.MessageSystemAttributes {
		m.Attributes[name] = *a.StringValue
	}
	q.messages = append(q.messages, m)
	return *m.MessageId, nil
}

// DeleteMessageBatch implements deadletter.Client.
func (f *SQS) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	return do(ctx, f, "DeleteMessageBatch", func() (*sqs.DeleteMessageBatchOutput, error) {
		if err := checkIDs(in.Entries, func(e *types.DeleteMessageBatchRequestEntry) *string { return e.Id }); err != nil {
			return nil, err
		}
		out := &sqs.DeleteMessageBatchOutput{}
		q := f.queues[*in.QueueUrl]
		for _, e := range in.Entries {
			m, wrong := f.received("DeleteMessageBatch", q, e.ReceiptHandle)
			if wrong != nil {
				wrong.Id = e.Id
				out.Failed = append(out.Failed, *wrong)
				continue
			}
			q.messages = slices.DeleteFunc(q.messages, func(other *Message) bool { return other == m })
			out.Successful = append(out.Successful, types.DeleteMessageBatchResultEntry{Id: e.Id})
		}
		return out, nil
	})
}

// received returns the message with a receipt, unless SQS refuses it.
func (f *SQS) received(operation string, q *queue, receipt *string) (*Message, *types.BatchResultErrorEntry) {
	i := slices.IndexFunc(q.messages, func(m *Message) bool {
		return m.ReceiptHandle != nil && *m.ReceiptHandle == aws.ToString(receipt)
	})
	if i < 0 {
		return nil, failed("ReceiptHandleIsInvalid")
	}
	return q.messages[i], f.Fail(operation, *q.messages[i].MessageId)
}

// ChangeMessageVisibilityBatch implements deadletter.Client.
func (f *SQS) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return do(ctx, f, "ChangeMessageVisibilityBatch", func() (*sqs.ChangeMessageVisibilityBatchOutput, error) {
		if err := checkIDs(in.Entries, func(e *types.ChangeMessageVisibilityBatchRequestEntry) *string { return e.Id }); err != nil {
			return nil, err
		}
		out := &sqs.ChangeMessageVisibilityBatchOutput{}
		for _, e := range in.Entries {
			m, wrong := f.received("ChangeMessageVisibilityBatch", f.queues[*in.QueueUrl], e.ReceiptHandle)
			if wrong == nil && !m.visible.After(time.Now()) {
				wrong = failed("MessageNotInflight")
			}
			if wrong != nil {
				wrong.Id = e.Id
				out.Failed = append(out.Failed, *wrong)
				continue
			}
			m.visible = time.Now()
			out.Successful = append(out.Successful, types.ChangeMessageVisibilityBatchResultEntry{Id: e.Id})
		}
		return out, nil
	})
}
