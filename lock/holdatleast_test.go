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

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestHoldAtLeastWhileTheClockIsSet sets the holder's clock in the middle of
// its work. The name stays held for as long as was asked for.
func TestHoldAtLeastWhileTheClockIsSet(t *testing.T) { // F14, F58
	t.Parallel()
	const least, work = 6 * time.Second, time.Second
	type limits struct{ least, most time.Duration }
	for store, c := range map[string]struct {
		open  func() driver.Store
		steps map[time.Duration]limits
	}{
		"server's clock": {func() driver.Store { return newServerClock(time.Now) }, map[time.Duration]limits{
			0: {least, least}, time.Hour: {least, least}, 5500 * time.Millisecond: {least, least}, -3 * time.Second: {least, least + work}, -time.Hour: {least, least + work},
		}},
		// It is also how much the clocks then differ.
		"claimants' clock": {func() driver.Store { return memstore.New() }, map[time.Duration]limits{
			0: {least, least}, 1900 * time.Millisecond: {least, least + 1900*time.Millisecond}, -500 * time.Millisecond: {least, least},
		}},
	} {
		for step, want := range c.steps {
			for name, end := range map[string]func(*lock.Lock) error{"completed": (*lock.Lock).Complete, "released": (*lock.Lock).Release} {
				t.Run(fmt.Sprint(store, ", set by ", step, ", ", name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						f := newFixture(t)
						f.faulty.Store = c.open()
						holder := skewed(f.locker(lock.Options{HoldAtLeast: least, Lease: lock.FixedLease(time.Minute)}), 0)
						began := time.Now()
						lk := expect.Value(holder.Acquire(t.Context(), event("e1")))(t)
						time.Sleep(work)
						holder.clock.Step(step)
						expect.Must(t, end(lk))
						next := expect.Value(f.locker(lock.Options{MaxWait: time.Minute}).Acquire(t.Context(), event("e2")))(t)
						if held := time.Since(began); held < want.least || held > want.most+100*time.Millisecond {
							t.Errorf("held for %v, want %v to %v", held, want.least, want.most)
						}
						_ = next.Release()
					})
				})
			}
		}
	}
}

// TestHoldAtLeastOnThreeHosts begins a job every minute on three hosts whose
// clocks differ by up to 3.8 s. It runs once a minute, and costs as many
// requests as without HoldAtLeast.
func TestHoldAtLeastOnThreeHosts(t *testing.T) { // F14
	t.Parallel()
	ticks := 10_000
	if testing.Short() {
		ticks = 1000
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		var mu sync.Mutex
		runs := make([]int, ticks)
		var wg sync.WaitGroup
		began := time.Now()
		for _, ahead := range []time.Duration{-1900 * time.Millisecond, 0, 1900 * time.Millisecond} {
			host := skewed(f.locker(lock.Options{HoldAtLeast: 30 * time.Second, Lease: lock.FixedLease(10 * time.Second)}), ahead)
			wg.Go(func() {
				for tick := range ticks {
					time.Sleep(time.Until(began.Add(time.Duration(tick+1)*time.Minute - ahead)))
					err := host.Do(t.Context(), resource, func(context.Context) error {
						time.Sleep(20 * time.Millisecond)
						mu.Lock()
						defer mu.Unlock()
						runs[tick]++
						return nil
					})
					if err != nil && !isHeld(err) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for tick, n := range runs {
			if n != 1 {
				t.Fatalf("tick %d ran %d times", tick, n)
			}
		}
		requests := map[lock.Outcome]int{}
		for _, o := range f.observed {
			requests[o.Outcome] += o.Requests
		}
		if requests[lock.OutcomeAcquired] != ticks || requests[lock.OutcomeReleased] != ticks || requests[lock.OutcomeHeld] != 2*ticks || len(requests) != 3 {
			t.Errorf("requests by outcome: %v", requests)
		}
	})
}

// TestHoldAtLeast ends a lock in each way, and asks when the name is free.
func TestHoldAtLeast(t *testing.T) {
	t.Parallel()
	const least = time.Hour
	for name, c := range map[string]struct {
		options lock.Options
		key     lock.Key
		work    time.Duration
		end     func(*fixture, *lock.Lock) error
		want    time.Duration // from the acquisition
	}{
		"completed":            {key: event("e1"), work: time.Minute, end: func(_ *fixture, lk *lock.Lock) error { return lk.Complete() }, want: least},
		"completed, a mutex":   {key: resource, work: time.Minute, end: func(_ *fixture, lk *lock.Lock) error { return lk.Complete() }, want: least},
		"released":             {key: event("e1"), work: time.Minute, end: func(_ *fixture, lk *lock.Lock) error { return lk.Release() }, want: least},
		"longer than that":     {key: event("e1"), work: 2 * least, end: func(_ *fixture, lk *lock.Lock) error { return lk.Complete() }, want: 2 * least},
		"longer than to renew": {options: lock.Options{Lease: lock.Heartbeat(10 * time.Minute)}, key: resource, work: 50 * time.Minute, end: func(_ *fixture, lk *lock.Lock) error { return lk.Complete() }, want: least},
		"answer lost": {key: event("e1"), work: time.Minute, end: func(f *fixture, lk *lock.Lock) error { // F4
			f.faulty.Plan(fault.Release, fault.ApplyThenFail)
			return lk.Complete()
		}, want: least},
		"answer of a release lost": {key: resource, work: time.Minute, end: func(f *fixture, lk *lock.Lock) error { // F4
			f.faulty.Plan(fault.Release, fault.ApplyThenFail)
			return lk.Release()
		}, want: least},
		"request lost": {key: event("e1"), work: time.Minute, end: func(f *fixture, lk *lock.Lock) error { // F4
			f.faulty.Plan(fault.Release, fault.DropBefore)
			return lk.Complete()
		}, want: least},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				c.options.HoldAtLeast = least
				if c.options.Lease == (lock.LeaseMode{}) {
					c.options.Lease = lock.FixedLease(3 * least)
				}
				began := time.Now()
				lk := f.mustAcquire(f.locker(c.options), c.key)
				time.Sleep(c.work)
				expect.Must(t, c.end(f, lk))
				other := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)})
				if c.want > c.work {
					time.Sleep(time.Until(began.Add(c.want)))
					_, err := other.Acquire(t.Context(), event("e2"))
					held := (*lock.HeldError)(nil)
					if !errors.As(err, &held) || !held.Cooldown || !held.Until.Equal(began.Add(least)) || held.Duplicate || held.Holder != "" {
						t.Errorf("until the cooldown has ended: %#v", err)
					} else if !strings.Contains(err.Error(), "HoldAtLeast") {
						t.Errorf("the error does not say why: %v", err)
					}
					if _, err := other.Acquire(t.Context(), event("e1")); c.key.Event != "" && !isCompleted(err) && name != "released" {
						t.Errorf("a duplicate meanwhile: %v", err)
					}
				}
				time.Sleep(time.Microsecond)
				f.outcomes()
				f.mustAcquire(other, event("e2"))
				f.wantOutcomes(lock.OutcomeAcquired) // nobody has died
			})
		})
	}
}

