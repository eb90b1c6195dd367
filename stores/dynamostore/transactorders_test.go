package dynamostore_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// attemptFaults are what can become of an attempt. Those in mayApply may have
// been applied, or an earlier attempt may still be, for all that the caller
// knows.
var (
	attemptFaults = []fakedynamo.Fault{
		fakedynamo.None, fakedynamo.DropBefore, fakedynamo.ApplyThenDrop, fakedynamo.ApplyThen500, fakedynamo.Throttle, fakedynamo.Conflict,
		fakedynamo.InProgress, fakedynamo.ReplicatedConflict, fakedynamo.Deny, fakedynamo.DenyKey, fakedynamo.Hang, fakedynamo.OmitItem,
	}
	mayApply = []fakedynamo.Fault{fakedynamo.DropBefore, fakedynamo.ApplyThenDrop, fakedynamo.ApplyThen500, fakedynamo.InProgress, fakedynamo.Hang}
)

// TestTransactOrders: in every order of two faults, what Transact says of the
// writes and of the lock is true, and in the end the writes have happened once.
// LAMBDALOCK_DEPTH=long plays the orders of three.
func TestTransactOrders(t *testing.T) { // F5 to F9, F14, F53
	t.Parallel()
	n := 2
	if os.Getenv("LAMBDALOCK_DEPTH") == "long" {
		n = 3
	}
	for _, c := range []struct {
		refused bool // by a condition of the caller's
		unknown bool // the server takes no attempt for a repetition
	}{{}, {refused: true}, {unknown: true}} {
		for _, faults := range orders(n) {
			for _, forever := range []bool{false, true} { // the last fault
				synctest.Test(t, func(t *testing.T) { playTransaction(t, faults, forever, c.refused, c.unknown) })
				if t.Failed() {
					t.Fatalf("faults %v, the last one again and again: %v, %+v", faults, forever, c)
				}
			}
		}
	}
}

// orders returns every order of n faults.
func orders(n int) [][]fakedynamo.Fault {
	if n == 0 {
		return [][]fakedynamo.Fault{nil}
	}
	var all [][]fakedynamo.Fault
	for _, first := range orders(n - 1) {
		for _, f := range attemptFaults {
			all = append(all, append(slices.Clip(first), f))
		}
	}
	return all
}

// playTransaction calls Transact under a lock, which meets these faults, ends
// the lock as a handler may, and lets the event come again.
func playTransaction(t *testing.T, faults []fakedynamo.Fault, forever, refused, unknown bool) {
	b := newBank(t, hundred)
	l := b.locker(t, lock.Options{Lease: lock.FixedLease(time.Minute)})
	lk, before := b.acquire(t, l), b.Requests()
	var met []fakedynamo.Fault
	b.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
		i, f := r.N-before, fakedynamo.None
		if forever {
			i = min(i, len(faults)-1)
		}
		if i < len(faults) {
			f = faults[i]
		}
		met = append(met, f)
		return f
	})
	amount := "30"
	if refused {
		amount = "101"
	}
	_, err := dynamostore.Transact(lk.Context(), &tokens{Client: b.client, fresh: unknown}, transfer("a", "b", amount))
	applied := b.balance("a") != "100"
	b.OnRequest(nil)
	sent := b.Requests()

	unsure := slices.ContainsFunc(met, func(f fakedynamo.Fault) bool { return slices.Contains(mayApply, f) })
	// No row tells of an earlier attempt that was applied.
	silent := unknown && slices.Contains(met, fakedynamo.OmitItem)
	denied := slices.Contains(met, fakedynamo.Deny) || slices.Contains(met, fakedynamo.DenyKey)
	stored, lost := errors.As(err, new(*lock.StoreError)), errors.Is(err, lock.ErrLost)
	switch {
	case !forever && !refused && !denied && !silent && err != nil:
		t.Errorf("%v, although there was an answer in the end", err)
	case !unsure && (denied || !forever && refused) && (err == nil || stored || lost):
		t.Errorf("%v, want the client's error", err)
	}

	switch {
	case err == nil:
		if !applied {
			t.Error("success, and nothing was written")
		}
		if err := errors.Join(lk.Complete(), lk.Release()); err != nil || b.Requests() != sent || !errors.Is(lk.Context().Err(), context.Canceled) {
			t.Errorf("after success: %v, %d requests, the context: %v", err, b.Requests()-sent, lk.Context().Err())
		}
	case !stored && !lost: // the client's own error
		if unsure || applied || lk.Context().Err() != nil {
			t.Fatalf("%v, unsure %v, applied %v, the context: %v: want the client's error only if nothing was written and the lock goes on", err, unsure, applied, lk.Context().Err())
		}
		if _, err := dynamostore.Transact(lk.Context(), b.client, transfer("a", "b", "30")); err != nil {
			t.Errorf("another transaction: %v", err)
		}
	case unsure: // the row stays unchanged
		if err := lk.Release(); err == nil || b.Requests() != sent {
			t.Errorf("Release after an attempt without an answer: %v, %d requests", err, b.Requests()-sent)
		}
		if held := b.Item(table, "/order/17")["ownerToken"] != nil; held == applied {
			t.Errorf("the row is held: %v, applied: %v", held, applied)
		}
	default:
		if err := lk.Release(); err != nil || lost || applied {
			t.Errorf("Release: %v, lost: %v, applied: %v", err, lost, applied)
		}
		next, err := l.Acquire(t.Context(), order)
		if err != nil {
			t.Fatalf("the next delivery has to wait: %v", err)
		}
		_ = next.Release()
	}

	time.Sleep(time.Minute)
	next, err := l.Acquire(t.Context(), order)
	if done := b.balance("a") != "100"; errors.Is(err, lock.ErrCompleted) != done {
		t.Fatalf("the next delivery: %v, written: %v", err, done)
	}
	if err == nil {
		if _, err := dynamostore.Transact(next.Context(), b.client, transfer("a", "b", "30")); err != nil {
			t.Error(err)
		}
	}
	b.wantBalances(t, "70", "130")
}
