package operate

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/deadletter"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/sqstest"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestRedrive: what is printed and asked, which status it has, and that what
// stays is visible again.
func TestRedrive(t *testing.T) {
	t.Parallel()
	interrupted, stop := context.WithCancelCause(context.Background())
	stop(context.Canceled)
	for name, c := range map[string]struct {
		ctx      context.Context // empty: the test's
		command  Redrive
		left     bool // there is a message that stays
		answer   error
		question string // empty: there is none
		status   int
		says     []string
		sent     int
	}{
		"yes":             {question: "Delete 1, and send 1?", says: []string{"send    m-open", "delete  m-done", "1 deleted, 1 sent, 0 left."}, sent: 1},
		"one stays":       {left: true, question: "Delete 1, and send 1?", status: 1, says: []string{"leave   m-none", "there is no row", "1 deleted, 1 sent, 1 left."}, sent: 1},
		"all are sent":    {left: true, command: Redrive{Unknown: true}, question: "Delete 1, and send 2?", sent: 2},
		"no":              {answer: no("nothing was changed"), question: "Delete 1, and send 1?", status: 1, says: []string{"0 deleted, 0 sent, 2 left."}},
		"a dry run":       {command: Redrive{DryRun: true}, says: []string{"delete  m-done          orders/sqs/m-done  m-done", "Would be: 1 deleted, 1 sent, 0 left."}},
		"JSON":            {command: Redrive{jsonFlag: jsonFlag{true}}, question: "Delete 1, and send 1?", says: []string{`"action":"send","why":"nobody holds the name, and the event is not remembered","to":"arn:aws:sqs:eu-west-1:123456789012:orders","sent":"yes","done":true}`}, sent: 1},
		"JSON, a dry run": {command: Redrive{jsonFlag: jsonFlag{true}, DryRun: true}, says: []string{`"done":false}`}},
		"interrupted":     {ctx: interrupted, status: 69},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, store := sqstest.New(t, "orders", "dlq"), memstore.New()
				messages := 2
				if c.left {
					messages++
					f.Put("dlq", "orders", "m-none", "", `{}`)
				}
				for _, id := range []string{"open", "done"} {
					f.Put("dlq", "orders", "m-"+id, "", `{}`)
					rowtest.Complete(t, store, lock.Key{Name: "sqs/m-" + id, Event: map[string]string{"open": "x", "done": "m-done"}[id]}, nil)
				}
				q, err := deadletter.Open(t.Context(), f, "dlq", "", time.Minute)
				if err != nil {
					t.Fatal(err)
				}
				ctx := c.ctx
				if ctx == nil {
					ctx = t.Context()
				}
				var out strings.Builder
				asked := ""
				err = c.command.redrive(ctx, q, &deadletter.Judge{Store: store, Namespace: "orders", Unknown: c.command.Unknown}, &out, &out, func(_ context.Context, question string) error {
					asked = question
					return c.answer
				})
				if status(trouble(err)) != c.status || asked != c.question {
					t.Errorf("status %d, asked %q, error %v\n%s", status(trouble(err)), asked, err, out.String())
				}
				for _, want := range c.says {
					if !strings.Contains(out.String(), want) {
						t.Errorf("it does not say %q:\n%s", want, out.String())
					}
				}
				if sent, kept := len(f.Bodies("orders")), len(f.Bodies("dlq")); sent != c.sent || c.sent == 0 && kept != messages || f.Hidden("dlq") > 0 {
					t.Errorf("%d were sent, %d stay, %d are invisible", sent, kept, f.Hidden("dlq"))
				}
			})
		})
	}
}

