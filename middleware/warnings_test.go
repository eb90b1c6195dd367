package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
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

// TestReplayWithoutEventWarnsOnce shows that each handler warns once if its key
// has no Event: nothing can be replayed then, and every delivery runs.
func TestReplayWithoutEventWarnsOnce(t *testing.T) {
	t.Parallel()
	payload := json.RawMessage(`{"order":{"id":"1"}}`)
	run := func(t *testing.T, log *warnings, key keyfuncs.Func[json.RawMessage]) {
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
	var log warnings
	run(t, &log, jmespath.Path("order.id"))
	if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], "level=WARN") || !strings.Contains(lines[0], "Event") || !strings.Contains(lines[0], "keyfuncs.Once") {
		t.Errorf("logged %q, want one warning that says what to change", lines)
	}
	run(t, &log, jmespath.Path("order.id"))
	if lines := log.lines(); len(lines) != 2 {
		t.Errorf("logged %q, want one more for another handler", lines)
	}
	var none warnings
	run(t, &none, keyfuncs.Once(jmespath.Path("order.id")))
	for _, l := range none.lines() {
		t.Errorf("logged %s", l)
	}
}

// TestMemoryStoreInLambdaWarns shows that only inside Lambda every handler
// warns that locks in memory protect nothing from other execution environments.
func TestMemoryStoreInLambdaWarns(t *testing.T) {
	wrap := func(log *warnings) {
		middleware.WithLock(byOrder, func(context.Context, order) error { return nil }, middleware.Store(memstore.New()), log.option())
		middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { return nil },
			middleware.Store(memstore.New()), log.option())
	}
	var outside, inside warnings
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
