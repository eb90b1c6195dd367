package lock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// held is what ends like a lock.
type held interface {
	Context() context.Context
	Complete() error
	Release() error
}

// untilDeadlines are the ways to hold a resource by a lease that lasts to the
// deadline.
var untilDeadlines = map[string]func(context.Context, *fixture, onClock) (held, error){
	"a lock": func(ctx context.Context, _ *fixture, l onClock) (held, error) { return l.Acquire(ctx, event("e1")) },
	"a set": func(ctx context.Context, _ *fixture, l onClock) (held, error) {
		return l.AcquireAll(ctx, lock.Key{Name: "a", Event: "e1"}, event("e1"), lock.Key{Name: "z", Event: "e1"})
	},
	"a slot": func(ctx context.Context, f *fixture, l onClock) (held, error) {
		l.locker = f.limited(2, lock.Options{Lease: lock.UntilDeadline()})
		one, err := l.Acquire(ctx, resource)
		if err == nil { // the other one
			_, err = onClock{f.limited(2, lock.Options{Lease: lock.FixedLease(time.Hour)}), l.clock}.Acquire(context.Background(), resource)
		}
		return one, err
	},
	"a nested lock": func(ctx context.Context, _ *fixture, l onClock) (held, error) {
		outer, err := l.Acquire(ctx, lock.Key{Name: "outer"})
		if err != nil {
			return nil, err
		}
		inner, err := l.Acquire(outer.Context(), event("e1"))
		return nested{inner, outer}, err
	},
}

type nested struct {
	*lock.Lock
	outer *lock.Lock
}

func (n nested) Complete() error { return errors.Join(n.Lock.Complete(), n.outer.Complete()) }

// TestWorkThatOutlivesItsContext: the process lives on after the deadline, and
// its work does not heed its context. No retry runs beside it, whatever its
// clock; and the event is completed when the work returns.
func TestWorkThatOutlivesItsContext(t *testing.T) { // F14, F16
	t.Parallel()
	const skew = lock.DefaultGrace - 100*time.Millisecond
	for name, acquire := range untilDeadlines {
		for _, timeout := range []time.Duration{2 * time.Second, time.Minute} {
			for _, by := range []time.Duration{-skew, 0, skew} {
				t.Run(fmt.Sprintf("%s, timeout %v, others ahead by %v", name, timeout, by), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						f := newFixture(t)
						ctx, cancel := context.WithTimeout(t.Context(), timeout)
						defer cancel()
						l := skewed(f.locker(untilDeadline), 0)
						h := expect.Value(acquire(ctx, f, l))(t)
						var working atomic.Bool
						working.Store(true)
						go func() {
							time.Sleep(3 * time.Minute)
							working.Store(false)
							if err := h.Complete(); err != nil {
								t.Errorf("completion after the work: %v", err)
							}
						}()
						var retry locker = f.locker(lock.Options{Lease: lock.FixedLease(time.Hour)})
						if name == "a slot" {
							retry = f.limited(2, lock.Options{Lease: lock.FixedLease(time.Hour)})
						}
						for working.Load() {
							time.Sleep(97 * time.Millisecond)
							key := event("e1")
							if name == "a slot" {
								key = resource
							}
							if _, err := skewed(retry, by).Acquire(t.Context(), key); err == nil && working.Load() {
								t.Fatal("a retry runs beside the work")
							}
						}
						synctest.Wait()
						if name == "a slot" {
							return
						}
						if err := retry.Do(t.Context(), event("e1"), nothing); !isCompleted(err) {
							t.Errorf("a retry after the work: %v", err)
						}
					})
				})
			}
		}
	}
}

// TestWorkThatEndsWithItsContext: two requests, as many goroutines as before
// and three allocations more than with a lease that is never renewed.
func TestWorkThatEndsWithItsContext(t *testing.T) { // F16, F17
	for name, acquire := range untilDeadlines {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left
				f := newFixture(t)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				h := expect.Value(acquire(ctx, f, skewed(f.locker(untilDeadline), 0)))(t)
				before := f.faulty.Requests(fault.Renew)
				<-h.Context().Done()
				expect.OK(t, h.Complete())
				time.Sleep(time.Hour)
				if n := f.faulty.Requests(fault.Renew) - before; n != 0 {
					t.Errorf("%d renewals of work that ended with its context", n)
				}
			})
		})
	}
}

