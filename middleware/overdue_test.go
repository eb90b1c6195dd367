package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// observed is every observation of one kind, with its time.
type observed struct {
	mu   sync.Mutex
	kind lock.Outcome
	all  []lock.Observation
	at   []time.Time
}

func (o *observed) option() middleware.Option {
	return middleware.Observe(func(_ context.Context, seen lock.Observation) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if seen.Outcome == o.kind {
			o.all, o.at = append(o.all, seen), append(o.at, time.Now())
		}
	})
}

// behaves ends with its context, "stuck" does not look at it, everything else is quick.
func behaves(ctx context.Context, m events.SQSMessage) error {
	switch m.Body {
	case "stuck":
		time.Sleep(time.Minute)
	case "obeys":
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// TestOverdueRecordIsNamed: no goroutine may outlive the invocation, so a handler that
// ignores its context gets the whole batch killed; before that, the record is named.
func TestOverdueRecordIsNamed(t *testing.T) { // F16
	for name, opts := range map[string][]middleware.Option{
		"lease to the deadline": nil,
		"heartbeat":             {middleware.Heartbeat(10 * time.Second)},
		"reserve":               {middleware.Reserve(3 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			underDeadline(t, func(t *testing.T, ctx context.Context) {
				seen := &observed{kind: middleware.OutcomeOverdue}
				h := middleware.EachSQSMessage(keyfuncs.SQSMessage, behaves, append(newQuiet().with(opts...), seen.option())...)
				r, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{
					message("a", "quick"), message("b", "stuck"), message("c", "obeys"), message("d", "quick"),
				}})
				answers(t, r, err, "c") // outside Lambda nobody kills, and b completes
				if len(seen.all) != 1 {
					t.Fatalf("observed %+v, want the one record that is stuck", seen.all)
				}
				o, deadline := seen.all[0], time.Now().Add(-30*time.Second)
				if !seen.at[0].Before(deadline) || seen.at[0].Before(deadline.Add(-3*time.Second)) {
					t.Errorf("observed %v before the deadline", deadline.Sub(seen.at[0]))
				}
				var record *middleware.RecordError
				if o.Key.Event != "b" || o.Fence == 0 || o.Held < 26*time.Second || !errors.As(o.Err, &record) || record.Record != "Records[1]" ||
					!strings.Contains(o.Err.Error(), "still running after its context has ended") || !strings.Contains(o.Err.Error(), "kill") {
					t.Errorf("observed %+v", o)
				}
			})
		})
	}
}

// TestManyOverdueRecords: each is reported once, at the same time as others.
func TestManyOverdueRecords(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		seen := &observed{kind: middleware.OutcomeOverdue}
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, behaves, append(newQuiet().with(), seen.option())...)
		var batch events.SQSEvent
		for i := range 100 {
			batch.Records = append(batch.Records, message(fmt.Sprint(i), "stuck"))
		}
		_, err := h(ctx, batch)
		events := map[string]int{}
		for _, o := range seen.all {
			events[o.Key.Event]++
		}
		if err != nil || len(events) != middleware.DefaultConcurrency || len(seen.all) != len(events) {
			t.Errorf("%v; observed %v", err, events)
		}
	})
}

// TestNothingIsOverdue: not where handlers end in time, and not where nobody kills.
func TestNothingIsOverdue(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		seen := &observed{kind: middleware.OutcomeOverdue}
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, behaves, append(newQuiet().with(), seen.option())...)
		for _, does := range []string{"quick", "obeys"} {
			_, _ = h(ctx, events.SQSEvent{Records: []events.SQSMessage{message(does, does)}})
		}
		if _, err := h(context.WithoutCancel(ctx), events.SQSEvent{Records: []events.SQSMessage{message("stuck", "stuck")}}); err != nil {
			t.Error(err)
		}
		if len(seen.all) != 0 {
			t.Errorf("observed %+v", seen.all)
		}
	})
}

// TestOverdueObserverIsWaitedFor: it runs on a goroutine of its own, which must have ended
// when the invocation does.
func TestOverdueObserverIsWaitedFor(t *testing.T) { // F17
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		var began, ended atomic.Int32
		slow := middleware.Observe(func(_ context.Context, o lock.Observation) {
			if o.Outcome == middleware.OutcomeOverdue {
				began.Add(1)
				time.Sleep(5 * time.Second)
				ended.Add(1)
			}
		})
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error {
			time.Sleep(31 * time.Second)
			return nil
		}, append(newQuiet().with(), slow)...)
		_, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{message("a", ""), message("b", "")}})
		if err != nil || began.Load() != 2 || ended.Load() != 2 {
			t.Errorf("%v; %d observers began, %d have ended", err, began.Load(), ended.Load())
		}
	})
}

// TestOverdueIsAWarning: the batch may still be killed or not, and nothing is lost yet.
func TestOverdueIsAWarning(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		var log logged
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, behaves, append(newQuiet().with(), log.option())...)
		if _, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{message("a", "stuck")}}); err != nil {
			t.Error(err)
		}
		if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], `level=WARN msg="lambdalock: overdue"`) || !strings.Contains(lines[0], "Records[0]: ") {
			t.Errorf("logged %q", lines)
		}
	})
}
