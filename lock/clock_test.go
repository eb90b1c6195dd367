package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestNoOverlapWithinGrace shows P2: with any kind of lease, and clocks that
// differ by less than Grace, work that stops with its context stops before the
// next holder's work begins.
func TestNoOverlapWithinGrace(t *testing.T) { // F14, F20
	const skew = lock.DefaultGrace - 100*time.Millisecond
	for name, mode := range map[string]lock.LeaseMode{
		"fixed lease of 3 s":   lock.FixedLease(3 * time.Second),
		"fixed lease of 5 s":   lock.FixedLease(5 * time.Second),
		"fixed lease of 1 min": lock.FixedLease(time.Minute),
		"heartbeat of 3 s":     lock.Heartbeat(3 * time.Second),
		"heartbeat of 4 s":     lock.Heartbeat(4 * time.Second),
		"heartbeat of 30 s":    lock.Heartbeat(30 * time.Second),
		"until the deadline":   lock.UntilDeadline(),
	} {
		for _, by := range []time.Duration{-skew, skew} {
			t.Run(fmt.Sprintf("%s, others ahead by %v", name, by), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t)
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					lk := expect.Value(f.locker(lock.Options{Lease: mode}).Acquire(ctx, resource))(t)
					f.faulty.Always(fault.Renew, fault.DropBefore) // the holder cannot reach the store
					stopped := make(chan time.Time, 1)
					go func() {
						<-lk.Context().Done()
						if mode == lock.UntilDeadline() { // work may ignore its context until it is killed
							<-ctx.Done()
						}
						stopped <- time.Now()
					}()
					other := expect.Value(skewed(f.locker(lock.Options{MaxWait: 5 * time.Minute}), by).Acquire(t.Context(), resource))(t)
					if begins, ends := time.Now(), <-stopped; !ends.Before(begins) {
						t.Errorf("the next holder began %v before the work stopped", ends.Sub(begins))
					}
					_ = other.Release()
					_ = lk.Release()
				})
			})
		}
	}
}

// TestLeaseTooShortForGrace shows that a lease is refused if Grace would leave
// no time for work.
func TestLeaseTooShortForGrace(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]lock.Options{
		"fixed lease of a second":  {Lease: lock.FixedLease(time.Second)},
		"heartbeat of a second":    {Lease: lock.Heartbeat(time.Second)},
		"heartbeat of two seconds": {Lease: lock.Heartbeat(2 * time.Second)},
		"just below the limit":     {Lease: lock.FixedLease(3*time.Second - 1)},
		"longer grace":             {Lease: lock.Heartbeat(10 * time.Second), Grace: 9500 * time.Millisecond},
		"grace beyond the default": {Grace: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := lock.New(memstore.New(), &o)
			if !errors.As(err, new(*lock.ConfigError)) || !strings.Contains(err.Error(), "Grace of") || !strings.Contains(err.Error(), "lease of") {
				t.Errorf("got %v, want a ConfigError that names both", err)
			}
		})
	}
}

// TestClockAheadCausesFewRequests shows that a contender does not poll all the
// time if the holder's clock is far ahead, so that its stamp lies in the
// future.
func TestClockAheadCausesFewRequests(t *testing.T) { // F14, F38
	for _, by := range []time.Duration{-time.Hour, 0, time.Hour} {
		t.Run(fmt.Sprintf("by %v", by), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				holder := skewed(f.locker(lock.Options{Lease: lock.FixedLease(3 * time.Hour)}), by)
				f.mustAcquire(holder, resource) // and keeps it
				before := f.faulty.Requests(fault.Acquire)
				if _, err := f.locker(lock.Options{MaxWait: 2 * time.Minute}).Acquire(t.Context(), resource); !isHeld(err) {
					t.Fatal(err)
				}
				if n := f.faulty.Requests(fault.Acquire) - before; n > 90 {
					t.Errorf("%d requests in two minutes", n)
				}
			})
		})
	}
}

// TestLeaseCountsFromRequest shows that an owner counts its lease from before
// it sent the request, because it cannot know when the request was applied.
func TestLeaseCountsFromRequest(t *testing.T) { // F14
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		slow := &slowAnswers{Store: f.faulty.Store, takes: 800 * time.Millisecond}
		f.faulty.Store = slow
		start := time.Now()
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second)}), resource)
		if got := lk.Lease().Until.Sub(start); got != 9*time.Second {
			t.Errorf("a lease of 9s ends %v after the request was sent", got)
		}
		for range 5 {
			until := lk.Lease().Until
			for lk.Lease().Until.Equal(until) {
				time.Sleep(time.Millisecond)
			}
			if got := lk.Lease().Until.Sub(slow.asked()); got != 9*time.Second {
				t.Errorf("a renewed lease ends %v after the request was sent", got)
			}
			if row := slow.row(); !row.Until.Equal(lk.Lease().Until) {
				t.Errorf("the row's lease ends %v, the owner believes %v", row.Until, lk.Lease().Until)
			}
		}
		_ = lk.Release()
	})
}

