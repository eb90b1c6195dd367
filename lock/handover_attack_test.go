package lock_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

func isConfig(err error) bool { return errors.As(err, new(*lock.ConfigError)) }

// sameEnd reports whether two ends of a lease differ by nothing but a renewal
// that had to move it, by 1 µs to 1 ms.
func sameEnd(a, b time.Time) bool { return a.Sub(b).Abs() <= time.Millisecond }

func isLost(err error) bool { return errors.Is(err, lock.ErrLost) }

// TestHandleTellsTheLeaseEnd shows that a heartbeat whose renewals end earlier
// than the lease does not hide the lease's end from the next ticket.
func TestHandleTellsTheLeaseEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		h := f.handOver(f.mustAcquire(f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)}), resource), time.Hour)
		lk := f.resume(f.locker(lock.Options{Lease: lock.Heartbeat(30 * time.Second)}), t.Context(), h)
		time.Sleep(25 * time.Second) // two renewals
		if until := lk.Lease().Until; !sameEnd(until, h.Until) {
			t.Errorf("the lease is said to end at %v, and ends at %v", until, h.Until)
		}
		if next := f.handOver(lk, time.Minute); !next.Until.Equal(f.row().Until) {
			t.Errorf("the next ticket says %v, the row %v", next.Until, f.row().Until)
		}
		_ = lk.Release()
	})
}

// TestWorkAfterHandOver shows that work which goes on after HandOver still ends
// before the lease does.
func TestWorkAfterHandOver(t *testing.T) { // F15
	for name, mode := range map[string]lock.LeaseMode{
		"heartbeat": lock.Heartbeat(10 * time.Second), "fixed": lock.FixedLease(10 * time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				lk := f.mustAcquire(f.locker(lock.Options{Lease: mode}), resource)
				f.handOver(lk, 20*time.Second)
				h := f.handOver(lk, 30*time.Second)
				select {
				case <-lk.Context().Done():
				case <-time.After(time.Hour):
					t.Fatal("the work goes on")
				}
				if left := time.Until(h.Until); left < lock.DefaultGrace || !isLost(context.Cause(lk.Context())) {
					t.Errorf("the work ended %v before the lease, by %v", left, context.Cause(lk.Context()))
				}
				_ = lk.Release()
			})
		})
	}
}

// TestTransactionAfterHandOver shows that the event is not completed behind the
// back of those who have the ticket.
func TestTransactionAfterHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.Heartbeat(time.Minute)})
		lk := f.mustAcquire(l, event("e1"))
		h := f.handOver(lk, time.Hour)
		if err := transact(t, f, lk, f.faulty.Settle); !isConfig(err) {
			t.Errorf("the transaction: %v", err)
		}
		expect.OK(t, lk.Complete())
		expect.OK(t, f.resume(l, t.Context(), h).Complete())
	})
}

// TestLeave shows that a step that failed can be repeated with its ticket, and
// that nothing of the failed one is left.
func TestLeave(t *testing.T) {
	for name, mode := range map[string]lock.LeaseMode{
		"heartbeat": lock.Heartbeat(10 * time.Second), "fixed": lock.FixedLease(10 * time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{Lease: mode})
				h := f.handOver(f.mustAcquire(l, event("e1")), time.Minute)
				failed := f.resume(l, t.Context(), h)
				before := f.faulty.Requests(fault.Renew) + f.faulty.Requests(fault.Release)
				failed.Leave()
				failed.Leave()
				if failed.Context().Err() == nil {
					t.Error("the failed step's context goes on")
				}
				if err := failed.Complete(); !errors.Is(err, lock.ErrReleased) {
					t.Errorf("Complete after Leave: %v", err)
				}
				if err := failed.Release(); err != nil {
					t.Errorf("Release after Leave: %v", err)
				}
				if _, err := failed.HandOver(t.Context(), time.Hour); !isLost(err) {
					t.Errorf("HandOver after Leave: %v", err)
				}
				time.Sleep(50 * time.Second)
				if n := f.faulty.Requests(fault.Renew) + f.faulty.Requests(fault.Release) - before; n != 0 {
					t.Errorf("%d requests after Leave", n)
				}
				retry := f.resume(l, t.Context(), h)
				expect.OK(t, retry.Complete())
				retry.Leave()
				if _, err := l.Acquire(t.Context(), event("e1")); !isCompleted(err) {
					t.Errorf("Leave after Complete: a duplicate gets %v", err)
				}
			})
		})
	}
}

