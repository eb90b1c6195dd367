package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/schedule"
	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// ends is a simulated history in which locks end in every way: by transactions,
// by several goroutines at the same time, and with their process.
type ends struct {
	t     *testing.T
	seed  uint64
	store *memstore.Store
	plan  *fault.Stream
	turns *schedule.Scheduler
	late  fault.Copies
	note  func(line string) // what happens; nil: nobody wants to know
	wg    sync.WaitGroup

	mu        sync.Mutex
	runs      []run
	applied   map[lock.Key]int  // how often the writes of an event's transaction were applied
	completed map[lock.Key]bool // as the engine confirmed it
	over      map[string]bool   // tokens whose lock is known to have ended
	processes uint64
	counts    map[string]int
}

// run is the time in which the work of an invocation runs under a name.
type run struct {
	name       string
	fence      int64
	start, end time.Time
}

// recordingStore is the store below the faults, which notes what is applied.
type recordingStore struct {
	driver.Store
	sim      *ends
	declines bool   // settlements
	writes   func() // what a transaction writes with its settlement; nil: nothing
}

// Acquire implements [driver.Store].
func (v *recordingStore) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	row, ok, err := v.Store.Acquire(ctx, c)
	v.sim.mu.Lock()
	defer v.sim.mu.Unlock()
	if ok && v.sim.over[c.Token] {
		v.sim.t.Errorf("seed %d: %v: a late claim got %s for a lock that had ended", v.sim.seed, time.Now(), c.Name)
	}
	return row, ok, err
}

