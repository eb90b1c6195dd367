package alike_test

import (
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/sim/alike"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestMemstore shows that memory answers as the other stores do.
func TestMemstore(t *testing.T) { // F1, F3, F5, F21, F44
	t.Parallel()
	alike.Run(t, alike.Config{Open: func(*testing.T, func() time.Time) alike.Store { return memstore.New() }})
}