// TestLateRenewals shows that copies of the renewals of HandOver and Resume
// neither shorten the lease nor bring back a lock that has ended.
func TestLateRenewals(t *testing.T) { // F3, F4
	for name, after := range map[string]func(f *fixture, l *lock.Locker, lk *lock.Lock, h lock.Ticket){
		"after completion":      func(_ *fixture, _ *lock.Locker, lk *lock.Lock, _ lock.Ticket) { _ = lk.Complete() },
		"after a release":       func(_ *fixture, _ *lock.Locker, lk *lock.Lock, _ lock.Ticket) { _ = lk.Release() },
		"after a longer lease":  func(f *fixture, _ *lock.Locker, lk *lock.Lock, _ lock.Ticket) { f.handOver(lk, 3*time.Hour) },
		"after a shorter lease": func(f *fixture, _ *lock.Locker, lk *lock.Lock, _ lock.Ticket) { f.handOver(lk, time.Minute) },
		"after a takeover": func(f *fixture, l *lock.Locker, _ *lock.Lock, _ lock.Ticket) {
			time.Sleep(4 * time.Hour)
			f.mustAcquire(l, event("e2"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{Lease: lock.FixedLease(time.Hour)})
				lk := f.mustAcquire(l, event("e1"))
				f.faulty.Plan(fault.Renew, fault.HangThenApply)
				h := f.handOver(lk, 2*time.Hour)
				f.faulty.Plan(fault.Renew, fault.HangThenApply)
				resumed := f.resume(l, t.Context(), h)
				after(f, l, resumed, h)
				before := f.row()
				f.faulty.Apply()
				if now := f.row(); now.Token != before.Token || !now.Until.Equal(before.Until) {
					t.Errorf("late copies made of the row %+v the row %+v", before, now)
				}
			})
		})
	}
}

// TestLateRenewalOfFailedHandOver shows that a HandOver that failed, but was
// applied later, does not keep the lock from ending.
func TestLateRenewalOfFailedHandOver(t *testing.T) { // F4
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(10 * time.Second)}), event("e1"))
		f.faulty.Plan(fault.Renew, fault.HangThenApply, fault.HangThenApply, fault.HangThenApply)
		if _, err := lk.HandOver(t.Context(), time.Hour); !isStoreError(err) {
			t.Fatalf("HandOver: %v", err)
		}
		f.faulty.Apply()
		time.Sleep(30 * time.Second)
		if err := lk.Context().Err(); err != nil {
			t.Errorf("the work ended: %v", err)
		}
		expect.OK(t, lk.Complete())
		f.wantFree("after Complete")
	})
}

// TestTwoResume shows what happens if two invocations use one ticket: one of
// them ends the lock, and the other one is told.
func TestTwoResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.Heartbeat(10 * time.Second)})
		first := f.mustAcquire(l, event("e1"))
		h := f.handOver(first, time.Minute) // and first still runs
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() {
				lk, err := l.Resume(t.Context(), h)
				if err == nil {
					time.Sleep(rand.N(20 * time.Second))
					err = lk.Complete()
				}
				errs[i] = err
			})
		}
		wg.Wait()
		ended := 0
		for _, err := range errs {
			switch {
			case err == nil:
				ended++
			case !isLost(err) && !isCompleted(err):
				t.Errorf("one of them: %v", err)
			}
		}
		if ended != 1 {
			t.Errorf("%d of 8 completed the event, want 1", ended)
		}
		if err := first.Release(); !isLost(err) {
			t.Errorf("the first invocation's Release: %v", err)
		}
		if _, err := l.Acquire(t.Context(), event("e1")); !isCompleted(err) {
			t.Errorf("a duplicate: %v", err)
		}
	})
}

