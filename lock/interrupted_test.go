package lock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// inquiry is an Options.OnInterrupted that remembers what it was asked.
type inquiry struct {
	asked  []lock.InterruptedError
	answer func(ctx context.Context, i *lock.InterruptedError) (*lock.Completion, error)
}

func (q *inquiry) decide(ctx context.Context, i *lock.InterruptedError) (*lock.Completion, error) {
	q.asked = append(q.asked, *i)
	return q.answer(ctx, i)
}

func notDone(context.Context, *lock.InterruptedError) (*lock.Completion, error) { return nil, nil }

// die acquires the key and leaves the lock to its fate. Lease and margin are
// over when it returns.
func (f *fixture) die(o lock.Options, key lock.Key) {
	f.t.Helper()
	o.Lease, o.Holder = lock.FixedLease(10*time.Second), func(context.Context) string { return "the dead one" }
	f.mustAcquire(f.locker(o), key)
	time.Sleep(11 * time.Second)
}

// TestInterrupted shows which ends of a run leave the event interrupted, and
// that it is asked about once for each.
func TestInterrupted(t *testing.T) { // F3, F15, F19
	boom := errors.New("boom")
	do := func(f *fixture, o lock.Options, work func(context.Context) error) {
		_ = f.locker(o).Do(f.t.Context(), event("e1"), work)
	}
	for name, c := range map[string]struct {
		run   func(f *fixture, o lock.Options)
		asked bool
	}{
		"it dies": {func(f *fixture, o lock.Options) { f.die(o, event("e1")) }, true},
		"it dies, and so does the next owner": {func(f *fixture, o lock.Options) {
			f.die(o, event("e1"))
			f.die(o, event("e2"))
		}, true},
		"it dies, and a mutex takes over": {func(f *fixture, o lock.Options) {
			f.die(o, event("e1"))
			f.die(lock.Options{}, resource)
			mutex := f.mustAcquire(f.locker(lock.Options{}), resource)
			if told := mutex.Lease().Interrupted; told != nil {
				f.t.Errorf("a mutex is told of %v", told)
			}
			_ = mutex.Release()
		}, true},
		"it dies, and another event is completed": {func(f *fixture, o lock.Options) {
			f.die(o, event("e1"))
			_ = f.locker(lock.Options{}).Do(f.t.Context(), event("e2"), nothing)
		}, true},
		"its completion has no answer, and is not applied": {func(f *fixture, o lock.Options) {
			o.CompleteWithin = time.Second
			f.faulty.Always(fault.Release, fault.DropBefore)
			do(f, o, nothing)
			f.faulty.Always(fault.Release, fault.None)
			time.Sleep(time.Minute)
		}, true},
		"it cannot tell": {func(f *fixture, o lock.Options) {
			do(f, o, func(context.Context) error { return errors.Join(boom, lock.ErrUnknown) })
		}, true},
		"it could not tell, almost a day ago": {func(f *fixture, o lock.Options) {
			do(f, o, func(context.Context) error { return lock.ErrUnknown })
			time.Sleep(lock.DefaultRemember - time.Minute)
		}, true},
		"it fails after its lease was lost": {func(f *fixture, o lock.Options) {
			o.Lease = lock.FixedLease(10 * time.Second)
			do(f, o, func(context.Context) error {
				time.Sleep(11 * time.Second)
				_ = f.mustAcquire(f.locker(lock.Options{}), resource).Release()
				return boom
			})
		}, true},
		"it fails once its lease is lost to nobody": {func(f *fixture, o lock.Options) {
			o.Lease = lock.FixedLease(10 * time.Second)
			do(f, o, func(context.Context) error {
				time.Sleep(11 * time.Second)
				return boom
			})
		}, true},
		"it fails once it has thawed, and no timer has noticed": {func(f *fixture, o lock.Options) {
			o.Lease = lock.FixedLease(10 * time.Second)
			on := skewed(f.locker(o), 0)
			_ = on.Do(f.t.Context(), event("e1"), func(context.Context) error {
				on.freeze(time.Minute)
				return boom
			})
		}, true},
		"it fails once its context has ended": {func(f *fixture, o lock.Options) {
			ctx, cancel := context.WithTimeout(f.t.Context(), 10*time.Second)
			defer cancel()
			_ = f.locker(o).Do(ctx, event("e1"), func(ctx context.Context) error {
				<-ctx.Done()
				return boom
			})
		}, true},
		"it panics once its caller has given up": {func(f *fixture, o lock.Options) {
			defer func() { _ = recover() }()
			ctx, cancel := context.WithCancel(f.t.Context())
			_ = f.locker(o).Do(ctx, event("e1"), func(ctx context.Context) error {
				cancel()
				panic(boom)
			})
		}, true},
		"it fails": {func(f *fixture, o lock.Options) { do(f, o, func(context.Context) error { return boom }) }, false},
		"it panics": {func(f *fixture, o lock.Options) {
			defer func() { _ = recover() }()
			do(f, o, func(context.Context) error { panic(boom) })
		}, false},
		"it never began": {func(f *fixture, o lock.Options) {
			f.faulty.Always(fault.Acquire, fault.ApplyThenHang)
			ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
			defer cancel()
			_, _ = f.locker(o).Acquire(ctx, event("e1"))
			f.faulty.Always(fault.Acquire, fault.None)
		}, false},
		"it dies, but nobody asked to keep that": {func(f *fixture, _ lock.Options) {
			f.die(lock.Options{}, event("e1"))
			_ = f.mustAcquire(f.locker(lock.Options{}), resource).Release()
		}, false},
		"it dies, and is forgotten": {func(f *fixture, o lock.Options) {
			f.die(o, event("e1"))
			time.Sleep(lock.DefaultRemember)
		}, false},
		"it dies, and one fails that does not ask": {func(f *fixture, o lock.Options) {
			f.die(o, event("e1"))
			do(f, lock.Options{}, func(context.Context) error { return boom })
		}, true},
		"it dies, and another one that was asked about fails": {func(f *fixture, o lock.Options) {
			f.die(o, event("e1"))
			f.die(o, event("e2"))
			o.OnInterrupted = notDone
			_ = f.mustAcquire(f.locker(o), event("e2")).Fail(boom)
		}, true},
		"it dies, and the next one does not begin": {func(f *fixture, o lock.Options) {
			f.die(o, event("e1"))
			o.OnInterrupted = notDone
			_ = f.mustAcquire(f.locker(o), event("e1")).Release()
		}, true},
		"it dies, and one fails that was asked and is not answered": {func(f *fixture, o lock.Options) {
			f.die(o, event("e1"))
			_ = f.mustAcquire(f.locker(lock.Options{}), resource).Release()
			o.OnInterrupted, o.Lease = notDone, lock.FixedLease(10*time.Second)
			f.faulty.Always(fault.Release, fault.DropBefore)
			do(f, o, func(context.Context) error { return boom })
			f.faulty.Always(fault.Release, fault.None)
			if row := f.row(); row.Memory.FindInterrupted("e1", time.Now()) == nil {
				f.t.Error("a release that was not applied changes the row")
			}
			time.Sleep(time.Minute)
		}, true},
		"it dies, is kept, and is forgotten": {func(f *fixture, o lock.Options) {
			f.die(o, event("e1"))
			o.Remember = 48 * time.Hour
			f.die(o, event("e2"))
			_ = f.mustAcquire(f.locker(lock.Options{}), resource).Release()
			time.Sleep(lock.DefaultRemember)
		}, false},
		"it dies, nobody asked to keep that, and one fails that was asked": {func(f *fixture, o lock.Options) {
			f.die(lock.Options{}, event("e1"))
			o.OnInterrupted = notDone
			_ = f.mustAcquire(f.locker(o), event("e1")).Fail(boom)
		}, false},
		"it dies, nobody asked to keep that, and the next one does not begin": {func(f *fixture, o lock.Options) {
			f.die(lock.Options{}, event("e1"))
			o.OnInterrupted = notDone
			_ = f.mustAcquire(f.locker(o), event("e1")).Release()
		}, true},
		"another event dies": {func(f *fixture, o lock.Options) { f.die(o, event("e2")) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				q := &inquiry{answer: notDone}
				o := lock.Options{OnInterrupted: q.decide}
				c.run(f, o)
				var told []bool
				work := func(err error) func(context.Context) error {
					return func(ctx context.Context) error {
						lease, _ := lock.FromContext(ctx)
						told = append(told, lease.Interrupted != nil)
						return err
					}
				}
				if err := f.locker(o).Do(t.Context(), event("e1"), work(boom)); !errors.Is(err, boom) {
					t.Errorf("the first time: %v", err)
				}
				if err := f.locker(o).Do(t.Context(), event("e1"), work(nil)); err != nil {
					t.Errorf("the second time: %v", err)
				}
				if err := f.locker(o).Do(t.Context(), event("e1"), work(nil)); !isCompleted(err) {
					t.Errorf("the third time: %v", err)
				}
				if want := []bool{c.asked, false}; !slices.Equal(told, want) {
					t.Errorf("the leases told of an interrupted run: %v, want %v", told, want)
				}
				if got := len(q.asked); got > 1 || (got == 1) != c.asked {
					t.Errorf("asked %d times", got)
				}
				if row := f.row(); row.Memory.FindInterrupted("e1", time.Now()) != nil || !row.Memory.Has("e1", time.Now()) {
					t.Errorf("in the end the row is %+v", row)
				}
			})
		})
	}
}

