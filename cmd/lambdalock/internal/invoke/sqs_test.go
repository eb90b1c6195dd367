package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

func TestSQSAnswersTheFunction(t *testing.T) {
	t.Parallel()
	a := expect.Value(startSQS())(t)
	client := sqs.New(sqs.Options{Region: "eu-west-1", BaseEndpoint: &a.url, Credentials: credentials.NewStaticCredentialsProvider("local", "local", "")})
	url := aws.String("https://sqs.eu-west-1.amazonaws.com/1/orders")
	change := func(ctx context.Context, handle string, seconds int32) error {
		_, err := client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: url, ReceiptHandle: &handle, VisibilityTimeout: seconds})
		return err
	}
	const trace = "Root=1-00000000-000000000000000000000001"
	send := func(ctx context.Context, body string) error {
		_, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: url, MessageBody: &body, MessageAttributes: map[string]types.MessageAttributeValue{
			"ErrorMessage": {DataType: aws.String("String"), StringValue: aws.String("it failed")},
		}}, sqs.WithAPIOptions(smithyhttp.AddHeaderValue("X-Amzn-Trace-Id", trace)))
		return err // the client has compared the digest of the body
	}
	for name, c := range map[string]struct {
		ask  func(context.Context) error
		code string
	}{
		"change":           {func(ctx context.Context) error { return change(ctx, "first", 60) }, ""},
		"change no handle": {func(ctx context.Context) error { return change(ctx, "", 60) }, "ReceiptHandleIsInvalid"},
		"change too far":   {func(ctx context.Context) error { return change(ctx, "far", 43201) }, "InvalidParameterValue"},
		"send":             {func(ctx context.Context) error { return send(ctx, "a message") }, ""},
		"send nothing":     {func(ctx context.Context) error { return send(ctx, "") }, "MissingParameter"},
		"delete": {func(ctx context.Context) error {
			_, err := client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: aws.String("second")})
			return err
		}, ""},
		"delete no entries": {func(ctx context.Context) error {
			_, err := client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: url, Entries: []types.DeleteMessageBatchRequestEntry{}})
			return err
		}, "AWS.SimpleQueueService.EmptyBatchRequest"},
		"receive": {func(ctx context.Context) error {
			_, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: url})
			return err
		}, "UnsupportedOperation"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.ask(t.Context())
			var refused smithy.APIError
			if errors.As(err, &refused) && refused.ErrorCode() == c.code {
				return
			}
			if err != nil || c.code != "" {
				t.Errorf("%v, want %q", err, c.code)
			}
		})
	}
	out, err := client.ChangeMessageVisibilityBatch(t.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
		{Id: aws.String("0"), ReceiptHandle: aws.String("third"), VisibilityTimeout: 0},
		{Id: aws.String("1"), ReceiptHandle: aws.String("far"), VisibilityTimeout: -1},
	}})
	if err != nil || len(out.Successful) != 1 || len(out.Failed) != 1 || *out.Failed[0].Id != "1" {
		t.Errorf("a batch: %+v, %v", out, err)
	}
	var text strings.Builder
	a.close(&text)
	if want := "sent: 1 message to " + *url + "\n"; text.String() != want {
		t.Errorf("it wrote %q, want %q", text.String(), want)
	}
	for handle, want := range map[string]bool{"first": true, "third": true, "second": false, "far": false} {
		if at, ok := a.comesBack(&record{handle: handle}); ok != want || ok && time.Until(at) > time.Minute {
			t.Errorf("%s comes back at %v, %v", handle, at, ok)
		}
	}
	sent := &record{body: map[string]json.RawMessage{"body": json.RawMessage(`"a message"`)}}
	other, first, second := a.moved([]*record{sent}, "Root=another"), a.moved([]*record{sent}, trace+";Parent=of-a-tracer"), a.moved([]*record{sent}, trace)
	if len(other) != 0 || len(first) != 1 || len(second) != 0 {
		t.Errorf("one message is moved %d times, and %d times by another delivery", len(first)+len(second), len(other))
	}
	if !a.isDeleted(&record{handle: "second"}) || a.isDeleted(&record{handle: "first"}) {
		t.Error("another message is deleted")
	}
}
