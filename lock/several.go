package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/event/stored"
)

// AcquireAll takes all keys, or none of them: if one is refused, those before
// it are released, and the error is what [Locker.Acquire] returns for that one.
// Every Event must stand for the whole event: one that is completed under any
// key is refused, but as held if a name before it is. Give all keys the Event
// if that matters. The same goes for Order: use it only if all events have the
// same keys.
//
// The names are acquired one after the other, always in the same order, so that
// two calls never deadlock; nested calls need an order of their own.
// Options.MaxWait is for all names together, and those already acquired stay
// held during the wait. A fixed lease begins when its own name is acquired.
//
// A key that is given twice is acquired once. A name that is given with two
// different events, orders or payloads is refused with a [*NoKeyError], and so
// is a call without keys. Each key costs one request, and one more when it
// ends.
//
// The Lock is all of them: its context carries every lease (see [Leases]) and
// ends when any of them is lost. [Lock.Lease] is that of the name which was
// acquired last. Complete, Fail and Release end every lock, in the order in
// which they were acquired or the reverse, in the time that one has, and go on
// if one fails; the error wraps all of theirs. From the first completed row on
// the event is skipped: after a crash between two rows the work does not run
// again, and the other names are free once their leases end.
func (l *Locker) AcquireAll(ctx context.Context, keys ...Key) (*Lock, error) {
	ctx = invocation.Believable(ctx)
	called := clock.From(ctx).Now()
	s := &set{end: newEnd()}
	sorted, wrong, err := l.inOrder(keys)
	if err != nil {
		a := l.newAcquisition(ctx, wrong)
		return a.acquire(func() error { return err })
	}
	all, last := false, (*Lock)(nil)
	defer func() {
		if !all { // also if an observer panics
			_ = s.release(unbegun)
		}
	}()
	for _, key := range sorted {
		w := &waiter{acquisition: l.newAcquisition(ctx, key)}
		w.called = called
		if last != nil {
			w.after = &last.hold
		}
		lk, err := w.acquire(w.run)
		if err != nil {
			return nil, err
		}
		lk.set, last = s, lk
		s.locks = append(s.locks, lk)
		ctx = lk.work // so the last one ends with every one of them, and carries all leases
	}
	all = true
	return last.decideInterrupted()
}

// inOrder returns the keys sorted by their stored names, each of them once. If
// it returns an error, wrong is the key that is at fault, if it is one of them.
func (l *Locker) inOrder(keys []Key) (sorted []Key, wrong Key, err error) {
	if len(keys) == 0 {
		return nil, wrong, &NoKeyError{Field: "keys", Reason: "are none, so nothing would be locked: give at least one"}
	}
	for i, k := range keys {
		var e *NoKeyError
		if errors.As(k.check(), &e) {
			e.Field = fmt.Sprintf("keys[%d].%s", i, e.Field)
			return nil, k, e
		}
	}
	if l.opts.OnInterrupted != nil && !slices.ContainsFunc(keys, func(k Key) bool { return k.Event != "" }) {
		return nil, wrong, noEvent()
	}
	sorted = slices.Clone(keys)
	slices.SortFunc(sorted, func(a, b Key) int {
		return cmp.Compare(stored.Name(l.prefix, a.Name), stored.Name(l.prefix, b.Name))
	})
	sorted = slices.Compact(sorted)
	for i := range sorted[1:] {
		if k := sorted[i+1]; k.Name == sorted[i].Name {
			return nil, k, &NoKeyError{Field: "keys", Reason: "hold one name (" + k.Digest() + ") with different events, orders or payloads, and a name has one lock: give it one key"}
		}
	}
	return sorted, wrong, nil
}
