package middleware_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/middleware"
)

// TestNoGoroutineOutlivesTheInvocation: Lambda freezes what is left behind, and thaws
// it inside a later invocation.
func TestNoGoroutineOutlivesTheInvocation(t *testing.T) { // F17
	q := newQuiet()
	heartbeat := q.with(middleware.Heartbeat(10 * time.Second))
	returns := middleware.WithLock(byOrder, func(_ context.Context, o order) error {
		if !strings.Contains(goroutines(), "startHeartbeat") {
			t.Error("no heartbeat while the handler runs: this test would see nothing")
		}
		switch o.ID {
		case "panics":
			panic("boom")
		case "fails":
			return errors.New("boom")
		}
		return nil
	}, heartbeat...)
	streams := middleware.WithLock(byOrder, func(context.Context, order) (io.Reader, error) { return strings.NewReader("x"), nil }, heartbeat...)
	for name, run := range map[string]func(){
		"returns": func() { _ = returns(t.Context(), order{ID: "returns"}) },
		"fails":   func() { _ = returns(t.Context(), order{ID: "fails"}) },
		"panics": func() {
			defer func() { _ = recover() }()
			_ = returns(t.Context(), order{ID: "panics"})
		},
		"streams": func() {
			body, err := streams(t.Context(), order{ID: "streams"})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.ReadAll(body)
		},
		"streams, closed early": func() {
			body, err := streams(t.Context(), order{ID: "closed"})
			if err != nil {
				t.Fatal(err)
			}
			_ = body.(io.Closer).Close()
		},
	} {
		run()
		// A goroutine that has said that it ends may still be on its last instructions.
		for end := time.Now().Add(5 * time.Second); strings.Contains(goroutines(), "lambdalock/lock."); runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatalf("%s: a goroutine of package lock is left:\n%s", name, goroutines())
			}
		}
	}
}

// goroutines is the stacks of all goroutines but this one.
func goroutines() string {
	buf := make([]byte, 1<<20)
	all := string(buf[:runtime.Stack(buf, true)])
	_, others, _ := strings.Cut(all, "\n\n")
	return others
}
