package redisquorum_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
)

// TestFenceOfAnOlderRow lets the row go back to what it was before the last
// owners. The next owner's fence is above theirs, because time has passed.
func TestFenceOfAnOlderRow(t *testing.T) { // F24, F56
	t.Parallel()
	begin := time.Now().Truncate(time.Microsecond)
	at := func(minis []*miniredis.Miniredis, d time.Duration, skew []time.Duration) {
		for i, m := range minis {
			m.SetTime(begin.Add(d + skew[i]))
		}
	}
	for name, c := range map[string]struct {
		skew []time.Duration // of each server's clock
		back []int           // the servers that go back
		wait time.Duration   // until the next owner comes
	}{
		"one server":                {[]time.Duration{0}, []int{0}, time.Microsecond},
		"all of a quorum":           {[]time.Duration{0, 0, 0}, []int{0, 1, 2}, time.Microsecond},
		"a majority":                {[]time.Duration{0, 0, 0}, []int{1, 2}, time.Microsecond},
		"a majority, clocks differ": {[]time.Duration{5 * time.Millisecond, 0, -4 * time.Millisecond}, []int{1, 2}, 10 * time.Millisecond},
		"all, clocks differ":        {[]time.Duration{-3 * time.Millisecond, 4 * time.Millisecond, 0}, []int{0, 1, 2}, 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var store driver.Store
			var minis []*miniredis.Miniredis
			if len(c.skew) == 1 {
				minis = []*miniredis.Miniredis{redistest.NewMini(t)}
				store = redistest.Must(redisstore.New(redistest.NewClient(t, minis[0].Addr())))
			} else {
				q := newQuorum(t, len(c.skew))
				store, minis = q, q.minis
			}
			at(minis, 0, c.skew)
			first := redistest.Claim("n")
			highest := redistest.MustAcquire(t, store, first).Fence
			redistest.MustRelease(t, store, first, nil)
			var before []redistest.State
			for _, m := range minis {
				before = append(before, redistest.StateOf(m))
			}
			for i := range 6 {
				at(minis, time.Duration(i+1)*100*time.Millisecond, c.skew)
				lost := redistest.Claim("n")
				row := redistest.MustAcquire(t, store, lost)
				if row.Fence <= highest {
					t.Errorf("owner %d: fence %d after %d", i, row.Fence, highest)
				}
				highest = row.Fence
				if i < 5 {
					redistest.MustRelease(t, store, lost, nil)
				}
			}
			for _, i := range c.back {
				before[i].GoBack(minis[i])
			}
			at(minis, 600*time.Millisecond+c.wait, c.skew)
			if row := redistest.MustAcquire(t, store, redistest.Claim("n")); row.Fence <= highest {
				t.Errorf("after the loss: fence %d after %d", row.Fence, highest)
			}
		})
	}
}

// TestFenceNeedsNoRequest acquires a name again and again on servers whose
// clocks differ a little, or much. The fences of the servers then differ too,
// and that costs no request while owners are further apart than the clocks.
func TestFenceNeedsNoRequest(t *testing.T) { // F24
	t.Parallel()
	for name, c := range map[string]struct {
		skew [3]time.Duration
		most int32 // requests of 100 acquisitions and releases
	}{
		"same clocks":        {most: 600},
		"milliseconds apart": {skew: [3]time.Duration{3 * time.Millisecond, 0, -2 * time.Millisecond}, most: 600},
		"hours apart":        {skew: [3]time.Duration{-time.Hour, 0, time.Hour}, most: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQuorum(t, 3)
			begin, last := time.Now(), int64(0)
			for i := range 101 {
				if i == 1 { // by now the servers know the scripts
					for _, c := range q.taps {
						c.requests.Store(0)
					}
				}
				for j, m := range q.minis {
					m.SetTime(begin.Add(time.Duration(i)*10*time.Millisecond + c.skew[j]))
				}
				mine := redistest.Claim("n")
				row := redistest.MustAcquire(t, q, mine)
				if row.Fence <= last {
					t.Fatalf("fence %d after %d", row.Fence, last)
				}
				last = row.Fence
				redistest.MustRelease(t, q, mine, nil)
			}
			sent := int32(0)
			for _, c := range q.taps {
				sent += c.requests.Load()
			}
			if sent > c.most {
				t.Errorf("%d requests, want at most %d", sent, c.most)
			}
		})
	}
}

