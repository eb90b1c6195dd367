package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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

// limited is a store that takes only so many writes per second, with a burst of
// one second, as a DynamoDB table does. It may also have an outage.
type limited struct {
	rate   float64
	outage outage // nil if there is none

	mu       sync.Mutex
	began    time.Time
	tokens   float64
	last     time.Time
	requests int
}

// outage returns which share of the requests fails at a time, and how much
// longer the others take.
type outage func(at time.Duration) (down float64, slow time.Duration)

var errDown = errors.New("connection refused")

func (s *limited) take(ctx context.Context) error {
	down, takes := 0.0, 5*time.Millisecond
	if s.outage != nil {
		var slow time.Duration
		down, slow = s.outage(time.Since(s.began))
		takes += slow
	}
	s.mu.Lock()
	s.requests++
	s.mu.Unlock()
	if rand.Float64() < down {
		return errDown
	}
	time.Sleep(takes)
	if ctx.Err() != nil && down == 0 && takes < time.Second {
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.tokens = min(s.rate, s.tokens+s.rate*now.Sub(s.last).Seconds())
	s.last = now
	if s.tokens < 1 {
		return &driver.Error{Answered: true, Unapplied: true, Err: errors.New("throttled")}
	}
	s.tokens--
	return nil
}

// meet is what becomes of a request.
func (s *limited) meet(ctx context.Context, r fault.Request) (driver.Row, bool, error) {
	if err := s.take(ctx); err != nil {
		return driver.Row{}, false, err
	}
	row, ok, err := r.Send(context.WithoutCancel(ctx))
	return row, ok, errors.Join(err, ctx.Err())
}

// loadResult says what happened to ten seconds of events.
type loadResult struct {
	offered, ran, uncompleted, refused, requests int
	// goodput is the share of the writes that served events that were completed.
	// The whole is what was offered, or what the store can take in ten seconds and
	// a burst if that is less.
	goodput float64
}

// offer sends events at a multiple of the store's capacity. An event takes two
// writes. Either each event has its own Locker, as in functions that run one
// event at a time, or all share one, as the records of a batch do.
func offer(times float64, shared bool, o outage) loadResult {
	const rate, seconds = 400, 10
	rows := memstore.New()
	s := &limited{rate: rate, tokens: rate, outage: o, began: time.Now(), last: time.Now()}
	newLocker := func() *lock.Locker {
		l, err := lock.New(fault.Hooks{Store: rows, Each: s.meet}, &lock.Options{Lease: lock.UntilDeadline(), Logger: discard})
		if err != nil {
			panic(err)
		}
		return l
	}
	one := newLocker()
	var wg sync.WaitGroup
	var mu sync.Mutex
	out := loadResult{offered: int(times * rate / 2 * seconds)}
	for i := range out.offered {
		wg.Go(func() {
			l := one
			if !shared {
				l = newLocker()
			}
			time.Sleep(time.Duration(float64(i) / float64(out.offered) * seconds * float64(time.Second)))
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			lk, err := l.Acquire(ctx, lock.Key{Name: fmt.Sprint(i), Event: "e"})
			if err == nil {
				time.Sleep(50 * time.Millisecond)
				err = lk.Complete()
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case lk == nil:
				out.refused++
			case err != nil:
				out.ran, out.uncompleted = out.ran+1, out.uncompleted+1
			default:
				out.ran++
			}
		})
	}
	wg.Wait()
	out.requests = s.requests
	out.goodput = float64(2*(out.ran-out.uncompleted)) / min(rate*(seconds+1), float64(2*out.offered))
	return out
}

// TestOverload shows that a store that is asked for more than it takes serves
// events that are completed nearly all the time.
func TestOverload(t *testing.T) { // F8, F55
	for _, shared := range []bool{false, true} {
		for _, times := range []float64{0.9, 1.1, 1.5, 2, 4} {
			t.Run(fmt.Sprintf("%v times, shared %v", times, shared), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					got := offer(times, shared, nil)
					t.Logf("%+v", got)
					limit := 0
					if times > 1.1 {
						limit = got.ran / 200
					}
					if got.uncompleted > limit {
						t.Errorf("%d of %d are not completed", got.uncompleted, got.ran)
					}
					if got.requests > 4*got.offered {
						t.Errorf("%d requests for %d events", got.requests, got.offered)
					}
					if got.goodput < 0.95 {
						t.Errorf("%.0f %% of the capacity served events that were completed", 100*got.goodput)
					}
				})
			})
		}
	}
}

// TestCompletionsBeforeClaims shows that a claim is not retried while the store
// throttles a completion of the same process, and is retried again afterwards.
func TestCompletionsBeforeClaims(t *testing.T) { // F55
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)})
		lk := f.mustAcquire(l, event("e1"))
		f.faulty.Always(fault.Acquire, fault.Throttle)
		asks := func() int {
			t.Helper()
			before := f.faulty.Requests(fault.Acquire)
			if _, err := l.Acquire(t.Context(), lock.Key{Name: "another"}); !isStoreError(err) {
				t.Errorf("a throttled claim got %v", err)
			}
			return f.faulty.Requests(fault.Acquire) - before
		}
		if n := asks(); n != 2 {
			t.Errorf("a claim was sent %d times, want 2", n)
		}
		f.faulty.Always(fault.Release, fault.Throttle)
		completed := make(chan error)
		go func() { completed <- lk.Complete() }()
		synctest.Wait() // it was throttled, and pauses
		if n := asks(); n != 1 {
			t.Errorf("during a completion a claim was sent %d times, want 1", n)
		}
		f.faulty.Always(fault.Release, fault.None)
		if err := <-completed; err != nil {
			t.Fatal(err)
		}
		if n := asks(); n != 2 {
			t.Errorf("after the completion a claim was sent %d times, want 2", n)
		}
	})
}

