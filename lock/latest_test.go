package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/event/stored"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// aMinute is for holders of which nothing is renewed.
var aMinute = lock.Options{Lease: lock.FixedLease(time.Minute)}

func isDeadline(err error) bool { return errors.As(err, new(*lock.DeadlineError)) }

// coalesced reports whether an event was acknowledged without a run.
func coalesced(ctx context.Context, l locker, key lock.Key) (bool, error) {
	ran := false
	err := l.Latest(ctx, key, func(context.Context) error { ran = true; return nil })
	return err == nil && !ran, err
}

func mustCoalesce(t *testing.T, l locker, id string) {
	t.Helper()
	if ok, err := coalesced(t.Context(), l, event(id)); !ok {
		t.Fatalf("%s was not coalesced: %v", id, err)
	}
}

// series is an event under Latest whose runs end as they are told.
type series struct {
	run     chan error // the present one ends so
	end     chan error // how Latest ended
	context context.Context
	runs    int
}

// hold begins to work on an event.
func hold(t *testing.T, l locker, id string) *series {
	t.Helper()
	h := &series{run: make(chan error), end: make(chan error, 1)}
	go func() {
		h.end <- l.Latest(t.Context(), event(id), func(ctx context.Context) error {
			h.context = ctx
			h.runs++
			return <-h.run
		})
	}()
	synctest.Wait()
	if h.runs != 1 {
		t.Fatal(<-h.end)
	}
	return h
}

// ends ends the run that must be the last, and returns how Latest ended.
func (h *series) ends(err error) error {
	h.run <- err
	return <-h.end
}

// again ends a run after which another one must begin.
func (h *series) again(t *testing.T) {
	t.Helper()
	before := h.runs
	h.run <- nil
	synctest.Wait()
	if h.runs != before+1 {
		t.Fatal(<-h.end)
	}
}

var errWork = errors.New("the work fails")

// TestBurst sends a thousand events during one run: two runs serve them all,
// with one write for each event beside its claim.
func TestBurst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(aMinute)
		runs := 0
		err := l.Latest(t.Context(), event("first"), func(context.Context) error {
			if runs++; runs > 1 {
				return nil
			}
			for i := range 1000 {
				mustCoalesce(t, l, fmt.Sprint(i))
			}
			return nil
		})
		if err != nil || runs != 2 {
			t.Errorf("%d runs, %v", runs, err)
		}
		requests := map[lock.Outcome]int{}
		for _, o := range f.observed {
			requests[o.Outcome] += o.Requests
			if o.Outcome == lock.OutcomeCoalesced && (o.Holder == "" || !isHeld(o.Err)) {
				t.Fatalf("%+v", o)
			}
		}
		if requests[lock.OutcomeAcquired] != 1 || requests[lock.OutcomeCoalesced] != 2000 || requests[lock.OutcomeReleased] != 2 || len(requests) != 3 {
			t.Errorf("requests by outcome: %v", requests)
		}
	})
}

// TestNobodyIsOwed shows that work for which no other event comes takes no more
// requests with Latest.
func TestNobodyIsOwed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		expect.OK(t, f.locker(aMinute).Latest(t.Context(), event("e1"), nothing))
		requests := 0
		for _, o := range f.observed {
			requests += o.Requests
		}
		if requests != 2 || len(f.observed) != 2 {
			t.Errorf("%d requests, observed %v", requests, f.outcomes())
		}
	})
}

// TestRefusedBesideLatest lists who is not coalesced, and is told so by one
// request.
func TestRefusedBesideLatest(t *testing.T) {
	t.Parallel()
	type begin func(locker, context.Context, lock.Key, func(context.Context) error) error
	waits := aMinute
	waits.MaxWait = time.Second
	for name, c := range map[string]struct {
		holder, claim begin
		options       lock.Options // of the claim
		event         string
		last          bool
	}{
		"another delivery of the holder's event": {locker.Latest, locker.Latest, aMinute, "holder's", false},
		"the holder does not look at marks":      {locker.Do, locker.Latest, aMinute, "e2", false},
		"which is not worth a wait":              {locker.Do, locker.Latest, waits, "e2", false},
		"the claim does not ask for it":          {locker.Latest, locker.Do, aMinute, "e2", false},
		"the holder's last run has begun":        {locker.Latest, locker.Latest, aMinute, "e2", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				runs := 0
				err := c.holder(f.locker(aMinute), t.Context(), event("holder's"), func(context.Context) error {
					if runs++; runs > 1 {
						if !c.last { // this holder has not closed the row
							t.Error("it runs once more")
						}
						return nil
					}
					if c.last {
						if _, ok, err := f.faulty.Store.(driver.Coalescer).Mark(t.Context(), &driver.Mark{Name: "/resource", Token: f.row().Token, Close: true}); !ok {
							t.Fatal(err)
						}
					}
					if err := c.claim(f.locker(c.options), t.Context(), event(c.event), nothing); !isHeld(err) {
						t.Errorf("got %v", err)
					}
					if o := f.observed[len(f.observed)-1]; o.Requests != 1 || o.Outcome != lock.OutcomeHeld || o.Waited > 0 {
						t.Errorf("refused by %+v", o)
					}
					return nil
				})
				if err != nil && !c.last {
					t.Error(err)
				}
			})
		})
	}
}

