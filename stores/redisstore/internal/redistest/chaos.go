package redistest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// ChaosTime is how long servers fail: LAMBDALOCK_DEPTH=long is for make soak.
func ChaosTime(t *testing.T) time.Duration {
	if os.Getenv("LAMBDALOCK_DEPTH") == "long" {
		return 10 * time.Minute
	}
	if testing.Short() {
		t.Skip("it takes a while")
	}
	return 8 * time.Second
}

// ChaosLease is longer than any work, and shorter than a server is down.
const ChaosLease = 3 * time.Second

// Remembered is how many events of a name are remembered at least.
const Remembered = 8

// Loss is a time whose writes were lost.
type Loss struct{ From, To time.Time }

// near is how exactly this process knows when a server applied a write.
const near = 100 * time.Millisecond

func (l Loss) has(at time.Time) bool { return at.After(l.From.Add(-near)) && at.Before(l.To.Add(near)) }

// owned is what a worker did under a lock.
type owned struct {
	name, event string
	fence       int64
	start, end  time.Time
	completed   time.Time // zero: not for certain
}

// chaos lets workers take the locks of few names, and notes what they do.
type chaos struct {
	*testing.T
	mu    sync.Mutex
	holds []owned
	began map[string]int // events by name, in order
}

// work takes locks until ctx ends.
func (c *chaos) work(ctx context.Context, store driver.Store, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 5))
	locker, err := lock.New(store, &lock.Options{Lease: lock.FixedLease(ChaosLease), MaxWait: time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		c.Error(err)
		return
	}
	for ctx.Err() == nil {
		name := fmt.Sprint("n", random.IntN(3))
		c.mu.Lock()
		n := c.began[name]
		c.mu.Unlock()
		// New events, and duplicates of the last ones.
		h := owned{name: name, event: Event(max(n-random.IntN(6), 0))}
		attempt, cancel := context.WithTimeout(ctx, 3*time.Second)
		l, err := locker.Acquire(attempt, lock.Key{Name: name, Event: h.event})
		if err != nil {
			cancel()
			_ = Sleep(ctx, 5*time.Millisecond)
			continue
		}
		c.mu.Lock()
		if h.event == Event(c.began[name]) {
			c.began[name]++
		}
		c.mu.Unlock()
		h.fence, h.start = l.Lease().Fence, time.Now()
		_ = Sleep(l.Context(), time.Duration(random.IntN(40))*time.Millisecond)
		h.end = time.Now()
		if err := l.Complete(); err == nil {
			h.completed = time.Now()
		}
		cancel()
		c.mu.Lock()
		c.holds = append(c.holds, h)
		c.mu.Unlock()
	}
}

// report checks the holds. What was lost may have had a second owner, and may
// run again.
func (c *chaos) report(lost []Loss) {
	exempt := func(at time.Time) bool {
		for _, l := range lost {
			if l.has(at) {
				return true
			}
		}
		return false
	}
	promised, beyond, again, fences, replaced := 0, 0, 0, 0, 0
	for i, a := range c.holds {
		later := map[string]bool{}
		for _, b := range c.holds[max(i-200, 0):min(i+200, len(c.holds))] {
			if a.name != b.name || !a.start.Before(b.start) {
				continue
			}
			if b.start.Sub(a.start) > near && b.fence <= a.fence {
				fences++
				c.Errorf("fence %d at %v after %d at %v", b.fence, b.start, a.fence, a.start)
			}
			if a.end.After(b.start) {
				if exempt(a.start) {
					promised++
				} else {
					beyond++
					c.Errorf("%+v overlaps %+v", a, b)
				}
			}
			later[b.event] = true
			if a.event == b.event && !a.completed.IsZero() && b.start.After(a.completed) && len(later) <= Remembered {
				if exempt(a.completed) {
					replaced++
				} else {
					again++
					c.Errorf("%+v runs again: %+v", a, b)
				}
			}
		}
	}
	c.Logf("%d holds, %d losses: %d overlaps and %d repeated events as promised; %d overlaps, %d repeated events and %d fences that do not rise",
		len(c.holds), len(lost), promised, replaced, beyond, again, fences)
	if len(c.holds) < 20 {
		c.Error("too few holds")
	}
}

// Chaos lets eight workers work until disturb returns, and checks what they
// did.
func Chaos(t *testing.T, open func() driver.Store, disturb func(end time.Time) []Loss) {
	c := &chaos{T: t, began: map[string]int{}}
	ctx, cancel := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	for i := range 8 {
		store := open()
		workers.Go(func() { c.work(ctx, store, uint64(i)) })
	}
	lost := disturb(time.Now().Add(ChaosTime(t)))
	cancel()
	workers.Wait()
	c.report(lost)
}
