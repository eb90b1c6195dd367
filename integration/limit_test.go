package integration_test

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// BenchmarkLimitHandover passes the slots of one name among eight waiters, and
// shows what it costs to acquire one of many.
func BenchmarkLimitHandover(b *testing.B) {
	s := servers.Dynoxide(b)
	newTable(b, s)
	limits := []int{1, 2, 4}
	runs := 5
	if testing.Short() {
		runs = 1
	}
	all := map[int][]handover{}
	for b.Loop() {
		for range runs {
			for _, limit := range limits {
				all[limit] = append(all[limit], passSlots(b, s, limit))
			}
		}
	}
	f := newFigures(fmt.Sprintf("Hand-over of slots: %d waiters, %d turns of %v, %v per request", waiters, turns, turnTime, requestDelay),
		"holders at a time", "wall/ideal", "requests/turn", "fairness", "fairness min..max")
	for _, limit := range limits {
		wall, requests, fairness := medians(all[limit])
		least, most := all[limit][0].fairness, all[limit][0].fairness
		for _, h := range all[limit] {
			least, most = min(least, h.fairness), max(most, h.fairness)
		}
		f.add(fmt.Sprint(limit), times(wall.Seconds()), number(requests), number(fairness), number(least)+".."+number(most))
	}
	reportFullSlots(b, s)
}

// passSlots returns, as the wall of 1 s, how long the turns took compared with
// turns that have no gap between them, as long as there was a waiter for every
// slot.
func passSlots(b *testing.B, s servers.Server, limit int) handover {
	p := pass(b, s, ourTurns(limit))
	if n := mostHolders(p.holds); n > limit {
		b.Errorf("%d at the same time", n)
	}
	contended := p.finished[waiters-limit] // then there are fewer waiters than slots
	end := p.began.Add(contended)
	gapless := time.Duration(0)
	for _, h := range p.holds {
		if h.Start.Before(end) {
			share := min(1, float64(end.Sub(h.Start))/float64(h.End.Sub(h.Start)))
			gapless += time.Duration(share * float64(turnTime+2*requestDelay))
		}
	}
	ratio := float64(contended) * float64(limit) / float64(gapless)
	return p.outcome(time.Duration(ratio * float64(time.Second)))
}

// mostHolders returns how many holds there were at the same time.
func mostHolders(holds []locktest.Hold) int {
	most := 0
	for _, h := range holds {
		n := 0
		for _, other := range holds {
			if !other.Start.After(h.Start) && other.End.After(h.Start) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// reportFullSlots reports the requests and the time to acquire a slot of a name
// of which all slots but one are held, and to be refused where all are.
func reportFullSlots(b *testing.B, s servers.Server) {
	f := newFigures(fmt.Sprintf("A name with many slots, %v per request", requestDelay),
		"slots", "requests: all free", "one free", "none free", "time ms: all free", "one free", "none free")
	for _, limit := range []int{2, 10, lock.MaxLimit} {
		w := newWire(requestDelay)
		locker := newLocker(b, dynamostore.New(newClient(s.Endpoint, w), table), lock.Options{Lease: lock.FixedLease(10 * time.Minute)})
		name := "full/" + rand.Text()
		var requests, took []string
		try := func(want error) {
			w.take()
			start := time.Now()
			if _, err := locker.AcquireOneOf(b.Context(), name, limit); (err == nil) != (want == nil) {
				b.Fatal(err)
			}
			took, requests = append(took, ms(time.Since(start))), append(requests, fmt.Sprint(w.take()))
		}
		try(nil)
		for range limit - 2 {
			if _, err := locker.AcquireOneOf(b.Context(), name, limit); err != nil {
				b.Fatal(err)
			}
		}
		try(nil)
		try(lock.ErrHeld)
		f.add(append(append([]string{fmt.Sprint(limit)}, requests...), took...)...)
		w.next.CloseIdleConnections()
	}
}
