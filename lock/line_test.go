package lock_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

const (
	lineLatency = 5 * time.Millisecond
	lineTurn    = 20 * time.Millisecond
	lineBurst   = 150 * time.Millisecond // the arrivals, and what they learn
)

// distant is a store that takes a while to answer, and notes its requests.
type distant struct {
	driver.Line
	joinError error

	mu   sync.Mutex
	sent []time.Time
}

func (s *distant) travel() {
	s.mu.Lock()
	s.sent = append(s.sent, time.Now())
	s.mu.Unlock()
	time.Sleep(lineLatency / 2)
}

func (s *distant) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	s.travel()
	defer time.Sleep(lineLatency / 2)
	return s.Line.Acquire(ctx, c)
}

func (s *distant) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	s.travel()
	defer time.Sleep(lineLatency / 2)
	return s.Line.Settle(ctx, t)
}

func (s *distant) Join(ctx context.Context, name string) (driver.Row, bool, error) {
	s.travel()
	defer time.Sleep(lineLatency / 2)
	row, ok, err := s.Line.Join(ctx, name)
	if s.joinError != nil {
		return driver.Row{}, false, s.joinError
	}
	return row, ok, err
}

// clockedLine is a [driver.Line] with a clock of its own.
type clockedLine struct{ *serverClock }

func (s clockedLine) Join(ctx context.Context, name string) (driver.Row, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, _ := s.seen(name, "", time.Time{})
	ok := row.Join()
	_, seen := s.seen(name, "", clock.Wall(clock.From(ctx)))
	return seen, ok, nil
}

// unaware hides that a store is a [driver.Line].
type unaware struct{ driver.Store }

// crowd are waiters for one name, which come at the same time.
type crowd struct {
	waiters int
	limit   int
	hidden  int           // how many of them do not know of the line
	apart   time.Duration // by how much the clocks of neighbours differ
	gone    int           // how many of them give up after 200 ms
	joins   error
	dead    int           // how many died in line before
	least   time.Duration // for which each holds the name at least
	clocked bool          // the store judges by its own clock
}

// figures are those of one crowd, or the medians of several. Rate is the number
// of requests a second after the burst of arrivals, and last that of the last
// finisher's time to the median finisher's.
type figures struct{ requests, rate, wall, last float64 }

func (c *crowd) run(t *testing.T) figures {
	t.Helper()
	s := &distant{Line: memstore.New(), joinError: c.joins}
	if c.clocked {
		s.Line = clockedLine{newServerClock(time.Now)}
	}
	if c.dead > 0 {
		_, _, _ = s.Line.Acquire(t.Context(), &driver.Claim{Name: "/resource", Token: "before", Stamp: time.Now(), Until: time.Now()})
		for range c.dead {
			_, _, _ = s.Line.Join(t.Context(), "/resource")
		}
		time.Sleep(time.Second)
	}
	began := time.Now()
	var mu sync.Mutex
	var ends []time.Duration
	var wg sync.WaitGroup
	for i := range c.waiters {
		o := lock.Options{Lease: lock.FixedLease(10 * time.Second), MaxWait: time.Hour, Logger: discard, HoldAtLeast: c.least}
		if i < c.gone {
			o.MaxWait = 200 * time.Millisecond
		}
		store := driver.Store(s)
		if i >= c.waiters-c.hidden {
			store = unaware{s}
		}
		l := oneOf{expect.Value(lock.New(store, &o))(t), max(c.limit, 1)}
		ctx := t.Context()
		if c.apart != 0 {
			ctx = clock.With(ctx, simclock.New(time.Duration(i%3-1)*c.apart, 0))
		}
		wg.Go(func() {
			err := l.Do(ctx, resource, func(context.Context) error { time.Sleep(lineTurn); return nil })
			if i < c.gone && isHeld(err) {
				return
			}
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, time.Since(began))
		})
	}
	wg.Wait()
	slices.Sort(ends)
	wall := ends[len(ends)-1]
	turn := max(lineTurn+2*lineLatency, c.least+lineLatency)
	ideal := time.Duration(len(ends)) * turn / time.Duration(max(c.limit, 1))
	later := 0
	for _, at := range s.sent {
		if at.Sub(began) >= lineBurst {
			later++
		}
	}
	return figures{
		requests: float64(len(s.sent)) / float64(len(ends)), rate: float64(later) / max(wall-lineBurst, time.Second).Seconds(),
		wall: float64(wall) / float64(ideal), last: float64(wall) / float64(ends[len(ends)/2]),
	}
}