// TestOnInterrupted shows what becomes of an interrupted event by the answer.
func TestOnInterrupted(t *testing.T) { // F19
	boom := errors.New("boom")
	fails := func(context.Context, *lock.InterruptedError) (*lock.Completion, error) { return nil, boom }
	done := func(context.Context, *lock.InterruptedError) (*lock.Completion, error) {
		return &lock.Completion{Result: []byte("result")}, nil
	}
	isInterrupted := func(err error) bool { return errors.As(err, new(*lock.InterruptedError)) }
	isOther := func(err error) bool {
		return err != nil && !isCompleted(err) && !isHeld(err) && !isInterrupted(err) && !errors.As(err, new(*lock.PayloadMismatchError)) && !errors.As(err, new(*lock.NoKeyError))
	}
	result := func(want string) func(error) bool {
		return func(err error) bool {
			var e *lock.CompletedError
			return errors.As(err, &e) && string(e.Result) == want
		}
	}
	for name, c := range map[string]struct {
		answer      func(context.Context, *lock.InterruptedError) (*lock.Completion, error)
		is, isLater func(error) bool
		asked       int // in two deliveries
		outcomes    []lock.Outcome
	}{
		"skip":  {lock.SkipInterrupted, result(""), result(""), 1, []lock.Outcome{"taken_over", "interrupted", "released", "already_completed"}},
		"done":  {done, result("result"), result("result"), 1, []lock.Outcome{"taken_over", "interrupted", "released", "already_completed"}},
		"fail":  {lock.FailInterrupted, isInterrupted, isInterrupted, 2, []lock.Outcome{"taken_over", "interrupted", "released", "acquired", "interrupted", "released"}},
		"error": {fails, func(err error) bool { return err == boom }, func(err error) bool { return err == boom }, 2, []lock.Outcome{"taken_over", "interrupted", "released", "acquired", "interrupted", "released"}},
		"no answer before its context ends": {func(ctx context.Context, _ *lock.InterruptedError) (*lock.Completion, error) {
			<-ctx.Done()
			return nil, nil
		}, isLost, isLost, 2, []lock.Outcome{"taken_over", "interrupted", "released", "acquired", "interrupted", "released"}},
		"that of another lock, which is held": {func(context.Context, *lock.InterruptedError) (*lock.Completion, error) {
			return nil, &lock.HeldError{Key: keyA}
		}, isOther, isOther, 2, []lock.Outcome{"taken_over", "interrupted", "released", "acquired", "interrupted", "released"}},
		"that of another lock, which was interrupted": {func(_ context.Context, i *lock.InterruptedError) (*lock.Completion, error) {
			other := *i
			return nil, &other
		}, isOther, isOther, 2, []lock.Outcome{"taken_over", "interrupted", "released", "acquired", "interrupted", "released"}},
		"that of another lock, which has another payload": {func(context.Context, *lock.InterruptedError) (*lock.Completion, error) {
			return nil, &lock.PayloadMismatchError{Key: keyA}
		}, isOther, isOther, 2, []lock.Outcome{"taken_over", "interrupted", "released", "acquired", "interrupted", "released"}},
		"that of another lock, without a key": {func(context.Context, *lock.InterruptedError) (*lock.Completion, error) {
			return nil, &lock.NoKeyError{Field: "order", Reason: "is empty", Client: true}
		}, isOther, isOther, 2, []lock.Outcome{"taken_over", "interrupted", "released", "acquired", "interrupted", "released"}},
		"a reason": {func(_ context.Context, i *lock.InterruptedError) (*lock.Completion, error) {
			return nil, errors.Join(boom, i)
		}, isInterrupted, isInterrupted, 2, []lock.Outcome{"taken_over", "interrupted", "released", "acquired", "interrupted", "released"}},
		"that of another lock": {func(context.Context, *lock.InterruptedError) (*lock.Completion, error) {
			return nil, &lock.CompletedError{Key: keyA}
		}, isOther, isOther, 2, []lock.Outcome{"taken_over", "interrupted", "released", "acquired", "interrupted", "released"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				q := &inquiry{answer: c.answer}
				o := lock.Options{OnInterrupted: q.decide, Lease: lock.FixedLease(10 * time.Second)}
				began := time.Now()
				f.die(o, event("e1"))
				f.outcomes()
				never := func(context.Context) error {
					t.Error("the work runs")
					return nil
				}
				for i, is := range []func(error) bool{c.is, c.isLater} {
					if err := f.locker(o).Do(t.Context(), event("e1"), never); !is(err) {
						t.Errorf("delivery %d: %v", i, err)
					}
				}
				f.wantOutcomes(c.outcomes...)
				want := slices.Repeat([]lock.InterruptedError{{Key: event("e1"), Holder: "the dead one", Since: began}}, c.asked)
				if !slices.EqualFunc(q.asked, want, func(a, b lock.InterruptedError) bool {
					return a.Key == b.Key && a.Holder == b.Holder && a.Since.Sub(b.Since).Abs() < time.Millisecond
				}) {
					t.Errorf("asked %+v, want %+v", q.asked, want)
				}
				f.wantFree("afterwards")
				if row := f.row(); len(row.Memory.Interrupted) > 0 != (c.asked > 1) {
					t.Errorf("afterwards the row has %+v", row.Memory.Interrupted)
				}
			})
		})
	}
}

