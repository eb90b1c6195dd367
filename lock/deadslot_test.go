package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// shards is a store of which a part may fail, as where each row is in one of
// several servers.
type shards struct {
	driver.Store
	down       func(name string) bool
	how        func(ctx context.Context) error
	late       []func() // the claims that had no answer
	claimsOnly bool     // what gives a claim up arrives
	comesLate  bool     // a claim without an answer arrives within 8 s
}

func (s *shards) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	if !s.down(c.Name) {
		return s.Store.Acquire(ctx, c)
	}
	claim := *c
	late := func() { _, _, _ = s.Store.Acquire(context.Background(), &claim) }
	if s.comesLate {
		time.AfterFunc(rand.N(8*time.Second), late)
	} else {
		s.late = append(s.late, late)
	}
	return driver.Row{}, false, s.how(ctx)
}

func (s *shards) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	if s.claimsOnly || !s.down(t.Name) {
		return s.Store.Settle(ctx, t)
	}
	return driver.Row{}, false, s.how(ctx)
}

// How a server fails.
var (
	refused   = func(context.Context) error { return &driver.Error{Unapplied: true, Err: errDropped} }
	breaks    = func(context.Context) error { return &driver.Error{Err: errDropped} }
	throttled = func(context.Context) error {
		return &driver.Error{Answered: true, Unapplied: true, Err: errors.New("slow down")}
	}
	hangs = func(ctx context.Context) error {
		<-ctx.Done()
		return &driver.Error{Err: context.Cause(ctx)}
	}
	failures = map[string]func(context.Context) error{"refused": refused, "breaks": breaks, "throttled": throttled, "hangs": hangs}
)

// failing makes the store one of which some slots of the resource fail from now
// on.
func (f *fixture) failing(how func(context.Context) error, numbers ...int) *shards {
	names := map[string]bool{}
	for _, n := range numbers {
		names[slotRow(n)] = true
	}
	s := &shards{Store: f.faulty.Store, how: how, down: func(name string) bool { return names[name] }}
	f.faulty.Store = s
	return s
}

func slotRow(number int) string {
	if number == 1 {
		return "/resource"
	}
	return fmt.Sprintf("/slot:%d:resource", number)
}

// TestFreeSlotBesideDeadOnes shows that a name is granted as long as one of its
// slots answers and is free, and that no copy of a claim holds another one.
func TestFreeSlotBesideDeadOnes(t *testing.T) { // F2, F13
	for name, how := range failures {
		for _, dead := range [][]int{{1}, {2}, {1, 3}} {
			if name == "throttled" && len(dead) > 1 {
				continue // a claim that was throttled twice gives up
			}
			t.Run(fmt.Sprint(name, dead), func(t *testing.T) {
				for range 10 { // random orders
					synctest.Test(t, func(t *testing.T) {
						f := newFixture(t)
						s := f.failing(how, dead...)
						s.claimsOnly = name != "refused"
						start := time.Now()
						lk := f.mustAcquire(f.limited(3, lock.Options{}), resource)
						if d := time.Since(start); d > 2*time.Second {
							t.Errorf("acquired after %v", d)
						}
						s.down = func(string) bool { return false }
						for _, apply := range s.late {
							if name == "breaks" || name == "hangs" {
								apply()
							}
						}
						f.wantSlots(3, 2)
						expect.OK(t, lk.Release())
						f.wantSlots(3, 3)
					})
				}
			})
		}
	}
}

// TestGhostOfADeadSlot shows that a copy which arrives when nothing could give
// it up any more holds its slot for one lease, and not beside the limit.
func TestGhostOfADeadSlot(t *testing.T) { // F2, F19
	ghosts := 0
	for range 20 { // random orders
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			s := f.failing(hangs, 1, 2)
			l := f.limited(3, lock.Options{Lease: lock.FixedLease(10 * time.Second)})
			lk := f.mustAcquire(l, resource)
			s.down = func(string) bool { return false }
			for _, apply := range s.late {
				apply()
			}
			for range 2 - len(s.late) {
				f.hold(l)
			}
			f.wantFull(l)
			expect.OK(t, lk.Release())
			time.Sleep(20 * time.Second)
			f.wantSlots(3, 3)
			ghosts += len(s.late)
		})
	}
	if ghosts == 0 {
		t.Error("no slot was held for nobody")
	}
}

