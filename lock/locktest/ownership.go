package locktest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

func acquire(f *fixture) {
	c := f.eventClaim("first", "e1")
	row := f.mustAcquire(c)
	if row.Token != c.Token || row.Holder != "first" || row.Event != "e1" || row.Previous.Holder != "" {
		f.Errorf("the acquired row %+v does not describe the claim", row)
	}
	if !f.NoFence && row.Fence <= 0 {
		f.Errorf("fence is %d, want above zero", row.Fence)
	}
	if f.Advance == nil && (!row.Stamp.Equal(c.Stamp) || !row.Until.Equal(c.Until)) {
		f.Errorf("the row has stamp %v and ends at %v, want %v and %v", row.Stamp, row.Until, c.Stamp, c.Until)
	}
	if row.Stamp.IsZero() {
		f.Error("an acquired row must have a stamp: a row without one counts as unknown")
	}
}

func held(f *fixture) {
	first := f.eventClaim("first", "e1")
	f.mustAcquire(first)
	row := f.mustRefuse(f.eventClaim("second", "e1"))
	if row.Untold != f.NoDetail {
		f.Errorf("a refusal has the row %+v", row)
	}
	if f.NoDetail {
		return
	}
	if row.Token != first.Token || row.Holder != "first" || row.Event != "e1" || row.Until.IsZero() {
		f.Errorf("the refusing row %+v does not describe the holder", row)
	}
}

// A request of an owner whose row is gone is refused, and told that there is
// none.
func noRow(f *fixture) { // F23, F56
	c := f.eventClaim("owner", "e1")
	if row, ok := f.renew(c, c.Until); ok || !row.Unknown() || row.Untold && !f.NoDetail {
		f.Errorf("a renewal without a row: applied %v, %+v", ok, row)
	}
	if row, ok := f.release(c, completing(driver.Row{}, "e1", f.now.Add(time.Hour))); ok || row.Memory.Has("e1", f.now) || row.Untold && !f.NoDetail {
		f.Errorf("a completion without a row: applied %v, %+v", ok, row)
	}
	if row := f.mustAcquire(f.eventClaim("next", "e1")); row.Memory.Has("e1", f.now) {
		f.Error("the completion left something")
	}
}

func takeover(f *fixture) { // F19
	first := f.claim("first")
	before := f.mustAcquire(first)
	f.advance(lease + time.Second)
	second := f.claim("second")
	row := f.mustAcquire(second)
	if row.Previous.Holder != "first" || row.Holder != "second" {
		f.Errorf("the row after the takeover is %+v, want previous holder first", row)
	}
	if !f.NoFence && row.Fence <= before.Fence {
		f.Errorf("fence went from %d to %d", before.Fence, row.Fence)
	}
	f.mustRelease(second, nil)
	if row := f.mustAcquire(f.claim("third")); row.Previous.Holder != "" {
		f.Errorf("the previous holder is %q after a release, want none", row.Previous.Holder)
	}
}

func noTakeoverBeforeLeaseEnd(f *fixture) { // F14
	first := f.claim("first")
	f.mustAcquire(first)
	f.advance(lease - 2*time.Second)
	f.mustRefuse(f.claim("early"))
	if f.Advance != nil {
		return
	}
	at := f.claim("at the end")
	at.Now = first.Until
	f.mustRefuse(at)
	after := f.claim("after the end")
	after.Now = first.Until.Add(time.Microsecond)
	f.mustAcquire(after)
}

// The next contender must not be told that the dead holder's event holds the
// name.
func takeoverClearsEvent(f *fixture) {
	f.mustAcquire(f.eventClaim("dead", "e1"))
	f.advance(lease + time.Second)
	if row := f.mustAcquire(f.claim("mutex")); row.Event != "" {
		f.Errorf("the row after the takeover is %+v, want no event", row)
	}
	if row := f.mustRefuse(f.eventClaim("contender", "e1")); row.Event != "" {
		f.Errorf("the refusing row is %+v, want no event", row)
	}
}

func concurrentClaims(f *fixture) {
	f.run("of a new name", oneIsGranted)
	f.run("of a dead owner's name", func(f *fixture) { // F19
		f.name = newName()
		f.used()
		f.advance(lease + time.Second)
		oneIsGranted(f)
	})
}

