package memstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

func TestConformance(t *testing.T) {
	locktest.Run(t, locktest.Harness{
		Open:      func(*testing.T) driver.Store { return memstore.New() },
		MakeNewer: func(_ *testing.T, s driver.Store, name string) { s.(*memstore.Store).MakeNewer(name) },
	})
}

// TestRowsAreRemoved: names that nobody asks for again do not fill the memory.
func TestRowsAreRemoved(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	now := time.Now()
	for i := range 10_000 {
		now = now.Add(time.Minute)
		c := &driver.Claim{Name: fmt.Sprint(i), Token: "t", Now: now, Stamp: now, Until: now.Add(time.Second), DeleteAfter: now.Add(time.Hour)}
		if _, ok, err := s.Acquire(t.Context(), c); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if _, _, err := s.Renew(t.Context(), &driver.Renewal{Name: fmt.Sprint("nobody's", i), Token: "t"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Len(); n > 3000 {
		t.Errorf("%d rows, of which 60 are to be kept", n)
	}
}
