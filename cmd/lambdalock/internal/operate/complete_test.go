package operate

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/internal/event/stored"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// interrupt lets runs of orders/a die: of e0, and of event, which took the name
// over an hour ago.
func interrupt(t *testing.T, store *memstore.Store, event string) {
	t.Helper()
	die(t, store, "e0", "f request 0", 2*time.Hour)
	die(t, store, event, "f request 1", time.Hour)
}

// die lets a run of orders/a die that began so long ago.
func die(t *testing.T, store *memstore.Store, event, holder string, ago time.Duration) {
	t.Helper()
	now := time.Now().Add(-ago).Truncate(time.Microsecond)
	claim := &driver.Claim{
		Name: stored.Name(stored.Prefix("orders"), "a"), Event: stored.Event(event), Payload: "p", Token: holder, Holder: holder, Now: now, Stamp: now,
		Until: now.Add(time.Minute), DeleteAfter: now.Add(48 * time.Hour), InterruptedFor: 24 * time.Hour,
	}
	if row, ok, err := store.Acquire(t.Context(), claim); !ok || err != nil {
		t.Fatalf("refused by %+v, %v", row, err)
	}
}

// TestInterruptedRows: list and show tell of interrupted events; complete and
// forget decide about one of them, release about none, and all keep what else
// the row remembers, for as long as it does.
func TestInterruptedRows(t *testing.T) { // F19
	t.Parallel()
	long := strings.Repeat("e", 200) // stored as a hash
	flags := console.StoreFlags{Namespace: "orders"}
	complete := func(event string) func(*testing.T, *memstore.Store, *strings.Builder, asker) error {
		return func(t *testing.T, s *memstore.Store, out *strings.Builder, ask asker) error {
			return (&Complete{StoreFlags: flags, Key: "a", Event: event, Remember: 72 * time.Hour}).complete(t.Context(), s, out, ask)
		}
	}
	forget := func(event string) func(*testing.T, *memstore.Store, *strings.Builder, asker) error {
		return func(t *testing.T, s *memstore.Store, out *strings.Builder, ask asker) error {
			return (&Forget{StoreFlags: flags, Key: "a", Event: event}).forget(t.Context(), s, out, ask)
		}
	}
	takeFrom := func(t *testing.T, s *memstore.Store, out *strings.Builder, ask asker) error {
		return release(t.Context(), s, "orders", "a", out, ask)
	}
	// e1 was completed, is forgotten, came again and died; e7 is remembered.
	twice := func(t *testing.T, store *memstore.Store) {
		ended := time.Now().Add(-45 * time.Minute).Truncate(time.Millisecond)
		_, ok, err := store.Settle(t.Context(), &driver.Settlement{Name: "orders/a", Token: "f request 1", Memory: &driver.Memory{
			Completed: []driver.CompletedEvent{{Event: "e1", Payload: "q", Until: ended}, {Event: "e7", Payload: "p", Until: ended.Add(48 * time.Hour)}}, Result: driver.Result{Event: "e1", Body: []byte("of the first run")},
		}})
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		die(t, store, "e1", "f request 2", 30*time.Minute)
	}
	for name, c := range map[string]struct {
		decide      func(*testing.T, *memstore.Store, *strings.Builder, asker) error
		event       string // of the last owner
		before      func(t *testing.T, store *memstore.Store)
		meanwhile   func(t *testing.T, store *memstore.Store)
		answer      error
		status      int
		says        string
		completed   string // afterwards
		kept        string // completed before, and afterwards
		interrupted int    // how many, afterwards
	}{
		"it was done":         {decide: complete("e1"), event: "e1", says: "by f request 1", completed: "e1", interrupted: 1},
		"the older one was":   {decide: complete("e0"), event: "e1", says: "Deliveries of e0 are skipped until ", completed: "e0", interrupted: 1},
		"a long one was":      {decide: complete(long), event: long, says: "Completed", completed: stored.Event(long), interrupted: 1},
		"nobody knows":        {decide: complete("e1"), event: "e1", answer: yes("n"), status: 1, says: "nothing was changed", interrupted: 2},
		"another one":         {decide: complete("e7"), event: "e1", status: 1, says: "knows of no interrupted run of e7", interrupted: 2},
		"run it again":        {decide: forget("e1"), event: "e1", says: "e1 runs at its next delivery", interrupted: 1},
		"run the older again": {decide: forget("e0"), event: "e1", says: "by f request 0", interrupted: 1},
		"forget another one":  {decide: forget("e7"), event: "e1", status: 1, says: "does not remember e7", interrupted: 2},
		"it runs now": {decide: complete("e1"), event: "e1", status: 1, says: "orders/a is held by f request 9", interrupted: 2, meanwhile: func(t *testing.T, store *memstore.Store) {
			rowtest.Acquire(t, store, "f request 9", time.Hour, lock.Key{Name: "a", Event: "e9"})
		}},
		"it is held": {decide: complete("e1"), event: "e1", status: 1, says: "orders/a is held by f request 9", interrupted: 2, before: func(t *testing.T, store *memstore.Store) {
			rowtest.Acquire(t, store, "f request 9", time.Hour, lock.Key{Name: "a", Event: "e9"})
		}, meanwhile: func(t *testing.T, _ *memstore.Store) {
			t.Error("it asks although it refuses")
		}},
		"the name cools": {decide: complete("e1"), event: "e1", status: 1, says: "orders/a is held by nobody: its last holder's HoldAtLeast until", interrupted: 2, before: func(t *testing.T, store *memstore.Store) {
			cools := rowtest.Acquire(t, store, "f request 9", time.Hour, lock.Key{Name: "a", Event: "e9"}, func(o *lock.Options) { o.HoldAtLeast = time.Hour })
			expect.OK(t, cools.Release())
		}},
		"it was decided meanwhile": {decide: complete("e1"), event: "e1", status: 1, says: "nothing was changed: somebody has decided about e1", interrupted: 1, meanwhile: func(t *testing.T, store *memstore.Store) {
			var out strings.Builder
			expect.OK(t, forget("e1")(t, store, &out, answering(func() {}, nil)))
		}},
		"released": {decide: takeFrom, event: "e1", says: "interrupted", interrupted: 2},
		"released alive": {decide: takeFrom, event: "e1", says: "nothing is known of its end", interrupted: 3, before: func(t *testing.T, store *memstore.Store) {
			die(t, store, "e5", "f request 2", 0)
		}},
		"it ran again meanwhile": {decide: forget("e1"), event: "e1", status: 1, says: "another run of e1 was interrupted meanwhile", interrupted: 2, meanwhile: func(t *testing.T, store *memstore.Store) {
			die(t, store, "e1", "f request 2", 30*time.Minute)
		}},
		"it was done meanwhile": {decide: forget("e1"), event: "e1", status: 1, says: "nothing was changed: e1 was completed meanwhile", completed: "e1", interrupted: 1, meanwhile: func(t *testing.T, store *memstore.Store) {
			var out strings.Builder
			expect.OK(t, complete("e1")(t, store, &out, answering(func() {}, nil)))
		}},
		"completed already": {decide: complete("e1"), event: "e1", status: 1, says: "was completed", completed: "e1", interrupted: 1, before: func(t *testing.T, store *memstore.Store) {
			var out strings.Builder
			expect.OK(t, complete("e1")(t, store, &out, answering(func() {}, nil)))
		}},
		"it was done twice":  {decide: complete("e1"), event: "e1", says: "Completed", completed: "e1", kept: "e7", before: twice},
		"the second was not": {decide: forget("e1"), event: "e1", says: "e1 runs at its next delivery", kept: "e7", before: twice},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memstore.New()
			interrupt(t, store, c.event)
			if c.before != nil {
				c.before(t, store)
			}
			var out strings.Builder
			err := c.decide(t, store, &out, answering(func() {
				if c.meanwhile != nil {
					c.meanwhile(t, store)
				}
			}, c.answer))
			if got := status(err); got != c.status || !strings.Contains(out.String()+fmt.Sprint(err), c.says) {
				t.Errorf("status %d, want %d with %q\n%s%v", got, c.status, c.says, out.String(), err)
			}
			if err != nil && strings.Contains(err.Error(), " is held by ") && !strings.Contains(err.Error(), " (in ") {
				t.Errorf("held until when: %v", err)
			}
			var shown strings.Builder
			row := rowtest.Read(t, store, "orders/a")
			expect.Must(t, (&Show{}).print(t.Context(), &shown, store, &driver.NamedRow{Name: "orders/a", Row: row}))
			if n := strings.Count(shown.String(), "\n  interrupted "); n != c.interrupted {
				t.Errorf("%d interrupted events, want %d:\n%s", n, c.interrupted, shown.String())
			}
			if c.completed != "" && (!row.Memory.Has(c.completed, time.Now()) || row.Memory.Completed[0].Payload != "p" || row.Memory.Result.Event == c.completed) {
				t.Errorf("the row remembers %+v", row.Memory)
			}
			if i := findCompleted(&row.Memory, c.completed); i >= 0 && time.Since(row.Memory.Completed[i].At) > time.Hour {
				t.Errorf("%s was completed at %v", c.completed, row.Memory.Completed[i].At)
			}
			if c.kept != "" && !row.Memory.Has(c.kept, time.Now()) {
				t.Errorf("the row has forgotten %s: %+v", c.kept, row.Memory)
			}
			if i := findCompleted(&row.Memory, c.completed); i >= 0 && time.Until(row.Memory.Completed[i].Until) < 72*time.Hour-10*time.Minute {
				t.Errorf("%s is remembered until %v", c.completed, row.Memory.Completed[i].Until)
			}
			for _, e := range row.Memory.Completed {
				if row.DeleteAfter.Before(e.Until) {
					t.Errorf("the row is deleted from %v on, and has to remember %s until %v", row.DeleteAfter, e.Event, e.Until)
				}
			}
			for _, e := range row.Memory.Interrupted {
				if row.DeleteAfter.Before(e.Until) {
					t.Errorf("the row is deleted from %v on, and has to remember the interrupted %s until %v", row.DeleteAfter, e.Event, e.Until)
				}
			}
			var list, summary strings.Builder
			if err := (&List{Interrupted: true}).print(t.Context(), store, &list, &summary); err != nil || strings.Contains(list.String(), "orders/a") != (c.interrupted > 0) {
				t.Errorf("list --interrupted: %v\n%s", err, list.String())
			}
		})
	}
}

