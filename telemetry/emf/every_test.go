package emf

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestEveryMetric shows which total each metric is.
func TestEveryMetric(t *testing.T) {
	t.Parallel()
	totals := middleware.Totals{
		Completed: 1, InProgress: 2, Requests: 3,
		Outcomes: map[lock.Outcome]int{
			lock.OutcomeReleased: 11, lock.OutcomeHeld: 13, lock.OutcomeAlreadyCompleted: 14, lock.OutcomeStale: 15, lock.OutcomeMismatch: 16,
			lock.OutcomeRefused: 17, lock.OutcomeTakenOver: 18, lock.OutcomeLost: 19, lock.OutcomeCompleteFailed: 20, lock.OutcomeForgotten: 21,
			middleware.OutcomeUnlocked: 22, lock.OutcomeStoreFailed: 23, middleware.OutcomeHandlerFailed: 24, middleware.OutcomeNotBegun: 25,
			middleware.OutcomeOverdue: 26, lock.OutcomeCoalesced: 27, lock.OutcomeInterrupted: 28,
			// Not metrics:
			lock.OutcomeAcquired: 101, lock.OutcomeRequeued: 102, lock.OutcomeRenewed: 103,
			lock.OutcomeResultDropped: 104, middleware.OutcomeNoLock: 105, middleware.OutcomeIgnored: 106,
		},
		Acquires: []time.Duration{31 * time.Millisecond}, Waits: []time.Duration{32 * time.Millisecond}, Holds: []time.Duration{33 * time.Millisecond},
	}
	want := map[string]float64{
		"Completed": 1, "InProgress": 2, "StoreRequests": 3, "Released": 10, "Contended": 11, "Duplicates": 14, "Stale": 15, "Mismatched": 16,
		"Refused": 17, "TakenOver": 18, "Lost": 19, "CompleteFailed": 20, "Forgotten": 21, "Unlocked": 22, "StoreFailed": 23,
		"HandlerFailed": 24, "NotBegun": 25, "Overdue": 26, "Coalesced": 27, "Interrupted": 28, "AcquireTime": 31, "Waited": 32, "HoldTime": 33,
	}
	var members map[string]any
	expect.Must(t, json.Unmarshal(newLine(&totals).encode(), &members))
	got := map[string]float64{}
	for name, value := range members {
		if n, ok := value.(float64); ok {
			got[name] = n
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("wrote %v\nwant  %v", got, want)
	}
}
