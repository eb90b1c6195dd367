package middleware_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestNoGoroutineOutlivesTheInvocation shows that the invocation waits for the
// last renewal. Lambda would freeze a goroutine that is left, and thaw it in a
// later invocation. synctest fails the test if another one is left.
func TestNoGoroutineOutlivesTheInvocation(t *testing.T) { // F17
	work := func() { time.Sleep(3500 * time.Millisecond) } // a third of the lease, and half a second of the renewal
	for name, run := range map[string]func(ctx context.Context, opts []middleware.Option){
		"returns": func(ctx context.Context, opts []middleware.Option) {
			_ = middleware.WithLock(byOrder, func(context.Context, order) error { work(); return nil }, opts...)(ctx, order{ID: "1"})
		},
		"fails": func(ctx context.Context, opts []middleware.Option) {
			_ = middleware.WithLock(byOrder, func(context.Context, order) error { work(); return errors.New("boom") }, opts...)(ctx, order{ID: "1"})
		},
		"panics": func(ctx context.Context, opts []middleware.Option) {
			defer func() { _ = recover() }()
			_ = middleware.WithLock(byOrder, func(context.Context, order) error { work(); panic("boom") }, opts...)(ctx, order{ID: "1"})
		},
		"exits": func(ctx context.Context, opts []middleware.Option) {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = middleware.WithLock(byOrder, func(context.Context, order) error { work(); runtime.Goexit(); return nil }, opts...)(ctx, order{ID: "1"})
			}()
			<-ended
		},
		"result": func(ctx context.Context, opts []middleware.Option) {
			_, _ = middleware.WithLock(byOrder, func(context.Context, order) (string, error) { work(); return "", nil }, opts...)(ctx, order{ID: "1"})
		},
		"streams": func(ctx context.Context, opts []middleware.Option) {
			body, _ := middleware.WithLock(byOrder, func(context.Context, order) (io.Reader, error) { return strings.NewReader("x"), nil }, opts...)(ctx, order{ID: "1"})
			work()
			_, _ = io.ReadAll(body)
		},
		"streams, closed early": func(ctx context.Context, opts []middleware.Option) {
			body, _ := middleware.WithLock(byOrder, func(context.Context, order) (io.Reader, error) { return strings.NewReader("x"), nil }, opts...)(ctx, order{ID: "1"})
			work()
			_ = body.(io.Closer).Close()
		},
		"batch": func(ctx context.Context, opts []middleware.Option) {
			h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(_ context.Context, m events.SQSMessage) error {
				work()
				if m.Body == "exits" {
					runtime.Goexit()
				}
				return nil
			}, opts...)
			_, _ = h(ctx, sqsBatch(message("a", ""), message("b", "exits"), message("c", "")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var running, begun atomic.Int32
				rows := memstore.New()
				store := fault.Hooks{Store: rows, OnRenew: func(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
					begun.Add(1)
					running.Add(1)
					defer running.Add(-1)
					time.Sleep(2 * time.Second) // also if ctx ends: one is in progress when the handler ends
					return rows.Renew(ctx, r)
				}}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				run(ctx, newFixture().options(middleware.Store(store), middleware.Heartbeat(9*time.Second)))
				if n := running.Load(); n != 0 || begun.Load() == 0 {
					t.Errorf("%d of %d renewals are in progress after the invocation", n, begun.Load())
				}
			})
		})
	}
}
