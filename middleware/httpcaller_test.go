package middleware_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// sentWith makes a request one that no gateway authenticated, with this
// Authorization header; empty: none.
func sentWith(authorization string) func(map[string]any) {
	return func(e map[string]any) {
		delete(e["requestContext"].(map[string]any), "authorizer")
		if headers, ok := e["headers"].(map[string]any); ok {
			delete(headers, "x-amzn-oidc-identity")
			if authorization != "" {
				headers["authorization"] = authorization
			}
		}
		if headers, ok := e["multiValueHeaders"].(map[string]any); ok && authorization != "" {
			headers["Authorization"] = []string{authorization}
		}
	}
}

// TestStrangerGetsNoStoredAnswer shows that the answer to a request is not
// replayed to somebody else who has its key, where the handler itself checks
// who asks: neither while the request is in progress nor afterwards.
func TestStrangerGetsNoStoredAnswer(t *testing.T) { // F28, F37, F61
	t.Parallel()
	onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
		f, runs := newFixture(), 0
		alice := edited(t, doc, sentWith("Bearer alice"))
		strangers := [][]byte{edited(t, doc, sentWith("Bearer mallory")), edited(t, doc, sentWith(""))}
		var call func([]byte) (reply, error)
		refused := func() {
			for _, s := range strangers {
				got, err := call(s)
				wantProblem(t, got, err, http.StatusUnprocessableEntity, "another caller")
			}
		}
		call = r(t, f, required, func() (reply, error) {
			runs++
			refused()
			return created, nil
		})
		for _, mark := range []string{"", "true"} {
			if got, err := call(alice); err != nil || got.status != created.status || got.mark() != mark {
				t.Errorf("%+v, %v; want mark %q", got, err, mark)
			}
			refused()
		}
		if runs != 1 {
			t.Errorf("%d runs", runs)
		}
	})
}

// TestRefusedTokenIsNotStored shows that a client whose token had expired gets
// its work done with a fresh one, and that a stranger cannot store a refusal
// under its key.
func TestRefusedTokenIsNotStored(t *testing.T) {
	t.Parallel()
	onEveryRoute(t, func(t *testing.T, r route, doc []byte) {
		f, token := newFixture(), ""
		call := r(t, f, required, func() (reply, error) {
			if token != "fresh" {
				return reply{status: http.StatusUnauthorized}, nil
			}
			return created, nil
		})
		for _, c := range []struct {
			token  string
			status int
		}{{"stranger", 401}, {"expired", 401}, {"fresh", created.status}, {"fresh", created.status}, {"stranger", 422}} {
			token = c.token
			if got, err := call(edited(t, doc, sentWith("Bearer "+c.token))); err != nil || got.status != c.status {
				t.Errorf("%s: %+v, %v; want status %d", c.token, got, err, c.status)
			}
		}
	})
}

// TestAnonymousAnswer shows that an API may say that credentials do not matter.
func TestAnonymousAnswer(t *testing.T) {
	t.Parallel()
	f, runs := newFixture(), 0
	h := middleware.WithLock(keyfuncs.HeaderKey("X-Request-Id", keyfuncs.Anonymous[v2Event]), func(context.Context, v2Event) (ownResponse, error) {
		runs++
		return ownResponse{Code: http.StatusCreated}, nil
	}, f.options()...)
	for _, token := range []string{"a", "b", ""} {
		e := v2Event{RawPath: "/", Headers: map[string]string{"x-request-id": "r", "authorization": token}}
		e.RequestContext.APIID, e.RequestContext.HTTP.Method = "api", "POST"
		if got, err := h(t.Context(), e); err != nil || got.Code != http.StatusCreated {
			t.Errorf("%+v, %v", got, err)
		}
	}
	f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted, lock.OutcomeAlreadyCompleted)
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
}
