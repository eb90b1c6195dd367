package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// transfer needs the locks of two accounts.
type transfer struct {
	ID, From, To string
}

// bothAccounts locks the accounts in the order in which the event names them.
func bothAccounts(_ context.Context, t transfer) ([]lock.Key, error) {
	switch {
	case t.From == "nothing":
		return nil, fmt.Errorf("a transfer of nothing: %w", keyfuncs.ErrIgnore)
	case t.From == "free":
		return nil, keyfuncs.ErrNoLock
	case t.From == "" && t.To == "":
		return nil, nil
	case t.From == t.To:
		return nil, &lock.NoKeyError{Field: "to", Reason: "is the account that pays"}
	}
	return []lock.Key{{Name: t.From, Event: t.ID}, {Name: t.To, Event: t.ID}}, nil
}

var omarToJane = transfer{ID: "1", From: "omar", To: "jane"}

// wantFree checks that nobody holds the accounts.
func (r *fixture) wantFree(t *testing.T, names ...string) {
	t.Helper()
	for _, n := range names {
		l := r.acquireElsewhere(t, lock.Key{Name: n})
		_ = l.Release()
	}
}

// TestWithLocks shows what a handler of several locks does with an event.
func TestWithLocks(t *testing.T) {
	fail := errors.New("insufficient balance")
	for name, c := range map[string]struct {
		prepare  func(t *testing.T, f *fixture)
		event    transfer
		options  []middleware.Option
		handler  error // what it returns
		ran      bool
		err      func(error) bool // nil: none
		outcomes []lock.Outcome
	}{
		"success": {event: omarToJane, ran: true, outcomes: []lock.Outcome{lock.OutcomeAcquired, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeReleased}},
		"failure": {
			event: omarToJane, ran: true, handler: fail, err: func(err error) bool { return err == fail },
			outcomes: []lock.Outcome{lock.OutcomeAcquired, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeReleased},
		},
		"one is held": {
			prepare: func(t *testing.T, f *fixture) { f.acquireElsewhere(t, lock.Key{Name: "omar"}) },
			event:   omarToJane, err: func(err error) bool { return errors.Is(err, lock.ErrHeld) },
			outcomes: []lock.Outcome{lock.OutcomeAcquired, lock.OutcomeHeld, lock.OutcomeReleased},
		},
		"one is held, skip": {
			prepare: func(t *testing.T, f *fixture) { f.acquireElsewhere(t, lock.Key{Name: "jane"}) },
			event:   omarToJane, options: []middleware.Option{middleware.OnHeld(middleware.Skip)},
			outcomes: []lock.Outcome{lock.OutcomeHeld},
		},
		"one is held, wait": {
			prepare: func(t *testing.T, f *fixture) { f.acquireElsewhere(t, lock.Key{Name: "omar"}) },
			event:   omarToJane, ran: true, options: []middleware.Option{middleware.OnHeld(middleware.Wait(10 * time.Second))},
			outcomes: []lock.Outcome{lock.OutcomeAcquired, lock.OutcomeTakenOver, lock.OutcomeReleased, lock.OutcomeReleased},
		},
		"one is completed": {
			prepare: func(t *testing.T, f *fixture) {
				_ = f.acquireElsewhere(t, lock.Key{Name: "omar", Event: "1"}).Complete()
			},
			event: omarToJane, outcomes: []lock.Outcome{lock.OutcomeAcquired, lock.OutcomeAlreadyCompleted, lock.OutcomeReleased},
		},
		"no keys":              {err: func(err error) bool { return isKeyError(err) && strings.Contains(err.Error(), "keys are none") }, outcomes: []lock.Outcome{lock.OutcomeRefused}},
		"a key without a name": {event: transfer{ID: "1", From: "omar"}, err: isKeyError, outcomes: []lock.Outcome{lock.OutcomeRefused}},
		"no usable key":        {event: transfer{ID: "1", From: "omar", To: "omar"}, err: isKeyError, outcomes: []lock.Outcome{lock.OutcomeRefused}},
		"nothing to do":        {event: transfer{From: "nothing"}, outcomes: []lock.Outcome{middleware.OutcomeIgnored}},
		"needs no lock":        {event: transfer{From: "free"}, ran: true, outcomes: []lock.Outcome{middleware.OutcomeNoLock}},
		"the first does not answer, fail open": {
			prepare: func(_ *testing.T, f *fixture) { f.faulty.Always(fault.Acquire, fault.DropBefore) },
			event:   omarToJane, ran: true, options: []middleware.Option{middleware.FailOpen()},
			outcomes: []lock.Outcome{lock.OutcomeStoreFailed, middleware.OutcomeUnlocked},
		},
		"the second does not answer, fail open": {
			prepare: func(_ *testing.T, f *fixture) {
				f.faulty.Plan(fault.Acquire, fault.None)
				f.faulty.Always(fault.Acquire, fault.DropBefore)
			},
			event: omarToJane, ran: true, options: []middleware.Option{middleware.FailOpen()},
			outcomes: []lock.Outcome{lock.OutcomeAcquired, lock.OutcomeStoreFailed, lock.OutcomeReleased, middleware.OutcomeUnlocked},
		},
		"the second is denied, fail open": {
			prepare: func(_ *testing.T, f *fixture) { f.faulty.Plan(fault.Acquire, fault.None, fault.Deny) },
			event:   omarToJane, err: func(err error) bool { return errors.As(err, new(*lock.StoreError)) }, options: []middleware.Option{middleware.FailOpen()},
			outcomes: []lock.Outcome{lock.OutcomeAcquired, lock.OutcomeStoreFailed, lock.OutcomeReleased},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture()
				if c.prepare != nil {
					c.prepare(t, f)
				}
				ran := false
				h := middleware.WithLocks(bothAccounts, func(ctx context.Context, _ transfer) error {
					ran = true
					locked := !slices.Contains(c.outcomes, middleware.OutcomeUnlocked) && !slices.Contains(c.outcomes, middleware.OutcomeNoLock)
					if n := len(lock.Leases(ctx)); n != 2 && locked || n != 0 && !locked {
						t.Errorf("the handler runs under %d leases", n)
					}
					return c.handler
				}, f.options(c.options...)...)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := h(ctx, c.event)
				if ran != c.ran || (err != nil) != (c.err != nil) || err != nil && !c.err(err) {
					t.Errorf("ran: %v, want %v; error %T %v", ran, c.ran, err, err)
				}
				for _, o := range f.of(middleware.OutcomeUnlocked) {
					if o.Key.Name != c.event.From {
						t.Errorf("reported for %q, want the first key with an Event", o.Key.Name)
					}
				}
				f.want(t, c.outcomes...)
				f.faulty.Always(fault.Acquire, fault.None)
				time.Sleep(6 * time.Second) // the lease of another function
				if c.event.From != "" && c.event.To != "" {
					f.wantFree(t, "omar", "jane")
				}
			})
		})
	}
}

