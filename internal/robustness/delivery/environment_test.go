package delivery_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

const (
	// faulty of a thousand requests meet a fault.
	faulty = 30
	// farthest is how far a wall clock is from the true time, so that two differ by
	// less than the Grace of 2 s.
	farthest = 900 * time.Millisecond
)

// environment is one execution environment of the function: its clock and its
// connection to the store. It keeps nothing when it dies. Between invocations
// it is frozen, unless it is a managed instance.
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html
type environment struct {
	w      *world
	id     int
	random *rand.Rand
	clock  *simclock.Clock
	ahead  time.Duration // of the wall clock
	vault  driver.Store  // below the faults
	store  driver.Store  // above them
	died   chan struct{}
	life   context.Context // until it dies
	end    context.CancelFunc

	dead    bool
	active  map[*invocation]bool
	freezes int // in the middle of invocations
}

// grant is a claim of an invocation.
type grant struct {
	name      string
	event     bool           // it has an event to complete
	fences    map[int64]bool // each copy that the store applies raises the fence
	held      bool
	unsettled bool // a request that ends it failed
	refused   bool // by an answer, after which a copy of the claim may still come
	freezes   int  // of the environment, before it was granted
	run       *run // nil until the handler begins
}

func (w *world) newEnvironment() *environment {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.envs++
	e := &environment{
		w: w, id: w.envs, random: rand.New(rand.NewPCG(w.seed, 1<<32+uint64(w.envs))), died: make(chan struct{}),
		clock: simclock.New(0, 0), active: map[*invocation]bool{},
	}
	e.clock.Schedule(w.turns, uint64(w.envs), w.seed<<32+uint64(w.envs))
	e.life, e.end = context.WithCancel(context.Background())
	e.vault = &vault{w, w.open()}
	e.store = fault.NewStore(e.vault, fault.Usual(w.seed, faulty).Client(uint64(w.envs)), &w.late)
	return e
}

// setClock sets the wall clock. The caller holds w.mu.
func (e *environment) setClock() {
	ahead := time.Duration(e.random.Int64N(int64(2*farthest))) - farthest
	e.clock.Step(ahead - e.ahead)
	e.ahead = ahead
}

// freeze stops the process for d in the middle of what it does.
func (e *environment) freeze(d time.Duration) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	e.freezes++
	e.w.freezes++
	for inv := range e.active {
		for r := range inv.running {
			r.doubtful(time.Now())
		}
	}
	e.clock.Freeze()
	e.w.late.After(d, e.clock.Thaw)
}

// crash kills the environment in the middle of an invocation.
func (e *environment) crash() {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	if !e.dead {
		e.w.crashes++
		e.die()
	}
}

// die ends the environment: what its process does from then on reaches nobody.
// The caller holds w.mu.
func (e *environment) die() {
	if e.dead {
		return
	}
	e.dead = true
	for inv := range e.active {
		for r := range inv.running {
			e.w.end(r)
		}
		for _, r := range inv.runs {
			r.died = r.died || !r.reported
		}
		inv.cancel()
	}
	e.end()
	close(e.died)
	e.clock.Thaw() // what is left of it must not wait
}

var errConnection = errors.New("connection lost")

func gone() error {
	return &driver.Error{Store: "simulated", Err: errConnection}
}

// request makes one request of an invocation: it takes a moment, and nothing is
// sent or answered while the process is frozen, or once it is dead. It calls
// note with the answer that the process gets.
func (e *environment) request(ctx context.Context, op, token string, send func(*grant) (driver.Row, bool, error), note func(driver.Row, bool, error)) (driver.Row, bool, error) {
	e.clock.Awake()
	inv := invocationOf(ctx)
	e.w.mu.Lock()
	g := inv.grants[token]
	if inv.over && !e.dead {
		e.w.fail("a request for %s is sent after the answer", g.name)
	}
	dead := e.dead
	before, after := e.moment(), e.moment()
	e.w.mu.Unlock()
	if dead {
		return driver.Row{}, false, gone()
	}
	time.Sleep(before)
	e.clock.Turn(op + " " + token)
	row, ok, err := send(g)
	time.Sleep(after)
	e.clock.Turn("answer to " + op + " " + token)
	e.clock.Awake()
	e.w.trace("environment %d: %s of %s by %s: %v %+v %v", e.id, op, g.name, token, ok, row, err)
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	if e.dead {
		return driver.Row{}, false, gone()
	}
	note(row, ok, err)
	return row, ok, err
}

func (e *environment) moment() time.Duration {
	return time.Millisecond + time.Duration(e.random.Int64N(int64(longestDelay-time.Millisecond)))
}

// note changes what is known of a grant, which other records of the batch read.
func (e *environment) note(change func()) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	change()
}

// Acquire implements driver.Store. One in a thousand kills the environment,
// applied or not.
func (e *environment) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	inv := invocationOf(ctx)
	e.w.mu.Lock()
	if inv.grants[c.Token] == nil {
		inv.grants[c.Token] = &grant{name: c.Name, event: c.Event != "" || c.Order != "", fences: map[int64]bool{}}
	}
	death := e.random.IntN(2000)
	e.w.mu.Unlock()
	return e.request(ctx, "claim", c.Token, func(g *grant) (driver.Row, bool, error) {
		if death == 0 {
			e.crash()
			e.clock.Turn("crash of " + c.Token) // the contexts below end in goroutines of their own
		}
		sent := e.w.turns.Now()
		row, ok, err := e.store.Acquire(ctx, c)
		if e.w.turns.Now() != sent { // others may wake in the turn in which it arrives
			e.clock.Turn("granted " + c.Token)
		}
		e.note(func() { g.refused = g.refused || !ok && err == nil })
		if death == 1 {
			e.crash()
		}
		return row, ok, err
	}, func(row driver.Row, ok bool, err error) { inv.log.Claim(c, row, ok, err) })
}

