// Package locktest checks that a [driver.Store] keeps the contract, and offers the
// tools that tests of locks need: a store that fails on purpose, and a checker
// of recorded histories.
//
// The test of a new store is a few lines:
//
//	func TestConformance(t *testing.T) {
//		locktest.Run(t, locktest.Harness{
//			Open: func(t *testing.T) driver.Store { return mystore.New(…) },
//		})
//	}
package locktest

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Harness describes the store under test. What a store cannot do is said in the
// negative, so that a new store starts with every check.
type Harness struct {
	// Open returns a store; it may be the same one each time, because every
	// test uses names of its own.
	Open func(t *testing.T) driver.Store
	// Advance moves the clock of a store that judges leases by its own. Nil: the
	// store judges by the times in the requests.
	Advance func(d time.Duration)
	// MaxLease is the longest lease the store grants. Zero: no limit.
	MaxLease time.Duration
	// NoDetail: a refused request does not tell the row that refused it.
	NoDetail bool
	// NoFence: the store has no fencing token.
	NoFence bool
	// Newer makes the row of a name look as if a later version of the library had
	// written it in another format. Nil: the store's rows have no format, which is said
	// in the output.
	Newer func(t *testing.T, s driver.Store, name string)
}

// Run runs the whole suite.
func Run(t *testing.T, h Harness) {
	for name, test := range map[string]func(*bench){
		"acquire":                 acquire,
		"held":                    held,
		"takeover":                takeover,
		"takeover not before end": takeoverNotBeforeEnd,
		"takeover forgets the dead holder's event": takeoverForgetsEvent,
		"one of many":                 oneOfMany,
		"fence rises":                 fenceRises,
		"repeated acquire":            repeatedAcquire,
		"ghost acquire":               ghostAcquire,
		"ghost acquire while held":    ghostAcquireWhileHeld,
		"ghosts of earlier rounds":    ghostsOfEarlierRounds,
		"earlier round granted late":  earlierRoundGrantedLate,
		"ghost of a takeover":         ghostOfTakeover,
		"clock behind":                clockBehind,
		"repeated release":            repeatedRelease,
		"late holder":                 lateHolder,
		"renew":                       renew,
		"renew never revives":         renewNeverRevives,
		"abandon":                     abandon,
		"abandon meets another owner": abandonMeetsOwner,
		"abandon meets a dead owner":  abandonMeetsDeadOwner,
		"completed event":             completedEvent,
		"memory is kept as given":     memoryAsGiven,
		"release keeps memory":        releaseKeepsMemory,
		"stale order":                 staleOrder,
		"order without event":         orderWithoutEvent,
		"result":                      result,
		"keep after every step":       keepAfterEveryStep,
		"newer format":                newerFormat,
		"strange names":               strangeNames,
		"strange events":              strangeEvents,
		"ended context":               endedContext,
		"check":                       check,
	} {
		t.Run(name, func(t *testing.T) {
			if h.Advance == nil {
				t.Parallel()
			}
			now := time.Now().UTC().Truncate(time.Microsecond)
			test(&bench{T: t, Harness: h, store: h.Open(t), name: "locktest/" + rand.Text(), now: now})
		})
	}
}

// bench is one test's store, name and clock.
type bench struct {
	*testing.T
	Harness
	store driver.Store
	name  string
	now   time.Time
}

// lease is what tests ask for: short enough for every store.
const lease = 15 * time.Second

func (b *bench) advance(d time.Duration) {
	b.now = b.now.Add(d)
	if b.Advance != nil {
		b.Advance(d)
	}
}

// claim is a claim of a new owner, a little later than the one before.
func (b *bench) claim(holder string) *driver.Claim {
	b.advance(time.Millisecond)
	return &driver.Claim{
		Name: b.name, Token: rand.Text(), Holder: holder,
		Now: b.now, Stamp: b.now, Until: b.now.Add(lease), DeleteAfter: b.now.Add(24 * time.Hour),
	}
}

func (b *bench) eventClaim(holder, event string) *driver.Claim {
	c := b.claim(holder)
	c.Event = event
	return c
}

func (b *bench) acquire(c *driver.Claim) (driver.Row, bool) {
	b.Helper()
	row, ok, err := b.store.Acquire(b.Context(), c)
	if err != nil {
		b.Fatalf("acquire for %s: %v", c.Holder, err)
	}
	return row, ok
}

func (b *bench) mustAcquire(c *driver.Claim) driver.Row {
	b.Helper()
	row, ok := b.acquire(c)
	if !ok {
		b.Fatalf("acquire for %s was refused by %+v", c.Holder, row)
	}
	return row
}

func (b *bench) mustRefuse(c *driver.Claim) driver.Row {
	b.Helper()
	row, ok := b.acquire(c)
	if ok {
		b.Fatalf("acquire for %s was granted: %+v", c.Holder, row)
	}
	return row
}

// release frees c's lock; memory may be nil.
func (b *bench) release(c *driver.Claim, memory *driver.Memory) (driver.Row, bool) {
	b.Helper()
	row, ok, err := b.store.Release(b.Context(), &driver.Settlement{Name: c.Name, Token: c.Token, Memory: memory, DeleteAfter: c.DeleteAfter, Stamp: c.Stamp})
	if err != nil {
		b.Fatalf("release of %s: %v", c.Holder, err)
	}
	return row, ok
}

func (b *bench) mustRelease(c *driver.Claim, memory *driver.Memory) driver.Row {
	b.Helper()
	row, ok := b.release(c, memory)
	if !ok {
		b.Fatalf("release of %s was refused by %+v", c.Holder, row)
	}
	return row
}

func (b *bench) renew(c *driver.Claim, until time.Time) (driver.Row, bool) {
	b.Helper()
	row, ok, err := b.store.Renew(b.Context(), &driver.Renewal{Name: c.Name, Token: c.Token, Until: until, DeleteAfter: c.DeleteAfter})
	if err != nil {
		b.Fatalf("renewal of %s: %v", c.Holder, err)
	}
	return row, ok
}

// completes is the memory that has event on top of row's.
func completes(row driver.Row, event string, until time.Time) *driver.Memory {
	m := row.Memory
	m.Completed = append(slices.Clone(m.Completed), driver.CompletedEvent{Event: event, Until: until.Truncate(time.Millisecond)})
	return &m
}

func check(b *bench) {
	c, ok := b.store.(driver.Checker)
	if !ok {
		return // there is nothing to open
	}
	if err := c.Check(b.Context()); err != nil {
		b.Fatalf("check of a store that works: %v", err)
	}
}

func endedContext(b *bench) {
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	if _, ok, err := b.store.Acquire(ctx, b.claim("ended")); err == nil || ok {
		b.Fatalf("acquire with an ended context: granted %v, error %v", ok, err)
	}
}
