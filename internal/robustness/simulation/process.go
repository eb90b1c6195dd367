package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/robustness/lawful"
	"github.com/lambdalock/lambdalock/internal/robustness/schedule"
	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// process is an execution environment, or any other process. It keeps nothing
// when it dies.
type process struct {
	sim    *simulation
	id     uint64 // of the client
	number uint64
	name   string // for traces
	store  driver.Store
	clock  *simclock.Clock
	ahead  time.Duration // that clock, at first
	// managed: the process has several invocations at a time, and nobody kills it
	// at a deadline, as on Lambda Managed Instances.
	managed bool
	// steps: the clock is set by any time, and the process is never frozen. A
	// freeze that falls together with a step back cannot be seen by any of its
	// clocks.
	steps bool

	freezes       atomic.Int64 // how often it was frozen
	interruptions atomic.Int64 // how often it was frozen, or its clock set
	interruptedAt atomic.Int64 // when, for the last time, by the true time
	dieAt         atomic.Int64 // the process dies at that request from now on; zero: not at a request

	life context.Context
	end  context.CancelCauseFunc

	mu      sync.Mutex
	lockers map[setup]*lock.Locker
	holds   []*hold // those of which it has not been frozen since
}

var errKilled = errors.New("the process was killed")

func (sim *simulation) start(client uint64, random *rand.Rand) *process {
	ahead := sim.offset(random, sim.c.Skew)
	p := &process{
		sim: sim, id: client, ahead: ahead, store: sim.open(client), clock: simclock.New(ahead, (random.Float64()-0.5)/5000),
		managed: random.IntN(3) == 0, lockers: map[setup]*lock.Locker{},
	}
	p.number = sim.processes.Add(1)
	p.name = fmt.Sprintf("process %d of client %d", p.number, client)
	p.clock.Schedule(sim.turns, p.number, random.Uint64())
	sim.trace("%s begins %v ahead", p.name, time.Until(clock.Wall(p.clock)))
	p.steps = sim.c.ServerClock && sim.c.Skew > lock.DefaultGrace && random.IntN(2) == 0
	p.life, p.end = context.WithCancelCause(clock.With(context.Background(), p.clock))
	return p
}

// offset returns how far a clock is ahead, if any two differ by less than skew.
// The drift comes on top.
func (sim *simulation) offset(random *rand.Rand, skew time.Duration) time.Duration {
	most := skew - 100*time.Millisecond
	return time.Duration(random.Int64N(int64(most))) - most/2
}

// onEnd is [context.AfterFunc] in the process.
func (p *process) onEnd(ctx context.Context, what string, f func()) (stop func() bool) {
	at := schedule.Point{Process: p.number, What: what, Since: p.sim.turns.Now()}
	return context.AfterFunc(ctx, func() {
		p.sim.turns.Wait(at)
		f()
	})
}

func (p *process) isDead() bool { return p.life.Err() != nil }

// kill ends the process. What its goroutines do from then on has no effect.
func (p *process) kill() {
	if p.isDead() {
		return
	}
	p.sim.count(func(r *report) { r.Kills++ })
	p.sim.trace("%s is killed", p.name)
	p.end(errKilled)
	p.clock.Thaw() // so that they can end
}

// freeze freezes the process for d, which may be longer than any lease.
func (p *process) freeze(d time.Duration) {
	if p.isDead() {
		return
	}
	p.sim.count(func(r *report) { r.Freezes++ })
	p.sim.trace("%s is frozen for %v", p.name, d)
	p.interrupted()
	p.clock.Freeze()
	p.mu.Lock()
	for _, h := range p.holds { // from now on it cannot stop in time
		h.setExempt()
	}
	p.holds = nil
	p.freezes.Add(1)
	p.mu.Unlock()
	time.Sleep(d)
	p.clock.Turn("thaws")
	p.clock.Thaw()
}

