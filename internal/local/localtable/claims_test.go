package localtable

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/dynamostore/batching"
)

// TestClaims: what an invocation got is known from its requests.
func TestClaims(t *testing.T) {
	t.Parallel()
	table := expect.Value(Start(t.Context(), "locks"))(t)
	t.Cleanup(table.Close)
	store := dynamostore.New(table.Client, "locks")
	now := time.Now()
	ask := func(c driver.Claim) {
		t.Helper()
		c.Now, c.Until, c.DeleteAfter = now, now.Add(time.Minute), now.Add(time.Hour)
		if _, _, err := store.Acquire(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
	}
	claim := func(name, holder string, event ...string) {
		t.Helper()
		ask(driver.Claim{Name: name, Event: strings.Join(event, ""), Token: rand.Text(), Holder: holder, Stamp: now})
	}
	claim("a", "f request 1 log s1")
	for range 2 {
		ask(driver.Claim{Name: "a", Token: "waits", Holder: "f request 2 log s2", Stamp: now})
	}
	claim("b", "f request 2 log s2")
	claim("c", "f request unknown log s3")
	claim("d", "somebody else")
	claim("e", "f request 5 log s5", "first")
	claim("e", "f request 5 log s5", "second") // as a batch does with two events of one name
	for range 3 {
		claim("e", "f request 6 log s6", "first") // and with several records of one event
	}
	ask(driver.Claim{Name: "g", Token: "ahead", Stamp: now.Add(time.Hour)})
	if _, _, err := store.Settle(t.Context(), &driver.Settlement{Name: "g", Token: "ahead", Stamp: now.Add(time.Hour), DeleteAfter: now.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	for _, stamp := range []time.Duration{0, 2 * time.Hour} { // the clock is behind that of the last owner
		ask(driver.Claim{Name: "g", Token: "behind", Holder: "f request 7 log s7", Stamp: now.Add(stamp)})
	}
	for _, c := range []struct {
		name, id, stream string
		want             Claims
	}{
		{"acquired", "1", "s1", Claims{Acquired: 1}},
		{"refused, asked again", "2", "s2", Claims{Acquired: 1, Refused: 1, Waited: true}},
		{"counted already", "2", "s2", Claims{}},
		{"known by its log stream", "3", "s3", Claims{Acquired: 1}},
		{"without claims", "4", "s4", Claims{}},
		{"two events of one name", "5", "s5", Claims{Acquired: 1, Refused: 1}},
		{"records of one event", "6", "s6", Claims{Refused: 1}},
		{"refused by nobody", "7", "s7", Claims{Acquired: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := table.Claims(c.id, c.stream); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
	if left := len(table.claims.of); left != 0 {
		t.Errorf("%d invocations are kept", left)
	}
}

// TestClaimsOfABatch: what a batch has claimed is known although package
// batching sends its claims together.
func TestClaimsOfABatch(t *testing.T) {
	t.Parallel()
	table := expect.Value(Start(t.Context(), "locks"))(t)
	t.Cleanup(table.Close)
	now := time.Now()
	claim := func(ctx context.Context, store *dynamostore.Store, name, holder string) {
		c := &driver.Claim{Name: name, Event: name, Token: rand.Text(), Holder: holder, Stamp: now, Now: now, Until: now.Add(time.Minute), DeleteAfter: now.Add(time.Hour)}
		if _, _, err := store.Acquire(ctx, c); err != nil {
			t.Error(err)
		}
	}
	claim(t.Context(), dynamostore.New(table.Client, "locks"), "held", "f request 1 log s1")
	ctx := invocation.WithBatch(t.Context(), &invocation.Batch{Claims: 3})
	store := dynamostore.New(batching.Client(table.Client), "locks")
	var all sync.WaitGroup
	for _, name := range []string{"held", "a", "b"} {
		all.Go(func() { claim(ctx, store, name, "f request 2 log s2") })
	}
	all.Wait()
	if got, want := table.Claims("2", "s2"), (Claims{Acquired: 2, Refused: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	all.Go(func() { claim(ctx, store, "a", "f request 3 log s3") }) // with a row that is known
	all.Go(func() { claim(ctx, store, "b", "f request 3 log s3") })
	all.Go(func() { claim(ctx, store, "c", "f request 3 log s3") })
	all.Wait()
	if got, want := table.Claims("3", "s3"), (Claims{Acquired: 1, Refused: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
