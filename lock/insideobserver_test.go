package lock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
)

// TestLockEndsInsideAnObserver ends a lock inside an observer that its
// heartbeat called: there, in a goroutine for which the observer waits, or
// while the holder ends the lock, too. Nothing hangs, and the name is free.
func TestLockEndsInsideAnObserver(t *testing.T) { // F48
	t.Parallel()
	ends := map[string]func(*lock.Lock){
		"Release":  func(lk *lock.Lock) { _ = lk.Release() },
		"Complete": func(lk *lock.Lock) { _ = lk.Complete() },
	}
	for name, end := range ends {
		for at, faulty := range map[lock.Outcome]fault.Fault{lock.OutcomeRenewed: fault.None, lock.OutcomeStoreFailed: fault.Deny, lock.OutcomeLost: fault.DropBefore} {
			for _, where := range []string{"there", "in another goroutine", "at the same time"} {
				t.Run(name+" "+where+" at "+string(at), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						f := newFixture(t)
						f.faulty.Always(fault.Renew, faulty)
						var holder atomic.Pointer[lock.Lock]
						var seen atomic.Bool
						called, ended := make(chan struct{}), make(chan struct{})
						l, err := lock.New(f.faulty, &lock.Options{Lease: lock.Heartbeat(9 * time.Second), Logger: discard, Observe: func(_ context.Context, o lock.Observation) {
							if o.Outcome != at || !seen.CompareAndSwap(false, true) {
								return
							}
							close(called)
							if where == "at the same time" {
								time.Sleep(100 * time.Millisecond) // the holder is ending it
							}
							if where == "there" {
								defer close(ended)
								end(holder.Load())
								return
							}
							go func() { defer close(ended); end(holder.Load()) }()
							<-ended
						}})
						if err != nil {
							t.Fatal(err)
						}
						lk := f.mustAcquire(l, event("e1"))
						holder.Store(lk)
						<-called
						if where == "at the same time" {
							end(lk)
						}
						<-ended
						_ = lk.Release()
						f.wantFree("after the end")
					})
				})
			}
		}
	}
}
