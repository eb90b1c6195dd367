package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

var errStep = errors.New("the step failed")

// resumeElsewhere resumes a lock as another function would, unseen by the
// fixture.
func (r *fixture) resumeElsewhere(t *testing.T, h lock.Ticket) (*lock.Lock, error) {
	t.Helper()
	locker := expect.Value(lock.New(r.faulty.Store, &lock.Options{Lease: lock.FixedLease(5 * time.Second), Logger: noLogger}))(t)
	return locker.Resume(t.Context(), h)
}

// wantHandedOver completes the event with the handle.
func (r *fixture) wantHandedOver(t *testing.T, h lock.Ticket) {
	t.Helper()
	lk, err := r.resumeElsewhere(t, h)
	if err == nil {
		err = lk.Complete()
	}
	if err != nil {
		t.Errorf("the handle %+v: %v", h, err)
	}
}

// wantWorthless checks that the lock was released, and not completed.
func (r *fixture) wantWorthless(t *testing.T, h lock.Ticket, k lock.Key) {
	t.Helper()
	if _, err := r.resumeElsewhere(t, h); !errors.Is(err, lock.ErrLost) {
		t.Errorf("the handle %+v: %v, want it lost", h, err)
	}
	_ = r.acquireElsewhere(t, k).Release()
}

// TestHandOverInHandler shows what becomes of the lock in each lease mode when
// a handler has handed it over: it stays held after a success, and is released
// after a failure.
func TestHandOverInHandler(t *testing.T) { // F54
	key := lock.Key{Name: "orders", Event: "1"}
	for mode, option := range map[string]middleware.Option{
		"until the deadline": middleware.Remember(time.Hour), "heartbeat": middleware.Heartbeat(9 * time.Second), "fixed": fixedLease(20 * time.Second),
	} {
		for name, end := range map[string]func() error{
			"succeeds": func() error { return nil },
			"fails":    func() error { return errStep },
			"panics":   func() error { panic(errStep) },
		} {
			t.Run(mode+"/"+name, func(t *testing.T) {
				underDeadline(t, func(t *testing.T, ctx context.Context) {
					f := newFixture()
					var h lock.Ticket
					wrapped := middleware.WithLock(byOrder, func(ctx context.Context, _ order) (err error) {
						if h, err = lock.HandOver(ctx, time.Hour); err != nil {
							return err
						}
						time.Sleep(7 * time.Second) // a heartbeat would have renewed the lease
						return end()
					}, f.options(option)...)
					err := calling(func() error { return wrapped(ctx, order{ID: "1"}) })
					if n := f.faulty.Requests(fault.Renew); n != 1 {
						t.Errorf("%d renewals, want 1", n)
					}
					if name != "succeeds" {
						if !errors.Is(err, errStep) {
							t.Errorf("the handler's failure became %v", err)
						}
						f.want(t, lock.OutcomeAcquired, lock.OutcomeHandedOver, lock.OutcomeReleased)
						f.wantWorthless(t, h, key)
						return
					}
					if err != nil || f.faulty.Requests(fault.Release) != 0 {
						t.Errorf("%v, and %d requests to release", err, f.faulty.Requests(fault.Release))
					}
					f.want(t, lock.OutcomeAcquired, lock.OutcomeHandedOver)
					if err := wrapped(ctx, order{ID: "1"}); !errors.Is(err, lock.ErrHeld) {
						t.Errorf("a duplicate: %v", err)
					}
					f.wantHandedOver(t, h)
					if err := wrapped(ctx, order{ID: "1"}); err != nil || f.count(lock.OutcomeAlreadyCompleted) != 1 {
						t.Errorf("a duplicate after completion: %v, observed %q", err, f.outcomes())
					}
				})
			})
		}
	}
}

// calling returns the error of call, or what it panicked with.
func calling(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = p.(error)
		}
	}()
	return call()
}

