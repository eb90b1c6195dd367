package middleware

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

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
	s := newSettings(opts)
	if s.each.concurrency == 0 {
		s.each.concurrency = DefaultConcurrency
	}
	checkPolicies(reflect.TypeOf(handler), s)
	return &batch[R]{decorator: newDecorator(s), key: key, handler: handler}
}

// delivery is one batch at work. A record waits for the one before it in its group, and
// for the one before it with the same name, so that it never meets a lock of its
// own batch.
type delivery[R any] struct {
	*batch[R]
	ctx     context.Context
	source  source[R]
	records []R
	stop    time.Time // nothing begins after it; zero: none
	slots   []slot
	ready   chan int
	workers sync.WaitGroup

	mu   sync.Mutex
	left int
}

// slot is what is known of one record.
type slot struct {
	key     lock.Key
	err     error // also of the key, before the record is begun
	waits   int   // for that many records
	next    [2]int
	blocked bool // a record before it in its group failed
}

// The chains that a record is in. No record follows the first one, so 0 ends a chain.
const (
	sameGroup = iota
	sameName
)

var (
	errBlocked  = errors.New("lambdalock: not begun, because an earlier record of its group failed")
	errNotBegun = errors.New("lambdalock: not begun, because the deadline is too near")
	errGoexit   = errors.New("lambdalock: the handler ended its goroutine with runtime.Goexit")
)

// run returns one error for each record, nil for those that are completed.
func (b *batch[R]) run(ctx context.Context, src source[R], records []R) []error {
	d := &delivery[R]{batch: b, ctx: ctx, source: src, records: records, left: len(records)}
	d.stop, _ = b.locker.LastStart(ctx)
	d.ready = make(chan int, len(records))
	d.chain()
	d.ctx = lock.WithDelivery(ctx, d.keys())
	for range min(b.each.concurrency, len(records)) {
		d.workers.Go(d.work)
	}
	d.workers.Wait()
	return d.errors()
}

// chain computes all keys before anything runs, since a handler may change what
// records share.
func (d *delivery[R]) chain() {
	d.slots = make([]slot, len(d.records))
	var last [2]map[string]int
	last[sameGroup], last[sameName] = map[string]int{}, map[string]int{}
	for i := range d.records {
		s := &d.slots[i]
		s.key, s.err = d.keyOf(i)
		group := ""
		switch {
		case d.source.group == nil:
		case d.each.byName && !d.source.strict:
			group = s.key.Name
		default:
			group = d.source.group(&d.records[i])
		}
		for c, member := range [2]string{sameGroup: group, sameName: s.key.Name} {
			if member == "" {
				continue
			}
			if before, ok := last[c][member]; ok {
				d.slots[before].next[c] = i
				s.waits++
			}
			last[c][member] = i
		}
	}
	for i := range d.slots {
		if d.slots[i].waits == 0 {
			d.ready <- i
		}
	}
}

func (d *delivery[R]) keys() []lock.Key {
	keys := make([]lock.Key, len(d.slots))
	for i := range d.slots {
		keys[i] = d.slots[i].key
	}
	return keys
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
	for c, next := range s.next {
		if next == 0 {
			continue
		}
		after := &d.slots[next]
		after.blocked = after.blocked || c == sameGroup && err != nil
		if after.waits--; after.waits == 0 {
			d.ready <- next
		}
	}
	if d.left--; d.left == 0 {
		close(d.ready)
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
			d.workFailed(i, err)
		case !returned: // Goexit, or a panic with nil, which must not look like success
			err = errGoexit
		}
	}()
	err = locked(d.ctx, d.decorator, s.key, s.err, d.records[i], func(ctx context.Context, r R) error {
		err := d.watched(ctx, i, r)
		if err != nil {
			// Where the answer to the source only names the failed records, Lambda never sees it.
			d.locker.Report(d.ctx, lock.Observation{Kind: lock.WorkFailed, Key: s.key, Err: err})
		}
		return err
	})
	returned = true
	return err
}

// workFailed reports a panic, also one of the observer or the log handler, which may panic
// again: on this goroutine that would end the process. The record has the first one.
func (d *delivery[R]) workFailed(i int, err error) {
	defer func() { _ = recover() }()
	d.locker.Report(d.ctx, lock.Observation{Kind: lock.WorkFailed, Key: d.slots[i].key, Err: err})
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

// errors is the outcome of each record. Those that were not begun are reported
// together: there may be thousands.
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
		d.locker.Report(d.ctx, lock.Observation{
			Kind: lock.NotBegun, Key: d.slots[first].key,
			Err: fmt.Errorf("%d of %d records are returned to be delivered again, the first of them: %w", untouched, len(errs), errs[first]),
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
