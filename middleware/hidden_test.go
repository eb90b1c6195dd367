package middleware_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// TestHTTPSkipBehindAny shows that a request of which only the payload tells
// that it came over HTTP is not answered without a status: the client would
// take it for done, and its source delivers nothing again.
func TestHTTPSkipBehindAny(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		option middleware.Option
		later  bool // the second request comes after the first one
	}{
		"held, Skip":      {middleware.OnHeld(middleware.Skip), false},
		"held, Coalesce":  {middleware.OnHeld(middleware.Coalesce), false},
		"completed, Skip": {middleware.OnCompleted(middleware.Skip), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				request := json.RawMessage(gatewayEvent(t, "apigateway-rest"))
				ids := []string{"first", "other"}
				if c.later {
					ids[1] = "first"
				}
				asked, runs := 0, 0
				byTurn := func(context.Context, json.RawMessage) (lock.Key, error) {
					asked++
					return lock.Key{Name: "n", Event: ids[asked-1]}, nil
				}
				var h func(context.Context, json.RawMessage) (any, error)
				ask := func() {
					out, err := h(t.Context(), request)
					if got, err := sent(t, out, err); err != nil || got.status != http.StatusConflict {
						t.Errorf("the client got %+v, %v", got, err)
					}
				}
				h = middleware.WithLock(byTurn, func(context.Context, json.RawMessage) (any, error) {
					if runs++; runs == 1 && !c.later {
						ask()
					}
					return map[string]any{"statusCode": 200}, nil
				}, newFixture().options(c.option)...)
				if _, err := h(t.Context(), request); err != nil {
					t.Error(err)
				}
				if c.later {
					ask()
				}
			})
		})
	}
}