// TestDeadSlotCountsAsHeld shows that those who find all other slots held are
// told so, and not that the store failed: otherwise FailOpen would let them run
// beside as many holders as there may be.
func TestDeadSlotCountsAsHeld(t *testing.T) { // F13
	for name, how := range failures {
		for _, wait := range []time.Duration{0, 5 * time.Second} {
			t.Run(fmt.Sprint(name, wait), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t)
					l := f.limited(3, lock.Options{MaxWait: wait, Holder: func(context.Context) string { return "holder" }})
					all := f.holdAll(l, 3)
					free := 1
					for _, lk := range all {
						if f.bySlot(3)[1].Fence == lk.Lease().Fence {
							_ = lk.Release()
						}
					}
					f.failing(how, 2)
					start, before := time.Now(), f.faulty.Requests(fault.Acquire)
					held := f.refused(l)
					if held.Holder != "holder" || held.Until.IsZero() {
						t.Errorf("got %+v, want the holder of another slot", held)
					}
					if d := time.Since(start); d > wait+2*time.Second {
						t.Errorf("refused after %v", d)
					}
					if n := f.faulty.Requests(fault.Acquire) - before; n > 3+12+20*int(wait/time.Second) {
						t.Errorf("%d requests", n)
					}
					f.faulty.Store.(*shards).down = func(string) bool { return false }
					f.wantSlots(3, free)
				})
			})
		}
	}
}

// TestWaitBesideADeadSlot shows that a waiter finds a slot that is released.
func TestWaitBesideADeadSlot(t *testing.T) { // F13
	for name, how := range failures {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				all := f.holdAll(f.limited(3, lock.Options{}), 3)
				f.failing(how, 2)
				time.AfterFunc(30*time.Second, func() {
					for _, lk := range all {
						go func() { _ = lk.Release() }()
					}
				})
				start := time.Now()
				f.hold(f.limited(3, lock.Options{MaxWait: time.Minute}))
				if d := time.Since(start); d < 30*time.Second || d > 36*time.Second {
					t.Errorf("acquired after %v", d)
				}
			})
		})
	}
}

// extremes is a clock whose pauses are as short or as long as chance may make
// them.
type extremes struct {
	clock.Clock
	random *rand.Rand
	mu     *sync.Mutex // guards random
}

func (e extremes) Uint64() uint64 {
	e.mu.Lock() // claims of several slots are given up at the same time
	defer e.mu.Unlock()
	return []uint64{1, math.MaxUint64}[e.random.IntN(2)]
}

// TestWaitOutlastsABreak shows that a wait goes on if no slot answers for a
// moment, and ends with a StoreError if none answers for longer.
func TestWaitOutlastsABreak(t *testing.T) { // F13
	random, mu := rand.New(rand.NewPCG(1, 2)), sync.Mutex{}
	wait := func(t *testing.T, after, lasts time.Duration) (failed time.Duration, err error) {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			all := f.holdAll(f.limited(2, lock.Options{}), 2)
			s := f.failing(breaks)
			from := time.Now().Add(after)
			s.down = func(string) bool { return !time.Now().Before(from) && time.Since(from) < lasts }
			time.AfterFunc(20*time.Second, func() { _ = all[0].Release() })
			var lk *lock.Lock
			if lk, err = f.limited(2, lock.Options{MaxWait: time.Minute}).Acquire(clock.With(t.Context(), extremes{clock.From(t.Context()), random, &mu}), resource); err == nil {
				_ = lk.Release()
			}
			failed = time.Since(from)
		})
		return failed, err
	}
	for i := range 1000 { // a break meets no slot, one, or both
		if _, err := wait(t, 10*time.Second+time.Duration(i%20)*77*time.Millisecond, 900*time.Millisecond); err != nil {
			t.Errorf("a short break: %v", err)
		}
	}
	if failed, err := wait(t, 10*time.Second, time.Minute); !isStoreError(err) || failed > 10*time.Second {
		t.Errorf("a long break: %v after %v", err, failed)
	}
}

