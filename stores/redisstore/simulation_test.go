package redisstore_test

import (
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
)

func openServer(t *testing.T, h *simulation.History) func(uint64) driver.Store {
	m := redistest.NewMachine(t)
	return func(client uint64) driver.Store {
		return redistest.Must(redisstore.New(redistest.Linked(h, m, client, 0)))
	}
}

func TestSimulation(t *testing.T) { // F1 to F6, F14, F18 to F21, F42, F44
	simulation.Run(t, openServer, simulation.Config{Histories: 20, Share: 20, ServerClock: true})
}

// TestSimulationOfTwoVersions plays histories in which half of the clients are
// of a later version. This version understands what it writes.
func TestSimulationOfTwoVersions(t *testing.T) { // F65
	t.Parallel()
	var version redistest.LaterVersion
	simulation.Faults(t, func(t *testing.T, h *simulation.History) func(uint64) driver.Store {
		m := redistest.NewMachine(t)
		return func(client uint64) driver.Store {
			return redistest.Must(redisstore.New(version.Half(client, redistest.Linked(h, m, client, 0))))
		}
	}, simulation.Config{Histories: 10, Share: 20, ServerClock: true})
	version.Check(t)
}
