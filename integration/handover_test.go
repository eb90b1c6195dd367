package integration_test

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

const (
	waiters      = 8
	turns        = 5 // of each waiter
	turnTime     = 20 * time.Millisecond
	requestDelay = 5 * time.Millisecond
	// idealHandover: every turn is its work and two requests, without a gap.
	idealHandover = waiters * turns * (turnTime + 2*requestDelay)
)

// BenchmarkHandover passes one name among eight waiters, and compares that with
// the SDK alone, which polls every 15 to 35 ms.
func BenchmarkHandover(b *testing.B) {
	s := servers.Dynoxide(b)
	newTable(b, s)
	runs := 5
	if testing.Short() {
		runs = 1
	}
	var raw, ours []handover
	for b.Loop() {
		for range runs {
			raw = append(raw, passAround(b, s, rawTurns))
			ours = append(ours, passAround(b, s, ourTurns(1)))
		}
	}
	f := newFigures(fmt.Sprintf("Hand-over: %d waiters, %d turns of %v, %v per request (ideal %v)", waiters, turns, turnTime, requestDelay, idealHandover),
		"", "wall ms", "wall/ideal", "requests/turn", "fairness", "fairness min..max")
	reportHandover(f, "raw SDK, polling", raw)
	reportHandover(f, "Locker with Wait", ours)
	wall, requests, fairness := medians(ours)
	b.ReportMetric(float64(wall)/float64(idealHandover), "wall/ideal")
	b.ReportMetric(requests, "requests/turn")
	b.ReportMetric(fairness, "fairness")
}

// handover is the outcome of one run.
type handover struct {
	wall     time.Duration
	requests float64 // per turn, release included
	fairness float64 // time of the last finisher over that of the first
}

// takeTurns takes all turns of one waiter and adds them to the history.
type takeTurns func(ctx context.Context, b *testing.B, s servers.Server, w *wire, name string, hold func(fence int64)) error

// passed is what happened while waiters passed a name around.
type passed struct {
	holds    []locktest.Hold
	finished []time.Duration // when each waiter had taken its turns, in that order
	began    time.Time
	requests int64
}

// pass lets all waiters take their turns at the same time.
func pass(b *testing.B, s servers.Server, take takeTurns) passed {
	w := newWire(requestDelay)
	defer w.next.CloseIdleConnections()
	name := "handover/" + rand.Text()
	var mu sync.Mutex
	p := passed{began: time.Now()}
	var wg sync.WaitGroup
	for i := range waiters {
		wg.Go(func() {
			err := take(b.Context(), b, s, w, name, func(fence int64) {
				h := locktest.Hold{Name: name, Holder: fmt.Sprint("waiter ", i), Fence: fence, Start: time.Now()}
				_ = delayFor(b.Context(), turnTime)
				h.End = time.Now()
				mu.Lock()
				defer mu.Unlock()
				if fence == 0 {
					h.Fence = int64(len(p.holds)) // the SDK alone has none
				}
				p.holds = append(p.holds, h)
			})
			if err != nil {
				b.Errorf("waiter %d: %v", i, err)
			}
			mu.Lock()
			defer mu.Unlock()
			p.finished = append(p.finished, time.Since(p.began))
		})
	}
	wg.Wait()
	if len(p.holds) != waiters*turns {
		b.Errorf("%d turns, want %d", len(p.holds), waiters*turns)
	}
	p.requests = w.take()
	return p
}

// outcome returns the outcome of the run with that wall time.
func (p *passed) outcome(wall time.Duration) handover {
	return handover{wall, float64(p.requests) / (waiters * turns), float64(p.finished[waiters-1]) / float64(p.finished[0])}
}

func passAround(b *testing.B, s servers.Server, take takeTurns) handover {
	p := pass(b, s, take)
	if err := locktest.CheckHistory(p.holds); err != nil {
		b.Error(err)
	}
	return p.outcome(p.finished[waiters-1])
}

// ourTurns takes turns with a Locker that lets so many hold the name.
func ourTurns(limit int) takeTurns {
	return func(ctx context.Context, b *testing.B, s servers.Server, w *wire, name string, hold func(int64)) error {
		locker := newLocker(b, dynamostore.New(newClient(s.Endpoint, w), table), lock.Options{
			Lease: lock.FixedLease(30 * time.Second), MaxWait: time.Minute,
		})
		for range turns {
			lk, err := locker.AcquireOneOf(ctx, name, limit)
			if err != nil {
				return err
			}
			hold(lk.Lease().Fence)
			if err := lk.Complete(); err != nil {
				return err
			}
		}
		return nil
	}
}

func rawTurns(ctx context.Context, _ *testing.B, s servers.Server, w *wire, name string, hold func(int64)) error {
	raw := rawLock{newClient(s.Endpoint, w)}
	for range turns {
		nonce := rand.Text()
		for raw.acquire(ctx, name, nonce, 30*time.Second) != nil {
			if err := delayFor(ctx, 15*time.Millisecond+mathrand.N(20*time.Millisecond)); err != nil {
				return err
			}
		}
		hold(0)
		if err := raw.release(ctx, name, nonce); err != nil {
			return err
		}
	}
	return nil
}

func medians(runs []handover) (wall time.Duration, requests, fairness float64) {
	var w []time.Duration
	var r, f []float64
	for _, h := range runs {
		w, r, f = append(w, h.wall), append(r, h.requests), append(f, h.fairness)
	}
	return median(w), median(r), median(f)
}

func reportHandover(f *figures, name string, runs []handover) {
	wall, requests, fairness := medians(runs)
	least, most := runs[0].fairness, runs[0].fairness
	for _, h := range runs {
		least, most = min(least, h.fairness), max(most, h.fairness)
	}
	f.add(name, ms(wall), times(float64(wall)/float64(idealHandover)), number(requests), number(fairness), number(least)+".."+number(most))
}