// TestHoldAtLeastNeedsWork shows that a name stays free if no work began under
// it.
func TestHoldAtLeastNeedsWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{HoldAtLeast: time.Hour})
		other := f.mustAcquire(f.locker(lock.Options{}), lock.Key{Name: "z"})
		if _, err := l.AcquireAll(t.Context(), resource, lock.Key{Name: "z"}); !isHeld(err) {
			t.Fatal(err)
		}
		f.wantFree("after a set that was refused")
		_ = other.Release()
		set := expect.Value(l.AcquireAll(t.Context(), resource, lock.Key{Name: "z"}))(t)
		_ = set.Fail(invocation.ErrUnbegun)
		f.wantFree("after work that did not begin")
		set = expect.Value(l.AcquireAll(t.Context(), resource, lock.Key{Name: "z"}))(t)
		_ = set.Release()
		if row := f.row(); !row.Cooling() {
			t.Errorf("the row of a set that was released: %+v", row)
		}
	})
}

// TestHoldAtLeastWaits shows that a waiter comes when the cooldown ends.
func TestHoldAtLeastWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{HoldAtLeast: 1500 * time.Millisecond, MaxWait: time.Minute})
		began := time.Now()
		_ = f.mustAcquire(l, resource).Release()
		f.outcomes()
		lk := f.mustAcquire(l, resource)
		if waited := time.Since(began); waited < 1500*time.Millisecond || waited > 1502*time.Millisecond {
			t.Errorf("waited %v", waited)
		}
		_ = lk.Release()
		f.mu.Lock()
		defer f.mu.Unlock()
		if n := f.observed[0].Requests; n != 2 {
			t.Errorf("%d requests to wait for the end of a cooldown", n)
		}
	})
}