// TestNodeReturnsOutdated keeps one server of three down while six events are
// completed, of which the row holds only some. When it returns with its data,
// none of the events that are remembered runs again, the duplicate of the last
// one gets its result, and later completions do not forget the newest.
func TestNodeReturnsOutdated(t *testing.T) { // F56
	t.Parallel()
	for down := range 3 {
		t.Run(fmt.Sprint("node ", down), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newTimedQuorum(t, 3)
				locker := expect.Value(lock.New(q, &lock.Options{Logger: slog.New(slog.DiscardHandler), Lease: lock.FixedLease(10 * time.Second)}))(t)
				n := 0
				run := func() {
					t.Helper()
					l := expect.Value(locker.Acquire(t.Context(), lock.Key{Name: "n", Event: redistest.Event(n)}))(t)
					expect.Must(t, l.CompleteWith(lock.Completion{Result: []byte(fmt.Sprint("result ", n))}))
					n++
				}
				duplicate := func(i int) *lock.CompletedError {
					t.Helper()
					l, err := locker.Acquire(t.Context(), lock.Key{Name: "n", Event: redistest.Event(i)})
					if err == nil {
						_ = l.Release()
					}
					return completedError(err)
				}
				for range 20 { // more than are remembered
					run()
				}
				var others []int
				for i := range 3 {
					if i != down {
						others = append(others, i)
					}
				}
				q.only(others...)
				for range 6 {
					run()
				}
				q.only(0, 1, 2)
				if e := duplicate(n - 1); e == nil || string(e.Result) != fmt.Sprint("result ", n-1) {
					t.Errorf("the duplicate of the last event got %+v, want its result", e)
				}
				for later := range 3 {
					for i := n - 8; i < n; i++ {
						if duplicate(i) == nil {
							t.Errorf("after %d completions, event %d of %d runs again", later, i, n)
						}
					}
					run()
				}
			})
		})
	}
}

// TestNodeForgets lets one server of three return immediately without the last
// owner's writes. That matters only for what was written while a third server
// was down.
func TestNodeForgets(t *testing.T) { // F42
	t.Parallel()
	for name, c := range map[string]struct {
		wrote, answer []int // the servers that answer before and after the loss
		held, done    bool  // whether the next claim is refused
	}{
		"all have it":                           {[]int{0, 1, 2}, []int{0, 1, 2}, true, true},
		"all have it, another server goes down": {[]int{0, 1, 2}, []int{1, 2}, true, true},
		"two have it":                           {[]int{0, 1}, []int{0, 1, 2}, false, true},
		"two have it, and one of them answers":  {[]int{0, 1}, []int{1, 2}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, completed := range []bool{false, true} {
				q := newQuorum(t, 3)
				q.only(c.wrote...)
				first, want := redistest.Claim("n"), c.held
				first.Event = "e"
				fence := redistest.MustAcquire(t, q, first).Fence
				if completed {
					redistest.MustRelease(t, q, first, &driver.Memory{Completed: []driver.CompletedEvent{{Event: "e", Until: first.Now.Add(time.Hour)}}})
					want = c.done
				}
				redistest.State{}.GoBack(q.minis[1])
				q.only(c.answer...)
				next := redistest.Claim("n")
				next.Event = "e"
				row, ok, err := q.Acquire(t.Context(), next)
				if err != nil || ok == want || ok && row.Fence <= fence {
					t.Errorf("completed %v: the next claim was granted: %v, with fence %d after %d, error %v; want it refused: %v", completed, ok, row.Fence, fence, err, want)
				}
			}
		})
	}
}

func completedError(err error) *lock.CompletedError {
	var e *lock.CompletedError
	if !errors.As(err, &e) {
		return nil
	}
	return e
}
