package lock

import (
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/explore"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// TestExploreProtocol visits every state that rows and clients reach within the
// bounds of each scope. LAMBDALOCK_DEPTH=long chooses the wider bounds.
func TestExploreProtocol(t *testing.T) { // F1 to F6, F14, F18 to F21, F44
	t.Parallel()
	for _, scope := range explore.Scopes() {
		t.Run(scope.Name, func(t *testing.T) {
			b := scope.Short
			if explore.Long() {
				b = scope.Long
			} else {
				t.Parallel() // the long form needs the memory
			}
			r := explore.Run(b, explore.Right(), explore.Careful(b.Grace), completeForExplorer)
			t.Logf("%v within %+v", r, b)
			if r.Violation != nil {
				t.Error(r.Violation)
			}
		})
	}
}

// completeForExplorer is the engine's memory of a name.
func completeForExplorer(m driver.Memory, k explore.Kind, now, until time.Time) driver.Memory {
	next, _, _ := complete(&m, completion{event: k.Event, order: k.Order, until: until, now: now}, room{name: "/n", least: defaultRememberEvents})
	return *next
}
