package lock

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/event/stored"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Ticket stands for a lock on its way from one invocation to another: through
// the state of a workflow, or with the token of a callback. It is JSON of less
// than 20 KB, and usually of 300 bytes. With it, and with permission to write
// to the lock table, one can renew, complete and release the lock, but not use
// any other name. It is worth nothing once the lock was completed, released or
// taken over.
type Ticket struct {
	Name  string    `json:"name"`            // as stored, with its namespace
	Event string    `json:"event,omitempty"` // as stored
	Order string    `json:"order,omitempty"` // of the key
	Token string    `json:"token"`           // proves who owns the name, and with which event
	Fence int64     `json:"fence,string"`    // never falls; below that of any later owner
	Until time.Time `json:"until"`           // when the lease ends unless it is resumed
	// Remember is how long the completed event is remembered if the Locker that
	// resumes says less: the Remember of the Locker that acquired the lock, which
	// knew the source.
	Remember time.Duration `json:"remember,string"`
}

// HandOver hands over the innermost lock under which the code runs; see
// [Lock.HandOver]. In a handler that package middleware wrapped, call it last:
// if the handler succeeds, the lock stays held for the invocation that gets the
// ticket; if it fails, the lock is released as usual, even if it was resumed
// meanwhile, and the ticket is worth nothing. Locks around the innermost one
// are not handed over: they are completed when their handlers succeed.
func HandOver(ctx context.Context, lease time.Duration) (Ticket, error) {
	l := innermost(ctx)
	if l == nil {
		return Ticket{}, &ConfigError{Reason: "there is no lock to hand over: call HandOver in a handler that WithLock wraps, with the context that it was given"}
	}
	return l.HandOver(ctx, lease)
}

// HandOver gives the lock to the invocation that gets the ticket and passes it
// to [Locker.Resume]. lease is how long the name stays held from now on: at
// least 1 s longer than Grace, and at most 366 days. Choose a little more than
// the next step may take to begin, with its retries: after that the name can be
// taken over, and the event runs again. A lease that ends later is not
// shortened. A heartbeat stops.
//
// Afterwards [Lock.Complete] only ends the work's context, and [Lock.Release]
// still releases the name. The error is a [*LostError], or a [*StoreError] or
// [*ConfigError], after which the lock goes on as before, but perhaps with the
// longer lease if the StoreError is not Unapplied.
func (l *Lock) HandOver(ctx context.Context, lease time.Duration) (Ticket, error) {
	if least := l.locker.opts.Grace + shortestWork; lease < least || lease > longestRemember {
		return Ticket{}, &ConfigError{Reason: fmt.Sprintf("HandOver for %v: say how long the next step may take to begin, at least %v and at most 366 days", lease, least)}
	}
	if l.locker.opts.Coalesce {
		return Ticket{}, &ConfigError{Reason: "a ticket does not say how often the work was asked for once more, so with Coalesce a lock cannot be handed over: leave one of them out"}
	}
	if l.set != nil {
		return Ticket{}, &ConfigError{Reason: "key " + l.key.Digest() + " was locked together with others, and a ticket stands for one lock: acquire it with Acquire or WithLock to hand it over"}
	}
	began := l.clock.Now()
	requests, err := l.extend(ctx, began, lease)
	l.observeHandOver(ctx, "hand over", OutcomeHandedOver, began, requests, err)
	if err != nil {
		return Ticket{}, err
	}
	return Ticket{
		Name: l.claim.Name, Event: l.claim.Event, Order: l.claim.Order,
		Token: l.claim.Token, Fence: l.row.Fence, Until: time.UnixMicro(l.until.Load()).UTC(), Remember: l.remember,
	}, nil
}

// extend extends the lease, which is not renewed from then on, and returns the
// number of requests.
func (l *Lock) extend(ctx context.Context, began time.Time, lease time.Duration) (int, error) {
	l.settling <- struct{}{}
	defer func() { <-l.settling }()
	if l.ending.Load() != 0 {
		return 0, l.lostError()
	}
	now := l.wall().Truncate(time.Microsecond)
	ok, requests, err := l.renew(ctx, began.Add(maxBudget), now, lease)
	switch {
	case err != nil:
		return requests, err
	case !ok:
		return requests, l.lostError()
	}
	if l.beat != nil {
		l.stopForGood()
	}
	l.handedOver = true
	return requests, nil
}

