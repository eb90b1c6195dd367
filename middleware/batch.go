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
	if s.records.concurrency == 0 {
		s.records.concurrency = DefaultConcurrency
	}
	checkPolicies(reflect.TypeOf(handler), s)
	return &batch[R]{decorator: newDecorator(s), key: key, handler: handler}
}

// work is one run of a batch. A record waits for the one before it in its group, and
// for the one before it with the same name, so that it never meets a lock of its
// own batch.
type work[R any] struct {
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
	w := &work[R]{batch: b, ctx: ctx, source: src, records: records, left: len(records)}
	w.stop, _ = b.locker.LastStart(ctx)
	w.ready = make(chan int, len(records))
	w.chain()
	for range min(b.settings.records.concurrency, len(records)) {
		w.workers.Go(w.work)
	}
	w.workers.Wait()
	return w.errors()
}

// chain computes all keys before anything runs, since a handler may change what
// records share.
func (w *work[R]) chain() {
	w.slots = make([]slot, len(w.records))
	var last [2]map[string]int
	last[sameGroup], last[sameName] = map[string]int{}, map[string]int{}
	for i := range w.records {
		s := &w.slots[i]
		s.key, s.err = w.keyOf(i)
		group := ""
		switch {
		case w.source.group == nil:
		case w.settings.records.byName && !w.source.strict:
			group = s.key.Name
		default:
			group = w.source.group(&w.records[i])
		}
		for c, member := range [2]string{sameGroup: group, sameName: s.key.Name} {
			if member == "" {
				continue
			}
			if before, ok := last[c][member]; ok {
				w.slots[before].next[c] = i
				s.waits++
			}
			last[c][member] = i
		}
	}
	for i := range w.slots {
		if w.slots[i].waits == 0 {
			w.ready <- i
		}
	}
}

func (w *work[R]) keyOf(i int) (k lock.Key, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
		if e, ok := err.(*lock.KeyError); ok {
			located := *e
			located.Field = w.source.placeOf(&w.records[i], i) + "." + e.Field
			err = &located
		}
	}()
	if err := w.source.broken[i]; err != nil {
		return lock.Key{}, err
	}
	return w.key(w.ctx, w.records[i])
}

// work handles records until none is left.
func (w *work[R]) work() {
	current := -1
	defer func() {
		if current >= 0 { // Goexit: the other records still need a worker
			w.finish(current, errGoexit)
			w.workers.Go(w.work)
		}
	}()
	for current = range w.ready {
		w.finish(current, w.handle(current))
		current = -1
	}
}

// finish lets the records that waited for i begin.
func (w *work[R]) finish(i int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.slots[i]
	s.err = err
	for c, next := range s.next {
		if next == 0 {
			continue
		}
		after := &w.slots[next]
		after.blocked = after.blocked || c == sameGroup && err != nil
		if after.waits--; after.waits == 0 {
			w.ready <- next
		}
	}
	if w.left--; w.left == 0 {
		close(w.ready)
	}
}

func (w *work[R]) handle(i int) (err error) {
	s := &w.slots[i]
	switch {
	case s.blocked:
		return errBlocked
	case !w.stop.IsZero() && !time.Now().Before(w.stop):
		return errNotBegun
	case w.ctx.Err() != nil:
		return fmt.Errorf("%w: %w", errNotBegun, context.Cause(w.ctx))
	}
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
			w.locker.Report(w.ctx, lock.Observation{Kind: lock.WorkFailed, Key: s.key, Err: err})
		}
	}()
	return locked(w.ctx, w.decorator, s.key, s.err, w.records[i], func(ctx context.Context, r R) error {
		err := w.handler(ctx, r)
		if err != nil {
			// Where the answer to the source only names the failed records, Lambda never sees it.
			w.locker.Report(ctx, lock.Observation{Kind: lock.WorkFailed, Key: s.key, Err: err})
		}
		return err
	})
}

// errors is the outcome of each record. Those that were not begun are reported
// together: there may be thousands.
func (w *work[R]) errors() []error {
	errs := make([]error, len(w.slots))
	untouched, first := 0, -1
	for i := range w.slots {
		errs[i] = w.slots[i].err
		if errors.Is(errs[i], errBlocked) || errors.Is(errs[i], errNotBegun) {
			if untouched++; first < 0 {
				first = i
			}
		}
	}
	if untouched > 0 {
		w.locker.Report(w.ctx, lock.Observation{
			Kind: lock.NotBegun, Key: w.slots[first].key,
			Err: fmt.Errorf("%d of %d records are returned to be delivered again, the first of them: %w", untouched, len(errs), errs[first]),
		})
	}
	if w.settings.records.raise {
		for _, err := range errs {
			if p := (*PanicError)(nil); errors.As(err, &p) {
				panic(p.Value)
			}
		}
	}
	return errs
}
