package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// hold acquires the resource, and releases it at the end of the test.
func (f *fixture) hold(l locker) *lock.Lock {
	f.t.Helper()
	lk := f.mustAcquire(l, resource)
	f.t.Cleanup(func() { _ = lk.Release() })
	return lk
}

// holdAll does so n times.
func (f *fixture) holdAll(l locker, n int) []*lock.Lock {
	f.t.Helper()
	var all []*lock.Lock
	for range n {
		all = append(all, f.hold(l))
		time.Sleep(time.Millisecond) // otherwise all leases end at the same moment
	}
	return all
}

// refused returns the HeldError of another attempt to acquire the resource.
func (f *fixture) refused(l locker) *lock.HeldError {
	f.t.Helper()
	_, err := l.Acquire(f.t.Context(), resource)
	var held *lock.HeldError
	if !errors.As(err, &held) {
		f.t.Fatalf("got %v, want a HeldError", err)
	}
	return held
}

func (f *fixture) wantFull(l locker) {
	f.t.Helper()
	_ = f.refused(l)
}

// oneOf is a [*lock.Locker] that acquires a name as one of n who may hold it.
type oneOf struct {
	*lock.Locker
	n int
}

func (f *fixture) limited(n int, o lock.Options) oneOf {
	f.t.Helper()
	return oneOf{f.locker(o), n}
}

func (o oneOf) Acquire(ctx context.Context, key lock.Key) (*lock.Lock, error) {
	return o.AcquireOneOf(ctx, key.Name, o.n)
}

func (o oneOf) Do(ctx context.Context, key lock.Key, work func(context.Context) error) error {
	lk, err := o.Acquire(ctx, key)
	if err != nil {
		return err
	}
	defer func() { _ = lk.Release() }()
	return work(lk.Context())
}

// wantSlots ends all faults and fails the test unless exactly so many slots of
// the resource are free.
func (f *fixture) wantSlots(limit, free int) {
	f.t.Helper()
	f.faulty.Always(fault.Acquire, fault.None)
	f.faulty.Always(fault.Release, fault.None)
	l := f.limited(limit, lock.Options{})
	for range 10 { // in ten random orders
		all := f.holdAll(l, free)
		f.wantFull(l)
		for _, lk := range all {
			expect.OK(f.t, lk.Release())
		}
	}
}

// TestLimit shows that a name has as many holders as its limit allows, each
// with a row of its own, and what a request costs.
func TestLimit(t *testing.T) {
	for _, limit := range []int{2, 3, 10, lock.MaxLimit} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.limited(limit, lock.Options{Holder: func(context.Context) string { return time.Now().Format(time.StampMilli) }})
				first := time.Now().Format(time.StampMilli)
				var all []*lock.Lock
				for i := range limit {
					before := f.faulty.Requests(fault.Acquire)
					all = append(all, f.hold(l))
					time.Sleep(time.Millisecond) // otherwise all leases end at the same moment
					if n := f.faulty.Requests(fault.Acquire) - before; n > 1+i {
						t.Errorf("%d requests with %d slots held, want at most one more than that", n, i)
					}
				}
				f.observations()
				before := f.faulty.Requests(fault.Acquire)
				held := f.refused(l)
				if n := f.faulty.Requests(fault.Acquire) - before; n != limit {
					t.Errorf("%d requests when all of %d slots are held", n, limit)
				}
				if held.Holder != first || held.Limit != limit || held.Duplicate || held.Until != all[0].Lease().Until || held.Key != resource || held.Cause != nil {
					t.Errorf("got %+v, want the holder whose lease ends first", held)
				}
				if o := f.observations(); len(o) != 1 || o[0].Outcome != lock.OutcomeHeld || o[0].Requests != limit || o[0].Holder != first {
					t.Errorf("observed %+v, want one refusal with the requests of all slots", o)
				}
				for number, lk := range f.bySlot(limit) {
					if lk.Token == "" {
						t.Errorf("slot %d is free, although the name has %d holders", number+1, limit)
					}
				}
				for _, lk := range all {
					expect.OK(t, lk.Complete())
				}
				f.wantSlots(limit, limit)
			})
		})
	}
}

// observations returns what was observed since the last call.
func (f *fixture) observations() []lock.Observation {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.observed
	f.observed = nil
	return all
}

