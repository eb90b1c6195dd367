package simulation

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestChecksCanFail shows that every check notices the stores that break its
// promise.
func TestChecksCanFail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bug  faultyStore
		want string // part of the violation
	}{
		"lets another owner's lock go":     {faultyStore{release: func(s *driver.Settlement, row driver.Row) { s.Token = row.Token }}, "overlap"},
		"grants what is held":              {faultyStore{acquire: func(c *driver.Claim, _ driver.Row) { c.Now = c.Now.Add(time.Minute) }}, "overlap"},
		"repeats a fence":                  {faultyStore{answer: func(row *driver.Row) { row.Fence -= row.Fence % 4 }}, "fence"},
		"forgets completed events":         {faultyStore{release: func(s *driver.Settlement, _ driver.Row) { s.Memory = nil }}, "in the end"},
		"does not let go":                  {faultyStore{release: func(s *driver.Settlement, _ driver.Row) { s.Token = "nobody" }}, "nobody holds it"},
		"takes late copies":                {faultyStore{acquire: func(c *driver.Claim, _ driver.Row) { c.Stamp = c.Stamp.Add(time.Hour) }}, "nobody holds it"},
		"knows events that never happened": {faultyStore{refusal: func(row *driver.Row) { row.Memory.Completed = invented("e0", "e1", "e2", "e3") }}, "no handler of it has succeeded"},
		"refuses the owner's renewals":     {faultyStore{renew: func(r *driver.Renewal) { r.Token = "nobody" }}, "without a reason"},
		"refuses the owner's settlements":  {faultyStore{release: func(s *driver.Settlement, _ driver.Row) { s.Token = "nobody" }}, "without a reason"},
		"panics":                           {faultyStore{panics: true}, "nobody planned"},
		"has no cooldowns":                 {faultyStore{release: func(s *driver.Settlement, _ driver.Row) { s.Until = time.Time{} }}, "before the cooldown"},
		"grants more than the limit":       {faultyStore{acquire: func(c *driver.Claim, _ driver.Row) { c.Now = c.Now.Add(time.Minute) }}, "holders of the limited name"},
		"grants what its holder asks for":  {faultyStore{acquire: func(c *driver.Claim, _ driver.Row) { c.Now = c.Now.Add(time.Minute) }}, "locked under itself"},
		"runs completed events":            {faultyStore{release: func(s *driver.Settlement, _ driver.Row) { s.Memory = nil }}, "runs, although"},
		"completes completed events":       {faultyStore{release: func(s *driver.Settlement, _ driver.Row) { s.Memory = nil }}, "was completed by"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			found := 0
			for seed := uint64(0); seed < 20 && found == 0; seed++ {
				synctest.Test(t, func(t *testing.T) {
					play(t, c.bug.open, Config{}.withDefaults(), seed, nil, func(what string) {
						mu.Lock()
						defer mu.Unlock()
						if strings.Contains(what, c.want) {
							found++
						}
					})
				})
			}
			if found == 0 {
				t.Errorf("no violation says %q", c.want)
			}
		})
	}
}

// TestContentionCanFail shows that contention notices the stores that break its
// promises.
func TestContentionCanFail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bug  faultyStore
		want string
	}{
		"grants what is held":         {faultyStore{acquire: func(c *driver.Claim, _ driver.Row) { c.Now = c.Now.Add(time.Minute) }}, "two own"},
		"forgets completed events":    {faultyStore{release: func(s *driver.Settlement, _ driver.Row) { s.Memory = nil }}, "times, want 1"},
		"lets no owner let go":        {faultyStore{release: func(s *driver.Settlement, _ driver.Row) { s.Token = "nobody" }}, "lost"},
		"knows events that never ran": {faultyStore{refusal: func(row *driver.Row) { row.Memory.Completed = invented("event 1", "event 2") }}, "ran 0 times"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				found := false
				var mu sync.Mutex
				contend(t, c.bug.open, 0, func(what string) {
					mu.Lock()
					defer mu.Unlock()
					found = found || strings.Contains(what, c.want)
				})
				if !found {
					t.Errorf("nothing says %q", c.want)
				}
			})
		})
	}
}

func invented(events ...string) (all []driver.CompletedEvent) {
	for _, e := range events {
		all = append(all, driver.CompletedEvent{Event: e, Until: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)})
	}
	return all
}

