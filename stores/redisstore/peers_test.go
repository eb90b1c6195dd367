package redisstore_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
)

// TestFenceIsNotKeptForEver: the counter of a fenced lock was a key of its own
// that nothing ever deleted, 25 million keys of 75 million on one server
// (redisson#6510). Here the fence is in the row, which the server deletes, and
// fences rise all the same.
func TestFenceIsNotKeptForEver(t *testing.T) { // F23, F24
	t.Parallel()
	m := redistest.NewMini(t)
	store := redistest.Must(redisstore.New(redistest.NewClient(t, m.Addr())))
	fences := map[string]int64{}
	for round := range 3 {
		for i := range 10 {
			c := redistest.Claim(fmt.Sprint("n", i))
			row := redistest.MustAcquire(t, store, c)
			if row.Fence <= fences[c.Name] {
				t.Errorf("round %d: fence %d after %d", round, row.Fence, fences[c.Name])
			}
			fences[c.Name] = row.Fence
			if i%2 == 0 { // the others die
				expect.Granted(store.Settle(t.Context(), redistest.Settlement(c)))(t)
			}
		}
		if keys := m.Keys(); len(keys) != 10 {
			t.Errorf("round %d: %d keys for 10 names: %q", round, len(keys), keys)
		}
		m.FastForward(25 * time.Hour) // what the server does by itself
		if keys := m.Keys(); len(keys) != 0 {
			t.Errorf("round %d: after a day without use the server still has %q", round, keys)
		}
	}
}

// TestRecordThatIsAliveIsNotTaken: a record without a deadline of its
// invocation counted as an orphan, which any caller took and overwrote
// (powertools-lambda-python#8386); and what a caller had read of an orphan was
// overwritten although it had changed (powertools-lambda-typescript#5714). Here
// one script decides and writes, and no lease is without an end.
func TestRecordThatIsAliveIsNotTaken(t *testing.T) { // F21, F22
	t.Parallel()
	m := redistest.NewMini(t)
	var ahead atomic.Int64
	client := redistest.NewClient(t, m.Addr())
	store := redistest.Must(redisstore.New(redistest.Clock{Scripter: client, Ahead: &ahead}))
	dead := redistest.Claim("n")
	dead.Event = "e1"
	redistest.MustAcquire(t, store, dead)
	if end := m.HGet("lambdalock:n", "leaseEnd"); end == "" || strings.Trim(end, "0123456789") != "" {
		t.Errorf("the lease ends at %q", end)
	}
	for range 3 {
		redistest.MustRefuse(t, store, redistest.Claim("n"))
	}
	ahead.Store(int64(time.Minute + time.Second))
	var granted []*driver.Claim
	for range 3 { // all of them may have seen the orphan
		c := redistest.Claim("n")
		c.Event = "e1"
		if _, ok, err := store.Acquire(t.Context(), c); err != nil {
			t.Fatal(err)
		} else if ok {
			granted = append(granted, c)
		}
	}
	if len(granted) != 1 {
		t.Fatalf("%d callers took over, want one", len(granted))
	}
	done := redistest.Settlement(granted[0])
	done.Memory = &driver.Memory{Completed: []driver.CompletedEvent{{Event: "e1", Until: time.Now().Add(time.Hour)}}}
	expect.Granted(store.Settle(t.Context(), done))(t)
	late := redistest.Claim("n")
	late.Event = "e1"
	if row := redistest.MustRefuse(t, store, late); row.Judge(late) != driver.Completed {
		t.Errorf("verdict %v on %+v, want completed", row.Judge(late), row)
	}
}