// TestWithLocksOfNoEvent shows that the first key stands for an event of which
// no key says which one it is.
func TestWithLocksOfNoEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.faulty.Always(fault.Acquire, fault.DropBefore)
		keys := func(context.Context, order) ([]lock.Key, error) { return []lock.Key{{Name: "b"}, {Name: "a"}}, nil }
		h := middleware.WithLocks(keys, func(context.Context, order) error { return nil }, f.options(middleware.FailOpen())...)
		expect.OK(t, h(t.Context(), order{}))
		if o := f.of(middleware.OutcomeUnlocked); len(o) != 1 || o[0].Key.Name != "b" {
			t.Errorf("reported %+v, want the first key", o)
		}
	})
}

func isKeyError(err error) bool { _, ok := err.(*lock.NoKeyError); return ok }

// TestWithLocksRequests shows what the store is asked for n keys.
func TestWithLocksRequests(t *testing.T) {
	f := newFixture()
	const n = 50
	keys := func(context.Context, order) ([]lock.Key, error) {
		var all []lock.Key
		for i := range n {
			all = append(all, lock.Key{Name: fmt.Sprint(n - i), Event: "e"})
		}
		return all, nil
	}
	runs := 0
	h := middleware.WithLocks(keys, func(context.Context, order) (int, error) { runs++; return 7, nil }, f.options(middleware.OnCompleted(middleware.Replay))...)
	for range 2 {
		if v, err := h(t.Context(), order{}); v != 7 || err != nil {
			t.Errorf("got %v, %v", v, err)
		}
	}
	acquires, releases := f.faulty.Requests(fault.Acquire), f.faulty.Requests(fault.Release)
	if runs != 1 || acquires != n+1 || releases != n {
		t.Errorf("%d runs, %d and %d requests; want 1 run, %d requests to acquire, one more for the duplicate, and %d to complete", runs, acquires, releases, n, n)
	}
}

