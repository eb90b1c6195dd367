package suite

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
)

// Handle is the handler of the tracing examples.
type Handle = func(ctx context.Context, e events.EventBridgeEvent) error

// Tracer checks a handler that is traced and locked: it runs once for each
// event and again after a failure. hasSpan reports whether a context has a
// span. spans returns how many have ended since the last call. skippedToo says
// whether an invocation that is skipped has a span.
func Tracer(t *testing.T, build func(Handle) any, hasSpan func(context.Context) bool, spans func() int, skippedToo bool) {
	var ran []string
	failed := errors.New("the order system is down")
	handler := build(func(ctx context.Context, e events.EventBridgeEvent) error {
		ran = append(ran, e.ID)
		if _, ok := lock.FromContext(ctx); !ok || !hasSpan(ctx) {
			t.Errorf("the handler's context has a lock: %v, a span: %v", ok, hasSpan(ctx))
		}
		if e.DetailType == "late" && len(ran) == 2 {
			return failed
		}
		return nil
	})
	skipped := 0
	if skippedToo {
		skipped = 1
	}
	for _, d := range []delivery{
		{"an event", "1", "order", nil, []string{"1"}, 1},
		{"its duplicate", "1", "order", nil, []string{"1"}, skipped},
		{"one that fails", "2", "late", failed, []string{"1", "2"}, 1},
		{"its retry", "2", "late", nil, []string{"1", "2", "2"}, 1},
		{"one without an id", "", "order", errNoKey, []string{"1", "2", "2"}, skipped},
	} {
		_, err := Invoke(t.Context(), handler, eventBridge(d.id, d.detailType))
		if errors.As(err, new(*lock.NoKeyError)) {
			err = errNoKey
		}
		if err != d.err {
			t.Errorf("%s: error %v, want %v", d.name, err, d.err)
		}
		if !slices.Equal(ran, d.ran) {
			t.Errorf("%s: the handler ran for %v, want %v", d.name, ran, d.ran)
		}
		if n := spans(); n != d.spans {
			t.Errorf("%s: %d spans, want %d", d.name, n, d.spans)
		}
	}
}

// errNoKey takes the place of every *lock.NoKeyError.
var errNoKey = errors.New("no key")

// delivery is one delivery of an event, and what has happened then.
type delivery struct {
	name, id, detailType string
	err                  error
	ran                  []string // the events for which the handler ran so far
	spans                int
}

// Raw is a handler as a lambda.Handler.
type Raw struct{ Handle Handle }

// Invoke implements lambda.Handler.
func (r Raw) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var e events.EventBridgeEvent
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, err
	}
	return []byte("null"), r.Handle(ctx, e)
}

// eventBridge returns an event as a rule delivers it.
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html
func eventBridge(id, detailType string) []byte {
	return []byte(strings.NewReplacer("ID", id, "TYPE", detailType).Replace(
		`{"version":"0","id":"ID","detail-type":"TYPE","source":"shop.orders","account":"123456789012","time":"2026-03-12T19:03:58Z","region":"eu-central-1","resources":[],"detail":{"order":9007199254740993}}`))
}
