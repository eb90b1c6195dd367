package fault

import (
	"context"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// The requests of a [Store], as plans know them.
const (
	Acquire = "acquire"
	Renew   = "renew"
	Release = "release"
	Mark    = "mark"
	Join    = "join"
)

// Store is a store whose requests meet faults. It is safe for concurrent use.
type Store struct {
	driver.Store
	plan Plan
	late Late
}

// NewStore returns a Store that sends its requests on to s. Its copies are
// applied by late.
func NewStore(s driver.Store, plan Plan, late Late) *Store {
	return &Store{Store: s, plan: plan, late: late}
}

// reply is what a store returns with a nil error.
type reply struct {
	row driver.Row
	ok  bool
}

func (s *Store) send(ctx context.Context, op, name string, apply func(context.Context) (driver.Row, bool, error)) (driver.Row, bool, error) {
	e := Exchange[reply]{
		Apply: func(ctx context.Context, _ bool) (r reply, err error) {
			r.row, r.ok, err = apply(ctx)
			return r, err
		},
		Spoil: func(f Fault, _ reply) (reply, error) { return reply{}, storeError(f) },
	}
	r, err := e.Meet(ctx, nextOf(s.plan, op, name), s.late)
	return r.row, r.ok, err
}

func storeError(f Fault) error {
	err := &driver.Error{Store: "faulty", Err: ErrInjected}
	switch f {
	case Throttle:
		err.Answered, err.Unapplied = true, true
	case Conflict:
		err.Answered, err.Unapplied, err.Conflict = true, true, true
	case Deny:
		err.Answered, err.Unapplied, err.Lasting, err.Action = true, true, true, "test:Deny"
	}
	return err
}

// Acquire implements [driver.Store].
func (s *Store) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	claim := *c // the caller dates its claim anew; a late copy keeps the old date
	return s.send(ctx, Acquire, claim.Name, func(ctx context.Context) (driver.Row, bool, error) { return s.Store.Acquire(ctx, &claim) })
}

// Renew implements [driver.Store].
func (s *Store) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	return s.send(ctx, Renew, r.Name, func(ctx context.Context) (driver.Row, bool, error) { return s.Store.Renew(ctx, r) })
}

// Settle implements [driver.Store].
func (s *Store) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	return s.send(ctx, Release, t.Name, func(ctx context.Context) (driver.Row, bool, error) { return s.Store.Settle(ctx, t) })
}

// Mark implements [driver.Coalescer]. The store below must be one.
func (s *Store) Mark(ctx context.Context, m *driver.Mark) (driver.Row, bool, error) {
	return s.send(ctx, Mark, m.Name, func(ctx context.Context) (driver.Row, bool, error) {
		return s.Store.(driver.Coalescer).Mark(ctx, m)
	})
}

// Join implements [driver.Line]. It is refused if the store below is not one.
func (s *Store) Join(ctx context.Context, name string) (driver.Row, bool, error) {
	line, ok := s.Store.(driver.Line)
	if !ok {
		return driver.Row{}, false, nil
	}
	return s.send(ctx, Join, name, func(ctx context.Context) (driver.Row, bool, error) { return line.Join(ctx, name) })
}

// Scripted is a store with a script of its faults, which keeps the late copies
// until they are asked for.
type Scripted struct {
	*layer
	Script
	Kept
}

// layer is embedded in Scripted so that its field Store is that of the layer:
// the store below.
type layer = Store

// NewScripted returns a Scripted that sends its requests on to s.
func NewScripted(s driver.Store) *Scripted {
	f := &Scripted{}
	f.layer = NewStore(s, &f.Script, &f.Kept)
	return f
}
