package middleware_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// preflight makes a request what a browser asks before it: OPTIONS, without
// body, credentials and headers of one's own.
func preflight(e map[string]any) {
	sentWith("")(e)
	withoutHeader(e)
	delete(e, "body")
	e["isBase64Encoded"] = false
	c := e["requestContext"].(map[string]any)
	if h, ok := c["http"].(map[string]any); ok {
		h["method"] = http.MethodOptions
	} else {
		e["httpMethod"] = http.MethodOptions
	}
}

// TestPreflight shows that a preflight request reaches the handler on every
// route, without a lock, and while the request that follows it is in progress.
func TestPreflight(t *testing.T) {
	t.Parallel()
	onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
		if strings.Contains(t.Name(), "own_event_without_a_context") {
			t.Skip("the handler does not see the method either")
		}
		f, runs := newFixture(), 0
		call := r(t, f, required, func() (reply, error) { runs++; return created, nil })
		for range 2 {
			if got, err := call(edited(t, doc, preflight)); err != nil || got.status != created.status || got.mark() != "" {
				t.Errorf("%+v, %v", got, err)
			}
		}
		f.want(t, middleware.OutcomeNoLock, middleware.OutcomeNoLock)
		got, err := call(edited(t, doc, withoutHeader)) // a POST
		wantProblem(t, got, err, http.StatusBadRequest, "Idempotency-Key")
		if runs != 2 {
			t.Errorf("%d runs", runs)
		}
	})
}

// TestPreflightOfAnyKey shows that no key function has to know of preflight
// requests, and that one that has a key for them keeps its lock.
func TestPreflightOfAnyKey(t *testing.T) {
	t.Parallel()
	empty := keyfuncs.ByField(func(e restEvent) string { return e.Headers["x-order"] })
	byBody := keyfuncs.HTTPBody[restEvent](keyfuncs.ByField(func(o order) string { return o.ID }))
	broken := func(context.Context, restEvent) (lock.Key, error) { return lock.Key{}, errors.New("no order") }
	ignoring := func(context.Context, restEvent) (lock.Key, error) { return lock.Key{}, keyfuncs.ErrIgnore }
	static := keyfuncs.Func[restEvent](func(context.Context, restEvent) (lock.Key, error) { return lock.Key{Name: "job"}, nil })
	for name, c := range map[string]struct {
		key  keyfuncs.Func[restEvent]
		want []lock.Outcome
	}{
		"a field":   {empty, []lock.Outcome{middleware.OutcomeNoLock}},
		"the body":  {byBody, []lock.Outcome{middleware.OutcomeNoLock}},
		"an error":  {broken, []lock.Outcome{middleware.OutcomeNoLock}},
		"ErrIgnore": {ignoring, []lock.Outcome{middleware.OutcomeIgnored}},
		"a mutex":   {static, []lock.Outcome{lock.OutcomeAcquired, lock.OutcomeReleased}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			e := restEvent{HTTPMethod: http.MethodOptions}
			e.RequestContext.APIID = "api"
			handle := func(context.Context, restEvent) (ownResponse, error) { return ownResponse{Code: 200}, nil }
			if _, err := middleware.WithLock(c.key, handle, f.options()...)(t.Context(), e); err != nil {
				t.Error(err)
			}
			f.want(t, c.want...)
			if _, err := middleware.WithLocks(keyfuncs.All(static, c.key), handle, f.options()...)(t.Context(), e); err != nil {
				t.Error(err)
			}
			f.want(t, c.want...)
		})
	}
}

// TestPreflightOfARedactedRequest shows that the method is read from the
// request that a type of the user's embeds, whatever its JSON form leaves out.
func TestPreflightOfARedactedRequest(t *testing.T) {
	t.Parallel()
	f := newFixture()
	h := middleware.WithLock(keyfuncs.IdempotencyKey[redactedEvent], func(context.Context, redactedEvent) (ownResponse, error) {
		return ownResponse{Code: http.StatusNoContent}, nil
	}, f.options()...)
	if got, err := h(t.Context(), redactedEvent{restEvent{HTTPMethod: http.MethodOptions}}); err != nil || got.Code != http.StatusNoContent {
		t.Errorf("%+v, %v", got, err)
	}
	f.want(t, middleware.OutcomeNoLock)
}

// TestOptionsWithoutGateway shows that an event which no gateway sent does not
// pass for a preflight request, whatever its members say: without a key it is
// refused.
func TestOptionsWithoutGateway(t *testing.T) { // F26
	t.Parallel()
	f := newFixture()
	h := middleware.WithLock(keyfuncs.ByField(func(map[string]any) string { return "" }), func(context.Context, map[string]any) (any, error) {
		t.Error("the handler ran")
		return nil, nil
	}, f.options()...)
	if _, err := h(t.Context(), map[string]any{"httpMethod": http.MethodOptions}); !errors.As(err, new(*lock.NoKeyError)) {
		t.Errorf("%v, want a NoKeyError", err)
	}
	f.want(t, lock.OutcomeRefused)
}
