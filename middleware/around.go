package middleware

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
)

// around is what [Around] calls for each record.
type around[R any] = func(ctx context.Context, record R, next func(context.Context) error) error

// aroundOf returns the function given to Around, or nil. It panics if that is
// for other records.
func aroundOf[R any](given any) around[R] {
	f, ok := given.(around[R])
	if given != nil && !ok {
		refuse("Around was given a function for %s, but each record is of type %s: let the function take that", reflect.TypeOf(given).In(1), reflect.TypeFor[R]())
	}
	return f
}

var (
	errNextNotCalled = errors.New("lambdalock: the function given to Around returned nil without calling next: let it call next, or return why not")
	errNextCalled    = errors.New("lambdalock: the function given to Around called next a second time, or after it had returned: let it call next once")
	errNextContext   = errors.New("lambdalock: the function given to Around called next with a context that does not derive from its own: pass on the context it was given, or one made from it")
	errNextEnded     = errors.New("lambdalock: the handler panicked or ended its goroutine, and the function given to Around recovered that and returned nil")
)

// nextCall is the call of next for one record.
type nextCall struct {
	calls    atomic.Int32
	ended    chan struct{} // closed when the first call has ended
	err      error         // of the first call
	reported bool          // err was reported
}

// close lets next be called no more, so that nothing can run under the lock any
// more, and returns how often next was called. It waits for a call that f made
// on another goroutine, because the record has not ended before.
func (n *nextCall) close() int32 {
	called := n.calls.Add(1) - 1
	if called > 0 {
		<-n.ended
	}
	return called
}

// result returns why the record failed, for what f returned.
func (n *nextCall) result(called int32, err error) error {
	switch {
	case err != nil:
		return err
	case called == 0:
		return errNextNotCalled
	case n.err == nil && called > 1:
		return errNextCalled
	}
	return n.err
}

// surrounded runs the handler of a record under its lock, and the function
// given to Around, if any, around both.
func (d *delivery[R]) surrounded(t *task[R]) (err error) {
	if d.around == nil {
		return d.underLock(t)
	}
	n := &nextCall{ended: make(chan struct{})}
	called := int32(-1)
	defer func() {
		if called < 0 { // f panicked or ended its goroutine
			n.close()
		}
	}()
	err = d.around(t.ctx, *t.record, func(ctx context.Context) error { return d.next(ctx, t, n) })
	called = n.close()
	if err = n.result(called, err); err != nil && !n.reported {
		return d.reportFailed(t, err)
	}
	return err
}

func (d *delivery[R]) next(ctx context.Context, t *task[R], n *nextCall) error {
	if n.calls.Add(1) > 1 {
		return errNextCalled
	}
	defer close(n.ended)
	if ctx == nil || ctx.Value(recordKey[R]{}) != any(t.record) {
		n.err = errNextContext
		return n.err
	}
	n.err = errNextEnded
	t.ctx = ctx
	n.err = d.underLock(t)
	n.reported = n.err != nil // by package lock, or below
	return n.err
}
