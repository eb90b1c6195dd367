package middleware

import (
	"context"
	"reflect"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Latest is [WithLock] for handlers that act on current state and ignore what
// the event says, such as rebuilding an index: one run serves all events that
// came before it. An event that finds the lock held is acknowledged, and the
// handler that holds it runs once more before its own event is completed: see
// docs/GUIDE.md#latest. [OnlyLatest] does the same for records of a batch.
//
// All handlers that share a name must do the same work, every key needs an
// Event, and the function's timeout should fit three runs. Leave out an Order:
// the handler does not run for a stale event. An event that cannot be
// acknowledged fails with a *lock.HeldError: another delivery of the holder's
// own event, one that comes during the holder's last run, and one that meets a
// [HoldAtLeast] or a holder without Latest.
//
// If the handler has to run once more and no time is left, the event fails with
// a *lock.DeadlineError, and if it cannot be completed, with another error: it
// then comes again. An acknowledged event is lost only if the holder's is. So
// if a handler fails with [Permanent] while others rely on its event, or may,
// it fails like any other.
//
// The store must be a driver.Coalescer, as all stores are but a quorum of Redis
// servers. Latest panics with [OnHeld], [FailOpen] and [AcrossTenants].
func Latest[E any](key keyfuncs.Func[E], handler func(context.Context, E) error, opts ...Option) func(context.Context, E) error {
	refuseNil(key == nil, handler == nil)
	event := reflect.TypeFor[E]()
	s := newSettings(event, opts)
	s.refuseEach()
	s.checkLatest()
	s.checkPolicies(signatureOf(reflect.TypeOf(handler), event), false)
	w := newWrapper(&s.config)
	keyOf := ofOneRecord(oneKey(key))
	return func(ctx context.Context, e E) error {
		ctx, done := w.measure(ctx)
		defer done()
		k, err := keyOf(ctx, e)
		w.ofTenant(ctx, &k.Key)
		return w.latest(ctx, k.Key, err, func(ctx context.Context) error { return handler(ctx, e) })
	}
}

// checkLatest panics if an option does not fit Latest.
func (c *config) checkLatest() {
	switch {
	case c.engine.OnInterrupted != nil:
		refuse("OnInterrupted is for handlers that must not run twice, and those of Latest and OnlyLatest may always run again: leave OnInterrupted out, or use WithLock")
	case c.onHeld:
		refuse("OnHeld has no say with Latest and OnlyLatest, which acknowledge an event because the holder of its lock runs once more: leave OnHeld out")
	case c.failOpen:
		refuse("FailOpen is for handlers that run alone: with Latest and OnlyLatest, other events are acknowledged because the holder of the lock runs for them, and a handler without the lock would not learn of them: leave FailOpen out, the source delivers the event again")
	case c.acrossTenants:
		refuse("AcrossTenants is not for Latest and OnlyLatest: the holder runs for its own tenant, and the event of another would be acknowledged without a run: leave AcrossTenants out")
	case c.store != nil:
		if _, ok := c.store.(driver.Coalescer); !ok {
			refuse("Latest and OnlyLatest need a store that can mark a row, and %s cannot: use DynamoDB, Redis on one server, S3 or Azure Blob Storage", driver.Describe(c.store))
		}
	}
}
