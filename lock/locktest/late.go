package locktest

import (
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// again returns the claim of the same acquisition's next round: it has a new
// date, but its lease ends when c's does, as if at the platform's deadline.
func (f *fixture) again(c *driver.Claim) *driver.Claim {
	f.advance(time.Millisecond)
	next := *c
	next.Now, next.Stamp = f.now, f.now
	return &next
}

func lateClaim(f *fixture) { // F3
	first := f.claim("first")
	f.mustAcquire(first)
	f.mustRelease(first, nil)
	f.mustRefuse(first)
	second := f.claim("second")
	f.mustAcquire(second)
	f.mustRefuse(first)
	f.mustRelease(second, nil)
	f.mustRefuse(first)
	f.mustAcquire(f.claim("third"))
}

func lateClaimWhileHeld(f *fixture) { // F3
	c := f.claim("holder")
	f.mustAcquire(c)
	f.advance(lease - 5*time.Second)
	if _, ok := f.renew(c, f.now.Add(lease)); !ok {
		f.Fatal("renewal refused")
	}
	f.acquire(c)
	f.advance(6 * time.Second) // past the end that c asked for
	f.mustRefuse(f.claim("contender"))
}

// A late copy of a claim or a renewal gives its dead owner no more time.
func lateCopiesExtendNothing(f *fixture) { // F3, F19
	first := f.claim("dies first")
	f.mustAcquire(first)
	f.advance(lease - 3*time.Second)
	f.acquire(first)
	f.mustRefuse(f.claim("early"))
	f.advance(5 * time.Second)
	dead := f.claim("dies next")
	f.mustAcquire(dead)

	until := dead.Until.Add(lease)
	renewed := f.now
	renew := func() {
		f.Helper()
		_, _, err := f.store.Renew(f.Context(), &driver.Renewal{Name: dead.Name, Token: dead.Token, Now: renewed, Until: until, DeleteAfter: dead.DeleteAfter})
		if err != nil {
			f.Fatalf("renewal: %v", err)
		}
	}
	renew()
	f.advance(2*lease - 3*time.Second)
	f.acquire(dead)
	renew()
	f.mustRefuse(f.claim("early"))
	f.advance(5 * time.Second)
	f.mustAcquire(f.claim("successor"))
}

// A claim that waited may have copies under way with lower stamps than the
// claim that was granted. If one of them lowered the row's stamp, the next one
// would be granted after the release.
func lateClaimsOfEarlierRounds(f *fixture) { // F3, F44
	first := f.claim("waits")
	second := f.again(first)
	third := f.again(second)
	f.mustAcquire(third)
	f.acquire(first)
	f.acquire(second)
	if row := f.mustRefuse(f.claim("contender")); !f.NoDetail && row.Stamp.Before(third.Stamp) {
		f.Errorf("late claims of earlier rounds lowered the stamp to %v, below %v", row.Stamp, third.Stamp)
	}
	f.mustRelease(third, nil)
	for _, late := range []*driver.Claim{second, first, third} {
		f.mustRefuse(late)
	}
	f.mustAcquire(f.claim("next"))
}

// A late copy of an earlier round has taken the name. The claim of the present
// round recognises the row as its own and gets the lease that it asks for.
func earlierRoundIsGranted(f *fixture) { // F1, F3
	first := f.claim("waits")
	second := f.again(first)
	second.Until = second.Now.Add(lease)
	f.mustAcquire(first)
	row, ok := f.acquire(second)
	if !ok && row.Token != second.Token {
		f.Fatalf("refused by its own row: %+v", row)
	}
	if ok && f.Advance == nil && !row.Until.Equal(second.Until) {
		f.Errorf("lease until %v, want %v", row.Until, second.Until)
	}
	if row.Previous.Holder != "" {
		f.Errorf("the claim took over from itself: %q", row.Previous.Holder)
	}
	f.mustRelease(second, nil)
	f.mustRefuse(first)
	f.mustRefuse(second)
}

// A copy of the claim that took over from a dead holder arrives after the
// release.
func lateClaimAfterTakeover(f *fixture) { // F3, F44
	dead := f.claim("dead")
	f.mustAcquire(dead)
	f.advance(lease + time.Second)
	successor := f.claim("successor")
	f.mustAcquire(successor)
	f.mustRelease(successor, nil)
	f.mustRefuse(successor)
}

func clockBehind(f *fixture) { // F14
	first := f.claim("ahead")
	f.mustAcquire(first)
	f.mustRelease(first, nil)
	late := f.claim("behind")
	late.Now = first.Stamp.Add(-time.Second)
	late.Stamp = late.Now
	row := f.mustRefuse(late)
	if !f.NoDetail && row.Judge(late) != driver.Behind {
		f.Errorf("verdict %v on %+v, want Behind", row.Judge(late), row)
	}
	late.Stamp = first.Stamp.Add(time.Microsecond)
	f.mustAcquire(late)
}

func abandon(f *fixture) { // F2
	applied := f.claim("applied, answer lost")
	f.mustAcquire(applied)
	f.mustAbandon(applied)
	f.mustRefuse(applied)
	underWay := f.claim("still under way")
	f.mustAbandon(underWay)
	f.mustRefuse(underWay)
	f.abandon(underWay) // sent twice
	f.mustAcquire(f.claim("next"))
	f.name = newName() // a name without a row
	underWay = f.claim("still under way")
	f.mustAbandon(underWay)
	f.mustRefuse(underWay)
	if row := f.mustAcquire(f.claim("next")); !f.NoFence && row.Fence <= 1 {
		f.Errorf("fence after an abandoned claim starts at %d", row.Fence)
	}
}

// Another owner refused the claim, and a copy of it is still under way.
func abandonHeldByAnother(f *fixture) { // F2, F44
	other := f.eventClaim("other", "e1")
	before := f.mustAcquire(other)
	mine := f.eventClaim("never answered", "e2")
	f.abandon(mine)
	f.mustRefuse(mine)
	if row := f.mustRefuse(f.claim("third")); !f.NoDetail &&
		(row.Token != other.Token || row.Holder != "other" || row.Event != "e1" || !f.sameEnd(row.Until, before.Until) || row.Fence != before.Fence) {
		f.Errorf("giving up a claim changed another owner's row from %+v to %+v", before, row)
	}
	if row, ok := f.acquire(other); !f.NoDetail && !ok && row.Token != other.Token {
		f.Errorf("the owner's repeated claim does not recognise its own row: %+v", row)
	}
	until := f.now.Add(lease)
	if row, ok := f.renew(other, until); !ok {
		f.Errorf("the owner's renewal was refused by %+v", row)
	}
	earlier := f.claim("given up before")
	earlier.Stamp = mine.Stamp.Add(-time.Microsecond)
	f.abandon(earlier) // must not lower the stamp
	f.mustRelease(other, nil)
	f.mustRefuse(mine)
	f.mustAcquire(f.claim("next"))
}

func abandonHeldByDeadOwner(f *fixture) { // F2, F19, F44
	dead := f.claim("dead")
	f.mustAcquire(dead)
	f.advance(lease + time.Second)
	mine := f.claim("never answered")
	f.abandon(mine)
	f.mustRefuse(mine)
	if row := f.mustAcquire(f.claim("next")); row.Previous.Holder != "dead" {
		f.Errorf("took over from %q, want dead", row.Previous.Holder)
	}
}

func (f *fixture) abandon(c *driver.Claim) (driver.Row, bool) {
	f.Helper()
	row, ok, err := f.store.Settle(f.Context(), &driver.Settlement{Name: c.Name, Token: c.Token, DeleteAfter: c.DeleteAfter, Abandon: true, Stamp: c.Stamp})
	if err != nil {
		f.Fatalf("abandoning %s: %v", c.Holder, err)
	}
	return row, ok
}

func (f *fixture) mustAbandon(c *driver.Claim) {
	f.Helper()
	if row, ok := f.abandon(c); !ok {
		f.Fatalf("abandoning %s was refused by %+v", c.Holder, row)
	}
}

// answered returns the answer to a request, which must not fail.
func (f *fixture) answered(row driver.Row, ok bool, err error) (driver.Row, bool) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
	return row, ok
}

