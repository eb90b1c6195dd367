package middleware

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// batch runs a handler of one record for all records of an event.
type batch[R any] struct {
	*decorator
	key     keyfuncs.Func[R]
	handler func(context.Context, R) error
}

func newBatch[R any](key keyfuncs.Func[R], handler func(context.Context, R) error, opts []Option) *batch[R] {
	switch {
	case key == nil:
		panic("lambdalock: the key function is nil")
	case handler == nil:
		panic("lambdalock: the handler is nil")
	}
	s := newSettings(reflect.TypeFor[R](), opts)
	if s.each.concurrency == 0 {
		s.each.concurrency = DefaultConcurrency
	}
	checkPolicies(reflect.TypeOf(handler), s)
	return &batch[R]{decorator: newDecorator(s), key: key, handler: handler}
}

// delivery is one batch being handled. A record waits for the one before it in its
// group, and for the one before it with the same name, so that it never meets a lock
// of its own batch.
type delivery[R any] struct {
	*batch[R]
	ctx     context.Context
	source  source[R]
	records []R
	stop    time.Time // no record begins after it; zero: none
	slots   []slot
	ready   chan int
	workers sync.WaitGroup

	mu   sync.Mutex
	left int
}

// slot is what is known about one record.
type slot struct {
	key   lock.Key
	err   error // at first that of the key function
	waits int   // for that many records
	// The records that wait for this one. No record waits for itself, and the first
	// record waits for none, so 0 means none.
	nextInGroup, nextOfName int
	blocked                 bool // a record before it in its group failed
}

var (
	errBlocked  = errors.New("lambdalock: not begun, because an earlier record of its group failed")
	errNotBegun = errors.New("lambdalock: not begun, because the deadline is too near")
	errGoexit   = errors.New("lambdalock: the handler ended its goroutine with runtime.Goexit")
)

// run returns one error for each record, nil for those that were completed or
// skipped.
func (b *batch[R]) run(ctx context.Context, src source[R], records []R) []error {
	d := &delivery[R]{batch: b, ctx: ctx, source: src, records: records, left: len(records)}
	d.stop, _ = invocation.LastStart(ctx, b.engine.Reserve)
	d.ready = make(chan int, len(records))
	d.chain()
	d.ctx = invocation.WithBatch(ctx, d.together())
	for range min(b.each.concurrency, len(records)) {
		d.workers.Go(d.work)
	}
	d.workers.Wait()
	return d.errors()
}

// chain computes all keys before any record begins, because a handler may change
// what records share.
func (d *delivery[R]) chain() {
	d.slots = make([]slot, len(d.records))
	lastInGroup, lastOfName := map[string]int{}, map[string]int{}
	for i := range d.records {
		s := &d.slots[i]
		s.key, s.err = d.keyOf(i)
		if before, ok := follow(lastInGroup, d.groupOf(i), i); ok {
			d.slots[before].nextInGroup = i
			s.waits++
		}
		if before, ok := follow(lastOfName, s.key.Name, i); ok {
			d.slots[before].nextOfName = i
			s.waits++
		}
	}
	for i := range d.slots {
		if d.slots[i].waits == 0 {
			d.ready <- i
		}
	}
}

// groupOf returns the group within which record i keeps its order, or "".
func (d *delivery[R]) groupOf(i int) string {
	switch {
	case d.source.group == nil:
		return ""
	case d.each.byName && !d.source.strict:
		return d.slots[i].key.Name
	}
	return d.source.group(&d.records[i])
}

// follow makes i the last record of chain, and returns the one before. The chain ""
// has no order.
func follow(last map[string]int, chain string, i int) (before int, ok bool) {
	if chain == "" {
		return 0, false
	}
	before, ok = last[chain]
	last[chain] = i
	return before, ok
}

// together returns the events that must not be forgotten for lack of room while the
// batch lasts. An event with an Order needs no room, because its order tells.
func (d *delivery[R]) together() *invocation.Batch {
	b := &invocation.Batch{}
	for i := range d.slots {
		if k := d.slots[i].key; k.Event != "" && k.Order == "" {
			b.Add(k.Name, k.Event)
		}
	}
	return b
}