func oneIsGranted(f *fixture) {
	f.Helper()
	claims := make([]*driver.Claim, 16) // made first: the clock may not be safe for concurrent use
	for i := range claims {
		claims[i] = f.claim("one of many")
	}
	var wg sync.WaitGroup
	var granted atomic.Int32
	for _, c := range claims {
		wg.Go(func() {
			ok, err := askAgain(f, c)
			if err != nil {
				f.Errorf("concurrent acquire: %v", err)
			}
			if ok {
				granted.Add(1)
			}
		})
	}
	wg.Wait()
	if n := granted.Load(); n != 1 {
		f.Errorf("%d of 16 concurrent claims were granted, want 1", n)
	}
}

// askAgain repeats a claim, as package lock does, as long as the refusal does
// not mean that the name is held. A replicated store may refuse all of several
// concurrent claims.
func askAgain(f *fixture, c *driver.Claim) (bool, error) {
	for {
		row, ok, err := f.store.Acquire(f.Context(), c)
		if verdict := row.Judge(c); ok || err != nil || row.Unknown() || verdict != driver.Granted && verdict != driver.Behind {
			return ok, err
		}
		if row.Stamp.After(c.Stamp) {
			c.Stamp = row.Stamp
		}
		c.Stamp = c.Stamp.Add(time.Microsecond)
		time.Sleep(rand.N(20 * time.Millisecond)) // so that they do not meet again
	}
}

func fenceRises(f *fixture) { // F24
	if f.NoFence {
		f.Skip("the harness says that the store has no fencing token")
	}
	var last int64
	for i := range 6 {
		c := f.claim("holder")
		row := f.mustAcquire(c)
		if row.Fence <= last {
			f.Fatalf("acquisition %d has fence %d after %d", i, row.Fence, last)
		}
		if f.Advance == nil && row.Fence < c.Stamp.UnixMicro() {
			f.Errorf("acquisition %d has fence %d, below the time of its claim, %d", i, row.Fence, c.Stamp.UnixMicro())
		}
		last = row.Fence
		if i%2 == 0 {
			f.mustRelease(c, nil)
		} else {
			f.advance(lease + time.Second)
		}
	}
}

// A failover, or a backup that was restored, brings an older state of a row
// back. The fences that are lost must not be given again.
func rowGoesBack(f *fixture) { // F56
	if f.Save == nil || f.NoFence {
		f.Skip("the harness cannot bring a row back, or says that there is no fencing token")
	}
	for name, saved := range map[string]func(f *fixture){
		"never acquired":       func(*fixture) {},
		"released":             func(f *fixture) { f.mustRelease(f.used(), nil) },
		"held by a dead one":   func(f *fixture) { f.used() },
		"a claim was given up": func(f *fixture) { f.mustAbandon(f.claim("gives up")) },
	} {
		for _, lost := range []int{1, 6, 50} {
			f.run(fmt.Sprint(name, ", ", lost, " owners lost"), func(f *fixture) {
				f.name = newName()
				saved(f)
				restore := f.Save(f.T, f.store, f.name)
				f.advance(lease + time.Second)
				highest := int64(0)
				for range lost {
					c := f.claim("lost")
					highest = f.mustAcquire(c).Fence
					f.mustRelease(c, completing(driver.Row{}, "lost", f.now.Add(time.Hour)))
				}
				restore()
				c := f.eventClaim("next", "lost")
				if row := f.mustAcquire(c); row.Fence <= highest {
					f.Errorf("fence %d after %d, which the store has lost", row.Fence, highest)
				} else if row.Memory.Has("lost", f.now) {
					f.Error("the row did not go back")
				}
				f.mustRelease(c, nil)
			})
		}
	}
}

// used acquires the name.
func (f *fixture) used() *driver.Claim {
	f.Helper()
	c := f.claim("earlier owner")
	f.mustAcquire(c)
	return c
}

func repeatedAcquire(f *fixture) { // F1
	c := f.claim("first")
	first := f.mustAcquire(c)
	row, ok := f.acquire(c)
	if !ok && row.Token != c.Token {
		f.Fatalf("the repeated claim does not recognise its own row: %+v", row)
	}
	if row.Fence < first.Fence || row.Until.After(first.Until) {
		f.Errorf("the repeated claim has fence %d until %v, the first had %d until %v", row.Fence, row.Until, first.Fence, first.Until)
	}
	f.mustRelease(c, nil)
}

