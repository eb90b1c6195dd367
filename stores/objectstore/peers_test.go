package objectstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

// TestOrphanChangedMeanwhile: a caller read a record, took it for one whose
// owner had died, and replaced it without a condition, although its owner had
// completed it meanwhile, or a third caller had taken it over
// (powertools-lambda-typescript#5714). Here the write is conditional on what
// was read, and a refused one reads again.
func TestOrphanChangedMeanwhile(t *testing.T) { // F6, F21
	t.Parallel()
	start := time.Now()
	later := start.Add(lease + 3*time.Second)
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, owners, others driver.Store, dead *driver.Claim)
		want      driver.Verdict
	}{
		"completed by its owner": {func(t *testing.T, _, others driver.Store, dead *driver.Claim) {
			done := &driver.Memory{Completed: []driver.CompletedEvent{{Event: dead.Event, Until: start.Add(time.Hour)}}}
			answer(t)(others.Settle(t.Context(), &driver.Settlement{Name: dead.Name, Token: dead.Token, DeleteAfter: dead.DeleteAfter, Memory: done}))
		}, driver.Completed},
		"taken over by a third": {func(t *testing.T, _, others driver.Store, dead *driver.Claim) {
			third := claimAt(later, dead.Name, "third")
			third.Event = dead.Event
			mustAcquire(t, others, third)
		}, driver.Held},
		"renewed by its owner": {func(t *testing.T, owners, _ driver.Store, dead *driver.Claim) {
			renew(t, owners, dead, start.Add(time.Second)) // it was under way for long
		}, driver.Held},
	} {
		for at := 1; at <= 3; at++ { // of the caller's requests: a write that guesses, a read, a write
			t.Run(fmt.Sprintf("%s before request %d", name, at), func(t *testing.T) {
				t.Parallel()
				f := newFake()
				now := start
				f.clock = func() time.Time { return now }
				owner, others := objectstore.New(f), objectstore.New(f)
				dead := claimAt(start, "n", "dead")
				dead.Event = "e1"
				mustAcquire(t, owner, dead)
				now = later
				requests := 0
				f.before = func(string) {
					if requests++; requests == at {
						f.before = nil
						c.meanwhile(t, owner, others, dead)
					}
				}
				caller := claimAt(later.Add(time.Millisecond), "n", "caller")
				caller.Event = "e1"
				row := mustRefuse(t, objectstore.New(f), caller)
				if got := row.Judge(caller); got != c.want {
					t.Errorf("verdict %v on %+v, want %v", got, row, c.want)
				}
			})
		}
	}
}
