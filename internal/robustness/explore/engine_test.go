package explore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestExploreEngine runs the engine itself under every order of few deviations.
// Without one, the invocations run one after the other, and each request is
// applied and answered. A deviation lets another invocation go first, loses or
// rejects a request, loses an answer, applies a late copy, lets time pass,
// kills an invocation, or lets its work fail. Every run begins anew with the
// deviations written down, so the code of acquisitions, retries, waits,
// renewals, settlements and claims that are given up is what is explored.
//
// LAMBDALOCK_DEPTH=long allows one deviation more. The pauses of the engine are
// random, so two runs of the same deviations may differ by milliseconds.
func TestExploreEngine(t *testing.T) { // F1 to F6, F18 to F21, F33, F34, F44
	t.Parallel()
	for _, p := range plays {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			deviations := 2
			if os.Getenv("LAMBDALOCK_DEPTH") == "long" {
				deviations++
			}
			explorePlay(t, p, deviations, func() driver.Store { return memstore.New() })
		})
	}
}

// TestExploreEngineFinds lets the store break its rules.
func TestExploreEngineFinds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		play  string
		store func() driver.Store
		want  string
	}{
		"abandon that leaves the stamp": {together, func() driver.Store { return &broken{Store: memstore.New(), keepsStamp: true} }, "P4"},
		"release of any owner":          {together, func() driver.Store { return &broken{Store: memstore.New(), releasesAny: true} }, "P2"},
		"release that forgets":          {duplicates, func() driver.Store { return &broken{Store: memstore.New(), forgets: true} }, "P5"},
		"settlement that sees no mark":  {bursts, func() driver.Store { return &broken{Store: memstore.New(), seesNoMark: true} }, "P6"},
		"takeover that keeps no event":  {once, func() driver.Store { return &broken{Store: memstore.New(), keepsNoEvent: true} }, "P8"},
		"release that is not applied":   {duplicates, func() driver.Store { return &broken{Store: memstore.New(), keeps: true} }, "P4"},
		"order that is too high":        {orders, func() driver.Store { return &broken{Store: memstore.New(), raisesOrder: true} }, "P6"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(plays, func(p play) bool { return p.name == c.play })
			e := &exploration{play: plays[i], open: c.store, deviations: 2, seen: map[uint64]bool{}}
			e.run(t)
			if !strings.HasPrefix(e.violation, c.want) {
				t.Errorf("want a violation of %s, found %q in %d runs", c.want, e.violation, e.runs)
			}
			t.Logf("found in %d runs: %s", e.runs, e.violation)
		})
	}
}

// broken is a store that breaks a rule of [driver.Store].
type broken struct {
	*memstore.Store
	keepsStamp, releasesAny, forgets, keeps, seesNoMark, keepsNoEvent, raisesOrder bool
}

func (b *broken) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	claim := *c
	if b.keepsNoEvent {
		claim.InterruptedFor = 0
	}
	return b.Store.Acquire(ctx, &claim)
}

func (b *broken) Settle(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	own := *s
	switch row, err := b.Read(ctx, s.Name); {
	case err != nil:
		return row, false, err
	case b.seesNoMark:
		own.MarksBelow = 0
	case b.keepsStamp:
		own.Abandon = false
	case b.releasesAny:
		own.Token = row.Token
	case b.forgets && s.Memory == nil:
		own.Memory = &driver.Memory{}
	case b.raisesOrder && s.Memory != nil:
		m := *s.Memory
		m.HighestOrder = "9"
		own.Memory = &m
	case b.keeps && s.Memory == nil:
		return row, true, nil
	}
	return b.Store.Settle(ctx, &own)
}

// The plays in which the bugs of stores are found.
const (
	together   = "two names together"
	duplicates = "an event and its duplicates"
	orders     = "orders"
	bursts     = "events that are coalesced"
	once       = "an event that is skipped if it was interrupted"
)

// play is what the invocations do.
type play struct {
	name    string
	options lock.Options
	scripts []func(*invocation)
}

