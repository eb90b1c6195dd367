// Package keyfuncs turns events into lock keys. A key function says what is
// locked (Name) and which event asks for it (Event); see [lock.Key] for why the
// two differ.
//
// A function for a whole event takes events of exactly one record; its sibling
// whose name ends in Record takes one record, for handlers of single records such
// as those of middleware.EachSQSMessage. Both give the same key. Every function is
// deterministic, panics on no event, and gives different keys for different things.
// Names and events may be of any length: the engine hashes what a store could not
// keep as it is.
//
// What delivers which event, how often, and with what order and retries, stands in
// docs/SOURCES.md of this module.
//
// Errors are a [*lock.KeyError] that names the field at fault, or [ErrIgnore].
package keyfuncs

import (
	"context"
	"errors"

	"github.com/lambdalock/lambdalock/lock"
)

// Func computes the key of an event. It runs once per invocation, before the
// handler. When it returns an error, or a key without a Name, the handler does
// not run and the invocation fails; on [ErrIgnore] it succeeds. A *lock.KeyError with
// Client set is answered with status 400 where the handler's result is an HTTP response.
type Func[E any] func(context.Context, E) (lock.Key, error)

// ErrIgnore says that the event holds nothing to work on: the invocation
// succeeds without a lock and without the handler, and a warning is logged.
var ErrIgnore = errors.New("lambdalock: nothing to work on")

// Static locks one name whatever the event: a job of which only one may run at a
// time. It is also the key function for handlers that take no event. The lock is
// a plain mutex; every event runs, one after the other.
func Static(name string) Func[any] {
	return func(context.Context, any) (lock.Key, error) { return lock.Key{Name: name}, nil }
}