// TestOwedRun asks for another run in several states of the holder.
func TestOwedRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lease lock.LeaseMode
		took  time.Duration // the run, of the 30 s of the invocation
		fault fault.Fault   // of the first completion
		close fault.Fault   // of the first request that closes the row for the last run
		again bool
	}{
		"there is time":                   {lock.UntilDeadline(), 10 * time.Second, fault.None, fault.None, true},
		"there is not enough time":        {lock.UntilDeadline(), 15500 * time.Millisecond, fault.None, fault.None, false},
		"too little after the row closed": {lock.UntilDeadline(), 14200 * time.Millisecond, fault.None, fault.Hang, false},
		"the row is closed in the end":    {lock.UntilDeadline(), 12 * time.Second, fault.None, fault.DropBefore, true},
		"a heartbeat goes on":             {lock.Heartbeat(4 * time.Second), 10 * time.Second, fault.None, fault.None, true},
		"the request was lost":            {lock.UntilDeadline(), time.Second, fault.DropBefore, fault.None, true},
		"the answer was lost":             {lock.UntilDeadline(), time.Second, fault.ApplyThenDrop, fault.None, true},
		"the lease is over by the answer": {lock.FixedLease(4 * time.Second), 1500 * time.Millisecond, fault.Hang, fault.None, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{Lease: c.lease})
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				runs := 0
				err := l.Latest(ctx, event("e1"), func(ctx context.Context) error {
					if runs++; runs > 1 {
						if ctx.Err() != nil {
							t.Error("the work's context has ended")
						}
						time.Sleep(5 * time.Second) // longer than a heartbeat's lease
						return nil
					}
					time.Sleep(c.took)
					mustCoalesce(t, l, "e2")
					f.faulty.Plan(fault.Release, c.fault)
					f.faulty.Plan(fault.Mark, c.close)
					f.outcomes()
					return nil
				})
				if !c.again {
					if !isDeadline(err) || runs != 1 || !strings.Contains(err.Error(), fmt.Sprintf("which has to run once more and took %v, and", c.took)) {
						t.Fatalf("%d runs, %v", runs, err)
					}
					f.wantOutcomes(lock.OutcomeReleased)
					f.wantFree("after a run that no time was left for")
					return
				}
				if err != nil || runs != 2 {
					t.Fatalf("%d runs, %v", runs, err)
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
				l := f.locker(lock.Options{Lease: lock.Heartbeat(c.lease)})
				h := hold(t, l, "e1")
				mustCoalesce(t, l, "e2")
				f.faulty.Plan(fault.Renew, c.renewals)
				if c.all {
					f.faulty.Always(fault.Renew, c.renewals)
				}
				time.Sleep(c.complete)
				f.faulty.Plan(fault.Release, slices.Repeat([]fault.Fault{fault.Hang}, c.hangs)...)
				if !c.again {
					if err := h.ends(nil); !isDeadline(err) {
						t.Error(err)
					}
					return
				}
				h.run <- nil
				time.Sleep(time.Minute)
				synctest.Wait()
				if err := context.Cause(h.context); err != nil || h.runs != 2 {
					t.Fatalf("run %d ended with %v", h.runs, err)
				}
				if err := h.ends(nil); err != nil {
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
		l := f.locker(aMinute)
		slow := hold(t, l, "e1")
		mustCoalesce(t, l, "e2")
		time.Sleep(2 * time.Minute)
		runs := 0
		if err := l.Latest(t.Context(), event("e1"), func(context.Context) error { runs++; return nil }); err != nil || runs != 1 {
			t.Errorf("%d runs, %v", runs, err)
		}
		next := hold(t, l, "e3")
		mustCoalesce(t, l, "e4")
		if err := slow.ends(nil); !isLost(err) {
			t.Errorf("completion after the lease: %v", err)
		}
		_ = next.ends(errWork)
	})
}