// TestOnInterruptedPanics: the lock is free, and the event is still
// interrupted.
func TestOnInterruptedPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		o := lock.Options{OnInterrupted: func(context.Context, *lock.InterruptedError) (*lock.Completion, error) { panic("boom") }}
		f.die(o, event("e1"))
		func() {
			defer func() {
				if recover() != "boom" {
					t.Error("the panic does not reach the caller")
				}
			}()
			_, _ = f.locker(o).Acquire(t.Context(), event("e1"))
		}()
		f.wantFree("after the panic")
		o.OnInterrupted = lock.FailInterrupted
		if _, err := f.locker(o).Acquire(t.Context(), event("e1")); !errors.As(err, new(*lock.InterruptedError)) {
			t.Errorf("the next time: %v", err)
		}
	})
}

// TestInterruptedWhileAsking: an owner that dies while it asks leaves the event
// interrupted, and one that dies after an answer leaves it so again.
func TestInterruptedWhileAsking(t *testing.T) { // F19
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		q := &inquiry{answer: notDone}
		o := lock.Options{OnInterrupted: q.decide}
		f.die(o, event("e1"))
		for asked := 1; asked <= 3; asked++ {
			f.die(o, event("e1"))
			if len(q.asked) != asked {
				t.Fatalf("asked %d times, want %d", len(q.asked), asked)
			}
		}
	})
}