// TestAllSlotsDead shows what a store that does not answer at all costs: as
// much time as for a name without a limit, and few requests.
func TestAllSlotsDead(t *testing.T) { // F13, F55
	for name, c := range map[string]struct {
		how      func(context.Context) error
		requests int // of a name with two slots
		answered bool
	}{
		"refused": {refused, 20, false}, "breaks": {breaks, 20, false}, "hangs": {hangs, 10, false}, "throttled": {throttled, 2, true},
	} {
		for _, limit := range []int{2, lock.MaxLimit} {
			for _, wait := range []time.Duration{0, time.Minute} {
				t.Run(fmt.Sprint(name, limit, wait), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						f := newFixture(t)
						s := f.failing(c.how)
						s.down = func(string) bool { return true }
						start := time.Now()
						_, err := f.limited(limit, lock.Options{MaxWait: wait}).Acquire(t.Context(), resource)
						var e *lock.StoreError
						if !errors.As(err, &e) || !e.Temporary || e.Answered != c.answered || e.Unapplied != (name == "refused" || name == "throttled") {
							t.Errorf("got %+v", err)
						}
						if d := time.Since(start); d > 2*time.Second {
							t.Errorf("it took %v", d)
						}
						most := c.requests
						if limit > 2 && !c.answered {
							most *= 3
						}
						if n := f.faulty.Requests(fault.Acquire); n < 2 || n > most || e.Requests != n {
							t.Errorf("%d requests, and the error says %d; want at most %d", n, e.Requests, most)
						}
						f.wantOutcomes(lock.OutcomeStoreFailed)
					})
				})
			}
		}
	}
}

// TestFailureOfSeveralSlots shows that the error is about all of them: the
// request to one may have been applied, and that to another was not.
func TestFailureOfSeveralSlots(t *testing.T) { // F2, F13
	for range 20 { // random orders
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			one := f.failing(refused, 1)
			one.Store = &shards{Store: one.Store, how: breaks, down: func(string) bool { return true }}
			_, err := f.limited(2, lock.Options{}).Acquire(t.Context(), resource)
			var e *lock.StoreError
			if !errors.As(err, &e) || e.Unapplied {
				t.Errorf("got %+v", err)
			}
		})
	}
}

// TestDeadSlotAndCancel shows that an acquisition that is cancelled sends
// no further requests.
func TestDeadSlotAndCancel(t *testing.T) { // F13
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.failing(hangs).down = func(string) bool { return true }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		time.AfterFunc(100*time.Millisecond, cancel)
		start := time.Now()
		if _, err := f.limited(100, lock.Options{}).Acquire(ctx, resource); !isStoreError(err) {
			t.Errorf("got %v", err)
		}
		if n := f.faulty.Requests(fault.Acquire); n != 1 || time.Since(start) > time.Second {
			t.Errorf("%d requests in %v", n, time.Since(start))
		}
	})
}

// TestLimitWhileServersFail lets the servers of the slots fail in turns, also
// several at the same time, and late copies arrive: there are never more
// holders than slots, and at the end every slot is free.
func TestLimitWhileServersFail(t *testing.T) { // F2, F13, F44
	for name, how := range failures {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const limit = 3
				f := newFixture(t)
				s := f.failing(how)
				began := time.Now()
				s.down = func(row string) bool { // each for half of the time, in another rhythm
					for n := range limit {
						if row == slotRow(n+1) {
							return time.Since(began)/(time.Duration(3+2*n)*time.Second)%2 == 1
						}
					}
					return false
				}
				s.comesLate = name != "refused" && name != "throttled"
				var wg sync.WaitGroup
				var holders, turns atomic.Int64
				for range 8 {
					l := f.limited(limit, lock.Options{MaxWait: 10 * time.Second, Lease: lock.FixedLease(5 * time.Second)})
					wg.Go(func() {
						for range 20 {
							_ = l.Do(t.Context(), resource, func(context.Context) error {
								if n := holders.Add(1); n > limit {
									t.Errorf("%d holders", n)
								}
								time.Sleep(rand.N(2 * time.Second))
								holders.Add(-1)
								turns.Add(1)
								return nil
							})
						}
					})
				}
				wg.Wait()
				if n := turns.Load(); n < 30 || n < 100 && name != "throttled" { // where claims give up
					t.Errorf("%d of 160 got a slot", n)
				}
				s.down = func(string) bool { return false }
				time.Sleep(time.Minute)
				f.wantSlots(limit, limit)
			})
		})
	}
}
