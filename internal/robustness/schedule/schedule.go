// Package schedule makes the order of goroutines a function of a seed. In a
// bubble of package testing/synctest, whatever may happen at the same instant
// waits for its turn: requests, answers, timers, the end of a context, a late
// copy, a fault of a process. When all goroutines stand still, the seed chooses
// who goes on, and the others wait until all stand still again. Time passes
// when nobody waits.
package schedule

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
)

// Point is where a goroutine waits for its turn. Points tell goroutines apart,
// in whatever order they arrive. Those whose points differ in no more than
// their Rank share a turn, in which one of them goes on after the other.
type Point struct {
	Process uint64
	What    string
	Due     int64 // in any unit
	Since   int64 // the turn in which the goroutine began to wait; zero: the present one
	Rank    int64
}

func compare(a, b Point) int {
	return cmp.Or(cmp.Compare(a.Process, b.Process), cmp.Compare(a.Since, b.Since), cmp.Compare(a.Due, b.Due), cmp.Compare(a.What, b.What))
}

// Scheduler gives the goroutines of a bubble their turns. A nil Scheduler lets
// everybody go on immediately.
type Scheduler struct {
	random  *rand.Rand
	arrived chan struct{}
	quit    chan struct{}
	done    chan struct{}

	mu      sync.Mutex
	turn    int64
	last    Point    // whose turn it is
	waiting []waiter // sorted by their points
	first   []int    // indexes in waiting of those who share a turn; only next needs it
	stopped bool
}

type waiter struct {
	at   Point
	goOn chan struct{}
}

// Start returns the Scheduler of the bubble. Until Stop is called, nobody else
// in the bubble may call [synctest.Wait].
func Start(seed uint64) *Scheduler {
	s := &Scheduler{
		random: rand.New(rand.NewPCG(seed, 1<<62)), arrived: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
		turn: 1,
	}
	go s.run()
	return s
}

func (s *Scheduler) run() {
	defer close(s.done)
	for {
		synctest.Wait()
		if s.next() {
			continue
		}
		select {
		case <-s.arrived:
		case <-s.quit:
			return
		}
	}
}

// next begins the next turn, if somebody waits for one.
func (s *Scheduler) next() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, shared := slices.BinarySearchFunc(s.waiting, s.last, func(w waiter, at Point) int { return compare(w.at, at) })
	if !shared {
		first := s.first[:0]
		for i := range s.waiting {
			if i == 0 || compare(s.waiting[i-1].at, s.waiting[i].at) != 0 {
				first = append(first, i)
			}
		}
		if s.first = first; len(first) == 0 {
			return false
		}
		i = first[s.random.IntN(len(first))]
		s.turn++
	}
	s.last = s.waiting[i].at
	close(s.waiting[i].goOn)
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return true
}

// Now returns the number of the present turn, for [Point.Since].
func (s *Scheduler) Now() int64 {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn
}

// Wait returns when it is the caller's turn. The caller may hold no mutex that
// others wait for.
func (s *Scheduler) Wait(at Point) {
	if s == nil {
		return
	}
	if goOn := s.join(at); goOn != nil {
		<-goOn
	}
}

// join returns nil if nobody gives turns any more.
func (s *Scheduler) join(at Point) (goOn chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	at.Since = cmp.Or(at.Since, s.turn)
	i, _ := slices.BinarySearchFunc(s.waiting, at, func(w waiter, at Point) int {
		return cmp.Or(compare(w.at, at), cmp.Compare(w.at.Rank, at.Rank), -1) // behind its equals
	})
	goOn = make(chan struct{})
	s.waiting = slices.Insert(s.waiting, i, waiter{at, goOn})
	select {
	case s.arrived <- struct{}{}:
	default:
	}
	return goOn
}

// Stop ends the turns: from now on nobody waits.
func (s *Scheduler) Stop() {
	close(s.quit)
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for _, w := range s.waiting {
		close(w.goOn)
	}
	s.waiting = nil
}