// TestInterruptedTogether: of several locks, one that knows of an interrupted
// run is enough, and the question is asked once.
func TestInterruptedTogether(t *testing.T) { // F19
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		q := &inquiry{answer: lock.FailInterrupted}
		o := lock.Options{OnInterrupted: q.decide, Lease: lock.FixedLease(10 * time.Second)}
		a, b := lock.Key{Name: "a", Event: "e1", Payload: "one"}, lock.Key{Name: "b", Event: "e1"}
		expect.Value(f.locker(o).AcquireAll(t.Context(), a, b))(t)
		time.Sleep(11 * time.Second)
		_ = f.mustAcquire(f.locker(lock.Options{}), lock.Key{Name: "a"}).Release()
		var told *lock.InterruptedError
		o.Observe = func(_ context.Context, o lock.Observation) {
			if o.Outcome == lock.OutcomeInterrupted && o.Key != a {
				t.Errorf("observed of %+v", o.Key)
			}
		}
		if _, err := f.locker(o).AcquireAll(t.Context(), a, b); !errors.As(err, &told) || told.Key != a || len(q.asked) != 1 {
			t.Fatalf("asked %d times: %v", len(q.asked), err)
		}
		var mismatch *lock.PayloadMismatchError
		if _, err := f.locker(o).AcquireAll(t.Context(), lock.Key{Name: "a", Event: "e1", Payload: "two"}, b); !errors.As(err, &mismatch) || mismatch.Key.Name != "a" {
			t.Errorf("with another payload: %v", err)
		}
		cools := o
		cools.HoldAtLeast = time.Hour // no work has begun
		_, _ = f.locker(cools).AcquireAll(t.Context(), a, b)
		q.asked = q.asked[:1]
		for _, key := range []lock.Key{{Name: "a"}, {Name: "b"}} { // both are free
			_ = f.mustAcquire(f.locker(lock.Options{}), key).Release()
		}
		q.answer = notDone
		lk := expect.Value(f.locker(o).AcquireAll(t.Context(), a, b))(t)
		expect.OK(t, lk.Fail(errors.New("boom")))
		lk = expect.Value(f.locker(o).AcquireAll(t.Context(), a, b))(t)
		if len(q.asked) != 2 {
			t.Errorf("asked %d times, want once more after it was refused", len(q.asked))
		}
		expect.OK(t, lk.Fail(lock.ErrUnknown))
		q.answer = lock.SkipInterrupted
		var done *lock.CompletedError
		if _, err := f.locker(cools).AcquireAll(t.Context(), a, b); !errors.As(err, &done) || done.Key != a || len(q.asked) != 3 {
			t.Errorf("asked %d times: %v", len(q.asked), err)
		}
		for _, key := range []lock.Key{{Name: "a"}, {Name: "b"}} {
			_ = f.mustAcquire(f.locker(lock.Options{}), key).Release()
		}
		if _, err := f.locker(o).AcquireAll(t.Context(), b); !isCompleted(err) {
			t.Errorf("under one of the keys: %v", err)
		}
	})
}