// TestHoldAtLeastLongerThanTheWait shows that nobody waits for a cooldown that
// lasts longer than the wait may, and that the error is that of the wait.
func TestHoldAtLeastLongerThanTheWait(t *testing.T) { // F19
	t.Parallel()
	const least = 10 * time.Second
	for name, c := range map[string]struct {
		slots          int
		wait, deadline time.Duration // zero: none
		work           time.Duration // of a holder of the last slot, without a cooldown; zero: it cools too
		took           time.Duration // at most, until it is acquired; zero: it is refused immediately
		cause          error
	}{
		"longer":                   {slots: 1, wait: time.Second},
		"as long":                  {slots: 1, wait: least},
		"shorter":                  {slots: 1, wait: least + time.Microsecond, took: least + time.Microsecond},
		"longer than the deadline": {slots: 1, wait: time.Minute, deadline: least, cause: context.DeadlineExceeded},
		"no wait":                  {slots: 1, deadline: 2 * time.Second},
		"in both slots":            {slots: 2, wait: time.Second},
		"in one of two slots":      {slots: 2, wait: 5 * time.Second, work: time.Second, took: 4 * time.Second}, // it looks again after as long as that, and half
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				cools, last := f.limited(c.slots, lock.Options{HoldAtLeast: least}), f.limited(c.slots, lock.Options{})
				if c.work == 0 {
					last = cools
				}
				for range c.slots - 1 {
					_ = f.mustAcquire(cools, resource).Release()
				}
				holder := f.mustAcquire(last, resource)
				time.AfterFunc(c.work, func() { _ = holder.Release() })
				synctest.Wait()
				ctx := t.Context()
				if c.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				began := time.Now()
				lk, err := f.limited(c.slots, lock.Options{MaxWait: c.wait}).Acquire(ctx, resource)
				took := time.Since(began)
				if c.took > 0 {
					if err != nil {
						t.Fatal(err)
					}
					if took > c.took {
						t.Errorf("after %v", took)
					}
					_ = lk.Release()
					return
				}
				held := (*lock.HeldError)(nil)
				if !errors.As(err, &held) || took > 0 || !held.Cooldown || !held.Until.Equal(began.Add(least)) || held.Cause != c.cause {
					t.Errorf("%#v after %v", err, took)
				}
			})
		})
	}
}

// TestHoldAtLeastTakesNoPlace shows that who gives up because of a cooldown
// takes no place in line, which would cost those behind it time.
func TestHoldAtLeastTakesNoPlace(t *testing.T) { // F19
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		first := f.mustAcquire(f.locker(lock.Options{}), resource)
		time.AfterFunc(20*time.Millisecond, func() {
			_ = first.Release()
			_ = f.mustAcquire(f.locker(lock.Options{HoldAtLeast: time.Hour}), resource).Release()
		})
		began := time.Now()
		_, err := f.locker(lock.Options{MaxWait: time.Minute}).Acquire(t.Context(), resource)
		if took := time.Since(began); !isHeld(err) || took > time.Second || f.faulty.Requests(fault.Join) > 0 {
			t.Errorf("%v after %v, with %d places taken", err, took, f.faulty.Requests(fault.Join))
		}
	})
}

// TestHoldAtLeastClockSetBack sets the holder's clock back by a day: the name
// stays held for HoldAtLeast from the end, not for a day.
func TestHoldAtLeastClockSetBack(t *testing.T) { // F14
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		host := skewed(f.locker(lock.Options{HoldAtLeast: time.Minute, Lease: lock.FixedLease(time.Hour)}), 24*time.Hour)
		lk := f.mustAcquire(host, resource)
		host.clock.Step(-24 * time.Hour)
		_ = lk.Release()
		time.Sleep(time.Minute + time.Microsecond)
		f.wantFree("a minute after the end")
	})
}

// TestRowOutlivesItsCooldown shows that garbage collection leaves a row alone
// while its name is held.
func TestRowOutlivesItsCooldown(t *testing.T) { // F23, F47
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		const year = 365 * 24 * time.Hour
		l := f.locker(lock.Options{HoldAtLeast: year})
		expect.Must(t, l.Do(t.Context(), resource, nothing))
		time.Sleep(year)
		if _, err := l.Acquire(t.Context(), resource); !isHeld(err) {
			t.Errorf("a claim at the end: %v", err)
		}
	})
}

// TestRowOutlivesItsCooldownAndAnOrder: a claim that is given up in a cooldown
// does not make the row forget the order that was completed before it.
func TestRowOutlivesItsCooldownAndAnOrder(t *testing.T) { // F23, F47
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		const day = 24 * time.Hour
		l := f.locker(lock.Options{HoldAtLeast: 366 * day, Remember: 366 * day})
		expect.Must(t, l.Do(t.Context(), lock.Key{Name: "resource", Order: "2"}, nothing))
		f.faulty.Always(fault.Acquire, fault.DropBefore)
		if _, err := l.Acquire(t.Context(), resource); !isStoreError(err) {
			t.Fatal(err)
		}
		f.faulty.Always(fault.Acquire, fault.None)
		time.Sleep(731 * day) // the store deletes rows as soon as it may
		if err := l.Do(t.Context(), lock.Key{Name: "resource", Order: "1"}, nothing); !isCompleted(err) {
			t.Errorf("a stale event a year after the cooldown: %v", err)
		}
	})
}