// typical returns the median figures of so many crowds.
func (c *crowd) typical(t *testing.T, runs int) figures {
	t.Helper()
	all := make([]figures, runs)
	for i := range all {
		synctest.Test(t, func(t *testing.T) { all[i] = c.run(t) })
	}
	median := func(of func(*figures) float64) float64 {
		slices.SortFunc(all, func(a, b figures) int { return cmp.Compare(of(&a), of(&b)) })
		return of(&all[runs/2])
	}
	return figures{
		requests: median(func(f *figures) float64 { return f.requests }), rate: median(func(f *figures) float64 { return f.rate }),
		wall: median(func(f *figures) float64 { return f.wall }), last: median(func(f *figures) float64 { return f.last }),
	}
}

// TestLine measures how waiters for one name take their turns, and fails if
// they need much more than docs/BENCHMARKS.md says.
func TestLine(t *testing.T) { // F19
	t.Parallel()
	for name, c := range map[string]struct {
		crowd
		runs int
		most figures
	}{
		"1 alone":                   {crowd{waiters: 1}, 1, figures{2, 0, 1, 1}},
		"2":                         {crowd{waiters: 2}, 20, figures{2.5, 10, 1.6, 1.1}},
		"8":                         {crowd{waiters: 8}, 20, figures{5.5, 150, 1.3, 2.1}},
		"32":                        {crowd{waiters: 32}, 10, figures{7, 150, 1.25, 2.4}},
		"128":                       {crowd{waiters: 128}, 5, figures{9, 250, 1.2, 2.3}},
		"512":                       {crowd{waiters: 512}, 15, figures{25, 800, 1.2, 2.2}},
		"32, four at a time":        {crowd{waiters: 32, limit: 4}, 10, figures{13, 500, 1.6, 2.4}},
		"32, half of them unaware":  {crowd{waiters: 32, hidden: 16}, 10, figures{14, 500, 2.5, 4.5}},
		"32, clocks 1.9 s apart":    {crowd{waiters: 32, apart: 1900 * time.Millisecond}, 10, figures{12, 250, 12, 7}},
		"40, of which many give up": {crowd{waiters: 40, gone: 20}, 10, figures{12, 200, 3, 4.5}},
		"32, after 500 that died":   {crowd{waiters: 32, dead: 500}, 15, figures{18, 100, 20, 3}},
		"1 alone, HoldAtLeast":      {crowd{waiters: 1, least: 200 * time.Millisecond}, 1, figures{2, 0, 1, 1}},
		"2, HoldAtLeast":            {crowd{waiters: 2, least: 200 * time.Millisecond}, 5, figures{3, 10, 1.1, 1.1}},
		"32, HoldAtLeast":           {crowd{waiters: 32, least: 200 * time.Millisecond}, 41, figures{28, 150, 1.7, 3}},
		"128, HoldAtLeast":          {crowd{waiters: 128, least: 200 * time.Millisecond}, 41, figures{40, 200, 1.7, 3.5}},
		"2, a cooldown of 10 min":   {crowd{waiters: 2, least: 10 * time.Minute}, 3, figures{4, 1, 1.1, 1.1}},
		"32, a cooldown of 10 s":    {crowd{waiters: 32, least: 10 * time.Second}, 3, figures{15, 2, 1.1, 2.2}},
		"128, a cooldown of 20 s":   {crowd{waiters: 128, least: 20 * time.Second}, 3, figures{20, 2, 1.1, 2.2}},
		"40, of which many give up, a cooldown of 30 s": {crowd{waiters: 40, gone: 20, least: 30 * time.Second}, 3, figures{20, 2, 1.2, 2.2}},
		"128, a cooldown of 20 s, clocks 1.9 s apart":   {crowd{waiters: 128, least: 20 * time.Second, apart: 1900 * time.Millisecond}, 3, figures{20, 2, 1.2, 2.2}},
		"32, HoldAtLeast, clocks 1 h apart":             {crowd{waiters: 32, least: 200 * time.Millisecond, apart: time.Hour, clocked: true}, 41, figures{28, 150, 1.7, 3}},
		"32, and the answers about places are lost":     {crowd{waiters: 32, joins: &driver.Error{Err: errors.New("no")}}, 10, figures{14, 500, 2, 3.5}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := c.typical(t, c.runs)
			got := fmt.Sprintf("%.1f requests per turn, %.0f a second after the burst, %.2f times the ideal, last to median %.2f", m.requests, m.rate, m.wall, m.last)
			t.Log(got)
			if m.requests > c.most.requests || m.rate > c.most.rate || m.wall > c.most.wall || m.last > c.most.last {
				t.Errorf("%s, want at most %+v", got, c.most)
			}
		})
	}
}