// TestCostOfALeaseToTheDeadline compares it with one that is never renewed.
func TestCostOfALeaseToTheDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	allocations := func(mode lock.LeaseMode) float64 {
		l := newLocker(t, memstore.New(), lock.Options{Lease: mode})
		return testing.AllocsPerRun(1000, func() {
			expect.Must(t, l.Do(ctx, resource, nothing))
		})
	}
	if more := allocations(lock.UntilDeadline()) - allocations(lock.FixedLease(10*time.Minute)); more > 4 {
		t.Errorf("%v allocations more than a fixed lease has, want 4 at most", more)
	}
}

// TestKilledAtItsDeadline: where the platform ends the process at the deadline
// or a little later, work that did not heed its context has cost one renewal,
// and the name is available within 8 s.
func TestKilledAtItsDeadline(t *testing.T) { // F16, F19
	t.Parallel()
	for _, timeout := range []time.Duration{time.Second, 3 * time.Second, 15 * time.Minute} {
		for _, late := range []time.Duration{0, 300 * time.Millisecond, 600 * time.Millisecond} {
			t.Run(fmt.Sprintf("timeout %v, %v late", timeout, late), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t)
					ctx, cancel := context.WithTimeout(t.Context(), timeout)
					defer cancel()
					lk := expect.Value(f.locker(untilDeadline).Acquire(ctx, event("e1")))(t)
					deadline, _ := ctx.Deadline()
					time.Sleep(time.Until(deadline.Add(late)))
					lk.Kill()
					if n := f.faulty.Requests(fault.Renew); n != 1 {
						t.Errorf("%d renewals, want 1", n)
					}
					next := expect.Value(f.locker(lock.Options{MaxWait: time.Minute}).Acquire(t.Context(), event("e1")))(t)
					if after := time.Since(deadline); after <= late+lock.DefaultGrace || after > 8*time.Second {
						t.Errorf("the name is available %v after the deadline", after)
					}
					_ = next.Release()
				})
			})
		}
	}
}

// TestThawedAfterItsDeadline: a process that was frozen at its deadline and
// goes on in a later invocation finds its lease lost, and changes nothing.
func TestThawedAfterItsDeadline(t *testing.T) { // F15, F21
	t.Parallel()
	for when, frozen := range map[string]time.Duration{
		"before its context ends": 58 * time.Second, "before the first renewal": 59200 * time.Millisecond, "after it": 61 * time.Second,
	} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				process := skewed(f.locker(untilDeadline), 0)
				lk := expect.Value(process.Acquire(ctx, event("e1")))(t)
				time.Sleep(frozen)
				process.freeze(time.Minute)
				next := f.mustAcquire(f.locker(lock.Options{}), event("e1"))
				before := f.row()
				f.outcomes()
				time.Sleep(5 * time.Second)
				f.wantOutcomes(lock.OutcomeLost)
				if row := f.row(); row.Token != before.Token || !row.Until.Equal(before.Until) || row.Fence <= lk.Lease().Fence {
					t.Errorf("the late holder of fence %d made %+v of %+v", lk.Lease().Fence, row, before)
				}
				if err := lk.Complete(); !errors.Is(err, lock.ErrLost) {
					t.Errorf("late completion: %v, want lost", err)
				}
				_ = next.Release()
			})
		})
	}
}

// TestOvertimeIsReported: the first renewal is logged where an operator sees
// it, and says what to do. Those that follow are not, nor are those during a
// completion: then the work has returned. Nor are those of the records of a
// batch, which are named together.
func TestOvertimeIsReported(t *testing.T) { // F16
	t.Parallel()
	beats := lock.Options{Lease: lock.Heartbeat(4 * time.Second)}
	for name, o := range map[string]lock.Options{"until the deadline": untilDeadline, "heartbeat": beats, "a batch": beats} {
		for i := range 4 {
			works, observed := i&1 == 0, i&2 == 0
			t.Run(fmt.Sprintf("%s, works on: %v, observed: %v", name, works, observed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var log bytes.Buffer
					var said, renewed int
					o := o
					o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
					o.Observe = func(_ context.Context, o lock.Observation) {
						if o.Outcome == lock.OutcomeRenewed {
							renewed++
							if o.Failed() {
								said++
							}
						}
					}
					if !observed {
						o.Observe = nil
					}
					faulty := fault.NewScripted(memstore.New())
					l := expect.Value(lock.New(faulty, &o))(t)
					// A renewal is due between the end of the context and the deadline.
					ctx, cancel := context.WithTimeout(t.Context(), 20200*time.Millisecond)
					defer cancel()
					if name == "a batch" {
						ctx = invocation.WithBatch(ctx, &invocation.Batch{})
					}
					lk := expect.Value(l.Acquire(ctx, event("e1")))(t)
					want := 0
					if works {
						if name != "a batch" {
							want = 1
						}
						time.Sleep(time.Minute)
					} else {
						<-lk.Context().Done()
						faulty.Always(fault.Release, fault.Hang)
					}
					_ = lk.Complete()
					if observed && (said != want || works && renewed == 0) || strings.Count(log.String(), "still running after its context has ended") != want {
						t.Errorf("said %d times in %d renewals, want %d:\n%s", said, renewed, want, log.String())
					}
				})
			})
		}
	}
}

