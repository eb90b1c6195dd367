package sqstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/internal/local/sqslimits"
)

// Denied is its answer if a permission is missing.
func Denied(action string) error {
	return &smithy.GenericAPIError{Code: "AccessDenied", Message: "User: somebody is not authorized to perform: " + action, Fault: smithy.FaultClient}
}

// refuses returns the error with which SQS refuses a batch as a whole, or nil.
// That is a mistake of who sends it, so it also fails the test.
func refuses[E any](f *SQS, entries []E, id func(*E) *string, size int) error {
	var ids []*string
	for i := range entries {
		ids = append(ids, id(&entries[i]))
	}
	return f.mistake(sqslimits.Batch(ids, size))
}

// failed is what SQS says of a message that it refuses.
func failed(code string) *types.BatchResultErrorEntry {
	return &types.BatchResultErrorEntry{Code: &code, Message: aws.String("refused"), SenderFault: true}
}

// mistaken is failed for a mistake in an entry, which also fails the test.
func (f *SQS) mistaken(err error) *types.BatchResultErrorEntry {
	var api smithy.APIError
	if !errors.As(f.mistake(err), &api) {
		return nil
	}
	return failed(api.ErrorCode())
}

// SendMessageBatch implements deadletter.Client.
func (f *SQS) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return do(ctx, f, "SendMessageBatch", func() (*sqs.SendMessageBatchOutput, error) {
		size := 0
		for i := range in.Entries {
			size += messageOf(*in.QueueUrl, &in.Entries[i]).Size()
		}
		if err := refuses(f, in.Entries, func(e *types.SendMessageBatchRequestEntry) *string { return e.Id }, size); err != nil {
			return nil, err
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

// messageOf returns an entry as the limits see it.
func messageOf(url string, e *types.SendMessageBatchRequestEntry) *sqslimits.Message {
	m := &sqslimits.Message{
		Queue: url, Body: aws.ToString(e.MessageBody), Group: e.MessageGroupId, Deduplication: e.MessageDeduplicationId,
		Attributes: map[string]sqslimits.Attribute{}, System: map[string]sqslimits.Attribute{},
	}
	for name, a := range e.MessageAttributes {
		m.Attributes[name] = sqslimits.Attribute{Type: aws.ToString(a.DataType), Text: aws.ToString(a.StringValue), Binary: a.BinaryValue}
	}
	for name, a := range e.MessageSystemAttributes {
		m.System[name] = sqslimits.Attribute{Type: aws.ToString(a.DataType), Text: aws.ToString(a.StringValue), Binary: a.BinaryValue}
	}
	return m
}

// send puts a message of a batch into a queue, unless SQS refuses it.
func (f *SQS) send(url string, e *types.SendMessageBatchRequestEntry) (id string, wrong *types.BatchResultErrorEntry) {
	if f.Unsendable != "" && aws.ToString(e.MessageBody) == f.Unsendable {
		return "", failed("InvalidMessageContents")
	}
	if wrong := f.mistaken(messageOf(url, e).Refusal(sqslimits.Largest)); wrong != nil {
		return "", wrong
	}
	if wrong := f.Fail("SendMessageBatch", *e.MessageBody); wrong != nil {
		return "", wrong
	}
	q, dedupe := f.queues[url], aws.ToString(e.MessageDeduplicationId)
	if at, ok := q.deduped[dedupe]; ok && time.Since(at) < dedupeTime {
		return "of the first", nil
	}
	if dedupe != "" {
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
		if err := refuses(f, in.Entries, func(e *types.DeleteMessageBatchRequestEntry) *string { return e.Id }, 0); err != nil {
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
		if err := refuses(f, in.Entries, func(e *types.ChangeMessageVisibilityBatchRequestEntry) *string { return e.Id }, 0); err != nil {
			return nil, err
		}
		out := &sqs.ChangeMessageVisibilityBatchOutput{}
		for _, e := range in.Entries {
			m, wrong := f.received("ChangeMessageVisibilityBatch", f.queues[*in.QueueUrl], e.ReceiptHandle)
			if mistaken := f.mistaken(sqslimits.Change(aws.ToString(e.ReceiptHandle), e.VisibilityTimeout)); mistaken != nil {
				wrong = mistaken
			}
			if wrong == nil && !m.visible.After(time.Now()) {
				wrong = failed("MessageNotInflight")
			}
			if wrong != nil {
				wrong.Id = e.Id
				out.Failed = append(out.Failed, *wrong)
				continue
			}
			m.visible = time.Now().Add(time.Duration(e.VisibilityTimeout) * time.Second)
			out.Successful = append(out.Successful, types.ChangeMessageVisibilityBatchResultEntry{Id: e.Id})
		}
		return out, nil
	})
}
