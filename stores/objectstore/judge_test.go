package objectstore_test

import (
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/sim/explore"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

// TestJudge compares the objects with [driver.Row.Judge] and the rules of
// renewal and release, on the rows and requests that the exploration of the
// protocol reaches. LAMBDALOCK_DEPTH=long compares all pairs of them.
func TestJudge(t *testing.T) { // F1, F3, F4, F5, F21, F44
	t.Parallel()
	rows := explore.Rows(true)
	for name, open := range map[string]func(*fake) explore.Store{
		"one process":                 func(f *fake) explore.Store { return objectstore.New(f) },
		"a process for every request": func(f *fake) explore.Store { return strangers{f} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			var now time.Time
			f.clock = func() time.Time { return now }
			c, err := rows.Compare(t.Context(), open(f), func(at time.Time) { now = at }, explore.Share(41))
			t.Log(c)
			if err != nil {
				t.Error(err)
			}
		})
	}
}
