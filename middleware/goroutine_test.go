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

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// slowRenewal is a store whose renewals take 2 s, also if their context ends,
// so that one is in progress when the handler ends.
type slowRenewal struct {
	*memstore.Store
	running, begun atomic.Int32
}

func (s *slowRenewal) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	s.begun.Add(1)
	s.running.Add(1)
	defer s.running.Add(-1)
	time.Sleep(2 * time.Second)
	return s.Store.Renew(ctx, r)
}

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
				store := &slowRenewal{Store: memstore.New()}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				run(ctx, newFixture().options(middleware.Store(store), middleware.Heartbeat(9*time.Second)))
				if n := store.running.Load(); n != 0 || store.begun.Load() == 0 {
					t.Errorf("%d of %d renewals are in progress after the invocation", n, store.begun.Load())
				}
			})
		})
	}
}
