package deadletter

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/sqstest"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestNowhereToSend: the advice fits where a message comes from. O5
func TestNowhereToSend(t *testing.T) {
	t.Parallel()
	text := types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String("x")}
	dead := map[string]types.MessageAttributeValue{"RequestID": text, "ErrorCode": text, "ErrorMessage": text}
	for name, c := range map[string]struct {
		body       string
		attributes map[string]types.MessageAttributeValue
		want       string
	}{
		"failure destination": {
			body: `{"version":"1.0","requestContext":{"requestId":"1","functionArn":"arn:aws:lambda:eu-west-1:1:function:f:$LATEST","condition":"RetriesExhausted"},"requestPayload":{"Records":[]}}`,
			want: "an asynchronous invocation of arn:aws:lambda:eu-west-1:1:function:f:$LATEST that failed: invoke it with --invocation-type Event and its requestPayload, then delete the message",
		},
		"dead-letter queue":             {body: upload, attributes: dead, want: "find the function whose dead-letter queue this is, invoke it with --invocation-type Event and the body, then"},
		"failure destination, Kinesis":  {body: `{"requestContext":{"functionArn":"f"},"KinesisBatchInfo":{"shardId":"1"}}`, want: "read them from the stream by their sequence numbers"},
		"failure destination, DynamoDB": {body: `{"requestContext":{"functionArn":"f"},"DDBStreamBatchInfo":{"shardId":"1"}}`, want: "read them from the stream by their sequence numbers"},
		"another":                       {body: upload, want: "give --to"},
		"no JSON":                       {body: "hello", want: "give --to"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := sqstest.New(t, "dlq")
			m := f.Put("dlq", "", "m1", "", c.body)
			delete(m.Attributes, "DeadLetterQueueSourceArn")
			m.MessageAttributes = c.attributes
			q, err := open(t, f, "dlq")
			if err != nil {
				t.Fatal(err)
			}
			round, err := NewRun(q, &Judge{Store: memstore.New(), Unknown: true}).Next(t.Context())
			if err != nil || len(round) != 1 || round[0].Action != Leave || !strings.Contains(round[0].Why, c.want) {
				t.Errorf("%+v, %v", round, err)
			}
		})
	}
}
