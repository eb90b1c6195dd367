package middleware

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/lock"
)

// longestOutage is how long a batch without a deadline waits for a store that
// throttles everything.
const longestOutage = lock.DefaultLease

var (
	errBlocked = errors.New("lambdalock: not begun, because an earlier record of its group failed")
	errEnded   = errors.New("lambdalock: not begun, because the context has ended")
	errFull    = errors.New("lambdalock: not begun, because the store throttles everything")
	errGoexit  = errors.New("lambdalock: the handler ended its goroutine with runtime.Goexit")
)

// lateError is the error of a record that is not begun near the deadline. A
// *lock.DeadlineError would say of a record under Latest that it has run.
type lateError struct{}

func (lateError) Error() string { return "lambdalock: not begun, because the deadline is too near" }

func (lateError) Unwrap() error { return context.DeadlineExceeded }

// task is one record of a delivery.
type task[R any] struct {
	index  int // in the batch
	record *R
	ctx    context.Context // of the record, for what is reported about it; the lock's derives from it
	opened
	err   error // of the key function; when the task has ended, why the record failed
	ended time.Time

	claim      invocation.RecordClaim
	served     *serving   // by the run of a record before this one; nil: by none
	waitsFor   int        // how many tasks must end first
	behind     []*task[R] // wait for this one, and do not begin if it fails
	nextOfName *task[R]   // waits for this one
	again      bool       // it goes back to the queue, because the store throttled its claim
	throttled  error      // what the store said then, the last time; nil: nothing
	blocked    bool       // an earlier record of its group failed
	notBegun   bool       // it was too late, or an earlier record failed
	mayRun     bool       // its handler, or a wrapper in that, did not run for a reason that may pass
}

// openRecord returns the key and the handler of a record. A *lock.NoKeyError
// names the record.
func (d *delivery[R]) openRecord(t *task[R]) (o opened, err error) {
	err = d.source.broken[t.index]
	if err == nil {
		panicked := caught(func() { o, err = d.open(withRecord(d.ctx, t.record), t.record) })
		err = cmp.Or(panicked, err)
		d.ofTenant(d.ctx, &o.key)
		if err == nil && o.key.Name == "" {
			err = &lock.NoKeyError{Reason: "has no key, because the key function returned an empty Name: let the sender fill in the field that it reads, or correct its json tag"}
		}
	}
	var e *lock.NoKeyError
	if errors.As(err, &e) && e != nil {
		located := *keyError(err) // a copy, because the error may be one value for all records
		located.Field = strings.TrimSuffix(d.place(t)+"."+e.Field, ".")
		err = &located
	}
	return o, err
}

func (d *delivery[R]) place(t *task[R]) string { return d.source.placeOf(t.record, t.index) }

// handle runs the handler of one record under the lock, and returns why the
// record failed.
func (d *delivery[R]) handle(t *task[R]) (err error) {
	t.again, t.mayRun = false, false
	if err := d.mayBegin(t); err != nil {
		t.notBegun = true
		if t.throttled != nil {
			err = fmt.Errorf("%w: %w", err, t.throttled)
		}
		return err
	}
	t.ctx = withRecord(d.ctx, t.record)
	if panicked := caught(func() { err = d.surrounded(t) }); panicked != nil {
		t.again = false
		d.reportPanic(t.ctx, t.key, panicked)
		err = panicked
	}
	switch said := isPermanent(err); { // by a panic, the function given to Around, or underLock
	case said && t.claim.Owed:
		return &invocation.OwedError{Key: t.key.Digest(), Err: err}
	case said && t.mayRun:
		return unmarked{err}
	}
	return err
}

// underLock runs the handler of a record under its lock, unless another record
// has served it.
func (d *delivery[R]) underLock(t *task[R]) error {
	if t.isServed() {
		d.report(t.ctx, lock.Observation{Outcome: lock.OutcomeCoalesced, Key: t.key})
		return nil
	}
	t.claim = invocation.RecordClaim{Pace: &d.pace, Serves: d.each.onlyLatest && t.nextOfName != nil}
	ran, reported := false, false
	work := func(ctx context.Context) error {
		ran = true
		ctx, cancel := d.inTime(invocation.Begun(ctx), t)
		defer cancel()
		began := clock.From(ctx).Now()
		err := d.watchedHandler(ctx, t)
		d.ranFor(clock.From(ctx).Now().Sub(began))
		if err != nil {
			// If the partial answer only names the failed records, Lambda never sees err.
			reported = true
			err = d.reportFailed(t, err)
		}
		return err
	}
	var err error
	if claimed := invocation.WithRecordClaim(t.ctx, &t.claim); d.each.onlyLatest {
		err = d.latest(claimed, t.key, t.err, work)
	} else {
		err = d.locked(claimed, t.key, t.err, t.question, work)
	}
	if errors.As(err, new(*lock.InterruptedError)) && !ran { // it fails whenever it comes again
		err = Permanent(err)
	}
	t.mayRun = err != nil && !isPermanent(err) && (isOfLock(err) || !ran && !isOfEvent(err))
	if d.each.onlyLatest && err == nil && (ran || t.claim.Coalescer != "") {
		t.served = &serving{except: t.claim.Coalescer, by: t.key}
	}
	if t.claim.Throttled {
		t.again, t.throttled = true, err
	}
	switch {
	case ran && !reported && errors.As(err, new(*lock.DeadlineError)): // the handler succeeded, and has to run once more
		err = d.reportFailed(t, err)
	case !ran && err != nil && t.claim.Undecided:
		err = d.reportFailed(t, err)
	}
	return err
}