// Resume continues a lock that was handed over, with one renewal of its lease,
// or a few if others resumed it as well. The lease lasts as long as an acquired
// one would, or as long as the ticket says if that is longer. End the Lock as
// after [Locker.Acquire], or hand it over again. If the work fails and is to be
// repeated with the same ticket, end the Lock with [Lock.Leave].
//
// Resume a ticket once at a time: of two that do, the first that completes or
// releases the lock ends it, and the other one gets a [*LostError]. In AWS the
// function needs permission for the namespace in the ticket. The key of the
// lease has name and event as they are stored, so long ones are hashed.
//
// The error is a [*CompletedError] if the event was completed, a [*LostError]
// if the lock was released or taken over or, in a store with a clock of its
// own, if the lease has ended, or a [*StoreError], [*DeadlineError] or
// [*ConfigError].
func (l *Locker) Resume(ctx context.Context, t Ticket) (*Lock, error) {
	c := clock.From(ctx)
	began := c.Now()
	lk := &Lock{
		locker: l, ctx: invocation.Believable(ctx), clock: c, outer: heldIn(ctx), key: t.key(), settling: make(chan struct{}, 1),
		claim: driver.Claim{Name: t.Name, Event: t.Event, Order: t.Order, Token: t.Token}, remember: t.Remember,
	}
	lk.until.Store(t.Until.UnixMicro())
	lk.startTime(began)
	requests, err := lk.resume(t, began)
	lk.decided = c.Now()
	lk.observeHandOver(lk.ctx, "resume", OutcomeResumed, began, requests, err)
	if err != nil {
		return nil, err
	}
	lk.begin()
	return lk, nil
}

// newToken returns the token of a claim. It is as short as a random text,
// because rows pay for it.
func newToken(c clock.Clock, event, order string, remember time.Duration) string {
	return c.Text()[:16] + seal(event, order, remember)
}

// seal returns the end of a token, which is a digest of what a ticket says
// about the event. So none of that can be edited without the token, which the
// row knows.
func seal(event, order string, remember time.Duration) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d", event, order, remember))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:10]
}

// key returns a key that tells the lock in logs and errors.
func (t *Ticket) key() Key {
	_, name, _ := strings.Cut(firstSlot(t.Name), "/")
	return Key{Name: name, Event: t.Event, Order: t.Order}
}

// resume renews the lease and returns the number of requests.
func (l *Lock) resume(t Ticket, began time.Time) (requests int, err error) {
	if t.Name == "" || t.Token == "" {
		return 0, &ConfigError{Reason: "the ticket is empty: pass the one that HandOver returned, as JSON, through every step"}
	}
	if !strings.HasSuffix(t.Token, seal(t.Event, t.Order, t.Remember)) {
		return 0, &ConfigError{Reason: "the event, order or remember of the ticket for key " + l.key.Digest() + " is not the one for which the lock was acquired: let every step pass the ticket on unchanged"}
	}
	if l.timing, err = l.locker.timing(l.ctx, began); err != nil {
		return 0, err
	}
	now := l.wall().Truncate(time.Microsecond)
	if t.Until.After(now.Add(longestRemember + l.locker.opts.Grace)) {
		return 0, &ConfigError{Reason: "the ticket's until is more than 366 days away: pass the ticket on unchanged"}
	}
	// The end in the ticket is by another clock. A store with a clock of its own
	// moves an end only if it changes, and two who resume must not ask for the
	// same.
	moved := t.Until.Add(clock.Jitter(l.clock, time.Millisecond)).Truncate(time.Microsecond).Add(time.Microsecond)
	l.claim.Until = later(l.locker.leaseEnd(l.timing, now), moved)
	r := retries{locker: l.locker, clock: l.clock, until: began.Add(l.timing.budget)}
	ok, err := r.send(l.ctx, "renew", func(ctx context.Context) (ok bool, err error) {
		l.row, ok, err = l.renewOnce(ctx, &r, now, &l.claim.Until)
		return ok, err
	})
	switch {
	case err != nil:
		return r.sent, err
	case !ok && l.isCompleted():
		return r.sent, completedError(l.key, &l.row, l.claim.Event)
	case !ok:
		return r.sent, l.lostError()
	}
	l.claim.Until, l.claim.Payload = l.row.Until, l.row.Payload
	l.until.Store(l.claim.Until.UnixMicro())
	return r.sent, l.check()
}

// isCompleted reports whether the row says that the event is completed.
func (l *Lock) isCompleted() bool {
	if l.claim.Event != "" {
		return l.row.Memory.Has(l.claim.Event, clock.Wall(l.clock))
	}
	return l.claim.Order != "" && l.row.Memory.HighestOrder == l.claim.Order
}

// Leave ends the work's heartbeat and context without a request. The name stays
// held until its lease ends, and until then its ticket can be resumed; see
// [Lock.HandOver]. Afterwards [Lock.Complete] returns [ErrReleased], and
// [Lock.Release] does nothing. If the lock has ended already, Leave does
// nothing.
func (l *Lock) Leave() {
	if l.beginEnd(left) {
		l.stop()
	}
}

// stop follows beginEnd where the lock ends without a request.
func (l *Lock) stop() {
	l.endWork()
	<-l.settling
	if l.beat != nil {
		l.beat.raise()
	}
}

// firstSlot returns the stored name of the first slot, given that of any slot.
func firstSlot(row string) string {
	namespace, name, _ := strings.Cut(row, "/")
	numbered, ok := strings.CutPrefix(name, stored.SlotPrefix)
	if !ok {
		return row
	}
	_, name, _ = strings.Cut(numbered, ":")
	return namespace + "/" + name
}
