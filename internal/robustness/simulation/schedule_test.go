package simulation_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/schedule"
)

// order returns the order in which the goroutines at the points go on, if they
// arrive in the order given.
func order(t *testing.T, seed uint64, points []schedule.Point) (went []schedule.Point) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		s := schedule.Start(seed)
		defer s.Stop()
		var all sync.WaitGroup
		for _, at := range points {
			all.Go(func() {
				s.Wait(at)
				went = append(went, at) // no two go on at the same time, so the race detector has no objection
			})
		}
		all.Wait()
	})
	return went
}

func TestOrder(t *testing.T) {
	t.Parallel()
	points := make([]schedule.Point, 10)
	for i := range points {
		points[i] = schedule.Point{Process: uint64(i / 2), What: []string{"request", "timer"}[i%2], Since: 1}
	}
	orders := map[string]bool{}
	for seed := range uint64(20) {
		first := order(t, seed, points)
		slices.Reverse(points)
		if again := order(t, seed, points); !slices.Equal(first, again) {
			t.Errorf("seed %d: %v, and if they arrive in another order %v", seed, first, again)
		}
		text := ""
		for _, p := range first {
			text += p.What[:1] + string(rune('0'+p.Process))
		}
		orders[text] = true
	}
	if len(orders) < 15 {
		t.Errorf("20 seeds made only %d orders", len(orders))
	}
}

// TestSharedTurn shows that points which differ in no more than their Rank
// have one turn, whose order is that of the ranks.
func TestSharedTurn(t *testing.T) {
	t.Parallel()
	points := []schedule.Point{{What: "b", Since: 1}, {What: "a", Rank: 3, Since: 1}, {What: "c", Since: 1}, {What: "a", Rank: 1, Since: 1}, {What: "a", Rank: 2, Since: 1}}
	for seed := range uint64(20) {
		went := order(t, seed, points)
		i := slices.IndexFunc(went, func(p schedule.Point) bool { return p.What == "a" })
		for rank, p := range went[i:min(i+3, len(went))] {
			if p.What != "a" || p.Rank != int64(rank)+1 {
				t.Errorf("seed %d: %v", seed, went)
				break
			}
		}
	}
}

// TestTurnEnds shows that a turn lasts until all stand still, and that time
// passes when nobody waits for one.
func TestTurnEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := schedule.Start(0)
		began, woken := time.Now(), make(chan bool)
		var all sync.WaitGroup
		busy := false
		for i := range 20 {
			all.Go(func() {
				s.Wait(schedule.Point{Process: uint64(i)})
				if busy {
					t.Error("a turn began before the last one had ended")
				}
				busy = true
				go func() {
					busy = false
					woken <- true
				}()
				<-woken
			})
		}
		all.Wait()
		if !time.Now().Equal(began) {
			t.Error("turns took time")
		}
		time.Sleep(time.Second)
		s.Stop()
		s.Wait(schedule.Point{})
		(*schedule.Scheduler)(nil).Wait(schedule.Point{})
	})
}
