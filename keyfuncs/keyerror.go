package keyfuncs

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// within puts the place of a record or body in front of the field that the
// error of a key function names.
func within(place string, err error) error {
	return relocated(err, func(e *lock.NoKeyError) { e.Field = strings.TrimSuffix(place+"."+e.Field, ".") })
}

// relocated changes the NoKeyError in err. It changes a copy, because a key
// function may return the same error for all events. What the key function
// wrapped around the error stays in the chain.
func relocated(err error, change func(*lock.NoKeyError)) error {
	var e *lock.NoKeyError
	if !errors.As(err, &e) || e == nil {
		return err
	}
	located := *e
	change(&located)
	if err != error(e) {
		located.Err = err
	}
	return &located
}

// notNil panics if a key function given to a constructor is nil: it would crash
// at the first event.
func notNil[E any](constructor string, keys ...Func[E]) {
	for i, key := range keys {
		if key == nil {
			panic(fmt.Sprintf("lambdalock: keyfuncs.%s: key function %d is nil: pass one of this package, or your own", constructor, i+1))
		}
	}
}

// mustHoldRequest panics if no E can hold an HTTP request.
func mustHoldRequest[E any](constructor string) {
	t := reflect.TypeFor[E]()
	if eventkind.GatewayOfRequest(t) == eventkind.NoGateway && t.Kind() != reflect.Interface {
		panic(fmt.Sprintf("lambdalock: keyfuncs.%s: a %s has no HTTP request: use the event type of the gateway, or one that embeds it", constructor, t))
	}
}