// TestHandOverOfAStream shows that a lock which was handed over stays held when
// the stream was read to its end, and is released if the reader gives up.
func TestHandOverOfAStream(t *testing.T) {
	for name, complete := range map[string]bool{"read to its end": true, "given up": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			var h lock.Ticket
			wrapped := middleware.WithLock(byOrder, func(ctx context.Context, _ order) (_ io.Reader, err error) {
				h, err = lock.HandOver(ctx, time.Hour)
				return strings.NewReader("exported"), err
			}, f.options()...)
			body, err := wrapped(t.Context(), order{ID: "1"})
			if err != nil {
				t.Fatal(err)
			}
			if complete {
				_, err = io.ReadAll(body)
			} else {
				err = body.(io.Closer).Close()
			}
			if err != nil {
				t.Error(err)
			}
			if complete {
				f.wantHandedOver(t, h)
			} else {
				f.wantWorthless(t, h, lock.Key{Name: "orders", Event: "1"})
			}
		})
	}
}

// TestHandOverOfNestedLocks shows that HandOver hands over the innermost lock,
// and that the outer one is completed; an outer handler can hand over its own.
func TestHandOverOfNestedLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		var inside, outside lock.Ticket
		inner := middleware.WithLock(byOrder, func(ctx context.Context, _ order) (err error) {
			inside, err = lock.HandOver(ctx, time.Hour)
			return err
		}, f.options()...)
		outer := middleware.WithLock(keyfuncs.Prefix(lockPerOrder, "outer"), inner, f.options()...)
		expect.Must(t, outer(t.Context(), order{ID: "1"}))
		if err := outer(t.Context(), order{ID: "1"}); err != nil || f.count(lock.OutcomeAlreadyCompleted) != 1 {
			t.Errorf("a duplicate: %v, %q, want it skipped by the outer lock", err, f.outcomes())
		}
		f.wantHandedOver(t, inside)

		outer = middleware.WithLock(keyfuncs.Prefix(lockPerOrder, "outer"), func(ctx context.Context, o order) (err error) {
			if err := inner(ctx, o); err != nil {
				return err
			}
			outside, err = lock.HandOver(ctx, time.Hour)
			return err
		}, f.options()...)
		expect.Must(t, outer(t.Context(), order{ID: "2"}))
		if inside.Name == outside.Name {
			t.Errorf("both handles are for %q", inside.Name)
		}
		f.wantHandedOver(t, inside)
		f.wantHandedOver(t, outside)
	})
}

// TestHandOverOfRecords shows that each record of a batch has its own lock to
// hand over, and that a failed one gives its own back.
func TestHandOverOfRecords(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f := newFixture()
		handles := map[string]lock.Ticket{}
		byBody := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
			return lock.Key{Name: m.Body, Event: m.Body}, nil
		}
		wrapped := middleware.EachSQSMessage(byBody, func(ctx context.Context, m events.SQSMessage) error {
			h, err := lock.HandOver(ctx, time.Hour)
			handles[m.MessageId] = h
			if err == nil && m.Body == "fails" {
				err = errStep
			}
			return err
		}, f.options(middleware.Concurrency(1))...)
		batch := sqsBatch(message("a1", "first"), message("b1", "fails"), message("a2", "first"))
		answer, err := wrapped(ctx, batch)
		wantReturned(t, answer, err, "b1", "a2") // a2 is a duplicate of a1, which is not completed yet
		f.wantHandedOver(t, handles["a1"])
		if _, err := f.resumeElsewhere(t, handles["b1"]); !errors.Is(err, lock.ErrLost) {
			t.Errorf("the handle of the failed record: %v", err)
		}
	})
}

// TestHandOverWithoutALock shows that a handler which FailOpen runs without a
// lock has none to hand over.
func TestHandOverWithoutALock(t *testing.T) { // F13
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.faulty.Always(fault.Acquire, fault.DropBefore)
		wrapped := middleware.WithLock(byOrder, func(ctx context.Context, _ order) error {
			_, err := lock.HandOver(ctx, time.Hour)
			return err
		}, f.options(middleware.FailOpen())...)
		var config *lock.ConfigError
		if err := wrapped(t.Context(), order{ID: "1"}); !errors.As(err, &config) || !strings.Contains(config.Reason, "no lock to hand over") {
			t.Errorf("got %v", err)
		}
	})
}

// step is the event of a step that resumes.
type step struct {
	Lock lock.Ticket `json:"lock"`
	Paid json.Number `json:"paid"`
}

func handleOf(s step) lock.Ticket { return s.Lock }