var plays = []play{
	{duplicates, lock.Options{Lease: lock.FixedLease(4 * time.Second)}, []func(*invocation){
		locks(lock.Key{Name: "n0", Event: "e1"}), locks(lock.Key{Name: "n0", Event: "e1"}), locks(lock.Key{Name: "n0", Event: "e2"}),
	}},
	{orders, lock.Options{Lease: lock.UntilDeadline()}, []func(*invocation){
		locks(lock.Key{Name: "n0", Event: "e1", Order: "1"}), locks(lock.Key{Name: "n0", Event: "e2", Order: "2"}),
	}},
	{"waiting", lock.Options{Lease: lock.FixedLease(4 * time.Second), MaxWait: 3 * time.Second}, []func(*invocation){
		locks(lock.Key{Name: "n0"}), locks(lock.Key{Name: "n0"}),
	}},
	{"heartbeats", lock.Options{Lease: lock.Heartbeat(4 * time.Second)}, []func(*invocation){
		locks(lock.Key{Name: "n0", Event: "e1"}), locks(lock.Key{Name: "n0", Event: "e2"}),
	}},
	{together, lock.Options{Lease: lock.FixedLease(4 * time.Second)}, []func(*invocation){
		locksAll(lock.Key{Name: "n0"}, lock.Key{Name: "n1"}), locks(lock.Key{Name: "n1"}),
	}},
	{"one that comes after the lease", lock.Options{Lease: lock.FixedLease(4 * time.Second)}, []func(*invocation){
		locks(lock.Key{Name: "n0", Event: "e1"}), late(locks(lock.Key{Name: "n0", Event: "e2"})),
	}},
	{"two names nested", lock.Options{Lease: lock.FixedLease(4 * time.Second)}, []func(*invocation){
		locks(lock.Key{Name: "n0", Event: "e1"}, lock.Key{Name: "n1"}), locks(lock.Key{Name: "n1"}),
	}},
	{"a limit of two", lock.Options{Lease: lock.FixedLease(4 * time.Second)}, []func(*invocation){
		locksOneOf("n0", 2), locksOneOf("n0", 2),
	}},
	{bursts, lock.Options{Lease: lock.FixedLease(4 * time.Second)}, []func(*invocation){
		coalesces(lock.Key{Name: "n0", Event: "e1"}), coalesces(lock.Key{Name: "n0", Event: "e2"}), coalesces(lock.Key{Name: "n0", Event: "e3"}),
	}},
	{once, lock.Options{Lease: lock.FixedLease(4 * time.Second), OnInterrupted: lock.SkipInterrupted}, []func(*invocation){
		locks(lock.Key{Name: "n0", Event: "e1"}), late(locks(lock.Key{Name: "n0", Event: "e2"})), late(late(locks(lock.Key{Name: "n0", Event: "e1"}))),
	}},
}

// locks returns an invocation that holds keys, each inside the one before, and
// completes them if its work succeeds.
func locks(keys ...lock.Key) func(*invocation) {
	return func(in *invocation) { in.nest(in.ctx, keys) }
}

func (in *invocation) nest(ctx context.Context, keys []lock.Key) bool {
	if len(keys) == 0 {
		return in.work(ctx)
	}
	lk, err := in.locker.Acquire(ctx, keys[0])
	return in.under(lk, err, keys[0], func(ctx context.Context) bool { return in.nest(ctx, keys[1:]) })
}

// under works under a lock of key, and completes it if the work succeeds.
func (in *invocation) under(lk *lock.Lock, err error, key lock.Key, work func(context.Context) bool) bool {
	if err != nil {
		in.refused(key, err)
		return false
	}
	in.holds(key.Name, lk.Context())
	in.beginsOnce(key)
	succeeded := work(lk.Context())
	in.ends(key.Name)
	in.endsOnce(key, succeeded)
	if !succeeded {
		_ = lk.Release()
		return false
	}
	in.completed(key, lk.Complete())
	return true
}