// bySlot returns the rows of the resource's slots.
func (f *fixture) bySlot(limit int) []driver.Row {
	rows := []driver.Row{f.row()}
	for number := 2; number <= limit; number++ {
		rows = append(rows, readRow(f.t, f.faulty.Store, fmt.Sprintf("/slot:%d:resource", number)))
	}
	return rows
}

// TestLimitIsChanged shows that two limits for one name allow as many holders
// as the larger one, in whatever order they come.
func TestLimitIsChanged(t *testing.T) {
	for name, c := range map[string]struct{ first, second int }{
		"introduced": {1, 3}, "raised": {2, 5}, "lowered": {5, 2}, "removed": {3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				lease := lock.FixedLease(time.Hour)
				before, after := f.limited(c.first, lock.Options{Lease: lease}), f.limited(c.second, lock.Options{Lease: lease})
				holders := 0
				for _, l := range []oneOf{before, after, before, after} {
					for {
						if _, err := l.Acquire(t.Context(), resource); err != nil {
							break
						}
						holders++
					}
				}
				if holders != max(c.first, c.second) {
					t.Errorf("%d holders with the limits %d and %d", holders, c.first, c.second)
				}
			})
		})
	}
}

// TestLimitKeepsWhatARowRemembers shows that a limited lock, whose first slot
// is the ordinary row, forgets no event of that row.
func TestLimitKeepsWhatARowRemembers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	plain := f.locker(lock.Options{})
	expect.Must(t, plain.Do(t.Context(), event("e1"), nothing))
	f.wantSlots(2, 2)
	if err := plain.Do(t.Context(), event("e1"), nothing); !isCompleted(err) {
		t.Errorf("got %v, want completed", err)
	}
}

// TestWrongLimits shows that a limit that makes no sense is refused before any
// request is sent.
func TestWrongLimits(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, 0, lock.MaxLimit + 1} {
		f := newFixture(t)
		_, err := f.limited(n, lock.Options{}).Acquire(t.Context(), resource)
		if _, ok := err.(*lock.ConfigError); !ok || !strings.Contains(err.Error(), "use 1 to 100") {
			t.Errorf("%d: got %v, want a ConfigError that says what to do", n, err)
		}
		f.wantOutcomes(lock.OutcomeRefused)
		if n := f.faulty.Requests(fault.Acquire); n != 0 {
			t.Errorf("%d requests", n)
		}
	}
}

// TestNestedLimited shows that an invocation gets one slot of a name: if every
// one waited for a second slot, none would end.
func TestNestedLimited(t *testing.T) { // F33
	t.Parallel()
	other := lock.Key{Name: "other"}
	for name, c := range map[string]struct {
		outer, inner int
		namespace    string // of the inner one
		key          lock.Key
		elsewhere    bool // the inner one has a store of its own
		want         bool
	}{
		"the same limit":                         {2, 2, "", resource, false, true},
		"limited inside ordinary":                {1, 2, "", resource, false, true},
		"ordinary inside limited":                {2, 1, "", resource, false, true},
		"another name":                           {2, 2, "", other, false, false},
		"another namespace":                      {2, 2, "b", resource, false, false},
		"another store":                          {2, 2, "", resource, true, false},
		"limited inside ordinary, another store": {1, 2, "", resource, true, false},
		"ordinary inside limited, another store": {2, 1, "", resource, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			for range 10 { // in ten random orders
				f := newFixture(t)
				inner := f.limited(c.inner, lock.Options{Namespace: c.namespace})
				if c.elsewhere {
					inner.Locker = expect.Value(lock.New(memstore.New(), &lock.Options{Logger: discard}))(t)
				}
				between := f.locker(lock.Options{})
				var err error
				requests := 0
				outer := f.limited(c.outer, lock.Options{}).Do(t.Context(), resource, func(ctx context.Context) error {
					return between.Do(ctx, lock.Key{Name: "between"}, func(ctx context.Context) error {
						before := f.faulty.Requests(fault.Acquire)
						err = inner.Do(ctx, c.key, nothing)
						requests = f.faulty.Requests(fault.Acquire) - before
						return nil
					})
				})
				var config *lock.ConfigError
				if got := errors.As(err, &config) && strings.Contains(err.Error(), "nested wrappers"); got != c.want || outer != nil {
					t.Errorf("got %v, inside %v", err, outer)
				}
				if c.want && requests > 2-c.inner { // the ordinary row may be the slot that is held
					t.Errorf("%d requests", requests)
				}
			}
		})
	}
}

