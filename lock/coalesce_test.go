package lock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

var coalescing = lock.Options{Coalesce: true, Lease: lock.FixedLease(time.Minute)}

func isCoalesced(err error) bool {
	var held *lock.HeldError
	return errors.As(err, &held) && held.Coalesced
}

// TestBurst sends a thousand events during one run: two runs serve them all,
// with one write for each event beside its claim.
func TestBurst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(coalescing)
		runs := 0
		err := l.Do(t.Context(), event("first"), func(context.Context) error {
			if runs++; runs > 1 {
				return nil
			}
			for i := range 1000 {
				if err := l.Do(t.Context(), event(fmt.Sprint(i)), nothing); !isCoalesced(err) {
					t.Fatal(err)
				}
			}
			return nil
		})
		if err != nil || runs != 2 {
			t.Errorf("%d runs, %v", runs, err)
		}
		requests := map[lock.Outcome]int{}
		for _, o := range f.observed {
			requests[o.Outcome] += o.Requests
			if o.Outcome == lock.OutcomeCoalesced && o.Holder == "" {
				t.Fatalf("%+v", o)
			}
		}
		if requests[lock.OutcomeAcquired] != 1 || requests[lock.OutcomeCoalesced] != 2000 || requests[lock.OutcomeOwed] != 1 || requests[lock.OutcomeReleased] != 1 || len(requests) != 4 {
			t.Errorf("requests by outcome: %v", requests)
		}
	})
}

// TestNobodyIsOwed shows that a lock which nobody asked for costs no more
// requests with Coalesce.
func TestNobodyIsOwed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		expect.OK(t, f.locker(coalescing).Do(t.Context(), event("e1"), nothing))
		requests := 0
		for _, o := range f.observed {
			requests += o.Requests
		}
		if requests != 2 || len(f.observed) != 2 {
			t.Errorf("%d requests, observed %v", requests, f.outcomes())
		}
	})
}

// TestRefusedBesideCoalesce lists who is not coalesced, and is told so by one
// request.
func TestRefusedBesideCoalesce(t *testing.T) {
	t.Parallel()
	plain := coalescing
	plain.Coalesce = false
	for name, c := range map[string]struct {
		holder, claim lock.Options
		key           lock.Key
		last          bool
	}{
		"another delivery of the holder's event": {coalescing, coalescing, event("holder's"), false},
		"the holder does not look at marks":      {plain, coalescing, event("e2"), false},
		"the claim does not ask for it":          {coalescing, plain, event("e2"), false},
		"the holder's last run has begun":        {coalescing, coalescing, event("e2"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				lk := f.mustAcquire(f.locker(c.holder), event("holder's"))
				if c.last {
					if _, ok, err := f.faulty.Store.(driver.Coalescer).Mark(t.Context(), &driver.Mark{Name: "/resource", Token: f.row().Token, Close: true}); !ok {
						t.Fatal(err)
					}
				}
				if err := f.locker(c.claim).Do(t.Context(), c.key, nothing); !isHeld(err) || isCoalesced(err) {
					t.Errorf("got %v", err)
				}
				if o := f.observed[len(f.observed)-1]; o.Requests != 1 {
					t.Errorf("refused by %d requests", o.Requests)
				}
				if err := lk.Complete(); err != nil && !c.last { // this holder has not closed it
					t.Error(err)
				}
			})
		})
	}
}

