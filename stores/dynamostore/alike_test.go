package dynamostore_test

import (
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/sim/alike"
)

// TestAgreesWithJudge compares the conditions with what [driver.Row.Judge]
// grants.
func TestAgreesWithJudge(t *testing.T) { // F1, F3, F5, F21, F44
	t.Parallel()
	store := newBank(t, nil).store
	alike.Run(t, alike.Config{Open: func(*testing.T, func() time.Time) alike.Store { return store }, Terse: true})
}
