package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/robustness/lawful"
	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// mortal is a process that handles one delivery of [Interrupted], and its
// connection to the store. i.mu guards what the checks know of it.
type mortal struct {
	i     *interruptions
	name  string
	event *interruptible
	store driver.Store
	clock *simclock.Clock
	end   context.CancelCauseFunc

	dieAt   atomic.Int64 // the process dies at that request from now on; zero: not at a request
	unsent  bool         // that request is not sent
	dead    atomic.Bool
	freezes atomic.Int64

	claimed bool      // a claim was sent
	sent    time.Time // the first one
	// mayHaveLost: the first claim may have been applied and its lease may have
	// ended before the last one was sent. The event then stays interrupted.
	mayHaveLost bool
	before      *mortal   // had the name before
	fresh       int64     // freezes, when the last answer arrived
	knownEnd    bool      // the work failed or panicked
	recorded    bool      // a known end, in the row
	asked       []*mortal // of whose runs it was asked
	answered    []*mortal // whose work had begun when the answer let the work run
	used        bool      // an answer about this run
}

// invoke handles an event in a new process.
func (i *interruptions) invoke(e *interruptible, store driver.Store, random *rand.Rand) (err error) {
	i.mu.Lock()
	id := uint64(len(i.processes) + 1)
	at := simclock.New(time.Duration(random.Int64N(int64(i.c.Skew)))-i.c.Skew/2, 0)
	at.Schedule(i.turns, id, random.Uint64())
	p := &mortal{i: i, name: fmt.Sprint("process ", id), event: e, store: store, clock: at}
	i.processes = append(i.processes, p)
	i.mu.Unlock()
	life, end := context.WithCancelCause(clock.With(context.Background(), at))
	defer end(nil)
	p.end = end
	defer p.injectFault(random, id)()
	ctx, cancel := at.WithDeadlineCause(life, at.Now().Add(10*time.Second), nil)
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(planned); !ok {
				panic(r)
			}
			err = fmt.Errorf("panic: %v", r)
		}
		if p.dead.Load() {
			err = errKilled
		}
	}()
	modes := []lock.LeaseMode{lock.UntilDeadline(), lock.FixedLease(5 * time.Second), lock.Heartbeat(4 * time.Second)}
	options := &lock.Options{
		Lease: modes[random.IntN(len(modes))], RememberEvents: 2 * len(policies), Logger: quiet, Observe: p.observe,
		Holder: func(context.Context) string { return p.name },
	}
	if random.IntN(4) == 0 {
		options.MaxWait = 3 * time.Second
	}
	if e.policy != "none" && e.policy != "mutex" {
		options.OnInterrupted = func(ctx context.Context, about *lock.InterruptedError) (*lock.Completion, error) {
			return p.decide(ctx, about, random)
		}
	}
	return i.c.Once(p, options, e.key, func(ctx context.Context) error { return p.work(ctx, random) })(ctx)
}

func (p *mortal) observe(_ context.Context, o lock.Observation) {
	if err := lawful.Check(o); err != nil {
		p.i.fail("%v", err)
	}
	if o.Outcome == lock.OutcomeTakenOver {
		p.happens("taken over from the dead")
	}
}

func (p *mortal) happens(what string) {
	p.i.mu.Lock()
	defer p.i.mu.Unlock()
	p.i.trace("%s: %s", p.name, what)
	p.i.count(what)
}

func (p *mortal) kill(how string) {
	if !p.dead.Swap(true) {
		p.happens(how)
		p.end(errKilled)
		p.clock.Thaw() // so that its goroutines can end
	}
}

// injectFault may kill or freeze the process. It returns what stops that.
func (p *mortal) injectFault(random *rand.Rand, id uint64) (stop func()) {
	var ended atomic.Bool
	after, long := time.Duration(random.IntN(4000))*time.Millisecond, time.Duration(random.IntN(15000))*time.Millisecond
	switch random.IntN(7) {
	case 0, 1:
		p.dieAt.Store(int64(1 + random.IntN(6)))
		p.unsent = random.IntN(2) == 0
	case 2:
		p.i.after(id, after, func() {
			if !ended.Load() {
				p.kill("killed")
			}
		})
	case 3, 4:
		p.i.after(id, after, func() {
			if ended.Load() || p.dead.Load() {
				return
			}
			p.happens("frozen")
			p.freezes.Add(1)
			p.clock.Freeze()
			time.Sleep(long)
			p.clock.Turn("thaws")
			p.clock.Thaw()
		})
	}
	return func() { ended.Store(true) }
}

// sleep sleeps for up to so many milliseconds, and returns why the process must
// not go on, or nil.
func (p *mortal) sleep(ctx context.Context, random *rand.Rand, most int) error {
	err := p.clock.Sleep(ctx, time.Duration(random.IntN(most))*time.Millisecond)
	p.clock.Awake()
	if p.dead.Load() {
		return errKilled
	}
	return err
}

