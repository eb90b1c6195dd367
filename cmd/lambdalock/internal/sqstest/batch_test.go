package sqstest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// TestRefusesBatches: what SQS refuses as a whole.
func TestRefusesBatches(t *testing.T) {
	t.Parallel()
	entries := func(n int, id func(int) string, size int) (all []types.SendMessageBatchRequestEntry) {
		for i := range n {
			all = append(all, types.SendMessageBatchRequestEntry{Id: aws.String(id(i)), MessageBody: aws.String(strings.Repeat("x", size))})
		}
		return all
	}
	number := func(i int) string { return fmt.Sprint(i) }
	for name, c := range map[string]struct {
		entries []types.SendMessageBatchRequestEntry
		want    any
	}{
		"eleven":      {entries(11, number, 1), new(*types.TooManyEntriesInBatchRequest)},
		"none":        {nil, new(*types.EmptyBatchRequest)},
		"an id twice": {entries(2, func(int) string { return "a" }, 1), new(*types.BatchEntryIdsNotDistinct)},
		"a wrong id":  {entries(1, func(int) string { return "a b" }, 1), new(*types.InvalidBatchEntryId)},
		"too long":    {entries(2, number, 600<<10), new(*types.BatchRequestTooLong)},
	} {
		f := New("q")
		_, err := f.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: aws.String("https://q"), Entries: c.entries})
		if !errors.As(err, c.want) || len(f.Bodies("q")) > 0 {
			t.Errorf("%s: %v, and %d messages are there", name, err, len(f.Bodies("q")))
		}
	}
}

// TestRefusesParts: what SQS refuses of one message, while it takes the others.
func TestRefusesParts(t *testing.T) {
	t.Parallel()
	f := New("q.fifo")
	entry := func(id, body string, group *string) types.SendMessageBatchRequestEntry {
		return types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &body, MessageGroupId: group, MessageDeduplicationId: &id}
	}
	out, err := f.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: aws.String("https://q.fifo"), Entries: []types.SendMessageBatchRequestEntry{
		entry("taken", "x", aws.String("g")), entry("empty", "", aws.String("g")), entry("groupless", "x", nil),
	}})
	if err != nil || len(out.Successful) != 1 || len(out.Failed) != 2 || *out.Failed[1].Code != "MissingParameter" {
		t.Fatalf("%+v, %v", out, err)
	}
	gone, err := f.DeleteMessageBatch(t.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: aws.String("https://q.fifo"), Entries: []types.DeleteMessageBatchRequestEntry{
		{Id: aws.String("0"), ReceiptHandle: aws.String("nobody's")},
	}})
	if err != nil || len(gone.Failed) != 1 || !gone.Failed[0].SenderFault {
		t.Errorf("%+v, %v", gone, err)
	}
	received, err := f.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String("https://q.fifo"), MaxNumberOfMessages: 10, VisibilityTimeout: 0})
	if err != nil || len(received.Messages) != 1 {
		t.Fatalf("%+v, %v", received, err)
	}
	shown, err := f.ChangeMessageVisibilityBatch(t.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: aws.String("https://q.fifo"), Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
		{Id: aws.String("0"), ReceiptHandle: received.Messages[0].ReceiptHandle},
	}})
	if err != nil || len(shown.Failed) != 1 || *shown.Failed[0].Code != "MessageNotInflight" {
		t.Errorf("%+v, %v", shown, err)
	}
}
