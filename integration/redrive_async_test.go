//go:build unix

package integration_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

const ordersFunction = "arn:aws:lambda:" + servers.Region + ":123456789012:function:orders:prod"

// TestRedriveAsynchronous kills lambdalock redrive at requests of chance while
// it empties the queue of an asynchronous function: half of the messages are
// those of a failure destination, and half those of a dead-letter queue. The
// function gets every event that was not completed, byte for byte, and with the
// lock runs each once. F1
func TestRedriveAsynchronous(t *testing.T) {
	t.Parallel()
	r := newRedriveTest(t, buildCommand(t), "")
	events, taken := map[string]bool{}, []string{}
	r.failed = func(e *types.SendMessageBatchRequestEntry, i int) {
		event := strings.Replace(*e.MessageBody, ",", " ,\n\t", 1) // as nobody encodes it
		events[event] = true
		if i%2 == 0 {
			record := fmt.Sprintf(`{"version":"1.0","requestContext":{"requestId":"r%d","functionArn":%q,"condition":"RetriesExhausted"},"requestPayload":%s,"responsePayload":null}`, i, ordersFunction, event)
			e.MessageBody = &record
			return
		}
		text := func(kind, text string) types.MessageAttributeValue {
			return types.MessageAttributeValue{DataType: &kind, StringValue: &text}
		}
		e.MessageBody = &event
		e.MessageAttributes = map[string]types.MessageAttributeValue{"RequestID": text("String", fmt.Sprint("r", i)), "ErrorCode": text("Number", "200"), "ErrorMessage": text("String", "failed")}
	}
	r.fill()
	functions := httptest.NewServer(r.takeEvents(r.attribute("QueueArn"), &taken))
	t.Cleanup(functions.Close)
	r.functions = functions.URL
	r.args = []string{"--function", ordersFunction, r.dead}
	r.empty()
	for _, event := range taken {
		var m deadLetter
		expect.Must(t, json.Unmarshal([]byte(event), &m))
		if !events[event] {
			t.Errorf("the function got other bytes: %q", event)
		}
		r.deliver(&m)
	}
	r.checkRuns()
	if r.twice > redriveKill*10 {
		t.Errorf("%d events were delivered twice", r.twice)
	}
	if n := r.attribute("ApproximateNumberOfMessages"); n != "0" {
		t.Errorf("%s messages are left", n)
	}
	t.Logf("%d requests, %d events, %d of them twice", r.requests, len(taken), r.twice)
}

// attribute returns an attribute of the dead-letter queue.
func (r *redriveTest) attribute(name types.QueueAttributeName) string {
	r.t.Helper()
	in := &sqs.GetQueueAttributesInput{QueueUrl: &r.dead, AttributeNames: []types.QueueAttributeName{name}}
	return expect.Value(r.client.GetQueueAttributes(r.t.Context(), in))(r.t).Attributes[string(name)]
}

// takeEvents is Lambda for the function, as far as redrive asks it: moto would
// need Docker. It notes what it took before it answers.
func (r *redriveTest) takeEvents(dead string, taken *[]string) http.HandlerFunc {
	return func(w http.ResponseWriter, in *http.Request) {
		event, err := io.ReadAll(in.Body)
		if err != nil {
			return // it was killed while it asked
		}
		status, answer := http.StatusAccepted, ""
		switch path := strings.TrimPrefix(in.URL.Path, "/2015-03-31/functions/"+ordersFunction); {
		case path == "/configuration":
			status, answer = http.StatusOK, fmt.Sprintf(`{"FunctionName":"orders","FunctionArn":%q,"DeadLetterConfig":{"TargetArn":%q}}`, ordersFunction, dead)
		case path == "/invocations" && in.Header.Get("X-Amz-Invocation-Type") == "Event":
			r.mu.Lock()
			*taken = append(*taken, string(event))
			r.mu.Unlock()
		default:
			r.t.Errorf("%s %s %s", in.Method, in.URL.Path, in.Header.Get("X-Amz-Invocation-Type"))
		}
		if r.note("", nil) {
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}
}
