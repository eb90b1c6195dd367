package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/lawful"
	"github.com/lambdalock/lambdalock/internal/robustness/schedule"
	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Bursts lets bursts of events of one name come to processes that coalesce
// them, while requests meet faults, acknowledgements are lost and processes
// die. For each event a whole run must begin after it came, although most are
// acknowledged without one: nothing that was acknowledged comes again. No two
// runs overlap.
func Bursts(t *testing.T, open Opener, c Config) {
	t.Helper()
	c = c.withDefaults()
	c.Skew = min(c.Skew, lock.DefaultGrace) // it counts on every store
	coalesced, able := 0, true
	Play(t, c, func(t *testing.T, seed uint64, note func(string)) {
		n, ok := burst(t, open, c, seed, note, func(what string) { t.Errorf("seed %d: %s", seed, what) })
		coalesced += n
		able = able && ok
	})
	switch {
	case !able:
		t.Skip("the store is not a driver.Coalescer")
	case coalesced == 0:
		t.Error("no event was coalesced")
	}
}

const (
	burstEvents  = 24
	perBurst     = 8
	betweenBurst = 12 * time.Second
)

// bursts is one history while it is played.
type bursts struct {
	c         Config
	stores    []driver.Store // one for each client
	turns     *schedule.Scheduler
	note      func(string)
	violation func(string)
	wg        sync.WaitGroup

	mu        sync.Mutex
	processes uint64
	gone      map[string]bool // events that do not come again
	coalesced int
	runs      []span
}

// span is the time of a run that succeeded, or of any other.
type span struct {
	start, end time.Time
	succeeded  bool
}

func burst(t *testing.T, open Opener, c Config, seed uint64, note, violation func(string)) (coalesced int, able bool) {
	b := &bursts{c: c, turns: schedule.Start(seed), note: note, violation: violation, gone: map[string]bool{}}
	defer b.turns.Stop()
	late := fault.Copies{Turns: b.turns}
	mix := fault.Usual(seed, c.PerMille)
	mix.Late = c.LateBy
	client := open(t, &History{Seed: seed, Late: &late, turns: b.turns, mix: mix, streams: map[uint64]*fault.Stream{}})
	for i := range c.Clients {
		b.stores = append(b.stores, client(uint64(i)+1))
	}
	if _, ok := b.stores[0].(driver.Coalescer); !ok {
		return 0, false
	}
	random := rand.New(rand.NewPCG(seed, 11))
	came := map[string]time.Time{}
	for i := range uint64(burstEvents) {
		e := fmt.Sprint("e", i)
		after := time.Duration(i/perBurst)*betweenBurst + time.Duration(random.IntN(3000))*time.Millisecond
		came[e] = time.Now().Add(after)
		own := rand.New(rand.NewPCG(seed, i+100))
		b.after(i, after, func() { b.deliver(e, i, own, 0) })
	}
	b.wg.Wait()
	late.Wait()
	for e, at := range came {
		served := false
		for _, r := range b.runs {
			served = served || r.succeeded && !r.start.Before(at)
		}
		if !served || !b.gone[e] {
			violation(fmt.Sprintf("%s came at %v, acknowledged %v, and no whole run has begun since", e, at, b.gone[e]))
		}
	}
	for i, r := range b.runs {
		for _, other := range b.runs[:i] {
			if r.start.Before(other.end) && other.start.Before(r.end) {
				violation(fmt.Sprintf("%v and %v overlap", r, other))
			}
		}
	}
	return b.coalesced, true
}

// after does what happens to a client then.
func (b *bursts) after(client uint64, d time.Duration, do func()) {
	at := schedule.Point{Process: client, What: "delivery", Due: int64(d), Since: b.turns.Now()}
	b.wg.Go(func() {
		time.Sleep(d)
		b.turns.Wait(at)
		do()
	})
}

// deliver delivers an event, and again while it is not acknowledged.
func (b *bursts) deliver(e string, client uint64, random *rand.Rand, times int) {
	err := b.invoke(e, b.stores[client%uint64(b.c.Clients)], random)
	if b.note != nil {
		b.note(fmt.Sprintf("%v: %s ends with %v", time.Now(), e, err))
	}
	b.mu.Lock()
	lost := random.IntN(10) == 0 // the acknowledgement
	b.gone[e] = err == nil && !lost
	gone := b.gone[e]
	b.mu.Unlock()
	if gone || times == 100 {
		return
	}
	b.after(client, time.Duration(500+random.IntN(4000))*time.Millisecond, func() { b.deliver(e, client, random, times+1) })
}

