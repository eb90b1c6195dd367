package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// behaves is a handler that ends as the body of the message says: "obeys" when
// its context ends, "stuck" later than that, everything else immediately.
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

func unlocked(context.Context, events.SQSMessage) (lock.Key, error) {
	return lock.Key{}, keyfuncs.ErrNoLock
}

// TestOverdueRecordIsNamed shows that a record whose handler ignores the end of
// its context is reported before the whole batch times out.
func TestOverdueRecordIsNamed(t *testing.T) { // F16
	for name, opts := range map[string][]middleware.Option{
		"lease to the deadline": nil,
		"heartbeat":             {middleware.Heartbeat(10 * time.Second)},
		"reserve":               {engine(func(o *lock.Options) { o.Reserve = 3 * time.Second })},
	} {
		t.Run(name, func(t *testing.T) {
			underDeadline(t, func(t *testing.T, ctx context.Context) {
				f := newFixture()
				h := middleware.EachSQSMessage(keyfuncs.SQSMessage, behaves, f.options(opts...)...)
				r, err := h(ctx, sqsBatch(
					message("a", "quick"), message("b", "stuck"), message("c", "obeys"), message("d", "quick"),
				))
				wantReturned(t, r, err, "c") // the process lives on, and b completes
				overdue := f.of(middleware.OutcomeOverdue)
				if len(overdue) != 1 {
					t.Fatalf("observed %+v, want the one record that is stuck", overdue)
				}
				o, deadline := overdue[0], time.Now().Add(-30*time.Second)
				if !o.at.Before(deadline) || o.at.Before(deadline.Add(-3*time.Second)) {
					t.Errorf("observed %v before the deadline", deadline.Sub(o.at))
				}
				var record *middleware.RecordError
				if o.Key.Event != "b" || o.Fence == 0 || o.HeldFor < 26*time.Second || !errors.As(o.Err, &record) || record.Record != "Records[1]" ||
					!strings.Contains(o.Err.Error(), "still running after its context has ended") || !strings.Contains(o.Err.Error(), "whole batch") {
					t.Errorf("observed %+v", o)
				}
			})
		})
	}
}

// TestUnlockedRecordLeavesTimeToAnswer shows that the context of a record
// without a lock ends as early as that of a lock: at the deadline itself the
// answer would be lost, and with it what the other records have done.
func TestUnlockedRecordLeavesTimeToAnswer(t *testing.T) { // F16
	reserve := func(d time.Duration) middleware.Option {
		return engine(func(o *lock.Options) { o.Reserve = d })
	}
	for name, c := range map[string]struct {
		key     keyfuncs.Func[events.SQSMessage]
		opts    []middleware.Option
		reserve time.Duration
	}{
		"no lock needed": {unlocked, nil, time.Second},
		"only latest":    {unlocked, []middleware.Option{middleware.OnlyLatest()}, time.Second},
		"chosen reserve": {unlocked, []middleware.Option{reserve(3 * time.Second)}, 3 * time.Second},
		"no answer":      {keyfuncs.SQSMessage, []middleware.Option{middleware.FailOpen()}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			underDeadline(t, func(t *testing.T, ctx context.Context) {
				f := newFixture()
				f.faulty.Always(fault.Acquire, fault.DropBefore)
				h := middleware.EachSQSMessage(c.key, behaves, f.options(c.opts...)...)
				r, err := h(ctx, sqsBatch(message("a", "quick"), message("b", "obeys")))
				wantReturned(t, r, err, "b")
				deadline, _ := ctx.Deadline()
				if left := time.Until(deadline); left != c.reserve {
					t.Errorf("answered %v before the deadline, want %v", left, c.reserve)
				}
				if n := f.count(middleware.OutcomeOverdue); n != 0 {
					t.Errorf("%d records are overdue that ended with their contexts", n)
				}

				again, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				if _, err := h(again, sqsBatch(message("c", "stuck"))); err != nil {
					t.Error(err)
				}
				deadline, _ = again.Deadline()
				overdue := f.of(middleware.OutcomeOverdue)
				if len(overdue) != 1 || overdue[0].Fence != 0 || !overdue[0].at.Before(deadline) {
					t.Errorf("observed %+v, want one without a fence before %v", overdue, deadline)
				}
			})
		})
	}
}

// TestOverdueBeforeAShortDeadline shows that the report still comes in time if
// little is left between the end of the context and the deadline.
func TestOverdueBeforeAShortDeadline(t *testing.T) { // F16
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		deadline, _ := ctx.Deadline()
		f := newFixture()
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, behaves, f.options()...)
		if _, err := h(ctx, sqsBatch(message("a", "stuck"))); err != nil {
			t.Error(err)
		}
		if overdue := f.of(middleware.OutcomeOverdue); len(overdue) != 1 || deadline.Sub(overdue[0].at) < 100*time.Millisecond {
			t.Errorf("observed %+v, want one at least 100ms before %v", overdue, deadline)
		}
	})
}

// TestManyOverdueRecords shows that each of many overdue records is reported
// once.
func TestManyOverdueRecords(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f := newFixture()
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, behaves, f.options()...)
		var batch events.SQSEvent
		for i := range 100 {
			batch.Records = append(batch.Records, message(fmt.Sprint(i), "stuck"))
		}
		_, err := h(ctx, batch)
		events := map[string]int{}
		for _, o := range f.of(middleware.OutcomeOverdue) {
			events[o.Key.Event]++
		}
		if err != nil || len(events) != middleware.DefaultConcurrency || f.count(middleware.OutcomeOverdue) != len(events) {
			t.Errorf("%v; observed %v", err, events)
		}
	})
}

