package lock_test

import (
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// TestSimulationIsItsSeed shows that a seed brings the same history back, to
// the last line of its log.
func TestSimulationIsItsSeed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open   simulation.Opener
		config simulation.Config
	}{
		"memory":         {openMemory, simulation.Config{}},
		"beyond grace":   {openMemory, simulation.Config{Skew: 20 * time.Second}},
		"server's clock": {onNetwork(func() driver.Store { return newServerClock(time.Now) }), simulation.Config{ServerClock: true, Skew: 10 * time.Hour}},
		"objects":        {openObjects, simulation.Config{ServerClock: true, Skew: 10 * time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.config.Histories, c.config.Share = 5, 100
			simulation.Twice(t, c.open, c.config)
		})
	}
}