// TestWithLocksPanics shows that a panic and runtime.Goexit release all locks
// and reach the caller.
func TestWithLocksPanics(t *testing.T) { // F18
	for name, fail := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			h := middleware.WithLocks(bothAccounts, func(context.Context, transfer) error { fail(); return nil }, f.options()...)
			ended := make(chan any)
			go func() {
				defer func() { ended <- recover() }()
				_ = h(t.Context(), omarToJane)
				t.Error("the wrapper returned")
			}()
			if p := <-ended; name == "panic" && p != "boom" {
				t.Errorf("recovered %v", p)
			}
			f.want(t, lock.OutcomeAcquired, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeReleased)
			f.wantFree(t, "omar", "jane")
		})
	}
}

// TestWithLocksStream shows that all locks are held until the body ends.
func TestWithLocksStream(t *testing.T) {
	for name, c := range map[string]struct {
		end       func(io.ReadCloser)
		completed bool
	}{
		"read to its end": {func(body io.ReadCloser) { _, _ = io.ReadAll(body) }, true},
		"closed":          {func(body io.ReadCloser) { _ = body.Close() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			var ctx context.Context
			h := middleware.WithLocks(bothAccounts, func(c context.Context, _ transfer) (io.ReadCloser, error) {
				ctx = c
				return io.NopCloser(strings.NewReader("rows")), nil
			}, f.options()...)
			body, err := h(t.Context(), omarToJane)
			if err != nil || ctx.Err() != nil {
				t.Fatal(err, ctx.Err())
			}
			f.want(t, lock.OutcomeAcquired, lock.OutcomeAcquired)
			c.end(body)
			f.want(t, lock.OutcomeReleased, lock.OutcomeReleased)
			if ctx.Err() == nil {
				t.Error("the context goes on")
			}
			_, err = h(t.Context(), omarToJane)
			f.want(t, map[bool][]lock.Outcome{true: {lock.OutcomeAlreadyCompleted}, false: {lock.OutcomeAcquired, lock.OutcomeAcquired}}[c.completed]...)
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// rawWithContext is a raw handler that looks at its context.
type rawWithContext func(context.Context, []byte) ([]byte, error)

func (f rawWithContext) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return f(ctx, payload)
}

// TestWithLocksRaw shows a handler of bytes under several locks.
func TestWithLocksRaw(t *testing.T) {
	f := newFixture()
	runs := 0
	h := middleware.WithLocks(bothAccounts, lambda.Handler(rawWithContext(func(ctx context.Context, _ []byte) ([]byte, error) {
		runs++
		return json.Marshal(len(lock.Leases(ctx)))
	})), f.options(middleware.OnCompleted(middleware.Replay))...)
	for range 2 {
		if out, err := h.Invoke(t.Context(), []byte(`{"ID":"1","From":"omar","To":"jane"}`)); string(out) != "2" || err != nil {
			t.Errorf("got %s, %v", out, err)
		}
	}
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
	if _, err := h.Invoke(t.Context(), []byte(`[]`)); !isKeyError(err) {
		t.Errorf("another event: %v", err)
	}
}

// TestWithLocksHTTP shows that an Idempotency-Key may be one of several keys:
// the first response is replayed, and a request for an account that is held
// gets 409.
func TestWithLocksHTTP(t *testing.T) {
	f := newFixture()
	account := func(_ context.Context, r events.APIGatewayV2HTTPRequest) (lock.Key, error) {
		return lock.Key{Name: "account/" + r.PathParameters["account"]}, nil
	}
	keys := keyfuncs.All(keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest], account)
	runs := 0
	h := middleware.WithLocks(keys, func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		runs++
		return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated, Body: fmt.Sprint(runs)}, nil
	}, f.options()...)
	request := func(key, account string) events.APIGatewayV2HTTPResponse {
		t.Helper()
		r := events.APIGatewayV2HTTPRequest{
			Version: "2.0", RawPath: "/accounts/" + account, PathParameters: map[string]string{"account": account},
			Headers:        map[string]string{"idempotency-key": key},
			RequestContext: events.APIGatewayV2HTTPRequestContext{APIID: "api", Stage: "$default", HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{Method: "POST", Path: "/accounts/" + account}},
		}
		response := expect.Value(h(t.Context(), r))(t)
		return response
	}
	first, again := request("k1", "jane"), request("k1", "jane")
	if first.StatusCode != http.StatusCreated || again.StatusCode != http.StatusCreated || again.Body != first.Body || again.Headers["Idempotent-Replayed"] != "true" || runs != 1 {
		t.Errorf("first %+v, again %+v, %d runs", first, again, runs)
	}
	if other := request("k1", "omar"); other.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("another request with the same key: %+v", other)
	}
	held := f.acquireElsewhere(t, lock.Key{Name: "account/jane"})
	if busy := request("k2", "jane"); busy.StatusCode != http.StatusConflict || busy.Headers["Retry-After"] == "" {
		t.Errorf("the account is held: %+v", busy)
	}
	_ = held.Release()
	if next := request("k2", "jane"); next.StatusCode != http.StatusCreated || runs != 2 {
		t.Errorf("the next request: %+v", next)
	}
}