// claimLate claims the name for e2 in vain, so that faulty.Apply applies a copy
// of the claim that was never given up.
func (f *fixture) claimLate(l locker) {
	f.t.Helper()
	f.faulty.Always(fault.Acquire, fault.HangThenApply)
	f.faulty.Always(fault.Release, fault.DropBefore)
	if err := l.Latest(f.t.Context(), event("e2"), nothing); !isStoreError(err) {
		f.t.Fatal(err)
	}
	f.faulty.Always(fault.Acquire, fault.None)
	f.faulty.Always(fault.Release, fault.None)
}

// TestLateClaimOfACoalescedEvent plays a delivery that died before its claim
// arrived, and whose event was then coalesced: the claim must not own the name,
// because nobody would run for those who rely on it.
func TestLateClaimOfACoalescedEvent(t *testing.T) { // F3
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		dead := skewed(f.locker(aMinute), lock.DefaultGrace-time.Millisecond)
		f.claimLate(dead)
		l := f.locker(aMinute)
		holder := hold(t, l, "e1")
		mustCoalesce(t, l, "e2")
		_ = holder.ends(errWork)
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
		holder := hold(t, f.locker(aMinute), "e1")
		p := skewed(f.locker(aMinute), time.Minute)
		f.claimLate(p)
		p.clock.Step(-time.Minute)
		mustCoalesce(t, p, "e2")
		_ = holder.ends(errWork)
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
		l := f.locker(aMinute)
		holder := hold(t, l, "e1")
		f.faulty.Plan(fault.Mark, fault.DropBefore)
		ran := make(chan error)
		go func() {
			runs := 0
			err := l.Latest(t.Context(), event("e2"), func(context.Context) error { runs++; return nil })
			if runs != 1 {
				t.Errorf("%d runs", runs)
			}
			ran <- err
		}()
		synctest.Wait() // the mark is repeated in a moment
		expect.OK(t, holder.ends(nil))
		expect.OK(t, <-ran)
	})
}

// TestMarkWithoutAnswer shows that an event which may not be served is not
// acknowledged.
func TestMarkWithoutAnswer(t *testing.T) { // F7
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(aMinute)
		holder := hold(t, l, "e1")
		f.faulty.Always(fault.Mark, fault.ApplyThenDrop)
		if err := l.Latest(t.Context(), event("e2"), nothing); !isStoreError(err) || isHeld(err) {
			t.Errorf("got %v", err)
		}
		_ = holder.ends(errWork)
	})
}

// TestMarkAfterATroubledClaim shows that what became of the claim's requests
// counts neither as trouble of the mark nor in its error, and is not forgotten:
// no late copy of the claim owns the name.
func TestMarkAfterATroubledClaim(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		claim, mark fault.Fault // of the first request of each
		denied      bool
	}{
		"both are throttled once": {fault.Throttle, fault.Throttle, false},
		"no answer, then denied":  {fault.HangThenApply, fault.Deny, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(aMinute)
				holder := hold(t, l, "e1")
				f.faulty.Plan(fault.Acquire, c.claim)
				f.faulty.Plan(fault.Mark, c.mark)
				ok, err := coalesced(t.Context(), l, event("e2"))
				var e *lock.StoreError
				if denied := errors.As(err, &e) && e.Op == "coalesce" && e.Unapplied; ok == c.denied || denied != c.denied {
					t.Errorf("coalesced: %v, %v", ok, err)
				}
				_ = holder.ends(errWork)
				f.faulty.Apply()
				f.wantFree("after the holder and the claim")
			})
		})
	}
}

// TestSilentStoreWithMarks shows that a settlement is not taken for applied if
// the store does not say what refused it.
func TestSilentStoreWithMarks(t *testing.T) {
	t.Parallel()
	for _, result := range []error{nil, errWork} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			f.faulty.Store = silent{memstore.New()}
			h := hold(t, f.locker(aMinute), "e1")
			row, ok, err := f.faulty.Store.(silent).Mark(t.Context(), &driver.Mark{Name: "/resource", Token: f.row().Token})
			if !ok || err != nil {
				t.Fatal(row, err)
			}
			f.faulty.Plan(fault.Release, fault.DropBefore)
			if err := h.ends(result); err == nil || errors.Is(err, errWork) {
				t.Errorf("after a run with the error %v: %v, and another run is owed", result, err)
			}
		})
	}
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

