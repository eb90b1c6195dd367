package locktest

import (
	"context"
	"errors"
	"sync"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Fault is what a [Faulty] store does with one request.
type Fault int

// The faults.
const (
	None        Fault = iota
	Drop              // not applied, connection lost
	LoseAnswer        // applied, connection lost
	Throttle          // not applied, because the store is asked for too much
	Conflict          // not applied, because another write of the row was under way
	Deny              // not applied, and never will be
	Hang              // not applied, no answer before the context ends
	HangApplied       // applied, no answer before the context ends
	Late              // no answer before the context ends, and applied when Arrive says so
)

// Op names a store operation.
type Op string

// The operations.
const (
	Acquire Op = "acquire"
	Renew   Op = "renew"
	Release Op = "release"
)

// Faulty is a store that fails on purpose and counts what it was asked.
type Faulty struct {
	driver.Store
	mu      sync.Mutex
	planned map[Op][]Fault
	always  map[Op]Fault
	count   map[Op]int
	late    []func()
}

// NewFaulty wraps a store.
func NewFaulty(s driver.Store) *Faulty {
	return &Faulty{Store: s, planned: map[Op][]Fault{}, always: map[Op]Fault{}, count: map[Op]int{}}
}

// Plan sets the faults of the next requests of op, in order.
func (f *Faulty) Plan(op Op, faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.planned[op] = faults
}

// Always sets the fault of all requests of op that have no planned one.
func (f *Faulty) Always(op Op, fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.always[op] = fault
}

// Requests tells how many requests of op were made.
func (f *Faulty) Requests(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count[op]
}

// Arrive applies the requests that are late, in the order in which they were sent. Each
// call applies them again, as copies of them might be.
func (f *Faulty) Arrive() {
	f.mu.Lock()
	late := f.late
	f.mu.Unlock()
	for _, apply := range late {
		apply()
	}
}

func (f *Faulty) next(op Op) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count[op]++
	if p := f.planned[op]; len(p) > 0 {
		f.planned[op] = p[1:]
		return p[0]
	}
	return f.always[op]
}

var errInjected = errors.New("injected fault")

type answer func(context.Context) (driver.Row, bool, error)

func (f *Faulty) do(ctx context.Context, op Op, apply answer) (driver.Row, bool, error) {
	fault := f.next(op)
	var row driver.Row
	var ok bool
	var err error
	if fault == None || fault == LoseAnswer || fault == HangApplied {
		row, ok, err = apply(ctx)
	}
	switch fault {
	case None:
		return row, ok, err
	case Throttle, Conflict:
		return driver.Row{}, false, &driver.Error{Store: "faulty", Temporary: true, Rejected: true, Conflict: fault == Conflict, Err: errInjected}
	case Deny:
		return driver.Row{}, false, &driver.Error{Store: "faulty", Action: "test:Deny", Rejected: true, Err: errInjected}
	case Late:
		f.mu.Lock()
		f.late = append(f.late, func() { _, _, _ = apply(context.WithoutCancel(ctx)) })
		f.mu.Unlock()
		<-ctx.Done()
		return driver.Row{}, false, ctx.Err()
	case Hang, HangApplied:
		<-ctx.Done()
		return driver.Row{}, false, ctx.Err()
	}
	return driver.Row{}, false, &driver.Error{Store: "faulty", Temporary: true, Err: errInjected}
}

// Acquire implements [driver.Store].
func (f *Faulty) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	claim := *c // the engine dates its claim anew; what is late stays as it was sent
	return f.do(ctx, Acquire, func(ctx context.Context) (driver.Row, bool, error) { return f.Store.Acquire(ctx, &claim) })
}

// Renew implements [driver.Store].
func (f *Faulty) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	return f.do(ctx, Renew, func(ctx context.Context) (driver.Row, bool, error) { return f.Store.Renew(ctx, r) })
}

// Release implements [driver.Store].
func (f *Faulty) Release(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	return f.do(ctx, Release, func(ctx context.Context) (driver.Row, bool, error) { return f.Store.Release(ctx, s) })
}
