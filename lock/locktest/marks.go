package locktest

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// marks asks an owner for one more run. Its settlement is refused while it has
// not seen the last mark, and a late mark reaches no other owner.
func marks(f *fixture) { // F1, F3, F4, F21
	coalescer, ok := f.store.(driver.Coalescer)
	if !ok {
		f.Skip("the store is not a driver.Coalescer")
	}
	mark := func(c *driver.Claim, want bool) {
		f.Helper()
		if row, ok, err := coalescer.Mark(f.Context(), &driver.Mark{Name: c.Name, Token: c.Token, Stamp: f.now}); ok != want || err != nil {
			f.Errorf("a mark for %s: applied %v, %+v, %v", c.Holder, ok, row, err)
		}
	}
	settle := func(c *driver.Claim, below int64) (driver.Row, bool) {
		f.Helper()
		row, ok, err := f.store.Settle(f.Context(), &driver.Settlement{
			Name: c.Name, Token: c.Token, DeleteAfter: c.DeleteAfter, Stamp: c.Stamp, MarksBelow: below, Memory: completing(driver.Row{}, c.Event, f.now.Add(time.Hour)),
		})
		if err != nil {
			f.Fatal(err)
		}
		return row, ok
	}
	c := f.eventClaim("owner", "e1")
	mark(c, false) // the name has no owner
	c.TakesMarks = true
	if row := f.mustAcquire(c); row.Marks != 0 || !row.Coalesces() {
		f.Errorf("a new owner that takes marks has the row %+v", row)
	}
	if row := f.mustRefuse(f.claim("refused")); !f.NoDetail && !row.Coalesces() {
		f.Errorf("who is refused cannot ask an owner that takes marks: %+v", row)
	}
	late := f.claim("late")
	mark(c, true)
	mark(f.claim("another"), false)
	row, ok := settle(c, 1)
	if ok || !f.NoDetail && (row.Token != c.Token || row.Marks != 1 || row.Memory.Has("e1", f.now)) {
		f.Errorf("the settlement of an owner that has not seen the mark: applied %v, %+v", ok, row)
	}
	if row, ok := f.renew(c, c.Until.Add(time.Second)); !ok || !f.NoDetail && (row.Marks != 1 || !row.TakesMarks) {
		f.Errorf("a renewal: applied %v, %+v", ok, row)
	}
	if row, ok := settle(c, 2); !ok {
		f.Errorf("the settlement of an owner that has seen the mark was refused by %+v", row)
	}
	mark(c, false)
	f.mustRefuse(late) // the mark raised the stamp
	next := f.claim("next")
	if row := f.mustAcquire(next); row.Marks != 0 || row.Coalesces() {
		f.Errorf("the next owner, which takes no marks, has the row %+v", row)
	}
	if row := f.mustRefuse(f.claim("refused, too")); !f.NoDetail && row.Coalesces() {
		f.Errorf("an owner that takes no marks seems to: %+v", row)
	}
	mark(c, false)
	mark(next, true)
	f.mustRelease(next, nil) // it fails, and the mark stays
	dead := f.claim("dead")
	dead.TakesMarks = true
	f.mustAcquire(dead)
	mark(dead, true)
	f.advance(2 * lease)
	mark(dead, true) // the name was not taken over yet
	last := f.eventClaim("last", "e2")
	if row := f.mustAcquire(last); row.Marks != 3 || row.Coalesces() {
		f.Errorf("a takeover has the marks of the dead owner and of the one that failed, and takes none: %+v", row)
	}
	mark(dead, false)
	if _, ok := settle(last, 4); !ok {
		f.Error("marks of the dead owner keep the next one from its end")
	}
	closesForMarks(f, coalescer, settle)
}

