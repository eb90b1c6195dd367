package middleware_test

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/patience"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// Types that users make of requests and responses.
type (
	definedEvent    v2Event
	definedResponse events.APIGatewayV2HTTPResponse
	definedRest     events.APIGatewayProxyResponse
	definedMap      map[string]any
	definedALB      events.ALBTargetGroupResponse
	embeddedALB     struct{ events.ALBTargetGroupResponse }
	embeddedEvent   struct {
		v2Event
		_ string
	}
	embeddedResponse struct {
		events.APIGatewayV2HTTPResponse
		logged bool
	}
	pointingEvent struct {
		*events.APIGatewayV2HTTPRequest
	}
	pointingResponse struct {
		*events.APIGatewayV2HTTPResponse
	}
	genericEvent[T any] struct {
		events.APIGatewayV2HTTPRequest
		_ T
	}
	genericResponse[T any] struct {
		events.APIGatewayV2HTTPResponse
		of T
	}
	ownEvent struct {
		Body           string            `json:"body"`
		Encoded        bool              `json:"isBase64Encoded"`
		Headers        map[string]string `json:"headers"`
		Path           string            `json:"rawPath"`
		RequestContext map[string]any    `json:"requestContext"`
	}
	ownBody struct {
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	}
)

func definedOf(r reply) definedResponse { return definedResponse(v2Of(r)) }

func embeddedOf(r reply) embeddedResponse { return embeddedResponse{v2Of(r), true} }

func pointingOf(r reply) pointingResponse {
	response := v2Of(r)
	return pointingResponse{&response}
}

func genericOf(r reply) genericResponse[int] { return genericResponse[int]{v2Of(r), 7} }

func mapOf[R any](build func(reply) R) func(reply) map[string]any {
	return func(r reply) map[string]any {
		b, _ := json.Marshal(build(r))
		var m map[string]any
		_ = json.Unmarshal(b, &m)
		return m
	}
}

// keyed is the route of a function that takes an E, of which IdempotencyKey
// knows nothing, behind the gateway of G.
func keyed[G, E, R any](build func(reply) R) route {
	return func(t *testing.T, f *fixture, o keyOption, do work, opts ...middleware.Option) func([]byte) (reply, error) {
		type docKey struct{}
		key := func(ctx context.Context, _ E) (lock.Key, error) {
			return rawKeyFor[G](o)(ctx, ctx.Value(docKey{}).([]byte))
		}
		h := middleware.WithLock(key, func(context.Context, E) (R, error) {
			r, err := do()
			if err != nil {
				return *new(R), err
			}
			return build(r), nil
		}, f.options(opts...)...)
		return func(doc []byte) (reply, error) {
			var e E
			expect.Must(t, json.Unmarshal(doc, &e))
			out, err := h(context.WithValue(t.Context(), docKey{}, doc), e)
			return sent(t, out, err)
		}
	}
}

// TestNotOverHTTP shows which results are not responses: those without a
// status, and those of handlers of another source.
func TestNotOverHTTP(t *testing.T) {
	t.Parallel()
	status := map[string]any{"statusCode": 503}
	notOverHTTP(t, events.SQSEvent{}, ownResponse{Code: 503})
	notOverHTTP(t, events.SQSEvent{}, status)
	notOverHTTP(t, &events.SQSEvent{}, any(status))
	notOverHTTP(t, awsevents.DocumentDBEvent{}, ownResponse{Code: 503})
	notOverHTTP(t, order{ID: "1"}, map[string]any{"done": true})
	notOverHTTP(t, order{ID: "1"}, struct{ StatusCode int }{503})
	for name, result := range map[string]any{
		"another name": map[string]any{"StatusCode": 503}, "below": map[string]any{"response": status}, "list": []any{status}, "text": `{"statusCode":503}`,
		"no status": map[string]any{"statusCode": "OK"}, "too low": map[string]any{"statusCode": 99}, "too high": map[string]any{"statusCode": 600},
		"none": map[string]any{"statusCode": nil}, "no number": map[string]any{"statusCode": status}, "broken": map[string]any{"statusCode": 503.5}, "null": nil,
	} {
		t.Run(name, func(t *testing.T) { notOverHTTP(t, order{ID: "1"}, result) })
	}
}

// notOverHTTP checks that a result completes its event, and that a duplicate is
// skipped.
func notOverHTTP[E, R any](t *testing.T, event E, result R) {
	t.Helper()
	f := newFixture()
	key := func(context.Context, E) (lock.Key, error) { return lock.Key{Name: "n", Event: "e"}, nil }
	h := middleware.WithLock(key, func(context.Context, E) (R, error) { return result, nil }, f.options()...)
	for i := range 2 {
		got, err := h(patience.Context(t), event)
		if v := reflect.ValueOf(&got).Elem(); err != nil || i == 1 && !v.IsZero() {
			t.Errorf("%d. %T: %v, %v", i+1, event, got, err)
		}
	}
	f.want(t, lock.OutcomeAcquired, lock.OutcomeReleased, lock.OutcomeAlreadyCompleted)
}

// writtenResponse can be written as JSON, but not read back.
type writtenResponse struct{ status int }

func (r writtenResponse) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]int{"statusCode": r.status})
}

func (r writtenResponse) Status() int { return r.status }

type textResponse struct {
	StatusCode string `json:"statusCode"`
}

// TestUnreadableResponse shows that a result with a status is refused if it
// cannot be read back: its replay would be a response without a status.
func TestUnreadableResponse(t *testing.T) {
	t.Parallel()
	type withStatus interface{ Status() int }
	for name, use := range map[string]func(...middleware.Option){
		"of a gateway":         unreadable[v2Event, writtenResponse],
		"a pointer":            unreadable[restEvent, *writtenResponse],
		"of a map":             unreadable[map[string]any, writtenResponse],
		"of JSON":              unreadable[json.RawMessage, writtenResponse],
		"of an own event":      unreadable[order, writtenResponse],
		"text":                 unreadable[v2Event, textResponse],
		"text of an own event": unreadable[order, textResponse],
		"interface":            unreadable[v2Event, withStatus],
	} {
		t.Run(name, func(t *testing.T) {
			judged, failing := middleware.CompletedIf(func(any) bool { return true }), middleware.OnCompleted(middleware.Fail)
			wantPanic(t, func() { use() }, "cannot be read back", "StatusCode int")
			wantPanic(t, func() { use(judged) }, "cannot be read back")
			wantPanic(t, func() { use(failing) }, "cannot be read back")
			if name != "interface" { // which Replay refuses for itself
				wantPanic(t, func() { use(judged, middleware.OnCompleted(middleware.Replay)) }, "cannot be read back")
			}
			use(judged, failing)
		})
	}
	unreadable[order, withStatus]() // says nothing about HTTP
	unreadable[events.SQSEvent, writtenResponse]()
}

func unreadable[E, R any](opts ...middleware.Option) {
	key := func(context.Context, E) (lock.Key, error) { return lock.Key{Name: "n", Event: "e"}, nil }
	middleware.WithLock(key, func(context.Context, E) (R, error) { return *new(R), nil }, newFixture().options(opts...)...)
}
