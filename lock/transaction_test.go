package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

type send = func(context.Context, *driver.Settlement) (driver.Row, bool, error)

// transact completes lk through attempts, one after the other. The last one is
// repeated.
func transact(t *testing.T, f *fixture, lk *lock.Lock, attempts ...send) error {
	t.Helper()
	held, ok := driver.FromContext(lk.Context())
	if !ok || held.Store() != driver.Store(f.faulty) {
		t.Fatalf("the context carries the lock %v of another store", held)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(lk.Context()), 20*time.Second)
	defer cancel()
	return held.CompleteWith(ctx, []byte("result"), func(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
		attempt := attempts[0]
		if len(attempts) > 1 {
			attempts = attempts[1:]
		}
		return attempt(ctx, s)
	})
}

// TestTransaction shows what becomes of a lock that is completed together with
// other writes.
func TestTransaction(t *testing.T) { // F5, F6, F53
	lost := errors.New("connection lost")
	declined := &driver.Error{Lasting: true, Answered: true, Unapplied: true, Err: errors.New("insufficient balance")}
	throttled := &driver.Error{Answered: true, Unapplied: true, Err: errors.New("slow down")}
	for name, c := range map[string]struct {
		attempts  func(f *fixture) []send
		completed bool
		goesOn    bool // the lock is held, and can still be ended
		lost      bool
		failed    bool
	}{
		"applied":                  {attempts: func(f *fixture) []send { return []send{f.faulty.Settle} }, completed: true},
		"declined":                 {attempts: func(*fixture) []send { return []send{fails(declined)} }, goesOn: true, failed: true},
		"throttled, then applied":  {attempts: func(f *fixture) []send { return []send{fails(throttled), f.faulty.Settle} }, completed: true},
		"throttled all the time":   {attempts: func(*fixture) []send { return []send{fails(throttled)} }, goesOn: true, failed: true},
		"answer lost":              {attempts: func(f *fixture) []send { return []send{appliedButLost(f, lost), f.faulty.Settle} }, completed: true},
		"no answer":                {attempts: func(*fixture) []send { return []send{fails(lost)} }, failed: true},
		"no answer, then declined": {attempts: func(*fixture) []send { return []send{fails(lost), fails(declined)} }, failed: true},
		"refused":                  {attempts: func(*fixture) []send { return []send{refuses} }, lost: true},
		"no answer, then refused by a row that nobody knows": {attempts: func(*fixture) []send { return []send{fails(lost), refuses} }, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)})
				lk := f.mustAcquire(l, event("e1"))
				f.outcomes()
				err := transact(t, f, lk, c.attempts(f)...)
				if (err == nil) != c.completed || errors.Is(err, lock.ErrLost) != c.lost || isStoreError(err) != c.failed {
					t.Errorf("error %v", err)
				}
				if ended := lk.Context().Err() != nil; ended == c.goesOn {
					t.Errorf("the context has ended: %v", ended)
				}
				switch {
				case c.goesOn:
					f.wantOutcomes() // nothing has happened
					if err := transact(t, f, lk, f.faulty.Settle); err != nil {
						t.Errorf("a second transaction: %v", err)
					}
					fallthrough
				case c.completed:
					f.wantOutcomes(lock.OutcomeReleased)
				case c.lost:
					f.wantOutcomes(lock.OutcomeLost)
				default:
					f.wantOutcomes(lock.OutcomeCompleteFailed)
				}
				before := f.faulty.Requests(fault.Release)
				if again := lk.Complete(); c.completed && again != nil || !c.completed && !c.goesOn && again != err {
					t.Errorf("Complete afterwards: %v, want %v", again, err)
				}
				_ = lk.Release()
				if n := f.faulty.Requests(fault.Release) - before; n != 0 {
					t.Errorf("%d requests after the end, want none", n)
				}
				_, err = l.Acquire(t.Context(), event("e1"))
				var completed *lock.CompletedError
				if done := errors.As(err, &completed); done != (c.completed || c.goesOn) || done && string(completed.Result) != "result" {
					t.Errorf("a duplicate: %v", err)
				}
				if !c.completed && !c.goesOn && !errors.Is(err, lock.ErrHeld) { // nobody knows what happened
					t.Errorf("a duplicate: %v, want ErrHeld until the lease ends", err)
				}
			})
		})
	}
}

func fails(err error) send {
	return func(context.Context, *driver.Settlement) (driver.Row, bool, error) { return driver.Row{}, false, err }
}

