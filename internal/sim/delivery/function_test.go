package delivery

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

const (
	timeout = 30 * time.Second // of the function
	// lastStart is how long before the deadline the middleware starts no more
	// handlers: the reserve, and the least time that a handler must have.
	lastStart = 1100 * time.Millisecond
	namespace = "delivery"
	// longestDelay of a request to the store, and of an answer.
	longestDelay = 5 * time.Millisecond
)

type invocationKey struct{}

// invocation is one delivery to an environment.
type invocation struct {
	env      *environment
	events   []*event
	deadline time.Time
	cancel   context.CancelFunc
	keys     map[lock.Key]*event
	reasons  map[*event]string // why an event may come back
}

// observe notes why the middleware did not run a handler.
func (w *world) observe(ctx context.Context, o lock.Observation) {
	inv, _ := ctx.Value(invocationKey{}).(*invocation)
	if inv == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e := inv.keys[o.Key]
	switch o.Outcome {
	case lock.OutcomeHeld:
		w.held++
		if e.completions > 0 && !inv.env.dead && time.Since(e.completedAt) > longestDelay {
			w.fail("%s is held, although it is completed", e.id)
		}
		if g := inv.env.latest[namespace+"/"+o.Key.Name]; g != nil && g.held {
			w.fail("%s is held by its own batch", e.id)
		}
	case lock.OutcomeStoreFailed, lock.OutcomeLost:
	default:
		return
	}
	inv.reasons[e] = string(o.Outcome)
}

// keyed tells the world which event a key stands for.
func keyed[R any](w *world, key keyfuncs.Func[R], id func(R) string) keyfuncs.Func[R] {
	return func(ctx context.Context, r R) (lock.Key, error) {
		k, err := key(ctx, r)
		inv := ctx.Value(invocationKey{}).(*invocation)
		w.mu.Lock()
		defer w.mu.Unlock()
		e := w.byID[id(r)]
		inv.keys[k] = e
		if err != nil {
			inv.reasons[e] = "no key"
		}
		return k, err
	}
}

// function is a Lambda function, with as many environments as it needs at a
// time.
type function[E, A any] struct {
	w    *world
	wrap func(...middleware.Option) func(context.Context, E) (A, error)
	with []middleware.Option

	mu   sync.Mutex
	idle []*process[E, A]
}

type process[E, A any] struct {
	*environment
	handler func(context.Context, E) (A, error)
}

// start returns an idle environment, or starts one, which wraps the handler
// anew.
func (f *function[E, A]) start() *process[E, A] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.idle); n > 0 {
		p := f.idle[n-1]
		f.idle = f.idle[:n-1]
		return p
	}
	f.w.mu.Lock()
	f.w.envs++
	id := f.w.envs
	f.w.mu.Unlock()
	e := &environment{
		w: f.w, id: id, random: rand.New(rand.NewPCG(f.w.seed, 1<<32+uint64(id))), died: make(chan struct{}),
		grants: map[string]*grant{}, latest: map[string]*grant{}, open: map[*run]bool{},
	}
	options := append([]middleware.Option{
		middleware.Store(e), middleware.Namespace(namespace), middleware.Observe(f.w.observe),
		middleware.Logger(slog.New(slog.DiscardHandler)),
	}, f.with...)
	return &process[E, A]{environment: e, handler: f.wrap(options...)}
}

// outcome is what the source learns of an invocation.
type outcome int

const (
	answered outcome = iota
	refused          // the function returned an error
	vanished         // no answer: crash, timeout
)

// invoke delivers e. It calls judge with an answer before that can get lost.
func (f *function[E, A]) invoke(records []*event, e E, judge func(*invocation, A, error)) (A, outcome) {
	p := f.start()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	inv := &invocation{env: p.environment, events: records, cancel: cancel, deadline: time.Now().Add(timeout), keys: map[lock.Key]*event{}, reasons: map[*event]string{}}
	f.w.mu.Lock()
	p.inv = inv
	clear(p.grants) // of the invocation before
	clear(p.latest)
	f.w.deliveries += len(records)
	for _, r := range records {
		r.deliveries++
	}
	f.w.mu.Unlock()
	answer, err, alive := f.call(context.WithValue(ctx, invocationKey{}, inv), p, e)
	if !alive {
		// The source learns of a dead process at once, or at the deadline.
		if f.w.roll(2) == 0 {
			time.Sleep(time.Until(inv.deadline))
		}
		var none A
		return none, vanished
	}
	f.w.mu.Lock()
	for r := range p.open {
		if r.effect {
			f.w.fail("%s had its effect, and the function answered without completing it", r.event.id)
		}
	}
	f.w.mu.Unlock()
	judge(inv, answer, err)
	f.mu.Lock()
	f.idle = append(f.idle, p)
	f.mu.Unlock()
	switch {
	case f.w.roll(200) == 0:
		f.w.mu.Lock()
		f.w.lostAnswers += len(records)
		f.w.mu.Unlock()
		return answer, vanished
	case err != nil:
		return answer, refused
	}
	return answer, answered
}

// call runs the handler until it returns or its environment dies, at the latest
// at the deadline. A panic ends the environment.
// https://docs.aws.amazon.com/lambda/latest/dg/golang-exceptions.html
func (f *function[E, A]) call(ctx context.Context, p *process[E, A], e E) (A, error, bool) {
	var answer A
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if recover() != nil {
				p.crash()
			}
		}()
		a, e := p.handler(ctx, e)
		answer, err = a, e
	}()
	kill := time.NewTimer(timeout)
	defer kill.Stop()
	select {
	case <-done:
	case <-p.died:
	case <-kill.C:
	}
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	select {
	case <-done:
	default:
		if !p.dead {
			f.w.timeouts++
			p.die()
		}
	}
	if p.dead {
		var none A
		return none, nil, false
	}
	return answer, err, true
}
