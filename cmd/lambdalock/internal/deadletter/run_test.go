package deadletter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/sqstest"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

const hide = time.Minute

var errCrash = errors.New("the process died")

// byOrder is the judge for a key function SQSBody(Once(ByField(order))).
func byOrder(t *testing.T, store *memstore.Store) *Judge {
	t.Helper()
	order := expect.Value(Template("{{.order}}"))(t)
	return &Judge{Store: store, Namespace: "orders", Name: order, Event: order}
}

// event gives an event a row: completed, or failed.
func event(t *testing.T, store *memstore.Store, id string, completed bool) {
	t.Helper()
	lk := rowtest.Acquire(t, store, "f", time.Hour, lock.Key{Name: id, Event: id})
	end := lk.Release
	if completed {
		end = lk.Complete
	}
	expect.Must(t, end())
}

// open opens the queue with the name, whose messages are sent back to orders.
func open(t *testing.T, f *sqstest.SQS, name string) (*Queue, error) {
	t.Helper()
	return Open(t.Context(), f, name, "", hide)
}

// redrive is a run without questions, until a request fails.
func redrive(t *testing.T, f *sqstest.SQS, name string, j *Judge) ([]Decision, error) {
	t.Helper()
	q, err := open(t, f, name)
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = q.Release(t.Context()) }()
	var all []Decision
	r := NewRun(q, j)
	for {
		round, err := r.Next(t.Context())
		if err != nil || len(round) == 0 {
			return all, err
		}
		err = r.Do(t.Context(), round)
		all = append(all, round...)
		if err != nil {
			return all, err
		}
	}
}

func body(order string) string { return fmt.Sprintf(`{"order":%q}`, order) }

// TestEveryCrash lets the command die before and after each of its requests,
// and runs it again once the messages are visible.
func TestEveryCrash(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"", ".fifo"} {
		for crash := range 200 {
			name := fmt.Sprintf("queue orders%s, request %d", kind, crash)
			died := true
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { died = testCrash(t, kind, crash) })
			})
			if !died {
				if crash < 20 {
					t.Errorf("there are only %d moments to die at", crash)
				}
				break
			}
		}
	}
}

func testCrash(t *testing.T, kind string, crash int) bool {
	f, store := sqstest.New(t, "orders"+kind, "dlq"+kind), memstore.New()
	var want []string
	for i := range 6 {
		id := fmt.Sprint("o", i)
		f.Put("dlq"+kind, "orders"+kind, "m"+id, fmt.Sprint("g", i%2), body(id))
		event(t, store, id, i%3 == 1)
		if i%3 != 1 {
			want = append(want, body(id))
		}
	}
	at := 0
	f.Fault = func(string, bool) error {
		if at++; at > crash {
			return errCrash
		}
		return nil
	}
	_, err := redrive(t, f, "dlq"+kind, byOrder(t, store))
	if died := errors.Is(err, errCrash); !died && at > crash {
		t.Logf("it died while it ended: %v", err)
	}
	died := at > crash
	f.Fault = func(string, bool) error { return nil }
	time.Sleep(hide)
	expect.Value(redrive(t, f, "dlq"+kind, byOrder(t, store)))(t)
	got := f.Bodies("orders" + kind)
	if kind == "" { // it cannot tell what was sent and not deleted
		if more := len(got) - len(want); more > batch {
			t.Errorf("%d messages were sent twice", more)
		}
		slices.Sort(got)
		got = slices.Compact(got)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q were sent, want %q", got, want)
	}
	if left := f.Bodies("dlq" + kind); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
	return died
}