// work is the handler of an event. Its outcome, and what it is for, is known to
// the checks.
func (p *mortal) work(ctx context.Context, random *rand.Rand) error {
	p.clock.Awake()
	if p.dead.Load() {
		return errKilled
	}
	p.i.begins(p)
	err := p.sleep(ctx, random, 1500)
	if err == nil {
		p.i.mu.Lock()
		p.event.done = true
		p.i.mu.Unlock()
		err = p.sleep(ctx, random, 1500)
	}
	how := random.IntN(24)
	if err == nil && how < 3 {
		err = errors.New("the handler fails")
	}
	if p.dead.Load() {
		return errKilled
	}
	p.i.mu.Lock()
	defer p.i.mu.Unlock()
	if err != nil && how == 0 || how == 4 {
		p.i.count("could not tell")
		return errors.Join(err, lock.ErrUnknown)
	}
	if how == 3 || err != nil {
		if p.knownEnd = ctx.Err() == nil; p.knownEnd {
			p.event.done = false
		} else {
			p.i.count("cut short")
		}
	}
	switch {
	case how == 3:
		p.i.count("panicked")
		panic(planned("handler"))
	case err != nil:
		p.i.count("failed")
		return err
	}
	p.i.count("completed")
	return nil
}

// decide is the OnInterrupted of the event.
func (p *mortal) decide(ctx context.Context, about *lock.InterruptedError, random *rand.Rand) (*lock.Completion, error) {
	p.clock.Awake()
	if p.dead.Load() {
		return nil, errKilled
	}
	p.i.asks(p, about)
	switch p.event.policy {
	case "skip":
		return lock.SkipInterrupted(ctx, about)
	case "fail":
		return lock.FailInterrupted(ctx, about)
	}
	if err := p.sleep(ctx, random, 1000); err != nil {
		return nil, err
	}
	p.i.mu.Lock()
	done, begun, how := p.event.done, slices.Clone(p.event.begun), random.IntN(12)
	p.i.mu.Unlock()
	if err := p.sleep(ctx, random, 1000); err != nil {
		return nil, err
	}
	switch {
	case how == 0:
		p.happens("the question panicked")
		panic(planned("question"))
	case how < 3:
		p.happens("no answer")
		return nil, errors.New("the ledger cannot be read")
	case done:
		p.happens("done")
		return &lock.Completion{}, nil
	}
	p.happens("not done")
	p.i.mu.Lock()
	defer p.i.mu.Unlock()
	p.answered, p.fresh = begun, p.freezes.Load()
	return nil, nil
}

// send sends a request of a process that is not frozen, unless it dies before
// that.
func (p *mortal) send(what, name string, request func() (driver.Row, bool, error)) (driver.Row, bool, error) {
	p.clock.Turn(what + " " + name)
	p.clock.Awake()
	if p.dead.Load() {
		return driver.Row{}, false, errDead
	}
	dies := p.dieAt.Load() > 0 && p.dieAt.Add(-1) == 0
	if dies && p.unsent {
		p.kill("killed at a request")
		return driver.Row{}, false, errDead
	}
	p.i.trace("%s: %s", p.name, what)
	row, ok, err := request()
	p.clock.Turn("answer to " + what + " " + name)
	p.i.trace("%s: %s %s: %v %v %+v", p.name, what, name, ok, err, row)
	if dies {
		p.kill("killed at a request")
	}
	p.clock.Awake()
	if p.dead.Load() {
		return driver.Row{}, false, errDead
	}
	return row, ok, err
}

// Acquire implements [driver.Store].
func (p *mortal) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	claim := *c // the caller dates its claim anew
	row, ok, err := p.send("claim", c.Name, func() (driver.Row, bool, error) {
		p.i.mu.Lock()
		if !p.claimed {
			p.sent = time.Now()
		}
		p.mayHaveLost = time.Since(p.sent) > time.Second
		p.claimed = true
		p.i.mu.Unlock()
		row, ok, err := p.store.Acquire(ctx, &claim)
		p.i.mu.Lock()
		defer p.i.mu.Unlock()
		if last := p.i.last[c.Name]; ok && last != p {
			p.before, p.i.last[c.Name] = last, p
		}
		return row, ok, err
	})
	p.i.mu.Lock()
	defer p.i.mu.Unlock()
	p.fresh = p.freezes.Load()
	return row, ok, err
}

// Renew implements [driver.Store].
func (p *mortal) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	return p.send("renewal", r.Name, func() (driver.Row, bool, error) { return p.store.Renew(ctx, r) })
}

// Settle implements [driver.Store].
func (p *mortal) Settle(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	return p.send("settlement", s.Name, func() (driver.Row, bool, error) {
		row, ok, err := p.store.Settle(ctx, s)
		p.i.mu.Lock()
		defer p.i.mu.Unlock()
		if s.Abandon {
			p.mayHaveLost = p.mayHaveLost || time.Since(p.sent) > time.Second
		}
		interrupts := s.Memory != nil && s.Memory.FindInterrupted(p.event.key.Event, time.Time{}) != nil
		if err == nil && ok && !interrupts && !p.mayHaveLost {
			p.recorded = true
		}
		return row, ok, err
	})
}

// Mark implements [driver.Coalescer].
func (p *mortal) Mark(ctx context.Context, m *driver.Mark) (driver.Row, bool, error) {
	return p.send("mark", m.Name, func() (driver.Row, bool, error) { return p.store.(driver.Coalescer).Mark(ctx, m) })
}
