package middleware_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// environment is that of a function whose store is the endpoint.
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

func TestDefaultStore(t *testing.T) {
	table, err := localtable.Start(t.Context(), "locks")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	environment(t, table.URL, "locks")
	ran := 0
	handle := func(context.Context, order) error { ran++; return nil }
	h := middleware.WithLock(byOrder, handle)
	for range 2 {
		if err := h(t.Context(), order{ID: "1"}); err != nil {
			t.Error(err)
		}
	}
	if ran != 1 {
		t.Errorf("ran %d times", ran)
	}
	t.Setenv("LOCK_TABLE_NAME", "")
	if err := middleware.WithLock(byOrder, handle, middleware.Table("locks"))(t.Context(), order{ID: "1"}); err != nil || ran != 1 {
		t.Errorf("the table by option: %v after %d runs", err, ran)
	}
	t.Setenv("LOCK_TABLE_NAME", "locks")
	middleware.ForgetDefaultStores()
	nested := middleware.WithLock(byOrder, middleware.WithLock(byOrder, handle), middleware.OnHeld(middleware.Wait(time.Hour)))
	if err := nested(t.Context(), order{ID: "3"}); !errors.As(err, new(*lock.ConfigError)) { // F33
		t.Errorf("nested, with one name: %v, want a ConfigError", err)
	}
	renewed := make(chan struct{}, 10)
	heartbeat := middleware.WithLock(byOrder, func(context.Context, order) error { <-renewed; return nil },
		middleware.Table("locks"), middleware.Heartbeat(3*time.Second), middleware.Observe(func(_ context.Context, o lock.Observation) {
			if o.Outcome == lock.OutcomeRenewed {
				renewed <- struct{}{}
			}
		}))
	if err := heartbeat(t.Context(), order{ID: "2"}); err != nil {
		t.Errorf("with a heartbeat: %v", err)
	}
}

// TestDefaultStoreIsShared: all decorators of a process that use one table share one
// client, and open one connection during INIT.
func TestDefaultStoreIsShared(t *testing.T) {
	fake := fakedynamo.New()
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	environment(t, server.URL, "locks")
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9001")
	var opened atomic.Int64
	fake.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
		if r.Operation == "DescribeEndpoints" {
			opened.Add(1)
		}
		return fakedynamo.None
	})
	handle := func(context.Context, order) error { return nil }
	own, err := dynamostore.Open(t.Context(), "locks")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name string
		opts []middleware.Option
		want int64
	}{
		{"first decorator", nil, 1},
		{"second decorator", nil, 1},
		{"the same table by name", []middleware.Option{middleware.Table("locks")}, 1},
		{"another table", []middleware.Option{middleware.Table("others")}, 2},
		{"the default store by hand", []middleware.Option{middleware.Store(middleware.DefaultStore("locks"))}, 2},
		{"its own client", []middleware.Option{middleware.Store(own)}, 2},
	} {
		middleware.WithLock(byOrder, handle, step.opts...)
		if got := opened.Load(); got != step.want {
			t.Errorf("%s: %d connections were opened during INIT, want %d", step.name, got, step.want)
		}
	}
}

// TestWrongEnvironment: each mistake gives the error that names it, the handler
// does not run, and the acquire budget of a tenth of the deadline is kept.
func TestWrongEnvironment(t *testing.T) { // F10, F11, F12, F31
	server := fakedynamo.New()
	srv := httptest.NewServer(server)
	t.Cleanup(srv.Close)
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
		"no table name":     {"", "local", fakedynamo.None, put, time.Minute, func(err error) bool { _, ok := err.(*lock.ConfigError); return ok && is("LOCK_TABLE_NAME")(err) }},
		"no credentials":    {"locks", "", fakedynamo.None, put, time.Minute, func(err error) bool { _, ok := err.(*lock.ConfigError); return ok && is("credentials")(err) }},
		"missing table":     {"missing", "local", fakedynamo.None, put, time.Minute, func(err error) bool { _, ok := err.(*lock.StoreError); return ok && is("create-table")(err) }},
		"denied action":     {"locks", "local", fakedynamo.Deny, put, time.Minute, func(err error) bool { _, ok := err.(*lock.StoreError); return ok && is("dynamodb:UpdateItem")(err) }},
		"hung endpoint":     {"locks", "local", fakedynamo.Hang, put, 2 * time.Second, func(err error) bool { _, ok := err.(*lock.StoreError); return ok }},
		"empty name":        {"locks", "local", fakedynamo.None, upload("", "01"), time.Minute, func(err error) bool { _, ok := err.(*lock.KeyError); return ok && is("s3.object.key")(err) }},
		"malformed escape":  {"locks", "local", fakedynamo.None, malformed, time.Minute, func(err error) bool { _, ok := err.(*lock.KeyError); return ok && is("URL-encoded")(err) }},
		"deadline too near": {"locks", "local", fakedynamo.None, put, 50 * time.Millisecond, func(err error) bool { _, ok := err.(*lock.DeadlineError); return ok && is("timeout")(err) }},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, srv.URL, c.table)
			t.Setenv("AWS_ACCESS_KEY_ID", c.id)
			t.Setenv("AWS_SECRET_ACCESS_KEY", c.id)
			server.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return c.fault })
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

// TestInitOpensTheConnection: in Lambda the store is asked before the first event,
// so that the first invocation finds the connection open.
func TestInitOpensTheConnection(t *testing.T) {
	table, err := localtable.Start(t.Context(), "locks")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	for name, env := range map[string][]string{"store": table.Env, "no table": {"LOCK_TABLE_NAME="}} {
		p, err := locallambda.Start(t.Context(), locallambda.Config{
			Command: platformCommand, Env: append(env, roleVariable+"=default store"), Function: "fn", Timeout: 10 * time.Second, Logs: func(int, string) {},
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r, err := p.Invoke(t.Context(), locallambda.Invocation{Payload: []byte(`{"id":"1"}`)})
		if err != nil {
			t.Error(err)
		}
		if ok := r.Outcome == locallambda.Succeeded; ok != (name == "store") || !ok && r.ErrorType != "ConfigError" {
			t.Errorf("%s: %+v", name, r)
		}
		if holder := string(r.Payload); name == "store" && !strings.Contains(holder, "fn request "+r.RequestID+" log 2") {
			t.Errorf("the holder is described as %s", holder)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