func refuses(context.Context, *driver.Settlement) (driver.Row, bool, error) {
	return driver.Row{}, false, nil
}

func appliedButLost(f *fixture, err error) send {
	return func(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
		_, _, _ = f.faulty.Settle(ctx, s)
		return driver.Row{}, false, err
	}
}

// TestTransactionThatPanics shows that a panic leaves no goroutine, and nothing
// that blocks.
func TestTransactionThatPanics(t *testing.T) { // F48
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(10 * time.Second)}), event("e1"))
		func() {
			defer func() { _ = recover() }()
			_ = transact(t, f, lk, func(context.Context, *driver.Settlement) (driver.Row, bool, error) { panic("client") })
		}()
		if err := lk.Complete(); !errors.Is(err, lock.ErrReleased) {
			t.Errorf("Complete: %v", err)
		}
		if lk.Context().Err() == nil {
			t.Error("the context goes on")
		}
	})
}

// TestTransactionWithoutEvent shows that a plain mutex cannot be taken for
// completed: only its token tells who released it.
func TestTransactionWithoutEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)})
		lk := f.mustAcquire(l, resource)
		if err := transact(t, f, lk, appliedButLost(f, errors.New("lost")), f.faulty.Settle); !errors.Is(err, lock.ErrLost) {
			t.Errorf("refused after a lost answer: %v, want ErrLost: nobody knows whether the other writes were applied", err)
		}
		ordered := lock.Key{Name: "resource", Order: "2"}
		lk = f.mustAcquire(l, ordered)
		if err := transact(t, f, lk, appliedButLost(f, errors.New("lost")), f.faulty.Settle); err != nil {
			t.Errorf("the row has this order: %v", err)
		}
		later := f.mustAcquire(l, lock.Key{Name: "resource", Order: "3"})
		time.Sleep(time.Hour)
		other := f.mustAcquire(l, lock.Key{Name: "resource", Order: "4"})
		expect.Must(t, other.Complete())
		if err := transact(t, f, later, fails(errors.New("lost")), f.faulty.Settle); !errors.Is(err, lock.ErrLost) {
			t.Errorf("a later order was completed by another: %v, want ErrLost", err)
		}
	})
}

// TestCompletedByAnother shows that a completion whose first attempt had no
// answer is lost if the row has the event from another run: then other writes
// of a transaction were not made.
func TestCompletedByAnother(t *testing.T) { // F6, F21
	both := lock.Key{Name: "resource", Event: "e1", Order: "5"}
	transaction := func(t *testing.T, f *fixture, lk *lock.Lock) error {
		return transact(t, f, lk, fails(errors.New("lost")), f.faulty.Settle)
	}
	alone := func(_ *testing.T, f *fixture, lk *lock.Lock) error {
		f.faulty.Plan(fault.Release, fault.DropBefore)
		return lk.Complete()
	}
	for name, c := range map[string]struct {
		key lock.Key
		end func(*testing.T, *fixture, *lock.Lock) error
	}{
		"a transaction, with an event": {event("e1"), transaction},
		"a transaction, with an order": {lock.Key{Name: "resource", Order: "5"}, transaction},
		"a transaction, with both":     {both, transaction},
		"alone, with an event":         {event("e1"), alone},
		"alone, with both":             {both, alone},
	} {
		for _, remember := range []time.Duration{0, 48 * time.Hour} { // of the other run: its event ends before ours, or after it
			t.Run(fmt.Sprint(name, ", for ", remember), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t)
					late := f.mustAcquire(f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)}), c.key)
					time.Sleep(time.Hour)
					expect.Must(t, f.locker(lock.Options{Remember: remember}).Do(t.Context(), c.key, nothing))
					time.Sleep(time.Second)
					f.outcomes()
					if err := c.end(t, f, late); !errors.Is(err, lock.ErrLost) {
						t.Errorf("got %v, want ErrLost", err)
					}
					f.wantOutcomes(lock.OutcomeLost)
				})
			})
		}
	}
}