// TestLineAndNewcomers shows that waiters get their turn while newcomers keep
// coming. Chance decides about a single run.
func TestLineAndNewcomers(t *testing.T) { // F19
	longest := make([]time.Duration, 5)
	for i := range longest {
		synctest.Test(t, func(t *testing.T) { longest[i] = longestBesideNewcomers(t) })
	}
	if slices.Sort(longest); longest[2] > 8*time.Second {
		t.Errorf("the longest waits are %v", longest)
	}
}

func longestBesideNewcomers(t *testing.T) time.Duration {
	s := &distant{Line: memstore.New()}
	var mu sync.Mutex
	var longest time.Duration
	var wg sync.WaitGroup
	for i := range 400 {
		l := expect.Value(lock.New(s, &lock.Options{Lease: lock.FixedLease(10 * time.Second), MaxWait: time.Hour, Logger: discard}))(t)
		wg.Go(func() {
			came := time.Now()
			expect.OK(t, l.Do(t.Context(), resource, func(context.Context) error { time.Sleep(lineTurn); return nil }))
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, time.Since(came))
		})
		if i >= 20 { // those before it came together; the others take all of the capacity
			time.Sleep(lineTurn + 2*lineLatency)
		}
	}
	wg.Wait()
	return longest
}

// stuckLine is a line whose places are never given.
type stuckLine struct {
	driver.Line
	asked int
}

func (s *stuckLine) Join(ctx context.Context, _ string) (driver.Row, bool, error) {
	s.asked++
	<-ctx.Done()
	return driver.Row{}, false, ctx.Err()
}

// TestWaitTimesOutInLine shows that a wait ends when it has to, also while it
// asks for a place, which it does once, and says who has the name.
func TestWaitTimesOutInLine(t *testing.T) { // F19
	synctest.Test(t, func(t *testing.T) {
		s := &stuckLine{Line: memstore.New()}
		f := newFixture(t)
		holders := f.locker(lock.Options{Lease: lock.FixedLease(time.Minute)})
		f.faulty.Store = s
		first := f.mustAcquire(holders, resource)
		time.AfterFunc(100*time.Millisecond, func() {
			_ = first.Release()
			f.mustAcquire(holders, resource)
		})
		l, err := lock.New(s, &lock.Options{MaxWait: 400 * time.Millisecond, Logger: discard})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = l.Acquire(t.Context(), resource)
		var held *lock.HeldError
		if !errors.As(err, &held) || held.Until.IsZero() || time.Since(start) != 400*time.Millisecond || s.asked != 1 {
			t.Errorf("got %+v after %v and %d requests for a place, want a HeldError with the lease's end after 400ms and one", err, time.Since(start), s.asked)
		}
	})
}

// TestLineWithDeadHolder shows that those who wait for a holder that has died
// have the name soon after its lease ends, and ask rarely until then.
func TestLineWithDeadHolder(t *testing.T) { // F19, F38
	for range 6 { // chance decides when they look
		synctest.Test(t, lineWithDeadHolder)
	}
}

func lineWithDeadHolder(t *testing.T) {
	s := &distant{Line: memstore.New()}
	l := func() *lock.Locker {
		l := expect.Value(lock.New(s, &lock.Options{Lease: lock.FixedLease(10 * time.Second), MaxWait: time.Hour, Logger: discard}))(t)
		return l
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var dead, next time.Time // when the lease of the dead holder ends, and the next one has the name; guarded by mu
	for i := range 16 {
		wg.Go(func() {
			lk, err := l().Acquire(t.Context(), resource)
			if err != nil {
				t.Error(err)
				return
			}
			served := readRow(t, s.Line, "/resource").Served
			mu.Lock()
			dies := dead.IsZero() && served > 3
			if dies {
				dead = lk.Lease().Until
			} else if after := time.Since(dead); !dead.IsZero() && after < 0 {
				t.Errorf("waiter %d has the name %v before the lease of the dead holder ends", i, -after)
			} else if !dead.IsZero() && next.IsZero() {
				next = time.Now()
			}
			mu.Unlock()
			if dies {
				return
			}
			time.Sleep(lineTurn)
			_ = lk.Release()
		})
	}
	wg.Wait()
	if after := next.Sub(dead); after > 2*lineLatency {
		t.Errorf("the name is free %v after the lease of the dead holder, want %v at most", after, 2*lineLatency)
	}
	if after, n := time.Since(dead), len(s.sent); dead.IsZero() || after > 10*time.Second || n > 16*25 {
		t.Errorf("all done %v after the lease of the dead holder, with %d requests", after, n)
	}
	t.Logf("all done %v after the lease of the dead holder, with %d requests", time.Since(dead), len(s.sent))
}
