package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestOppositeOrders shows that callers who wait for each other's names never
// wait in a circle: every one of them gets all its names, whatever order it
// gives them in, also if several may hold a name.
func TestOppositeOrders(t *testing.T) {
	for _, limit := range []int{1, 2} {
		t.Run(fmt.Sprintf("limit %d", limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { oppositeOrders(t, limit) })
		})
	}
}

func oppositeOrders(t *testing.T, limit int) {
	f := newFixture(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	holders, most := map[string]int{}, 0
	count := func(keys []lock.Key, by int) {
		mu.Lock()
		defer mu.Unlock()
		for _, k := range keys {
			holders[k.Name] += by
			most = max(most, holders[k.Name])
		}
	}
	for i := range 100 {
		o := lock.Options{Lease: lock.Heartbeat(10 * time.Second), MaxWait: time.Hour, Limit: limit}
		l := skewed(f.locker(o), time.Duration(i%7)*100*time.Millisecond)
		random := rand.New(rand.NewPCG(1, uint64(i)))
		all.Go(func() {
			for range 3 {
				keys := someKeys(random, "")
				set, err := l.AcquireAll(t.Context(), keys...)
				if err != nil {
					t.Errorf("client %d: %v", i, err)
					return
				}
				count(keys, 1)
				time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
				count(keys, -1)
				if err := set.Complete(nil); err != nil {
					t.Errorf("client %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
	if most != limit {
		t.Errorf("%d held a name at the same time, want %d", most, limit)
	}
}

const severalNames = 10

// someKeys returns two to five keys with an event, in any order. All but the
// first may be without it.
func someKeys(random *rand.Rand, event string) []lock.Key {
	var some []lock.Key
	for _, n := range random.Perm(severalNames)[:2+random.IntN(4)] {
		k := lock.Key{Name: fmt.Sprintf("n%d", n), Event: event}
		if len(some) > 0 && random.IntN(4) == 0 {
			k.Event = ""
		}
		some = append(some, k)
	}
	return some
}

func holdsOf(set *lock.Locks, start, end time.Time) []locktest.Hold {
	var holds []locktest.Hold
	for _, l := range lock.Leases(set.Context()) {
		holds = append(holds, locktest.Hold{Name: l.Key.Name, Holder: l.Key.Event, Fence: l.Fence, Start: start, End: end})
	}
	return holds
}

// setClient connects one invocation to the network. Unlike client, it has
// several claims.
type setClient struct {
	*network
	sim    *setSimulation
	killed atomic.Bool // nothing is sent any more
	// killAfter is after how many releases and completions the invocation dies;
	// negative: not.
	killAfter int

	mu     sync.Mutex
	claims map[string]*claimState // by token
}

// claimState is what the invocation knows of one of its claims.
type claimState struct{ releasing, ended bool }

func (in *setClient) state(token string) *claimState {
	if in.claims[token] == nil {
		in.claims[token] = &claimState{}
	}
	return in.claims[token]
}

func (in *setClient) send(ctx context.Context, apply request) (driver.Row, bool, error) {
	if in.killed.Load() {
		return driver.Row{}, false, &driver.Error{Rejected: true, Err: errors.New("killed")}
	}
	return in.network.send(ctx, apply)
}

func (in *setClient) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	claim := *c // as it was sent: the engine dates its claim anew
	in.mu.Lock()
	s := in.state(claim.Token)
	in.mu.Unlock()
	return in.send(ctx, func(ctx context.Context) (driver.Row, bool, error) {
		in.mu.Lock()
		ended := s.ended
		in.mu.Unlock()
		row, ok, err := in.Store.Acquire(ctx, &claim)
		if ok && ended {
			in.sim.t.Errorf("seed %d: at %v a late claim got %q for an invocation that had ended", in.sim.seed, time.Now(), claim.Name)
		}
		return row, ok, err
	})
}

func (in *setClient) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	return in.send(ctx, func(ctx context.Context) (driver.Row, bool, error) { return in.Store.Renew(ctx, r) })
}

func (in *setClient) Release(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	in.mu.Lock()
	state := in.state(s.Token)
	state.releasing = true
	if !s.Abandon {
		if in.killAfter == 0 {
			in.killed.Store(true)
		}
		in.killAfter--
	}
	in.mu.Unlock()
	return in.send(ctx, func(ctx context.Context) (driver.Row, bool, error) {
		row, ok, err := in.Store.Release(ctx, s)
		if err == nil { // applied or not
			in.mu.Lock()
			state.ended = true
			in.mu.Unlock()
		}
		return row, ok, err
	})
}

// setSimulation is one simulated history of sets.
type setSimulation struct {
	t               *testing.T
	seed            uint64
	clients, events int
	network         *network

	mu        sync.Mutex
	holds     []locktest.Hold
	completed map[string]time.Time // the events whose completion the engine confirmed
	excused   map[string]bool      // tokens whose invocation was killed, or got no answer to its release
	runs      int
	crashes   int
}

// TestSimulationOfSets checks that sets keep P1 to P5 in simulated histories
// like those of TestSimulation: no two holders of a name overlap, no completed
// event runs again, and no name is held for nobody, at any moment.
func TestSimulationOfSets(t *testing.T) { // F1 to F6, F14, F18 to F21, F44
	t.Parallel()
	simulateSets(t, seeds(t, 10, 20), 100, 6, func() driver.Store { return memstore.New() })
}

// TestSimulationOfSetsOnDynamoDB does the same with the conditions of the
// DynamoDB store.
func TestSimulationOfSetsOnDynamoDB(t *testing.T) {
	t.Parallel()
	simulateSets(t, seeds(t, 2, 200), 20, 8, func() driver.Store { return openDynamo(t) })
}

func simulateSets(t *testing.T, seeds uint64, clients, rounds int, open func() driver.Store) {
	runs, crashes := 0, 0
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			sim := &setSimulation{t: t, seed: seed, clients: clients, events: clients * rounds, completed: map[string]time.Time{}, excused: map[string]bool{}}
			sim.network = &network{Store: open(), random: rand.New(rand.NewPCG(seed, 1))}
			sim.play(rounds)
			runs, crashes = runs+sim.runs, crashes+sim.crashes
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d histories, %d runs of the work, %d crashes", seeds, runs, crashes)
}

func (sim *setSimulation) play(rounds int) {
	sim.useEveryName(sim.network.Store) // from now on every row exists
	var wg sync.WaitGroup
	for client := range sim.clients {
		random := rand.New(rand.NewPCG(sim.seed, uint64(client+2)))
		// Any two clocks differ by less than Grace.
		skew := time.Duration(random.Int64N(int64(lock.DefaultGrace))) - lock.DefaultGrace/2
		wg.Go(func() {
			for range rounds {
				time.Sleep(time.Duration(random.IntN(2500*sim.clients)) * time.Millisecond)
				sim.invoke(random, skew)
			}
		})
	}
	wg.Wait()
	sim.nothingIsHeldForNobody()
	sim.network.late.Wait()
	sim.nothingIsHeldForNobody()
	if err := locktest.CheckHistory(sim.holds); err != nil {
		sim.t.Errorf("seed %d: %v", sim.seed, err)
	}
	sim.everythingIsFree()
}

// invoke runs one invocation, which may crash, also while it ends its locks.
func (sim *setSimulation) invoke(random *rand.Rand, skew time.Duration) {
	o := lock.Options{Logger: discard, MaxWait: time.Duration(random.IntN(3)) * 2 * time.Second}
	switch random.IntN(3) {
	case 0:
		o.Lease = lock.UntilDeadline()
	case 1:
		o.Lease = lock.FixedLease(6 * time.Second)
	case 2:
		o.Lease = lock.Heartbeat(4 * time.Second)
	}
	in := &setClient{network: sim.network, sim: sim, killAfter: -1, claims: map[string]*claimState{}}
	locker, err := lock.New(in, &o)
	if err != nil {
		sim.t.Error(err)
		return
	}
	skewed(locker, skew)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	defer sim.ended(in)
	// The same seed gives the same names for the same event.
	event := random.IntN(sim.events)
	set, err := locker.AcquireAll(ctx, someKeys(rand.New(rand.NewPCG(sim.seed, uint64(event))), fmt.Sprint("e", event))...)
	if err != nil {
		return
	}
	start := time.Now()
	sim.mayRun(fmt.Sprint("e", event), start)
	select {
	case <-time.After(time.Duration(random.IntN(2000)) * time.Millisecond):
	case <-set.Context().Done():
	}
	outcome := random.IntN(6)
	sim.ran(holdsOf(set, start, time.Now()), outcome <= 1)
	if outcome <= 1 {
		in.killAfter = random.IntN(5)
	}
	if outcome == 2 || outcome == 0 {
		_ = set.Release()
	} else if err := set.Complete(nil); err == nil {
		sim.confirm(fmt.Sprint("e", event))
	}
}

// ended notes that an invocation has ended, and checks that it holds nothing. A
// claim of it may hold a name until the lease ends if the invocation was
// killed, or if the release got no answer.
func (sim *setSimulation) ended(in *setClient) {
	in.mu.Lock()
	sim.mu.Lock()
	for token, s := range in.claims {
		switch {
		case s.ended:
		case in.killed.Load() || s.releasing:
			sim.excused[token] = true
		default:
			s.ended = true
		}
	}
	sim.mu.Unlock()
	in.mu.Unlock()
	for n := range severalNames {
		row := readRow(sim.t, sim.network.Store, fmt.Sprintf("/n%d", n))
		in.mu.Lock()
		s := in.claims[row.Token]
		held := s != nil && s.ended
		in.mu.Unlock()
		if held {
			sim.t.Errorf("seed %d: at %v n%d is held until %v by an invocation that has ended", sim.seed, time.Now(), n, row.Until)
		}
	}
}

func (sim *setSimulation) ran(holds []locktest.Hold, crash bool) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.holds = append(sim.holds, holds...)
	sim.runs++
	if crash {
		sim.crashes++
	}
}

func (sim *setSimulation) confirm(event string) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.completed[event] = time.Now()
}

// mayRun fails the test if the event's completion was confirmed before (P5).
func (sim *setSimulation) mayRun(event string, start time.Time) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	if at, ok := sim.completed[event]; ok {
		sim.t.Errorf("seed %d: %s ran at %v, although it was completed at %v", sim.seed, event, start, at)
	}
}

// nothingIsHeldForNobody runs before any lease has had the time to end (P4).
func (sim *setSimulation) nothingIsHeldForNobody() {
	for n := range severalNames {
		row := readRow(sim.t, sim.network.Store, fmt.Sprintf("/n%d", n))
		if row.Token != "" && !sim.excused[row.Token] {
			sim.t.Errorf("seed %d: at %v n%d is held until %v, and nobody holds it", sim.seed, time.Now(), n, row.Until)
		}
	}
}

// everythingIsFree acquires every name after the longest lease has ended (P4).
func (sim *setSimulation) everythingIsFree() {
	time.Sleep(15 * time.Second)
	sim.network.calm = true
	sim.useEveryName(sim.network)
}

func (sim *setSimulation) useEveryName(store driver.Store) {
	locker, err := lock.New(store, &lock.Options{Logger: discard})
	if err != nil {
		sim.t.Fatal(err)
	}
	for n := range severalNames {
		if err := locker.Do(context.Background(), lock.Key{Name: fmt.Sprintf("n%d", n)}, nothing); err != nil {
			sim.t.Errorf("seed %d: %v", sim.seed, err)
		}
	}
}
