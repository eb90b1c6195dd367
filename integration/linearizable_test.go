package integration_test

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

const (
	modelClients = 8
	modelTurns   = 60 // of each client
	modelNames   = 3
	checkLimit   = time.Minute
)

// TestLinearizable compares with the model what eight clients saw of a real
// server, with lost answers and takeovers.
func TestLinearizable(t *testing.T) {
	store := dynamostore.New(newTable(t, servers.Dynoxide(t)), table)
	history, seen := record(t, withFaults(t, store))
	for what, n := range seen {
		t.Logf("%s: %d", what, n)
	}
	for _, what := range []string{"granted", "refused", "took over", "unknown", "late release"} {
		if seen[what] == 0 {
			t.Errorf("the history has no case of %q", what)
		}
	}
	if got := check(history); got != porcupine.Ok {
		t.Errorf("history of %d operations is %s", len(history), got)
	}
}

// TestLinearizableCanFail shows that the check notices stores that lie.
func TestLinearizableCanFail(t *testing.T) {
	store := dynamostore.New(newTable(t, embedded(t)), table)
	for name, liar := range map[string]driver.Store{
		"grants what was refused":        grantsAll(store),
		"reports releases it never made": neverReleases(store),
		"repeats a fence":                sameFence(store),
	} {
		t.Run(name, func(t *testing.T) {
			history, _ := record(t, liar)
			if got := check(history); got != porcupine.Illegal {
				t.Errorf("history of a store that %s is %s, want Illegal", name, got)
			}
		})
	}
}

func check(history []porcupine.Operation) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(lockModel.ToModel(), history, checkLimit)
}

// withFaults returns a store that loses the answer of one request in five, and
// drops one in ten before it is applied.
func withFaults(t *testing.T, store driver.Store) driver.Store {
	seed := testSeed(t)
	t.Logf("to play these faults again: LAMBDALOCK_SEED=%d", seed)
	loss := fault.Mix{Seed: seed, PerMille: map[fault.Fault]int{fault.ApplyThenDrop: 200, fault.DropBefore: 100}}
	return fault.NewStore(store, loss.Client(0), &fault.Kept{})
}

// recorder collects the operations of all clients.
type recorder struct {
	t     *testing.T
	store driver.Store
	began time.Time
	run   string

	mu      sync.Mutex
	history []porcupine.Operation
	seen    map[string]int
}

func record(t *testing.T, store driver.Store) ([]porcupine.Operation, map[string]int) {
	r := &recorder{t: t, store: store, began: time.Now(), run: rand.Text(), seen: map[string]int{}}
	var wg sync.WaitGroup
	for id := range modelClients {
		wg.Go(func() {
			for range modelTurns {
				r.turn(id)
			}
		})
	}
	wg.Wait()
	return r.history, r.seen
}

// turn claims a name for a very short or a longer time. Then it releases the
// name, dies, or releases it too late. A claim without an answer is repeated or
// given up.
func (r *recorder) turn(id int) {
	now := time.Now().Truncate(time.Microsecond)
	lease := 3 * time.Millisecond
	if mathrand.N(3) == 0 {
		lease = 30 * time.Millisecond
	}
	c := &driver.Claim{
		Name: fmt.Sprint(r.run, "/", mathrand.N(modelNames)), Token: rand.Text(), Holder: fmt.Sprint("client ", id),
		Now: now, Stamp: now, Until: now.Add(lease), DeleteAfter: now.Add(time.Hour),
	}
	out := r.acquire(id, c)
	if out.unknown && mathrand.N(2) == 0 {
		out = r.acquire(id, c)
	}
	switch {
	case out.unknown:
		r.release(id, c, opAbandon)
	case !out.applied && out.owner != c.Token:
	case mathrand.N(4) == 0: // dies
	case mathrand.N(4) == 0:
		time.Sleep(time.Until(c.Until.Add(5 * time.Millisecond))) // it outlives its lease
		if out := r.release(id, c, opRelease); !out.unknown && !out.applied {
			r.count("late release")
		}
	default:
		r.release(id, c, opRelease)
	}
}

func (r *recorder) acquire(id int, c *driver.Claim) modelOutput {
	in := modelInput{op: opAcquire, name: c.Name, token: c.Token, now: c.Now.UnixMicro(), stamp: c.Stamp.UnixMicro(), until: c.Until.UnixMicro()}
	return r.do(id, in, func(ctx context.Context) (driver.Row, bool, error) {
		row, ok, err := r.store.Acquire(ctx, c)
		if ok && row.Previous.Holder != "" {
			r.count("took over")
		}
		return row, ok, err
	})
}

func (r *recorder) release(id int, c *driver.Claim, op modelOp) modelOutput {
	in := modelInput{op: op, name: c.Name, token: c.Token, stamp: c.Stamp.UnixMicro()}
	return r.do(id, in, func(ctx context.Context) (driver.Row, bool, error) {
		return r.store.Settle(ctx, &driver.Settlement{
			Name: c.Name, Token: c.Token, DeleteAfter: c.DeleteAfter, Abandon: op == opAbandon, Stamp: c.Stamp,
		})
	})
}

func (r *recorder) do(id int, in modelInput, request func(context.Context) (driver.Row, bool, error)) modelOutput {
	call := time.Since(r.began)
	row, ok, err := request(r.t.Context())
	ret := time.Since(r.began)
	out := modelOutput{unknown: err != nil, applied: ok, owner: row.Token, fence: row.Fence}
	switch {
	case err != nil:
		r.count("unknown")
	case ok:
		r.count("granted")
	default:
		r.count("refused")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, porcupine.Operation{ClientId: id, Input: in, Output: out, Call: int64(call), Return: int64(ret)})
	return out
}

func (r *recorder) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[what]++
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