// TestOthersMoveTheEnd: a lock is not lost while its token owns the row. Other
// processes that resumed it move its end, each just before the next of our
// renewals.
func TestOthersMoveTheEnd(t *testing.T) { // F54
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		var others atomic.Int32
		others.Store(3)
		store := f.faulty.Store
		f.faulty.Store = fault.Hooks{Store: store, OnRenew: func(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
			if others.Add(-1) >= 0 {
				other := *r
				other.Until = r.Until.Add(time.Millisecond)
				if _, ok, err := store.Renew(ctx, &other); !ok || err != nil {
					t.Error("the others cannot move the end", err)
				}
			}
			return store.Renew(ctx, r)
		}}
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(10 * time.Second)}), event("e1"))
		time.Sleep(30 * time.Second)
		if err := context.Cause(lk.Context()); err != nil || others.Load() >= 0 {
			t.Errorf("%v; the renewals after the others: %d", err, -others.Load())
		}
		expect.OK(t, lk.Complete())
	})
}

// TestConcurrentEnds calls everything that ends a lock at the same time.
// Whatever comes first, the lock ends in one way, and a ticket is worth
// something if and only if the name is still held.
func TestConcurrentEnds(t *testing.T) {
	for range 1000 {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.Heartbeat(4 * time.Second)})
		lk := f.mustAcquire(l, event("e1"))
		var wg sync.WaitGroup
		tickets := make([]lock.Ticket, 2)
		for i := range tickets {
			wg.Go(func() { tickets[i], _ = lk.HandOver(t.Context(), time.Duration(i+1)*time.Hour) })
		}
		for _, end := range []func() error{
			func() error { return lk.Complete() }, lk.Release, func() error { lk.Leave(); return nil },
			func() error { return transact(t, f, lk, f.faulty.Settle) },
		} {
			wg.Go(func() { _ = end() })
		}
		wg.Wait()
		for _, h := range tickets {
			if h.Token == "" {
				continue
			}
			row := f.row()
			held := row.Token != ""
			if len(row.Memory.Completed) > 0 {
				t.Fatal("the lock was handed over, and then completed")
			}
			resumed, err := l.Resume(t.Context(), h)
			if held != (err == nil) {
				t.Fatalf("held: %v, Resume: %v", held, err)
			}
			if err == nil {
				resumed.Leave()
			}
		}
	}
}

// TestEndDuringHandOver shows that the end of a lock waits for a HandOver whose
// first request has no answer, and finds the lock handed over.
func TestEndDuringHandOver(t *testing.T) { // F4
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)})
		lk := f.mustAcquire(l, event("e1"))
		f.faulty.Plan(fault.Renew, fault.ApplyThenHang)
		var h lock.Ticket
		go func() { h = f.handOver(lk, time.Hour) }()
		synctest.Wait()
		expect.OK(t, lk.Complete())
		synctest.Wait()
		expect.OK(t, f.resume(l, t.Context(), h).Complete())
	})
}

// TestHandOverAndLoss shows that a lock which somebody took over cannot be
// handed over, however that comes out.
func TestHandOverAndLoss(t *testing.T) { // F21
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.Heartbeat(10 * time.Second)})
		lk := f.mustAcquire(l, event("e1"))
		f.releaseByHand()
		other := f.mustAcquire(l, event("e2"))
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if h, err := lk.HandOver(t.Context(), time.Hour); !isLost(err) {
					t.Errorf("HandOver gave %+v, %v", h, err)
				}
			})
		}
		time.Sleep(5 * time.Second) // the heartbeat notices it too
		wg.Wait()
		if !isLost(context.Cause(lk.Context())) {
			t.Errorf("the work ended by %v", context.Cause(lk.Context()))
		}
		_ = lk.Release()
		expect.OK(t, other.Complete())
	})
}

// TestResumeByOtherClocks shows that clocks which differ by no more than Grace
// neither let two own the name, nor take the lock from the one who resumes.
func TestResumeByOtherClocks(t *testing.T) { // F14
	for name, ahead := range map[string]time.Duration{"ahead": lock.DefaultGrace, "behind": -lock.DefaultGrace} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				here := lock.Options{Lease: lock.FixedLease(10 * time.Second)}
				h := f.handOver(f.mustAcquire(f.locker(here), event("e1")), time.Minute)
				there := skewed(f.locker(lock.Options{Lease: lock.FixedLease(10 * time.Second)}), ahead)
				resumed := f.resume(there, t.Context(), h)
				<-resumed.Context().Done()
				if left := time.Until(h.Until); left < -time.Millisecond || left > 2*lock.DefaultGrace {
					t.Errorf("the work ended %v before the lease", left)
				}
				if _, err := f.locker(here).Acquire(t.Context(), event("e2")); !isHeld(err) {
					t.Errorf("another claim before the lease has ended: %v", err)
				}
				expect.OK(t, resumed.Complete())
			})
		})
	}
}

