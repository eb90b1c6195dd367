package locktest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// limited is a store that judges leases by its own clock, has no fence, and
// does not return the row that refused.
type limited struct {
	*memstore.Store
	clock time.Time
}

func (s *limited) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	claim := *c
	claim.Now = s.clock
	return hide(s.Store.Acquire(ctx, &claim))
}

func (s *limited) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	return hide(s.Store.Renew(ctx, r))
}

func (s *limited) Release(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	return hide(s.Store.Release(ctx, t))
}

func hide(row driver.Row, ok bool, err error) (driver.Row, bool, error) {
	if !ok {
		return driver.Row{}, false, err
	}
	row.Fence = 0
	return row, true, err
}

// TestRunWithLimits runs the suite against a store with every limit that a
// harness can declare.
func TestRunWithLimits(t *testing.T) {
	var store *limited
	locktest.Run(t, locktest.Harness{
		Open: func(*testing.T) driver.Store {
			store = &limited{memstore.New(), time.Now()}
			return store
		},
		Advance:  func(d time.Duration) { store.clock = store.clock.Add(d) },
		NoDetail: true,
		NoFence:  true,
	})
}

// TestFaulty shows what each fault means for the sender of a request and for
// its row.
func TestFaulty(t *testing.T) {
	for name, c := range map[string]struct {
		fault   locktest.Fault
		applied bool
		hangs   bool
		late    bool // applied by ApplyLate
		want    driver.Error
	}{
		"none":            {fault: locktest.None, applied: true},
		"drop before":     {fault: locktest.DropBefore, want: driver.Error{Temporary: true}},
		"apply then drop": {fault: locktest.ApplyThenDrop, applied: true, want: driver.Error{Temporary: true}},
		"throttle":        {fault: locktest.Throttle, want: driver.Error{Temporary: true, Rejected: true}},
		"conflict":        {fault: locktest.Conflict, want: driver.Error{Temporary: true, Rejected: true, Conflict: true}},
		"deny":            {fault: locktest.Deny, want: driver.Error{Rejected: true, Action: "test:Deny"}},
		"hang":            {fault: locktest.Hang, hangs: true},
		"apply then hang": {fault: locktest.ApplyThenHang, applied: true, hangs: true},
		"hang then apply": {fault: locktest.HangThenApply, hangs: true, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				faulty := locktest.NewFaulty(memstore.New())
				faulty.Plan(locktest.Acquire, c.fault)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				start := time.Now()
				claim := driver.Claim{Name: "n", Token: "t", Now: start, Stamp: start, Until: start.Add(time.Hour)}
				sent := claim
				_, ok, err := faulty.Acquire(ctx, &sent)
				sent.Token = "another" // what is late stays as it was sent

				if ok != (c.fault == locktest.None) || c.hangs != errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("granted %v, error %v", ok, err)
				}
				if waited := time.Since(start); c.hangs != (waited == time.Minute) {
					t.Errorf("answered after %v", waited)
				}
				if e := (*driver.Error)(nil); errors.As(err, &e) {
					got := driver.Error{Temporary: e.Temporary, Rejected: e.Rejected, Conflict: e.Conflict, Action: e.Action}
					if got != c.want {
						t.Errorf("got %+v, want %+v", got, c.want)
					}
				} else if c.want != (driver.Error{}) {
					t.Errorf("got %v, want %+v", err, c.want)
				}
				if owns(t, faulty, claim) != c.applied {
					t.Errorf("applied %v, want %v", !c.applied, c.applied)
				}
				faulty.ApplyLate()
				if owns(t, faulty, claim) != (c.applied || c.late) {
					t.Errorf("after ApplyLate: applied %v, want %v", c.applied, c.applied || c.late)
				}
				if n := faulty.Requests(locktest.Acquire); n != 1 {
					t.Errorf("%d requests, want 1", n)
				}
			})
		})
	}
}

// owns reports whether the claim's token owns its row.
func owns(t *testing.T, faulty *locktest.Faulty, c driver.Claim) bool {
	t.Helper()
	_, ok, err := faulty.Store.Renew(t.Context(), &driver.Renewal{Name: c.Name, Token: c.Token, Until: c.Until})
	if err != nil {
		t.Fatal(err)
	}
	return ok
}