// handedOver returns a step with the handle of a lock that was handed over.
func (r *fixture) handedOver(t *testing.T, k lock.Key) step {
	t.Helper()
	lk := r.acquireElsewhere(t, k)
	h, err := lk.HandOver(t.Context(), time.Minute)
	if err == nil {
		err = lk.Complete()
	}
	if err != nil {
		t.Fatal(err)
	}
	return step{Lock: h}
}

// TestResume shows a workflow of three steps, each of which is retried after a
// failure, and a duplicate of its last step.
func TestResume(t *testing.T) { // F54
	for mode, option := range map[string]middleware.Option{
		"until the deadline": middleware.Remember(time.Hour), "heartbeat": middleware.Heartbeat(9 * time.Second), "fixed": fixedLease(9 * time.Second),
	} {
		t.Run(mode, func(t *testing.T) {
			underDeadline(t, func(t *testing.T, ctx context.Context) {
				f := newFixture()
				s := f.handedOver(t, lock.Key{Name: "orders", Event: "1"})
				failures := 0
				fails := func() error {
					if failures++; failures%2 == 1 {
						return errStep
					}
					return nil
				}
				work := middleware.Resume(handleOf, func(ctx context.Context, s step) (_ step, err error) {
					s.Paid = "9007199254740993"
					if s.Lock, err = lock.HandOver(ctx, time.Minute); err == nil {
						err = fails()
					}
					return s, err
				}, f.options(option)...)
				finish := middleware.Resume(handleOf, func(_ context.Context, s step) (json.Number, error) {
					if err := fails(); err != nil {
						panic(err)
					}
					return s.Paid, nil
				}, f.options(option, middleware.OnCompleted(middleware.Replay))...)

				if _, err := work(ctx, s); err != errStep {
					t.Errorf("the failure became %v", err)
				}
				f.want(t, lock.OutcomeResumed, lock.OutcomeHandedOver)
				s = expect.Value(work(ctx, s))(t)
				f.want(t, lock.OutcomeResumed, lock.OutcomeHandedOver)
				if err := calling(func() error { _, err := finish(ctx, s); return err }); err != errStep {
					t.Errorf("the panic became %v", err)
				}
				f.want(t, lock.OutcomeResumed)
				for range 2 {
					if paid, err := finish(ctx, s); paid != "9007199254740993" || err != nil {
						t.Errorf("finish: %q, %v", paid, err)
					}
				}
				f.want(t, lock.OutcomeResumed, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted)
				if failures != 4 {
					t.Errorf("%d runs, want 4", failures)
				}
			})
		})
	}
}

// TestResumeOfCompleted shows what the policies return for a step whose event
// was completed.
func TestResumeOfCompleted(t *testing.T) {
	for name, c := range map[string]struct {
		policy middleware.CompletedPolicy
		result any // of the first run
		want   any
		err    error
	}{
		"skip":                {policy: middleware.Skip, result: "first"},
		"fail":                {policy: middleware.Fail, result: "first", err: lock.ErrCompleted},
		"replay":              {policy: middleware.Replay, result: json.Number("9007199254740993"), want: json.Number("9007199254740993")},
		"replay, not encoded": {policy: middleware.Replay, result: func() {}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			s := f.handedOver(t, lock.Key{Name: "orders", Event: "1"})
			runs := 0
			finish := middleware.Resume(handleOf, func(context.Context, step) (any, error) {
				runs++
				return c.result, nil
			}, f.options(middleware.OnCompleted(c.policy))...)
			if _, err := finish(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if got, err := finish(t.Context(), s); got != c.want || !errors.Is(err, c.err) || runs != 1 {
				t.Errorf("got %v, %v after %d runs, want %v, %v after 1", got, err, runs, c.want, c.err)
			}
			if dropped := f.count(lock.OutcomeResultDropped); (dropped == 1) != strings.Contains(name, "encoded") {
				t.Errorf("%d results dropped", dropped)
			}
		})
	}
}

