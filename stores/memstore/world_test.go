package memstore_test

import (
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestSimulation runs whole invocations over rows that go back to earlier
// states, as those of a table do that is restored.
func TestSimulation(t *testing.T) { // F56
	t.Parallel()
	figures := simulation.Run(t, func(_ *testing.T, h *simulation.History) func(uint64) driver.Store {
		rows := memstore.New()
		return func(client uint64) driver.Store {
			if client == simulation.Watcher {
				return rows
			}
			return fault.NewStore(rows, h.Plan(client), h.Late)
		}
	}, simulation.Config{Histories: simulation.Tenth(200), Share: 2})
	if figures.Histories > 1 && figures.WentBack == 0 {
		t.Error("no row went back")
	}
}
