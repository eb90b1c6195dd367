package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
	"github.com/lambdalock/lambdalock/lock"
)

// TestRecordsThatFailed: a success that names failures is none, and to be held up is no
// failure of the handler.
func TestRecordsThatFailed(t *testing.T) {
	t.Parallel()
	held, worked := "INFO lambdalock: held key=k requests=1", "ERROR lambdalock: handler_failed key=k requests=1"
	one, both := `{"batchItemFailures":[{"itemIdentifier":"a"}]}`, `{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"b"}]}`
	for _, c := range []struct {
		answer    string
		log       []string
		want      string
		early     bool
		completed string
	}{
		{`{}`, nil, "succeeded", false, "[a b]"},
		{one, nil, "failed in part", false, "[b]"},
		{one, []string{held}, "failed in part (held)", true, "[b]"},
		{one, []string{held, worked}, "failed in part", false, "[b]"},
		{both, nil, "failed", false, "[]"},
		{both, []string{held}, "held", true, "[]"},
		{both, []string{held, worked}, "failed", false, "[]"},
	} {
		batch := readBatch([]byte(`{"Records":[{"messageId":"a","eventSource":"aws:sqs"},{"messageId":"b","eventSource":"aws:sqs"}]}`))
		source := &source{deliverer: &deliverer{invokeCmd: &invokeCmd{}, table: &localtable.Table{}}, batch: batch}
		early := source.tooEarly(locallambda.Result{Outcome: locallambda.Succeeded, Payload: []byte(c.answer), Log: c.log})
		if got := source.outcome.String(); got != c.want || early != c.early || fmt.Sprint(source.completed()) != c.completed {
			t.Errorf("%s %q: %s, early %v, completed %v; want %+v", c.answer, c.log, got, early, source.completed(), c)
		}
	}
}

// TestLogLines: whichever handler the function has, its lines are understood.
func TestLogLines(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"text":  func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"JSON":  func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
		"group": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil).WithGroup("app") },
	} {
		for _, kind := range []string{"held", "taken_over"} {
			var b bytes.Buffer
			slog.New(handler(&b)).With("function", "a").Info("lambdalock: "+kind, "key", "k", "requests", 1)
			if got := logged([]string{b.String()}); len(got) != 1 || !got[lock.Outcome(kind)] {
				t.Errorf("%s: %v from %s", name, got, b.String())
			}
		}
	}
	plain := "2026/11/21 18:15:33 INFO lambdalock: held key=k duration=1ms requests=1"
	if got := logged([]string{plain, "lambdalock: already_completed", "lambdalock: key a is held by requests=1"}); len(got) != 1 || !got["held"] {
		t.Errorf("%v", got)
	}
}