// TestResultOfASetDropped shows which lock is reported when the result of a set
// cannot be stored.
func TestResultOfASetDropped(t *testing.T) { // F35
	f := newFixture()
	keys := func(context.Context, order) ([]lock.Key, error) {
		return []lock.Key{{Name: "b"}, {Name: "a", Event: "e"}}, nil
	}
	h := middleware.WithLocks(keys, func(context.Context, order) (func(), error) { return nil, nil }, f.options(middleware.OnCompleted(middleware.Replay))...)
	expect.Value(h(t.Context(), order{}))(t)
	dropped, acquired := f.of(lock.OutcomeResultDropped), f.of(lock.OutcomeAcquired)
	if len(dropped) != 1 || dropped[0].Key.Name != "b" || dropped[0].Fence != acquired[1].Fence {
		t.Errorf("reported %+v", dropped)
	}
	// A second event is refused by the first key that has an Event.
	if _, err := h(t.Context(), order{}); err != nil || f.count(lock.OutcomeAlreadyCompleted) != 1 {
		t.Errorf("a duplicate: %v", err)
	}
}

func TestWithLocksWrongUse(t *testing.T) {
	handler := func(context.Context, transfer) error { return nil }
	wantPanic(t, func() { middleware.WithLocks[transfer](nil, handler) }, "keyfuncs.All")
	wantPanic(t, func() { middleware.WithLocks(bothAccounts, (func(context.Context, transfer) error)(nil)) }, "handler is nil")
	wantPanic(t, func() { middleware.WithLocks(bothAccounts, func(context.Context, order) error { return nil }) }, "order", "transfer")
	wantPanic(t, func() { middleware.WithLocks(bothAccounts, handler, middleware.Concurrency(2)) }, "Concurrency")
}
