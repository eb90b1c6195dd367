package locktest

import (
	"context"
	"errors"
	"sync"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Fault is what goes wrong with one request to a [Faulty] store.
type Fault int

// The faults. A request that hangs returns the error of its context, once that
// has ended.
const (
	None          Fault = iota // applied and answered
	DropBefore                 // the connection breaks before the request is applied
	ApplyThenDrop              // applied, and the connection breaks before the answer
	Throttle                   // rejected: the store is asked for more than it takes
	Conflict                   // rejected: another write of the row is under way
	Deny                       // rejected, as every later request would be
	Hang                       // not applied, and never answered
	ApplyThenHang              // applied, and never answered
	HangThenApply              // never answered, and applied when ApplyLate is called
)

// Op names a method of a store.
type Op string

// The methods.
const (
	Acquire Op = "acquire"
	Renew   Op = "renew"
	Release Op = "release"
)

// Faulty is a store that fails on purpose and counts its requests. It is safe
// for concurrent use.
type Faulty struct {
	driver.Store
	mu      sync.Mutex
	planned map[Op][]Fault
	always  map[Op]Fault
	count   map[Op]int
	late    []func()
}

// NewFaulty returns a Faulty that sends its requests on to s. Without
// [Faulty.Plan] or [Faulty.Always] nothing goes wrong.
func NewFaulty(s driver.Store) *Faulty {
	return &Faulty{Store: s, planned: map[Op][]Fault{}, always: map[Op]Fault{}, count: map[Op]int{}}
}

// Plan sets the faults of the next requests of op, in order. It replaces an
// earlier plan.
func (f *Faulty) Plan(op Op, faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.planned[op] = faults
}

// Always sets the fault of every request of op that has no planned one.
func (f *Faulty) Always(op Op, fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.always[op] = fault
}

// Requests returns how many requests of op were made.
func (f *Faulty) Requests(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count[op]
}

// ApplyLate applies the requests that met [HangThenApply], in the order in
// which they were sent. Each call applies all of them again, because a network
// may deliver several copies of a request.
func (f *Faulty) ApplyLate() {
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

type request func(context.Context) (driver.Row, bool, error)

func (f *Faulty) send(ctx context.Context, op Op, apply request) (driver.Row, bool, error) {
	fault := f.next(op)
	switch fault {
	case None:
		return apply(ctx)
	case ApplyThenDrop, ApplyThenHang:
		_, _, _ = apply(ctx)
	case HangThenApply:
		f.mu.Lock()
		f.late = append(f.late, func() { _, _, _ = apply(context.WithoutCancel(ctx)) })
		f.mu.Unlock()
	}
	err := &driver.Error{Store: "faulty", Temporary: true, Err: errInjected}
	switch fault {
	case Hang, ApplyThenHang, HangThenApply:
		<-ctx.Done()
		return driver.Row{}, false, ctx.Err()
	case Throttle:
		err.Rejected = true
	case Conflict:
		err.Rejected, err.Conflict = true, true
	case Deny:
		err.Rejected, err.Temporary, err.Action = true, false, "test:Deny"
	}
	return driver.Row{}, false, err
}

// Acquire implements [driver.Store].
func (f *Faulty) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	claim := *c // the caller dates its claim anew; a late copy keeps the old date
	return f.send(ctx, Acquire, func(ctx context.Context) (driver.Row, bool, error) { return f.Store.Acquire(ctx, &claim) })
}

// Renew implements [driver.Store].
func (f *Faulty) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	return f.send(ctx, Renew, func(ctx context.Context) (driver.Row, bool, error) { return f.Store.Renew(ctx, r) })
}

// Release implements [driver.Store].
func (f *Faulty) Release(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	return f.send(ctx, Release, func(ctx context.Context) (driver.Row, bool, error) { return f.Store.Release(ctx, s) })
}