// locksOneOf returns an invocation that holds a name as one of n.
func locksOneOf(name string, n int) func(*invocation) {
	return func(in *invocation) {
		lk, err := in.locker.AcquireOneOf(in.ctx, name, n)
		in.under(lk, err, lock.Key{Name: name}, in.work)
	}
}

// coalesces returns an invocation whose event is acknowledged if it is
// completed or coalesced, and would come again otherwise.
func coalesces(key lock.Key) func(*invocation) {
	return func(in *invocation) {
		ran := false
		err := in.locker.Latest(in.ctx, key, func(ctx context.Context) error {
			ran = true
			in.holds(key.Name, ctx)
			serves := in.begins()
			succeeded := in.work(ctx)
			in.ends(key.Name)
			if !succeeded {
				return errors.New("the work fails")
			}
			in.serve(serves)
			return nil
		})
		switch {
		case ran:
			in.completed(key, err)
		case err != nil:
			in.refused(key, err)
		}
		if err != nil {
			in.fails()
		}
	}
}

// late returns an invocation that begins when the leases of the others end.
func late(script func(*invocation)) func(*invocation) {
	return func(in *invocation) {
		time.Sleep(4500 * time.Millisecond)
		script(in)
	}
}

func locksAll(keys ...lock.Key) func(*invocation) {
	return func(in *invocation) {
		all, err := in.locker.AcquireAll(in.ctx, keys...)
		if err != nil {
			return
		}
		for _, k := range keys {
			in.holds(k.Name, all.Context())
		}
		succeeded := in.work(all.Context())
		for _, k := range keys {
			in.ends(k.Name)
		}
		if succeeded {
			_ = all.Complete()
		} else {
			_ = all.Release()
		}
	}
}

// explorePlay fails the test at the first violation.
func explorePlay(t *testing.T, p play, deviations int, open func() driver.Store) {
	e := &exploration{play: p, open: open, deviations: deviations, seen: map[uint64]bool{}}
	e.run(t)
	t.Logf("%d runs with up to %d deviations, %d steps, %d states, %d alternatives that led to a known state, %d runs that differed from the one they repeat",
		e.runs, deviations, e.steps, len(e.seen), e.known, e.diverged)
	if e.violation != "" {
		t.Error(e.violation)
	}
}

// exploration is a search over the choices of runs, those with the fewest
// deviations first.
type exploration struct {
	play       play
	open       func() driver.Store
	deviations int
	seen       map[uint64]bool

	runs, steps, known, diverged int
	violation                    string
}

// path is the choices of a run. After them, every choice is the first.
type path struct {
	choices []string
	used    int // deviations
}

func (e *exploration) run(t *testing.T) {
	for queue := []path{{}}; len(queue) > 0 && e.violation == ""; queue = queue[1:] {
		var more []path
		synctest.Test(t, func(t *testing.T) { more = e.try(t, queue[0]) })
		e.runs++
		queue = append(queue, more...)
	}
}

// try makes one run, and returns the paths that leave it after its deviations.
func (e *exploration) try(t *testing.T, p path) (more []path) {
	s := newEngineRun(t, e)
	defer s.end()
	known := false // or reached by chance
	for step := 0; ; step++ {
		synctest.Wait()
		s.check()
		options := s.options()
		if len(options) == 0 || s.violation != "" {
			break
		}
		choice := 0
		if step < len(p.choices) {
			choice = slices.IndexFunc(options, func(o option) bool { return o.name == p.choices[step] })
			if choice < 0 {
				e.diverged++
				known = true
				choice, p.choices = 0, p.choices[:step]
			}
		} else if h := s.hash(); !known && p.used < e.deviations {
			known = e.seen[h]
			if known {
				e.known++
			} else {
				e.seen[h] = true
				for _, o := range options[1:] {
					more = append(more, path{append(slices.Clone(s.trace), o.name), p.used + 1})
				}
			}
		}
		s.trace = append(s.trace, options[choice].name)
		e.steps++
		options[choice].do()
	}
	s.late()
	if s.violation != "" {
		e.violation = fmt.Sprintf("%s, after\n%s", s.violation, strings.Join(s.trace, "\n"))
	}
	return more
}
