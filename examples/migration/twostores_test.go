package migration

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/dynamostore/dynamotest"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

func inDynamoDB() driver.Store { return dynamostore.New(dynamotest.New(nil), dynamotest.LockTable) }
func inMemory() driver.Store   { return memstore.New() }

// directions are the moves from one store to another.
var directions = map[string]struct{ from, to func() driver.Store }{
	"from DynamoDB":             {inDynamoDB, inMemory},
	"to DynamoDB":               {inMemory, inDynamoDB},
	"from one table to another": {inDynamoDB, inDynamoDB},
}

func inEachDirection(t *testing.T, test func(t *testing.T, b *bank, inOld, both, inNew handler)) {
	for name, d := range directions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, oldStore, newStore := newBank(t), d.from(), d.to()
				test(t, b, middleware.WithLock(byID, b.pay, middleware.Store(oldStore)),
					inBoth(b.pay, newStore, oldStore), middleware.WithLock(byID, b.pay, middleware.Store(newStore)))
			})
		})
	}
}

// TestStoreCutOver runs two versions at the same time.
func TestStoreCutOver(t *testing.T) {
	t.Parallel()
	all := payments(0, 20)
	for name, c := range map[string]struct {
		before, after int // of old store, both, and new store
		safe          bool
	}{
		"the first deployment":    {0, 1, true},
		"the second deployment":   {1, 2, true},
		"both deployments in one": {0, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inEachDirection(t, func(_ *testing.T, b *bank, inOld, both, inNew handler) {
				handlers := []handler{inOld, both, inNew}
				b.deliverToAll(all, handlers[c.before], handlers[c.after])
				b.check(all, c.safe)
			})
		})
	}
}

// TestNewStoreLearns: the new store knows what was completed while both were in
// use, and what came again in that time.
func TestNewStoreLearns(t *testing.T) {
	t.Parallel()
	inEachDirection(t, func(t *testing.T, b *bank, inOld, both, inNew handler) {
		b.deliver(inOld, payments(0, 20))
		b.deliver(both, payments(10, 30))
		b.deliver(inNew, payments(10, 30))
		b.check(payments(0, 30), true)
		b.deliver(inNew, payments(0, 10))
		if n := b.paid["0"]; n != 2 {
			t.Errorf("a payment that only the old store knows was made %d times, want 2", n)
		}
	})
}

// TestGoingBack: what was completed while both stores were in use is known to
// the old one.
func TestGoingBack(t *testing.T) {
	t.Parallel()
	inEachDirection(t, func(_ *testing.T, b *bank, inOld, both, _ handler) {
		b.deliver(both, payments(0, 20))
		b.deliver(inOld, payments(0, 20))
		b.check(payments(0, 20), true)
	})
}

// TestHeldInsideMustFail: if the inner lock acknowledges a payment that is
// held, the outer one completes it, and it is lost if the holder fails.
func TestHeldInsideMustFail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		held middleware.HeldPolicy
		paid int
	}{
		"fail": {middleware.Fail, 1},
		"skip": {middleware.Skip, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, oldStore := newBank(t), memstore.New()
				b.err = errors.New("the bank is closed")
				inner := middleware.WithLock(byID, b.pay, middleware.Store(oldStore), middleware.OnHeld(c.held))
				both := middleware.WithLock(byID, inner, middleware.Store(memstore.New()))
				var inOld sync.WaitGroup
				inOld.Go(func() { _ = b.invoke(middleware.WithLock(byID, b.pay, middleware.Store(oldStore)), payment{"1"}) })
				synctest.Wait() // the old version is at work
				_ = b.invoke(both, payment{"1"})
				inOld.Wait() // it has failed
				b.err = nil
				if err := b.invoke(both, payment{"1"}); err != nil || b.paid["1"] != c.paid {
					t.Errorf("error %v, paid %d times, want %d", err, b.paid["1"], c.paid)
				}
			})
		})
	}
}

// TestFencesRise: while both stores are in use, the handler has the fence of
// the old one, so a resource that checks fences accepts both versions in any
// order. Those of the new store are higher.
func TestFencesRise(t *testing.T) {
	t.Parallel()
	inEachDirection(t, func(t *testing.T, b *bank, inOld, both, inNew handler) {
		b.err = errors.New("the payment is tried again")
		for _, handle := range []handler{inOld, both, inOld, both, inNew, inNew} {
			if err := b.invoke(handle, payment{"1"}); err != b.err {
				t.Fatal(err)
			}
		}
		if !slices.IsSorted(b.fences) || len(slices.Compact(b.fences)) != 6 {
			t.Errorf("the fences are %v", b.fences)
		}
	})
}

// TestInterruptedBetweenStores: a payment of which nobody knows the end runs
// again neither while both stores are in use nor afterwards, if both locks have
// OnInterrupted.
func TestInterruptedBetweenStores(t *testing.T) {
	t.Parallel()
	skips := middleware.OnInterrupted(middleware.Skip)
	for name, c := range map[string]struct {
		outer, inner []middleware.Option
		runs         int
	}{
		"both":  {[]middleware.Option{skips}, []middleware.Option{skips}, 2},
		"outer": {[]middleware.Option{skips}, nil, 3},
		"inner": {nil, []middleware.Option{skips}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, oldStore, newStore, runs := newBank(t), memstore.New(), memstore.New(), 0
			pay := func(context.Context, payment) error {
				runs++
				return middleware.Unknown(errors.New("the bank does not answer"))
			}
			inOld := middleware.WithLock(byID, pay, append(c.inner, middleware.Store(oldStore))...)
			both := middleware.WithLock(byID, inOld, append(c.outer, middleware.Store(newStore))...)
			inNew := middleware.WithLock(byID, pay, middleware.Store(newStore), skips)
			_ = b.invoke(middleware.WithLock(byID, pay, middleware.Store(oldStore), skips), payment{"1"})
			_ = b.invoke(both, payment{"1"})
			_ = b.invoke(both, payment{"2"})
			_ = b.invoke(inNew, payment{"2"})
			if runs != c.runs {
				t.Errorf("two payments were tried %d times, want %d", runs, c.runs)
			}
		})
	}
}
