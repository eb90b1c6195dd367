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

// TestRecordsThatFailed: an answer that returns records is not a success, and a
// record that was held is not a failure of the handler.
func TestRecordsThatFailed(t *testing.T) {
	t.Parallel()
	held, handled := "INFO lambdalock: held key=k requests=1", "ERROR lambdalock: handler_failed key=k requests=1"
	one, both := `{"batchItemFailures":[{"itemIdentifier":"a"}]}`, `{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"b"}]}`
	for name, c := range map[string]struct {
		answer    string
		log       []string
		want      string
		early     bool
		completed string
	}{
		"none":                      {`{}`, nil, "succeeded", false, "[a b]"},
		"one failed":                {one, nil, "failed in part", false, "[b]"},
		"one was held":              {one, []string{held}, "failed in part (held)", true, "[b]"},
		"one was held, and failed":  {one, []string{held, handled}, "failed in part", false, "[b]"},
		"both failed":               {both, nil, "failed", false, "[]"},
		"both were held":            {both, []string{held}, "held", true, "[]"},
		"one was held, both failed": {both, []string{held, handled}, "failed", false, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &event{batch: readBatch([]byte(`{"Records":[{"messageId":"a","eventSource":"aws:sqs"},{"messageId":"b","eventSource":"aws:sqs"}]}`))}
			d := &deliverer{invokeCmd: &invokeCmd{}, table: &localtable.Table{}}
			v := d.judge(e.records(), locallambda.Result{Outcome: locallambda.Succeeded, Payload: []byte(c.answer), Log: c.log})
			early, completed := v.outcome.heldUp(), ids(v.completed())
			if got := v.outcome.String(); got != c.want || early != c.early || fmt.Sprint(completed) != c.completed {
				t.Errorf("%s, early %v, completed %v; want %+v", got, early, completed, c)
			}
		})
	}
}

// TestLogLines: the lines are found whichever slog handler the function has.
func TestLogLines(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"text":  func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"JSON":  func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
		"group": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil).WithGroup("app") },
	} {
		for _, outcome := range []lock.Outcome{lock.OutcomeHeld, lock.OutcomeTakenOver} {
			t.Run(name+" "+string(outcome), func(t *testing.T) {
				t.Parallel()
				var b bytes.Buffer
				slog.New(handler(&b)).With("function", "a").Info("lambdalock: "+string(outcome), "key", "k", "requests", 1)
				if got := logged([]string{b.String()}); len(got) != 1 || !got[outcome] {
					t.Errorf("%v from %s", got, b.String())
				}
			})
		}
	}
	t.Run("default logger", func(t *testing.T) {
		t.Parallel()
		line := "2026/11/21 18:15:33 INFO lambdalock: held key=k duration=1ms requests=1"
		if got := logged([]string{line, "lambdalock: already_completed", "lambdalock: key a is held by requests=1"}); len(got) != 1 || !got[lock.OutcomeHeld] {
			t.Errorf("%v", got)
		}
	})
}
