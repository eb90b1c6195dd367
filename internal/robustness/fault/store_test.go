package fault_test

import (
	"context"
	"errors"
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

const (
	patience = time.Minute     // of a sender
	delay    = 3 * time.Second // of a request or its answer
	lateness = 2 * patience    // of a copy
)

// meaning is what a fault means for the sender of a request, and for the row.
type meaning struct {
	fault    fault.Fault
	applied  int           // how often, when the sender has its answer
	late     int           // how often more, later
	answered time.Duration // after which the sender has its answer; zero: immediately
	refused  *driver.Error // what the sender gets; nil: the answer
	hangs    bool          // it gets none
}

var (
	unknown  = &driver.Error{}
	meanings = map[string]meaning{
		"none":            {fault: fault.None, applied: 1},
		"drop before":     {fault: fault.DropBefore, refused: unknown},
		"apply then drop": {fault: fault.ApplyThenDrop, applied: 1, refused: unknown},
		"apply then fail": {fault: fault.ApplyThenFail, applied: 1, refused: unknown},
		"truncate":        {fault: fault.Truncate, applied: 1, refused: unknown},
		"delay before":    {fault: fault.DelayBefore, applied: 1, answered: delay},
		"delay after":     {fault: fault.DelayAfter, applied: 1, answered: delay},
		"duplicate":       {fault: fault.Duplicate, applied: 1, late: 1},
		"throttle":        {fault: fault.Throttle, refused: &driver.Error{Answered: true, Unapplied: true}},
		"conflict":        {fault: fault.Conflict, refused: &driver.Error{Answered: true, Unapplied: true, Conflict: true}},
		"deny":            {fault: fault.Deny, refused: &driver.Error{Lasting: true, Answered: true, Unapplied: true}},
		"fail":            {fault: fault.Fail, refused: unknown},
		"hang":            {fault: fault.Hang, answered: patience, hangs: true},
		"apply then hang": {fault: fault.ApplyThenHang, applied: 1, answered: patience, hangs: true},
		"hang then apply": {fault: fault.HangThenApply, late: 1, answered: patience, hangs: true},
		"drop then apply": {fault: fault.DropThenApply, late: 1, refused: unknown},
	}
)

func TestEveryFaultHasAMeaning(t *testing.T) {
	for f := fault.None; !strings.HasPrefix(f.String(), "Fault("); f++ {
		m, ok := meanings[f.String()]
		if !ok || m.fault != f {
			t.Errorf("no test shows what %q means", f)
		}
		if f.Applied() != (m.applied > 0) {
			t.Errorf("%q says applied %v", f, f.Applied())
		}
	}
}

// timed is a plan of one fault with its delay.
type timed fault.Decision

func (d timed) Next(string) fault.Decision { return fault.Decision(d) }

// inEachMeaning runs test in fake time for each fault.
func inEachMeaning(t *testing.T, test func(*testing.T, meaning, fault.Plan)) {
	for name, m := range meanings {
		t.Run(name, func(t *testing.T) {
			plan := timed{Fault: m.fault, Delay: delay}
			if m.late > 0 {
				plan.Delay = lateness
			}
			synctest.Test(t, func(t *testing.T) { test(t, m, plan) })
		})
	}
}

// check compares the meaning with what a sender got after so much time.
func (m meaning) check(t *testing.T, answered time.Duration, err error) {
	t.Helper()
	if answered != m.answered {
		t.Errorf("answered after %v, want %v", answered, m.answered)
	}
	if m.hangs != errors.Is(err, context.DeadlineExceeded) || (m.hangs || m.refused != nil) != (err != nil) {
		t.Fatalf("error %v", err)
	}
	if m.hangs || err == nil {
		return
	}
	var e *driver.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *driver.Error", err)
	}
	if got := (driver.Error{Lasting: e.Lasting, Answered: e.Answered, Unapplied: e.Unapplied, Conflict: e.Conflict}); got != *m.refused || (e.Action != "") != (m.fault == fault.Deny) {
		t.Errorf("got %+v, want %+v", e, m.refused)
	}
}

// counted counts the claims that reach a store.
type counted struct {
	driver.Store
	mu     sync.Mutex
	claims []driver.Claim
}

func (c *counted) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.claims)
}

