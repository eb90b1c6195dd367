package integration_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

const checkLimit = time.Minute

func check(history []porcupine.Operation) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(lockModel.ToModel(), history, checkLimit)
}

// TestModelCanFail shows that the check notices stores that lie.
func TestModelCanFail(t *testing.T) {
	for name, c := range map[string]struct {
		store driver.Store
		want  porcupine.CheckResult
	}{
		"tells the truth":               {memstore.New(), porcupine.Ok},
		"grants what was refused":       {grantsAll(memstore.New()), porcupine.Illegal},
		"reports a release, makes none": {neverReleases(memstore.New()), porcupine.Illegal},
		"repeats a fence":               {sameFence(memstore.New()), porcupine.Illegal},
	} {
		t.Run(name, func(t *testing.T) {
			var history []porcupine.Operation
			store := newWitness(c.store, func(l line) { history = append(history, l.Op.toModel(nil)) })
			ctx, now := t.Context(), time.Now()
			claim := func() *driver.Claim {
				now = now.Add(time.Millisecond)
				who := fmt.Sprint("client ", len(history))
				claim := &driver.Claim{Name: "n", Token: who, Holder: who, Now: now, Stamp: now, Until: now.Add(time.Minute), DeleteAfter: now.Add(time.Hour)}
				_, _, err := store.Acquire(ctx, claim)
				expect.Must(t, err)
				return claim
			}
			first := claim()
			claim() // refused
			_, _, err := store.Settle(ctx, &driver.Settlement{Name: "n", Token: first.Token, Stamp: first.Stamp, DeleteAfter: first.DeleteAfter})
			expect.Must(t, err)
			claim()
			if got := check(history); got != c.want {
				t.Errorf("the history is %s, want %s", got, c.want)
			}
		})
	}
}

// grantsAll reports every refused acquire as granted.
func grantsAll(store driver.Store) driver.Store {
	return fault.Hooks{Store: store, OnAcquire: func(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
		row, ok, err := store.Acquire(ctx, c)
		if err == nil && !ok {
			row.Token, row.Fence, ok = c.Token, row.Fence+1, true
		}
		return row, ok, err
	}}
}

// neverReleases reports releases as applied and makes none.
func neverReleases(store driver.Store) driver.Store {
	return fault.Hooks{Store: store, OnSettle: func(context.Context, *driver.Settlement) (driver.Row, bool, error) { return driver.Row{}, true, nil }}
}

// sameFence returns the fence of the owner before.
func sameFence(store driver.Store) driver.Store {
	return fault.Hooks{Store: store, OnAcquire: func(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
		row, ok, err := store.Acquire(ctx, c)
		if ok {
			row.Fence--
		}
		return row, ok, err
	}}
}
