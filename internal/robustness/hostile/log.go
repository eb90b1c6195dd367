package hostile

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
)

// Said collects everything that the library outputs. As a log handler it writes
// each record as text and as JSON; errors and answers are added by method. The
// zero value is ready to use. It is safe for concurrent use.
type Said struct {
	mu         sync.Mutex
	text, json bytes.Buffer
	more       []string
}

// Enabled implements [slog.Handler].
func (s *Said) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements [slog.Handler].
func (s *Said) WithAttrs([]slog.Attr) slog.Handler { return s }

// WithGroup implements [slog.Handler].
func (s *Said) WithGroup(string) slog.Handler { return s }

// Handle implements [slog.Handler].
func (s *Said) Handle(ctx context.Context, r slog.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := slog.NewTextHandler(&s.text, nil).Handle(ctx, r); err != nil {
		return err
	}
	return slog.NewJSONHandler(&s.json, nil).Handle(ctx, r)
}

// Error adds the text of an error, unless it is nil.
func (s *Said) Error(err error) {
	if err != nil {
		s.Answer(err.Error())
	}
}

// Answer adds a text that is returned to a caller or shown to a user.
func (s *Said) Answer(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.more = append(s.more, text)
}

// Records returns the log records, as lines of text and as lines of JSON.
func (s *Said) Records() (text, json []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return split(s.text.String()), split(s.json.String())
}

// Lines returns every line of the log records, in both formats, and each error
// and answer as a single line.
func (s *Said) Lines() []string {
	text, json := s.Records()
	return append(append(text, json...), s.more...)
}

func split(lines string) []string { return strings.Split(strings.TrimSuffix(lines, "\n"), "\n") }