// TestOwedRun asks for another run in several states of the holder.
func TestOwedRun(t *testing.T) {
	t.Parallel()
	deadline := coalescing
	deadline.Lease = lock.UntilDeadline()
	beat := coalescing
	beat.Lease = lock.Heartbeat(4 * time.Second)
	for name, c := range map[string]struct {
		options lock.Options
		took    time.Duration // the run, of the 30 s of the invocation
		fault   fault.Fault   // of the first completion
		close   fault.Fault   // of the first request that closes the row for the last run
		again   bool
	}{
		"there is time":                   {deadline, 10 * time.Second, fault.None, fault.None, true},
		"there is not enough time":        {deadline, 15500 * time.Millisecond, fault.None, fault.None, false},
		"too little after the row closed": {deadline, 14200 * time.Millisecond, fault.None, fault.Hang, false},
		"the row is closed in the end":    {deadline, 12 * time.Second, fault.None, fault.DropBefore, true},
		"a heartbeat goes on":             {beat, 10 * time.Second, fault.None, fault.None, true},
		"the request was lost":            {deadline, time.Second, fault.DropBefore, fault.None, true},
		"the answer was lost":             {deadline, time.Second, fault.ApplyThenDrop, fault.None, true},
		"the lease is over by the answer": {lock.Options{Coalesce: true, Lease: lock.FixedLease(4 * time.Second)}, 1500 * time.Millisecond, fault.Hang, fault.None, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(c.options)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				lk := expect.Value(l.Acquire(ctx, event("e1")))(t)
				time.Sleep(c.took)
				if err := l.Do(ctx, event("e2"), nothing); !isCoalesced(err) {
					t.Fatal(err)
				}
				f.faulty.Plan(fault.Release, c.fault)
				f.faulty.Plan(fault.Mark, c.close)
				f.outcomes()
				var owed *lock.OwedError
				if err := lk.Complete(); !errors.As(err, &owed) || owed.Again != c.again || owed.Key.Name != event("e1").Name {
					t.Fatalf("Complete: %v", err)
				}
				if !c.again {
					f.wantOutcomes(lock.OutcomeOwed, lock.OutcomeReleased)
					if err := lk.Complete(); !errors.Is(err, lock.ErrReleased) {
						t.Errorf("Complete again: %v", err)
					}
					f.wantFree("after a run that is owed to nobody")
					return
				}
				if lk.Context().Err() != nil {
					t.Fatal("the work's context has ended")
				}
				time.Sleep(5 * time.Second) // longer than a heartbeat's lease
				if err := lk.Complete(); err != nil {
					t.Errorf("after the owed run: %v", err)
				}
				if err := l.Do(t.Context(), event("e1"), nothing); !isCompleted(err) {
					t.Errorf("the completed event: %v", err)
				}
				if err := l.Do(t.Context(), event("e2"), nothing); err != nil {
					t.Errorf("the coalesced event is not completed: %v", err)
				}
			})
		})
	}
}

// TestOwedErrorSaysWhatFollows reads the error's text.
func TestOwedErrorSaysWhatFollows(t *testing.T) {
	t.Parallel()
	key := event("e1")
	for text, e := range map[string]lock.OwedError{
		"has to run once more":                  {Key: key, Again: true},
		"although the work failed: EOF":         {Key: key, Err: io.EOF},
		"there is no time left":                 {Key: key},
		"lambdalock: key " + key.Digest() + ":": {Key: key},
	} {
		if got := e.Error(); !strings.Contains(got, text) || strings.Contains(got, "%!") {
			t.Errorf("%q does not say %q", got, text)
		}
	}
}

// TestOwedRunOfAHeartbeat lets renewals fail while a completion is under way
// that is refused because of a mark.
func TestOwedRunOfAHeartbeat(t *testing.T) { // F16
	t.Parallel()
	for name, c := range map[string]struct {
		lease    time.Duration //
		renewals fault.Fault   // the first fails so, or all of them
		all      bool          //
		complete time.Duration // after the acquisition
		hangs    int           // attempts to complete
		again    bool
	}{
		"one renewal fails": {30 * time.Second, fault.Deny, false, 9900 * time.Millisecond, 1, true},
		"all of them fail":  {6 * time.Second, fault.DropBefore, true, 2500 * time.Millisecond, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{Coalesce: true, Lease: lock.Heartbeat(c.lease)})
				lk := f.mustAcquire(l, event("e1"))
				if err := l.Do(t.Context(), event("e2"), nothing); !isCoalesced(err) {
					t.Fatal(err)
				}
				f.faulty.Plan(fault.Renew, c.renewals)
				if c.all {
					f.faulty.Always(fault.Renew, c.renewals)
				}
				time.Sleep(c.complete)
				f.faulty.Plan(fault.Release, slices.Repeat([]fault.Fault{fault.Hang}, c.hangs)...)
				var owed *lock.OwedError
				if err := lk.Complete(); !errors.As(err, &owed) || owed.Again != c.again {
					t.Fatalf("Complete: %v", err)
				}
				if !c.again {
					return
				}
				time.Sleep(time.Minute)
				if err := context.Cause(lk.Context()); err != nil {
					t.Errorf("the owed run ended with %v", err)
				}
				if err := lk.Complete(); err != nil {
					t.Errorf("after the owed run: %v", err)
				}
			})
		})
	}
}

