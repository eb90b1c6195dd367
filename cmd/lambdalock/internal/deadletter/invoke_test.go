package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/sqstest"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// eventsOf has the bytes of events as Lambda took them, each once.
func eventsOf(f *sqstest.SQS) (once []string, twice int) {
	for _, i := range f.Invoked {
		if once = append(once, i.Event); i.Function != thumbnails+":prod" {
			once = append(once, "for "+i.Function)
		}
	}
	n := len(once)
	slices.Sort(once)
	once = slices.Compact(once)
	return once, n - len(once)
}

// TestInvokeEveryCrash lets the command die before and after each of its
// requests, and runs it again: every event that was not completed is taken,
// with the bytes that the queue has, and at most ten are taken twice. F1
func TestInvokeEveryCrash(t *testing.T) {
	t.Parallel()
	for crash := range 200 {
		died := true
		t.Run(fmt.Sprintf("request %d", crash), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { died = testInvokeCrash(t, crash) })
		})
		if !died {
			if crash < 40 {
				t.Errorf("there are only %d moments to die at", crash)
			}
			break
		}
	}
}

func testInvokeCrash(t *testing.T, crash int) bool {
	f, store := sqstest.New(t, "dlq"), memstore.New()
	var want []string
	for i := range 24 {
		key := fmt.Sprintf("k%02d", i)
		function, event := thumbnails+":prod", "0055"
		if i%2 == 0 {
			function = ""
		}
		if i%3 > 0 {
			event = "0044"
			want = append(want, uploaded(key))
		}
		failedEvent(f, fmt.Sprint("r", i), function, uploaded(key))
		rowtest.Complete(t, store, lock.Key{Name: "s3/b/" + key, Event: event}, nil)
	}
	j := &Judge{Store: store, Namespace: "orders", Functions: Functions{Client: f, ARN: thumbnails + ":prod", DeadLetterQueue: sqstest.ARNPrefix + "dlq"}}
	at := 0
	f.Fault = func(string, bool) error {
		if at++; at > crash {
			return errCrash
		}
		return nil
	}
	_, _ = redrive(t, f, "dlq", j)
	died := at > crash
	f.Fault = func(string, bool) error { return nil }
	time.Sleep(hide)
	expect.Value(redrive(t, f, "dlq", j))(t)
	if got, twice := eventsOf(f); !slices.Equal(got, want) || twice > batch {
		t.Errorf("%d were taken twice; took %q, want %q", twice, got, want)
	}
	if left := f.Bodies("dlq"); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
	return died
}

// TestInvokeEnds: an event that fails again at once comes back as another
// message, and is not invoked again by the same run.
func TestInvokeEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := sqstest.New(t, "dlq")
		for i := range 30 {
			failedEvent(f, fmt.Sprint("r", i), thumbnails, fmt.Sprint(i))
		}
		back := 0
		f.Fault = func(operation string, applied bool) error {
			if operation == "DeleteMessageBatch" && applied {
				for ; back < min(len(f.Invoked), 60); back++ {
					failedEvent(f, f.Invoked[back].RequestID, thumbnails, f.Invoked[back].Event)
				}
			}
			return nil
		}
		all, err := redrive(t, f, "dlq", &Judge{Store: memstore.New(), Unknown: true, Functions: Functions{Client: f, ARN: thumbnails}})
		if err != nil || len(all) != 30 || len(f.Invoked) != 30 || len(f.Bodies("dlq")) != 30 || f.Hidden("dlq") > 0 {
			t.Errorf("%d messages, %d invocations, %d are here, %d invisible, error %v", len(all), len(f.Invoked), len(f.Bodies("dlq")), f.Hidden("dlq"), err)
		}
	})
}

// TestInvokeFails: what Lambda refuses stays, one after the other or all of it,
// and what it took is deleted, whatever came in between.
func TestInvokeFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault    func(cancel context.CancelCauseFunc, number int, applied bool) error
		err      string // empty: none
		left     int    // of 30
		invoked  int
		perhaps  int
		requests int // to invoke
	}{
		"nothing": {fault: func(context.CancelCauseFunc, int, bool) error { return nil }, invoked: 30, requests: 30},
		"denied": {fault: func(_ context.CancelCauseFunc, n int, _ bool) error {
			if n == 6 {
				return sqstest.Denied("lambda:InvokeFunction")
			}
			return nil
		}, err: "gave up, because a permission is missing: not invoked: function thumbnails", left: 25, invoked: 5, requests: 6},
		"throttled": {fault: func(context.CancelCauseFunc, int, bool) error {
			return &smithy.GenericAPIError{Code: "TooManyRequestsException", Fault: smithy.FaultClient}
		}, err: "gave up after 10 failures, the last one: not invoked: function thumbnails", left: 30, requests: 10},
		"every other is too large": {fault: func(_ context.CancelCauseFunc, n int, applied bool) error {
			if n%2 == 0 && !applied {
				return &smithy.GenericAPIError{Code: "RequestTooLargeException", Fault: smithy.FaultClient}
			}
			return nil
		}, left: 15, invoked: 15, requests: 30},
		"an answer is lost": {fault: func(_ context.CancelCauseFunc, n int, applied bool) error {
			if n == 4 && applied {
				return errors.New("connection reset by peer")
			}
			return nil
		}, left: 1, invoked: 30, perhaps: 1, requests: 30},
		"interrupted": {fault: func(cancel context.CancelCauseFunc, n int, applied bool) error {
			if n == 7 && applied {
				cancel(errCrash)
			}
			return nil
		}, err: errCrash.Error(), left: 23, invoked: 7, requests: 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := sqstest.New(t, "dlq")
				for i := range 30 {
					failedEvent(f, fmt.Sprint("r", i), thumbnails, fmt.Sprint(i))
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				f.Fault = func(operation string, applied bool) error {
					if operation != "Invoke" {
						return nil
					}
					return c.fault(cancel, f.Requests["Invoke"], applied)
				}
				q, err := open(t, f, "dlq")
				if err != nil {
					t.Fatal(err)
				}
				r := NewRun(q, &Judge{Store: memstore.New(), Unknown: true, Functions: Functions{Client: f, ARN: thumbnails}})
				round := expect.Value(r.Next(ctx))(t)
				err = r.Do(ctx, round)
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want %q", err, c.err)
				}
				perhaps := 0
				for i := range round {
					if round[i].Sent == Perhaps {
						perhaps++
					}
					if d := &round[i]; d.Done != (d.Sent == Yes) || d.Sent == Perhaps && !strings.HasPrefix(d.Error, "perhaps invoked, and still in the dead-letter queue: ") {
						t.Errorf("%+v", d)
					}
				}
				if left, n := len(f.Bodies("dlq")), f.Requests["Invoke"]; left != c.left || len(f.Invoked) != c.invoked || perhaps != c.perhaps || n != c.requests {
					t.Errorf("%d are left, %d invoked, %d perhaps, with %d requests", left, len(f.Invoked), perhaps, n)
				}
			})
		})
	}
}
