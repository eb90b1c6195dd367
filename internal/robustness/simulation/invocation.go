package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

const (
	// timeout is that of the function. The platform kills what runs for longer, up
	// to killDelay later, or lets it live on.
	timeout   = 10 * time.Second
	killDelay = 500 * time.Millisecond

	eventsPerName = 12
	limitedName   = "limited"
	limit         = 2 // how many may hold limitedName at the same time
)

// invocation is one invocation of a function.
type invocation struct {
	p      *process
	random *rand.Rand
	claims map[ownership]bool // by any part of the invocation; guarded by the simulation's mutex
	// leases are the leases that it was told of; guarded by the simulation's mutex.
	leases map[ownership]*lease
	// dates are how many interruptions there were before the request of each date.
	dates map[time.Time]int64
	// freezes is how often the process was frozen before the last claim of this
	// invocation was answered.
	freezes int64

	classic        bool // the process has one invocation at a time
	livesOn        bool // and is not killed at the deadline
	ignores        bool // its handler does not heed the context
	observerPanics lock.Outcome
	loggerPanics   lock.Outcome
}

type invocationKey struct{}

func invocationOf(ctx context.Context) *invocation {
	inv, _ := ctx.Value(invocationKey{}).(*invocation)
	return inv
}

// turn runs one invocation. In a managed process the next one may begin before
// it has ended.
func (p *process) turn(random *rand.Rand) {
	p.injectFault(random)
	inv := &invocation{
		p: p, random: rand.New(rand.NewPCG(random.Uint64(), 0)), claims: map[ownership]bool{}, leases: map[ownership]*lease{}, dates: map[time.Time]int64{},
		ignores: random.IntN(8) == 0,
	}
	inv.choosePanics()
	if inv.livesOn = inv.random.IntN(2) == 0; inv.livesOn && inv.random.IntN(3) == 0 {
		inv.ignores = true
	}
	if p.managed {
		p.sim.after(0, p.id, "invocation", inv.run)
		return
	}
	inv.run()
}

func (inv *invocation) choosePanics() {
	outcomes := []lock.Outcome{
		lock.OutcomeAcquired, lock.OutcomeTakenOver, lock.OutcomeHeld, lock.OutcomeRenewed,
		lock.OutcomeReleased, lock.OutcomeLost, lock.OutcomeStoreFailed, lock.OutcomeCompleteFailed,
	}
	switch inv.random.IntN(16) {
	case 0:
		inv.observerPanics = outcomes[inv.random.IntN(len(outcomes))]
	case 1:
		inv.loggerPanics = outcomes[inv.random.IntN(len(outcomes))]
	}
}

// run runs the invocation under its deadline, which is by the platform's clock.
func (inv *invocation) run() {
	p := inv.p
	ctx, cancel := context.WithCancelCause(context.WithValue(p.life, invocationKey{}, inv))
	defer cancel(nil)
	if p.sim.c.Skew <= lock.DefaultGrace {
		deadline := time.Now().Add(timeout)
		var stop context.CancelFunc
		ctx, stop = p.clock.WithDeadlineCause(ctx, deadline, nil)
		defer stop()
		if inv.classic = !p.managed; inv.classic && !inv.livesOn {
			kill := time.AfterFunc(timeout+time.Duration(inv.random.Int64N(int64(killDelay))), func() {
				p.clock.Turn("deadline")
				p.kill()
			})
			defer kill.Stop()
		}
	}
	defer p.sim.ended(inv)
	defer func() {
		v := recover()
		if _, ok := v.(planned); v != nil && !ok {
			p.sim.fail("nobody planned the panic %v: %s", v, debug.Stack())
		}
		if v != nil && !p.isDead() {
			p.sim.count(func(r *report) { r.Panics++ })
		}
	}()
	p.clock.Awake()
	kind := inv.random.IntN(8)
	switch {
	case kind < 3:
		inv.wrapped(ctx)
	case kind == 3:
		inv.limited(ctx)
	case kind == 4:
		inv.several(ctx)
	default:
		inv.direct(ctx)
	}
}

func (inv *invocation) setup() setup {
	s := setup{wait: time.Duration(inv.random.IntN(2)) * 3 * time.Second}
	switch n := inv.random.IntN(3); {
	case n == 0 && inv.classic:
		s.lease = lock.UntilDeadline()
	case n == 1:
		s.lease = lock.FixedLease(5 * time.Second)
	default:
		s.lease = lock.Heartbeat(4 * time.Second)
	}
	if inv.random.IntN(8) == 0 && !inv.p.sim.c.NoCooldown {
		s.least = inv.p.sim.c.least()
	}
	return s
}

func (inv *invocation) name() string { return fmt.Sprint("n", inv.random.IntN(inv.p.sim.c.Names)) }

// key returns a name, and an event of it or none.
func (inv *invocation) key() lock.Key {
	k := lock.Key{Name: inv.name()}
	if inv.random.IntN(3) > 0 {
		k.Event = fmt.Sprint("e", inv.random.IntN(eventsPerName))
	}
	return k
}

// direct uses a Locker, and ends the lock in any way.
func (inv *invocation) direct(ctx context.Context) {
	s, key := inv.setup(), inv.key()
	lk, err := inv.p.locker(s).Acquire(ctx, key)
	inv.p.sim.asked(inv, key, err)
	if err != nil {
		return
	}
	defer func() { _ = lk.Release() }() // also if something panics
	err = inv.handle(lk.Context(), []lock.Key{key}, s.lease)
	if inv.random.IntN(4) == 0 {
		inv.nested(lk, key)
	}
	switch inv.random.IntN(12) {
	case 0:
		inv.p.kill()
	case 1, 2:
		_ = lk.Release()
	default:
		if err == nil {
			inv.complete(key, lk.Complete)
		}
	}
}

