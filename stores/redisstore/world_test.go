package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore"
)

// linked returns a client of a server for one client of a history, or for one
// of its requests' parts.
func linked(h *simulation.History, m *machine, client, part uint64) *link {
	plan := h.Plan(simulation.Watcher)
	if client != simulation.Watcher {
		plan = h.Plan(client + part<<32)
	}
	return newLink(m, fmt.Sprint("node:", part), plan, h.Late, h.Seed, client+part<<32)
}

func openServer(t *testing.T, h *simulation.History) func(uint64) driver.Store {
	m := newMachine(t)
	return func(client uint64) driver.Store { return must(redisstore.New(linked(h, m, client, 0))) }
}

// openNodes opens a quorum of n. Each request to a node meets faults of its
// own.
func openNodes(n int) simulation.Opener {
	return func(t *testing.T, h *simulation.History) func(uint64) driver.Store {
		nodes := make([]*machine, n)
		for i := range nodes {
			nodes[i] = newMachine(t)
		}
		return func(client uint64) driver.Store {
			var links []redis.Scripter
			for i, m := range nodes {
				links = append(links, linked(h, m, client, uint64(i)))
			}
			return must(redisstore.NewQuorum(links...))
		}
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

func TestSimulationOfQuorum(t *testing.T) { // F1 to F6, F14, F18 to F21, F42, F44
	simulation.Run(t, openNodes(3), simulation.Config{Histories: simulation.Tenth(10), Share: 60, ServerClock: true}).MustVary(t)
}

func TestSimulationOfQuorumClocks(t *testing.T) { // F14
	simulation.Run(t, openNodes(3), simulation.Config{Histories: simulation.Tenth(10), Share: 60, ServerClock: true, Skew: 10 * time.Hour})
}

func TestCrowd(t *testing.T) {
	simulation.Crowd(t, openServer, simulation.Config{Histories: 5, Share: 100})
}

func TestQuorumCrowd(t *testing.T) { // F5
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprint(n, " nodes"), func(t *testing.T) {
			simulation.Crowd(t, openNodes(n), simulation.Config{Histories: 3, Share: 100})
		})
	}
}

// TestSimulationIsItsSeed shows that a seed brings the same history back.
func TestSimulationIsItsSeed(t *testing.T) {
	for name, open := range map[string]simulation.Opener{"server": openServer, "quorum": openNodes(3)} {
		t.Run(name, func(t *testing.T) {
			simulation.Twice(t, open, simulation.Config{Histories: 2, Share: 100, ServerClock: true, Skew: 10 * time.Hour})
		})
	}
}