// TestLimitedNameWithAColon shows that a nested call knows the whole name of a
// slot, although its row has a colon of its own.
func TestLimitedNameWithAColon(t *testing.T) { // F33
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.limited(2, lock.Options{Lease: lock.FixedLease(time.Minute), MaxWait: time.Hour})
		key := lock.Key{Name: "tenant:7"}
		for range 2 { // both slots
			lk := f.mustAcquire(l, key)
			if _, err := l.Acquire(lk.Context(), key); !errors.As(err, new(*lock.ConfigError)) {
				t.Errorf("inside it: %v", err)
			}
		}
	})
}

// TestSlotNamesNeverCollide holds all slots of all cases at the same time: two
// that collide could not both be held.
func TestSlotNamesNeverCollide(t *testing.T) { // F27, F28
	t.Parallel()
	store := memstore.New()
	long := strings.Repeat("x", 2048-len("ns/slot:2:"))
	for _, c := range []struct {
		limit int
		name  string
	}{
		{3, "a"},
		{1, "slot:2:a"},
		{2, "slot:2:slot:2:a"},
		{12, "2:a"},
		{1, "slot:1:a"},
		{1, "slot:"},
		{11, "1:a"},
		{12, long},
		{2, long + "x"},
		{2, "\xff"},
		{2, "sha256:a"},
	} {
		t.Run(fmt.Sprintf("%d, %.20q", c.limit, c.name), func(t *testing.T) {
			names := &claimRecorder{Store: store}
			l := expect.Value(lock.New(names, &lock.Options{Namespace: "ns", Logger: discard, Lease: lock.FixedLease(time.Hour)}))(t)
			for range c.limit {
				if _, err := l.AcquireOneOf(t.Context(), c.name, c.limit); err != nil {
					t.Fatalf("collides with another case: %v", err)
				}
			}
			for _, claim := range names.claims {
				if !strings.HasPrefix(claim.Name, "ns/") || len(claim.Name) > 2048 {
					t.Errorf("stored name %.30q of %d bytes", claim.Name, len(claim.Name))
				}
			}
		})
	}
}

// TestLimitDeadHolder shows P4 for slots: that of a dead holder is free once
// its lease has ended, and not before, by the claimant's clock.
func TestLimitDeadHolder(t *testing.T) { // F14, F19
	for _, skew := range []time.Duration{-time.Second, 0, time.Second} {
		t.Run(fmt.Sprint(skew), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				alive := f.hold(f.limited(2, lock.Options{Lease: lock.Heartbeat(9 * time.Second)}))
				dead := f.hold(f.limited(2, lock.Options{Lease: lock.FixedLease(5 * time.Second), Holder: func(context.Context) string { return "dead" }}))
				next := skewed(f.limited(2, lock.Options{}), skew)
				time.Sleep(5*time.Second - skew)
				f.wantFull(next) // to the end of the lease it is held
				time.Sleep(time.Millisecond)
				f.observations()
				lk := f.hold(next)
				if o := f.observations()[0]; o.Outcome != lock.OutcomeTakenOver || o.Holder != "dead" || o.Requests > 2 {
					t.Errorf("observed %+v, want a takeover from the dead holder", o)
				}
				if lk.Lease().Fence <= dead.Lease().Fence {
					t.Error("the fence of the slot did not rise")
				}
				f.wantFull(next)
				if err := dead.Release(); !errors.Is(err, lock.ErrLost) {
					t.Errorf("a late release: %v", err)
				}
				f.wantFull(next)
				for _, lk := range []*lock.Lock{alive, lk} {
					expect.OK(t, lk.Release())
				}
			})
		})
	}
}

// losesFirst loses the first attempt at every row, or its answer, and keeps a
// copy of it that arrives late.
type losesFirst struct {
	driver.Store
	apply bool // the attempt arrives immediately, and only its answer is lost
	names map[string]bool
	late  []func()
}

