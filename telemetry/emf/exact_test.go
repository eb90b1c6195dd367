package emf_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
	"github.com/lambdalock/lambdalock/telemetry/emf"
)

var errHandler = errors.New("handler")

// TestCountersAreExact shows that the lines add up to what happened to 100,000
// messages, as the handlers, the store and the partial answers saw it.
func TestCountersAreExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		requests := &counting{Plan: &fault.Script{}}
		chance := rand.New(rand.NewPCG(1, 2))
		var mu sync.Mutex
		want := map[string]int{}
		add := func(name string, n int) {
			mu.Lock()
			defer mu.Unlock()
			want[name] += n
		}
		completed := map[string]bool{}
		handler := func(_ context.Context, m events.SQSMessage) error {
			add("AcquireTime", 1)
			add("HoldTime", 1)
			switch m.Attributes["does"] {
			case "fails":
				add("HandlerFailed", 1)
				add("Released", 1)
				return errHandler
			case "panics":
				add("HandlerFailed", 1)
				add("Released", 1)
				panic(errHandler)
			}
			add("Completed", 1)
			mu.Lock()
			defer mu.Unlock()
			completed[m.MessageId] = true
			return nil
		}
		each := middleware.EachSQSMessage(keyfuncs.SQSMessage, handler, middleware.Store(fault.NewStore(memstore.New(), requests, &fault.Kept{})), middleware.Namespace("shop"), noLog, emf.Metrics(&emf.Options{Output: &out}))
		const size = 50 // few enough that every time is written
		batches := 2000
		if testing.Short() {
			batches = 200
		}
		for batch := range batches {
			var e events.SQSEvent
			for i := range size {
				m := events.SQSMessage{MessageId: fmt.Sprint(batch*size + i), EventSourceARN: "arn:aws:sqs:eu-west-1:123456789012:q", EventSource: "aws:sqs"}
				switch chance.IntN(8) {
				case 0:
					m.MessageId = fmt.Sprint(chance.IntN(batch*size + 1)) // a duplicate, or none, or twice in this batch
				case 1:
					m.Attributes = map[string]string{"does": "fails"}
				case 2:
					m.Attributes = map[string]string{"does": "panics"}
				case 3:
					m.MessageId = ""
				}
				e.Records = append(e.Records, m)
			}
			before := maps.Clone(completed)
			runs := want["Completed"]
			_, _ = each(t.Context(), e)
			succeeded := 0
			for _, m := range e.Records {
				switch {
				case m.MessageId == "":
					add("Refused", 1)
				case before[m.MessageId]:
					add("Duplicates", 1)
				case m.Attributes == nil:
					succeeded++
				}
			}
			// Of the same message twice in a batch, the second is a duplicate.
			add("Duplicates", succeeded-(want["Completed"]-runs))
		}
		add("StoreRequests", requests.n)
		if got := out.sum(t); !maps.Equal(got, want) {
			t.Errorf("wrote %v\nwant  %v", got, want)
		}
	})
}

// TestCountersAreExactUnderFaults shows that the lines add up to what the
// observer and the store saw while one request in ten met a fault, in batches
// and with wrappers inside each other.
func TestCountersAreExactUnderFaults(t *testing.T) { // F1, F2, F63
	synctest.Test(t, func(t *testing.T) {
		var out output
		requests := &counting{Plan: fault.Usual(1, 100).Client(1)}
		var mu sync.Mutex
		want := map[string]int{}
		observe := middleware.Observe(func(_ context.Context, o lock.Observation) {
			mu.Lock()
			defer mu.Unlock()
			want[string(o.Outcome)] += max(1, o.Records)
			if o.Completed {
				want["Completed"]++
			}
		})
		handler := func(_ context.Context, m events.SQSMessage) error {
			if m.MessageId[0] == '7' {
				return errHandler
			}
			return nil
		}
		opts := []middleware.Option{middleware.Store(fault.NewStore(memstore.New(), requests, &fault.Kept{})), middleware.Namespace("shop"), noLog, observe, emf.Metrics(&emf.Options{Output: &out})}
		inner := middleware.WithLock(keyfuncs.ByField(func(m events.SQSMessage) string { return m.Body }), handler, append(opts, middleware.OnHeld(middleware.Wait(time.Second)))...)
		each := middleware.EachSQSMessage(keyfuncs.SQSMessage, inner, opts...)
		for batch := range 300 {
			var e events.SQSEvent
			for i := range 100 {
				e.Records = append(e.Records, events.SQSMessage{MessageId: fmt.Sprint(batch*100 + i*(batch%2)), Body: fmt.Sprint("customer", i%30), EventSourceARN: "arn:aws:sqs:eu-west-1:123456789012:q"})
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, _ = each(ctx, e)
			cancel()
		}
		got := out.sum(t)
		if got["StoreRequests"] != requests.n || got["Completed"] != want["Completed"] || got["Released"] != want["released"]-want["Completed"] ||
			got["Contended"]+got["InProgress"] != want["held"] {
			t.Errorf("%d requests; wrote %v, observed %v", requests.n, got, want)
		}
		for name, outcome := range map[string]string{
			"Duplicates": "already_completed", "Stale": "stale", "Mismatched": "mismatch", "Interrupted": "interrupted", "Refused": "refused", "TakenOver": "taken_over", "Lost": "lost",
			"CompleteFailed": "complete_failed", "Forgotten": "forgotten", "Unlocked": "unlocked", "StoreFailed": "store_failed",
			"HandlerFailed": "handler_failed", "NotBegun": "not_begun", "Overdue": "overdue",
		} {
			if got[name] != want[outcome] {
				t.Errorf("%s is %d, but %d were %s", name, got[name], want[outcome], outcome)
			}
		}
		for _, some := range []string{"Duplicates", "StoreFailed", "HandlerFailed", "Contended"} {
			if got[some] == 0 {
				t.Errorf("no %s in %v", some, got)
			}
		}
	})
}

// counting counts the requests that a plan is asked about.
type counting struct {
	fault.Plan
	mu sync.Mutex
	n  int
}

func (c *counting) Next(op string) fault.Decision {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.Plan.Next(op)
}
