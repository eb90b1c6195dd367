package middleware_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
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

// embeddedStream is a streaming response with something of the user's.
type embeddedStream struct {
	*events.LambdaFunctionURLStreamingResponse
	Receipt int
}

type embeddedValue struct {
	events.APIGatewayProxyStreamingResponse
}

// TestEmbeddedStreamBehindAny shows that a streaming response inside a type of
// the user's is judged by its status: after a failure the retry runs. It is not
// stored, which is reported only of the one that completes the event.
func TestEmbeddedStreamBehindAny(t *testing.T) { // F49
	t.Parallel()
	for name, embed := range map[string]func(int, io.Reader) any{
		"in a value": func(status int, body io.Reader) any {
			return embeddedStream{&events.LambdaFunctionURLStreamingResponse{StatusCode: status, Body: body}, 7}
		},
		"by value": func(status int, body io.Reader) any {
			return &embeddedValue{events.APIGatewayProxyStreamingResponse{StatusCode: status, Body: body}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, runs := newFixture(), 0
			h := middleware.WithLock(byOrder, func(context.Context, order) (any, error) {
				runs++
				return embed([]int{503, 201}[min(runs, 2)-1], strings.NewReader("receipt")), nil
			}, f.options()...)
			for _, want := range []string{"503", "201"} {
				out := expect.Value(h(t.Context(), order{ID: "1"}))(t)
				if b, err := io.ReadAll(out.(io.Reader)); err != nil || !strings.Contains(string(b), want) || !strings.HasSuffix(string(b), "receipt") {
					t.Errorf("%q, %v; want %s", b, err, want)
				}
			}
			if out, err := h(t.Context(), order{ID: "1"}); out != nil || err != nil || runs != 2 {
				t.Errorf("%v, %v after %d runs", out, err, runs)
			}
			f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAcquired, lock.OutcomeResultDropped, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted)
		})
	}
}

// TestStreamThatNobodyReads shows that a stream is closed if a callback panics
// before the runtime gets it: a wrapper inside releases its lock then.
func TestStreamThatNobodyReads(t *testing.T) { // F48
	t.Parallel()
	for name, fail := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			b := &body{Reader: strings.NewReader("text")}
			inside := middleware.WithLock(byOrder, func(context.Context, order) (io.Reader, error) { return b, nil }, f.options()...)
			h := middleware.WithLock(lockPerOrder, inside, newFixture().options(middleware.CompletedIf(func(io.Reader) bool { fail(); return true }))...)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				defer func() { _ = recover() }()
				_, _ = h(t.Context(), order{ID: "1"})
			}()
			<-ended
			if !b.closed {
				t.Error("the body is open")
			}
			f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased)
		})
	}
}