func (s *losesFirst) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	if s.names == nil || s.names[c.Name] {
		return s.Store.Acquire(ctx, c)
	}
	s.names[c.Name] = true
	claim := *c
	s.late = append(s.late, func() { _, _, _ = s.Store.Acquire(context.Background(), &claim) })
	if s.apply {
		_, _, _ = s.Store.Acquire(ctx, c)
	}
	return driver.Row{}, false, &driver.Error{Err: errDropped}
}

// TestLateClaimsOfSlots shows that no late claim to any slot holds that slot
// for nobody: neither while the acquisition holds another slot, nor after it
// was refused.
func TestLateClaimsOfSlots(t *testing.T) { // F1, F2, F3, F44
	const limit = 4
	for name, c := range map[string]struct {
		held    int // slots that others hold meanwhile
		wait    time.Duration
		release int // of those, while the acquisition waits
		apply   bool
		want    func(error) bool
	}{
		"one is free":                {held: 3},
		"one is free, answers lost":  {held: 3, apply: true},
		"all are free":               {held: 0},
		"all are free, answers lost": {held: 0, apply: true},
		"none is free":               {held: 4, want: isHeld},
		"none for a while":           {held: 4, wait: 5 * time.Second, want: isHeld},
		"one becomes free":           {held: 4, wait: time.Minute, release: 1},
		"all become free":            {held: 4, wait: time.Minute, release: 4},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // random orders
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t)
					s := &losesFirst{Store: f.faulty.Store, apply: c.apply}
					f.faulty.Store = s
					others := f.holdAll(f.limited(limit, lock.Options{}), c.held)
					time.AfterFunc(3*time.Second, func() {
						for _, lk := range others[:c.release] {
							_ = lk.Release()
						}
					})
					s.names = map[string]bool{}
					lk, err := f.limited(limit, lock.Options{MaxWait: c.wait}).Acquire(t.Context(), resource)
					free := limit - c.held + c.release
					if c.want == nil {
						free--
					}
					if c.want == nil && err != nil || c.want != nil && !c.want(err) {
						t.Fatalf("got %v", err)
					}
					f.wantSlots(limit, free)
					for _, apply := range s.late {
						apply()
					}
					f.wantSlots(limit, free)
					if lk != nil {
						expect.OK(t, lk.Release())
						free++
					}
					for _, apply := range s.late {
						apply()
					}
					f.wantSlots(limit, free)
					for _, lk := range others[c.release:] {
						expect.OK(t, lk.Release())
					}
					for _, apply := range s.late {
						apply()
					}
					f.wantSlots(limit, limit)
				})
			}
		})
	}
}

// TestLimitedClaimGivenUp shows that a claim whose store stops to answer ends
// within its budget, counts all of its requests, and holds no slot afterwards.
func TestLimitedClaimGivenUp(t *testing.T) { // F2, F11
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.holdAll(f.limited(3, lock.Options{}), 2)
		f.faulty.Always(fault.Acquire, fault.HangThenApply)
		f.observations()
		before, start := f.faulty.Requests(fault.Acquire)+f.faulty.Requests(fault.Release), time.Now()
		_, err := f.limited(3, lock.Options{}).Acquire(t.Context(), resource)
		if !isStoreError(err) || time.Since(start) > 2*time.Second {
			t.Errorf("got %v after %v, want a StoreError within 2s", err, time.Since(start))
		}
		n := f.faulty.Requests(fault.Acquire) + f.faulty.Requests(fault.Release) - before
		if o := f.observations(); len(o) != 1 || o[0].Requests != n {
			t.Errorf("observed %+v after %d requests", o, n)
		}
		f.faulty.Apply()
		f.wantSlots(3, 1)
	})
}

// TestClaimsAreGivenUpTogether shows that it takes no longer to give up the
// claims to several slots than to give up one.
func TestClaimsAreGivenUpTogether(t *testing.T) { // F2, F11
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.holdAll(f.limited(10, lock.Options{}), 10)
		lossy := &losesFirst{Store: f.faulty.Store, names: map[string]bool{}}
		slow := &slowRelease{Store: lossy, takes: 400 * time.Millisecond}
		f.faulty.Store = slow
		start := time.Now()
		f.wantFull(f.limited(10, lock.Options{}))
		if d := time.Since(start); d > 800*time.Millisecond {
			t.Errorf("refused after %v", d)
		}
	})
}