func TestCompleteRefusesTimes(t *testing.T) {
	t.Parallel()
	const year = 366 * 24 * time.Hour
	for remember, want := range map[time.Duration]int{
		0: console.StatusUsage, time.Second - 1: console.StatusUsage, year + 1: console.StatusUsage,
		time.Second: 1, year: 1, // there is no such row
	} {
		err := (&Complete{Remember: remember}).complete(t.Context(), memstore.New(), nil, nil)
		if got := status(err); got != want {
			t.Errorf("--remember %v: %v", remember, err)
		}
	}
}

// TestCompleteOutlastsTheInterruption: a source that may deliver the event for
// as long as it was to be kept as interrupted finds it completed for so long,
// whatever the operator says.
func TestCompleteOutlastsTheInterruption(t *testing.T) { // F19
	t.Parallel()
	const kept = time.Minute + 24*time.Hour // from the beginning of the run that died
	for remember, want := range map[time.Duration]time.Duration{
		time.Hour:      kept - time.Hour,
		96 * time.Hour: 96 * time.Hour,
	} {
		synctest.Test(t, func(t *testing.T) {
			store := memstore.New()
			die(t, store, "e1", "f request 1", time.Hour)
			before := time.Now()
			var out strings.Builder
			command := &Complete{StoreFlags: console.StoreFlags{Namespace: "orders"}, Key: "a", Event: "e1", Remember: remember}
			expect.Must(t, command.complete(t.Context(), store, &out, answering(nil, nil)))
			until := rowtest.Read(t, store, "orders/a").Memory.Completed[0].Until
			if !until.Equal(before.Add(want)) || !strings.Contains(out.String(), "skipped until "+until.UTC().Format(time.RFC3339)) {
				t.Errorf("--remember %v: remembered for %v, want %v\n%s", remember, until.Sub(before), want, out.String())
			}
		})
	}
}
