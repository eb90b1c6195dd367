package explain_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/explain"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestLogLine: a line of the library leads to its row, whatever formats it.
func TestLogLine(t *testing.T) {
	t.Parallel()
	all := &slog.HandlerOptions{Level: slog.LevelDebug}
	key := lock.Key{Name: "s3/my bucket/cat.png", Event: "e1"}
	for name, format := range map[string]func(*bytes.Buffer) slog.Handler{
		"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, all) },
		"JSON": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, all) },
		"Lambda": func(b *bytes.Buffer) slog.Handler {
			return slog.NewJSONHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.MessageKey {
					a.Key = "message"
				}
				return a
			}})
		},
		"timestamp before": func(b *bytes.Buffer) slog.Handler {
			b.WriteString("2026-11-26T15:00:00.000Z\t")
			return slog.NewTextHandler(b, all)
		},
	} {
		for _, named := range []bool{false, true} {
			var log bytes.Buffer
			locker, err := lock.New(memstore.New(), &lock.Options{Logger: slog.New(format(&log)), LogKeys: named})
			if err != nil {
				t.Fatal(err)
			}
			if err := locker.Do(t.Context(), key, func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(log.String(), "\n")
			e, err := explain.LogLine([]byte(first))
			switch inJSON := strings.HasPrefix(first, "{"); {
			case named && inJSON:
				if err != nil || e == nil || e.Records[0].Keys[0].Name != key.Name || e.Records[0].Keys[0].Event != key.Event {
					t.Errorf("%s: %v, %v, want its key: %s", name, e, err, first)
				}
			case err == nil || e != nil || !strings.HasSuffix(err.Error(), "lambdalock show --digest "+key.Digest()):
				t.Errorf("%s: %v, %v, want its digest: %s", name, e, err, first)
			}
		}
	}
	for _, other := range []string{`{"msg":"order placed","key":"0123456789ab"}`, `{"detail":"lambdalock: completed"}`, `{"name":{},"detail":"lambdalock: completed"}`, `{}`, `[1]`, `hello`, ""} {
		if e, err := explain.LogLine([]byte(other)); e != nil || err != nil {
			t.Errorf("%s: %v, %v", other, e, err)
		}
	}
}
