package middleware_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// environment sets the environment of a function whose DynamoDB is the
// endpoint.
func environment(t *testing.T, endpoint, table string) {
	t.Helper()
	middleware.ForgetDefaultStores()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": endpoint, "LOCK_TABLE_NAME": table, "AWS_REGION": "us-east-1",
		"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
}

// TestWrongEnvironment shows that every mistake gives an error that names it,
// that the handler does not run, and that a tenth of the deadline is enough to
// find out.
func TestWrongEnvironment(t *testing.T) { // F10, F11, F31
	fake := fakedynamo.New()
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	put := upload("cat.png", "01")
	malformed := upload("a%zz", "01")
	is := func(within string) func(error) bool {
		return func(err error) bool { return err != nil && strings.Contains(err.Error(), within) }
	}
	for name, c := range map[string]struct {
		table string
		id    string
		fault fakedynamo.Fault
		event events.S3Event
		left  time.Duration
		want  func(error) bool
	}{
		"no table name":    {"", "local", fakedynamo.None, put, time.Minute, func(err error) bool { _, ok := err.(*lock.ConfigError); return ok && is("LOCK_TABLE_NAME")(err) }},
		"no credentials":   {"locks", "", fakedynamo.None, put, time.Minute, func(err error) bool { _, ok := err.(*lock.ConfigError); return ok && is("credentials")(err) }},
		"missing table":    {"missing", "local", fakedynamo.None, put, time.Minute, func(err error) bool { _, ok := err.(*lock.StoreError); return ok && is("create-table")(err) }},
		"denied action":    {"locks", "local", fakedynamo.Deny, put, time.Minute, func(err error) bool { _, ok := err.(*lock.StoreError); return ok && is("dynamodb:UpdateItem")(err) }},
		"hung endpoint":    {"locks", "local", fakedynamo.Hang, put, 20 * time.Second, func(err error) bool { _, ok := err.(*lock.StoreError); return ok }},
		"empty name":       {"locks", "local", fakedynamo.None, upload("", "01"), time.Minute, func(err error) bool { _, ok := err.(*lock.NoKeyError); return ok && is("s3.object.key")(err) }},
		"malformed escape": {"locks", "local", fakedynamo.None, malformed, time.Minute, func(err error) bool { _, ok := err.(*lock.NoKeyError); return ok && is("URL-encoded")(err) }},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, server.URL, c.table)
			t.Setenv("AWS_ACCESS_KEY_ID", c.id)
			t.Setenv("AWS_SECRET_ACCESS_KEY", c.id)
			fake.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return c.fault })
			h := middleware.WithLock(keyfuncs.S3Object, func(context.Context, events.S3Event) error { t.Error("the handler ran"); return nil })
			ctx, cancel := context.WithTimeout(t.Context(), c.left)
			defer cancel()
			err := h(ctx, c.event)
			if !c.want(err) {
				t.Errorf("%T: %v", err, err)
			}
			if ctx.Err() != nil {
				t.Error("it took as long as the whole invocation")
			}
		})
	}
}

func TestDeadlineTooNear(t *testing.T) { // F12
	synctest.Test(t, func(t *testing.T) {
		h := middleware.WithLock(byOrder, func(context.Context, order) error { t.Error("the handler ran"); return nil }, newFixture().options()...)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		err := h(ctx, order{ID: "1"})
		if _, ok := err.(*lock.DeadlineError); !ok || !strings.Contains(err.Error(), "timeout") || ctx.Err() != nil {
			t.Errorf("%T: %v", err, err)
		}
	})
}

// TestInitOpensTheConnection shows that a function starts in Lambda with and
// without its table, and how it describes itself to those who want its lock.
func TestInitOpensTheConnection(t *testing.T) {
	table := expect.Value(localtable.Start(t.Context(), "locks"))(t)
	t.Cleanup(table.Close)
	for name, env := range map[string][]string{"with a table": table.Env, "without a table": {"LOCK_TABLE_NAME="}} {
		t.Run(name, func(t *testing.T) {
			p := expect.Value(locallambda.Start(t.Context(), locallambda.Config{
				Command: platformCommand, Env: append(env, functionVariable+"=default store"), Function: "fn", Timeout: 10 * time.Second, Logs: func(int, string) {},
			}))(t)
			r, err := p.Invoke(t.Context(), locallambda.Invocation{Payload: []byte(`{"id":"1"}`)})
			if err != nil {
				t.Error(err)
			}
			if ok := r.Outcome == locallambda.Succeeded; ok != (name == "with a table") || !ok && r.ErrorType != "ConfigError" {
				t.Errorf("%+v", r)
			}
			if holder := string(r.Payload); name == "with a table" && !strings.Contains(holder, "fn request "+r.RequestID+" log 2") {
				t.Errorf("the holder is described as %s", holder)
			}
			expect.OK(t, p.Close())
		})
	}
}

// TestHolder shows how a holder inside Lambda describes itself, and how the
// option Holder changes that.
func TestHolder(t *testing.T) {
	lambdacontext.FunctionName, lambdacontext.LogStreamName = "fn", "stream"
	t.Cleanup(func() { lambdacontext.FunctionName, lambdacontext.LogStreamName = "", "" })
	request := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "17"})
	adds := func(text string) middleware.Option {
		return middleware.Holder(func(ctx context.Context, so string) string { return so + " " + text })
	}
	for want, c := range map[string]struct {
		ctx  context.Context
		opts []middleware.Option
	}{
		"fn request unknown log stream": {t.Context(), nil},
		"fn request 17 log stream":      {request, nil},
		"fn request 17 log stream a b":  {request, []middleware.Option{middleware.Group(adds("a"), adds("b"))}},
	} {
		t.Run(want, func(t *testing.T) {
			if got := holderOf(t, c.ctx, c.opts); got != want {
				t.Errorf("the holder is %q, want %q", got, want)
			}
		})
	}
}

// TestHolderOutsideLambda shows that a process describes itself, and that the
// option Holder gets that.
func TestHolderOutsideLambda(t *testing.T) {
	t.Parallel()
	process := holderOf(t, t.Context(), nil)
	got := holderOf(t, t.Context(), []middleware.Option{middleware.Holder(func(_ context.Context, so string) string { return "shop: " + so })})
	if !strings.Contains(process, " pid ") || got != "shop: "+process {
		t.Errorf("the holders are %q and %q", process, got)
	}
	none := engine(func(o *lock.Options) { o.Holder = nil })
	got = holderOf(t, t.Context(), []middleware.Option{none, middleware.Holder(func(_ context.Context, so string) string { return "shop: " + so })})
	if got != "shop: "+process {
		t.Errorf("without a description before it the holder is %q", got)
	}
}

// holderOf returns how the holder is described to another one.
func holderOf(t *testing.T, ctx context.Context, opts []middleware.Option) string {
	t.Helper()
	var held *lock.HeldError
	var h func(context.Context, order) error
	h = middleware.WithLock(byOrder, func(context.Context, order) error {
		if err := h(t.Context(), order{ID: "2"}); !errors.As(err, &held) {
			t.Fatalf("%v, want held", err)
		}
		return nil
	}, newFixture().options(opts...)...)
	expect.OK(t, h(ctx, order{ID: "1"}))
	return held.Holder
}