// slowAnswers applies a request immediately and answers later.
type slowAnswers struct {
	driver.Store
	takes time.Duration
	mu    sync.Mutex
	sent  time.Time
	last  driver.Row
}

func (s *slowAnswers) answer(row driver.Row, ok bool, err error) (driver.Row, bool, error) {
	s.mu.Lock()
	s.sent, s.last = time.Now(), row
	s.mu.Unlock()
	time.Sleep(s.takes)
	return row, ok, err
}

func (s *slowAnswers) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	return s.answer(s.Store.Acquire(ctx, c))
}

func (s *slowAnswers) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	return s.answer(s.Store.Renew(ctx, r))
}

func (s *slowAnswers) asked() time.Time { s.mu.Lock(); defer s.mu.Unlock(); return s.sent }
func (s *slowAnswers) row() driver.Row  { s.mu.Lock(); defer s.mu.Unlock(); return s.last }

// TestFrozenHolder shows that a lease that ended while the environment was
// frozen is not renewed: the timers stood still meanwhile, the wall clock did
// not.
func TestFrozenHolder(t *testing.T) { // F15
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		process := skewed(f.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second)}), 0)
		lk := f.mustAcquire(process, event("e1"))
		f.outcomes()
		process.freeze(5 * time.Second) // with the 3 s to the first renewal: within the lease, but past its margin
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if cause := context.Cause(lk.Context()); !errors.Is(cause, lock.ErrLost) {
			t.Errorf("cause %v, want lost", cause)
		}
		if n := f.faulty.Requests(fault.Renew); n != 0 {
			t.Errorf("%d renewals after the owner's time was over", n)
		}
		f.wantOutcomes(lock.OutcomeLost)
		_ = lk.Release()
	})
}

// TestReleaseWaitsForHeartbeat shows that the lock ends after its last renewal.
// Lambda would freeze a renewal that is still under way, and thaw it in a later
// invocation.
func TestReleaseWaitsForHeartbeat(t *testing.T) { // F17
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		store, renewals := f.faulty.Store, 0
		var underWay atomic.Bool
		f.faulty.Store = fault.Hooks{Store: store, OnRenew: func(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
			if renewals++; renewals == 1 {
				return store.Renew(ctx, r)
			}
			underWay.Store(true)
			defer underWay.Store(false)
			<-ctx.Done()
			time.Sleep(300 * time.Millisecond) // a client that is slower to cancel than an observer may be
			return driver.Row{}, false, ctx.Err()
		}}
		lk := f.mustAcquire(f.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second)}), resource)
		time.Sleep(6*time.Second + time.Millisecond) // the second renewal is under way
		if !underWay.Load() {
			t.Fatal("no renewal is under way, so this test shows nothing")
		}
		expect.Must(t, lk.Release())
		if underWay.Load() {
			t.Error("the lock has ended while a renewal was still under way")
		}
	})
}

// timers is a clock that knows its functions that are still to be called.
type timers struct {
	clock.Clock
	mu      sync.Mutex
	waiting map[*timer]bool
}

type timer struct {
	clock.Timer
	of *timers
}

func (c *timers) AfterFunc(d time.Duration, f func()) clock.Timer {
	t := &timer{of: c}
	c.set(t, true)
	t.Timer = c.Clock.AfterFunc(d, func() { c.set(t, false); f() })
	return t
}

func (c *timers) set(t *timer, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[t] = true; !waits {
		delete(c.waiting, t)
	}
}

func (t *timer) Stop() bool                 { t.of.set(t, false); return t.Timer.Stop() }
func (t *timer) Reset(d time.Duration) bool { t.of.set(t, true); return t.Timer.Reset(d) }

// TestNoTimerIsLeft shows that a lock which has ended is free for the garbage
// collector: no timer keeps it until its lease or its deadline would have
// ended.
func TestNoTimerIsLeft(t *testing.T) { // F17
	for name, mode := range map[string]lock.LeaseMode{"until the deadline": lock.UntilDeadline(), "heartbeat": lock.Heartbeat(9 * time.Second)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				c := &timers{Clock: simclock.New(0, 0), waiting: map[*timer]bool{}}
				ctx, cancel := context.WithTimeout(clock.With(t.Context(), c), time.Minute)
				defer cancel()
				lk := expect.Value(f.locker(lock.Options{Lease: mode}).Acquire(ctx, event("e1")))(t)
				if len(c.waiting) == 0 {
					t.Error("no timer waits during the work, so this test shows nothing")
				}
				time.Sleep(5 * time.Second)
				expect.OK(t, lk.Complete())
				if n := len(c.waiting); n != 0 {
					t.Errorf("%d timers wait after the end", n)
				}
			})
		})
	}
}