// TestResumeWithAStatus shows that the result of a step is for a workflow, and
// not a response, whatever is in it.
func TestResumeWithAStatus(t *testing.T) { // F54
	f := newFixture()
	s := f.handedOver(t, lock.Key{Name: "orders", Event: "1"})
	finish := middleware.Resume(handleOf, func(context.Context, step) (any, error) {
		return map[string]any{"statusCode": 503}, nil // of a partner, which the workflow asks again
	}, f.options()...)
	for range 2 {
		if _, err := finish(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	f.want(t, lock.OutcomeResumed, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted)
}

// TestReplayOfAnotherType shows that a result which does not fit the step is
// reported with its key.
func TestReplayOfAnotherType(t *testing.T) { // F35
	f := newFixture()
	s := f.handedOver(t, lock.Key{Name: "orders", Event: "1"})
	first := middleware.Resume(handleOf, func(context.Context, step) (string, error) { return "text", nil }, f.options(middleware.OnCompleted(middleware.Replay))...)
	later := middleware.Resume(handleOf, func(context.Context, step) (int, error) { return 42, nil }, f.options(middleware.OnCompleted(middleware.Replay))...)
	if _, err := first(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	got, err := later(t.Context(), s)
	if dropped := f.of(lock.OutcomeResultDropped); got != 0 || err != nil || len(dropped) != 1 || dropped[0].Key.Name != "orders" || dropped[0].Key.Event != "1" {
		t.Errorf("got %d, %v, observed %+v", got, err, dropped)
	}
}

// TestResumeRefuses shows the errors of a step that does not run.
func TestResumeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T, f *fixture, s *step)
		want    func(error) bool
	}{
		"no handle": {
			prepare: func(_ *testing.T, _ *fixture, s *step) { *s = step{} },
			want:    func(err error) bool { return errors.As(err, new(*lock.ConfigError)) },
		},
		"released": {
			prepare: func(t *testing.T, f *fixture, s *step) {
				lk, err := f.resumeElsewhere(t, s.Lock)
				if err == nil {
					err = lk.Release()
				}
				if err != nil {
					t.Fatal(err)
				}
			},
			want: func(err error) bool { _, ok := err.(*lock.LostError); return ok }, // the name that Lambda reports
		},
		"store down": {
			prepare: func(_ *testing.T, f *fixture, _ *step) { f.faulty.Always(fault.Renew, fault.Deny) },
			want:    func(err error) bool { _, ok := err.(*lock.StoreError); return ok },
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			s := f.handedOver(t, lock.Key{Name: "orders", Event: "1"})
			c.prepare(t, f, &s)
			wrapped := middleware.Resume(handleOf, func(context.Context, step) (any, error) {
				t.Error("the step ran")
				return nil, nil
			}, f.options()...)
			if _, err := wrapped(t.Context(), s); !c.want(err) {
				t.Errorf("got %T: %v", err, err)
			}
		})
	}
}

// TestWrongUseOfResume shows that Resume panics when it is called wrongly.
func TestWrongUseOfResume(t *testing.T) {
	ok := func(context.Context, step) (any, error) { return nil, nil }
	opts := newFixture().options
	for name, c := range map[string]struct {
		use    func()
		within string
	}{
		"no handle":   {func() { middleware.Resume(nil, ok, opts()...) }, "lock.Ticket"},
		"no handler":  {func() { middleware.Resume[step, any](handleOf, nil, opts()...) }, "handler is nil"},
		"OnHeld":      {func() { middleware.Resume(handleOf, ok, opts(middleware.OnHeld(middleware.Skip))...) }, "OnHeld"},
		"Wait":        {func() { middleware.Resume(handleOf, ok, opts(middleware.OnHeld(middleware.Wait(time.Second)))...) }, "OnHeld"},
		"FailOpen":    {func() { middleware.Resume(handleOf, ok, opts(middleware.FailOpen())...) }, "FailOpen"},
		"Concurrency": {func() { middleware.Resume(handleOf, ok, opts(middleware.Concurrency(2))...) }, "Concurrency"},
		"stream": {func() {
			middleware.Resume(handleOf, func(context.Context, step) (io.Reader, error) { return nil, nil }, opts()...)
		}, "streamed"},
		"Replay of an interface": {func() {
			middleware.Resume(handleOf, func(context.Context, step) (error, error) { return nil, nil }, opts(middleware.OnCompleted(middleware.Replay))...)
		}, "Replay"},
	} {
		t.Run(name, func(t *testing.T) { wantPanic(t, c.use, c.within) })
	}
}