// TestOvertimeRidesOutAnOutage: while nobody takes the name, a store that is
// away around the deadline costs nothing, nor does one that goes away later:
// the renewals have all the lease, because no context is left to end before it.
func TestOvertimeRidesOutAnOutage(t *testing.T) { // F8, F16
	t.Parallel()
	for when, away := range map[string]struct{ from, until time.Duration }{
		"around the deadline": {9 * time.Second, 11 * time.Second}, "after a renewal": {10 * time.Second, 16200 * time.Millisecond},
	} {
		for _, kind := range []fault.Fault{fault.DropBefore, fault.Hang, fault.Throttle} {
			t.Run(fmt.Sprintf("%s, %v", when, kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t)
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					lk := expect.Value(f.locker(untilDeadline).Acquire(ctx, event("e1")))(t)
					time.Sleep(away.from)
					f.faulty.Always(fault.Renew, kind)
					time.Sleep(away.until - away.from)
					f.faulty.Always(fault.Renew, fault.None)
					time.Sleep(time.Minute)
					if _, err := f.locker(aMinute).Acquire(t.Context(), event("e1")); !isHeld(err) {
						t.Errorf("a retry beside the work: %v", err)
					}
					expect.OK(t, lk.Complete())
				})
			})
		}
	}
}

// TestOvertimeDuringTransaction: the first renewal is due while a transaction
// is under way that does not end the lock, which is renewed all the same.
func TestOvertimeDuringTransaction(t *testing.T) { // F16
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		lk := expect.Value(f.locker(untilDeadline).Acquire(ctx, event("e1")))(t)
		time.Sleep(9 * time.Second)
		err := transact(t, f, lk, func(context.Context, *driver.Settlement) (driver.Row, bool, error) {
			time.Sleep(time.Second)
			return driver.Row{}, false, &driver.Error{Lasting: true, Answered: true, Unapplied: true, Err: errors.New("declined")}
		})
		if !isStoreError(err) {
			t.Errorf("the transaction: %v", err)
		}
		time.Sleep(time.Minute)
		if _, err := f.locker(aMinute).Acquire(t.Context(), event("e1")); !isHeld(err) {
			t.Errorf("a retry beside the work: %v", err)
		}
		expect.OK(t, lk.Complete())
	})
}

// TestLateCompletionIsTried: after the deadline nobody else can complete the
// event either, so the completion is tried for as long as the lease keeps
// others away. A release is not.
func TestLateCompletionIsTried(t *testing.T) { // F7, F16
	t.Parallel()
	for name, o := range map[string]lock.Options{"until the deadline": untilDeadline, "heartbeat": {Lease: lock.Heartbeat(9 * time.Second)}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				lk, err := f.locker(o).Acquire(ctx, event("e1"))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				f.faulty.Always(fault.Release, fault.DropBefore)
				time.AfterFunc(3*time.Second, func() { f.faulty.Always(fault.Release, fault.None) })
				if err := lk.Complete(); err != nil {
					t.Errorf("completion in a store that was down for 3 s: %v", err)
				}

				short, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				if lk, err = f.locker(o).Acquire(short, event("e2")); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				f.faulty.Always(fault.Release, fault.DropBefore)
				began, before := time.Now(), f.faulty.Requests(fault.Release)
				if err := lk.Release(); !isStoreError(err) || time.Since(began) > 250*time.Millisecond || f.faulty.Requests(fault.Release) < before+2 {
					t.Errorf("release: %v after %v and %d requests", err, time.Since(began), f.faulty.Requests(fault.Release)-before)
				}
			})
		})
	}
}