// TestOutage shows that every event that ran is completed after three seconds
// in which the store does not answer, answers too late, or fails half of the
// requests.
func TestOutage(t *testing.T) { // F7, F13, F55
	for name, during := range map[string]struct {
		down float64
		slow time.Duration
	}{
		"down":         {1, 0},
		"slow":         {0, 1500 * time.Millisecond},
		"half failing": {0.5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := offer(0.9, false, func(at time.Duration) (float64, time.Duration) {
					if at > 3*time.Second && at < 6*time.Second {
						return during.down, during.slow
					}
					return 0, 0
				})
				t.Logf("%+v", got)
				if got.uncompleted > 0 {
					t.Errorf("%d of %d are not completed", got.uncompleted, got.ran)
				}
			})
		})
	}
}

// TestClaimsAfterThrottledCompletion shows that a completion that is throttled
// several times does not make the claims after it give up immediately.
func TestClaimsAfterThrottledCompletion(t *testing.T) { // F55
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)})
		lk := f.mustAcquire(l, event("e1"))
		f.faulty.Plan(fault.Release, fault.Throttle, fault.Throttle, fault.Throttle)
		expect.Must(t, lk.Complete())
		f.faulty.Plan(fault.Acquire, fault.Throttle)
		_ = f.mustAcquire(l, event("e2")).Release()
	})
}

// TestThrottledRecord shows that the claim of a record gives up immediately and
// says why, because its batch tries again. A claim inside a record that has
// begun does not give up, because the record must not begin again.
func TestThrottledRecord(t *testing.T) { // F55, F63
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)})
		record := &invocation.RecordClaim{Pace: &invocation.Pace{Chance: rand.NewPCG(0, 0)}}
		ctx := invocation.WithRecordClaim(t.Context(), record)
		f.faulty.Plan(fault.Acquire, fault.Throttle)
		_, err := l.Acquire(ctx, event("e1"))
		if n := f.faulty.Requests(fault.Acquire); !isStoreError(err) || n != 1 || !record.Throttled || record.Pace.Full(time.Now().Add(1)) == 0 {
			t.Errorf("%v after %d requests, the store throttled it: %v", err, n, record.Throttled)
		}
		f.wantOutcomes(lock.OutcomeRequeued)
		f.faulty.Plan(fault.Acquire, fault.Throttle, fault.Throttle, fault.Throttle)
		expect.OK(t, l.Do(invocation.Begun(ctx), event("e1"), nothing))
	})
}

// TestThrottledSettlementSlowsItsBatch shows that every time a store throttles
// a settlement, the batch claims more slowly.
func TestThrottledSettlementSlowsItsBatch(t *testing.T) { // F55, F63
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		pace := &invocation.Pace{Chance: rand.NewPCG(0, 0)}
		ctx := invocation.WithRecordClaim(t.Context(), &invocation.RecordClaim{Pace: pace})
		lk := expect.Value(f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)}).Acquire(ctx, event("e1")))(t)
		f.faulty.Plan(fault.Release, fault.Throttle, fault.Throttle, fault.Throttle)
		expect.Must(t, lk.Complete())
		time.Sleep(time.Minute)
		if wait := pace.Next(time.Now()); wait != 0 {
			t.Errorf("after a minute a claim waits %v", wait)
		}
		// The gap has doubled twice, and has shrunk to 640 ms with the last attempt.
		if wait := pace.Next(time.Now()); wait < 320*time.Millisecond || wait > 960*time.Millisecond {
			t.Errorf("the claim after it waits %v, want 320ms to 960ms", wait)
		}
	})
}

// TestPausesOfAThrottledRecord shows that the pauses of a record's settlement
// stay short, because its batch claims nothing meanwhile.
func TestPausesOfAThrottledRecord(t *testing.T) { // F55, F63
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		record := &invocation.RecordClaim{Pace: &invocation.Pace{Chance: rand.NewPCG(0, 0)}}
		ctx := invocation.WithRecordClaim(t.Context(), record)
		lk := expect.Value(f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)}).Acquire(ctx, event("e1")))(t)
		f.faulty.Plan(fault.Release, slices.Repeat([]fault.Fault{fault.Throttle}, 8)...)
		start := time.Now()
		expect.Must(t, lk.Complete())
		// 0.2, 0.4, 0.8 and 1.6 s, and 2 s four times.
		if d := time.Since(start); d > 11*time.Second {
			t.Errorf("the pauses took %v, want 11s at most", d)
		}
	})
}

// TestPauseAfterThrottling shows that a throttled request rests longer than one
// that was not answered, because an overloaded store recovers only if it gets
// fewer requests.
func TestPauseAfterThrottling(t *testing.T) { // F8
	for name, c := range map[string]struct {
		fault       fault.Fault
		least, most time.Duration
	}{
		"throttled":    {fault.Throttle, 100 * time.Millisecond, 200 * time.Millisecond},
		"not answered": {fault.DropBefore, 0, 25 * time.Millisecond},
		"conflict":     {fault.Conflict, 0, 25 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				lk := f.mustAcquire(f.locker(lock.Options{}), event("e1"))
				f.faulty.Plan(fault.Release, c.fault)
				start := time.Now()
				expect.Must(t, lk.Complete())
				if d := time.Since(start); d < c.least || d > c.most {
					t.Errorf("the pause was %v, want %v to %v", d, c.least, c.most)
				}
			})
		})
	}
}
