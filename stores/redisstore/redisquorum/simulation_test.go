package redisquorum_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
	"github.com/lambdalock/lambdalock/stores/redisstore/redisquorum"
)

// openNodes opens a quorum of n for clients of this version.
func openNodes(n int) simulation.Opener {
	return openNodesAs(n, func(_ uint64, l *redistest.Link) redis.Scripter { return l })
}

// openNodesAs opens a quorum of n. Each request to a node meets faults of its
// own, and each client sends them through what as makes of its links.
func openNodesAs(n int, as func(client uint64, l *redistest.Link) redis.Scripter) simulation.Opener {
	return func(t *testing.T, h *simulation.History) func(uint64) driver.Store {
		nodes := make([]*redistest.Machine, n)
		for i := range nodes {
			nodes[i] = redistest.NewMachine(t)
		}
		return func(client uint64) driver.Store {
			var links []redis.Scripter
			for i, m := range nodes {
				links = append(links, as(client, redistest.Linked(h, m, client, uint64(i))))
			}
			return redistest.Must(redisquorum.New(links...))
		}
	}
}

func TestSimulation(t *testing.T) { // F1 to F6, F14, F18 to F21, F42, F44
	simulation.Run(t, openNodes(3), simulation.Config{Histories: 10, Share: 60, ServerClock: true})
	t.Run("contention on 5 nodes", func(t *testing.T) {
		simulation.Contention(t, openNodes(5), simulation.Config{Histories: 3, Share: 100})
	})
}

// TestSimulationOfTwoVersions plays histories in which half of the clients are
// of a later version. This version understands what it writes.
func TestSimulationOfTwoVersions(t *testing.T) { // F65
	t.Parallel()
	var version redistest.LaterVersion
	simulation.Faults(t, openNodesAs(3, version.Half), simulation.Config{Histories: 4, Share: 60, ServerClock: true})
	version.Check(t)
}
