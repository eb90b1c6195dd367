package lock

import (
	"context"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// CompleteWith implements [driver.Lock].
func (h *heldLock) CompleteWith(ctx context.Context, result []byte, send func(context.Context, *driver.Settlement) (driver.Row, bool, error)) error {
	l := (*Lock)(h)
	if l.set != nil {
		return &ConfigError{Reason: "key " + l.key.Digest() + " was locked together with others, and a transaction completes one lock: put a WithLock around the handler whose key has the Event, and WithLocks around that, whose keys have none, such as WithLocks(keyfuncs.All(byFrom, byTo), WithLock(keyfuncs.Prefix(keyfuncs.Once(byID), \"transfer\"), handler))"}
	}
	if around := l.firstWithEvent(); around != nil && around != &l.hold {
		return &ConfigError{Reason: "the lock of key " + l.key.Digest() + " has no Event and no Order, but key " + around.key.Digest() + " around it has, and is completed after the transaction: an event that is interrupted before that would write again. Put the lock with the Event innermost, and those without one around it, such as WithLock(byCustomer, WithLock(keyfuncs.Prefix(keyfuncs.Once(byID), \"order\"), handler)), or write without dynamostore.Transact what may be written again"}
	}
	if cause := context.Cause(ctx); cause != nil && !l.end.hasBegun() {
		return cause // such as a *LostError
	}
	if !l.beginEnd(tentative) {
		if err := l.completedBefore(); err != nil {
			return err
		}
		return &ConfigError{Reason: "the lock of key " + l.key.Digest() + " has ended already, so nothing was written: a lock is completed once, together with everything that one transaction writes"}
	}
	s := l.completion(Completion{Result: result})
	s.ctx, s.transaction = ctx, send
	s.goesOn = func(_ bool, err error) error {
		if s.unsure {
			return nil
		}
		return err
	}
	tell, err := l.settle(s)
	tell()
	return err
}

// firstWithEvent returns the lock with an Event or an Order: this one, or the
// nearest around it, or nil. That of Latest does not count: its work may always
// run again, and a lock of the event inside it would skip the runs for others.
func (l *Lock) firstWithEvent() *hold {
	for held := range l.chain {
		switch {
		case held.repeats:
			return nil
		case held.key.Event != "" || held.key.Order != "":
			return held
		}
	}
	return nil
}
