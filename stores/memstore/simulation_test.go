package memstore_test

import (
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

func openRows(_ *testing.T, h *simulation.History) func(uint64) driver.Store {
	rows := memstore.New()
	return func(client uint64) driver.Store {
		if client == simulation.Watcher {
			return rows
		}
		return fault.NewStore(rows, h.Plan(client), h.Late)
	}
}

// TestSimulation lets rows go back to earlier states, as those of a table do
// that is restored.
func TestSimulation(t *testing.T) { // F56
	t.Parallel()
	simulation.Run(t, openRows, simulation.Config{Histories: 200, Share: 2})
}
