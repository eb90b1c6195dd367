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
func TestSimulation(t *testing.T) { // F1 to F6, F8, F9, F11, F14 to F21, F33, F34, F38, F39, F44, F48, F54
	t.Parallel()
	figures := simulation.Run(t, openMemory, simulation.Config{Histories: simulation.Tenth(650)})
	if figures.Histories > 1 && figures.WhileLimit < 2 {
		t.Errorf("never more than %d holders of the limited name, so its limit was not tried", figures.WhileLimit)
	}
}

// TestSimulationBeyondGrace does the same with clocks that differ by more than
// Grace and are set by as much. Handlers overlap then, but no resource that
// checks the fence takes the write of a late one.
func TestSimulationBeyondGrace(t *testing.T) { // F14, F15
	t.Parallel()
	figures := simulation.Run(t, openMemory, simulation.Config{Histories: 20, Share: 2, Skew: 20 * time.Second})
	if figures.Histories > 1 && (figures.Overlaps == 0 || figures.Stale == 0) {
		t.Errorf("%d overlaps, %d refused effects: the clocks did not matter", figures.Overlaps, figures.Stale)
	}
}

// TestSimulationOnServerClock does the same with a store that judges leases by
// its own clock, and whose rows go back. The clients' clocks differ by up to
// ten hours, and are set by as much at any time: only events are remembered by
// them, for a day.
func TestSimulationOnServerClock(t *testing.T) { // F14, F56, F58
	t.Parallel()
	figures := simulation.Run(t, onNetwork(func() driver.Store { return newServerClock(time.Now) }), simulation.Config{Histories: simulation.Tenth(150), Share: 4, ServerClock: true, Skew: 10 * time.Hour})
	if figures.Histories > 1 && figures.WentBack == 0 {
		t.Error("no row went back")
	}
}

// TestSimulationOnObjects does the same with a store whose steps take several
// requests, each with its own faults.
func TestSimulationOnObjects(t *testing.T) {
	t.Parallel()
	simulation.Run(t, openObjects, simulation.Config{Histories: simulation.Tenth(100), Share: 10, ServerClock: true, Skew: 10 * time.Hour})
}

func TestCrowd(t *testing.T) {
	for name, open := range map[string]simulation.Opener{
		"memory": openMemory, "server's clock": onNetwork(func() driver.Store { return newServerClock(time.Now) }), "objects": openObjects,
	} {
		t.Run(name, func(t *testing.T) { simulation.Crowd(t, open, simulation.Config{Histories: 10, Share: 10}) })
	}
}

var openMemory = onNetwork(func() driver.Store { return memstore.New() })

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