func (c *counted) Acquire(ctx context.Context, claim *driver.Claim) (driver.Row, bool, error) {
	if err := ctx.Err(); err != nil {
		return driver.Row{}, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.claims = append(c.claims, *claim)
	return c.Store.Acquire(ctx, claim)
}

func claim() *driver.Claim {
	now := time.Now()
	return &driver.Claim{Name: "n", Token: "t", Holder: "h", Now: now, Stamp: now, Until: now.Add(time.Hour), DeleteAfter: now.Add(24 * time.Hour)}
}

// TestStore shows what each fault means for the sender of a request and for
// its row.
func TestStore(t *testing.T) {
	inEachMeaning(t, func(t *testing.T, m meaning, plan fault.Plan) {
		below, late := &counted{Store: memstore.New()}, &fault.Copies{}
		store := fault.NewStore(below, plan, late)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		sent, start := claim(), time.Now()
		_, ok, err := store.Acquire(ctx, sent)
		m.check(t, time.Since(start), err)
		if ok != (err == nil) {
			t.Errorf("granted %v with error %v", ok, err)
		}
		if n := below.count(); n != m.applied {
			t.Errorf("applied %d times, want %d", n, m.applied)
		}
		sent.Token = "another" // what is late stays as it was sent
		late.Wait()
		if n := below.count(); n != m.applied+m.late {
			t.Errorf("applied %d times in the end, want %d", n, m.applied+m.late)
		}
		if since := time.Since(start); m.late > 0 && since != lateness {
			t.Errorf("the copy was applied after %v, want %v", since, lateness)
		}
		for _, c := range below.claims {
			if c.Token != "t" {
				t.Errorf("a copy has the token %q", c.Token)
			}
		}
	})
}

// TestScripted shows that planned faults come first, then the one that always
// happens, and that late copies are applied each time they are asked for.
func TestScripted(t *testing.T) {
	below := &counted{Store: memstore.New()}
	store := fault.NewScripted(below)
	store.Plan(fault.Acquire, fault.DropThenApply, fault.None)
	store.Always(fault.Acquire, fault.Deny)
	var failed []bool
	for range 4 {
		_, _, err := store.Acquire(t.Context(), claim())
		failed = append(failed, err != nil)
	}
	if want := []bool{true, false, true, true}; !slices.Equal(failed, want) || store.Requests(fault.Acquire) != 4 || store.Requests(fault.Renew) != 0 {
		t.Errorf("failed %v, want %v; %d requests", failed, want, store.Requests(fault.Acquire))
	}
	for range 2 {
		store.Apply()
	}
	if n := below.count(); n != 3 {
		t.Errorf("applied %d times, want once and twice late", n)
	}
	store.Store = &counted{Store: memstore.New()}
	store.Always(fault.Acquire, fault.None)
	if _, ok, err := store.Acquire(t.Context(), claim()); !ok || err != nil || below.count() != 3 {
		t.Errorf("the store below was not replaced: granted %v, error %v", ok, err)
	}
}

// TestMix shows that a mix is the same each time for a seed and a client, that
// it has about as many faults as it was told, and that they end.
func TestMix(t *testing.T) {
	const requests = 10_000
	plans := []*fault.Stream{fault.Usual(7, 200).Client(1), fault.Usual(7, 200).Client(1), fault.Usual(7, 200).Client(2), fault.Usual(8, 200).Client(1)}
	same := make([]int, len(plans))
	for range requests {
		first := plans[0].Next(fault.Acquire)
		for i, p := range plans[1:] {
			if p.Next(fault.Acquire) == first {
				same[i+1]++
			}
		}
		if first.Delay < 0 || first.Delay > 30*time.Second {
			t.Fatalf("a delay of %v", first.Delay)
		}
	}
	if same[1] != requests || same[2] > requests*3/4 || same[3] > requests*3/4 {
		t.Errorf("of %d decisions are the same: %d of the same client, %d of another, %d of another seed", requests, same[1], same[2], same[3])
	}
	met := plans[0].Met()
	if n := requests - met[fault.None]; n < requests*17/100 || n > requests*23/100 || met[fault.Deny] != 0 || len(met) != len(meanings)-1 {
		t.Errorf("met %v", met)
	}
	plans[0].Heal()
	for range 1000 {
		if d := plans[0].Next(fault.Acquire); d != (fault.Decision{}) {
			t.Fatalf("after the faults have ended: %+v", d)
		}
	}
}

// TestSenderGivesUp shows what becomes of a request whose sender has less
// patience than the fault's delay.
func TestSenderGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		fault         fault.Fault
		applied, late int
	}{
		"delay before": {fault.DelayBefore, 0, 1}, // it is on its way
		"delay after":  {fault.DelayAfter, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				below, late := &counted{Store: memstore.New()}, &fault.Copies{}
				store := fault.NewStore(below, timed{Fault: c.fault, Delay: delay}, late)
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), delay/3)
				defer cancel()
				if _, _, err := store.Acquire(ctx, claim()); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != delay/3 {
					t.Errorf("error %v after %v", err, time.Since(start))
				}
				if n := below.count(); n != c.applied {
					t.Errorf("applied %d times, want %d", n, c.applied)
				}
				late.Wait()
				if n := below.count(); n != c.applied+c.late {
					t.Errorf("applied %d times in the end, want %d", n, c.applied+c.late)
				}
				if since := time.Since(start); c.late > 0 && since != delay {
					t.Errorf("applied after %v, want %v", since, delay)
				}
				_, _, err := store.Acquire(ctx, claim())
				late.Wait()
				if n := below.count(); err == nil || n != c.applied+c.late {
					t.Errorf("a request whose sender had given up was sent: error %v, %d claims", err, n)
				}
			})
		})
	}
}
