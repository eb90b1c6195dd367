package lock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// ends is a simulated history in which locks end in every way: by transactions,
// by several goroutines at once, and in other invocations.
type ends struct {
	t     *testing.T
	seed  uint64
	store *memstore.Store
	plan  *fault.Stream
	late  fault.Copies
	wg    sync.WaitGroup

	mu        sync.Mutex
	runs      []run
	applied   map[lock.Key]int  // how often the writes of an event's transaction were applied
	completed map[lock.Key]bool // as the engine confirmed it
	over      map[string]bool   // tokens whose lock is known to have ended
	counts    map[string]int
}

// run is the time in which the work of an invocation runs under a name.
type run struct {
	name       string
	fence      int64
	start, end time.Time
}

// vault is the store below the faults, which notes what is applied.
type vault struct {
	driver.Store
	sim      *ends
	declines bool   // settlements
	writes   func() // what a transaction writes with its settlement; nil: nothing
}

// Acquire implements [driver.Store].
func (v *vault) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	row, ok, err := v.Store.Acquire(ctx, c)
	v.sim.mu.Lock()
	defer v.sim.mu.Unlock()
	if ok && v.sim.over[c.Token] {
		v.sim.t.Errorf("seed %d: %v: a late claim got %s for a lock that had ended", v.sim.seed, time.Now(), c.Name)
	}
	return row, ok, err
}

// Settle implements [driver.Store].
func (v *vault) Settle(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	if v.declines {
		return driver.Row{}, false, &driver.Error{Answered: true, Unapplied: true, Err: errors.New("declined")}
	}
	v.sim.mu.Lock()
	defer v.sim.mu.Unlock()
	row, ok, err := v.Store.Settle(ctx, s)
	if ok {
		v.sim.over[s.Token] = true
		if v.writes != nil {
			v.writes()
		}
	}
	return row, ok, err
}

// overFaults returns v behind the network.
func (sim *ends) overFaults(v *vault) driver.Store {
	v.Store, v.sim = sim.store, sim
	return fault.NewStore(v, sim.plan, &sim.late)
}

// seeds returns how many histories to play: LAMBDALOCK_SEEDS divided by share,
// or the usual number if it is not set.
func seeds(t *testing.T, usual, share uint64) uint64 {
	s := os.Getenv("LAMBDALOCK_SEEDS")
	if s == "" {
		return usual
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return max(n/share, 1)
}

// TestSimulationOfEnds checks in simulated histories that no two invocations
// work under one name at the same time, that the writes of a transaction are
// applied once and if the engine says so, that no completed event runs again,
// and that every name is free in the end.
func TestSimulationOfEnds(t *testing.T) { // F1 to F6, F14, F17, F19, F21, F44
	t.Parallel()
	counts := map[string]int{}
	for seed := range seeds(t, 60, 2) {
		synctest.Test(t, func(t *testing.T) {
			sim := &ends{
				t: t, seed: seed, store: memstore.New(), plan: fault.Usual(seed, 300).Client(1),
				applied: map[lock.Key]int{}, completed: map[lock.Key]bool{}, over: map[string]bool{}, counts: counts,
			}
			sim.play()
		})
		if t.Failed() {
			return
		}
	}
	t.Log(counts)
	for _, what := range []string{"transaction", "declined", "handed over", "resumed", "left"} {
		if counts[what] == 0 {
			t.Errorf("none was %s", what)
		}
	}
}

func (sim *ends) play() {
	for client := range 6 {
		random := rand.New(rand.NewPCG(sim.seed, uint64(client+2)))
		sim.wg.Go(func() {
			for range 15 {
				time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
				sim.invoke(random)
			}
		})
	}
	sim.wg.Wait()
	sim.late.Wait()
	for i, a := range sim.runs {
		for _, b := range sim.runs[:i] {
			if a.name == b.name && a.start.Before(b.end) && b.start.Before(a.end) {
				sim.t.Errorf("seed %d: %v and %v overlap", sim.seed, a, b)
			}
		}
	}
	for key, n := range sim.applied {
		if n > 1 {
			sim.t.Errorf("seed %d: the writes of %v were applied %d times", sim.seed, key, n)
		}
	}
	time.Sleep(30 * time.Second)
	for _, name := range []string{"n0", "n1"} {
		locker, _ := lock.New(sim.store, &lock.Options{Logger: discard})
		lk, err := locker.Acquire(context.Background(), lock.Key{Name: name})
		if err != nil {
			sim.t.Errorf("seed %d: %v", sim.seed, err)
			continue
		}
		_ = lk.Release()
	}
}

func (sim *ends) locker(random *rand.Rand) locker {
	modes := []lock.LeaseMode{lock.UntilDeadline(), lock.FixedLease(6 * time.Second), lock.Heartbeat(4 * time.Second)}
	o := lock.Options{Logger: discard, MaxWait: time.Duration(random.IntN(2)) * 3 * time.Second, Lease: modes[random.IntN(len(modes))]}
	l, err := lock.New(sim.overFaults(&vault{}), &o)
	if err != nil {
		sim.t.Fatal(err)
	}
	return skewed(l, time.Duration(random.Int64N(int64(lock.DefaultGrace)))-lock.DefaultGrace/2)
}

func (sim *ends) invoke(random *rand.Rand) {
	key := lock.Key{Name: fmt.Sprint("n", random.IntN(2)), Event: fmt.Sprint("e", random.IntN(40))}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	lk, err := sim.locker(random).Acquire(ctx, key)
	if err != nil {
		return
	}
	sim.work(random, lk, key, lk.Lease().Fence)
}

// work works and then ends the lock in some way.
func (sim *ends) work(random *rand.Rand, lk *lock.Lock, key lock.Key, fence int64) {
	start := time.Now()
	sim.mu.Lock()
	if sim.completed[key] || sim.applied[key] > 0 {
		sim.t.Errorf("seed %d: %v runs again at %v", sim.seed, key, start)
	}
	sim.mu.Unlock()
	select {
	case <-time.After(time.Duration(random.IntN(4000)) * time.Millisecond):
	case <-lk.Context().Done():
	}
	sim.mu.Lock()
	sim.runs = append(sim.runs, run{key.Name, fence, start, time.Now()})
	sim.mu.Unlock()
	switch random.IntN(7) {
	case 0:
		_ = lk.Release()
	case 1:
		sim.completes(key, lk.Complete())
	case 2, 3:
		if random.IntN(2) == 0 {
			after := time.Duration(random.IntN(1500)) * time.Millisecond
			end := []func(){func() { _ = lk.Release() }, func() { lk.Leave() }}[random.IntN(2)]
			sim.wg.Go(func() { time.Sleep(after); end() })
		}
		sim.transact(random, lk, key)
		_ = lk.Release()
	case 4, 5:
		sim.handOver(random, lk, key, fence)
	case 6:
		lk.Leave() // as if the process had died
	}
	_ = lk.Release()
	if lk.Context().Err() == nil {
		sim.t.Errorf("seed %d: the context goes on", sim.seed)
	}
}

func (sim *ends) completes(key lock.Key, err error) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.completed[key] = sim.completed[key] || err == nil
}