// TestNoTimeAfterAsking: the work does not begin if the answer took until the
// deadline, although the lease goes on.
func TestNoTimeAfterAsking(t *testing.T) { // F19
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		o := lock.Options{OnInterrupted: func(ctx context.Context, _ *lock.InterruptedError) (*lock.Completion, error) {
			<-ctx.Done()
			return nil, nil
		}}
		f.die(o, event("e1"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := f.locker(o).Acquire(ctx, event("e1")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the work may begin: %v", err)
		}
		f.wantFree("afterwards")
	})
}

// TestInterruptedPayload: what was interrupted is not asked about for another
// payload, which is a mistake of the sender.
func TestInterruptedPayload(t *testing.T) { // F19
	for _, dies := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			q := &inquiry{answer: lock.SkipInterrupted}
			o := lock.Options{OnInterrupted: q.decide}
			key, first := event("e1"), lock.Outcome("taken_over")
			key.Payload = "one"
			if dies {
				f.die(o, key)
			} else {
				expect.OK(t, f.mustAcquire(f.locker(o), key).Fail(lock.ErrUnknown))
				first = "acquired"
			}
			other := key
			other.Payload = "another"
			f.outcomes()
			if _, err := f.locker(o).Acquire(t.Context(), other); !errors.As(err, new(*lock.PayloadMismatchError)) || len(q.asked) > 0 {
				t.Errorf("asked %d times: %v", len(q.asked), err)
			}
			f.wantOutcomes(first, "mismatch", "released")
			together := lock.Key{Name: "a", Event: "e1"}
			f.die(o, together) // the first of two, whose payload nobody compares
			if _, err := f.locker(o).AcquireAll(t.Context(), together, other); !errors.As(err, new(*lock.PayloadMismatchError)) || len(q.asked) > 0 {
				t.Errorf("together, asked %d times: %v", len(q.asked), err)
			}
			if _, err := f.locker(o).Acquire(t.Context(), key); !isCompleted(err) || len(q.asked) != 1 {
				t.Errorf("asked %d times: %v", len(q.asked), err)
			}
			f.die(lock.Options{}, lock.Key{Name: "b", Event: "e1", Payload: "one"}) // of a version that keeps nothing
			if _, err := f.locker(o).Acquire(t.Context(), lock.Key{Name: "b", Event: "e1", Payload: "another"}); !errors.As(err, new(*lock.PayloadMismatchError)) {
				t.Errorf("of a holder that kept nothing: %v", err)
			}
		})
	}
}