// closesForMarks closes a row, twice because a copy may come: until an event is
// completed, no one marks it, and what is late closes no other row.
func closesForMarks(f *fixture, coalescer driver.Coalescer, settle func(*driver.Claim, int64) (driver.Row, bool)) {
	f.Helper()
	mark := func(c *driver.Claim, closes, want bool) {
		f.Helper()
		if row, ok, err := coalescer.Mark(f.Context(), &driver.Mark{Name: c.Name, Token: c.Token, Stamp: f.now, Close: closes}); ok != want || err != nil || ok && !f.NoDetail && closes != (row.Marks == -1) {
			f.Errorf("a mark for %s, closes %v: applied %v, %+v, %v", c.Holder, closes, ok, row, err)
		}
	}
	c := f.eventClaim("closing", "e3")
	mark(c, true, false)
	f.mustAcquire(c)
	mark(c, false, true)
	mark(c, true, true)
	mark(c, false, false)
	mark(c, true, true)
	if _, ok := f.renew(c, c.Until.Add(time.Second)); !ok {
		f.Error("the lease of a closed row cannot be renewed")
	}
	mark(c, false, false)
	f.mustRelease(c, nil) // it failed
	failed := f.eventClaim("after it was closed", "e4")
	f.mustAcquire(failed)
	mark(c, true, false)
	mark(failed, false, false)
	if row, ok := settle(failed, 1); ok || !f.NoDetail && row.Token != failed.Token {
		f.Errorf("a late copy from before the row was closed ends the run that goes on: applied %v, %+v", ok, row)
	}
	if _, ok := settle(failed, 0); !ok {
		f.Error("a closed row keeps its owner from its end")
	}
	next := f.claim("after it was completed")
	f.mustAcquire(next)
	mark(c, true, false)
	mark(next, false, true)
	f.mustRelease(next, nil)
}

// concurrentMarks marks a row several times at once, first alone and then while
// its owner settles: no mark that was applied is lost.
func concurrentMarks(f *fixture) { // F21
	coalescer, ok := f.store.(driver.Coalescer)
	if !ok {
		f.Skip("the store is not a driver.Coalescer")
	}
	settle := func(c *driver.Claim, below int64) bool {
		return f.persist(func() (driver.Row, bool, error) {
			return f.store.Settle(f.Context(), &driver.Settlement{Name: c.Name, Token: c.Token, DeleteAfter: c.DeleteAfter, Stamp: c.Stamp, MarksBelow: below})
		})
	}
	// race returns how many of n marks were applied. Meanwhile it calls also.
	race := func(c *driver.Claim, n int, also func()) int64 {
		var wg sync.WaitGroup
		var marked atomic.Int64
		m := driver.Mark{Name: c.Name, Token: c.Token, Stamp: f.now}
		at := rand.N(n + 1)
		for i := range n + 1 {
			if i == at {
				wg.Go(also)
				continue
			}
			wg.Go(func() {
				if f.persist(func() (driver.Row, bool, error) { return coalescer.Mark(f.Context(), &m) }) {
					marked.Add(1)
				}
			})
		}
		wg.Wait()
		return marked.Load()
	}
	owner := func() *driver.Claim {
		f.name = newName()
		c := f.claim("owner")
		c.TakesMarks = true
		f.mustAcquire(c)
		return c
	}
	c := owner()
	// One mark may count for several that meet, and twice if it arrives again: its
	// owner runs once more after all of them.
	if n := race(c, 16, func() {}); n != 16 || settle(c, 1) || !settle(c, 1000) {
		f.Errorf("%d of 16 marks were applied, or the row has none", n)
	}
	for range 20 {
		settled, c := false, owner()
		if n := race(c, 3, func() { settled = settle(c, 1) }); settled != (n == 0) {
			f.Errorf("%d marks were applied, and the settlement that allows none: %v", n, settled)
		}
	}
}

// persist sends a request until the store answers it. A store may give up while
// others write the row.
func (f *fixture) persist(request func() (driver.Row, bool, error)) bool {
	for try := 1; ; try++ {
		_, ok, err := request()
		var e *driver.Error
		if !errors.As(err, &e) || !e.Unapplied || e.Lasting || try == 100 {
			if err != nil {
				f.Error(err)
			}
			return ok
		}
		time.Sleep(rand.N(20 * time.Millisecond)) // so that they do not meet again
	}
}