func (b *bursts) observe(_ context.Context, o lock.Observation) {
	if err := lawful.Check(o); err != nil {
		b.violation(err.Error())
	}
	if o.Outcome == lock.OutcomeCoalesced {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.coalesced++
	}
}

var errDies = errors.New("the process has died")

// invoke handles an event in a new process, which may die.
func (b *bursts) invoke(e string, store driver.Store, random *rand.Rand) error {
	b.mu.Lock()
	b.processes++
	id := b.processes
	b.mu.Unlock()
	skew := b.c.Skew
	at := simclock.New(time.Duration(random.Int64N(int64(skew)))-skew/2, 0)
	at.Schedule(b.turns, id, random.Uint64())
	p := &burstProcess{store: store, clock: at, b: b, lastRequest: -1}
	if random.IntN(5) == 0 {
		p.lastRequest = random.IntN(5)
	}
	modes := []lock.LeaseMode{lock.UntilDeadline(), lock.FixedLease(5 * time.Second), lock.Heartbeat(4 * time.Second)}
	options := &lock.Options{Lease: modes[random.IntN(len(modes))], Logger: quiet, Observe: b.observe}
	ctx, cancel := at.WithDeadlineCause(clock.With(context.Background(), at), at.Now().Add(10*time.Second), nil)
	defer cancel()
	err := b.c.Latest(p, options, lock.Key{Name: "n0", Event: e}, func(ctx context.Context) error {
		r := span{start: time.Now()}
		err := at.Sleep(ctx, time.Duration(random.IntN(2500))*time.Millisecond)
		if err == nil && p.dead {
			err = errDies
		}
		if err == nil && random.IntN(8) == 0 {
			err = errors.New("the handler fails")
		}
		r.end, r.succeeded = time.Now(), err == nil
		b.mu.Lock()
		defer b.mu.Unlock()
		b.runs = append(b.runs, r)
		return err
	})(ctx)
	if p.dead {
		return errDies
	}
	return err
}

// burstProcess is the connection of a process to its store, until it dies.
type burstProcess struct {
	store       driver.Store
	clock       *simclock.Clock
	b           *bursts
	requests    int
	lastRequest int // at which it dies; negative: it does not
	dead        bool
}

func (p *burstProcess) send(what, name, token string, request func() (driver.Row, bool, error)) (driver.Row, bool, error) {
	if p.dead {
		return driver.Row{}, false, errDead
	}
	p.clock.Turn(what + " " + name + " " + token)
	row, ok, err := request()
	p.clock.Turn("answer to " + what + " " + name + " " + token)
	if p.b.note != nil {
		p.b.note(fmt.Sprintf("%v: %s %s by %s: %v %v %+v", time.Now(), what, name, token, ok, err, row))
	}
	if p.requests++; p.requests-1 == p.lastRequest {
		p.dead = true
		return driver.Row{}, false, errDead
	}
	return row, ok, err
}

// Acquire implements [driver.Store].
func (p *burstProcess) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	claim := *c // the caller dates its claim anew
	return p.send("claim", c.Name, c.Token, func() (driver.Row, bool, error) { return p.store.Acquire(ctx, &claim) })
}

// Renew implements [driver.Store].
func (p *burstProcess) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	return p.send("renewal", r.Name, r.Token, func() (driver.Row, bool, error) { return p.store.Renew(ctx, r) })
}

// Settle implements [driver.Store].
func (p *burstProcess) Settle(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	return p.send("settlement", s.Name, s.Token, func() (driver.Row, bool, error) { return p.store.Settle(ctx, s) })
}

// Mark implements [driver.Coalescer].
func (p *burstProcess) Mark(ctx context.Context, m *driver.Mark) (driver.Row, bool, error) {
	return p.send("mark", m.Name, m.Token, func() (driver.Row, bool, error) { return p.store.(driver.Coalescer).Mark(ctx, m) })
}
