package memstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

func TestConformance(t *testing.T) {
	locktest.Run(t, locktest.Harness{
		Open:      func(*testing.T) driver.Store { return memstore.New() },
		MakeNewer: func(_ *testing.T, s driver.Store, name string) { s.(*memstore.Store).MakeNewer(name) },
		Save:      func(_ *testing.T, s driver.Store, name string) func() { return s.(*memstore.Store).Save(name) },
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
		expect.Granted(s.Acquire(t.Context(), c))(t)
		if _, _, err := s.Renew(t.Context(), &driver.Renewal{Name: fmt.Sprint("nobody's", i), Token: "t"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Len(); n > 3000 {
		t.Errorf("%d rows, of which 60 are to be kept", n)
	}
}

// TestSweep shows when expired rows are deleted: once there are a thousand, and
// then each time that their number has doubled.
func TestSweep(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	now := time.Now()
	names := 0
	acquire := func(n int) {
		for range n {
			names++
			c := &driver.Claim{Name: fmt.Sprint(names), Token: "t", Now: now, Stamp: now, Until: now.Add(time.Second), DeleteAfter: now.Add(time.Hour)}
			expect.Granted(s.Acquire(t.Context(), c))(t)
		}
	}
	for _, step := range []struct {
		later time.Duration
		names int
		want  int
	}{
		{0, 999, 999},
		{2 * time.Hour, 1, 1000}, // too few to be worth a look
		{0, 1, 2},
		{0, 998, 1000},
		{0, 1, 1001}, // nothing has expired, so the next look is at 2,000
		{2 * time.Hour, 999, 2000},
		{0, 1, 1000},
	} {
		now = now.Add(step.later)
		acquire(step.names)
		if got := s.Len(); got != step.want {
			t.Fatalf("%d rows after %d claims, want %d", got, names, step.want)
		}
	}
}

// TestNewerRowStays shows that a row that this version cannot read is kept,
// because it does not know until when.
func TestNewerRowStays(t *testing.T) { // F41
	t.Parallel()
	s := memstore.New()
	now := time.Now()
	c := &driver.Claim{Name: "n", Token: "t", Now: now, Stamp: now, Until: now.Add(time.Second), DeleteAfter: now.Add(time.Hour)}
	expect.Granted(s.Acquire(t.Context(), c))(t)
	s.MakeNewer("n")
	now = now.Add(2 * time.Hour)
	c = &driver.Claim{Name: "n", Token: "t2", Now: now, Stamp: now, Until: now.Add(time.Second), DeleteAfter: now.Add(time.Hour)}
	if row, ok, err := s.Acquire(t.Context(), c); ok || err != nil || !row.Newer {
		t.Errorf("granted %v, row %+v, error %v", ok, row, err)
	}
}

// TestExpiredRowIsDeleted: a claim after DeleteAfter finds nothing of the row,
// as if DynamoDB's TTL had deleted it.
func TestExpiredRowIsDeleted(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	now := time.Now().Truncate(time.Microsecond)
	claim := func(token string) *driver.Claim {
		return &driver.Claim{Name: "n", Event: "e", Token: token, Holder: token, Now: now, Stamp: now, Until: now.Add(time.Second), DeleteAfter: now.Add(time.Hour)}
	}
	c := claim("first")
	expect.Granted(s.Acquire(t.Context(), c))(t)
	m := &driver.Memory{Completed: []driver.CompletedEvent{{Event: "e", Until: now.Add(24 * time.Hour)}}}
	expect.Granted(s.Settle(t.Context(), &driver.Settlement{Name: "n", Token: c.Token, Memory: m, DeleteAfter: c.DeleteAfter}))(t)
	for _, step := range []struct {
		later time.Duration
		want  bool
	}{{time.Hour, false}, {time.Microsecond, true}} {
		now = now.Add(step.later)
		row, ok, err := s.Acquire(t.Context(), claim("second"))
		if ok != step.want || err != nil || ok && (len(row.Memory.Completed) != 0 || row.Fence < now.UnixMicro()) {
			t.Errorf("%v later: granted %v, error %v, row %+v", step.later, ok, err, row)
		}
	}
}

// TestEmptyTokenOwnsNothing: a row that nobody holds has no token either.
func TestEmptyTokenOwnsNothing(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	now := time.Now()
	for _, name := range []string{"new", "released"} {
		if name == "released" {
			c := &driver.Claim{Name: name, Token: "t", Now: now, Stamp: now, Until: now.Add(time.Second), DeleteAfter: now.Add(time.Hour)}
			expect.Granted(s.Acquire(t.Context(), c))(t)
			expect.Granted(s.Settle(t.Context(), &driver.Settlement{Name: name, Token: "t", DeleteAfter: c.DeleteAfter}))(t)
		}
		if row, ok, err := s.Renew(t.Context(), &driver.Renewal{Name: name, Until: now.Add(time.Minute)}); ok || err != nil {
			t.Errorf("renewal of a %s row: applied %v, error %v, row %+v", name, ok, err, row)
		}
		if row, ok, err := s.Settle(t.Context(), &driver.Settlement{Name: name, Memory: &driver.Memory{}}); ok || err != nil {
			t.Errorf("release of a %s row: applied %v, error %v, row %+v", name, ok, err, row)
		}
	}
}