// TestEditedTickets edits every field of a ticket. What would change what the
// row remembers, or whose it is, is refused. The rest changes nothing, and does
// not hold the name for longer than HandOver can.
func TestEditedTickets(t *testing.T) { // F54
	const fields = 7
	if n := reflect.TypeFor[lock.Ticket]().NumField(); n != fields {
		t.Errorf("a ticket has %d fields, and %d are tried", n, fields)
	}
	full := lock.Key{Name: "resource", Event: "e1", Order: "7", Payload: "10 EUR"}
	for name, c := range map[string]struct {
		key  lock.Key // zero: full
		edit func(*lock.Ticket)
		want func(error) bool // nil: harmless
	}{
		"another name":          {edit: func(h *lock.Ticket) { h.Name = "/other" }, want: isLost},
		"a free name":           {edit: func(h *lock.Ticket) { h.Name = "/free" }, want: isLost},
		"another event":         {edit: func(h *lock.Ticket) { h.Event = "e2" }, want: isEdited},
		"no event":              {edit: func(h *lock.Ticket) { h.Event = "" }, want: isEdited},
		"an event added":        {key: resource, edit: func(h *lock.Ticket) { h.Event = "e2" }, want: isEdited},
		"a larger order":        {edit: func(h *lock.Ticket) { h.Order = "9" }, want: isEdited},
		"a smaller order":       {edit: func(h *lock.Ticket) { h.Order = "3" }, want: isEdited},
		"no order":              {edit: func(h *lock.Ticket) { h.Order = "" }, want: isEdited},
		"an order added":        {key: event("e1"), edit: func(h *lock.Ticket) { h.Order = "9" }, want: isEdited},
		"an order for a mutex":  {key: resource, edit: func(h *lock.Ticket) { h.Order = "9" }, want: isEdited},
		"part moved":            {edit: func(h *lock.Ticket) { h.Event, h.Order = "e17", "" }, want: isEdited},
		"remembered for less":   {edit: func(h *lock.Ticket) { h.Remember = -1 }, want: isEdited},
		"remembered for longer": {edit: func(h *lock.Ticket) { h.Remember = 367 * 24 * time.Hour }, want: isEdited},
		"another token":         {edit: func(h *lock.Ticket) { h.Token = strings.Repeat("A", 16) + h.Token[16:] }, want: isLost},
		"order and token":       {edit: otherHandle(lock.Key{Name: "other", Event: "e1", Order: "9"}), want: isLost},
		"another fence":         {edit: func(h *lock.Ticket) { h.Fence = 1 << 62 }},
		"until the year 9999":   {edit: func(h *lock.Ticket) { h.Until = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC) }, want: isEdited},
		"until zero":            {edit: func(h *lock.Ticket) { h.Until = time.Time{} }},
		"until the past":        {edit: func(h *lock.Ticket) { h.Until = h.Until.AddDate(-300, 0, 0) }},
		"until in milliseconds": {edit: func(h *lock.Ticket) { h.Until = h.Until.Truncate(time.Millisecond) }},
		"nothing":               {edit: func(*lock.Ticket) {}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)})
				key := cmp.Or(c.key, full)
				h := f.handOver(f.mustAcquire(l, key), time.Hour)
				edited := h
				c.edit(&edited)
				before := f.row()
				resumed, err := l.Resume(t.Context(), edited)
				if c.want == nil {
					if err != nil {
						t.Fatal(err)
					}
					if got := resumed.Lease(); !sameEnd(got.Until, h.Until) || got.Fence != h.Fence {
						t.Errorf("the lease %+v became %+v", h, got)
					}
					resumed.Leave()
				} else if !c.want(err) {
					t.Errorf("Resume: %v", err)
				}
				if row := f.row(); row.Token != before.Token || !sameEnd(row.Until, before.Until) {
					t.Errorf("the row %+v became %+v", before, row)
				}
				if err := f.resume(l, t.Context(), h).Complete(); err != nil {
					t.Errorf("the ticket as it was: %v", err)
				}
				if m := f.row().Memory; m.HighestOrder != key.Order {
					t.Errorf("the row remembers the order %q", m.HighestOrder)
				}
			})
		})
	}
}