// faultyStore is a store with a bug.
type faultyStore struct {
	*memstore.Store
	acquire func(*driver.Claim, driver.Row)
	renew   func(*driver.Renewal)
	release func(*driver.Settlement, driver.Row)
	answer  func(*driver.Row)
	refusal func(*driver.Row)
	panics  bool // instead of completing an event
}

// open implements [Opener].
func (l faultyStore) open(_ *testing.T, h *History) func(uint64) driver.Store {
	l.Store = memstore.New()
	return func(client uint64) driver.Store {
		if client == Watcher {
			return l.Store
		}
		return &panicking{fault.NewStore(&l, h.Plan(client), h.Late), l.panics}
	}
}

// panicking is a store that may panic before its requests meet faults.
type panicking struct {
	*fault.Store
	panics bool
}

func (h *panicking) Settle(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	if h.panics && s.Memory != nil {
		panic("completes nothing")
	}
	return h.Store.Settle(ctx, s)
}

func (l *faultyStore) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	claim := *c
	if l.acquire != nil {
		row, _ := l.Read(ctx, c.Name)
		l.acquire(&claim, row)
	}
	row, ok, err := l.Store.Acquire(ctx, &claim)
	if ok && l.answer != nil {
		l.answer(&row)
	}
	if err == nil && !ok && l.refusal != nil {
		l.refusal(&row)
	}
	return row, ok, err
}

func (l *faultyStore) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	renewal := *r
	if l.renew != nil {
		l.renew(&renewal)
	}
	return l.Store.Renew(ctx, &renewal)
}

func (l *faultyStore) Settle(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	settlement := *s
	if l.release != nil {
		row, _ := l.Read(ctx, s.Name)
		l.release(&settlement, row)
	}
	return l.Store.Settle(ctx, &settlement)
}

// TestInterruptedCanFail shows that the checks of interrupted events notice the
// stores that break their promises.
func TestInterruptedCanFail(t *testing.T) {
	t.Parallel()
	invent := func(row *driver.Row) {
		row.Memory.Interrupted = append(row.Memory.Interrupted, driver.InterruptedEvent{Event: row.Event, Holder: "nobody", Until: row.Until.Add(time.Hour)})
	}
	for name, c := range map[string]struct {
		bug  faultyStore
		want string
	}{
		"keeps no events of dead owners":  {faultyStore{acquire: func(c *driver.Claim, _ driver.Row) { c.InterruptedFor = 0 }}, "of which nobody knows the end"},
		"drops them when one completes":   {faultyStore{release: func(s *driver.Settlement, _ driver.Row) { s.Memory = without(s.Memory) }}, "of which nobody knows the end"},
		"keeps those that were asked for": {faultyStore{release: func(s *driver.Settlement, row driver.Row) { s.Memory = with(s.Memory, row.Memory.Interrupted) }}, "although an answer was used"},
		"invents one":                     {faultyStore{answer: invent}, "which nobody was"},
		"lets nobody go":                  {faultyStore{release: func(s *driver.Settlement, _ driver.Row) { s.Token = "nobody" }}, "in the end"},
		"forgets completed events":        {faultyStore{release: func(s *driver.Settlement, _ driver.Row) { s.Memory = nil }}, "in the end"},
		"does not free the name":          {faultyStore{acquire: func(c *driver.Claim, _ driver.Row) { c.Until = c.Until.Add(time.Hour) }}, "in the end"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said []string
			for seed := uint64(0); seed < 50 && !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, c.want) }); seed++ {
				synctest.Test(t, func(t *testing.T) {
					i := &interruptions{c: Config{}.withDefaults(), seed: seed, happened: map[string]int{}, violation: func(what string) { said = append(said, what) }}
					i.play(t, c.bug.open)
				})
			}
			if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, c.want) }) {
				t.Errorf("none of %d violations says %q", len(said), c.want)
			}
		})
	}
}

// without returns the memory without its interrupted events.
func without(m *driver.Memory) *driver.Memory { return with(m, nil) }

// with returns the memory with other interrupted events.
func with(m *driver.Memory, interrupted []driver.InterruptedEvent) *driver.Memory {
	if m == nil {
		return nil
	}
	next := *m
	next.Interrupted = interrupted
	return &next
}
