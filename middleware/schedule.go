package middleware

import (
	"errors"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/stored"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// serving is a run for all records of a name that come after its own in the
// batch: with OnlyLatest, because it has begun after they came, or will.
type serving struct {
	// except is the event of another invocation whose run it is, as it is stored. A
	// copy of it must come again if that invocation fails.
	except string
	// by is the key of the record. Its event with another payload is refused.
	by lock.Key
}

// isServed reports whether the record can be acknowledged without a claim. One
// that has no event is refused all the same.
func (t *task[R]) isServed() bool {
	if t.served == nil || t.err != nil || t.key.Event == "" || t.key.Event == t.served.by.Event && t.key.Payload != t.served.by.Payload {
		return false
	}
	return stored.Event(t.key.Event) != t.served.except
}

// chain decides which records wait for which, and makes the others ready. A
// record waits for the one before it in its group, and for the one before it
// that takes the same lock, so that it never finds that held by its own batch.
// With OrderPerName it also waits for the last one whose name is not known.
func (d *delivery[R]) chain() {
	lastInGroup, lastOfName, lastUnknown := map[string]*task[R]{}, map[string]*task[R]{}, map[string]*task[R]{}
	for i := range d.tasks {
		t := &d.tasks[i]
		if group := d.groupOf(t); group != "" {
			t.follow(lastInGroup[group])
			lastInGroup[group] = t
		}
		if d.each.orderPerName && !d.each.onlyLatest { // whose runs read the current state, in any order
			group := d.source.group(t.record)
			t.follow(lastUnknown[group])
			if t.isUnknown() {
				lastUnknown[group] = t
			}
		}
		if name := t.key.Name; name != "" && t.err == nil { // an error may come with a name: it takes no lock
			if before := lastOfName[name]; before != nil {
				before.nextOfName = t
				t.waitsFor++
			}
			lastOfName[name] = t
		}
	}
	for i := range d.tasks {
		if d.tasks[i].waitsFor == 0 {
			d.ready <- &d.tasks[i]
		}
	}
}

// follow lets a record wait for one before it, if any, and not begin if that
// one fails.
func (t *task[R]) follow(before *task[R]) {
	if before != nil {
		before.behind = append(before.behind, t)
		t.waitsFor++
	}
}

// isUnknown reports whether the record should have a key but has none: it may
// be of any name. One that needs no key is of none.
func (t *task[R]) isUnknown() bool {
	if t.err == nil {
		return false
	}
	err := keyError(t.err)
	return !errors.Is(err, keyfuncs.ErrNoLock) && !errors.Is(err, keyfuncs.ErrIgnore)
}

// groupOf returns the group within which a record keeps its order. "" has no
// order.
func (d *delivery[R]) groupOf(t *task[R]) string {
	if d.source.group == nil {
		return ""
	}
	if d.each.orderPerName {
		return t.key.Name
	}
	return d.source.group(t.record)
}

// work handles records until none is left.
func (d *delivery[R]) work() {
	var current *task[R]
	var err error
	defer func() {
		if current != nil { // runtime.Goexit ends this worker, but other records may need one
			d.end(current, err)
			d.workers.Go(d.work)
		}
	}()
	defer func() { // of its own, because the observer may end the goroutine, too
		if current != nil && err == errGoexit {
			d.reportPanic(current.ctx, current.key, err)
		}
	}()
	for current = d.take(); current != nil; current = d.take() {
		err = errGoexit // unless handle returns
		if err = d.handle(current); current.again {
			d.requeue(current)
			continue
		}
		d.tellInTurn(current, &err)
		d.end(current, err)
	}
}

// take returns the next record that is ready, once it may claim its lock or it
// is too late to begin; nil if none is left. The other workers wait behind it,
// so that records begin in the order in which they became ready.
func (d *delivery[R]) take() *task[R] {
	d.claiming <- struct{}{}
	defer func() { <-d.claiming }()
	t := <-d.ready
	if t != nil && !t.blocked && t.err == nil && !t.isServed() { // it claims a lock
		d.awaitClaim(t)
	}
	return t
}

// longestNap is how soon a record notices that the gap before its claim has
// become shorter.
const longestNap = 100 * time.Millisecond

// awaitClaim waits until a record may claim its lock, or may not begin any
// more.
func (d *delivery[R]) awaitClaim(t *task[R]) {
	c := clock.From(d.ctx)
	for d.mayBegin(t) == nil {
		now := c.Now()
		wait := d.pace.Next(now)
		if wait == 0 {
			return
		}
		if !d.lastStart.IsZero() {
			wait = min(wait, d.lastStart.Sub(now))
		}
		_ = c.Sleep(d.ctx, min(wait, longestNap)) // if ctx ends, the record may not begin
	}
}

// requeue makes a record ready again whose claim was throttled, behind the
// others: it may be the only one whose name is throttled.
func (d *delivery[R]) requeue(t *task[R]) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.throttles++
	d.ready <- t
}

// end notes how a record ended, and makes ready those that waited only for it.
func (d *delivery[R]) end(t *task[R], err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t.err, t.ended = err, clock.From(d.ctx).Now()
	for _, next := range t.behind {
		next.blocked = next.blocked || err != nil
		d.waitLess(next)
	}
	if next := t.nextOfName; next != nil {
		next.served = t.served
		d.waitLess(next)
	}
	if d.remaining--; d.remaining == 0 {
		close(d.ready)
	}
}

func (d *delivery[R]) waitLess(t *task[R]) {
	if t.waitsFor--; t.waitsFor == 0 {
		d.ready <- t
	}
}