// TestInterruptedIsForgottenLast: completed events are forgotten before those
// that were interrupted, and what was interrupted keeps the row.
func TestInterruptedIsForgottenLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		const long = 2 * lock.DefaultRemember
		o := lock.Options{OnInterrupted: lock.FailInterrupted, Remember: time.Hour}
		f.die(o, event("forgotten"))
		o.Remember = long
		for _, e := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
			f.die(o, event(e))
		}
		_ = f.mustAcquire(f.locker(lock.Options{}), resource).Release()
		time.Sleep(time.Hour)
		o.Remember = time.Minute
		for i := range 40 {
			expect.OK(t, f.locker(o).Do(t.Context(), event(time.Duration(i).String()), nothing))
		}
		row := f.row()
		if n := len(row.Memory.Completed); n != 8 || len(row.Memory.Interrupted) != 9 {
			t.Errorf("the row remembers %d completed and %d interrupted events", n, len(row.Memory.Interrupted))
		}
		if keeps := time.Until(row.DeleteAfter); keeps < long-time.Hour-time.Minute {
			t.Errorf("the row is kept for %v", keeps)
		}
	})
}

// TestOnInterruptedNeedsAnEvent shows what is refused, and that nothing is
// acquired.
func TestOnInterruptedNeedsAnEvent(t *testing.T) {
	f := newFixture(t)
	l := f.locker(lock.Options{OnInterrupted: lock.SkipInterrupted})
	var noKey *lock.NoKeyError
	if _, err := l.Acquire(t.Context(), resource); !errors.As(err, &noKey) || noKey.Field != "Event" {
		t.Errorf("a key without an Event: %v", err)
	}
	if _, err := l.Acquire(t.Context(), lock.Key{Name: "resource", Order: "1"}); !errors.As(err, &noKey) || noKey.Field != "Event" {
		t.Errorf("a key that has only an Order: %v", err)
	}
	if _, err := l.AcquireAll(t.Context(), resource, keyA); !errors.As(err, &noKey) || noKey.Field != "Event" {
		t.Errorf("keys without an Event: %v", err)
	}
	if n := f.faulty.Requests(fault.Acquire); n != 0 {
		t.Errorf("%d requests", n)
	}
	f.wantOutcomes(lock.OutcomeRefused, lock.OutcomeRefused, lock.OutcomeRefused)
	if lk, err := l.AcquireAll(t.Context(), event("e1"), keyA); err != nil {
		t.Errorf("keys of which one has an Event: %v", err)
	} else {
		_ = lk.Fail(lock.ErrUnknown)
		if row := readRow(t, f.faulty.Store, "/"+keyA.Name); len(row.Memory.Interrupted) > 0 {
			t.Errorf("the row of the other remembers %+v", row.Memory.Interrupted)
		}
	}
	if lk, err := l.AcquireOneOf(t.Context(), "some", 2); err != nil {
		t.Errorf("one of two: %v", err)
	} else {
		_ = lk.Fail(lock.ErrUnknown) // is Release, because nothing is known of events
	}
	plain := struct{ driver.Store }{memstore.New()}
	if _, err := lock.New(plain, &lock.Options{OnInterrupted: lock.SkipInterrupted}); !errors.As(err, new(*lock.ConfigError)) {
		t.Errorf("a store that cannot keep the events: %v", err)
	}
}

// TestLatestKeepsNoInterruptedEvents: its runs may be repeated.
func TestLatestKeepsNoInterruptedEvents(t *testing.T) {
	f := newFixture(t)
	l := f.locker(lock.Options{OnInterrupted: lock.SkipInterrupted})
	ran := 0
	for range 2 {
		_ = l.Latest(t.Context(), event("e1"), func(context.Context) error {
			if ran++; f.row().InterruptedFor != 0 {
				t.Error("the row would keep the event")
			}
			return lock.ErrUnknown
		})
	}
	if ran != 2 {
		t.Errorf("ran %d times", ran)
	}
}

