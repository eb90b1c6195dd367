package middleware_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
)

type (
	urlCall   = events.LambdaFunctionURLRequest
	urlAnswer = events.LambdaFunctionURLResponse
)

var order7Key = lock.Key{Name: "orders/7", Event: "7", Payload: "-"}

func byURLOrder(context.Context, urlCall) (lock.Key, error) { return order7Key, nil }

// responds is a raw handler with that response.
type responds string

func (r responds) Invoke(context.Context, []byte) ([]byte, error) { return []byte(r), nil }

// TestAskForBytes: bytes that stand for JSON are the answer, and no text in
// base64, also in a lambda.Handler.
func TestAskForBytes(t *testing.T) { // F19
	t.Parallel()
	const paid = `{"statusCode":201,"body":"paid"}`
	asBytes := middleware.AskFor(func(context.Context, urlCall) ([]byte, bool, error) { return []byte(paid), true, nil })
	asResponse := middleware.AskFor(func(context.Context, urlCall) (urlAnswer, bool, error) {
		return urlAnswer{StatusCode: http.StatusCreated, Body: "paid"}, true, nil
	})
	raw := func(opts []middleware.Option) func(context.Context) ([]byte, error) {
		h := middleware.WithLock[urlCall, lambda.Handler](byURLOrder, responds(`{"statusCode":200}`), opts...)
		return func(ctx context.Context) ([]byte, error) {
			return h.Invoke(ctx, []byte(`{"version":"2.0","requestContext":{"http":{"method":"POST"}}}`))
		}
	}
	function := func(opts []middleware.Option) func(context.Context) ([]byte, error) {
		h := middleware.WithLock(byURLOrder, func(context.Context, urlCall) (json.RawMessage, error) {
			return json.RawMessage(`{"statusCode":200}`), nil
		}, opts...)
		return func(ctx context.Context) ([]byte, error) { return h(ctx, urlCall{}) }
	}
	for name, c := range map[string]struct {
		open   func([]middleware.Option) func(context.Context) ([]byte, error)
		policy middleware.InterruptedPolicy
	}{
		"lambda.Handler":             {raw, asBytes},
		"lambda.Handler, a response": {raw, asResponse},
		"function of JSON":           {function, asBytes},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture()
				f.interrupt(t, order7Key)
				h := c.open(f.options(middleware.Namespace(""), middleware.OnInterrupted(c.policy)))
				for range 2 {
					var got urlAnswer
					out, err := h(t.Context())
					if err != nil || json.Unmarshal(out, &got) != nil || got.StatusCode != http.StatusCreated || got.Body != "paid" {
						t.Errorf("got %s, error %v", out, err)
					}
				}
			})
		})
	}
}

// TestAskForText: a text is the answer as JSON, also of a lambda.Handler, whose
// own answer is bytes.
func TestAskForText(t *testing.T) { // F19
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.interrupt(t, order7Key)
		key := func(context.Context, order) (lock.Key, error) { return order7Key, nil }
		ask := middleware.AskFor(func(context.Context, order) (string, bool, error) { return "paid", true, nil })
		h := middleware.WithLock[order, lambda.Handler](key, responds(`"7"`), f.options(middleware.Namespace(""), middleware.OnInterrupted(ask), middleware.OnCompleted(middleware.Replay))...)
		if out, err := h.Invoke(t.Context(), []byte(`{"ID":"7"}`)); string(out) != `"paid"` || err != nil {
			t.Errorf("got %s, error %v", out, err)
		}
	})
}

// TestAnswerIsKeptLikeAResult: what AskFor returns is not stored where the
// handler's result would not be.
func TestAnswerIsKeptLikeAResult(t *testing.T) { // F19
	t.Parallel()
	answer := urlAnswer{StatusCode: http.StatusCreated, Body: "paid"}
	cookie := urlAnswer{StatusCode: http.StatusCreated, Cookies: []string{"session=secret"}}
	for name, c := range map[string]struct {
		answer  urlAnswer
		opts    []middleware.Option
		caller  keyfuncs.Func[urlCall]
		kept    bool
		dropped int // reports that Replay has nothing
	}{
		"by default":                   {answer: answer, kept: true},
		"OnCompleted(Fail)":            {answer: answer, opts: []middleware.Option{middleware.OnCompleted(middleware.Fail)}},
		"a cookie":                     {answer: cookie, caller: keyfuncs.Caller[urlCall], kept: true},
		"a cookie, and an own payload": {answer: cookie, dropped: 1},
		"a cookie, for who knows who":  {answer: cookie, caller: keyfuncs.Anonymous[urlCall], dropped: 1},
		"a cookie, that is not replayed": {
			answer: cookie, caller: keyfuncs.Anonymous[urlCall], opts: []middleware.Option{middleware.OnCompleted(middleware.Fail)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture()
				key := keyfuncs.Func[urlCall](byURLOrder)
				k := order7Key
				if c.caller != nil {
					k.Payload = ""
					key = keyfuncs.PayloadFrom(func(context.Context, urlCall) (lock.Key, error) { return k, nil }, c.caller)
				}
				f.interrupt(t, k)
				ask := middleware.AskFor(func(context.Context, urlCall) (urlAnswer, bool, error) { return c.answer, true, nil })
				h := middleware.WithLock(key, func(context.Context, urlCall) (urlAnswer, error) { return urlAnswer{}, nil },
					f.options(append(slices.Clone(c.opts), middleware.Namespace(""), middleware.OnInterrupted(ask))...)...)
				_, _ = h(t.Context(), urlCall{Headers: map[string]string{"authorization": "Bearer x"}})
				if n := f.count(lock.OutcomeResultDropped); n != c.dropped {
					t.Errorf("%d reports of a dropped answer, want %d", n, c.dropped)
				}
				for row, err := range f.faulty.Store.(driver.Inspector).Rows(t.Context(), "") {
					if m := row.Memory; err != nil || len(m.Completed) != 1 || (m.Result.Body != nil) != c.kept {
						t.Errorf("the row keeps %s: %v", m.Result.Body, err)
					}
				}
			})
		})
	}
}

// TestAskForTooLong: like the handler's own, an answer that the gateway would
// refuse to send does not complete the event, unless it need not be sent.
func TestAskForTooLong(t *testing.T) { // F19
	t.Parallel()
	for name, c := range map[string]struct {
		opts  []middleware.Option
		asked int
	}{
		"sent":     {nil, 2},
		"not sent": {[]middleware.Option{middleware.OnCompleted(middleware.Fail)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture()
				f.interrupt(t, order7Key)
				asked := 0
				ask := middleware.AskFor(func(context.Context, urlCall) (urlAnswer, bool, error) {
					asked++
					return urlAnswer{StatusCode: http.StatusCreated, Body: strings.Repeat("x", 7<<20)}, true, nil
				})
				h := middleware.WithLock(byURLOrder, func(context.Context, urlCall) (urlAnswer, error) { return urlAnswer{}, nil },
					f.options(append(slices.Clone(c.opts), middleware.Namespace(""), middleware.OnInterrupted(ask))...)...)
				for range 2 {
					if got, err := h(t.Context(), urlCall{}); err == nil {
						t.Errorf("an answer of %d bytes", len(got.Body))
					}
				}
				if asked != c.asked {
					t.Errorf("asked %d times, want %d", asked, c.asked)
				}
			})
		})
	}
}
