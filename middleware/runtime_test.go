package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// functions are the functions of the local Lambda. This test binary runs as one
// of them if functionVariable names it.
var functions = map[string]func(wrapped bool){
	"()":                  start(keyfuncs.Static("job"), func() {}, middleware.OnHeld(middleware.Skip)),
	"(event)":             start(byOrder, func(order) {}, middleware.OnHeld(middleware.Skip)),
	"() error":            start(keyfuncs.Static("job"), func() error { return nil }),
	"(event) error":       start(byOrder, func(order) error { return nil }),
	"() result":           start(keyfuncs.Static("job"), func() (string, error) { return "<job>", nil }),
	"(event) result":      start(byOrder, func(o order) (order, error) { o.Item++; return o, nil }),
	"(ctx)":               start(keyfuncs.Static("job"), func(context.Context) {}, middleware.OnHeld(middleware.Skip)),
	"(ctx, event)":        start(byOrder, func(context.Context, order) {}, middleware.OnHeld(middleware.Skip)),
	"(ctx) error":         start(keyfuncs.Static("job"), func(context.Context) error { return nil }),
	"(ctx, event) error":  start(byOrder, func(context.Context, order) error { return nil }),
	"(ctx) result":        start(keyfuncs.Static("job"), func(context.Context) (string, error) { return "<job>", nil }),
	"(ctx, event) result": start(byOrder, func(_ context.Context, o order) (order, error) { o.Item++; return o, nil }),

	"pointer":         start(byOrder, func(o *order) (*order, error) { return o, nil }),
	"any":             start(keyfuncs.Static("job"), func(_ context.Context, e any) (any, error) { return e, nil }),
	"raw":             start(byOrder, lambda.Handler(echo{})),
	"unfit event":     start(byOrder, func(context.Context, order) error { panic("ran") }),
	"error":           start(byOrder, func(context.Context, order) error { return errors.New("plain") }),
	"wrapped error":   start(byOrder, func(context.Context, order) (string, error) { return "lost", fmt.Errorf("outer: %w", io.EOF) }),
	"custom error":    start(byOrder, func(context.Context, order) error { return &CustomError{7} }),
	"permanent error": start(byOrder, func(context.Context, order) error { return middleware.Permanent(&CustomError{7}) }),
	"panic":           start(byOrder, panicsHere),
	"panic in result": start(byOrder, func(_ context.Context, o order) (string, error) { panic(&CustomError{8}) }),
	"unencodable":     start(byOrder, func(context.Context, order) (any, error) { return func() {}, nil }),
	"reader":          start(byOrder, func(context.Context, order) (io.Reader, error) { return strings.NewReader("stream"), nil }),
	"any reader":      start(byOrder, func(context.Context, order) (any, error) { return strings.NewReader("stream"), nil }),
	"typed reader":    start(byOrder, func(context.Context, order) (io.Reader, error) { return &body{Reader: strings.NewReader("x")}, nil }),
	"broken reader": start(byOrder, func(context.Context, order) (io.Reader, error) {
		return io.MultiReader(strings.NewReader("begun"), brokenReader{}), nil
	}),
	"function URL": start(byOrder, func(context.Context, order) (*events.LambdaFunctionURLStreamingResponse, error) {
		return &events.LambdaFunctionURLStreamingResponse{StatusCode: 418, Body: strings.NewReader("tea")}, nil
	}),
	"options": start(byOrder, func(_ context.Context, o order) (map[string]any, error) {
		return map[string]any{"html": "<b>", "id": o.ID}, nil
	}),
	"SQS batch": batch(func(opts []middleware.Option) any {
		return middleware.EachSQSMessage(keyfuncs.SQSMessage, new(runLog).sqs, opts...)
	}),
	"S3 batch": batch(func(opts []middleware.Option) any {
		return middleware.EachS3Record(keyfuncs.S3Record, func(context.Context, events.S3EventRecord) error { return nil }, opts...)
	}),
	"API":           api,
	"slow stream":   slowStream,
	"default store": defaultStore,
	"lease length":  leaseLength,
}