// TestLatestRefuses lists what Latest cannot be used with, and what the error
// tells to change.
func TestLatestRefuses(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		store driver.Store
		key   lock.Key
		work  func(context.Context) error
	}{
		"needs a store":   {struct{ driver.Store }{memstore.New()}, event("e1"), nothing},
		"every key needs": {memstore.New(), resource, nothing},
		"Name is empty":   {memstore.New(), lock.Key{Event: "e1"}, nothing},
		"from the events": {memstore.New(), lock.Key{Name: "resource", Order: "1"}, nothing},
		"transaction": {memstore.New(), event("e1"), func(ctx context.Context) error {
			held, _ := driver.FromContext(ctx)
			return held.CompleteWith(ctx, nil, held.Store().Settle)
		}},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			var refused error
			l, err := lock.New(c.store, &lock.Options{Logger: discard, Observe: func(_ context.Context, o lock.Observation) {
				if o.Outcome == lock.OutcomeRefused {
					refused = o.Err
				}
			}})
			expect.Must(t, err)
			err = l.Latest(t.Context(), c.key, c.work)
			if err == nil || !strings.Contains(err.Error(), want) || want != "transaction" && refused != err {
				t.Errorf("got %v, observed %v", err, refused)
			}
		})
	}
}

// TestFailedRecordIsOwed shows that a record whose run fails or panics says
// whether others rely on it, because its message must then come again.
func TestFailedRecordIsOwed(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func() error{"an error": func() error { return errWork }, "a panic": func() error { panic(errWork) }} {
		for _, relied := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, others rely on it: %v", name, relied), func(t *testing.T) {
				t.Parallel()
				l := newFixture(t).locker(aMinute)
				record := &invocation.RecordClaim{Pace: &invocation.Pace{Chance: rand.NewPCG(0, 0)}}
				func() {
					defer func() { _ = recover() }()
					_ = l.Latest(invocation.WithRecordClaim(t.Context(), record), event("e1"), func(context.Context) error {
						if relied {
							mustCoalesce(t, l, "e2")
						}
						return fails()
					})
				}()
				if record.Owed != relied {
					t.Errorf("it is owed: %v", record.Owed)
				}
			})
		}
	}
}

// TestRecordNamesWhomItAsked shows that a record which is coalesced says which
// event's holder was asked: that one's own record must not be acknowledged.
func TestRecordNamesWhomItAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newFixture(t).locker(aMinute)
		holder := hold(t, l, "e1")
		record := &invocation.RecordClaim{Pace: &invocation.Pace{Chance: rand.NewPCG(0, 0)}}
		expect.OK(t, l.Latest(invocation.WithRecordClaim(t.Context(), record), event("e2"), nothing))
		if want := stored.Event("e1"); record.Coalescer != want {
			t.Errorf("it has asked the holder of %q, want %q", record.Coalescer, want)
		}
		_ = holder.ends(errWork)
	})
}

// TestLateClaimOfAServedRecord plays a record whose delivery died before its
// claim arrived, and which is acknowledged because another record has run for
// it: the claim must not own the name.
func TestLateClaimOfAServedRecord(t *testing.T) { // F3
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.claimLate(skewed(f.locker(aMinute), lock.DefaultGrace-time.Millisecond))
		record := &invocation.RecordClaim{Pace: &invocation.Pace{Chance: rand.NewPCG(0, 0)}, Serves: true}
		expect.OK(t, f.locker(aMinute).Latest(invocation.WithRecordClaim(t.Context(), record), event("e1"), nothing))
		f.faulty.Apply()
		if row := f.row(); row.Token != "" {
			t.Errorf("the late claim owns the name: %+v", row)
		}
	})
}

// TestFenceInLatest shows that the work has its lease, as under any lock.
func TestFenceInLatest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	expect.OK(t, f.locker(aMinute).Latest(t.Context(), event("e1"), func(ctx context.Context) error {
		if lease, ok := lock.FromContext(ctx); !ok || lease.Fence == 0 || lease.Key != event("e1") || len(lock.Leases(ctx)) != 1 {
			t.Errorf("%+v", lease)
		}
		return nil
	}))
}

// TestHeldSince: a holder has had the name since it acquired it, also if others
// were coalesced with it meanwhile, which moves the stamp of the row.
func TestHeldSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l, began := f.locker(lock.Options{}), time.Now()
		h := hold(t, l, "1")
		time.Sleep(10 * time.Second)
		mustCoalesce(t, l, "2")
		_, err := l.Acquire(t.Context(), event("3"))
		if held := (*lock.HeldError)(nil); !errors.As(err, &held) || held.Since.Sub(began).Abs() > time.Second {
			t.Errorf("%v, of %+v", err, f.row())
		}
		h.again(t)
		expect.Must(t, h.ends(nil))
	})
}
