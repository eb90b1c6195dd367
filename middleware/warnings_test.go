package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/jmespath"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// logged is a log of warnings and errors, safe for concurrent use.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) option() middleware.Option {
	return middleware.Logger(slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn})))
}

func (l *logged) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimSpace(l.b.String())
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// TestReplayWithoutEventWarnsOnce: a key without an Event knows no duplicates, so that
// there is nothing to replay and each of them runs.
func TestReplayWithoutEventWarnsOnce(t *testing.T) {
	t.Parallel()
	payload := json.RawMessage(`{"order":{"id":"1"}}`)
	run := func(t *testing.T, log *logged, key keyfuncs.Func[json.RawMessage]) {
		t.Helper()
		h := middleware.WithLock(key, func(context.Context, json.RawMessage) (string, error) { return "ran", nil },
			middleware.Store(memstore.New()), middleware.OnCompleted(middleware.Replay), log.option())
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if out, err := h(t.Context(), payload); out != "ran" && !errors.Is(err, lock.ErrHeld) {
					t.Errorf("%q, %v", out, err)
				}
			})
		}
		all.Wait()
	}
	var log logged
	run(t, &log, jmespath.Key("order.id"))
	if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], "level=WARN") || !strings.Contains(lines[0], "Event") || !strings.Contains(lines[0], "keyfuncs.Once") {
		t.Errorf("logged %q, want one warning that says what to change", lines)
	}
	run(t, &log, jmespath.Key("order.id"))
	if lines := log.lines(); len(lines) != 2 {
		t.Errorf("logged %q, want one more for another handler", lines)
	}
	var none logged
	run(t, &none, keyfuncs.Once(jmespath.Key("order.id")))
	for _, l := range none.lines() {
		t.Errorf("logged %s", l)
	}
}

// TestMemoryStoreInLambdaWarns: locks in the memory of one execution environment protect
// nothing from the others.
func TestMemoryStoreInLambdaWarns(t *testing.T) {
	wrap := func(log *logged) {
		middleware.WithLock(byOrder, func(context.Context, order) error { return nil }, middleware.Store(memstore.New()), log.option())
		middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { return nil },
			middleware.Store(memstore.New()), log.option())
	}
	var outside, inside logged
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "")
	wrap(&outside)
	if lines := outside.lines(); lines != nil {
		t.Errorf("outside Lambda: logged %q", lines)
	}
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9001")
	wrap(&inside)
	lines := inside.lines()
	if len(lines) != 2 || !strings.Contains(lines[0], "level=WARN") || !strings.Contains(lines[0], "memory") || !strings.Contains(lines[0], "environment") {
		t.Errorf("in Lambda: logged %q, want one warning for each handler", lines)
	}
}