func repeatedRelease(f *fixture) { // F5
	c := f.eventClaim("first", "e1")
	f.mustAcquire(c)
	f.mustRelease(c, nil)
	if row, ok := f.release(c, nil); ok || row.Token != "" || row.Event != "" || row.Holder != "" {
		f.Errorf("the second release was applied (%v), or the row still has an owner: %+v", ok, row)
	}
	f.mustAcquire(f.claim("second"))
}

func lateHolder(f *fixture) { // F21
	first := f.eventClaim("late", "e1")
	row := f.mustAcquire(first)
	f.advance(lease + time.Second)
	second := f.eventClaim("successor", "e1")
	f.mustAcquire(second)
	if _, ok := f.release(first, nil); ok {
		f.Error("the late holder's release was applied")
	}
	if _, ok := f.release(first, completing(row, "e1", f.now.Add(time.Hour))); ok {
		f.Error("the late holder's completion was applied")
	}
	// A shorter one may be refused for its end, by a store that rounds leases up.
	if _, ok := f.renew(first, f.now.Add(2*lease)); ok {
		f.Error("the late holder's renewal was applied")
	}
	if row := f.mustRefuse(f.claim("third")); !f.NoDetail && (row.Token != second.Token || len(row.Memory.Completed) != 0) {
		f.Errorf("the successor's row was changed: %+v", row)
	}
	f.mustRelease(second, nil)
}

func renew(f *fixture) { // F4
	c := f.claim("holder")
	f.mustAcquire(c)
	f.advance(lease - time.Second)
	until := f.now.Add(lease)
	for range 2 { // the second repeats the first, whose answer was lost
		if row, ok := f.renew(c, until); !ok && row.Token != c.Token {
			f.Fatalf("renewal refused by %+v", row)
		}
	}
	if f.Advance == nil {
		f.renew(c, until.Add(-5*time.Second)) // an earlier renewal that arrives late
	}
	f.advance(lease - time.Second)
	f.mustRefuse(f.claim("contender"))
	f.advance(2 * time.Second)
	f.mustAcquire(f.claim("successor"))
}

// A process that was frozen past the end of its lease finds it lost, by a store
// with a clock of its own.
func lateRenewal(f *fixture) { // F15, F19
	if f.Advance == nil {
		f.Skip("the store judges by the times in the requests")
	}
	frozen := f.claim("frozen")
	f.mustAcquire(frozen)
	f.advance(lease + 4*time.Second) // more than a store that counts whole seconds adds
	if row, ok := f.renew(frozen, f.now.Add(lease)); ok || !f.NoDetail && row.Token == frozen.Token && !row.Until.Before(f.now) {
		f.Errorf("a renewal of a lease that has ended: applied %v, %+v", ok, row)
	}
	f.mustAcquire(f.claim("successor"))
}

func renewNeverRevives(f *fixture) { // F4, F23
	c := f.claim("holder")
	if _, ok := f.renew(c, c.Until); ok {
		f.Error("a renewal created a row")
	}
	f.mustAcquire(c)
	f.mustRelease(c, nil)
	if _, ok := f.renew(c, c.Until.Add(time.Second)); ok {
		f.Error("a renewal brought a released lock back")
	}
	f.mustAcquire(f.claim("other"))
}

// timeZones shows that a lease lasts as long for those whose clocks show the
// same instant in another time zone.
func timeZones(f *fixture) {
	east, west := time.FixedZone("east", 5*3600), time.FixedZone("west", -5*3600)
	in := func(zone *time.Location, c *driver.Claim) *driver.Claim {
		c.Now, c.Stamp, c.Until, c.DeleteAfter = c.Now.In(zone), c.Stamp.In(zone), c.Until.In(zone), c.DeleteAfter.In(zone)
		return c
	}
	f.mustAcquire(in(west, f.claim("in the west")))
	f.mustRefuse(in(east, f.claim("in the east")))
	f.advance(lease + time.Second)
	f.mustAcquire(in(east, f.claim("in the east")))
	f.mustRefuse(in(west, f.claim("in the west")))
}
