package emf_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
	"github.com/lambdalock/lambdalock/telemetry/emf"
)

var noLog = middleware.Logger(slog.New(slog.DiscardHandler))

// output keeps what is written, each Write by itself.
type output struct {
	mu    sync.Mutex
	lines []string
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, string(p))
	return len(p), nil
}

// sum returns the sums of the counts in all lines, and how many values the
// others have.
func (o *output) sum(t *testing.T) map[string]int {
	t.Helper()
	total := map[string]int{}
	for _, line := range o.lines {
		for name, values := range parse(t, line) {
			for _, v := range values {
				if strings.HasSuffix(name, "Time") || name == "Waited" {
					v = 1
				}
				total[name] += int(v)
			}
		}
	}
	return total
}

// parse returns the values of the metrics of one line as CloudWatch would take
// them.
func parse(t *testing.T, line string) map[string][]float64 {
	t.Helper()
	if strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "}\n") {
		t.Fatalf("a write is not one line: %q", line)
	}
	checkSchema(t, line)
	var document struct {
		AWS struct {
			CloudWatchMetrics []struct {
				Namespace  string
				Dimensions [][]string
				Metrics    []struct{ Name, Unit string }
			}
		} `json:"_aws"`
	}
	members := map[string]any{}
	expect.Must(t, errors.Join(json.Unmarshal([]byte(line), &document), json.Unmarshal([]byte(line), &members)))
	found := map[string][]float64{}
	for _, d := range document.AWS.CloudWatchMetrics {
		if s, ok := members["service"].(string); !ok || s == "" || fmt.Sprint(d.Dimensions) != "[[service]]" || d.Namespace != "lambdalock" {
			t.Errorf("service %v, dimensions %v, namespace %s", members["service"], d.Dimensions, d.Namespace)
		}
		for _, m := range d.Metrics {
			switch v := members[m.Name].(type) {
			case float64:
				found[m.Name] = []float64{v}
			case []any:
				for _, x := range v {
					found[m.Name] = append(found[m.Name], x.(float64))
				}
			}
			if n := len(found[m.Name]); n == 0 || n > 100 {
				t.Errorf("%s has %d values in %s", m.Name, n, line)
			}
		}
	}
	return found
}

// TestLine shows a whole line.
func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "8f7c", TenantID: "t1"})
		h := middleware.WithLock(keyfuncs.Static("report"), func(context.Context) error { time.Sleep(1500 * time.Microsecond); return nil },
			middleware.Store(memstore.New()), middleware.Namespace("billing"), noLog, emf.Metrics(&emf.Options{Output: &out}))
		_ = h(ctx)
		_ = h(ctx)
		want := `{"_aws":{"Timestamp":946684800003,"CloudWatchMetrics":[{"Namespace":"lambdalock","Dimensions":[["service"]],"Metrics":[` +
			`{"Name":"Released","Unit":"Count"},{"Name":"StoreRequests","Unit":"Count"},{"Name":"AcquireTime","Unit":"Milliseconds"},{"Name":"HoldTime","Unit":"Milliseconds"}]}]},` +
			`"service":"billing","request":"8f7c","tenant":"t1","Released":1,"StoreRequests":2,"AcquireTime":0,"HoldTime":1.5}` + "\n"
		if len(out.lines) != 2 || out.lines[1] != want {
			t.Errorf("wrote %q, want %q", out.lines, want)
		}
		if n := len(want); n > 600 {
			t.Errorf("%d bytes", n)
		}
	})
}

// TestLoggingChangesNothing shows that a line is the same whatever logger there
// is, and that it has the level without which Lambda would drop it.
func TestLoggingChangesNothing(t *testing.T) {
	const plain = `"service":"billing","Released":1,`
	for level, want := range map[string]string{
		"": plain, "TRACE": plain, "DEBUG": plain, "INFO": plain,
		"WARN":  `"service":"billing","level":"WARN","timestamp":"2000-01-01T00:00:00Z","Released":1,`,
		"ERROR": `"service":"billing","level":"ERROR","timestamp":"2000-01-01T00:00:00Z","Released":1,`,
		"FATAL": `"service":"billing","level":"FATAL","timestamp":"2000-01-01T00:00:00Z","Released":1,`,
	} {
		t.Setenv("AWS_LAMBDA_LOG_LEVEL", level)
		for name, handler := range map[string]slog.Handler{
			"discard": slog.DiscardHandler,
			"errors":  slog.NewJSONHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError}),
			"debug":   slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug}),
			"group":   slog.NewJSONHandler(io.Discard, nil).WithGroup("app").WithAttrs([]slog.Attr{slog.String("service", "other")}),
		} {
			t.Run(level+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var out output
					h := middleware.WithLock(keyfuncs.Static("report"), func(context.Context) error { return nil }, middleware.Store(memstore.New()),
						middleware.Namespace("billing"), middleware.Logger(slog.New(handler)), emf.Metrics(&emf.Options{Output: &out}))
					_ = h(t.Context())
					_ = h(t.Context())
					if len(out.lines) != 2 || !strings.Contains(out.lines[1], want) {
						t.Errorf("wrote %q, want %s", out.lines, want)
					}
					_ = parse(t, out.lines[1])
				})
			})
		}
	}
}

