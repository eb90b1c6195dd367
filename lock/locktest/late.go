package locktest

import (
	"crypto/rand"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// again is the same acquisition's claim of the next round: dated anew, with the end
// of lease that a platform's deadline gives it in every round.
func (b *bench) again(c *driver.Claim) *driver.Claim {
	b.advance(time.Millisecond)
	next := *c
	next.Now, next.Stamp = b.now, b.now
	return &next
}

func ghostAcquire(b *bench) { // F3
	first := b.claim("first")
	b.mustAcquire(first)
	b.mustRelease(first, nil)
	b.mustRefuse(first)
	second := b.claim("second")
	b.mustAcquire(second)
	b.mustRefuse(first)
	b.mustRelease(second, nil)
	b.mustRefuse(first)
	b.mustAcquire(b.claim("third"))
}

func ghostAcquireWhileHeld(b *bench) { // F3
	c := b.claim("holder")
	b.mustAcquire(c)
	until := c.Until.Add(10 * time.Second)
	if b.Advance != nil {
		b.advance(10 * time.Second)
	}
	if _, ok := b.renew(c, until); !ok {
		b.Fatal("renewal refused")
	}
	b.acquire(c)
	b.advance(lease + time.Second - b.alreadyAdvanced())
	b.mustRefuse(b.claim("contender"))
}

// alreadyAdvanced: a store with its own clock renews from its now.
func (b *bench) alreadyAdvanced() time.Duration {
	if b.Advance != nil {
		return 10 * time.Second
	}
	return 0
}

// ghostsOfEarlierRounds: a claim that waited has copies under way with lower stamps
// than the one that was granted. None of them may lower the row's stamp, or the next of
// them is granted after the release.
func ghostsOfEarlierRounds(b *bench) { // F3, F44
	first := b.claim("waits")
	second := b.again(first)
	third := b.again(second)
	b.mustAcquire(third)
	b.acquire(first)
	b.acquire(second)
	if row := b.mustRefuse(b.claim("contender")); !b.NoDetail && row.Stamp.Before(third.Stamp) {
		b.Errorf("copies of earlier rounds lowered the stamp to %v, below %v", row.Stamp, third.Stamp)
	}
	b.mustRelease(third, nil)
	for _, late := range []*driver.Claim{second, first, third} {
		b.mustRefuse(late)
	}
	b.mustAcquire(b.claim("next"))
}

// earlierRoundGrantedLate: the claim finds the row its own by a copy of an earlier
// round, and its lease lasts as long as it asks for now.
func earlierRoundGrantedLate(b *bench) { // F1, F3
	first := b.claim("waits")
	second := b.again(first)
	second.Until = second.Now.Add(lease)
	b.mustAcquire(first)
	row, ok := b.acquire(second)
	if !ok && row.Token != second.Token {
		b.Fatalf("refused by its own row: %+v", row)
	}
	if ok && b.Advance == nil && !row.Until.Equal(second.Until) {
		b.Errorf("lease until %v, want %v", row.Until, second.Until)
	}
	if row.Previous != "" {
		b.Errorf("it took over from itself: %q", row.Previous)
	}
	b.mustRelease(second, nil)
	b.mustRefuse(first)
	b.mustRefuse(second)
}

// ghostOfTakeover: a copy of a claim that took over from a dead holder comes after the
// release, or after the claim was given up.
func ghostOfTakeover(b *bench) { // F3, F44
	dead := b.claim("dead")
	b.mustAcquire(dead)
	b.advance(lease + time.Second)
	successor := b.claim("successor")
	b.mustAcquire(successor)
	b.mustRelease(successor, nil)
	b.mustRefuse(successor)
}

func clockBehind(b *bench) { // F14
	if b.Advance != nil {
		b.Skip("the store declares that it judges by its own clock")
	}
	first := b.claim("ahead")
	b.mustAcquire(first)
	b.mustRelease(first, nil)
	late := b.claim("behind")
	late.Now = first.Stamp.Add(-time.Second)
	late.Stamp = late.Now
	row := b.mustRefuse(late)
	if !b.NoDetail && row.Judge(late) != driver.Behind {
		b.Errorf("verdict %v on %+v, want Behind", row.Judge(late), row)
	}
	late.Stamp = first.Stamp.Add(time.Microsecond)
	b.mustAcquire(late)
}

func abandon(b *bench) { // F2
	applied := b.claim("applied, answer lost")
	b.mustAcquire(applied)
	b.mustAbandon(applied)
	b.mustRefuse(applied)
	arrivesLater := b.claim("still under way")
	b.mustAbandon(arrivesLater)
	b.mustRefuse(arrivesLater)
	b.abandon(arrivesLater) // sent twice
	b.mustAcquire(b.claim("next"))
	b.name += "/never acquired"
	neverAcquired := b.claim("still under way")
	b.mustAbandon(neverAcquired)
	b.mustRefuse(neverAcquired)
	if row := b.mustAcquire(b.claim("next")); !b.NoFence && row.Fence <= 1 {
		b.Errorf("fence after an abandoned claim starts at %d", row.Fence)
	}
}

// abandonMeetsOwner: the claim was refused, and a copy of it is still under way.
func abandonMeetsOwner(b *bench) { // F2, F44
	other := b.eventClaim("other", "e1")
	before := b.mustAcquire(other)
	mine := b.eventClaim("never answered", "e2")
	b.abandon(mine)
	b.mustRefuse(mine)
	if row := b.mustRefuse(b.claim("third")); !b.NoDetail &&
		(row.Token != other.Token || row.Holder != "other" || row.Event != "e1" || !row.Until.Equal(before.Until) || row.Fence != before.Fence) {
		b.Errorf("giving up a claim changed another owner's row from %+v to %+v", before, row)
	}
	if row, ok := b.acquire(other); !b.NoDetail && !ok && row.Token != other.Token {
		b.Errorf("the owner's repeated claim does not recognise its own row: %+v", row)
	}
	until := b.now.Add(lease)
	if row, ok := b.renew(other, until); !ok {
		b.Errorf("the owner's renewal was refused by %+v", row)
	}
	earlier := b.claim("given up before")
	earlier.Stamp = mine.Stamp.Add(-time.Microsecond)
	b.abandon(earlier) // must not lower the stamp again
	b.mustRelease(other, nil)
	b.mustRefuse(mine)
	b.mustAcquire(b.claim("next"))
}

func abandonMeetsDeadOwner(b *bench) { // F2, F19, F44
	dead := b.claim("dead")
	b.mustAcquire(dead)
	b.advance(lease + time.Second)
	mine := b.claim("never answered")
	b.abandon(mine)
	b.mustRefuse(mine)
	if row := b.mustAcquire(b.claim("next")); row.Previous != "dead" {
		b.Errorf("took over from %q, want dead", row.Previous)
	}
}

func (b *bench) abandon(c *driver.Claim) (driver.Row, bool) {
	b.Helper()
	row, ok, err := b.store.Release(b.Context(), &driver.Settlement{Name: c.Name, Token: c.Token, DeleteAfter: c.DeleteAfter, Abandon: true, Stamp: c.Stamp})
	if err != nil {
		b.Fatalf("abandoning %s: %v", c.Holder, err)
	}
	return row, ok
}

func (b *bench) mustAbandon(c *driver.Claim) {
	b.Helper()
	if row, ok := b.abandon(c); !ok {
		b.Fatalf("abandoning %s was refused by %+v", c.Holder, row)
	}
}

// newerFormat: no request touches a row that a later version has written.
func newerFormat(b *bench) { // F41
	if b.Newer == nil {
		b.Skip("the harness has no way to write a row of a newer format")
	}
	for name, request := range map[string]func(owner *driver.Claim) (driver.Row, bool){
		"acquire": func(*driver.Claim) (driver.Row, bool) { return b.acquire(b.claim("contender")) },
		"acquire again": func(owner *driver.Claim) (driver.Row, bool) {
			return b.acquire(owner)
		},
		"takeover": func(*driver.Claim) (driver.Row, bool) {
			b.advance(lease + time.Second)
			return b.acquire(b.claim("successor"))
		},
		"renew":   func(owner *driver.Claim) (driver.Row, bool) { return b.renew(owner, b.now.Add(2*lease)) },
		"release": func(owner *driver.Claim) (driver.Row, bool) { return b.release(owner, nil) },
		"complete": func(owner *driver.Claim) (driver.Row, bool) {
			return b.release(owner, completes(driver.Row{}, "e", b.now.Add(time.Hour)))
		},
		"abandon": func(*driver.Claim) (driver.Row, bool) { return b.abandon(b.claim("gives up")) },
		"abandon by the owner": func(owner *driver.Claim) (driver.Row, bool) {
			return b.abandon(owner)
		},
	} {
		b.name = "locktest/" + rand.Text()
		owner := b.claim("owner")
		b.mustAcquire(owner)
		b.Newer(b.T, b.store, b.name)
		if row, ok := request(owner); ok || !b.NoDetail && (!row.Newer || row.Judge(owner) != driver.Newer) {
			b.Errorf("%s of a row of a newer format: applied %v, %+v", name, ok, row)
		}
	}
}