func (sim *ends) count(what string) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.counts[what]++
}

func (sim *ends) transact(random *rand.Rand, lk *lock.Lock, key lock.Key) {
	held, _ := driver.FromContext(lk.Context())
	declines := random.IntN(3) == 0
	transaction := sim.overFaults(&vault{declines: declines, writes: func() { sim.applied[key]++ }})
	err := held.CompleteWith(lk.Context(), nil, transaction.Settle)
	if declines {
		sim.count("declined")
		return
	}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	if sim.applied[key] == 0 && err == nil {
		sim.t.Errorf("seed %d: the transaction of %v was not applied, but there is no error", sim.seed, key)
	}
	if err == nil {
		sim.counts["transaction"]++
	}
	if sim.applied[key] > 0 && errors.As(err, new(*lock.LostError)) && !errors.As(err, new(*lock.StoreError)) {
		sim.t.Errorf("seed %d: the transaction of %v was applied, but the error is %v", sim.seed, key, err)
	}
}

// handOver hands the lock over to an invocation that begins soon, or never.
func (sim *ends) handOver(random *rand.Rand, lk *lock.Lock, key lock.Key, fence int64) {
	h, err := lk.HandOver(context.Background(), time.Duration(4+random.IntN(6))*time.Second)
	if err != nil {
		return
	}
	if err := lk.Complete(); err != nil {
		sim.t.Errorf("seed %d: Complete after HandOver: %v", sim.seed, err)
	}
	sim.count("handed over")
	sim.resumeLater(random, h, key, fence)
}

func (sim *ends) resumeLater(random *rand.Rand, h lock.Ticket, key lock.Key, fence int64) {
	b, err := json.Marshal(h)
	if err != nil {
		sim.t.Error(err)
	}
	own := rand.New(rand.NewPCG(random.Uint64(), 1))
	sim.wg.Go(func() {
		var h lock.Ticket
		if err := json.Unmarshal(b, &h); err != nil {
			sim.t.Error(err)
		}
		time.Sleep(time.Duration(own.IntN(9000)) * time.Millisecond)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		lk, err := sim.locker(own).Resume(ctx, h)
		if err != nil {
			return
		}
		sim.count("resumed")
		if lk.Lease().Fence < fence { // it may be higher: a late copy of the claim raises it too
			sim.t.Errorf("seed %d: fence %d has become %d", sim.seed, fence, lk.Lease().Fence)
		}
		if own.IntN(4) == 0 {
			lk.Leave()
			sim.count("left")
			sim.resumeLater(own, h, key, fence)
			return
		}
		sim.work(own, lk, key, fence)
	})
}
