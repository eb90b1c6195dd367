package integration_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
)

const (
	faultedProcesses = 6
	faultedLease     = 4 * time.Second
	faultedGrace     = time.Second
	// faultsPerMille is how many of a thousand requests meet a fault.
	faultsPerMille = 200
	// turnsPerName is how many turns of a name, on average, are one history: as
	// many as porcupine can check. The long form makes several histories, each on a
	// server of its own, and tells the figures of each.
	turnsPerName = 100
)

// TestContentionUnderFaults lets six processes contend for names, while one
// request in five meets a fault of the network or the server (F1, F2, F3, F4,
// F5, F8, F9, F11). No two hold a name at the same time, fences rise, what the
// processes saw of each row is linearizable, and no row is ever held for a turn
// that was refused, has released its lock or has given up its claim.
//
// The faults are those of LAMBDALOCK_SEED; what meets them depends on the
// scheduling of the processes.
func TestContentionUnderFaults(t *testing.T) {
	for _, b := range backends {
		if b.faulted == 0 || testing.Short() && b.faultedShort == 0 {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel() // most of the time is spent waiting
			total, waiters := b.faulted, 40
			switch {
			case testing.Short():
				total, waiters = b.faultedShort, 16
			case b.waiters > 0:
				waiters = 2 * b.waiters
			}
			names := waiters * faultedProcesses * 2 / 5 // so that there is nearly always someone waiting
			seed, most := testSeed(t), names*turnsPerName
			for done := 0; done < total; done += most {
				t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
					contendUnderFaults(t, b, min(most, total-done), waiters, names, seed)
				})
				seed++
			}
		})
	}
}

func contendUnderFaults(t *testing.T, b backend, total, waiters, count int, seed uint64) {
	p := b.start(t)
	var names []string
	for i := range count {
		names = append(names, "/"+faultedName(i))
	}
	w := startWatcher(t, p, names)
	each := (total + faultedProcesses - 1) / faultedProcesses
	began := time.Now()
	r := runFaulted(t, task{Place: p, Turns: each, Waiters: waiters, Names: count, Seed: seed})
	took := time.Since(began)
	w.stop(t)

	forNobody, first := w.check(r.ends)
	began = time.Now()
	var clock *serverClock
	if b.ownClock {
		clock = &serverClock{late: b.lateEnd}
	}
	history := r.history(clock)
	result := check(history)
	t.Logf("seed %d: %d acquisitions of %d names in %v, %d requests, of which %d met a fault (%v)", seed, len(r.holds), count, took.Round(time.Millisecond), r.requests, r.faults(), r.met)
	t.Logf("history of %d operations, %d of unknown outcome and %d late copies, is %s (%v); %d readings of rows, %d held, %d for nobody; %d turns ended with an answer, %d without",
		len(r.ops), r.unknown, r.copies, result, time.Since(began).Round(time.Millisecond), w.readings, len(w.held), forNobody, r.ended, len(r.ends)-r.ended)
	if want := each * faultedProcesses; len(r.holds) != want {
		t.Errorf("%d holds, want %d", len(r.holds), want)
	}
	expect.OK(t, locktest.CheckHistory(r.holds))
	if result != porcupine.Ok {
		t.Errorf("the history is %s:\n%s", result, dispute(history))
	}
	if open := openTurns(r.ends); len(open) > 0 {
		t.Errorf("ended without giving up their claims: %v", open)
	}
	if forNobody > 0 {
		t.Errorf("%d readings found a name held for nobody: %s", forNobody, first)
	}
	if share := r.faults() * 1000 / max(1, r.requests); share < faultsPerMille/2 {
		t.Errorf("only %d of 1000 requests met a fault", share)
	}
	if t.Failed() {
		t.Logf("to play these faults again: LAMBDALOCK_SEED=%d", seed)
	}
}

// testSeed returns LAMBDALOCK_SEED, or a new one.
func testSeed(t *testing.T) uint64 {
	t.Helper()
	s := os.Getenv("LAMBDALOCK_SEED")
	if s == "" {
		return rand.Uint64N(1_000_000)
	}
	seed := expect.Value(strconv.ParseUint(s, 10, 64))(t)
	return seed
}

func faultedName(i int) string { return fmt.Sprint("faulted/", i) }

// faultedRun is what the children told.
type faultedRun struct {
	mu              sync.Mutex
	holds           []locktest.Hold
	ops             []operation
	ends            map[string]turnEnd
	met             map[string]int
	requests        int
	unknown, copies int
	ended           int // turns, with an answer to their last request
}

// runFaulted runs the processes.
func runFaulted(t *testing.T, do task) *faultedRun {
	r := &faultedRun{ends: map[string]turnEnd{}, met: map[string]int{}}
	var wg sync.WaitGroup
	for i := range faultedProcesses {
		do.Who, do.Number = fmt.Sprint("process ", i), i
		c := startChild(t, "faulted", do)
		wg.Go(func() {
			for {
				var l line
				if err := c.lines.Decode(&l); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Errorf("%s: %v", c.who, err)
					_ = c.cmd.Process.Kill() // it may be waiting for us to read on
					break
				}
				r.add(l)
			}
			if err := c.cmd.Wait(); err != nil {
				t.Errorf("%s: %v", c.who, err)
			}
		})
	}
	wg.Wait()
	return r
}

func (r *faultedRun) add(l line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case l.Op != nil:
		r.ops = append(r.ops, *l.Op)
		if l.Op.Unknown {
			r.unknown++
		}
		if l.Op.Copy {
			r.copies++
		}
	case l.Hold != nil:
		r.holds = append(r.holds, *l.Hold)
	case l.End != nil:
		r.ends[l.End.Holder] = *l.End
		if l.End.Left == leftNothing {
			r.ended++
		}
	}
	for name, n := range l.Fault {
		r.requests += n
		r.met[name] += n
	}
}

