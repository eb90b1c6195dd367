package redisstore_test

import (
	"testing"
	"time"

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

// TestSimulation runs whole invocations over the scripts.
func TestSimulation(t *testing.T) { // F1 to F6, F14, F18 to F21, F42, F44
	simulation.Run(t, openServer, simulation.Config{Histories: simulation.Tenth(20), Share: 20, ServerClock: true}).MustVary(t)
}

// TestSimulationOfClocks lets the clients' clocks be hours apart: only the
// server's counts.
func TestSimulationOfClocks(t *testing.T) { // F14
	simulation.Run(t, openServer, simulation.Config{Histories: simulation.Tenth(20), Share: 20, ServerClock: true, Skew: 10 * time.Hour})
}

func TestCrowd(t *testing.T) {
	simulation.Crowd(t, openServer, simulation.Config{Histories: 5, Share: 100})
}

// TestSimulationIsItsSeed shows that a seed brings the same history back.
func TestSimulationIsItsSeed(t *testing.T) {
	simulation.Twice(t, openServer, simulation.Config{Histories: 2, Share: 100, ServerClock: true, Skew: 10 * time.Hour})
}
