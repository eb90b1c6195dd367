package deadletter

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/sqstest"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// mistakes counts what would fail a test.
type mistakes int

func (m *mistakes) Errorf(string, ...any) { *m++ }

// TestSQSMistakes: a request that SQS refuses fails the test, as a whole or in
// a part, and what it refuses is not applied.
func TestSQSMistakes(t *testing.T) {
	t.Parallel()
	eleven := make([]string, 11)
	for i := range eleven {
		eleven[i] = fmt.Sprint(i)
	}
	for name, c := range map[string]struct {
		ids      []string
		group    *string
		seconds  int32 // of the receive, and afterwards
		mistakes mistakes
		sent     int
	}{
		"none":       {ids: []string{"a", "b"}, group: aws.String("g"), sent: 2},
		"whole":      {ids: eleven, group: aws.String("g"), mistakes: 1},
		"each part":  {ids: []string{"a", "b"}, mistakes: 2},
		"visibility": {ids: []string{"a"}, group: aws.String("g"), seconds: 43201, mistakes: 2, sent: 1},
	} {
		var got mistakes
		f := sqstest.New(&got, "q.fifo")
		in := &sqs.SendMessageBatchInput{QueueUrl: aws.String("https://q.fifo")}
		for _, id := range c.ids {
			in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &id, MessageGroupId: c.group, MessageDeduplicationId: &id})
		}
		_, _ = f.SendMessageBatch(t.Context(), in)
		_, _ = f.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: in.QueueUrl, MaxNumberOfMessages: 1, VisibilityTimeout: c.seconds})
		_, _ = f.ChangeMessageVisibilityBatch(t.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: in.QueueUrl, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
			{Id: aws.String("0"), ReceiptHandle: aws.String("r"), VisibilityTimeout: c.seconds},
		}})
		if got != c.mistakes || len(f.Bodies("q.fifo")) != c.sent {
			t.Errorf("%s: %d mistakes, %d messages are there", name, got, len(f.Bodies("q.fifo")))
		}
	}
}

// TestSQSRefusesParts: what SQS refuses of one message although the request is
// right, and what it returns unasked.
func TestSQSRefusesParts(t *testing.T) {
	t.Parallel()
	f := sqstest.New(t, "q")
	f.Put("q", "from", "m", "", "x").MessageAttributes = map[string]types.MessageAttributeValue{"a": {}}
	url := aws.String("https://q")
	received, err := f.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 10})
	if err != nil || len(received.Messages) != 1 || len(received.Messages[0].Attributes)+len(received.Messages[0].MessageAttributes) > 0 {
		t.Fatalf("%+v, %v", received, err)
	}
	shown := expect.Value(f.ChangeMessageVisibilityBatch(t.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
		{Id: aws.String("0"), ReceiptHandle: received.Messages[0].ReceiptHandle}, {Id: aws.String("1"), ReceiptHandle: aws.String("nobody's")},
	}}))(t)
	codes := []string{}
	for _, e := range shown.Failed {
		codes = append(codes, *e.Code)
	}
	if want := []string{"MessageNotInflight", "ReceiptHandleIsInvalid"}; !slices.Equal(codes, want) {
		t.Errorf("refused with %q, want %q", codes, want)
	}
}
