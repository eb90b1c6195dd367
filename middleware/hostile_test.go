package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/hostile"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/jmespath"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestHostileKeys shows that whatever the parts of an event contain that become
// a key, log lines, errors and answers to clients have no raw control
// character, and show the key only on request.
func TestHostileKeys(t *testing.T) { // F27, F30, F31
	t.Parallel()
	const seed = 4
	keys := 200
	if os.Getenv("LAMBDALOCK_SEEDS") != "" {
		keys = 10_000
	}
	n, lines := 0, 0
	for text := range hostile.Keys(seed, keys) {
		n++
		for _, logKeys := range []bool{false, true} {
			said := &hostile.Said{}
			options := []middleware.Option{middleware.Store(memstore.New()), middleware.Logger(slog.New(said))}
			if logKeys {
				options = append(options, middleware.LogKeys())
			}
			request(t, said, text, options)
			records(t, said, text, options)
			for _, line := range said.Lines() {
				if raw, found := hostile.Raw(line); found {
					t.Fatalf("seed %d, key %d, %q: raw %q in %.700q", seed, n, text, raw, line)
				}
				if part, found := hostile.Shows(line, text[:12]); found && !logKeys {
					t.Fatalf("seed %d, key %d, %q: shows %q in %.700q", seed, n, text, part, line)
				}
				lines++
			}
		}
	}
	t.Logf("%d keys, %d log lines, errors and answers", n, lines)
}

// request sends HTTP requests with text as their key: one that is repeated
// while it is in progress and afterwards, with another body too.
func request(t *testing.T, said *hostile.Said, text string, options []middleware.Option) {
	t.Helper()
	type call = events.APIGatewayV2HTTPRequest
	with := func(body string) call {
		r := call{Version: "2.0", RouteKey: "POST /orders", RawPath: "/orders", Headers: map[string]string{"idempotency-key": text}, Body: body}
		r.RequestContext.HTTP.Method = "POST"
		return r
	}
	var h func(context.Context, call) (events.APIGatewayV2HTTPResponse, error)
	send := func(body string) {
		t.Helper()
		answer, err := h(t.Context(), with(body))
		said.Error(err)
		said.Answer(answer.Body)
		for name, value := range answer.Headers {
			said.Answer(name + ": " + value)
		}
	}
	first := true
	h = middleware.WithLock(keyfuncs.IdempotencyKey[call], func(context.Context, call) (events.APIGatewayV2HTTPResponse, error) {
		if first {
			first = false
			send("a")
			send("b")
		}
		return events.APIGatewayV2HTTPResponse{StatusCode: 200, Body: "done"}, nil
	}, options...)
	send("a")
	send("a")
	send("b")
}

// records sends batches and events of S3 that name text, and fail.
func records(t *testing.T, said *hostile.Said, text string, options []middleware.Option) {
	t.Helper()
	failed := errors.New("failed")
	batch := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { return failed }, options...)
	_, err := batch(t.Context(), sqsBatch(message(text, text), message(text+"2", text)))
	said.Error(err)
	body := middleware.EachSQSMessage(keyfuncs.SQSBody(jmespath.Path("id")), func(context.Context, events.SQSMessage) error { return failed }, options...)
	quoted := expect.Value(json.Marshal(map[string]any{"id": text, text: text}))(t)
	for _, b := range []string{text, string(quoted), `{"id": {"` + "a" + `": 1}}`, `{"id": ` + text + `}`} {
		_, err := body(t.Context(), sqsBatch(message("m", b)))
		said.Error(err)
	}
	object := middleware.WithLock(keyfuncs.S3Object, func(context.Context, events.S3Event) error { return failed }, options...)
	e := events.S3Event{Records: []events.S3EventRecord{{EventSource: "aws:s3", EventName: "ObjectCreated:Put"}}}
	e.Records[0].S3.Bucket.Name, e.Records[0].S3.Object.URLDecodedKey, e.Records[0].S3.Object.Key, e.Records[0].S3.Object.Sequencer = text, text, text, text
	said.Error(object(t.Context(), e))
	e.Records[0].EventSource = text[12:] // which errors tell: keys do not have it
	said.Error(object(t.Context(), e))
	raw := middleware.WithLock(keyfuncs.S3Object, func(context.Context, json.RawMessage) error { return failed }, options...)
	said.Error(raw(t.Context(), json.RawMessage(text)))
	said.Error(raw(t.Context(), json.RawMessage(fmt.Sprintf(`{"Records":[{"eventSource":"aws:s3","s3":{"object":{"key":%q}}}]}`, "%zz"+text))))
	both := middleware.WithLocks(func(context.Context, order) ([]lock.Key, error) {
		return slices.Repeat([]lock.Key{{Name: text, Event: text}}, 2), nil
	}, func(context.Context, order) error { return failed }, options...)
	said.Error(both(t.Context(), order{}))
}
