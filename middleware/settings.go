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

// settings are what the options of one wrapper ask for.
type settings struct {
	acquire   func(context.Context, *lock.Locker, keySet) (*lock.Lock, error)
	engine    lock.Options
	metrics   func(context.Context, Totals) // nil: none
	store     driver.Store                  // nil: DefaultStore("")
	held      policy
	onHeld    bool // OnHeld was given
	completed policy
	failOpen  bool
	// acrossTenants is set if tenants share their locks.
	acrossTenants bool
	each          eachSettings
	http          overHTTP

	completedIf      func(result any) bool // nil: the default
	completedIfTakes reflect.Type
	rememberFor      func(result any) time.Duration // nil: none
	rememberForTakes reflect.Type
	onError          func(context.Context, error) (any, error) // nil: none
	onErrorGives     reflect.Type
}

// eachSettings are the settings that only handlers of single records have.
type eachSettings struct {
	concurrency  int
	orderPerName bool
	onlyLatest   bool
	around       any // func(context.Context, R, func(context.Context) error) error; nil: none
	onFailed     any // func(context.Context, []*Failed[R]); nil: none
}

// namespaceVariable holds the only namespace whose rows the function may write.
// The CDK construct sets it.
const namespaceVariable = "LOCK_NAMESPACE"

// newSettings returns the settings for events, or records, of type event. It
// panics at the first mistake, so that the function fails when it starts and
// not when an event arrives.
func newSettings(event reflect.Type, opts []Option) *settings {
	s := &settings{acquire: acquireOne, held: policy{action: fail}, completed: policy{action: skip}}
	s.engine.Namespace = cmp.Or(os.Getenv(namespaceVariable), lambdacontext.FunctionName)
	s.engine.Holder = holder()
	s.apply(opts)
	if s.metrics != nil {
		Observe(tallyUp)(s)
	}
	s.check()
	s.engine.Logger = cmp.Or(s.engine.Logger, defaultlog.Logger()) // one for package lock and the wrapper
	if s.engine.Remember == 0 {
		s.engine.Remember = rememberBySource[event] // zero: package lock's default
	}
	if s.engine.Lease == (lock.LeaseMode{}) && onDemand() {
		s.engine.Lease = lock.UntilDeadline()
	}
	return s
}

func (s *settings) apply(opts []Option) {
	for i, o := range opts {
		if o == nil {
			refuse("option %d is nil: leave it out", i+1)
		}
		o(s)
	}
}

// check panics if options contradict each other or the environment.
func (s *settings) check() {
	if allowed := os.Getenv(namespaceVariable); allowed != "" && s.engine.Namespace != allowed {
		refuse("Namespace(%q) differs from %s=%q, the only namespace that the function's permission allows: leave the option out, or give the construct the same namespace", s.engine.Namespace, namespaceVariable, allowed)
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

// refuseEach panics if there are options for records, which a wrapper of whole
// events has none of.
func (s *settings) refuseEach() {
	if s.each != (eachSettings{}) {
		refuse("Concurrency, OrderPerName, OnlyLatest, Around and OnFailed are for handlers of single records: leave them out, or wrap the handler of one record with EachSQSMessage or one of its siblings")
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

// isNil reports whether v is nil or a nil pointer.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}