// TestMarkOfADeadHolder shows that those who take a dead holder's lock over
// serve the events that it owed a run, and owe no more. If it was only slow, it
// has lost its lock: what the next holder owes is none of its business.
func TestMarkOfADeadHolder(t *testing.T) { // F19
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(coalescing)
		slow := f.mustAcquire(l, event("e1"))
		if err := l.Do(t.Context(), event("e2"), nothing); !isCoalesced(err) {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		runs := 0
		if err := l.Do(t.Context(), event("e1"), func(context.Context) error { runs++; return nil }); err != nil || runs != 1 {
			t.Errorf("%d runs, %v", runs, err)
		}
		next := f.mustAcquire(l, event("e3"))
		if err := l.Do(t.Context(), event("e4"), nothing); !isCoalesced(err) {
			t.Fatal(err)
		}
		if err := slow.Complete(); !isLost(err) || errors.Is(err, lock.ErrOwed) {
			t.Errorf("Complete after the lease: %v", err)
		}
		_ = next.Release()
	})
}

// TestLateClaimOfACoalescedEvent plays a delivery that died before its claim
// arrived, and whose event was then coalesced: the claim must not own the name,
// because nobody would run for those who rely on it.
func TestLateClaimOfACoalescedEvent(t *testing.T) { // F3
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		dead := skewed(f.locker(coalescing), lock.DefaultGrace-time.Millisecond)
		f.faulty.Always(fault.Acquire, fault.HangThenApply)
		f.faulty.Always(fault.Release, fault.DropBefore)
		if _, err := dead.Acquire(t.Context(), event("e2")); !isStoreError(err) {
			t.Fatal(err)
		}
		f.faulty.Always(fault.Acquire, fault.None)
		f.faulty.Always(fault.Release, fault.None)
		l := f.locker(coalescing)
		holder := f.mustAcquire(l, event("e1"))
		if err := l.Do(t.Context(), event("e2"), nothing); !isCoalesced(err) {
			t.Fatal(err)
		}
		_ = holder.Release()
		f.faulty.Apply()
		if row := f.row(); row.Token != "" {
			t.Errorf("the late claim owns the name: %+v", row)
		}
	})
}

// TestLateClaimOfItsOwnMark plays a process that is refused, and whose clock is
// set back before it marks: a late copy of its claim must not own the name,
// because the event was acknowledged.
func TestLateClaimOfItsOwnMark(t *testing.T) { // F3, F58
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		holder := f.mustAcquire(f.locker(coalescing), event("e1"))
		p := skewed(f.locker(coalescing), time.Minute)
		f.faulty.Always(fault.Acquire, fault.HangThenApply)
		f.faulty.Always(fault.Release, fault.DropBefore)
		if err := p.Do(t.Context(), event("e2"), nothing); !isStoreError(err) {
			t.Fatal(err)
		}
		f.faulty.Always(fault.Acquire, fault.None)
		f.faulty.Always(fault.Release, fault.None)
		p.clock.Step(-time.Minute)
		if err := p.Do(t.Context(), event("e2"), nothing); !isCoalesced(err) {
			t.Fatal(err)
		}
		_ = holder.Release()
		f.faulty.Apply()
		if row := f.row(); row.Token != "" {
			t.Errorf("the late claim owns the name: %+v", row)
		}
	})
}

// TestMarkMeetsTheEnd lets the holder end between the refusal and the mark: the
// event gets the name.
func TestMarkMeetsTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(coalescing)
		holder := f.mustAcquire(l, event("e1"))
		f.faulty.Plan(fault.Mark, fault.DropBefore)
		ran := make(chan error)
		go func() { ran <- l.Do(t.Context(), event("e2"), nothing) }()
		synctest.Wait() // the mark is repeated in a moment
		expect.OK(t, holder.Complete())
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
}

