package operate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/deadletter"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
)

const failedFunction = "arn:aws:lambda:eu-west-1:123456789012:function:thumbnails:prod"

// fails puts an order that failed in an asynchronous invocation into the queue.
func (f *redriveTest) fails(t *testing.T, id string, completed bool) {
	t.Helper()
	f.failed("r-"+id, id)
	event := "x"
	if completed {
		event = id
	}
	rowtest.Complete(t, f.store, lock.Key{Name: id, Event: event}, nil)
}

// failed puts the order of a request into the queue, as the message of a
// failure destination.
func (f *redriveTest) failed(request, id string) {
	m := f.Put("dlq", "", id, "", fmt.Sprintf(`{"requestContext":{"requestId":%q,"functionArn":%q,"condition":"RetriesExhausted"},"requestPayload":{"order":%q}}`, request, failedFunction, id))
	delete(m.Attributes, "DeadLetterQueueSourceArn")
}

// runAsync is run for orders, with the question that was asked.
func (f *redriveTest) runAsync(ctx context.Context, t *testing.T) (said, asked string, err error) {
	t.Helper()
	q := expect.Value(deadletter.Open(ctx, f, "dlq", "", f.command.Hide))(t)
	order := expect.Value(deadletter.Template("{{.order}}"))(t)
	judge := &deadletter.Judge{Store: f.store, Namespace: "orders", Name: order, Event: order, Functions: deadletter.Functions{Client: f, ARN: failedFunction}}
	var out strings.Builder
	err = f.command.redrive(ctx, q, judge, &out, &out, func(_ context.Context, question string) error {
		asked = question
		return nil
	})
	return out.String(), asked, err
}

// TestRedriveInvokes: what is printed and asked about asynchronous invocations,
// also beside messages of a queue, and if the run ends early. Then the next one
// goes on. O4
func TestRedriveInvokes(t *testing.T) {
	t.Parallel()
	const asks = "Delete 1, and invoke " + failedFunction + " with 21?"
	for name, c := range map[string]struct {
		command  Redrive
		queued   bool // there is a message of a queue, too
		at       int  // invocation, from 1
		fault    func(cancel context.CancelCauseFunc, applied bool) error
		question string
		says     []string
		status   int
		json     bool
	}{
		"all":            {question: asks, says: []string{"invoke  m0 ", "1 deleted, 0 sent, 21 invoked, 0 left."}},
		"with a queue's": {queued: true, question: "Delete 1, send 1, and invoke " + failedFunction + " with 21?", says: []string{"send    ", "1 deleted, 1 sent, 21 invoked, 0 left."}},
		"a dry run":      {command: Redrive{DryRun: true}, says: []string{"Would be: 1 deleted, 0 sent, 21 invoked, 0 left."}},
		"JSON":           {command: Redrive{jsonFlag: jsonFlag{true}}, question: asks, says: []string{`"action":"invoke","why":"nobody holds the name, and the event is not remembered","to":"` + failedFunction + `","sent":"yes","done":true}`}},
		"Ctrl-C":         {at: 5, fault: func(cancel context.CancelCauseFunc, _ bool) error { cancel(errors.New("interrupted")); return nil }, question: asks, says: []string{"1 deleted, 0 sent, 5 invoked, 16 left. It ended early"}, status: 69},
		"throttled": {at: 5, fault: func(context.CancelCauseFunc, bool) error {
			return &smithy.GenericAPIError{Code: "TooManyRequestsException", Fault: smithy.FaultClient}
		}, question: asks, says: []string{"m4 stays: not invoked: function thumbnails:prod: ", "1 deleted, 0 sent, 4 invoked, 17 left. It ended early"}, status: 69},
		"connection lost": {at: 5, fault: func(_ context.CancelCauseFunc, applied bool) error {
			return map[bool]error{true: errors.New("EOF")}[applied]
		}, question: asks, says: []string{"m4 stays: perhaps invoked, and still in the dead-letter queue: ", "1 deleted, 0 sent, 4 invoked, 17 perhaps invoked and still here, 0 left."}, status: 69},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newRedriveTest(t, 0, 0)
				c.command.Hide = f.command.Hide
				f.command = c.command
				for i := range 21 {
					f.fails(t, fmt.Sprint("m", i), false)
				}
				f.fails(t, "done", true)
				if c.queued {
					f.Put("dlq", "orders", "queued", "", `{"order":"m0"}`)
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				f.Fault = func(operation string, applied bool) error {
					if operation != "Invoke" || c.fault == nil || f.Requests[operation] < c.at {
						return nil
					}
					return c.fault(cancel, applied)
				}
				said, asked, err := f.runAsync(ctx, t)
				if status(trouble(err)) != c.status || asked != c.question {
					t.Errorf("status %d, asked %q, error %v\n%s", status(trouble(err)), asked, err, said)
				}
				for _, want := range c.says {
					if !strings.Contains(said, want) {
						t.Errorf("it does not say %q:\n%s", want, said)
					}
				}
				if n := f.Hidden("dlq"); n > 0 {
					t.Errorf("%d messages are invisible", n)
				}
				f.Fault, f.command = func(string, bool) error { return nil }, Redrive{Hide: f.command.Hide}
				if _, _, err := f.runAsync(t.Context(), t); err != nil {
					t.Error(err)
				}
				events := map[string]bool{}
				for _, i := range f.Invoked {
					events[i.Event] = true
				}
				if left := f.Bodies("dlq"); len(left) > 0 || len(events) != 21 {
					t.Errorf("%d are left, %d events were invoked", len(left), len(events))
				}
			})
		})
	}
}

// TestRedriveCountsWhatFailsAgain: a message that comes back while the command
// runs, because its event failed again, is in the queue in the end.
func TestRedriveCountsWhatFailsAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		put, again func(f *redriveTest)
		says       string
	}{
		"sent": {
			func(f *redriveTest) { f.Put("dlq", "orders", "queued", "", `{"order":"m0"}`) },
			func(f *redriveTest) { f.Move("orders", "dlq") },
			"0 deleted, 1 sent, 1 left: 1 failed again.",
		},
		"invoked": {
			func(f *redriveTest) { f.failed("r-m0", "m0") },
			func(f *redriveTest) { f.failed(f.Invoked[0].RequestID, "again") },
			"0 deleted, 0 sent, 1 invoked, 1 left: 1 failed again.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newRedriveTest(t, 0, 0)
				rowtest.Complete(t, f.store, lock.Key{Name: "m0", Event: "x"}, nil)
				c.put(f)
				f.Fault = func(operation string, applied bool) error {
					if operation == "DeleteMessageBatch" && applied {
						c.again(f)
					}
					return nil
				}
				said, _, err := f.runAsync(t.Context(), t)
				if status(err) != 1 || !strings.Contains(said, c.says) || len(f.Bodies("dlq")) != 1 || f.Hidden("dlq") > 0 {
					t.Errorf("status %d, %v, %d are here\n%s", status(err), err, len(f.Bodies("dlq")), said)
				}
			})
		})
	}
}