func (d *delivery[R]) keyOf(i int) (k lock.Key, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
		if e := (*lock.KeyError)(nil); errors.As(err, &e) && e != nil {
			located := *keyError(err) // a copy: the error may be one value for all records
			located.Field = d.source.placeOf(&d.records[i], i) + "." + e.Field
			err = &located
		}
	}()
	if err := d.source.broken[i]; err != nil {
		return lock.Key{}, err
	}
	return d.key(d.ctx, d.records[i])
}

// work handles records until none is left.
func (d *delivery[R]) work() {
	current := -1
	defer func() {
		if current >= 0 { // Goexit: the other records still need a worker
			d.finish(current, errGoexit)
			d.workers.Go(d.work)
		}
	}()
	for current = range d.ready {
		d.finish(current, d.handle(current))
		current = -1
	}
}

// finish lets the records that waited for i begin.
func (d *delivery[R]) finish(i int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.slots[i]
	s.err = err
	if next := s.nextInGroup; next > 0 {
		d.slots[next].blocked = d.slots[next].blocked || err != nil
		d.pass(next)
	}
	if next := s.nextOfName; next > 0 {
		d.pass(next)
	}
	if d.left--; d.left == 0 {
		close(d.ready)
	}
}

// pass lets record i begin if it waits for no other.
func (d *delivery[R]) pass(i int) {
	if d.slots[i].waits--; d.slots[i].waits == 0 {
		d.ready <- i
	}
}

func (d *delivery[R]) handle(i int) (err error) {
	s := &d.slots[i]
	switch {
	case s.blocked:
		return errBlocked
	case !d.stop.IsZero() && !time.Now().Before(d.stop):
		return errNotBegun
	case d.ctx.Err() != nil:
		return fmt.Errorf("%w: %w", errNotBegun, context.Cause(d.ctx))
	}
	returned := false
	defer func() {
		switch p := recover(); {
		case p != nil:
			err = &PanicError{Value: p, Stack: debug.Stack()}
			d.reportPanic(i, err)
		case !returned: // Goexit, or a panic with nil, which must not look like success
			err = errGoexit
		}
	}()
	err = d.locked(d.ctx, s.key, s.err, func(ctx context.Context) error {
		err := d.watched(ctx, i, d.records[i])
		if err != nil {
			// If the answer to the source only names the failed records, Lambda never sees err.
			d.report(d.ctx, lock.Observation{Outcome: OutcomeHandlerFailed, Key: s.key, Err: err})
		}
		return err
	})
	returned = true
	return err
}

// reportPanic reports a panic. It may be one of the observer or the log handler, which
// may panic again and would end the process on this goroutine; the record has the
// first panic.
func (d *delivery[R]) reportPanic(i int, err error) {
	defer func() { _ = recover() }()
	d.report(d.ctx, lock.Observation{Outcome: OutcomeHandlerFailed, Key: d.slots[i].key, Err: err})
}

// watched runs the handler of record i.
func (d *delivery[R]) watched(ctx context.Context, i int, r R) (err error) {
	stop := d.watch(ctx, i)
	defer func() {
		if failed := stop(); failed != nil {
			err = failed
		}
	}()
	return d.handler(ctx, r)
}

// errors returns the error of each record. It reports those that were not begun
// together, because there may be thousands.
func (d *delivery[R]) errors() []error {
	errs := make([]error, len(d.slots))
	untouched, first := 0, -1
	for i := range d.slots {
		errs[i] = d.slots[i].err
		if errors.Is(errs[i], errBlocked) || errors.Is(errs[i], errNotBegun) {
			if untouched++; first < 0 {
				first = i
			}
		}
	}
	if untouched > 0 {
		d.report(d.ctx, lock.Observation{
			Outcome: OutcomeNotBegun, Key: d.slots[first].key,
			Err: fmt.Errorf("%d of %d records are returned for redelivery, the first of them: %w", untouched, len(errs), errs[first]),
		})
	}
	if d.each.raise {
		for _, err := range errs {
			if p := (*PanicError)(nil); errors.As(err, &p) {
				panic(p.Value)
			}
		}
	}
	return errs
}