// TestSlotsAreAskedInRandomOrder shows that claimants do not all begin with the
// same slot, which would be the one that is the most likely to be held.
func TestSlotsAreAskedInRandomOrder(t *testing.T) {
	t.Parallel()
	s := &claimRecorder{Store: memstore.New()}
	l := oneOf{expect.Value(lock.New(s, &lock.Options{Logger: discard}))(t), 4}
	for range 400 {
		expect.Must(t, l.Do(t.Context(), resource, nothing))
	}
	first := map[string]int{}
	for _, claim := range s.claims {
		first[claim.Name]++
	}
	for _, name := range []string{"/resource", "/slot:2:resource", "/slot:3:resource", "/slot:4:resource"} {
		if first[name] < 50 {
			t.Errorf("%s was asked first %d of 400 times", name, first[name])
		}
	}
}

// TestErrorCountsAllSlots shows that a StoreError reports the requests to the
// slots before it, too.
func TestErrorCountsAllSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.holdAll(f.limited(3, lock.Options{}), 3)
		f.faulty.Plan(fault.Acquire, fault.None, fault.None, fault.Deny)
		_, err := f.limited(3, lock.Options{}).Acquire(t.Context(), resource)
		var e *lock.StoreError
		if !errors.As(err, &e) || e.Requests != 3 {
			t.Errorf("got %+v, want a StoreError after 3 requests", err)
		}
	})
}

// TestSlowSlots shows that a refusal takes no longer than an acquisition may,
// however many slots there are.
func TestSlowSlots(t *testing.T) { // F11
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		slow := &slowAnswers{Store: f.faulty.Store}
		f.faulty.Store = slow
		f.holdAll(f.limited(50, lock.Options{}), 50)
		slow.takes = 300 * time.Millisecond
		start := time.Now()
		f.wantFull(f.limited(50, lock.Options{}))
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("refused after %v", d)
		}
		// A wait goes on with the slots that were not asked yet.
		slow.takes = 40 * time.Millisecond
		free := f.bySlot(50)[41]
		s := &driver.Settlement{Name: "/slot:42:resource", Token: free.Token}
		expect.Granted(slow.Settle(t.Context(), s))(t)
		start = time.Now()
		f.hold(f.limited(50, lock.Options{MaxWait: time.Minute}))
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("the free slot was found after %v", d)
		}
	})
}

// TestLeaseEndsDuringTheAnswer shows that a slot whose lease ends while it is
// asked does not hide the others, also if the wait is shorter than an answer.
func TestLeaseEndsDuringTheAnswer(t *testing.T) { // F14
	for _, wait := range []time.Duration{0, 5 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			slow := &slowAnswers{Store: f.faulty.Store}
			f.faulty.Store = slow
			for range 10 { // in ten random orders
				slow.takes = 0
				last := f.hold(f.limited(3, lock.Options{Lease: lock.FixedLease(10 * time.Second)}))
				time.Sleep(time.Until(last.Lease().Until) - 3*time.Millisecond)
				slow.takes = 6 * time.Millisecond
				expect.OK(t, f.mustAcquire(f.limited(3, lock.Options{MaxWait: wait}), resource).Release())
			}
		})
	}
}

// TestLeasesEndWhenTheTimeIsOver shows that a slot whose lease has ended is not
// asked again once the time for requests is over.
func TestLeasesEndWhenTheTimeIsOver(t *testing.T) { // F11, F14
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		slow := &slowAnswers{Store: f.faulty.Store}
		f.faulty.Store = slow
		f.holdAll(f.limited(3, lock.Options{Lease: lock.FixedLease(10 * time.Second)}), 3)
		time.Sleep(10*time.Second - 1200*time.Millisecond)
		slow.takes = 500 * time.Millisecond
		start := time.Now()
		f.wantFull(f.limited(3, lock.Options{}))
		if d := time.Since(start); d > 1500*time.Millisecond {
			t.Errorf("refused after %v", d)
		}
	})
}