// TestProperties shows which service a line has and which properties.
func TestProperties(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		namespace string
		options   emf.Options
		has, not  string
	}{
		"a service":             {"billing", emf.Options{Service: "shop"}, `"service":"shop"`, "billing"},
		"no namespace":          {"", emf.Options{}, `"service":"unknown"`, "zzz"},
		"blank":                 {"", emf.Options{Service: " \t"}, `"service":"unknown"`, "zzz"},
		"too long":              {"x", emf.Options{Service: strings.Repeat("é", 2000)}, `"service":"` + strings.Repeat("?", 1024) + `",`, strings.Repeat("?", 1025)},
		"no dimension":          {":ü\n\"", emf.Options{}, `"service":"???\""`, "ü"},
		"contended":             {"billing", emf.Options{}, `"contended":"` + lock.Key{Name: "busy"}.Digest() + `"`, "busy"},
		"contended, but hidden": {"billing", emf.Options{HideContended: true}, `"Contended":1`, `"contended"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out output
			c.options.Output = &out
			opts := []middleware.Option{middleware.Store(memstore.New()), middleware.Namespace(c.namespace), noLog}
			inner := middleware.WithLock(keyfuncs.Static("busy"), func(context.Context) error { return nil }, append(opts, emf.Metrics(&c.options))...)
			outer := middleware.WithLock(keyfuncs.Static("busy"), func(ctx context.Context) error { return inner(context.WithoutCancel(t.Context())) }, opts...)
			if err := outer(t.Context()); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("got %v, want held", err)
			}
			if len(out.lines) != 1 || !strings.Contains(out.lines[0], c.has) || strings.Contains(out.lines[0], c.not) {
				t.Errorf("wrote %q, want one line with %s and without %s", out.lines, c.has, c.not)
			}
			_ = parse(t, out.lines[0])
		})
	}
}

// TestNothingToSay shows that an invocation without a lock writes no line.
func TestNothingToSay(t *testing.T) {
	t.Parallel()
	var out output
	key := func(context.Context, string) (lock.Key, error) { return lock.Key{}, keyfuncs.ErrNoLock }
	h := middleware.WithLock(key, func(context.Context, string) error { return nil }, middleware.Store(memstore.New()), noLog, emf.Metrics(&emf.Options{Output: &out}))
	if err := h(t.Context(), ""); err != nil || len(out.lines) > 0 {
		t.Errorf("%v, wrote %q", err, out.lines)
	}
}

// TestLargeBatch shows that the line of 10,000 messages stays short, and keeps
// the shortest and the longest times.
func TestLargeBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		handler := func(_ context.Context, m events.SQSMessage) error {
			n, err := strconv.Atoi(m.MessageId)
			time.Sleep(time.Duration(n) * 12345 * time.Microsecond)
			return err
		}
		each := middleware.EachSQSMessage(keyfuncs.SQSMessage, handler, middleware.Store(memstore.New()), noLog, emf.Metrics(&emf.Options{Output: &out}))
		var e events.SQSEvent
		for i := range 10_000 {
			e.Records = append(e.Records, events.SQSMessage{MessageId: fmt.Sprint(i), EventSourceARN: "arn:aws:sqs:eu-west-1:123456789012:q"})
		}
		expect.Value(each(t.Context(), e))(t)
		if len(out.lines) != 1 || len(out.lines[0]) > 8<<10 {
			t.Fatalf("%d lines of %d bytes", len(out.lines), len(out.lines[0]))
		}
		got := parse(t, out.lines[0])
		if held := got["HoldTime"]; held[0] != 0 || held[99] != 9999*12.345 || len(held) != 100 || got["Completed"][0] != 10_000 {
			t.Errorf("%v", got)
		}
	})
}

// TestConcurrentInvocations shows that each invocation of a process that
// handles several writes one line of its own.
func TestConcurrentInvocations(t *testing.T) { // F15
	t.Parallel()
	var out output
	h := middleware.WithLock(keyfuncs.ByField(func(id string) string { return id }), func(context.Context, string) error { return nil },
		middleware.Store(memstore.New()), noLog, emf.Metrics(&emf.Options{Output: &out}))
	var invocations sync.WaitGroup
	for i := range 100 {
		invocations.Go(func() { _ = h(t.Context(), fmt.Sprint(i)) })
	}
	invocations.Wait()
	if got := out.sum(t); len(out.lines) != 100 || got["Released"] != 100 {
		t.Errorf("%d lines, %v", len(out.lines), got)
	}
}

// BenchmarkMetrics prints what the metrics of one invocation cost beside the
// same invocation without them, and how long a line is.
func BenchmarkMetrics(b *testing.B) {
	var written length
	for name, opts := range map[string][]middleware.Option{
		"without": nil,
		"with":    {emf.Metrics(&emf.Options{Output: &written})},
	} {
		b.Run(name, func(b *testing.B) {
			h := middleware.WithLock(keyfuncs.Static("report"), func(context.Context) error { return nil },
				append(opts, middleware.Store(memstore.New()), noLog)...)
			written = 0
			b.ReportAllocs()
			for b.Loop() {
				expect.Must(b, h(b.Context()))
			}
			b.ReportMetric(float64(written), "bytes/line")
		})
	}
}

// length is that of the last line.
type length int

func (l *length) Write(line []byte) (int, error) {
	*l = length(len(line))
	return len(line), nil
}