// TestTransactionInsideAnEvent shows that a transaction is refused if the lock
// that it completes has no Event and one around it has: that one is completed
// later, so an event that is interrupted before would apply the writes again.
func TestTransactionInsideAnEvent(t *testing.T) { // F53
	ordered := lock.Key{Name: "resource", Order: "1"}
	for name, c := range map[string]struct {
		around  []lock.Key
		inner   lock.Key
		refused bool
	}{
		"an event":              {around: []lock.Key{event("e1")}, inner: lock.Key{Name: "inner"}, refused: true},
		"an order":              {around: []lock.Key{ordered}, inner: lock.Key{Name: "inner"}, refused: true},
		"an event farther out":  {around: []lock.Key{event("e1"), {Name: "between"}}, inner: lock.Key{Name: "inner"}, refused: true},
		"neither":               {around: []lock.Key{resource}, inner: lock.Key{Name: "inner"}},
		"an event in an event":  {around: []lock.Key{event("e1")}, inner: lock.Key{Name: "inner", Event: "e1"}},
		"an order in an event":  {around: []lock.Key{event("e1")}, inner: lock.Key{Name: "inner", Order: "1"}},
		"nothing, and no event": {inner: resource},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)})
				ctx := t.Context()
				for _, key := range c.around {
					ctx = expect.Value(l.Acquire(ctx, key))(t).Context()
				}
				lk := expect.Value(l.Acquire(ctx, c.inner))(t)
				sent := 0
				err := transact(t, f, lk, func(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
					sent++
					return f.faulty.Settle(ctx, s)
				})
				if isConfigError(err) != c.refused || (sent == 0) != c.refused || err != nil && !c.refused {
					t.Errorf("sent %d times: %v", sent, err)
				}
				if c.refused {
					expect.OK(t, lk.Complete())
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)})
		set := f.mustAcquireAll(l, keys("e", "a", "b")...)
		lk := expect.Value(l.Acquire(set.Context(), resource))(t)
		if err := transact(t, f, lk, f.faulty.Settle); !isConfigError(err) {
			t.Errorf("inside a set of keys with an event: %v", err)
		}
		// A run of Latest may always be repeated, also inside an event, and an Event
		// inside it would skip the run for others.
		around := f.mustAcquire(l, lock.Key{Name: "around", Event: "e1"})
		expect.OK(t, l.Latest(around.Context(), lock.Key{Name: "latest", Event: "e1"}, func(ctx context.Context) error {
			return transact(t, f, expect.Value(l.Acquire(ctx, lock.Key{Name: "inner"}))(t), f.faulty.Settle)
		}))
	})
}

// TestHeartbeatDuringTransaction shows that a renewal that is refused while a
// transaction is under way counts as a loss only if the transaction is not
// applied. If an observer blocks the heartbeat, the end of the lease counts.
func TestHeartbeatDuringTransaction(t *testing.T) {
	for name, c := range map[string]struct {
		key            lock.Key
		applied, stuck bool
	}{
		"applied":                              {key: event("e1"), applied: true},
		"declined":                             {key: event("e1")},
		"declined, without an event":           {key: resource},
		"declined, and the heartbeat is stuck": {key: event("e1"), stuck: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				tested := make(chan struct{})
				defer close(tested)
				lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(30 * time.Second), Observe: func(_ context.Context, o lock.Observation) {
					if c.stuck && o.Outcome == lock.OutcomeRenewed {
						<-tested
					}
				}}), c.key)
				_ = transact(t, f, lk, func(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
					if c.stuck {
						time.Sleep(11 * time.Second) // a renewal succeeds
					}
					// Somebody else owns the row, as after a takeover.
					if _, ok, err := f.faulty.Settle(context.WithoutCancel(ctx), s); !ok || err != nil {
						t.Errorf("released %v, %v", ok, err)
					}
					time.Sleep(29900 * time.Millisecond) // renewals are refused meanwhile, and the lease is all but over
					if c.applied {
						return driver.Row{}, true, nil
					}
					return driver.Row{}, false, &driver.Error{Lasting: true, Answered: true, Unapplied: true, Err: errors.New("declined")}
				})
				synctest.Wait()
				if lost := errors.Is(context.Cause(lk.Context()), lock.ErrLost); lost == c.applied {
					t.Errorf("the lease is lost: %v", lost)
				}
				_ = lk.Release()
			})
		})
	}
}

// TestHeartbeatAfterTransaction: a lock that goes on is renewed as before.
func TestHeartbeatAfterTransaction(t *testing.T) {
	for name, key := range map[string]lock.Key{"an event": event("e1"), "a mutex": resource} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				lk := f.mustAcquire(f.locker(lock.Options{}), key)
				_ = transact(t, f, lk, fails(&driver.Error{Lasting: true, Answered: true, Unapplied: true, Err: errors.New("declined")}))
				time.Sleep(time.Minute)
				if cause := context.Cause(lk.Context()); cause != nil {
					t.Errorf("after a minute: %v", cause)
				}
				_ = lk.Release()
			})
		})
	}
}