// isOfEvent reports whether an error says what is wrong with the event itself,
// or that it was completed, so that its handler never runs.
func isOfEvent(err error) bool {
	return errors.As(err, new(*lock.NoKeyError)) || errors.As(err, new(*lock.PayloadMismatchError)) || errors.Is(err, lock.ErrCompleted)
}

// isOfLock reports whether an error is that of a lock that may be there later,
// or of its store, if only of one inside the handler. What a store refuses for
// good, such as for a missing permission, says nothing about the event: it
// would take all of a queue to the dead-letter queue.
func isOfLock(err error) bool {
	return errors.Is(err, lock.ErrHeld) || errors.As(err, new(*lock.StoreError)) || errors.As(err, new(*lock.DeadlineError))
}

// reportFailed reports why a record failed, and returns it. A panic of the
// observer is added, because the error still says whether the record fails for
// good, and whether the handler knows its end.
func (d *delivery[R]) reportFailed(t *task[R], err error) error {
	if panicked := caught(func() { d.report(t.ctx, lock.Observation{Outcome: OutcomeHandlerFailed, Key: t.key, Err: err}) }); panicked != nil {
		return errors.Join(panicked, err)
	}
	return err
}

// mayBegin returns why a record must not begin, or nil.
func (d *delivery[R]) mayBegin(t *task[R]) error {
	switch {
	case t.blocked:
		return errBlocked
	case t.isServed(): // it needs no time
		return nil
	case d.lastStart.IsZero() && d.pace.Full(clock.From(d.ctx).Now()) > longestOutage:
		return errFull
	case !d.lastStart.IsZero() && !clock.From(d.ctx).Now().Before(d.lastStart.Add(-d.longestRun())):
		return lateError{}
	case d.ctx.Err() != nil:
		return fmt.Errorf("%w: %w", errEnded, context.Cause(d.ctx))
	}
	return nil
}

// ranFor notes for how long the handler of a record ran.
func (d *delivery[R]) ranFor(took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.longest = max(d.longest, took)
}

// longestRun returns how long a record must be able to run. With OnInterrupted,
// one that is cut short may not run again, so it is as long as any before it
// ran.
func (d *delivery[R]) longestRun() time.Duration {
	if d.engine.OnInterrupted == nil {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.longest
}

// caught calls f and returns its panic, or nil if f returned.
func caught(f func()) (panicked error) {
	panicked = errGoexit // also of a panic with nil, which must not look like success
	defer func() {
		if p := recover(); p != nil {
			panicked = &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	f()
	return nil
}

// reportPanic reports a panic. It may be a panic of the observer or of the log
// handler, which may panic again here and would end the process. The record
// fails with the first panic.
func (w *wrapper) reportPanic(ctx context.Context, key lock.Key, err error) {
	_ = caught(func() { w.report(ctx, lock.Observation{Outcome: OutcomeHandlerFailed, Key: key, Err: err}) })
}

// errors returns the error of each record. It reports those that were not begun
// in one observation, because there may be thousands.
func (d *delivery[R]) errors() []error {
	errs := make([]error, len(d.tasks))
	var first *task[R]
	notBegun := 0
	for i := range d.tasks {
		t := &d.tasks[i]
		errs[i] = t.err
		if t.notBegun && t.err != nil {
			notBegun++
			if first == nil {
				first = t
			}
		}
	}
	if first != nil {
		err := fmt.Errorf("%d of %d records are returned for redelivery, the first of them: %w", notBegun, len(errs), first.err)
		if d.throttles > 0 {
			err = fmt.Errorf("the store throttled %d claims, and %w", d.throttles, err)
		}
		d.report(d.ctx, lock.Observation{Outcome: OutcomeNotBegun, Key: first.key, Records: notBegun, Err: err})
	}
	return errs
}