// TestAnswerEndsTheStreak shows that a waiter goes on asking the slots as often
// as the store allows if only some requests fail: their pauses do not add up.
func TestAnswerEndsTheStreak(t *testing.T) { // F2
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.holdAll(f.limited(40, lock.Options{Lease: lock.FixedLease(time.Hour)}), 40)
		f.faulty.Plan(fault.Acquire, slices.Repeat([]fault.Fault{fault.None, fault.DropBefore}, 1000)...)
		before := f.faulty.Requests(fault.Acquire)
		f.wantFull(f.limited(40, lock.Options{MaxWait: time.Minute}))
		if n := f.faulty.Requests(fault.Acquire) - before; n < 400 {
			t.Errorf("%d requests in a minute, want some ten a second", n)
		}
	})
}

// TestAnswerEndsTheThrottling shows that a search goes on to the last slot if
// the store throttles some requests, but answers those between them.
func TestAnswerEndsTheThrottling(t *testing.T) { // F8, F55
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		store, answers := f.faulty.Store, 0
		f.faulty.Store = fault.Hooks{Store: store, OnAcquire: func(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
			if answers++; answers == 1 {
				return driver.Row{Token: "somebody", Stamp: c.Stamp, Until: c.Until, Fence: 1}, false, nil
			}
			return store.Acquire(ctx, c)
		}}
		f.faulty.Plan(fault.Acquire, fault.Throttle, fault.None, fault.Throttle)
		lk := f.mustAcquire(f.limited(4, lock.Options{}), resource)
		expect.OK(t, lk.Release())
	})
}

// TestLimitWait shows how soon a waiter finds a slot that was released early,
// or whose holder died, and with how many requests.
func TestLimitWait(t *testing.T) { // F19, F38
	for _, limit := range []int{2, 4, 20, lock.MaxLimit} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			for _, c := range []struct {
				what     string
				release  bool
				within   time.Duration
				requests int // beside one per slot
			}{
				{"released", true, max(4*time.Second, time.Duration(limit)*100*time.Millisecond), 12 * limit},
				{"dead", false, 55 * time.Millisecond, 12 * limit},
			} {
				t.Run(c.what, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						f := newFixture(t)
						f.holdAll(f.limited(limit, lock.Options{Lease: lock.Heartbeat(9 * time.Second)}), limit-1)
						last := f.hold(f.limited(limit, lock.Options{Lease: lock.FixedLease(10 * time.Second)}))
						at := last.Lease().Until
						if c.release {
							at = time.Now().Add(7 * time.Second)
							time.AfterFunc(7*time.Second, func() { _ = last.Release() })
						}
						before := f.faulty.Requests(fault.Acquire)
						f.hold(f.limited(limit, lock.Options{MaxWait: time.Minute}))
						if d := time.Since(at); d <= 0 || d > c.within {
							t.Errorf("acquired %v after the slot was free", d)
						}
						n := f.faulty.Requests(fault.Acquire) - before
						if n > limit+c.requests {
							t.Errorf("%d requests", n)
						}
					})
				})
			}
		})
	}
}

// TestLimitWaitEnds shows that a wait for a slot ends as a wait for a name
// does, and how many requests it sends at most.
func TestLimitWaitEnds(t *testing.T) {
	gone := errors.New("client went away")
	for name, c := range map[string]struct {
		cancel time.Duration // of the context, with gone
		lasts  time.Duration
		cause  error
	}{
		"MaxWait":   {0, 2 * time.Minute, nil},
		"cancelled": {30 * time.Second, 30 * time.Second, gone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				all := f.holdAll(f.limited(lock.MaxLimit, lock.Options{Lease: lock.FixedLease(time.Hour)}), lock.MaxLimit)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.cancel > 0 {
					time.AfterFunc(c.cancel, func() { cancel(gone) })
				}
				f.observations()
				before, start := f.faulty.Requests(fault.Acquire), time.Now()
				_, err := f.limited(lock.MaxLimit, lock.Options{MaxWait: 2 * time.Minute}).Acquire(ctx, resource)
				var held *lock.HeldError
				if !errors.As(err, &held) || !errors.Is(held.Cause, c.cause) || time.Since(start) != c.lasts {
					t.Errorf("got %v after %v, want a HeldError with cause %v", err, time.Since(start), c.cause)
				}
				if held.Until != all[0].Lease().Until {
					t.Errorf("got %+v, want the holder whose lease ends first", held)
				}
				n := f.faulty.Requests(fault.Acquire) - before
				if most := lock.MaxLimit + 20*int(c.lasts/time.Second) + 100; n > most {
					t.Errorf("%d requests, want at most 20 a second beside the first ones: %d", n, most)
				}
				if o := f.observations(); len(o) != 1 || o[0].Waited != c.lasts || o[0].Requests != n {
					t.Errorf("observed %+v, want a refusal after a wait of %v and %d requests", o, c.lasts, n)
				}
			})
		})
	}
}