// TestTransactionAfterTheEnd shows that a transaction which is not sent,
// because the lock has ended already, is never taken for one that was applied.
func TestTransactionAfterTheEnd(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, f *fixture, lk *lock.Lock) error{
		"a transaction": func(t *testing.T, f *fixture, lk *lock.Lock) error { return transact(t, f, lk, f.faulty.Settle) },
		"Complete":      func(_ *testing.T, _ *fixture, lk *lock.Lock) error { return lk.Complete() },
		"Release":       func(_ *testing.T, _ *fixture, lk *lock.Lock) error { return lk.Release() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(30 * time.Second)}), event("e1"))
				expect.Must(t, end(t, f, lk))
				held, _ := driver.FromContext(lk.Context()) // which has ended, and says less than the lock
				err := held.CompleteWith(lk.Context(), nil, func(context.Context, *driver.Settlement) (driver.Row, bool, error) {
					t.Error("it was sent")
					return driver.Row{}, true, nil
				})
				if released := errors.Is(err, lock.ErrReleased); released != (name == "Release") || !released && !errors.As(err, new(*lock.ConfigError)) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// TestTransactionsAtOnce shows that of several transactions of one lock one is
// applied, and that the others say that they were not.
func TestTransactionsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(30 * time.Second)}), event("e1"))
		var wg sync.WaitGroup
		var applied, succeeded atomic.Int32
		for range 4 {
			wg.Go(func() {
				err := transact(t, f, lk, func(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
					time.Sleep(100 * time.Millisecond)
					applied.Add(1)
					return f.faulty.Settle(ctx, s)
				})
				if err == nil {
					succeeded.Add(1)
				}
			})
		}
		wg.Wait()
		if applied.Load() != 1 || succeeded.Load() != 1 {
			t.Errorf("%d were applied, and %d report success, want one", applied.Load(), succeeded.Load())
		}
	})
}

// TestEndDuringTransactionAndRenewal shows that a lock can be ended by another
// goroutine while a transaction is under way and a renewal fails.
func TestEndDuringTransactionAndRenewal(t *testing.T) { // F17
	for name, end := range map[string]func(lk *lock.Lock){
		"Release":  func(lk *lock.Lock) { _ = lk.Release() },
		"Complete": func(lk *lock.Lock) { _ = lk.Complete() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(30 * time.Second)}), resource)
				f.faulty.Plan(fault.Renew, fault.Deny)
				var wg sync.WaitGroup
				wg.Go(func() {
					time.Sleep(9 * time.Second) // the first renewal is sent after 10 s
					_ = transact(t, f, lk, func(context.Context, *driver.Settlement) (driver.Row, bool, error) {
						time.Sleep(2 * time.Second)
						return driver.Row{}, false, &driver.Error{Lasting: true, Answered: true, Unapplied: true, Err: errors.New("declined")}
					})
				})
				wg.Go(func() {
					time.Sleep(9500 * time.Millisecond)
					end(lk)
				})
				wg.Wait()
				if lk.Context().Err() == nil {
					t.Error("the context goes on")
				}
			})
		})
	}
}

// TestSecondEndWaitsForTheFirst shows that the second of two goroutines that
// end a lock finds no goroutine of the lock afterwards.
func TestSecondEndWaitsForTheFirst(t *testing.T) { // F17
	for range 200 {
		f := newFixture(t)
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(30 * time.Second)}), event("e1"))
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				_ = lk.Complete()
				if lk.Context().Err() == nil {
					t.Error("the context goes on after Complete")
				}
			})
		}
		wg.Wait()
	}
}

// TestTransactionWithoutAContext shows that a transaction which was never sent,
// because its context had ended, leaves the lock to be ended.
func TestTransactionWithoutAContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)}), event("e1"))
		held, _ := driver.FromContext(lk.Context())
		ctx, cancel := context.WithCancel(lk.Context())
		cancel()
		err := held.CompleteWith(ctx, nil, func(ctx context.Context, _ *driver.Settlement) (driver.Row, bool, error) {
			return driver.Row{}, false, ctx.Err()
		})
		if isStoreError(err) || !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want the context's", err)
		}
		if err := lk.Release(); err != nil {
			t.Errorf("Release: %v", err)
		}
		f.wantFree("after Release")
	})
}
