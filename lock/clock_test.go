package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
)

// ahead gives a Locker a clock that differs from the others'.
func ahead(l *lock.Locker, by time.Duration) *lock.Locker {
	l.SetClock(func() time.Time { return time.Now().Add(by) })
	return l
}

// TestNoOverlapWithinGrace shows P2: whatever the lease, work that stops with its
// context has stopped before another's begins, where clocks differ by up to Grace.
func TestNoOverlapWithinGrace(t *testing.T) { // F14, F20
	const differ = lock.DefaultGrace - 100*time.Millisecond
	for name, mode := range map[string]lock.LeaseMode{
		"fixed lease of 3 s":   lock.FixedLease(3 * time.Second),
		"fixed lease of 5 s":   lock.FixedLease(5 * time.Second),
		"fixed lease of 1 min": lock.FixedLease(time.Minute),
		"heartbeat of 3 s":     lock.Heartbeat(3 * time.Second),
		"heartbeat of 4 s":     lock.Heartbeat(4 * time.Second),
		"heartbeat of 30 s":    lock.Heartbeat(30 * time.Second),
		"until the deadline":   lock.UntilDeadline(),
	} {
		for _, by := range []time.Duration{-differ, differ} {
			t.Run(fmt.Sprintf("%s, others %v ahead", name, by), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t)
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					lk, err := r.locker(lock.Options{Lease: mode}).Acquire(ctx, resource)
					if err != nil {
						t.Fatal(err)
					}
					r.store.Always(locktest.Renew, locktest.DropBefore) // the holder is cut off
					stopped := make(chan time.Time, 1)
					go func() {
						<-lk.Context().Done()
						if mode == lock.UntilDeadline() { // work may ignore its context until the kill
							<-ctx.Done()
						}
						stopped <- time.Now()
					}()
					other, err := ahead(r.locker(lock.Options{MaxWait: 5 * time.Minute}), by).Acquire(t.Context(), resource)
					if err != nil {
						t.Fatal(err)
					}
					if begins, ends := time.Now(), <-stopped; !ends.Before(begins) {
						t.Errorf("the next one began %v before the work stopped", ends.Sub(begins))
					}
					_ = other.Release()
					_ = lk.Release()
				})
			})
		}
	}
}

// TestLeaseTooShortForGrace: a lease that would be lost before it is of any use.
func TestLeaseTooShortForGrace(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]lock.Options{
		"lease of a second":        {Lease: lock.FixedLease(time.Second)},
		"heartbeat of a second":    {Lease: lock.Heartbeat(time.Second)},
		"heartbeat of two seconds": {Lease: lock.Heartbeat(2 * time.Second)},
		"just below":               {Lease: lock.FixedLease(3*time.Second - 1)},
		"longer grace":             {Lease: lock.Heartbeat(10 * time.Second), Grace: 9500 * time.Millisecond},
		"grace beyond the default": {Grace: time.Minute},
	} {
		_, err := lock.New(locktest.NewFaulty(nil), &o)
		if !errors.As(err, new(*lock.ConfigError)) || !strings.Contains(err.Error(), "Grace of") || !strings.Contains(err.Error(), "lease of") {
			t.Errorf("%s: %v, want a ConfigError that names both", name, err)
		}
	}
}

// TestClockAheadCausesFewRequests: a holder whose clock is an hour ahead looks as if it began
// in the future, and must not be asked for all the time.
func TestClockAheadCausesFewRequests(t *testing.T) { // F14, F38
	for _, by := range []time.Duration{-time.Hour, 0, time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				holder := ahead(r.locker(lock.Options{Lease: lock.FixedLease(3 * time.Hour)}), by)
				r.mustAcquire(holder, resource) // and never ends it
				before := r.store.Requests(locktest.Acquire)
				if _, err := r.locker(lock.Options{MaxWait: 2 * time.Minute}).Acquire(t.Context(), resource); !isHeld(err) {
					t.Fatal(err)
				}
				if n := r.store.Requests(locktest.Acquire) - before; n > 90 {
					t.Errorf("%d requests in two minutes", n)
				}
			})
		})
	}
}

// TestLeaseCountsFromRequest: an owner counts from before its request was sent, since
// it does not know when that was applied.
func TestLeaseCountsFromRequest(t *testing.T) { // F14
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		slow := &slowAnswers{Store: r.store.Store, takes: 800 * time.Millisecond}
		r.store.Store = slow
		start := time.Now()
		lk := r.mustAcquire(r.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second)}), resource)
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

// slowAnswers applies at once, and answers later.
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

// TestFrozenHolder: while an environment is frozen its timers stand still and the wall
// clock goes on. When it thaws, the lease is over, and no renewal may pretend otherwise.
func TestFrozenHolder(t *testing.T) { // F15
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l := r.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second)})
		var mu sync.Mutex
		frozen := time.Duration(0)
		l.SetClock(func() time.Time { mu.Lock(); defer mu.Unlock(); return time.Now().Add(frozen) })
		lk := r.mustAcquire(l, event("e1"))
		r.kinds()
		mu.Lock()
		frozen = 6 * time.Second // with what passes until the first beat: less than the lease, more than its owner may count on
		mu.Unlock()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if cause := context.Cause(lk.Context()); !errors.Is(cause, lock.ErrLost) {
			t.Errorf("cause %v, want lost", cause)
		}
		if n := r.store.Requests(locktest.Renew); n != 0 {
			t.Errorf("%d renewals of a lease that its owner could not count on", n)
		}
		r.want(lock.OutcomeLost)
		_ = lk.Release()
	})
}

// TestReleaseWaitsForHeartbeat: Lambda would freeze a renewal that is still under way,
// and thaw it inside a later invocation.
func TestReleaseWaitsForHeartbeat(t *testing.T) { // F17
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		s := &stubborn{Store: r.store.Store}
		r.store.Store = s
		lk := r.mustAcquire(r.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second)}), resource)
		time.Sleep(3*time.Second + time.Millisecond) // a renewal is under way
		if !s.underWay() {
			t.Fatal("no renewal is under way: this test would see nothing")
		}
		if err := lk.Release(); err != nil {
			t.Fatal(err)
		}
		if s.underWay() {
			t.Error("the lock has ended while its heartbeat was still at work")
		}
	})
}

// stubborn renews for a while after its context has ended.
type stubborn struct {
	driver.Store
	mu       sync.Mutex
	renewing bool
}

func (s *stubborn) underWay() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.renewing
}

func (s *stubborn) set(renewing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewing = renewing
}

func (s *stubborn) Renew(ctx context.Context, _ *driver.Renewal) (driver.Row, bool, error) {
	s.set(true)
	defer s.set(false)
	<-ctx.Done()
	time.Sleep(50 * time.Millisecond)
	return driver.Row{}, false, ctx.Err()
}
