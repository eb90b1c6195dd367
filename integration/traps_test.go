package integration_test

import (
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// trap is one store, a network on which a test decides which fault every write
// meets, and a clock that it moves. It is the plan of that network, and keeps
// the late copies.
type trap struct {
	*testing.T
	backend
	store driver.Store
	wire  *wire
	name  string
	now   time.Time

	mu    sync.Mutex
	meets fault.Fault
	late  []func()
}

// TestTraps shows on every backend what happens when requests and answers are
// lost, and when copies of requests arrive late.
func TestTraps(t *testing.T) { // F1, F3, F21
	inEach(t, func(t *testing.T, b backend, p place) {
		for name, test := range map[string]func(*trap){
			"lost request":    (*trap).lostRequest,
			"lost answer":     (*trap).lostAnswer,
			"ghost":           (*trap).ghost,
			"abandoned ghost": (*trap).abandonedGhost,
			"late holder":     (*trap).lateHolder,
		} {
			t.Run(name, func(t *testing.T) { test(newTrap(t, b, p)) })
		}
	})
}

func newTrap(t *testing.T, b backend, p place) *trap {
	f := &trap{T: t, backend: b, wire: newWire(0), name: "trap/" + rand.Text(), now: time.Now().UTC().Truncate(time.Microsecond)}
	if b.ownClock {
		f.wire.clock = newMovedClock()
	}
	f.wire.plan, f.wire.late = f, f
	f.store = p.store(t, f.wire)
	if c, ok := f.store.(driver.Checker); ok { // as during INIT, so that what is lost is not a check of the server
		if err := c.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// Next implements fault.Plan. Only servers of objects tell reads from writes.
func (f *trap) Next(op string) fault.Decision {
	f.mu.Lock()
	defer f.mu.Unlock()
	if op == http.MethodGet {
		return fault.Decision{}
	}
	return fault.Decision{Fault: f.meets}
}

// After implements fault.Late.
func (f *trap) After(_ time.Duration, apply func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late = append(f.late, apply)
}

// meet runs a step whose writes all meet one fault.
func (f *trap) meet(meets fault.Fault, step func()) {
	f.set(meets)
	defer f.set(fault.None)
	step()
}

func (f *trap) set(meets fault.Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.meets = meets
}

// deliverLate applies the late copies of all requests so far and keeps them
// for the next time. The last one comes first: a copy of a release would undo
// what a copy of the claim has done.
func (f *trap) deliverLate() {
	f.mu.Lock()
	late := slices.Clone(f.late)
	f.mu.Unlock()
	if len(late) == 0 {
		f.Error("no request is late, so the test shows nothing")
	}
	for _, deliver := range slices.Backward(late) {
		deliver()
	}
}

func (f *trap) advance(d time.Duration) {
	f.now = f.now.Add(d)
	if f.wire.clock != nil {
		f.wire.clock.advance(d)
	}
}

const trapLease = 30 * time.Second

func (f *trap) claim(holder string) *driver.Claim {
	f.advance(time.Millisecond)
	return &driver.Claim{
		Name: f.name, Event: holder, Token: rand.Text(), Holder: holder,
		Now: f.now, Stamp: f.now, Until: f.now.Add(trapLease), DeleteAfter: f.now.Add(24 * time.Hour),
	}
}

// The steps of an owner. Each sends one request of the store.

func (f *trap) acquire(c *driver.Claim) (driver.Row, bool, error) {
	return f.send(func() (driver.Row, bool, error) { return f.store.Acquire(f.Context(), c) })
}

func (f *trap) renew(c *driver.Claim) (driver.Row, bool, error) {
	r := &driver.Renewal{Name: c.Name, Token: c.Token, Now: f.now, Until: c.Until.Add(trapLease), DeleteAfter: c.DeleteAfter}
	return f.send(func() (driver.Row, bool, error) { return f.store.Renew(f.Context(), r) })
}

func (f *trap) release(c *driver.Claim) (driver.Row, bool, error) { return f.settle(c, nil, false) }

func (f *trap) complete(c *driver.Claim) (driver.Row, bool, error) {
	return f.settle(c, &driver.Memory{Completed: []driver.CompletedEvent{{Event: c.Event, Until: f.now.Add(time.Hour).Truncate(time.Millisecond)}}}, false)
}

func (f *trap) abandon(c *driver.Claim) (driver.Row, bool, error) { return f.settle(c, nil, true) }

func (f *trap) settle(c *driver.Claim, memory *driver.Memory, abandon bool) (driver.Row, bool, error) {
	s := &driver.Settlement{Name: c.Name, Token: c.Token, Memory: memory, DeleteAfter: c.DeleteAfter, Abandon: abandon, Stamp: c.Stamp}
	return f.send(func() (driver.Row, bool, error) { return f.store.Settle(f.Context(), s) })
}

// send sends a request. The servers of a quorum have so little time to answer
// that a busy machine may miss it; then send repeats the request, as package
// lock does.
func (f *trap) send(request func() (driver.Row, bool, error)) (driver.Row, bool, error) {
	f.mu.Lock()
	patient := f.splits && f.meets == fault.None
	f.mu.Unlock()
	for {
		row, ok, err := request()
		var e *driver.Error
		if !patient || !errors.As(err, &e) || e.Lasting {
			return row, ok, err
		}
	}
}

// wants returns what checks the end of a step: applied or refused.
func (f *trap) wants(want bool, step string) func(driver.Row, bool, error) driver.Row {
	return func(row driver.Row, ok bool, err error) driver.Row {
		f.Helper()
		if ok != want || err != nil {
			f.Fatalf("%s: applied %v, error %v, want applied %v: %+v", step, ok, err, want, row)
		}
		return row
	}
}

// fails returns what checks that a step failed and may have been applied.
func (f *trap) fails(step string) func(driver.Row, bool, error) {
	return func(row driver.Row, ok bool, err error) {
		f.Helper()
		if err == nil {
			f.Fatalf("%s: no error although its answer was lost: applied %v, %+v", step, ok, row)
		}
		var e *driver.Error
		if errors.As(err, &e) && (e.Unapplied || e.Lasting) {
			f.Errorf("%s: %+v, want a temporary error that does not rule out that it was applied", step, e)
		}
	}
}

// row returns the row as a stranger sees it whose claim it refuses.
func (f *trap) row() driver.Row {
	f.Helper()
	row, ok, err := f.acquire(f.claim("stranger"))
	if ok || err != nil {
		f.Fatalf("a stranger's claim: granted %v, error %v, want it refused", ok, err)
	}
	return row
}

// lostRequest loses a request, and lostAnswer the answer to one that was
// applied. The same request, repeated, has the lock, keeps it or ends it.
func (f *trap) lostRequest() { f.repeated(fault.DropBefore) }    // F1, F4, F5
func (f *trap) lostAnswer()  { f.repeated(fault.ApplyThenDrop) } // F1, F4, F5

var ages = []string{"a new name", "a name with a row"}

func (f *trap) repeated(lost fault.Fault) {
	var fence int64
	for _, age := range ages {
		c := f.claim("e1 of " + age)
		f.meet(lost, func() { f.fails("acquire " + age)(f.acquire(c)) })
		row, ok, err := f.acquire(c)
		if err != nil || !ok && row.Token != c.Token {
			f.Fatalf("the repeated claim of %s: %v, error %v, %+v", age, ok, err, row)
		}
		if row.Fence <= fence {
			f.Errorf("%s: fence %d after %d", age, row.Fence, fence)
		}
		fence = row.Fence
		f.meet(lost, func() { f.fails("renew")(f.renew(c)) })
		if row, ok, err := f.renew(c); err != nil || !ok && row.Token != c.Token {
			f.Fatalf("the repeated renewal: %v, error %v, %+v", ok, err, row)
		}
		f.meet(lost, func() { f.fails("complete")(f.complete(c)) })
		if row, _, err := f.complete(c); err != nil || row.Token == c.Token {
			f.Fatalf("the repeated completion: error %v, %+v", err, row)
		}
		duplicate := f.claim(c.Event)
		if row := f.wants(false, "a duplicate")(f.acquire(duplicate)); row.Judge(duplicate) != driver.Completed {
			f.Errorf("a duplicate of a completed event is refused by %+v", row)
		}
	}
}

// ghost delivers a copy of every request once the lock was released. None of
// them brings it back, or changes the row of the next owner.
func (f *trap) ghost() { // F3
	for _, age := range ages {
		c := f.claim("ghost of " + age)
		f.meet(fault.Duplicate, func() {
			f.wants(true, "acquire "+age)(f.acquire(c))
			f.wants(true, "renew")(f.renew(c))
			f.wants(true, "release")(f.release(c))
		})
		f.deliverLate()
		next := f.claim("next")
		f.wants(true, "acquire after "+age)(f.acquire(next))
		before := f.row()
		f.deliverLate()
		f.wantSame(f.T, before, f.row())
		f.wants(true, "release")(f.release(next))
	}
}

// abandonedGhost gives up a claim whose request is still under way. Once it
// arrives, it is not granted.
func (f *trap) abandonedGhost() { // F2
	for _, age := range ages {
		c := f.claim("ghost of " + age)
		f.meet(fault.DropThenApply, func() { f.fails("acquire " + age)(f.acquire(c)) })
		f.wants(true, "abandon")(f.abandon(c))
		f.deliverLate()
		next := f.claim("next")
		f.wants(true, "acquire after "+age)(f.acquire(next))
		f.wants(true, "release")(f.release(next))
	}
}

// lateHolder lets the requests of an owner arrive after its lease has ended
// and another one has the name. They change nothing, whether they were sent
// before or after.
func (f *trap) lateHolder() { // F3, F20, F21
	for what, step := range map[string]func(*driver.Claim) (driver.Row, bool, error){
		"renewal": f.renew, "release": f.release, "completion": f.complete,
	} {
		f.name, f.late = "late/"+rand.Text(), nil
		first := f.claim("first")
		var fence int64
		f.meet(fault.Duplicate, func() { fence = f.wants(true, "acquire")(f.acquire(first)).Fence })
		f.meet(fault.DropThenApply, func() { f.fails(what)(step(first)) })
		f.advance(trapLease + 2*time.Second)
		second := f.claim("second")
		row := f.wants(true, "take over")(f.acquire(second))
		if row.Previous.Holder != "first" || row.Fence <= fence {
			f.Errorf("%s: took over from %q with fence %d after %d", what, row.Previous.Holder, row.Fence, fence)
		}
		before := f.row()
		f.deliverLate()
		f.wantSame(f.T, before, f.row())
		f.wants(false, "a later "+what)(step(first))
		f.wants(false, "a later claim")(f.acquire(first))
		f.wantSame(f.T, before, f.row())
		f.wants(true, "release")(f.release(second))
	}
}