// Settle implements [driver.Store].
func (v *recordingStore) Settle(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	if v.declines {
		return driver.Row{}, false, &driver.Error{Lasting: true, Answered: true, Unapplied: true, Err: errors.New("declined")}
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

// overFaults returns v behind the network, as the process with that clock sees
// it.
func (sim *ends) overFaults(c *simclock.Clock, v *recordingStore) driver.Store {
	v.Store, v.sim = sim.store, sim
	// Its answers arrive one after the other.
	return fault.Hooks{Store: fault.NewStore(v, sim.plan, &sim.late), Each: func(ctx context.Context, r fault.Request) (driver.Row, bool, error) {
		row, ok, err := r.Send(ctx)
		c.Turn("answer about " + r.Name + " to " + r.Token)
		if sim.note != nil {
			sim.note(fmt.Sprintf("%v: %s by %s: %v %v %+v", time.Now(), r.Name, r.Token, ok, err, row))
		}
		return row, ok, err
	}}
}

// TestSimulationOfEnds checks in simulated histories that no two invocations
// work under one name at the same time, that the writes of a transaction are
// applied once and if the engine says so, that no completed event runs again,
// and that every name is free in the end.
func TestSimulationOfEnds(t *testing.T) { // F1 to F6, F14, F17, F19, F21, F44
	t.Parallel()
	counts := map[string]int{}
	simulation.Play(t, simulation.Config{Histories: 60, Share: 2}, func(t *testing.T, seed uint64, note func(string)) {
		playEnds(t, seed, counts, note)
	})
	t.Log(counts)
	if counts["histories"] < 10 {
		return
	}
	for _, what := range []string{"transaction", "declined", "killed"} {
		if counts[what] == 0 {
			t.Errorf("none was %s", what)
		}
	}
}

// TestSimulationOfEndsReplays shows that a seed brings the same history back.
func TestSimulationOfEndsReplays(t *testing.T) {
	t.Parallel()
	simulation.CheckReplay(t, simulation.Config{Histories: 5, Share: 20}, func(t *testing.T, seed uint64, note func(string)) {
		playEnds(t, seed, map[string]int{}, note)
	})
}

func playEnds(t *testing.T, seed uint64, counts map[string]int, note func(string)) {
	sim := &ends{
		t: t, seed: seed, store: memstore.New(), plan: fault.Usual(seed, 300).Client(1), turns: schedule.Start(seed), note: note,
		applied: map[lock.Key]int{}, completed: map[lock.Key]bool{}, over: map[string]bool{}, counts: counts,
	}
	defer sim.turns.Stop()
	sim.plan.Turns, sim.late.Turns = sim.turns, sim.turns
	sim.count("histories")
	sim.play()
}

// after does what happens to the client then.
func (sim *ends) after(random *rand.Rand, client uint64, longest time.Duration, do func()) {
	d := time.Duration(random.Int64N(int64(longest/time.Millisecond))) * time.Millisecond
	at := schedule.Point{Process: client, What: "after", Due: int64(d), Since: sim.turns.Now()}
	sim.wg.Go(func() {
		time.Sleep(d)
		sim.turns.Wait(at)
		do()
	})
}

func (sim *ends) play() {
	for client := range uint64(6) {
		random := rand.New(rand.NewPCG(sim.seed, client+2))
		turns := 15
		var next func()
		next = func() {
			sim.invoke(random)
			if turns--; turns > 0 {
				sim.after(random, client, 3*time.Second, next)
			}
		}
		sim.after(random, client, 3*time.Second, next)
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

// process returns a Locker of a new process, and a context for ten seconds.
func (sim *ends) process(random *rand.Rand) (onClock, context.Context, context.CancelFunc) {
	c := simclock.New(time.Duration(random.Int64N(int64(lock.DefaultGrace)))-lock.DefaultGrace/2, 0)
	sim.processes++
	c.Schedule(sim.turns, sim.processes, random.Uint64())
	modes := []lock.LeaseMode{lock.UntilDeadline(), lock.FixedLease(6 * time.Second), lock.Heartbeat(4 * time.Second)}
	name := fmt.Sprint("process ", sim.processes)
	o := lock.Options{
		Logger: discard, MaxWait: time.Duration(random.IntN(2)) * 3 * time.Second, Lease: modes[random.IntN(len(modes))],
		Holder: func(context.Context) string { return name },
	}
	l, err := lock.New(sim.overFaults(c, &recordingStore{}), &o)
	if err != nil {
		sim.t.Fatal(err)
	}
	ctx, cancel := c.WithDeadlineCause(context.Background(), time.Now().Add(10*time.Second), nil)
	return onClock{l, c}, ctx, cancel
}

func (sim *ends) invoke(random *rand.Rand) {
	key := lock.Key{Name: fmt.Sprint("n", random.IntN(2)), Event: fmt.Sprint("e", random.IntN(40))}
	p, ctx, cancel := sim.process(random)
	defer cancel()
	lk, err := p.Acquire(ctx, key)
	if err != nil {
		return
	}
	sim.work(random, p.clock, lk, key)
}

// work works and then ends the lock in some way.
func (sim *ends) work(random *rand.Rand, c *simclock.Clock, lk *lock.Lock, key lock.Key) {
	start := time.Now()
	sim.mu.Lock()
	if sim.completed[key] || sim.applied[key] > 0 {
		sim.t.Errorf("seed %d: %v runs again at %v", sim.seed, key, start)
	}
	sim.mu.Unlock()
	_ = c.Sleep(lk.Context(), time.Duration(random.IntN(4000))*time.Millisecond)
	sim.mu.Lock()
	sim.runs = append(sim.runs, run{key.Name, lk.Lease().Fence, start, time.Now()})
	sim.mu.Unlock()
	switch random.IntN(5) {
	case 0:
		_ = lk.Release()
	case 1:
		sim.completes(key, lk.Complete())
	case 2, 3:
		if random.IntN(2) == 0 {
			end := []func(){func() { _ = lk.Release() }, lk.Kill}[random.IntN(2)]
			sim.after(random, 0, 1500*time.Millisecond, end)
		}
		sim.transact(random, c, lk, key)
		_ = lk.Release()
	default:
		lk.Kill()
		sim.count("killed")
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

func (sim *ends) transact(random *rand.Rand, c *simclock.Clock, lk *lock.Lock, key lock.Key) {
	held, _ := driver.FromContext(lk.Context())
	declines := random.IntN(3) == 0
	transaction := sim.overFaults(c, &recordingStore{declines: declines, writes: func() { sim.applied[key]++ }})
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
