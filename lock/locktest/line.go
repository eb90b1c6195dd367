package locktest

import (
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// line gives places to waiters, and lets some of them have the name.
func line(f *fixture) {
	store, ok := f.store.(driver.Line)
	if !ok {
		f.Skip("the store is not a driver.Line")
	}
	join := func() (driver.Row, bool) {
		f.Helper()
		row, ok, err := store.Join(f.Context(), f.name)
		if err != nil {
			f.Fatal(err)
		}
		return row, ok
	}
	if row, ok := join(); ok || !row.Unknown() {
		f.Errorf("place in the line for a name without a row: %v %+v", ok, row)
	}
	owner := f.claim("owner")
	f.mustAcquire(owner)
	for place := int64(1); place <= 2; place++ {
		if row, ok := join(); !ok || row.Token != owner.Token || row.Line != place || row.Served != 0 || row.Stamp.IsZero() {
			f.Errorf("got %v %+v, want place %d and the owner's row", ok, row, place)
		}
	}
	want := func(when string, row driver.Row, served int64) {
		f.Helper()
		if row.Line != 2 || row.Served != served {
			f.Errorf("%s: places %d and %d, want 2 and %d", when, row.Line, row.Served, served)
		}
	}
	if row, ok := f.renew(owner, owner.Until); ok {
		want("renewed", row, 0)
	}
	f.mustRelease(owner, &driver.Memory{})
	if _, ok := join(); ok {
		f.Error("a place in the line for a name that nobody holds")
	}
	second := f.claim("waiter")
	second.Place = 2
	if row := f.mustRefuse(&driver.Claim{Name: f.name, Token: "late", Now: owner.Now, Stamp: owner.Stamp, Until: owner.Until, Place: 1}); !f.NoDetail {
		want("refused", row, 0)
	}
	want("granted", f.mustAcquire(second), 2)
	f.mustRelease(second, nil)
	newcomer := f.eventClaim("newcomer", "e")
	if f.keepsInterrupted() {
		newcomer.InterruptedFor = time.Hour
	}
	want("granted without a place", f.mustAcquire(newcomer), 2)
	if row, ok := join(); !ok || row.Line != 3 {
		f.Errorf("got %v %+v, want place 3", ok, row)
	}
	f.advance(lease + time.Second)
	heir := f.claim("heir")
	heir.Place = 3
	f.mustAcquire(heir)
	if row, ok := f.renew(heir, heir.Until); !ok || row.Served != 3 {
		f.Errorf("after a takeover: applied %v, %+v, want place 3 to be served", ok, row)
	}
}