// TestGroupsStayInOrder: what comes after a message that stays, stays, too, and
// other groups do not.
func TestGroupsStayInOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ unsendable, unknown string }{
		"unknown":    {unknown: "a2"},
		"unsendable": {unsendable: "a2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, store := sqstest.New(t, "orders.fifo", "dlq.fifo"), memstore.New()
				for _, id := range []string{"a1", "b1", "a2", "a3", "b2", "a4"} {
					f.Put("dlq.fifo", "orders.fifo", "m"+id, id[:1], body(id))
					if id != c.unknown {
						event(t, store, id, id == "a4")
					}
				}
				if c.unsendable != "" {
					f.Unsendable = body(c.unsendable)
				}
				expect.Value(redrive(t, f, "dlq.fifo", byOrder(t, store)))(t)
				sent, left := f.Bodies("orders.fifo"), f.Bodies("dlq.fifo")
				wantSent, wantLeft := []string{body("a1"), body("b1"), body("b2")}, []string{body("a2"), body("a3")}
				if !slices.Equal(sent, wantSent) || !slices.Equal(left, wantLeft) {
					t.Errorf("sent %q and left %q, want %q and %q", sent, left, wantSent, wantLeft)
				}
				if n := f.Hidden("dlq.fifo"); n > 0 {
					t.Errorf("%d messages stay invisible", n)
				}
			})
		})
	}
}

// TestMessageIsSentUnchanged: all that a sender can set is as it was, except
// for the deduplication id, by which SQS might drop it.
func TestMessageIsSentUnchanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store := sqstest.New(t, "orders.fifo", "dlq.fifo"), memstore.New()
		m := f.Put("dlq.fifo", "orders.fifo", "m1", "jane", body("o1"))
		m.Attributes["AWSTraceHeader"] = "Root=1-5759e988-bd862e3fe1be46a994272793"
		m.Attributes["MessageDeduplicationId"] = "order-17"
		m.MessageAttributes = map[string]types.MessageAttributeValue{"tenant": {DataType: aws.String("String"), StringValue: aws.String("acme")}}
		f.Sent("orders.fifo", "order-17")
		event(t, store, "o1", false)
		expect.Value(redrive(t, f, "dlq.fifo", byOrder(t, store)))(t)
		sent := f.Messages("orders.fifo")
		if len(sent) != 1 {
			t.Fatalf("%d messages were sent", len(sent))
		}
		s := sent[0]
		if *s.Body != *m.Body || *s.MessageAttributes["tenant"].StringValue != "acme" ||
			s.Attributes["MessageGroupId"] != "jane" || s.Attributes["AWSTraceHeader"] != m.Attributes["AWSTraceHeader"] {
			t.Errorf("sent %+v", s)
		}
	})
}

// TestRunEnds: what stays, and what fails again soon, is not seen again in
// the same run, however long that takes.
func TestRunEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store := sqstest.New(t, "orders", "dlq"), memstore.New()
		f.Put("dlq", "orders", "m0", "", "no JSON")
		for i := range 30 {
			id := fmt.Sprint("o", i)
			f.Put("dlq", "orders", "m"+id, "", body(id))
			event(t, store, id, false)
		}
		f.Fault = func(operation string, applied bool) error {
			if operation == "DeleteMessageBatch" && applied {
				time.Sleep(hide / 10)
				f.Move("orders", "dlq")
			}
			return nil
		}
		all, err := redrive(t, f, "dlq", byOrder(t, store))
		if err != nil || len(all) != 31 || f.Hidden("dlq") > 0 {
			t.Errorf("%d messages, %d are invisible, error %v", len(all), f.Hidden("dlq"), err)
		}
	})
}

// TestAnswerComesLate: nothing is done with a message that others may see, or
// whose event was completed meanwhile.
func TestAnswerComesLate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, store *memstore.Store)
		why       string
	}{
		"too late":  {func(*testing.T, *memstore.Store) { time.Sleep(hide * 4 / 5) }, "too late"},
		"completed": {func(t *testing.T, store *memstore.Store) { event(t, store, "o1", true) }, "changed meanwhile: completed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, store := sqstest.New(t, "orders.fifo", "dlq.fifo"), memstore.New()
				for _, id := range []string{"o1", "o2"} {
					f.Put("dlq.fifo", "orders.fifo", "m"+id, "jane", body(id))
					event(t, store, id, false)
				}
				q := expect.Value(open(t, f, "dlq.fifo"))(t)
				r := NewRun(q, byOrder(t, store))
				round, err := r.Next(t.Context())
				if err != nil || len(round) != 2 || round[0].Action != Send || round[1].Action != Send {
					t.Fatalf("%+v, %v", round, err)
				}
				c.meanwhile(t, store)
				expect.OK(t, r.Do(t.Context(), round))
				if round[0].Action != Leave || !strings.Contains(round[0].Why, c.why) || round[1].Action != Leave || round[0].To+round[1].To != "" || len(f.Bodies("orders.fifo")) > 0 {
					t.Errorf("%+v", round)
				}
			})
		})
	}
}

