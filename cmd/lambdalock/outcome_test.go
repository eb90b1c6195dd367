package main

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/lambdalock/lambdalock/lock"
)

// TestLogLines: whichever handler the function has, its lines are understood.
func TestLogLines(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"text":  func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"JSON":  func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
		"group": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil).WithGroup("app") },
	} {
		for _, kind := range []string{"held", "took over"} {
			var b bytes.Buffer
			slog.New(handler(&b)).With("function", "a").Info("lambdalock: "+kind, "key", "k", "requests", 1)
			if got := logged([]string{b.String()}); len(got) != 1 || !got[lock.Kind(kind)] {
				t.Errorf("%s: %v from %s", name, got, b.String())
			}
		}
	}
	plain := "2026/11/21 18:15:33 INFO lambdalock: held key=k duration=1ms requests=1"
	if got := logged([]string{plain, "lambdalock: done", "lambdalock: key a is held by requests=1"}); len(got) != 1 || !got["held"] {
		t.Errorf("%v", got)
	}
}