// TestFrozenWhileAsking: an answer counts under the lock under which it was
// asked for. A lease that ended while the process was frozen ends the call,
// although no timer has noticed.
func TestFrozenWhileAsking(t *testing.T) { // F6, F19
	for name, keys := range map[string][]lock.Key{"a lock": nil, "a set of one": {event("e1")}, "a set": {keyA, event("e1"), {Name: "z"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.die(lock.Options{OnInterrupted: lock.FailInterrupted}, event("e1"))
				var on onClock
				on = skewed(f.locker(lock.Options{Lease: lock.FixedLease(10 * time.Second), OnInterrupted: func(context.Context, *lock.InterruptedError) (*lock.Completion, error) {
					on.freeze(time.Minute)
					return nil, nil
				}}), 0)
				acquire := func() (*lock.Lock, error) { return on.AcquireAll(t.Context(), keys...) }
				if keys == nil {
					acquire = func() (*lock.Lock, error) { return on.Acquire(t.Context(), event("e1")) }
				}
				if _, err := acquire(); !isLost(err) {
					t.Errorf("the work may begin: %v", err)
				}
			})
		})
	}
}

// TestInterruptedWithoutOnInterrupted: an event whose owner did not ask to keep
// it is asked about if its name is taken over from that owner, and then stays
// interrupted.
func TestInterruptedWithoutOnInterrupted(t *testing.T) { // F19
	for name, end := range map[string]func(f *fixture, o lock.Options){
		"refused": func(f *fixture, o lock.Options) {
			if _, err := f.locker(o).Acquire(f.t.Context(), event("e1")); !errors.As(err, new(*lock.InterruptedError)) {
				f.t.Errorf("the first time: %v", err)
			}
		},
		"dropped": func(f *fixture, o lock.Options) {
			o.Observe = func(context.Context, lock.Observation) { panic("boom") }
			defer func() {
				if recover() == nil {
					f.t.Error("the lock was not dropped")
				}
			}()
			_, _ = f.locker(o).Acquire(f.t.Context(), event("e1"))
		},
		"dead": func(f *fixture, o lock.Options) {
			o.OnInterrupted = notDone
			f.die(o, event("e1"))
			_ = f.mustAcquire(f.locker(lock.Options{}), resource).Release()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				o := lock.Options{OnInterrupted: lock.FailInterrupted, Lease: lock.FixedLease(10 * time.Second), Remember: 2 * lock.DefaultRemember}
				f.die(lock.Options{}, event("e1"))
				end(f, o)
				time.Sleep(2*lock.DefaultRemember - 5*time.Second)
				var interrupted *lock.InterruptedError
				if _, err := f.locker(o).Acquire(t.Context(), event("e1")); !errors.As(err, &interrupted) || interrupted.Holder != "the dead one" {
					t.Errorf("two days later: %v", err)
				}
			})
		})
	}
}

// TestNoCooldownWithoutWork: an event that OnInterrupted completes keeps no
// other event from the name, because no work has begun.
func TestNoCooldownWithoutWork(t *testing.T) { // F19
	t.Parallel()
	for _, keys := range [][]lock.Key{{event("e1")}, {event("e1"), {Name: "z", Event: "e1"}}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			o := lock.Options{OnInterrupted: lock.SkipInterrupted, Lease: lock.FixedLease(10 * time.Second), HoldAtLeast: time.Hour}
			_ = expect.Value(f.locker(o).AcquireAll(t.Context(), keys...))(t)
			time.Sleep(11 * time.Second)
			if _, err := f.locker(o).AcquireAll(t.Context(), keys...); !isCompleted(err) {
				t.Fatal(err)
			}
			if row := f.row(); row.Cooling() {
				t.Errorf("%d keys: the row of an event that was skipped: %+v", len(keys), row)
			}
			expect.OK(t, expect.Value(f.locker(o).Acquire(t.Context(), event("e2")))(t).Release())
			if row := f.row(); !row.Cooling() {
				t.Errorf("%d keys: the row after work: %+v", len(keys), row)
			}
			time.Sleep(time.Hour + time.Microsecond)
			f.die(o, event("e3"))
			o.OnInterrupted = notDone
			expect.OK(t, expect.Value(f.locker(o).Acquire(t.Context(), event("e3")))(t).Release())
			if row := f.row(); !row.Cooling() {
				t.Errorf("%d keys: the row after work that was allowed: %+v", len(keys), row)
			}
		})
	}
}

