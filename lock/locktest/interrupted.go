package locktest

import (
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// interruptedEvents takes over from owners that died. Those that asked for it
// leave their events in the row, for any owner that comes next, until one
// replaces the memory.
func interruptedEvents(f *fixture) { // F3, F19
	if !f.keepsInterrupted() {
		f.Skip("the store keeps no interrupted events")
	}
	die := func(c *driver.Claim) {
		f.Helper()
		f.advance(lease + time.Second)
		late := *c
		late.Until = c.Until.Add(-time.Second)
		if row, ok := f.acquire(&late); ok && len(row.Memory.Interrupted) > 0 && row.Memory.FindInterrupted(c.Event, f.now) != nil {
			f.Errorf("a claim that meets its own copy leaves its event: %+v", row)
		}
	}
	want := map[string]*driver.Claim{}
	check := func(when string, row driver.Row) {
		f.Helper()
		if len(row.Memory.Interrupted) != len(want) {
			f.Errorf("%s: the row has %+v", when, row.Memory.Interrupted)
		}
		for event, c := range want {
			e := row.Memory.FindInterrupted(event, f.now)
			if e == nil || e.Payload != c.Payload || e.Holder != c.Holder || !e.Since.Equal(c.Stamp) || !f.sameEnd(e.Until, c.Until.Add(time.Hour).Truncate(time.Millisecond)) {
				f.Errorf("%s: of event %q the row has %+v", when, event, e)
			}
		}
	}
	keeping := func(holder, event string) *driver.Claim {
		c := f.eventClaim(holder, event)
		c.InterruptedFor = time.Hour
		return c
	}
	first := keeping("é, 100 % of\n it", "e 1%\n")
	first.Payload = "cXV4"
	check("a new row", f.mustAcquire(first))
	if row := f.mustRefuse(f.claim("too early")); !f.NoDetail && row.InterruptedFor != time.Hour {
		f.Errorf("who is refused cannot see that the owner's event is kept: %+v", row)
	}
	if row, ok := f.renew(first, first.Until); !ok || !f.NoDetail && row.InterruptedFor != time.Hour {
		f.Errorf("a renewal: applied %v, %+v", ok, row)
	}
	die(first)
	want[first.Event] = first
	second := keeping("second", "e2")
	check("after a takeover", f.mustAcquire(second))
	check("the same claim again", f.mustAcquire(second))
	die(second)
	want["e2"] = second
	again := keeping("again", "e2")
	check("the event itself", f.mustAcquire(again))
	die(again)
	want["e2"] = again
	mutex := f.claim("mutex")
	row := f.mustAcquire(mutex)
	check("after it died again", row)
	if row.InterruptedFor != 0 {
		f.Errorf("an owner that asks for nothing has the row %+v", row)
	}
	die(mutex)
	last := f.eventClaim("last", "e3")
	check("after one that left nothing", f.mustAcquire(last))
	f.mustRelease(last, nil)
	cooling := keeping("cooling", "e4")
	check("after a release", f.mustAcquire(cooling))
	if _, ok, err := f.store.Settle(f.Context(), &driver.Settlement{
		Name: f.name, Token: cooling.Token, DeleteAfter: cooling.DeleteAfter, Stamp: cooling.Stamp, Now: f.now, Until: f.now.Add(lease), CooldownToken: "cooldown of " + f.name,
	}); !ok || err != nil {
		f.Fatalf("a release with a cooldown: applied %v, error %v", ok, err)
	}
	f.advance(lease + time.Second)
	next := keeping("next", "e5")
	row = f.mustAcquire(next)
	check("after a cooldown", row)
	m := row.Memory
	m.Interrupted = m.Interrupted[1:]
	delete(want, first.Event)
	f.mustRelease(next, &m)
	done := keeping("done", "e6")
	check("after a memory without the first", f.mustAcquire(done))
	f.mustRelease(done, &driver.Memory{})
	clear(want)
	check("after an empty memory", f.mustAcquire(f.claim("free")))
}

// keepsInterrupted reports whether the store can keep the event of a dead
// owner: it has to see the row.
func (f *fixture) keepsInterrupted() bool {
	_, ok := f.store.(driver.Coalescer)
	return ok && !f.NoDetail
}