// No request changes a row that a later version of this library has written.
func newerFormat(f *fixture) { // F41
	if f.MakeNewer == nil {
		f.Skip("the harness cannot write a row of a newer format")
	}
	for name, request := range map[string]func(f *fixture, owner *driver.Claim) (driver.Row, bool){
		"acquire": func(f *fixture, _ *driver.Claim) (driver.Row, bool) { return f.acquire(f.claim("contender")) },
		"repeated acquire": func(f *fixture, owner *driver.Claim) (driver.Row, bool) {
			return f.acquire(owner)
		},
		"takeover": func(f *fixture, _ *driver.Claim) (driver.Row, bool) {
			f.advance(lease + time.Second)
			return f.acquire(f.claim("successor"))
		},
		"renew": func(f *fixture, owner *driver.Claim) (driver.Row, bool) {
			return f.renew(owner, f.now.Add(2*lease))
		},
		"release": func(f *fixture, owner *driver.Claim) (driver.Row, bool) { return f.release(owner, nil) },
		"complete": func(f *fixture, owner *driver.Claim) (driver.Row, bool) {
			return f.release(owner, completing(driver.Row{}, "e", f.now.Add(time.Hour)))
		},
		"abandon": func(f *fixture, _ *driver.Claim) (driver.Row, bool) { return f.abandon(f.claim("gives up")) },
		"abandon by the owner": func(f *fixture, owner *driver.Claim) (driver.Row, bool) {
			return f.abandon(owner)
		},
		"join": func(f *fixture, _ *driver.Claim) (driver.Row, bool) {
			line, ok := f.store.(driver.Line)
			if !ok {
				f.Skip("the store is not a driver.Line")
			}
			return f.answered(line.Join(f.Context(), f.name))
		},
		"mark": func(f *fixture, owner *driver.Claim) (driver.Row, bool) {
			coalescer, ok := f.store.(driver.Coalescer)
			if !ok {
				f.Skip("the store is not a driver.Coalescer")
			}
			return f.answered(coalescer.Mark(f.Context(), &driver.Mark{Name: f.name, Token: owner.Token, Stamp: owner.Stamp}))
		},
	} {
		f.run(name, func(f *fixture) {
			f.name = newName()
			owner := f.claim("owner")
			f.mustAcquire(owner)
			f.MakeNewer(f.T, f.store, f.name)
			if row, ok := request(f, owner); ok || !f.NoDetail && (!row.Newer || row.Judge(owner) != driver.Newer) {
				f.Errorf("applied %v, %+v", ok, row)
			}
		})
	}
}