// TestMarkWithoutAnswer shows that an event which may not be served is not
// acknowledged.
func TestMarkWithoutAnswer(t *testing.T) { // F7
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(coalescing)
		holder := f.mustAcquire(l, event("e1"))
		f.faulty.Always(fault.Mark, fault.ApplyThenDrop)
		if err := l.Do(t.Context(), event("e2"), nothing); !isStoreError(err) || isHeld(err) {
			t.Errorf("got %v", err)
		}
		_ = holder.Release()
	})
}

// TestMarkAfterATroubledClaim shows that what became of the claim's requests
// counts neither as trouble of the mark nor in its error.
func TestMarkAfterATroubledClaim(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		claim, mark fault.Fault // of the first request of each
		want        func(error) bool
	}{
		"both are throttled once": {fault.Throttle, fault.Throttle, isCoalesced},
		"no answer, then denied": {fault.DropBefore, fault.Deny, func(err error) bool {
			var e *lock.StoreError
			return errors.As(err, &e) && e.Op == "coalesce" && e.Unapplied
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(coalescing)
				holder := f.mustAcquire(l, event("e1"))
				f.faulty.Plan(fault.Acquire, c.claim)
				f.faulty.Plan(fault.Mark, c.mark)
				if err := l.Do(t.Context(), event("e2"), nothing); !c.want(err) {
					t.Errorf("got %v", err)
				}
				_ = holder.Release()
			})
		})
	}
}

// TestSilentStoreWithMarks shows that a settlement is not taken for applied if
// the store does not say what refused it.
func TestSilentStoreWithMarks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.faulty.Store = silent{memstore.New()}
		l := f.locker(coalescing)
		lk := f.mustAcquire(l, event("e1"))
		row, ok, err := f.faulty.Store.(silent).Mark(t.Context(), &driver.Mark{Name: "/resource", Token: f.row().Token})
		if !ok || err != nil {
			t.Fatal(row, err)
		}
		f.faulty.Plan(fault.Release, fault.DropBefore)
		if err := lk.Complete(); err == nil {
			t.Error("the event counts as completed, and another run is owed")
		}
	})
}

// silent does not tell which row refused a settlement.
type silent struct{ *memstore.Store }

func (s silent) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	row, ok, err := s.Store.Settle(ctx, t)
	if !ok {
		row = driver.Row{Untold: true}
	}
	return row, ok, err
}

// TestCoalesceRefuses lists what Coalesce cannot be used with, and what the
// error tells to change.
func TestCoalesceRefuses(t *testing.T) {
	t.Parallel()
	bare := struct{ driver.Store }{memstore.New()}
	wait := coalescing
	wait.MaxWait = time.Second
	for name, c := range map[string]struct {
		store   driver.Store
		options lock.Options
		use     func(*testing.T, *lock.Locker) error // nil: New refuses it
		want    string
	}{
		"a store that cannot mark": {store: bare, options: coalescing, want: "needs a store"},
		"MaxWait":                  {store: memstore.New(), options: wait, want: "MaxWait"},
		"no event": {store: memstore.New(), options: coalescing, want: "every key needs one", use: func(t *testing.T, l *lock.Locker) error {
			return l.Do(t.Context(), resource, nothing)
		}},
		"several keys": {store: memstore.New(), options: coalescing, want: "one key", use: func(t *testing.T, l *lock.Locker) error {
			_, err := l.AcquireAll(t.Context(), event("e1"))
			return err
		}},
		"a transaction": {store: memstore.New(), options: coalescing, want: "transaction", use: func(t *testing.T, l *lock.Locker) error {
			return l.Do(t.Context(), event("e1"), func(ctx context.Context) error {
				held, _ := driver.FromContext(ctx)
				return held.CompleteWith(ctx, nil, held.Store().Settle)
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.options.Logger = discard
			l, err := lock.New(c.store, &c.options)
			if c.use != nil && err == nil {
				err = c.use(t, l)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