// injectFault may kill or freeze the process, or set its clock, during one
// invocation.
func (p *process) injectFault(random *rand.Rand) {
	after := time.Duration(random.IntN(6000)) * time.Millisecond
	var happens func()
	switch random.IntN(24) {
	case 0:
		happens = p.kill
	case 3:
		p.dieAt.Store(int64(1 + random.IntN(8)))
		return
	case 1:
		if p.steps {
			return
		}
		d := time.Duration(random.IntN(12000)) * time.Millisecond
		happens = func() { p.freeze(d) }
	case 2:
		ahead := p.sim.offset(random, p.sim.c.Skew)
		if p.sim.c.ServerClock && p.sim.c.Skew > lock.DefaultGrace && !p.steps {
			ahead = p.ahead + p.sim.offset(random, lock.DefaultGrace)/2
		}
		happens = func() { p.set(ahead) }
	default:
		return
	}
	p.sim.after(after, p.id, "fault", happens)
}

func (p *process) interrupted() {
	p.interruptions.Add(1)
	p.interruptedAt.Store(time.Now().UnixNano())
}

// since returns how many interruptions there were before now. One at this very
// instant may have come after the process read its clock.
func (p *process) since() int64 {
	n := p.interruptions.Load()
	if p.interruptedAt.Load() == time.Now().UnixNano() {
		n--
	}
	return n
}

// set sets the wall clock.
func (p *process) set(ahead time.Duration) {
	p.sim.trace("%s sets its clock %v ahead", p.name, ahead)
	p.interrupted()
	p.clock.Step(ahead - time.Until(clock.Wall(p.clock)))
}

// setup is how a Locker of the process is made.
type setup struct {
	lease lock.LeaseMode
	wait  time.Duration
	least time.Duration // HoldAtLeast
}

// options are those of a Locker of the process. Its holder is that of the
// history: the pid of the test would be a part of every request, and decide
// which of two requests has the first turn.
func (p *process) options(s setup) *lock.Options {
	return &lock.Options{
		Holder: func(context.Context) string { return p.name },
		Lease:  s.lease, MaxWait: s.wait, HoldAtLeast: s.least, RememberEvents: eventsPerName,
		Logger: slog.New(logger{}), Observe: observe,
	}
}

func (p *process) locker(s setup) *lock.Locker {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lockers[s] == nil {
		l, err := lock.New(&wire{p.store, p}, p.options(s))
		if err != nil {
			panic(err)
		}
		p.lockers[s] = l
	}
	return p.lockers[s]
}

// wire is the process's connection to the store. A frozen process
// neither sends a request nor sees an answer, and a dead one never does again.
type wire struct {
	store driver.Store
	p     *process
}

var errDead = &driver.Error{Lasting: true, Store: "simulated", Unapplied: true, Err: errKilled}

type answer struct {
	row     driver.Row
	ok      bool
	err     error
	freezes int64 // of the process, before it saw the answer
}

// String says nothing that a server chooses at random.
func (a *answer) String() string {
	e := (*driver.Error)(nil)
	switch {
	case errors.As(a.err, &e):
		return fmt.Sprintf("failed, answered %v, unapplied %v, lasting %v, conflict %v", e.Answered, e.Unapplied, e.Lasting, e.Conflict)
	case a.err != nil:
		return "failed with " + a.err.Error()
	}
	return fmt.Sprintf("%v %+v", a.ok, a.row)
}

// turn waits for the turn of a request or its answer.
func (w *wire) turn(what string, o ownership) { w.p.clock.Turn(what + " " + o.name + " " + o.token) }

func (w *wire) send(op string, o ownership, request func() answer) (a answer, unseen bool) {
	a, unseen = w.exchange(op, o, request)
	w.p.sim.trace("%s: %s of %s by %s: %v", w.p.name, op, o.name, o.token, &a)
	return a, unseen
}

func (w *wire) exchange(op string, o ownership, request func() answer) (a answer, unseen bool) {
	w.p.clock.Awake()
	if w.p.isDead() {
		return answer{err: errDead}, true
	}
	dies := w.p.dieAt.Load() > 0 && w.p.dieAt.Add(-1) == 0
	if dies && w.p.id%2 == 0 {
		w.p.kill()
		return answer{err: errDead}, true
	}
	sent := w.p.sim.turns.Now()
	a = request()
	w.p.sim.touched(o.name)
	if w.p.sim.turns.Now() != sent { // others may wake in the turn in which it arrives
		w.turn("answer to "+op, o)
	}
	if dies {
		w.p.kill()
	}
	a.freezes = w.p.freezes.Load()
	w.p.clock.Awake()
	if w.p.isDead() {
		return answer{err: errDead}, true
	}
	return a, false
}

