package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// crowded is a store that takes so many writes in a second, as a DynamoDB table does, with
// a burst of one second, and that has bad times.
type crowded struct {
	driver.Store
	rate  float64
	wrong func(at time.Duration) (down float64, slow time.Duration) // what share fails, and how long the others take

	mu       sync.Mutex
	began    time.Time
	tokens   float64
	last     time.Time
	requests int
}

var errDown = errors.New("connection refused")

func (c *crowded) take(ctx context.Context) error {
	down, takes := 0.0, 5*time.Millisecond
	if c.wrong != nil {
		var slow time.Duration
		down, slow = c.wrong(time.Since(c.began))
		takes += slow
	}
	c.mu.Lock()
	c.requests++
	c.mu.Unlock()
	if rand.Float64() < down {
		return errDown
	}
	time.Sleep(takes)
	if ctx.Err() != nil && down == 0 && takes < time.Second {
		return ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.tokens = min(c.rate, c.tokens+c.rate*now.Sub(c.last).Seconds())
	c.last = now
	if c.tokens < 1 {
		return &driver.Error{Temporary: true, Rejected: true, Err: errors.New("throttled")}
	}
	c.tokens--
	return nil
}

func (c *crowded) Acquire(ctx context.Context, claim *driver.Claim) (driver.Row, bool, error) {
	asked := *claim
	if err := c.take(ctx); err != nil {
		return driver.Row{}, false, err
	}
	row, ok, err := c.Store.Acquire(context.WithoutCancel(ctx), &asked)
	return row, ok, errors.Join(err, ctx.Err())
}

func (c *crowded) Release(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	if err := c.take(ctx); err != nil {
		return driver.Row{}, false, err
	}
	row, ok, err := c.Store.Release(context.WithoutCancel(ctx), s)
	return row, ok, errors.Join(err, ctx.Err())
}

// load is what came of ten seconds of events.
type load struct {
	offered, ran, unrecorded, refused, requests int
	// goodput is the writes of events that were recorded, of those that were asked for or
	// that the table could take in ten seconds and with its burst.
	goodput float64
}

// run offers so many times what the table takes, two writes an event. Each event has a
// Locker of its own, as functions have that run one event at a time, or all share one, as
// the records of a batch do.
func run(times float64, shared bool, wrong func(time.Duration) (float64, time.Duration)) load {
	const rate, seconds = 400, 10
	c := &crowded{Store: memstore.New(), rate: rate, tokens: rate, wrong: wrong, began: time.Now(), last: time.Now()}
	newLocker := func() *lock.Locker {
		l, err := lock.New(c, &lock.Options{Lease: lock.UntilDeadline(), Logger: discard})
		if err != nil {
			panic(err)
		}
		return l
	}
	one := newLocker()
	var wg sync.WaitGroup
	var mu sync.Mutex
	out := load{offered: int(times * rate / 2 * seconds)}
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
				err = lk.Complete(nil)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case lk == nil:
				out.refused++
			case err != nil:
				out.ran, out.unrecorded = out.ran+1, out.unrecorded+1
			default:
				out.ran++
			}
		})
	}
	wg.Wait()
	out.requests = c.requests
	out.goodput = float64(2*(out.ran-out.unrecorded)) / min(rate*(seconds+1), float64(2*out.offered))
	return out
}

// TestOverload: a table that is asked for more than it takes does useful work all the
// time, and what is done gets recorded.
func TestOverload(t *testing.T) { // F8, F55
	for _, shared := range []bool{false, true} {
		for _, times := range []float64{0.9, 1.1, 1.5, 2, 4} {
			t.Run(fmt.Sprintf("%v times, shared %v", times, shared), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					got := run(times, shared, nil)
					t.Logf("%+v", got)
					limit := 0
					if times > 1.1 {
						limit = got.ran / 200
					}
					if got.unrecorded > limit {
						t.Errorf("%d of %d are not recorded", got.unrecorded, got.ran)
					}
					if got.requests > 4*got.offered {
						t.Errorf("%d requests for %d events", got.requests, got.offered)
					}
					if got.goodput < 0.95 {
						t.Errorf("%.0f %% of the capacity did useful work", 100*got.goodput)
					}
				})
			})
		}
	}
}

// TestCompletionsBeforeClaims: while the store turns a completion away, a claim of the
// same process does not ask twice, and afterwards it does again.
func TestCompletionsBeforeClaims(t *testing.T) { // F55
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l := r.locker(lock.Options{Lease: lock.FixedLease(time.Minute)})
		lk := r.mustAcquire(l, event("e1"))
		r.store.Always(locktest.Acquire, locktest.Throttle)
		asks := func() int {
			t.Helper()
			before := r.store.Requests(locktest.Acquire)
			if _, err := l.Acquire(t.Context(), lock.Key{Name: "another"}); !isStoreError(err) {
				t.Errorf("a throttled claim got %v", err)
			}
			return r.store.Requests(locktest.Acquire) - before
		}
		if n := asks(); n != 2 {
			t.Errorf("a claim was sent %d times, want 2", n)
		}
		r.store.Always(locktest.Release, locktest.Throttle)
		done := make(chan error)
		go func() { done <- lk.Complete(nil) }()
		synctest.Wait() // it was turned away, and pauses
		if n := asks(); n != 1 {
			t.Errorf("beside a completion a claim was sent %d times, want 1", n)
		}
		r.store.Always(locktest.Release, locktest.None)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if n := asks(); n != 2 {
			t.Errorf("after the completion a claim was sent %d times, want 2", n)
		}
	})
}

// TestOutage: what is done gets recorded after three seconds without the store, with
// answers that come too late, or with half of the requests failing.
func TestOutage(t *testing.T) { // F7, F13, F55
	during := func(at time.Duration) bool { return at > 3*time.Second && at < 6*time.Second }
	for name, wrong := range map[string]func(time.Duration) (float64, time.Duration){
		"outage": func(at time.Duration) (float64, time.Duration) {
			if during(at) {
				return 1, 0
			}
			return 0, 0
		},
		"slow": func(at time.Duration) (float64, time.Duration) {
			if during(at) {
				return 0, 1500 * time.Millisecond
			}
			return 0, 0
		},
		"half failing": func(at time.Duration) (float64, time.Duration) {
			if during(at) {
				return 0.5, 0
			}
			return 0, 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := run(0.9, false, wrong)
				t.Logf("%+v", got)
				if got.unrecorded > 0 {
					t.Errorf("%d of %d are not recorded", got.unrecorded, got.ran)
				}
			})
		})
	}
}
