package lock_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// stuck is a store and a log handler that, from a moment on, do not return.
type stuck struct {
	slog.Handler
	driver.Store
	logs, renews atomic.Bool // which of them do not return
	release      chan struct{}
}

func (s *stuck) Handle(context.Context, slog.Record) error {
	if s.logs.Load() {
		<-s.release
	}
	return nil
}

func (*stuck) Enabled(context.Context, slog.Level) bool { return true }

func (s *stuck) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	if s.renews.Load() {
		<-s.release
	}
	return s.Store.Renew(ctx, r)
}

// TestStuckHeartbeat: the work ends 1 s before its lease even if the heartbeat
// waits for a log handler whose output is blocked, for an observer, or for a
// client that does not heed its context, or an observer has ended it. The end
// waits for the client, or Lambda would freeze it, and once for an observer.
func TestStuckHeartbeat(t *testing.T) { // F19
	t.Parallel()
	for _, name := range []string{"log handler", "observer", "observer that exits", "client"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				faulty := fault.NewScripted(memstore.New())
				c := &stuck{Store: faulty, Handler: slog.DiscardHandler, release: make(chan struct{})}
				locker := expect.Value(lock.New(c, &lock.Options{Lease: lock.Heartbeat(12 * time.Second), Logger: slog.New(c), Observe: func(_ context.Context, o lock.Observation) {
					switch {
					case o.Op == "renew" && name == "observer":
						<-c.release
					case o.Op == "renew" && name == "observer that exits":
						runtime.Goexit()
					}
				}}))(t)
				began := time.Now()
				lk := expect.Value(locker.Acquire(t.Context(), resource))(t)
				c.logs.Store(name == "log handler")
				c.renews.Store(name == "client")
				faulty.Always(fault.Renew, fault.DropBefore)
				select {
				case <-lk.Context().Done():
					if took := time.Since(began); took > 11*time.Second || !errors.Is(context.Cause(lk.Context()), lock.ErrLost) {
						t.Errorf("the work ended after %v because of %v", took, context.Cause(lk.Context()))
					}
				case <-time.After(time.Minute):
					t.Error("the work goes on without its lease")
				}
				ended := make(chan time.Duration, 1)
				go func() {
					began := time.Now()
					_ = lk.Release()
					ended <- time.Since(began)
				}()
				time.Sleep(time.Minute)
				select {
				case took := <-ended:
					if name == "client" || took > 250*time.Millisecond {
						t.Errorf("the end took %v", took)
					}
				default:
					if name == "observer" {
						t.Error("the end waits for the observer")
					}
				}
				close(c.release)
			})
		})
	}
}
