package lock_test

import (
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

// TestSimulation checks P1 to P6 in simulated histories, and that no name is
// held for nobody at any time: see package simulation.
func TestSimulation(t *testing.T) { // F1 to F6, F8, F9, F11, F14 to F21, F33, F34, F38, F39, F44, F48
	t.Parallel()
	simulation.Run(t, onNetwork(func() driver.Store { return memstore.New() }), simulation.Config{Histories: 650})
}

// TestSimulationBeyondGrace does the same with clocks that differ by more than
// Grace and are set by as much. Handlers overlap then, but no resource that
// checks the fence takes the write of a late one.
func TestSimulationBeyondGrace(t *testing.T) { // F14, F15
	t.Parallel()
	simulation.Run(t, onNetwork(func() driver.Store { return memstore.New() }), simulation.Config{Histories: 20, Share: 2, Skew: 20 * time.Second})
}

// TestSimulationOnServerClock does the same with a store that decides by its
// own clock when a lease ends, and whose rows go back. The clients' clocks
// differ by up to ten hours, and are set by as much at any time: only events
// are remembered by them, for a day.
func TestSimulationOnServerClock(t *testing.T) { // F14, F56, F58
	t.Parallel()
	simulation.Run(t, onNetwork(func() driver.Store { return newServerClock(time.Now) }), simulation.Config{Histories: 150, Share: 4, ServerClock: true, Skew: 10 * time.Hour})
}

// TestSimulationOnObjects does the same with a store whose steps take several
// requests, each with its own faults.
func TestSimulationOnObjects(t *testing.T) {
	t.Parallel()
	simulation.Run(t, openObjects, simulation.Config{Histories: 100, Share: 10, ServerClock: true, Skew: 10 * time.Hour})
}

// TestSimulationOfTwoVersionsOnObjects plays histories in which half of the
// clients are of a later version that knows one member more. This version
// understands its objects, and writes them without it.
func TestSimulationOfTwoVersionsOnObjects(t *testing.T) { // F65
	t.Parallel()
	c := simulation.Config{Histories: 50, Share: 20, ServerClock: true, Skew: 10 * time.Hour}
	if testing.Short() {
		c.Histories = 5
	}
	simulation.Faults(t, func(t *testing.T, h *simulation.History) func(uint64) driver.Store {
		b := &bucket{t: t, objects: map[string]objectstore.Object{}}
		return func(client uint64) driver.Store {
			w := &way{bucket: b, plan: h.Plan(client), late: h.Late}
			if client%2 == 1 {
				w.adds = `"addedLater": {"completed": 1}, `
			}
			return objectstore.New(w)
		}
	}, c)
}

// onNetwork makes an opener of a store that needs no requests of its own.
func onNetwork(open func() driver.Store) simulation.Opener {
	return func(_ *testing.T, h *simulation.History) func(uint64) driver.Store {
		rows := open()
		return func(client uint64) driver.Store {
			if client == simulation.Watcher {
				return rows
			}
			return fault.NewStore(rows, h.Plan(client), h.Late)
		}
	}
}

func openObjects(t *testing.T, h *simulation.History) func(uint64) driver.Store {
	b := &bucket{t: t, objects: map[string]objectstore.Object{}}
	return func(client uint64) driver.Store {
		return objectstore.New(&way{bucket: b, plan: h.Plan(client), late: h.Late})
	}
}
