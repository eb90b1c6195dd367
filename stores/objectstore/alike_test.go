package objectstore_test

import (
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/sim/alike"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// TestAgreesWithJudge compares both a store of one process and one of many with
// what [driver.Row.Judge] grants. After each request, all writes that were ever
// sent arrive once more. None of them may be applied: no version comes back.
func TestAgreesWithJudge(t *testing.T) { // F1, F3, F5, F14, F21, F44
	t.Parallel()
	for name, open := range map[string]func(*fake) alike.Store{
		"one process":                 func(f *fake) alike.Store { return objectstore.New(f) },
		"a process for every request": func(f *fake) alike.Store { return strangers{f} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f *fake
			alike.Run(t, alike.Config{
				Open: func(_ *testing.T, now func() time.Time) alike.Store {
					f = newFake()
					f.clock = now
					return open(f)
				},
				ServerClock: true, Resolution: time.Second, Shortens: true,
				After: func(t *testing.T, name string, _ *alike.Model) {
					if n := f.repeat(); n != 0 {
						t.Errorf("%s: %d late copies of writes were applied", name, n)
					}
				},
			})
		})
	}
}

func answer(t *testing.T) func(driver.Row, bool, error) (driver.Row, bool) {
	t.Helper()
	return func(row driver.Row, ok bool, err error) (driver.Row, bool) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return row, ok
	}
}