// Acquire implements [driver.Store].
func (w *wire) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	claim := *c // the caller dates its claim anew
	w.turn("claim", ownership{c.Name, c.Token})
	o := w.p.sim.claims(ctx, &claim)
	sent, interruptions := time.Now(), w.p.since()
	a, unseen := w.send("claim", o, func() answer {
		row, ok, err := w.store.Acquire(ctx, &claim)
		return answer{row: row, ok: ok, err: err}
	})
	if !unseen {
		w.p.sim.claimed(o, sent, &a)
	}
	if inv := invocationOf(ctx); inv != nil {
		inv.freezes = a.freezes
		interruptions = w.p.sim.dated(inv, interruptions, claim.Now)
		w.p.sim.granted(inv, interruptions, &claim, &a)
	}
	return a.row, a.ok, a.err
}

// Renew implements [driver.Store].
func (w *wire) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	o := ownership{r.Name, r.Token}
	w.turn("renewal", o)
	if inv := invocationOf(ctx); inv != nil {
		w.p.sim.renews(inv, o)
	}
	a, _ := w.send("renewal", o, func() answer {
		row, ok, err := w.store.Renew(ctx, r)
		return answer{row: row, ok: ok, err: err}
	})
	if inv := invocationOf(ctx); inv != nil {
		w.p.sim.renewed(inv, r, &a)
	}
	return a.row, a.ok, a.err
}

// Join implements [driver.Line].
func (w *wire) Join(ctx context.Context, name string) (driver.Row, bool, error) {
	line, ok := w.store.(driver.Line)
	if !ok {
		return driver.Row{}, false, nil
	}
	o := ownership{name: name}
	w.turn("join", o)
	a, _ := w.send("join", o, func() answer {
		row, ok, err := line.Join(ctx, name)
		return answer{row: row, ok: ok, err: err}
	})
	return a.row, a.ok, a.err
}

// Settle implements [driver.Store].
func (w *wire) Settle(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	w.turn("settlement", ownership{s.Name, s.Token})
	o := w.p.sim.settles(s)
	a, unseen := w.send("settlement", o, func() answer {
		row, ok, err := w.store.Settle(ctx, s)
		return answer{row: row, ok: ok, err: err}
	})
	if !unseen {
		w.p.sim.answered(o, s, &a)
		if inv := invocationOf(ctx); inv != nil && a.err == nil && !a.ok {
			w.p.sim.unsettled(inv, o)
		}
	}
	return a.row, a.ok, a.err
}

// planned is what handlers, observers and log handlers panic with. Whatever
// panics with anything else has a bug.
type planned string

// observe checks what it is told, counts takeovers and lost leases, and panics
// where the invocation says so.
func observe(ctx context.Context, o lock.Observation) {
	inv := invocationOf(ctx)
	if inv == nil {
		return
	}
	if err := lawful.Check(o); err != nil {
		inv.p.sim.fail("%v", err)
	}
	switch o.Outcome {
	case lock.OutcomeTakenOver:
		inv.p.sim.count(func(r *report) { r.TakenOver++ })
	case lock.OutcomeLost:
		inv.p.sim.count(func(r *report) { r.LostLeases++ })
		inv.p.sim.lost(inv, o.Err)
	}
	if inv.observerPanics == o.Outcome {
		panic(planned("observer of " + o.Outcome))
	}
}

// logger is a log handler that panics where the invocation says so.
type logger struct{}

func (logger) Enabled(context.Context, slog.Level) bool { return true }

func (logger) Handle(ctx context.Context, r slog.Record) error {
	if inv := invocationOf(ctx); inv != nil && r.Message == "lambdalock: "+string(inv.loggerPanics) {
		panic(planned(r.Message))
	}
	return nil
}

func (l logger) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l logger) WithGroup(string) slog.Handler      { return l }
