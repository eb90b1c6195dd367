package dynamostore_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// TestTrafficOfADelivery compares all that the claims of one delivery send, ten
// at a time, after each of what may come between. One request that ended
// otherwise must not let the later ones leave before they are full.
func TestTrafficOfADelivery(t *testing.T) { // F11, F39
	t.Parallel()
	const full = "BatchExecuteStatement 1×10, 1 at once"
	hidden := func(c *driver.Claim) { c.Event = strings.Repeat("é", 10) } // no PartiQL
	for name, c := range map[string]struct {
		claims int
		change func(*driver.Claim) // the first claim
		fault  fakedynamo.Fault    // of the requests with the first claim
		gives  time.Duration       // up; zero: it does not
		want   string
	}{
		"one alone":             {claims: 1, want: "UpdateItem 1×1, 1 at once"},
		"all":                   {claims: 10, want: full},
		"no PartiQL":            {claims: 10, change: hidden, want: "BatchExecuteStatement 1×9, UpdateItem 1×1, 2 at once"},
		"throttled":             {claims: 10, fault: fakedynamo.Throttle, want: full},
		"the answer is lost":    {claims: 10, fault: fakedynamo.ApplyThenDrop, want: full},
		"one gives up":          {claims: 10, gives: time.Microsecond, want: full},
		"one gives up, waiting": {claims: 9, gives: time.Microsecond, want: "BatchExecuteStatement 1×8, 1 at once"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, func(t *testing.T, f *companyFixture) {
				ctx := invocation.WithBatch(t.Context(), &invocation.Batch{Claims: 10})
				send := func(claims []*driver.Claim, gives time.Duration) string {
					var all sync.WaitGroup
					for i, claim := range claims {
						all.Go(func() {
							ctx := ctx
							if i == 0 && gives > 0 {
								var cancel func()
								ctx, cancel = context.WithTimeout(ctx, gives)
								defer cancel()
							}
							_, _, _ = f.store.Acquire(ctx, claim)
						})
					}
					all.Wait()
					return f.meter.Take()
				}
				f.meter.Take()
				claims := claimsOf("between", c.claims)
				if c.change != nil {
					c.change(claims[0])
				}
				f.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
					if len(r.Keys) > 0 {
						return c.fault
					}
					return fakedynamo.None
				})
				if got := send(claims, c.gives); got != c.want {
					t.Errorf("sent %s, want %s", got, c.want)
				}
				f.OnRequest(nil)
				for range 12 {
					began := time.Now()
					if got := send(claimsOf("later"+name, 10), 0); got != full || time.Since(began) != latency {
						t.Errorf("then %s in %v, want %s in %v", got, time.Since(began), full, latency)
					}
				}
			})
		})
	}
}
