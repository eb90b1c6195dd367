package middleware

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/internal/defaultlog"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// config is what the options of one wrapper ask for.
type config struct {
	acquire     func(context.Context, *lock.Locker, keySet) (*lock.Lock, error)
	engine      lock.Options
	metrics     func(context.Context, Totals) // nil: none
	store       driver.Store                  // nil: DefaultStore("")
	held        policy
	onHeld      bool // OnHeld was given
	completed   policy
	interrupted interruption
	failOpen    bool

	acrossTenants bool // tenants share their locks
	// ask begins the exchange for an event, of which keys computes the keys. It is
	// nil for handlers of records, which have no result.
	ask func(ctx context.Context, payload any, keys func(context.Context) (keySet, error)) (exchange, keySet, error)

	completedIf      func(result any) bool // nil: the default
	completedIfTakes reflect.Type
	rememberFor      func(result any) time.Duration // nil: none
	rememberForTakes reflect.Type
	onError          func(context.Context, error) (any, error) // nil: none
	onErrorGives     reflect.Type
}

// namespaceVariable holds the only namespace whose rows the function may write.
// The CDK construct sets it.
const namespaceVariable = "LOCK_NAMESPACE"

// newConfig returns the defaults of the options.
func newConfig() config {
	c := config{acquire: acquireOne, held: policy{action: fail}, completed: policy{action: skip}}
	c.engine.Namespace = cmp.Or(os.Getenv(namespaceVariable), lambdacontext.FunctionName)
	c.engine.Holder = holder()
	return c
}

// check panics if what the options ask for contradicts the environment.
// Otherwise it fills in what they leave open for events, or records, of type
// event.
func (c *config) check(event reflect.Type) {
	c.engine.Observe = both(c.engine.Observe, tallyUp) // Metrics may be an option of a wrapper around this one
	if allowed := os.Getenv(namespaceVariable); allowed != "" && c.engine.Namespace != allowed {
		refuse("Namespace(%q) differs from %s=%q, the only namespace that the function's permission allows: leave the option out, or give the construct the same namespace", c.engine.Namespace, namespaceVariable, allowed)
	}
	c.engine.Logger = cmp.Or(c.engine.Logger, defaultlog.Logger()) // one for package lock and the wrapper
	c.rememberFrom(event)
	if c.engine.Lease == (lock.LeaseMode{}) && onDemand() {
		c.engine.Lease = lock.UntilDeadline()
	}
}

// checkDuration panics if an option has a duration that makes no sense. Every
// request to a store takes longer than a millisecond. Zero is the default.
func checkDuration(option string, d, least time.Duration, example string) {
	if d < 0 {
		refuse("%s is negative (%v)", option, d)
	}
	if d > 0 && d < least {
		refuse("%s(%v): durations have units, write %s for example; the least is %v", option, d, example, least)
	}
}

const (
	nilKey     = "the key function is nil: pass one of package keyfuncs, or your own"
	nilHandler = "the handler is nil: pass the function that handles the event"
)

// refuse panics with a mistake in the code: what is wrong, and what to change.
func refuse(format string, args ...any) {
	panic("lambdalock: " + fmt.Sprintf(format, args...))
}

func refuseNil(key, handler bool) {
	if key {
		refuse(nilKey)
	}
	if handler {
		refuse(nilHandler)
	}
}

// isNil reports whether v is nil or a nil pointer.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}