// TestLeaseTellsOfATakeover: a Locker that asks nothing tells the work of the
// run whose name it took over, for as long as it remembers, and of no other.
func TestLeaseTellsOfATakeover(t *testing.T) { // F19
	for name, c := range map[string]struct {
		event  string
		after  time.Duration
		around time.Duration // what the lock around it remembers, if it does not say itself
		told   bool
	}{
		"the event":                 {event: "e1", told: true},
		"another event":             {event: "e2"},
		"the event, too late":       {event: "e1", after: time.Hour - 11*time.Second},
		"the event, just so":        {event: "e1", after: time.Hour - 12*time.Second, told: true},
		"the name, as a mutex":      {},
		"in another lock":           {event: "e1", after: 25 * time.Hour, around: 26 * time.Hour, told: true},
		"in another lock, too late": {event: "e1", after: 27 * time.Hour, around: 26 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.die(lock.Options{}, event("e1"))
				time.Sleep(c.after)
				ctx, o := t.Context(), lock.Options{Remember: time.Hour}
				if c.around > 0 {
					outer := f.mustAcquire(f.locker(lock.Options{Remember: c.around}), lock.Key{Name: "around"})
					defer func() { expect.OK(t, outer.Release()) }()
					ctx, o = outer.Context(), lock.Options{}
				}
				lk := expect.Value(f.locker(o).Acquire(ctx, event(c.event)))(t)
				if i := lk.Lease().Interrupted; (i != nil) != c.told || i != nil && i.Holder != "the dead one" {
					t.Errorf("the lease tells of %+v", i)
				}
				expect.OK(t, lk.Release())
			})
		})
	}
}

// TestInterruptIsKept: what is kept of a run that cannot tell is who had it and
// since when, for as long as Remember says from then on, to the last moment.
func TestInterruptIsKept(t *testing.T) { // F19
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		o := lock.Options{OnInterrupted: lock.FailInterrupted, Remember: time.Hour, Holder: func(context.Context) string { return "holder" }}
		began, key := time.Now(), event("e1")
		key.Payload = "payload"
		lk := f.mustAcquire(f.locker(o), key)
		payload := f.row().Payload
		time.Sleep(time.Minute)
		expect.OK(t, lk.Fail(lock.ErrUnknown))
		want := driver.InterruptedEvent{Event: "e1", Payload: payload, Holder: "holder", Since: began, Until: time.Now().Add(time.Hour)}
		check := func() {
			t.Helper()
			got := f.row().Memory.Interrupted
			if len(got) != 1 || !got[0].Since.Equal(want.Since) || !got[0].Until.Equal(want.Until) {
				t.Fatalf("the row has %+v, want %+v", got, want)
			}
			if got[0].Since, got[0].Until = want.Since, want.Until; got[0] != want || payload == "" {
				t.Errorf("the row has %+v, want %+v", got[0], want)
			}
		}
		check()
		time.Sleep(time.Hour)
		complete(t, f.locker(lock.Options{}), "e2")
		check()
	})
}

// TestInterruptHoldsAtLeast: the cooldown follows work of which nobody knows
// the end, too. The event is kept as long as an outer lock remembers.
func TestInterruptHoldsAtLeast(t *testing.T) { // F19
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		outer := f.mustAcquire(f.locker(lock.Options{Remember: 48 * time.Hour}), keyA)
		l := f.locker(lock.Options{OnInterrupted: lock.SkipInterrupted, HoldAtLeast: time.Hour})
		lk := expect.Value(l.Acquire(outer.Context(), event("e1")))(t)
		if kept := f.row().InterruptedFor; kept != 48*time.Hour {
			t.Errorf("the event is kept for %v", kept)
		}
		expect.OK(t, lk.Fail(lock.ErrUnknown))
		if row := f.row(); !row.Cooling() || row.Memory.FindInterrupted("e1", time.Now()) == nil {
			t.Errorf("afterwards the row is %+v", row)
		}
		expect.OK(t, outer.Release())
	})
}
