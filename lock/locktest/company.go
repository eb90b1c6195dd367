package locktest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// together sends n requests at the same time, as the records of a batch do. A
// store may send them in one request to its server.
func (f *fixture) together(n int, request func(ctx context.Context, i int)) {
	ctx := invocation.WithBatch(f.Context(), &invocation.Batch{Claims: n})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { request(ctx, i) })
	}
	all.Wait()
}

// claimTogether sends claims at the same time and returns their answers.
func (f *fixture) claimTogether(claims []*driver.Claim) (rows []driver.Row, granted []bool) {
	f.Helper()
	rows, granted = make([]driver.Row, len(claims)), make([]bool, len(claims))
	f.together(len(claims), func(ctx context.Context, i int) {
		var err error
		if rows[i], granted[i], err = f.store.Acquire(ctx, claims[i]); err != nil {
			f.Errorf("claim of %s: %v", claims[i].Name, err)
		}
	})
	return rows, granted
}

// named returns a claim of another name.
func (f *fixture) named(name string) *driver.Claim {
	c := f.claim("holder")
	c.Name += "/" + name
	return c
}

// company shows that each of the claims that come together gets the answer that
// it would get by itself.
func company(f *fixture) {
	hostile := []string{"a.b", "x[0]", "#x", ":x", `q"u'o?te`}
	var claims []*driver.Claim
	want := map[*driver.Claim]driver.Verdict{}
	add := func(c *driver.Claim, v driver.Verdict) {
		f.advance(time.Millisecond)
		c.Token, c.Now, c.Stamp, c.Until = c.Token+"'", f.now, f.now, f.now.Add(lease)
		claims, want[c] = append(claims, c), v
	}
	for i := range 5 {
		held := f.named(fmt.Sprint("held", i))
		f.mustAcquire(held)
		other := *held
		add(&other, driver.Held)

		for kind, event := range map[string]string{"completed": fmt.Sprint("event:", i), "hostile": hostile[i]} {
			c := f.named(kind + event)
			c.Event = event
			f.mustRelease(c, completing(f.mustAcquire(c), event, f.now.Add(24*time.Hour)))
			again := *c
			add(&again, driver.Completed)
		}
		stale := f.named(fmt.Sprint("stale", i))
		stale.Order = "2"
		f.mustAcquire(stale)
		f.mustRelease(stale, &driver.Memory{HighestOrder: "2"})
		overtaken := *stale
		overtaken.Order = "1"
		add(&overtaken, driver.Stale)

		add(f.named(fmt.Sprint("new", i)), driver.Granted)
	}
	rows, granted := f.claimTogether(claims)
	for i, c := range claims {
		if granted[i] != (want[c] == driver.Granted) {
			f.Errorf("claim of %s, event %q: granted %v by %+v", c.Name, c.Event, granted[i], rows[i])
		}
		if !granted[i] && !f.NoDetail && rows[i].Judge(c) != want[c] {
			f.Errorf("claim of %s, event %q: refused by %+v, which is verdict %d, want %d", c.Name, c.Event, rows[i], rows[i].Judge(c), want[c])
		}
	}
}

// companyContends shows that of the claims of a name at most one is granted,
// however they travel, and that all owners release together.
func companyContends(f *fixture) {
	if f.Majority {
		f.Skip("the store decides by a majority of rows, and sends nothing together")
	}
	const names, claimants = 60, 8
	claims := make([]*driver.Claim, names*claimants)
	for i := range claims {
		claims[i] = f.named(fmt.Sprint(i % names))
	}
	owners := map[string]*driver.Claim{}
	_, granted := f.claimTogether(claims)
	for i, c := range claims {
		if !granted[i] {
			continue
		}
		if owners[c.Name] != nil {
			f.Errorf("%s has two owners", c.Name)
		}
		owners[c.Name] = c
	}
	if len(owners) != names {
		f.Errorf("%d of %d names have an owner", len(owners), names)
	}
	var released atomic.Int64
	f.together(len(claims), func(ctx context.Context, i int) {
		_, ok, err := f.store.Settle(ctx, &driver.Settlement{Name: claims[i].Name, Token: claims[i].Token, DeleteAfter: claims[i].DeleteAfter})
		if err != nil || ok != (owners[claims[i].Name] == claims[i]) {
			f.Errorf("release of %s: %v, %v", claims[i].Name, ok, err)
		}
		if ok {
			released.Add(1)
		}
	})
	if released.Load() != int64(len(owners)) {
		f.Errorf("%d names were released, want %d", released.Load(), len(owners))
	}
}

// companyLeaves shows that a claim whose context has ended is not applied, and
// does not harm those that came with it.
func companyLeaves(f *fixture) {
	claims := []*driver.Claim{f.named("a"), f.named("b"), f.named("c")}
	f.together(len(claims), func(ctx context.Context, i int) {
		if i == 0 {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			ctx = ended
		}
		if _, ok, err := f.store.Acquire(ctx, claims[i]); ok != (i > 0) || (err == nil) != (i > 0) {
			f.Errorf("claim of %s: %v, %v", claims[i].Name, ok, err)
		}
	})
	other := f.named("a")
	f.mustAcquire(other)
}

// companyAfterAbandon shows that the first owner of a name whose row was made
// by an abandoned claim is told the fence that the row has.
func companyAfterAbandon(f *fixture) {
	if f.NoFence {
		f.Skip("the store has no fence")
	}
	claims := []*driver.Claim{f.named("a"), f.named("b")}
	f.together(len(claims), func(ctx context.Context, i int) {
		c := claims[i]
		if _, _, err := f.store.Settle(ctx, &driver.Settlement{Name: c.Name, Token: c.Token, Abandon: true, Stamp: c.Stamp, DeleteAfter: c.DeleteAfter}); err != nil {
			f.Errorf("abandon: %v", err)
		}
	})
	for range 2 {
		f.advance(time.Second)
		for i, c := range claims {
			claims[i] = f.claim("holder")
			claims[i].Name = c.Name
		}
		rows, granted := f.claimTogether(claims)
		for i, c := range claims {
			if !granted[i] {
				f.Fatalf("claim of %s was refused by %+v", c.Name, rows[i])
			}
			row, ok := f.renew(c, c.Until)
			same := row.Fence == rows[i].Fence || f.Majority && row.Fence > rows[i].Fence
			if !ok || !same || row.Fence <= 0 {
				f.Errorf("the owner was told the fence %d, and the row has %+v", rows[i].Fence, row)
			}
			f.mustRelease(c, nil)
		}
	}
}