// batch starts a handler of batches.
func batch(build func([]middleware.Option) any) func(bool) {
	return func(bool) {
		lambda.Start(build([]middleware.Option{middleware.Store(memstore.New()), noLog}))
	}
}

// leaseLength starts a handler that returns the length of its lease in seconds.
func leaseLength(bool) {
	h := func(ctx context.Context, _ order) (int, error) {
		lease, _ := lock.FromContext(ctx)
		return int(time.Until(lease.Until).Round(time.Second).Seconds()), nil
	}
	start(byOrder, h)(true)
}

// defaultStore starts a handler that returns how its lock's holder is described
// to others.
func defaultStore(bool) {
	var wrapped func(context.Context, order) (string, error)
	wrapped = middleware.WithLock(byOrder, func(context.Context, order) (string, error) {
		_, err := wrapped(context.Background(), order{ID: "other"})
		var held *lock.HeldError
		if !errors.As(err, &held) {
			return "", fmt.Errorf("not held: %w", err)
		}
		return held.Holder, nil
	})
	lambda.Start(wrapped)
}

var platformCommand = []string{os.Args[0]}

type CustomError struct{ Code int }

func (e *CustomError) Error() string { return fmt.Sprintf("code %d", e.Code) }

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, &CustomError{9} }

// start starts a handler, bare or wrapped. It passes options to the runtime,
// which must also apply to wrapped handlers.
func start[E, H any](key keyfuncs.Func[E], h H, opts ...middleware.Option) func(bool) {
	return func(wrapped bool) {
		if wrapped {
			h = middleware.WithLock(key, h, append(opts, middleware.Store(memstore.New()), noLog)...)
		}
		lambda.StartWithOptions(h, lambda.WithSetEscapeHTML(true), lambda.WithUseNumber(true))
	}
}

// slowStream starts a handler that writes the second half of its answer when
// the file that its event names exists.
func slowStream(bool) {
	h := func(_ context.Context, o order) (io.Reader, error) {
		r, w := io.Pipe()
		go func() {
			_, _ = fmt.Fprint(w, "first")
			for { // until the test has seen the first half
				if _, err := os.Stat(o.ID); err == nil {
					break
				}
				time.Sleep(time.Millisecond)
			}
			_, _ = fmt.Fprint(w, "second")
			_ = w.Close()
		}()
		return r, nil
	}
	start(byOrder, h)(true)
}

const functionVariable = "LAMBDALOCK_TEST_FUNCTION"

func TestMain(m *testing.M) {
	maps.Copy(functions, nilResults)
	if f, ok := functions[os.Getenv(functionVariable)]; ok {
		f(os.Getenv("LAMBDALOCK_TEST_WRAPPED") != "")
		return
	}
	status := m.Run()
	for what := range unlawful.Range {
		fmt.Fprintln(os.Stderr, what)
		status = 1
	}
	os.Exit(status)
}

func platform(t *testing.T, function string, wrapped bool) *locallambda.Platform {
	t.Helper()
	env := []string{functionVariable + "=" + function}
	if wrapped {
		env = append(env, "LAMBDALOCK_TEST_WRAPPED=1")
	}
	p := expect.Value(locallambda.Start(t.Context(), locallambda.Config{
		Command: platformCommand, Env: env, Function: "fn", Timeout: 20 * time.Second, Logs: func(int, string) {},
	}))(t)
	t.Cleanup(func() {
		expect.OK(t, p.Close())
	})
	return p
}