// TestNothingIsOverdue shows that nothing is reported if handlers end in time,
// or if there is no deadline.
func TestNothingIsOverdue(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f := newFixture()
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, behaves, f.options()...)
		for _, does := range []string{"quick", "obeys"} {
			_, _ = h(ctx, sqsBatch(message(does, does)))
		}
		if _, err := h(context.WithoutCancel(ctx), sqsBatch(message("stuck", "stuck"))); err != nil {
			t.Error(err)
		}
		detached := middleware.Around(func(ctx context.Context, _ events.SQSMessage, next func(context.Context) error) error {
			return next(context.WithoutCancel(ctx))
		})
		fresh, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if _, err := middleware.EachSQSMessage(unlocked, behaves, f.options(detached)...)(fresh, sqsBatch(message("stuck", "stuck"))); err != nil {
			t.Error(err)
		}
		if overdue := f.of(middleware.OutcomeOverdue); len(overdue) != 0 {
			t.Errorf("observed %+v", overdue)
		}
	})
}

// TestOverdueObserverIsWaitedFor shows that the observer, which runs on another
// goroutine, ends before the invocation does.
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
		}, newFixture().options(slow)...)
		_, err := h(ctx, sqsBatch(message("a", ""), message("b", "")))
		if err != nil || began.Load() != 2 || ended.Load() != 2 {
			t.Errorf("%v; %d observers began, %d have ended", err, began.Load(), ended.Load())
		}
	})
}

// TestOverdueObserverThatPanics shows that the panic of the observer fails the
// record about which it was told, and no other, and that what the handler says
// of its failure counts.
func TestOverdueObserverThatPanics(t *testing.T) { // F48
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f := newFixture()
		observe := middleware.Observe(func(_ context.Context, o lock.Observation) {
			if o.Outcome == middleware.OutcomeOverdue {
				panic("observer")
			}
		})
		var permanent []string
		onFailed := middleware.OnFailed(func(_ context.Context, failed []*middleware.Failed[events.SQSMessage]) {
			for _, m := range failed {
				if errors.As(m.Err, new(*middleware.PermanentError)) {
					permanent = append(permanent, m.Record.MessageId)
				}
			}
		})
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(ctx context.Context, m events.SQSMessage) error {
			err := behaves(ctx, m)
			if m.MessageId == "c" {
				return middleware.Permanent(errRecord)
			}
			return err
		}, f.options(observe, onFailed)...)
		r, err := h(ctx, sqsBatch(message("a", "quick"), message("b", "stuck"), message("c", "stuck")))
		wantReturned(t, r, err, "b", "c")
		if !slices.Equal(permanent, []string{"c"}) {
			t.Errorf("failed for good: %q, want c", permanent)
		}
	})
}

// TestUnknownEndBesideAPanic: that the observer panics says nothing of the end
// of the handler, which does not know it.
func TestUnknownEndBesideAPanic(t *testing.T) { // F19, F48
	for _, at := range []lock.Outcome{middleware.OutcomeOverdue, middleware.OutcomeHandlerFailed} {
		t.Run(string(at), func(t *testing.T) {
			underDeadline(t, func(t *testing.T, ctx context.Context) {
				var ran atomic.Int32
				observe := middleware.Observe(func(_ context.Context, o lock.Observation) {
					if o.Outcome == at {
						panic("observer")
					}
				})
				h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(ctx context.Context, m events.SQSMessage) error {
					ran.Add(1)
					_ = behaves(ctx, m)
					return middleware.Unknown(errors.New("no answer"))
				}, newFixture().options(observe, middleware.OnInterrupted(middleware.Fail))...)
				batch := sqsBatch(message("a", "stuck"), message("b", "quick"))
				_, _ = h(ctx, batch)
				again, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				_, _ = h(again, batch)
				if n := ran.Load(); n != 2 {
					t.Errorf("the handler began %d times for two messages", n)
				}
			})
		})
	}
}

// TestOverdueIsAWarning shows the level: nothing is lost yet, and the batch may
// still end in time.
func TestOverdueIsAWarning(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		var log warnings
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, behaves, newFixture().options(log.option())...)
		if _, err := h(ctx, sqsBatch(message("a", "stuck"))); err != nil {
			t.Error(err)
		}
		if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], `level=WARN msg="lambdalock: overdue"`) || !strings.Contains(lines[0], "Records[0]: ") {
			t.Errorf("logged %q", lines)
		}
	})
}

// TestOverdueWhereNobodyKills shows what is reported on a platform that lets
// the code run on after the deadline.
func TestOverdueWhereNobodyKills(t *testing.T) {
	t.Setenv("AWS_LAMBDA_INITIALIZATION_TYPE", "lambda-managed-instances")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		f := newFixture()
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, behaves, f.options()...)
		if _, err := h(ctx, sqsBatch(message("a", "stuck"))); err != nil {
			t.Error(err)
		}
		overdue := f.of(middleware.OutcomeOverdue)
		if len(overdue) != 1 || !strings.Contains(overdue[0].Err.Error(), "cannot end before it does") {
			t.Errorf("observed %+v", overdue)
		}
	})
}

// TestNothingBeginsWithinReserve shows that the option Reserve also decides
// until when a record may begin: what is left is returned without a request.
func TestNothingBeginsWithinReserve(t *testing.T) { // F12
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error {
			time.Sleep(35 * time.Second)
			return nil
		}, f.options(engine(func(o *lock.Options) { o.Reserve = 30 * time.Second }), middleware.Concurrency(1))...)
		r, err := h(ctx, sqsBatch(message("1", ""), message("2", "")))
		if err != nil || len(r.BatchItemFailures) != 1 || f.count(middleware.OutcomeNotBegun) != 1 || f.faulty.Requests(fault.Acquire) != 1 {
			t.Errorf("%+v, %v, observed %q", r, err, f.outcomes())
		}
	})
}
