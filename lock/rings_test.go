package lock_test

import (
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/rings"
)

// TestRings: what one claim and one row need knows of no lock, and a lock knows
// none of the ways to ask for it.
func TestRings(t *testing.T) {
	t.Parallel()
	rings.Check(t,
		// What is fixed for every claim of a Locker.
		[]string{"doc.go", "errors.go", "key.go", "leasemode.go", "locker.go", "observation.go", "options.go"},
		// One claim on one row, the row that is ours, and the requests for them.
		[]string{"acquisition.go", "end.go", "hold.go", "memory.go", "retry.go", "timing.go"},
		// A lock: the work's context, its heartbeat, its end, and what is told of it.
		[]string{"heartbeat.go", "lease.go", "lock.go", "observe.go", "set.go", "settlement.go", "transaction.go"},
		// The ways to ask for locks.
		[]string{"acquire.go", "interrupted.go", "latest.go", "limit.go", "line.go", "several.go", "wait.go"},
	)
}
