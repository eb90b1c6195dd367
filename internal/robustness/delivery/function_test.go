package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/telemetry/emf"
)

const (
	timeout = 30 * time.Second // of the function
	// lastStart is how long before the deadline the middleware starts no more
	// handlers: the reserve, and the least time that a handler must have.
	lastStart = 1100 * time.Millisecond
	namespace = "delivery"
	// longestDelay of a request to the store, and of an answer, without a fault.
	longestDelay = 5 * time.Millisecond
	// longestAnswer is how old an answer may be when it is reported: it may have
	// taken the second of an attempt, and a waiter may have slept since.
	longestAnswer = 5 * time.Second
)

type invocationKey struct{}

// invocation is one delivery to an environment.
type invocation struct {
	env      *environment
	number   int
	events   []*event
	deadline time.Time
	cancel   context.CancelFunc
	keys     map[lock.Key]*event
	reasons  map[*event]string // why an event may come back
	grants   map[string]*grant // by token
	running  map[*run]bool
	runs     []*run
	panicked bool // an observer or a log handler
	over     bool // the handler has returned
	renewed  bool // one of its leases
	metrics
}

func invocationOf(ctx context.Context) *invocation {
	inv, _ := ctx.Value(invocationKey{}).(*invocation)
	return inv
}

// turn waits for the turn of a part of the invocation.
func (inv *invocation) turn(what string) { inv.env.clock.Turn(fmt.Sprint(what, " of ", inv.number)) }

// runOf returns the last run of an event in the invocation, or nil.
func (inv *invocation) runOf(e *event) *run {
	for _, r := range slices.Backward(inv.runs) {
		if r.event == e {
			return r
		}
	}
	return nil
}

// observe notes what the middleware reports, and panics at times.
func (w *world) observe(ctx context.Context, o lock.Observation) {
	inv := invocationOf(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	inv.metrics.observe(o)
	about := inv.events
	if e := inv.keys[o.Key]; e != nil {
		about = []*event{e}
		w.compare(inv, e, o)
	}
	switch o.Outcome {
	case lock.OutcomeHeld:
		w.held++
		fallthrough
	case lock.OutcomeStoreFailed, lock.OutcomeLost:
		for _, e := range about {
			inv.reasons[e] = string(o.Outcome)
		}
	}
	if p := (*middleware.PanicError)(nil); errors.As(o.Err, &p) {
		w.panicked(p.Value, p.Stack)
	}
	inv.panicAtTimes()
}

// panicked checks that a panic is a planned one, and not one of the code under
// test. The caller holds w.mu.
func (w *world) panicked(v any, stack []byte) {
	if v != any(errCallback) && v != any(errTransient) {
		w.fail("nobody planned the panic %v: %s", v, stack)
	}
}

// compare compares an observation with what happened to the event. The caller
// holds w.mu.
func (w *world) compare(inv *invocation, e *event, o lock.Observation) {
	r := inv.runOf(e)
	switch o.Outcome {
	case lock.OutcomeHeld:
		if w.single && e.completions > 0 && !inv.env.dead && inv.env.freezes == 0 && time.Since(e.completedAt) > longestAnswer {
			w.fail("%s is held, although it is completed", e.id)
		}
		for _, g := range inv.grants {
			if g.held && !g.unsettled && g.name == namespace+"/"+o.Key.Name {
				w.fail("%s is held by its own batch", e.id)
			}
		}
	case lock.OutcomeLost:
		if r != nil {
			r.doubtful(time.Now())
			r.reported = true
		}
	case lock.OutcomeCompleteFailed:
		r.reported = true
	case lock.OutcomeReleased:
		if o.Completed && e.completions == 0 {
			w.fail("%s is reported as completed, and the store does not know", e.id)
		}
		if r != nil {
			r.reported = true
		}
	}
}

var errCallback = errors.New("the observer or the log handler panics")

// panicAtTimes makes one callback in 2,000 panic. The caller holds w.mu.
func (inv *invocation) panicAtTimes() {
	if !inv.env.dead && inv.env.random.IntN(2000) == 0 {
		inv.panicked = true
		inv.env.w.panics++
		panic(errCallback)
	}
}

// logs is a log handler that panics at times.
type logs struct{ w *world }

func (logs) Enabled(context.Context, slog.Level) bool { return true }
func (l logs) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l logs) WithGroup(string) slog.Handler          { return l }

func (l logs) Handle(ctx context.Context, _ slog.Record) error {
	if inv := invocationOf(ctx); inv != nil {
		l.w.mu.Lock()
		defer l.w.mu.Unlock()
		inv.panicAtTimes()
	}
	return nil
}

// inTurn lets the records of a batch, which begin at the same time, take turns.
func inTurn[R any](id func(R) string) middleware.Option {
	return middleware.Around(func(ctx context.Context, r R, next func(context.Context) error) error {
		invocationOf(ctx).turn("record " + id(r))
		return next(ctx)
	})
}