// cooldown ends a lease so that the name stays held for a while.
func cooldown(f *fixture) { // F3, F4
	c := f.claim("owner")
	f.mustAcquire(c)
	f.advance(time.Second)
	end := &driver.Settlement{
		Name: c.Name, Token: c.Token, DeleteAfter: c.DeleteAfter, Stamp: c.Stamp,
		Memory: completing(driver.Row{}, "e1", f.now.Add(time.Hour)), Now: f.now, Until: f.now.Add(2 * lease), CooldownToken: "cools " + c.Token,
	}
	if row, ok, err := f.store.Settle(f.Context(), end); !ok || err != nil {
		f.Fatalf("the end of the lease: applied %v, %+v, %v", ok, row, err)
	}
	late := *c // a copy that lasts longer than the cooldown
	late.Until = late.Until.Add(time.Hour)
	if _, ok, err := f.store.Settle(f.Context(), end); ok || err != nil {
		f.Errorf("the end of the lease, repeated: applied %v, %v", ok, err)
	}
	if row, ok := f.renew(c, late.Until); ok {
		f.Errorf("a late renewal brought the lease back: %+v", row)
	}
	f.mustRefuse(&late)
	f.advance(lease + lease/2) // when the owner's own lease would have ended
	row := f.mustRefuse(f.claim("next"))
	if !f.NoDetail && (row.Token != end.CooldownToken || row.Cooldown != c.Token || row.Holder != "" || row.Event != "" || !f.sameEnd(row.Until, end.Until) || !row.Memory.Has("e1", f.now)) {
		f.Errorf("the row in its cooldown is %+v", row)
	}
	f.mustRefuse(f.eventClaim("duplicate", "e1"))
	f.advance(lease)
	if row := f.mustAcquire(f.claim("next")); row.Previous.Holder != "" || row.Cooling() || !row.Memory.Has("e1", f.now) {
		f.Errorf("the row after the cooldown is %+v", row)
	}
}