// TestGivesUp: what is wrong with every message ends the run, and nothing is
// sent after messages that could not be deleted.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		completed int // of 30
		fault     func(operation string, applied bool) error
		refuses   func(operation, id string) bool
		err       string // empty: it does not give up
		left      int
		sent      int
		deletions int // requests; 0: any number
	}{
		"nothing can be sent": {fault: func(operation string, _ bool) error {
			if operation == "SendMessageBatch" {
				return &types.RequestThrottled{}
			}
			return nil
		}, err: "gave up after 10 failures, the last one: not sent: queue", left: 30},
		"one of two can be sent": {refuses: func(operation, body string) bool {
			return operation == "SendMessageBatch" && strings.ContainsAny(body, "13579")
		}, left: 20, sent: 10},
		"ten cannot be deleted": {
			completed: 20, refuses: func(operation, _ string) bool { return operation == "DeleteMessageBatch" },
			err: "gave up after 10 failures, the last one: not deleted, so it is still in the dead-letter queue", left: 30, deletions: 1,
		},
		"no answer to a deletion": {completed: 5, fault: func(operation string, applied bool) error {
			if operation == "DeleteMessageBatch" && !applied {
				return errors.New("connection reset by peer")
			}
			return nil
		}, err: "gave up: perhaps still in the dead-letter queue", left: 30, deletions: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, store := sqstest.New(t, "orders", "dlq"), memstore.New()
				for i := range 30 {
					id := fmt.Sprint("o", i)
					f.Put("dlq", "orders", "m"+id, "", body(id))
					event(t, store, id, i < c.completed)
				}
				if c.fault != nil {
					f.Fault = c.fault
				}
				f.Fail = func(operation, id string) *types.BatchResultErrorEntry {
					if c.refuses == nil || !c.refuses(operation, id) {
						return nil
					}
					return &types.BatchResultErrorEntry{Code: aws.String("InvalidMessageContents"), SenderFault: true}
				}
				_, err := redrive(t, f, "dlq", byOrder(t, store))
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want %q", err, c.err)
				}
				left, sent, deletions := len(f.Bodies("dlq")), len(f.Bodies("orders")), f.Requests["DeleteMessageBatch"]
				if left != c.left || sent != c.sent || c.deletions > 0 && deletions != c.deletions {
					t.Errorf("%d are left and %d sent after %d requests to delete", left, sent, deletions)
				}
			})
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	f := sqstest.New(t, "orders", "dlq", "orders.fifo")
	f.Source = "orders"
	for name, c := range map[string]struct{ queue, to, want string }{
		"no such queue":  {"dead", "", "there is no queue dead in this account and Region"},
		"itself":         {"dlq", sqstest.ARNPrefix + "dlq", "the dead-letter queue itself"},
		"another Region": {strings.Replace(sqstest.ARNPrefix, "eu-west-1", "us-east-1", 1) + "dlq", "", "is not in the Region that was asked"},
		"the source":     {"orders", "", `orders has a dead-letter queue: {"deadLetterTargetArn":"`},
		"another kind":   {"dlq", "orders.fifo", "one of the queues is a FIFO queue"},
	} {
		if _, err := Open(t.Context(), f, c.queue, c.to, hide); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := Open(t.Context(), f, "dlq", "orders", hide); err != nil {
		t.Errorf("sending to a queue that has a dead-letter queue: %v", err)
	}
}
