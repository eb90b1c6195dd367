package redisstore_test

import (
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/stores/redisstore"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
)

// TestLeaseNeverMovesBack lets a claim arrive late, which is then granted for
// longer than the next round of the same claim asks for.
func TestLeaseNeverMovesBack(t *testing.T) {
	t.Parallel()
	mini := redistest.NewMini(t)
	client := redistest.NewClient(t, mini.Addr())
	store := redistest.Must(redisstore.New(client))
	first := redistest.Claim("n")
	mini.SetTime(first.Now.Add(30 * time.Second))
	redistest.MustAcquire(t, store, first)
	before := mini.HGet("lambdalock:n", "leaseEnd")
	second := *first
	second.Now, second.Stamp = first.Now.Add(20*time.Second), first.Now.Add(20*time.Second)
	redistest.MustAcquire(t, store, &second)
	if after := mini.HGet("lambdalock:n", "leaseEnd"); after != before {
		t.Errorf("the lease ends at %s, before it was %s", after, before)
	}
	// The clock of the owner was set forward.
	r := redistest.Renewal(&second)
	r.Until = second.Until.Add(time.Second)
	r.Now = r.Until.Add(-time.Second)
	expect.Granted(store.Renew(t.Context(), r))(t)
	if after := mini.HGet("lambdalock:n", "leaseEnd"); after < before {
		t.Errorf("after a renewal the lease ends at %s, before it was %s", after, before)
	}
}

// TestFenceRisesAgainstTheClock takes a free name over after the server's clock
// was set back.
func TestFenceRisesAgainstTheClock(t *testing.T) { // F14, F24
	t.Parallel()
	mini := redistest.NewMini(t)
	store := redistest.Must(redisstore.New(redistest.NewClient(t, mini.Addr())))
	first := redistest.Claim("n")
	mini.SetTime(first.Now)
	before := redistest.MustAcquire(t, store, first)
	expect.Granted(store.Settle(t.Context(), redistest.Settlement(first)))(t)
	mini.SetTime(first.Now.Add(-time.Minute))
	next := *first
	next.Token, next.Stamp = "next", first.Stamp.Add(time.Second)
	if after := redistest.MustAcquire(t, store, &next); after.Fence <= before.Fence {
		t.Errorf("the fence is %d, before it was %d", after.Fence, before.Fence)
	}
}

// TestHeldToTheEnd claims a name at the instant at which its lease ends by the
// server's clock, and a microsecond later.
func TestHeldToTheEnd(t *testing.T) {
	t.Parallel()
	mini := redistest.NewMini(t)
	store := redistest.Must(redisstore.New(redistest.NewClient(t, mini.Addr())))
	first := redistest.Claim("n")
	mini.SetTime(first.Now)
	redistest.MustAcquire(t, store, first)
	other := *first
	other.Token, other.Stamp = "other", first.Stamp.Add(time.Second)
	end := first.Until // the server counts the same time
	for _, c := range []struct {
		at   time.Time
		want bool
	}{{end, false}, {end.Add(time.Microsecond), true}} {
		mini.SetTime(c.at)
		if _, ok, err := store.Acquire(t.Context(), &other); ok != c.want || err != nil {
			t.Errorf("%v after the end: acquired %v, error %v", c.at.Sub(end), ok, err)
		}
	}
}

// TestAbandonShortensNoOtherLife gives up a claim while another owner has the
// row, which must be kept for longer.
func TestAbandonShortensNoOtherLife(t *testing.T) { // F44, F47
	t.Parallel()
	store := redistest.Must(redisstore.New(redistest.NewClient(t, redistest.NewMini(t).Addr())))
	owner := redistest.Claim("n")
	owner.DeleteAfter = owner.Now.Add(48 * time.Hour).Truncate(time.Second)
	redistest.MustAcquire(t, store, owner)
	refused := redistest.Settlement(redistest.Claim("n"))
	refused.Abandon, refused.Stamp = true, owner.Stamp.Add(time.Second)
	expect.Granted(store.Settle(t.Context(), refused))(t)
	if row, err := store.Read(t.Context(), "n"); err != nil || !row.DeleteAfter.Equal(owner.DeleteAfter) {
		t.Errorf("the row lives until %v, want %v; error %v", row.DeleteAfter, owner.DeleteAfter, err)
	}
}

func TestRowOutlivesAWrongClock(t *testing.T) { // F14, F24
	t.Parallel()
	m := redistest.NewMini(t)
	c := redistest.Claim("n")
	c.DeleteAfter = c.Now.Add(-time.Hour)
	redistest.MustAcquire(t, redistest.Must(redisstore.New(redistest.NewClient(t, m.Addr()))), c)
	if left := m.TTL("lambdalock:n"); left < 59*time.Minute {
		t.Errorf("the row is kept for %v", left)
	}
}

// TestLateRenewal sends a renewal that arrives after the lease has ended,
// whatever the owner's clock showed when it was sent.
func TestLateRenewal(t *testing.T) { // F3, F19
	t.Parallel()
	m := redistest.NewMini(t)
	store := redistest.Must(redisstore.New(redistest.NewClient(t, m.Addr())))
	dead := redistest.Claim("n")
	m.SetTime(dead.Now)
	redistest.MustAcquire(t, store, dead)
	late := redistest.Renewal(dead)
	m.SetTime(dead.Until)
	if _, ok, err := store.Renew(t.Context(), late); !ok || err != nil {
		t.Errorf("in the last moment: applied %v, error %v", ok, err)
	}
	m.SetTime(dead.Until.Add(time.Hour))
	for range 2 { // the first time, it is a copy of the one that was applied
		row, ok, err := store.Renew(t.Context(), late)
		if ok || err != nil || !row.Until.Before(late.Now) {
			t.Errorf("after the end: applied %v, error %v, row %+v", ok, err, row)
		}
		late.Until = late.Until.Add(time.Hour)
	}
	next := redistest.Claim("n")
	next.Stamp = next.Stamp.Add(time.Second)
	redistest.MustAcquire(t, store, next)
}