// faults returns how many requests met a fault.
func (r *faultedRun) faults() int { return r.requests - r.met[fault.None.String()] }

func (r *faultedRun) history(clock *serverClock) []porcupine.Operation {
	history := make([]porcupine.Operation, len(r.ops))
	for i, o := range r.ops {
		history[i] = o.toModel(clock)
	}
	return history
}

// faultyMix is that of real servers, in real time.
func faultyMix(seed uint64) fault.Mix {
	m := fault.Usual(seed, faultsPerMille)
	m.Delay, m.Late = 500*time.Millisecond, 3*time.Second
	return m
}

// contendFaulted is the part of a child that takes its turns over a network
// with faults.
func contendFaulted(t task) error {
	var mu sync.Mutex
	buffer := bufio.NewWriter(os.Stdout)
	out := json.NewEncoder(buffer)
	tell := func(l line) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(l) // the parent may have gone
	}
	plan := faultyMix(t.Seed).Client(uint64(t.Number))
	var late fault.Copies
	w := newWire(0)
	w.plan, w.late = plan, &late
	store, err := t.open(w)
	if err != nil {
		return err
	}
	c, err := newContender(t, newWitness(store, tell), tell)
	if err != nil {
		return err
	}
	var left atomic.Int64
	left.Store(int64(t.Turns))
	errs := make([]error, t.Waiters)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for errs[i] == nil && left.Add(-1) >= 0 {
				errs[i] = c.turn()
			}
		})
	}
	wg.Wait()
	late.Wait()
	met := map[string]int{}
	for f, n := range plan.Met() {
		met[f.String()] = n
	}
	tell(line{Fault: met})
	return errors.Join(append(errs, buffer.Flush())...)
}

// contender takes turns. Some lockers wait long for a name, some give up soon
// and some at the same time, and some renew their leases.
type contender struct {
	who     string
	names   int
	tell    func(line)
	store   *witness
	turns   atomic.Int64
	lockers []*lock.Locker
}

type turnKey struct{}

// turn is one attempt to use a name.
type turn struct {
	holder     string
	token      string
	unanswered bool        // a claim had no answer, or was rejected
	refused    []time.Time // the dates of the claims that were refused
	refusedBy  int64
}

func newContender(t task, store *witness, tell func(line)) (*contender, error) {
	c := &contender{who: t.Who, names: t.Names, tell: tell, store: store}
	for _, wait := range []time.Duration{0, 500 * time.Millisecond, 5 * time.Minute} {
		for _, mode := range []lock.LeaseMode{lock.FixedLease(faultedLease), lock.Heartbeat(faultedLease)} {
			l, err := lock.New(tokens{store}, &lock.Options{
				Lease: mode, Grace: faultedGrace, MaxWait: wait, Logger: discard,
				Holder: func(ctx context.Context) string { return ctx.Value(turnKey{}).(*turn).holder },
			})
			if err != nil {
				return nil, err
			}
			c.lockers = append(c.lockers, l)
		}
	}
	return c, nil
}

// tokens tells each turn which token it has, and how its claims were answered.
type tokens struct{ *witness }

// Acquire implements driver.Store.
func (s tokens) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	tn := ctx.Value(turnKey{}).(*turn)
	tn.token = c.Token
	row, ok, err := s.witness.Acquire(ctx, c)
	tn.unanswered = tn.unanswered || err != nil
	if err == nil && !ok {
		tn.refused, tn.refusedBy = append(tn.refused, c.Now), row.Fence
	}
	return row, ok, err
}

// turn tries to use a name until it was used once.
func (c *contender) turn() error {
	// A third of the names is mostly free, so that a copy of a claim that was given
	// up could take one.
	crowded := c.names * 2 / 3
	name := faultedName(rand.IntN(crowded))
	if rand.IntN(10) == 0 {
		name = faultedName(crowded + rand.IntN(c.names-crowded))
	}
	for {
		held, err := c.try(name)
		var failed *lock.StoreError
		switch {
		case held:
			return nil
		case err == nil, errors.Is(err, lock.ErrHeld), errors.Is(err, lock.ErrLost), errors.As(err, &failed) && failed.Action == "":
		default:
			return fmt.Errorf("acquire: %w", err)
		}
	}
}

func (c *contender) try(name string) (held bool, err error) {
	tn := &turn{holder: fmt.Sprintf("%s/%d", c.who, c.turns.Add(1))}
	defer func() { c.tell(line{End: &turnEnd{Holder: tn.holder, At: time.Now(), Left: c.store.left(tn.token)}}) }()
	ctx := context.WithValue(context.Background(), turnKey{}, tn)
	lk, err := c.lockers[rand.IntN(len(c.lockers))].Acquire(ctx, lock.Key{Name: name})
	if err != nil {
		return false, err
	}
	h := locktest.Hold{Name: name, Holder: tn.holder, Start: time.Now(), Fence: lk.Lease().Fence}
	work := time.Millisecond // so that an overlap would be seen
	if rand.IntN(200) == 0 {
		work = faultedLease / 2 // so that there are renewals
	}
	_ = delayFor(lk.Context(), work)
	h.End = time.Now()
	if until := lk.Lease().Until; until.Before(h.End) {
		h.End = until // it was stopped for longer than its lease
	}
	c.tell(line{Hold: &h})
	_ = lk.Release() // without an answer, the name is free when the lease has ended
	return true, nil
}