// TestRedriveRefusesFlags: what makes no sense is refused before SQS is asked.
func TestRedriveRefusesFlags(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Redrive{
		"--json cannot ask":                             {Hide: time.Minute, jsonFlag: jsonFlag{true}},
		"--hide 999ms: SQS takes 1s to 12h":             {Hide: 999 * time.Millisecond},
		"--hide 12h0m1s: SQS takes 1s to 12h":           {Hide: 12*time.Hour + time.Second},
		"leave one out":                                 {Hide: time.Minute, Key: "SQSMessage", Name: "x"},
		"--event needs --key or --name":                 {Hide: time.Minute, Event: "x"},
		"the same for every message":                    {Hide: time.Minute, Name: "{{.order}}", Event: "4711"},
		"choose one of SQSMessage, SQSFIFOMessage":      {Hide: time.Minute, Key: "S3Objekt"},
		"--name: template: :1: unclosed action":         {Hide: time.Minute, Name: "{{.a"},
		"--event: template: :1: function \"a\" not def": {Hide: time.Minute, Name: "x", Event: "{{a}}"},
	} {
		if _, err := c.judge(); status(err) != 64 || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for _, c := range []Redrive{
		{Hide: time.Second},
		{Hide: time.Second, Key: "S3Object"},
		{Hide: time.Second, Key: "S3LatestRecord"},
		{Hide: time.Second, Key: "services.CloudWatchAlarm"},
		{Hide: 12 * time.Hour},
		{Hide: time.Minute, jsonFlag: jsonFlag{true}, DryRun: true},
		{Hide: time.Minute, jsonFlag: jsonFlag{true}, confirmation: confirmation{Yes: true}},
	} {
		if _, err := c.judge(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestRedriveReportsFailures: a message that cannot be sent is named, and one
// that was completed meanwhile, and the status says that they stay.
func TestRedriveReportsFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store := sqstest.New(t, "orders", "dlq"), memstore.New()
		for i := range 3 {
			id := fmt.Sprint("m", i)
			f.Put("dlq", "orders", id, "", id)
			rowtest.Complete(t, store, lock.Key{Name: "sqs/" + id, Event: "x"}, nil)
		}
		f.Unsendable = "m1"
		f.Fault = func(operation string, _ bool) error {
			if operation == "ChangeMessageVisibilityBatch" {
				return sqstest.Denied("sqs:ChangeMessageVisibility")
			}
			return nil
		}
		q, err := deadletter.Open(t.Context(), f, "dlq", "", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		err = (&Redrive{Hide: time.Minute}).redrive(t.Context(), q, &deadletter.Judge{Store: store, Namespace: "orders"}, &out, &out, func(context.Context, string) error {
			rowtest.Complete(t, store, lock.Key{Name: "sqs/m2", Event: "m2"}, nil)
			return nil
		})
		for _, want := range []string{"m1 stays: not sent: queue " + sqstest.ARNPrefix + "orders: ", "m2 stays: changed meanwhile: ", "0 deleted, 1 sent, 2 left.", "2 of the messages that stay are invisible for up to 1m0s: "} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("it does not say %q:\n%s", want, out.String())
			}
		}
		if status(err) != 1 {
			t.Error(err)
		}
	})
}

// TestRedriveSaysWhatIsInFlight: an empty round does not mean an empty queue.
func TestRedriveSaysWhatIsInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := sqstest.New(t, "orders", "dlq")
		f.Put("dlq", "orders", "m1", "", `{}`)
		open := func() *deadletter.Queue {
			q := expect.Value(deadletter.Open(t.Context(), f, "dlq", "", time.Minute))(t)
			return q
		}
		if _, err := open().Receive(t.Context()); err != nil { // and dies
			t.Fatal(err)
		}
		var out strings.Builder
		err := (&Redrive{}).redrive(t.Context(), open(), &deadletter.Judge{Store: memstore.New()}, &out, &out, answering(nil, nil))
		if status(err) != 1 || !strings.Contains(err.Error(), "1 of the messages were in flight") {
			t.Errorf("got %v, want that it was in flight", err)
		}
		for _, want := range []string{"dlq has about 0 messages, and 1 in flight, invisible until deleted or back.\n", "0 left. Run it again when the 1 in flight are back.\n"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("it does not say %q:\n%s", want, out.String())
			}
		}
	})
}