// TestLimitWithoutDetail shows that a store that does not return the row that
// refused can be limited too.
func TestLimitWithoutDetail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.faulty.Store = noDetail{f.faulty.Store}
		l := f.limited(2, lock.Options{MaxWait: 10 * time.Second})
		all := f.holdAll(l, 2)
		before := f.faulty.Requests(fault.Acquire)
		if held := f.refused(l); held.Holder != "" || held.Error() == "" {
			t.Errorf("got %+v, want held by somebody unknown", held)
		}
		if n := f.faulty.Requests(fault.Acquire) - before; n > 30 {
			t.Errorf("%d requests in ten seconds", n)
		}
		time.AfterFunc(time.Second, func() { _ = all[1].Release() })
		f.hold(l)
	})
}

// TestLimitOnSlowClock shows that a waiter finds a slot that was released, even
// if the store still keeps another one whose lease has ended by the waiter's
// clock.
func TestLimitOnSlowClock(t *testing.T) { // F14
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		store := f.faulty.Store
		f.faulty.Store = fault.Hooks{Store: store, OnAcquire: func(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
			claim := *c
			claim.Now = claim.Now.Add(-10 * time.Second) // the store's clock is behind
			return store.Acquire(ctx, &claim)
		}}
		f.hold(f.limited(2, lock.Options{Lease: lock.FixedLease(5 * time.Second)})) // and dies
		released := f.hold(f.limited(2, lock.Options{Lease: lock.FixedLease(time.Minute)}))
		time.Sleep(4 * time.Second)
		time.AfterFunc(2*time.Second, func() { _ = released.Release() })
		start, before := time.Now(), f.faulty.Requests(fault.Acquire)
		f.hold(f.limited(2, lock.Options{MaxWait: time.Minute}))
		if d := time.Since(start); d > 6*time.Second {
			t.Errorf("the released slot was found after %v", d)
		}
		if n := f.faulty.Requests(fault.Acquire) - before; n > 250 {
			t.Errorf("%d requests", n)
		}
	})
}

// TestLimitHandover passes the slots of a name among eight waiters. All of them
// get their turns, with few requests; BenchmarkLimitHandover shows how fast.
func TestLimitHandover(t *testing.T) { // F38
	const waiters, turns = 8, 5
	for _, limit := range []int{2, 4} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			var requests, fairness []float64
			for range 50 {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t)
					f.faulty.Store = fault.Hooks{Store: f.faulty.Store, Each: func(ctx context.Context, r fault.Request) (driver.Row, bool, error) {
						time.Sleep(5 * time.Millisecond)
						return r.Send(ctx)
					}}
					var mu sync.Mutex
					var finished []time.Duration
					holders, start := 0, time.Now()
					hold := func(n int) {
						mu.Lock()
						defer mu.Unlock()
						if holders += n; holders > limit {
							t.Errorf("%d holders", holders)
						}
					}
					var wg sync.WaitGroup
					for range waiters {
						l := f.limited(limit, lock.Options{MaxWait: time.Minute})
						wg.Go(func() {
							for range turns {
								err := l.Do(t.Context(), resource, func(context.Context) error {
									hold(1)
									time.Sleep(20 * time.Millisecond)
									hold(-1)
									return nil
								})
								if err != nil {
									t.Error(err)
								}
							}
							mu.Lock()
							defer mu.Unlock()
							finished = append(finished, time.Since(start))
						})
					}
					wg.Wait()
					n := f.faulty.Requests(fault.Acquire) + f.faulty.Requests(fault.Release)
					requests = append(requests, float64(n)/(waiters*turns))
					fairness = append(fairness, float64(finished[waiters-1])/float64(finished[0]))
				})
			}
			slices.Sort(requests)
			slices.Sort(fairness)
			t.Logf("requests per turn: %.1f, first to last finisher: %.1f", requests[25], fairness[25])
			if requests[25] > 5 {
				t.Errorf("%.1f requests per turn, want at most 5", requests[25])
			}
		})
	}
}