// nested locks another name under that of key, without waiting for it.
func (inv *invocation) nested(outer *lock.Lock, around lock.Key) {
	ctx := outer.Context()
	s, key := inv.setup(), inv.key()
	s.wait = 0
	err := inv.p.locker(s).Do(ctx, key, func(ctx context.Context) error {
		err := inv.handle(ctx, []lock.Key{key}, s.lease)
		if err == nil {
			inv.p.sim.works(key)
		}
		return err
	})
	sim := inv.p.sim
	sim.mu.Lock()
	forgotten := sim.isForgotten(&hold{key: around, fence: outer.Lease().Fence})
	sim.mu.Unlock()
	// Others may have had the name meanwhile if the clocks are beyond Grace or the
	// row went back.
	if key.Name == around.Name && err == nil && !sim.c.beyond() && !forgotten && !inv.p.isDead() && clock.Wall(inv.p.clock).Before(outer.Lease().Until.Add(-lock.DefaultGrace)) {
		sim.fail("%s was locked under itself", key.Name)
	}
}

// several locks several names together.
func (inv *invocation) several(ctx context.Context) {
	s := inv.setup()
	event := fmt.Sprint("set", inv.random.IntN(4))
	var keys []lock.Key
	for i := range inv.p.sim.c.Names {
		keys = append(keys, lock.Key{Name: fmt.Sprint("n", i), Event: event})
	}
	keys = keys[:2+inv.random.IntN(len(keys)-1)]
	inv.random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	set, err := inv.p.locker(s).AcquireAll(ctx, keys...)
	if err != nil {
		inv.p.sim.count(func(r *report) { r.Refused++ })
		return
	}
	inv.p.sim.count(func(r *report) { r.Acquired += len(keys) })
	defer func() { _ = set.Release() }()
	if err := inv.handle(set.Context(), keys, s.lease); err == nil && inv.random.IntN(4) > 0 {
		for _, key := range keys {
			inv.p.sim.works(key)
		}
		_ = set.Complete()
	}
}

// limited takes one of the slots of the limited name. Some do not know yet that
// there are several, as during a deployment.
func (inv *invocation) limited(ctx context.Context) {
	s, key := inv.setup(), lock.Key{Name: limitedName}
	lk, err := inv.p.locker(s).AcquireOneOf(ctx, key.Name, 1+inv.random.IntN(limit))
	inv.p.sim.asked(inv, key, err)
	if err != nil {
		return
	}
	defer func() { _ = lk.Release() }()
	_ = inv.handle(lk.Context(), []lock.Key{key}, s.lease)
}

// complete completes the event of key.
func (inv *invocation) complete(key lock.Key, complete func() error) {
	sim := inv.p.sim
	sim.works(key)
	sim.mu.Lock()
	rollbacks := sim.rollbacks(eventOf(key).name)
	sim.mu.Unlock()
	err := complete()
	sim.mu.Lock()
	defer sim.mu.Unlock()
	switch {
	case inv.p.isDead(), rollbacks != sim.rollbacks(eventOf(key).name):
	case err == nil:
		sim.confirmed(eventOf(key), "")
	default:
		sim.report.Lost++
	}
}

// wrapped is an invocation of a handler in the Config's wrapper: in two of them
// if it has two names.
func (inv *invocation) wrapped(ctx context.Context) {
	outer, inner := lock.Key{Name: "outer", Event: fmt.Sprint("e", inv.random.IntN(eventsPerName))}, inv.key()
	s, returned := inv.setup(), false
	fails, nested := inv.random.IntN(8), inner.Event == "" && inv.random.IntN(2) == 0
	keys := []lock.Key{inner}
	if nested {
		keys = append(keys, outer)
	}
	handler := func(ctx context.Context) error {
		inv.p.sim.count(func(r *report) { r.Acquired++ })
		if err := inv.handle(ctx, keys, s.lease); err != nil {
			return err
		}
		switch fails {
		case 0:
			return errors.New("failed")
		case 1:
			panic(planned("handler"))
		}
		for _, key := range keys {
			inv.p.sim.works(key)
		}
		returned = true
		return nil
	}
	for _, key := range keys {
		handler = inv.p.sim.c.Wrap(&wire{inv.p.store, inv.p}, inv.p.options(s), key, handler)
	}
	err := handler(ctx)
	switch {
	case inv.p.isDead():
	case err != nil:
		inv.p.sim.count(func(r *report) { r.Refused++ })
	case nested && !returned:
		inv.p.sim.acknowledged(outer)
	case !returned:
		inv.p.sim.acknowledged(inner)
	}
}

// skipCompleted returns a Wrapper that calls a method of a Locker and skips
// events that were completed.
func skipCompleted(do func(*lock.Locker, context.Context, lock.Key, func(context.Context) error) error) Wrapper {
	return func(store driver.Store, o *lock.Options, key lock.Key, handler func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			l, err := lock.New(store, o)
			if err != nil {
				panic(err)
			}
			if err := do(l, ctx, key, handler); !errors.Is(err, lock.ErrCompleted) {
				return err
			}
			return nil
		}
	}
}
