package explain_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/explain"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
	"github.com/lambdalock/lambdalock/telemetry/emf"
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
		"JSON after what aws logs tail prints": func(b *bytes.Buffer) slog.Handler {
			b.WriteString("2026-11-26T15:00:00+00:00 2026/11/26/[$LATEST]0a0b ")
			return slog.NewJSONHandler(b, all)
		},
	} {
		for _, named := range []bool{false, true} {
			var log bytes.Buffer
			locker := expect.Value(lock.New(memstore.New(), &lock.Options{Logger: slog.New(format(&log)), LogKeys: named}))(t)
			expect.Must(t, locker.Do(t.Context(), key, func(context.Context) error { return nil }))
			first, _, _ := strings.Cut(log.String(), "\n")
			line, ok := explain.LogLine([]byte(first))
			switch inJSON := strings.Contains(first, "{"); {
			case named && inJSON:
				if e := line.Event; !ok || e == nil || e.Records[0].Keys[0].Name != key.Name || e.Records[0].Keys[0].Event != key.Event {
					t.Errorf("%s: %v, want its key: %s", name, e, first)
				}
			case !ok || line != (explain.Line{Digest: key.Digest()}):
				t.Errorf("%s: %+v, want its digest: %s", name, line, first)
			}
		}
	}
	for _, other := range []string{`{"msg":"order placed","key":"0123456789ab"}`, `{"detail":"lambdalock: completed"}`, `{"name":{},"detail":"lambdalock: completed"}`, `{"_aws":{"CloudWatchMetrics":[{"Namespace":"orders"}]},"contended":"0123456789ab"}`, `{}`, `[1]`, `hello`, ""} {
		if line, ok := explain.LogLine([]byte(other)); ok || line != (explain.Line{}) {
			t.Errorf("%s: %+v", other, line)
		}
	}
}

// TestRefusedLine: a line about a body that cannot be decoded leads to no row,
// but says which record has it, and why it fails.
func TestRefusedLine(t *testing.T) {
	t.Parallel()
	type change struct{ Customer string }
	for name, format := range map[string]func(*bytes.Buffer) slog.Handler{
		"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"JSON": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		for _, m := range []events.SQSMessage{
			{MessageId: "m1", EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:changes.fifo", Body: `{"customer":1}`},
			{Body: `{"customer":1}`},
		} {
			var log bytes.Buffer
			handle := middleware.EachSQSBody(middleware.RecordKey[change](keyfuncs.SQSFIFOMessage), func(context.Context, change) error { return nil },
				middleware.Store(memstore.New()), middleware.Logger(slog.New(format(&log))), middleware.LogKeys())
			if _, err := handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{m}}); err == nil {
				t.Error("no error")
			}
			want := "an event was refused, "
			if m.MessageId != "" {
				want = "record m1 of " + m.EventSourceARN + " was refused, "
			}
			line, ok := explain.LogLine(log.Bytes())
			if !ok || !strings.HasPrefix(line.Refused, want+"and its handler did not run: Records[0].body is not JSON of the expected shape: as explain_test.change: json: cannot unmarshal number") {
				t.Errorf("%s: %+v\nof %s", name, line, &log)
			}
		}
	}
}

// TestMetricsLine: a line of package emf leads to the key that was contended
// most, if one was.
func TestMetricsLine(t *testing.T) {
	t.Parallel()
	store, quiet, key := memstore.New(), slog.New(slog.DiscardHandler), lock.Key{Name: "k"}
	var line bytes.Buffer
	handle := middleware.WithLock(func(context.Context, string) (lock.Key, error) { return key, nil },
		func(context.Context, string) error { return nil },
		middleware.Store(store), middleware.Logger(quiet), emf.Metrics(&emf.Options{Output: &line}))
	expect.Must(t, handle(t.Context(), "e"))
	if l, ok := explain.LogLine(line.Bytes()); !ok || l.Digest != "" {
		t.Errorf("%v, %q, want no digest: %s", ok, l.Digest, &line)
	}
	line.Reset()
	locker := expect.Value(lock.New(store, &lock.Options{Logger: quiet}))(t)
	expect.Must(t, locker.Do(t.Context(), key, func(context.Context) error { _ = handle(t.Context(), "e"); return nil }))
	if l, ok := explain.LogLine(line.Bytes()); !ok || l.Digest != key.Digest() {
		t.Errorf("%v, %q, want its digest: %s", ok, l.Digest, &line)
	}
}