// keyed tells the world which event a key stands for.
func keyed[R any](w *world, key keyfuncs.Func[R], id func(R) string) keyfuncs.Func[R] {
	return func(ctx context.Context, r R) (lock.Key, error) {
		k, err := key(ctx, r)
		inv := invocationOf(ctx)
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
	free []*process[E, A] // can take another invocation
}

type process[E, A any] struct {
	*environment
	handler func(context.Context, E) (A, error)
}

// together is how many invocations a managed instance takes at a time.
const together = 4

// start returns an environment that can take another invocation, or starts one,
// which wraps the handler anew.
func (f *function[E, A]) start(inv *invocation) *process[E, A] {
	f.mu.Lock()
	defer f.mu.Unlock()
	var p *process[E, A]
	if n := len(f.free); n > 0 {
		p, f.free = f.free[n-1], f.free[:n-1]
		p.clock.Thaw()
	} else {
		e := f.w.newEnvironment()
		options := append([]middleware.Option{
			middleware.Store(e), middleware.Namespace(namespace), middleware.Observe(f.w.observe), middleware.Logger(slog.New(logs{f.w})),
			emf.Metrics(&emf.Options{Output: output{e}}), heldBy(e.id),
		}, f.with...)
		if f.w.managed { // as the middleware does there
			options = append(options, middleware.Heartbeat(lock.DefaultLease))
		}
		p = &process[E, A]{environment: e, handler: f.wrap(options...)}
	}
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	inv.env = p.environment
	f.w.invs++
	inv.number = f.w.invs
	p.active[inv] = true
	if p.setClock(); f.w.managed && len(p.active) < together {
		f.free = append(f.free, p)
	}
	return p
}

// stop notes that an invocation has returned.
func (f *function[E, A]) stop(p *process[E, A], inv *invocation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	delete(p.active, inv)
	switch {
	case p.dead:
		f.free = slices.DeleteFunc(f.free, func(o *process[E, A]) bool { return o == p })
	case !slices.Contains(f.free, p):
		f.free = append(f.free, p)
	}
	if !p.dead && !f.w.managed {
		p.clock.Freeze()
	}
}

// outcome is what the source learns of an invocation.
type outcome int

const (
	answered outcome = iota
	refused          // the function returned an error
	vanished         // no answer: crash, timeout
)

// invoke delivers e. It calls judge with an answer before that can get lost.
func (f *function[E, A]) invoke(records []*event, e E, judge func(*invocation, A, error)) outcome {
	inv := &invocation{
		events: records, deadline: time.Now().Add(timeout), keys: map[lock.Key]*event{}, reasons: map[*event]string{},
		grants: map[string]*grant{}, running: map[*run]bool{},
	}
	p := f.start(inv)
	ctx, cancel := p.context(inv)
	f.w.mu.Lock()
	inv.cancel = cancel
	f.w.deliveries += len(records)
	for _, r := range records {
		r.deliveries++
	}
	f.w.mu.Unlock()
	f.w.trace("invocation %d in environment %d begins with %s", inv.number, p.id, records[0].id)
	answer, err, alive := f.call(ctx, p, inv, e)
	f.w.trace("invocation %d ends: alive %v, error %v", inv.number, alive, err)
	if !alive {
		// The source learns of a dead process at once, or at the deadline.
		if f.w.roll(2) == 0 {
			time.Sleep(time.Until(inv.deadline))
			inv.turn("deadline")
		}
		return vanished
	}
	judge(inv, answer, err)
	switch {
	case f.w.roll(200) == 0:
		f.w.mu.Lock()
		f.w.lostAnswers += len(records)
		f.w.mu.Unlock()
		return vanished
	case err != nil:
		return refused
	}
	return answered
}

// call runs the handler until it returns or its environment dies, or until the
// deadline, where the platform may kill the process; otherwise, and always on a
// managed instance, it runs on, but its answer reaches nobody. A panic ends the
// environment.
// https://docs.aws.amazon.com/lambda/latest/dg/golang-exceptions.html
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-managed-instances-execution-environment.html
func (f *function[E, A]) call(ctx context.Context, p *process[E, A], inv *invocation, e E) (A, error, bool) {
	var answer A
	var err error
	done := make(chan struct{})
	f.w.under.Go(func() {
		defer close(done)
		defer inv.cancel()
		defer f.stop(p, inv)
		defer func() {
			p.clock.Awake()
			if v := recover(); v != nil {
				f.w.mu.Lock()
				f.w.panicked(v, debug.Stack())
				f.w.mu.Unlock()
				defer p.crash()
			}
			f.w.returned(inv)
		}()
		answer, err = p.handler(ctx, e)
	})
	kill := time.NewTimer(timeout)
	defer kill.Stop()
	select {
	case <-done:
	case <-p.died:
	case <-kill.C:
	}
	inv.turn("end")
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	inTime := false
	select {
	case <-done:
		inTime = !p.dead
	default:
		if !p.dead {
			f.w.timeouts++
		}
		if !f.w.managed && f.w.random.IntN(2) == 0 {
			p.die()
		}
	}
	if !inTime {
		var none A
		return none, nil, false
	}
	return answer, err, true
}
