package middleware_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// TestDefaultStore shows that wrappers without the option Store use the table
// named in the environment or by the option Table.
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

// TestDefaultStoreIsShared shows that all wrappers of a process that use one
// table share one client, and open one connection during INIT.
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
		{"first wrapper", nil, 1},
		{"second wrapper", nil, 1},
		{"the same table by name", []middleware.Option{middleware.Table("locks")}, 1},
		{"another table", []middleware.Option{middleware.Table("others")}, 2},
		{"the default store by hand", []middleware.Option{middleware.Store(middleware.DefaultStore("locks"))}, 2},
		{"its own client", []middleware.Option{middleware.Store(own)}, 2},
	} {
		t.Run(step.name, func(t *testing.T) {
			middleware.WithLock(byOrder, handle, step.opts...)
			if got := opened.Load(); got != step.want {
				t.Errorf("%d connections were opened during INIT, want %d", got, step.want)
			}
		})
	}
}

// TestDefaultStoreIsOnePerTable shows that the table may be named or left to
// the environment.
func TestDefaultStoreIsOnePerTable(t *testing.T) {
	environment(t, "http://127.0.0.1:1", "locks")
	if middleware.DefaultStore("") != middleware.DefaultStore("locks") {
		t.Error("the table of the environment has two stores")
	}
	if middleware.DefaultStore("others") == middleware.DefaultStore("locks") {
		t.Error("two tables have one store")
	}
}

// TestDefaultStoreWithoutATable shows that every request reports the missing
// name, and that the store opens once the environment has it.
func TestDefaultStoreWithoutATable(t *testing.T) {
	table, err := localtable.Start(t.Context(), "locks")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	environment(t, table.URL, "")
	store := middleware.DefaultStore("")
	check := store.(driver.Checker).Check
	for name, request := range map[string]func() error{
		"acquire": func() error { _, _, err := store.Acquire(t.Context(), &driver.Claim{}); return err },
		"renew":   func() error { _, _, err := store.Renew(t.Context(), &driver.Renewal{}); return err },
		"release": func() error { _, _, err := store.Release(t.Context(), &driver.Settlement{}); return err },
		"check":   func() error { return check(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := request(); !errors.As(err, new(*lock.ConfigError)) {
				t.Errorf("%v, want a ConfigError", err)
			}
		})
	}
	t.Setenv("LOCK_TABLE_NAME", "locks")
	if err := check(t.Context()); err != nil {
		t.Errorf("with a table: %v", err)
	}
}
