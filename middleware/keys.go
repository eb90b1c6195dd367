package middleware

import (
	"context"
	"errors"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/internal/event/keyparts"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// keySet is what to lock for an event.
type keySet struct {
	lock.Key            // the only one, or the one of all that stands for the event in reports
	all      []lock.Key // to be locked together; nil: only Key
	question question   // nil: nothing is to be asked
}

// each returns every key of the set.
func (s *keySet) each() []*lock.Key {
	each := []*lock.Key{&s.Key}
	for i := range s.all {
		each = append(each, &s.all[i])
	}
	return each
}

// keySource computes what to lock for an event.
type keySource[E any] func(context.Context, E) (keySet, error)

// oneKey returns the source of a single key.
func oneKey[E any](key keyfuncs.Func[E]) keySource[E] {
	return func(ctx context.Context, event E) (keySet, error) {
		k, err := key(ctx, event)
		return keySet{Key: k}, err
	}
}

// asking returns key with the question to ask about an event whose earlier run
// was interrupted.
func asking[E any](c *config, key keySource[E]) keySource[E] {
	if c.interrupted.question == nil {
		return key
	}
	about := questionOf[E](c)
	return func(ctx context.Context, event E) (keySet, error) {
		keys, err := key(ctx, event)
		keys.question = about(event)
		return keys, err
	}
}

func acquireOne(ctx context.Context, l *lock.Locker, keys keySet) (*lock.Lock, error) {
	return l.Acquire(ctx, keys.Key)
}

// keyError returns err as a *lock.NoKeyError, because Lambda reports the type
// of the outermost error. A *lock.NoKeyError inside err is copied, because it
// may be one value for all events.
func keyError(err error) *lock.NoKeyError {
	var inner *lock.NoKeyError
	if !errors.As(err, &inner) {
		return &lock.NoKeyError{Field: "event", Reason: "has none, because the key function failed", Err: err}
	}
	if inner == nil {
		return &lock.NoKeyError{Field: "event", Reason: "has none, because the key function returned a nil *lock.NoKeyError as its error: return a plain nil if nothing is wrong"}
	}
	if err == error(inner) {
		return inner
	}
	outer := *inner
	outer.Err = err
	return &outer
}

// ofTenant makes a key one of the tenant who asked for the invocation, if any.
func (c *config) ofTenant(ctx context.Context, k *lock.Key) {
	lc, ok := lambdacontext.FromContext(ctx)
	if !ok || lc.TenantID == "" {
		return
	}
	part := &k.Name
	if c.acrossTenants {
		part = &k.Event
	}
	if *part != "" { // empty means none, and must stay empty
		*part = keyparts.OfTenant(lc.TenantID, *part)
	}
}
