package middleware_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"log"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestLogFormatJSON shows that a program that sets no logger writes lines with
// a level if the function's log format is JSON: Lambda counts a line without
// one as INFO, and drops it if the log level is WARN.
func TestLogFormatJSON(t *testing.T) {
	for level, want := range map[string][]string{
		"":      {"WARN", "ERROR"},
		"DEBUG": {"DEBUG", "WARN", "ERROR"},
		"WARN":  {"WARN", "ERROR"},
		"ERROR": {"ERROR"},
		"FATAL": {},
	} {
		t.Run("level "+level, func(t *testing.T) {
			t.Setenv("AWS_LAMBDA_LOG_FORMAT", "JSON")
			t.Setenv("AWS_LAMBDA_LOG_LEVEL", level)
			lines := stderr(t, func() {
				t.Setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9001") // where a memstore is warned of
				h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { return errors.New("boom\nand more") }, middleware.Store(memstore.New()))
				if _, err := h(t.Context(), sqsBatch(message("1", ""))); err == nil {
					t.Error("no error")
				}
			})
			seen := map[string]bool{}
			for _, l := range lines {
				var line struct{ Level, Message, Timestamp string }
				if err := json.Unmarshal([]byte(l), &line); err != nil {
					t.Errorf("%s: %v", l, err)
				}
				if _, err := time.Parse(time.RFC3339, line.Timestamp); err != nil || line.Message == "" {
					t.Errorf("%s: %v", l, err)
				}
				seen[line.Level] = true
			}
			for _, level := range want {
				if !seen[level] {
					t.Errorf("no line of level %s in %q", level, lines)
				}
				delete(seen, level)
			}
			if len(seen) > 0 {
				t.Errorf("lines of other levels than %q: %q", want, lines)
			}
		})
	}
}

// TestLogFormatOfTheProgram shows that the log format changes nothing for a
// program with a logger of its own, or in a function whose format is text.
func TestLogFormatOfTheProgram(t *testing.T) {
	refused := func() {
		h := middleware.WithLock(keyfuncs.SQSBody(keyfuncs.S3Object), func(context.Context, events.SQSMessage) error { return nil }, middleware.Store(newFixture().faulty))
		_ = h(t.Context(), events.SQSMessage{Body: "no JSON"})
	}
	isJSON := func(lines []string) bool { return len(lines) > 0 && json.Valid([]byte(lines[0])) }
	for _, format := range []string{"", "Text", "text"} {
		t.Setenv("AWS_LAMBDA_LOG_FORMAT", format)
		if lines := stderr(t, refused); isJSON(lines) {
			t.Errorf("format %q: %q", format, lines)
		}
	}
	t.Setenv("AWS_LAMBDA_LOG_FORMAT", "JSON")
	if lines := stderr(t, refused); !isJSON(lines) {
		t.Errorf("format JSON: %q", lines)
	}
	logger, writer, flags := slog.Default(), log.Writer(), log.Flags()
	t.Cleanup(func() {
		slog.SetDefault(logger)
		log.SetOutput(writer)
		log.SetFlags(flags)
	})
	var own warnings
	slog.SetDefault(slog.New(slog.NewTextHandler(&own, nil)))
	lines := stderr(t, refused)
	if len(lines) > 0 || len(own.lines()) != 1 {
		t.Errorf("a logger of its own: %q, and %q elsewhere", own.lines(), lines)
	}
}

// stderr returns the lines that are written there meanwhile.
func stderr(t *testing.T, do func()) (lines []string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stderr
	os.Stderr = w
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s := bufio.NewScanner(r); s.Scan(); {
			lines = append(lines, s.Text())
		}
	}()
	do()
	os.Stderr = before
	_ = w.Close()
	<-done
	_ = r.Close()
	return lines
}