// Settle implements driver.Store.
func (e *environment) Settle(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	return e.request(ctx, "settlement", s.Token, func(g *grant) (driver.Row, bool, error) {
		fate := succeeds
		if s.Memory != nil && g.run != nil {
			fate = g.run.fate
		}
		switch fate {
		case diesCompleting:
			e.crash()
			return driver.Row{}, false, gone()
		case diesCompleted:
			row, ok, err := e.vault.Settle(ctx, s)
			e.crash()
			return row, ok, err
		case denied:
			e.note(func() { g.unsettled = true }) // held until its lease ends, as promised
			return driver.Row{}, false, &driver.Error{Lasting: true, Store: "simulated", Answered: true, Unapplied: true, Err: errors.New("denied")}
		}
		row, ok, err := e.store.Settle(ctx, s)
		e.note(func() { g.unsettled = g.unsettled || err != nil })
		return row, ok, err
	}, func(row driver.Row, ok bool, err error) { invocationOf(ctx).log.Settlement(s, row, ok, err) })
}

// Renew implements driver.Store.
func (e *environment) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	inv := invocationOf(ctx)
	e.note(func() { inv.renewed = true })
	if !e.w.managed && time.Until(inv.deadline) > 3*time.Second { // clocks differ, and there are nested locks
		e.w.complain("a lease was renewed that lasts to the deadline, although that is %v away", time.Until(inv.deadline))
	}
	return e.request(ctx, "renewal", r.Token, func(*grant) (driver.Row, bool, error) { return e.store.Renew(ctx, r) },
		func(driver.Row, bool, error) { invocationOf(ctx).log.Renewal() })
}

// vault is the store below the faults. It notes what is applied.
type vault struct {
	w *world
	driver.Store
}

func (v *vault) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	row, ok, err := v.Store.Acquire(ctx, c)
	if inv := invocationOf(ctx); ok && err == nil {
		g := inv.grants[c.Token]
		if last := v.w.owners[c.Name]; last != nil && last != g {
			last.held = false // this is a takeover, unless it is false already
		}
		v.w.owners[c.Name] = g
		g.fences[row.Fence], g.held, g.freezes = true, true, inv.env.freezes
		switch {
		case !inv.over || g.unsettled || inv.env.dead:
		case g.refused:
			v.w.ghosts++
		default:
			v.w.fail("%s is granted to an invocation that has answered", g.name)
		}
	}
	return row, ok, err
}

func (v *vault) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	return v.Store.Renew(ctx, r)
}

func (v *vault) Settle(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	row, ok, err := v.Store.Settle(ctx, s)
	if !ok || err != nil {
		return row, ok, err
	}
	g := invocationOf(ctx).grants[s.Token]
	g.held = g.held && row.Token == s.Token
	if g.run != nil && g.event {
		v.w.rowReleased(g.run, s.Memory != nil)
	}
	return row, ok, err
}

// rowReleased notes that the row of a run's event is released. The caller holds
// w.mu.
func (w *world) rowReleased(r *run, completed bool) {
	switch {
	case !completed && r.effect && r.fate != failsAfter && !r.inv.panicked:
		w.fail("%s had its effect, and its lock is released without completion", r.event.id)
	case completed && !r.effect:
		w.fail("%s is completed without an effect", r.event.id)
	case completed && !r.completed: // else it is another lock of the same event
		r.completed = true
		r.event.completions++
		r.event.completedAt = time.Now()
		w.newest[r.event.resource] = max(w.newest[r.event.resource], r.event.place+1)
	}
}

// began notes that a handler runs under leases, of which one is for its event.
// The caller holds w.mu.
func (inv *invocation) began(r *run, leases []lock.Lease) {
	w := r.env.w
	inv.running[r] = true
	inv.runs = append(inv.runs, r)
	for _, lease := range leases {
		var of *grant
		for _, g := range inv.grants {
			if g.name == namespace+"/"+lease.Key.Name && g.fences[lease.Fence] {
				of = g
			}
		}
		if of == nil {
			w.fail("%s runs under a lock that the store did not give", r.event.id)
			continue
		}
		of.run = r
		r.late = r.late || of.freezes != r.env.freezes
		r.leases = append(r.leases, lease)
		if inv.keys[lease.Key] == r.event {
			r.lease = lease
		}
	}
	if r.lease.Fence == 0 {
		w.fail("%s runs without a lock of its own", r.event.id)
	}
}

// context returns the context of an invocation in the environment, whose clock
// gives it its deadline.
func (e *environment) context(inv *invocation) (context.Context, context.CancelFunc) {
	ctx := lambdacontext.NewContext(context.Background(), &lambdacontext.LambdaContext{AwsRequestID: strconv.Itoa(inv.number)})
	ctx = clock.With(context.WithValue(ctx, invocationKey{}, inv), e.clock)
	return e.clock.WithDeadlineCause(ctx, e.clock.Now().Add(timeout).Round(0), nil)
}