// isEdited reports whether an error says what to change.
func isEdited(err error) bool {
	return isConfig(err) && strings.Contains(err.Error(), "unchanged")
}

// otherHandle returns an edit that gives a ticket order and token of another
// lock, which belong together.
func otherHandle(key lock.Key) func(*lock.Ticket) {
	return func(h *lock.Ticket) {
		l, err := lock.New(memstore.New(), &lock.Options{Logger: discard})
		if err != nil {
			panic(err)
		}
		lk, err := l.Acquire(context.Background(), key)
		if err != nil {
			panic(err)
		}
		defer lk.Release() //nolint:errcheck // in a store of its own
		other, err := lk.HandOver(context.Background(), time.Hour)
		if err != nil {
			panic(err)
		}
		h.Order, h.Token = other.Order, other.Token
	}
}

// TestHandleThroughJavaScript shows that a ticket stands what a JavaScript
// program does to numbers, and that it stays small.
func TestHandleThroughJavaScript(t *testing.T) { // F26
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute), Namespace: "orders/éu"})
		for name, key := range map[string]lock.Key{
			"1 MB":          {Name: strings.Repeat("n", 1<<20), Event: strings.Repeat("e", 1<<20)},
			"invalid UTF-8": {Name: "a\xff/b", Event: "e\xff"},
			"looks hashed":  {Name: "sha256:x", Event: "sha256:x"},
			"controls":      {Name: "\x00\n\"</script>", Event: "\u2028"},
			"order":         {Name: "ordered", Order: strings.Repeat("9", 256)},
		} {
			h := f.handOver(f.mustAcquire(l, key), time.Hour)
			h.Fence = 1<<62 + 1 // as in the year 148000
			b, err := json.Marshal(h)
			if err != nil {
				t.Fatal(err)
			}
			var asFloats map[string]any // as JSON.parse does
			expect.Must(t, json.Unmarshal(b, &asFloats))
			if b, err = json.Marshal(asFloats); err != nil || len(b) > 4<<10 {
				t.Errorf("%s: the ticket has %d bytes, %v", name, len(b), err)
			}
			var arrived lock.Ticket
			if err := json.Unmarshal(b, &arrived); err != nil || arrived != h {
				t.Errorf("%s: %+v became %+v, %v", name, h, arrived, err)
			}
			if err := f.resume(l, t.Context(), arrived).Complete(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := l.Acquire(t.Context(), key); !isCompleted(err) {
				t.Errorf("%s: a duplicate: %v", name, err)
			}
		}
	})
}

// TestResumeWithoutDetail shows what a store that cannot tell the refusing row
// makes of a ticket: never somebody else's lock.
func TestResumeWithoutDetail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		h := f.handOver(f.mustAcquire(f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)}), event("e1")), time.Hour)
		l := expect.Value(lock.New(silently(f.faulty.Store), &lock.Options{Logger: discard, Lease: lock.FixedLease(time.Minute)}))(t)
		expect.OK(t, f.resume(l, t.Context(), h).Complete())
		if _, err := l.Resume(t.Context(), h); !isLost(err) {
			t.Errorf("the ticket after completion: %v", err)
		}
	})
}

// TestShortHandOverWithoutDetail hands a lock over for less than is left of its
// lease: the end does not move, so such a store cannot refuse it.
func TestShortHandOverWithoutDetail(t *testing.T) { // F54
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.faulty.Store = silently(f.faulty.Store)
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.FixedLease(time.Hour)}), event("e1"))
		if h := f.handOver(lk, time.Minute); time.Until(h.Until) < 59*time.Minute {
			t.Errorf("the lease ends in %v", time.Until(h.Until))
		}
	})
}

// silently is a store that does not tell which row refused a renewal.
func silently(store driver.Store) driver.Store {
	return fault.Hooks{Store: store, OnRenew: func(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
		row, ok, err := store.Renew(ctx, r)
		if !ok {
			row = driver.Row{}
		}
		return row, ok, err
	}}
}
