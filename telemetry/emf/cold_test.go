package emf_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
	"github.com/lambdalock/lambdalock/telemetry/emf"
)

// TestColdStart shows that the first invocation of a process is marked, and a
// later one is not, even if the first had nothing to write.
func TestColdStart(t *testing.T) {
	const variable = "EMF_TEST_COLD"
	bodies := os.Getenv(variable)
	if bodies == "" { // other tests have warmed this process
		for bodies, want := range map[string]string{"do": "true", "do do": "true,false", "ignore do": "false"} {
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestColdStart$", "-test.v")
			c.Env = append(os.Environ(), variable+"="+bodies)
			out, err := c.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "cold: "+want+"\n") {
				t.Errorf("%s: %v, want cold: %s\n%s", bodies, err, want, out)
			}
		}
		return
	}
	o := &output{}
	key := func(ctx context.Context, m events.SQSMessage) (lock.Key, error) {
		if m.Body == "ignore" {
			return lock.Key{}, keyfuncs.ErrIgnore
		}
		return keyfuncs.SQSMessage(ctx, m)
	}
	h := middleware.WithLock(key, func(context.Context, events.SQSMessage) error { return nil }, middleware.Store(memstore.New()), noLog, emf.Metrics(&emf.Options{Output: o}))
	for body := range strings.FieldsSeq(bodies) {
		expect.OK(t, h(t.Context(), events.SQSMessage{MessageId: "m", EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-central-1:1:q", Body: body}))
	}
	var cold []string
	for _, line := range o.lines {
		if strings.Contains(line, `"cold_start":true`) {
			cold = append(cold, "true")
		} else {
			cold = append(cold, "false")
		}
	}
	t.Logf("cold: %s", strings.Join(cold, ","))
}