// TestRuntimeSeesNoDifference shows that Lambda gets the same from the wrapped
// handler as from the bare one, through the runtime loop of aws-lambda-go.
func TestRuntimeSeesNoDifference(t *testing.T) { // P7
	t.Parallel()
	payload := []byte(`{"id":"1","item":9007199254740993}`)
	for name := range functions {
		if slices.Contains([]string{"API", "slow stream", "default store", "lease length", "SQS batch", "S3 batch"}, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := locallambda.Invocation{Payload: payload}
			if name == "unfit event" {
				in.Payload = []byte(`{"id":42}`)
			}
			bare := expect.Value(platform(t, name, false).Invoke(t.Context(), in))(t)
			wrapped := expect.Value(platform(t, name, true).Invoke(t.Context(), in))(t)
			if bare.Outcome != wrapped.Outcome || bare.ContentType != wrapped.ContentType || bare.ErrorType != wrapped.ErrorType || bare.ErrorMessage != wrapped.ErrorMessage {
				t.Errorf("bare: %s %s %s %q\nwrapped: %s %s %s %q", bare.Outcome, bare.ContentType, bare.ErrorType, bare.ErrorMessage,
					wrapped.Outcome, wrapped.ContentType, wrapped.ErrorType, wrapped.ErrorMessage)
			}
			if bare.StackTrace == nil && !bytes.Equal(bare.Payload, wrapped.Payload) {
				t.Errorf("bare: %s\nwrapped: %s", bare.Payload, wrapped.Payload)
			}
			sameStack(t, bare.StackTrace, wrapped.StackTrace)
		})
	}
}

// sameStack checks that the frames from the panic to the handler are the same.
// Below the handler is its caller, which is the wrapper.
func sameStack(t *testing.T, bare, wrapped json.RawMessage) {
	t.Helper()
	type frame struct {
		Path, Label string
		Line        int
	}
	decode := func(raw json.RawMessage) (s []frame) {
		if raw != nil {
			expect.Must(t, json.Unmarshal(raw, &s))
		}
		return s
	}
	b, w := decode(bare), decode(wrapped)
	for i, f := range b {
		if i >= len(w) || w[i] != f {
			t.Errorf("frame %d: bare %+v, wrapped %+v", i, b, w)
			return
		}
		if strings.HasPrefix(f.Path, "github.com/lambdalock/lambdalock/middleware") || strings.HasSuffix(f.Path, "_test.go") {
			return
		}
	}
	if len(b) != len(w) {
		t.Errorf("bare has %d frames, wrapped %d", len(b), len(w))
	}
}

// TestLeaseFitsThePlatform shows that the lease lasts to the deadline in an
// on-demand function, and that a short one is renewed elsewhere.
func TestLeaseFitsThePlatform(t *testing.T) { // F16, F22
	t.Parallel()
	for name, c := range map[string]struct {
		concurrency int
		seconds     string
	}{
		"one at a time": {1, "62"},
		"two at a time": {2, "30"},
	} {
		t.Run(name, func(t *testing.T) {
			p := expect.Value(locallambda.Start(t.Context(), locallambda.Config{
				Command: platformCommand, Env: []string{functionVariable + "=lease length"}, Timeout: time.Minute, Concurrency: c.concurrency, Logs: func(int, string) {},
			}))(t)
			r, err := p.Invoke(t.Context(), locallambda.Invocation{Payload: []byte(`{"id":"1"}`)})
			if err != nil || string(r.Payload) != c.seconds {
				t.Errorf("a lease of %s s, want %s; %v", r.Payload, c.seconds, err)
			}
			expect.OK(t, p.Close())
		})
	}
}

// chunks closes first at the first write.
type chunks struct {
	first chan struct{}
	all   bytes.Buffer
}

func (c *chunks) Write(p []byte) (int, error) {
	if c.all.Len() == 0 {
		close(c.first)
	}
	return c.all.Write(p)
}

// TestStreamArrivesInChunks shows that the wrapped handler does not buffer its
// stream.
func TestStreamArrivesInChunks(t *testing.T) {
	t.Parallel()
	p := platform(t, "slow stream", true)
	seen := t.TempDir() + "/seen"
	out := &chunks{first: make(chan struct{})}
	payload := expect.Value(json.Marshal(order{ID: seen}))(t)
	go func() {
		<-out.first // if the body were buffered, this would never come
		expect.OK(t, os.WriteFile(seen, nil, 0o600))
	}()
	r, err := p.Invoke(t.Context(), locallambda.Invocation{Payload: payload, Stream: out})
	if err != nil || r.Outcome != locallambda.Succeeded || out.all.String() != "firstsecond" {
		t.Errorf("%+v, %v, %q", r, err, out.all.String())
	}
}
