package redistest

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Claim returns a new claim of a name, for a minute.
func Claim(name string) *driver.Claim {
	now := time.Now().UTC().Truncate(time.Microsecond)
	return &driver.Claim{Name: name, Token: rand.Text(), Holder: "holder", Now: now, Stamp: now, Until: now.Add(time.Minute), DeleteAfter: now.Add(24 * time.Hour)}
}

// Renewal returns a renewal of what a claim got, for two minutes from now.
func Renewal(c *driver.Claim) *driver.Renewal {
	now := time.Now().UTC().Truncate(time.Microsecond)
	return &driver.Renewal{Name: c.Name, Token: c.Token, Now: now, Until: now.Add(2 * time.Minute), DeleteAfter: c.DeleteAfter}
}

// Settlement returns a release of what a claim got.
func Settlement(c *driver.Claim) *driver.Settlement {
	return &driver.Settlement{Name: c.Name, Token: c.Token, DeleteAfter: c.DeleteAfter, Stamp: c.Stamp, CooldownToken: "after " + c.Token}
}

// MustAcquire fails the test if the claim is not granted.
func MustAcquire(t *testing.T, s driver.Store, c *driver.Claim) driver.Row {
	t.Helper()
	row, ok, err := s.Acquire(t.Context(), c)
	if err != nil || !ok {
		t.Fatalf("acquire: applied %v, error %v, row %+v", ok, err, row)
	}
	return row
}

// MustRefuse fails the test if the claim is granted.
func MustRefuse(t *testing.T, s driver.Store, c *driver.Claim) driver.Row {
	t.Helper()
	row, ok, err := s.Acquire(t.Context(), c)
	if err != nil || ok {
		t.Fatalf("acquire: applied %v, error %v, want a refusal by %+v", ok, err, row)
	}
	return row
}

// MustRelease fails the test if the lock is not released, with that memory.
func MustRelease(t *testing.T, s driver.Store, c *driver.Claim, m *driver.Memory) {
	t.Helper()
	done := Settlement(c)
	done.Memory = m
	if _, ok, err := s.Settle(t.Context(), done); !ok || err != nil {
		t.Fatalf("release: applied %v, error %v", ok, err)
	}
}

// Event has the length that leaves room for only a few in a row of 1 KB.
func Event(i int) string { return fmt.Sprintf("%050d", i) }
