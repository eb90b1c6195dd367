package redisquorum_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	simhistory "github.com/lambdalock/lambdalock/internal/history"
	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
)

// owner is what became of a token.
type owner struct {
	ended    time.Time // zero: it may be in use
	excused  bool      // it may hold a name until its lease ends
	reported bool
}

// client notes what becomes of the tokens of one invocation.
type client struct {
	driver.Store
	h *history

	mu       sync.Mutex
	token    string
	ended    bool // a release was answered
	crashed  bool
	released bool // a release was sent
}

func (c *client) Acquire(ctx context.Context, claim *driver.Claim) (driver.Row, bool, error) {
	c.mu.Lock()
	c.token = claim.Token
	c.mu.Unlock()
	c.h.begin(claim.Token)
	return c.Store.Acquire(ctx, claim)
}

func (c *client) Settle(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	c.mu.Lock()
	crashed := c.crashed
	c.released = c.released || !crashed
	c.mu.Unlock()
	if crashed {
		return driver.Row{}, false, &driver.Error{Lasting: true, Err: errors.New("the process has crashed")}
	}
	row, ok, err := c.Store.Settle(ctx, s)
	if err == nil {
		c.mu.Lock()
		c.ended = true
		c.mu.Unlock()
	}
	return row, ok, err
}

// over notes that the invocation needs no name any more.
func (c *client) over() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token != "" {
		c.h.end(c.token, c.crashed || c.released && !c.ended)
	}
}

func (h *history) begin(token string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tokens[token] == nil {
		h.tokens[token] = &owner{}
	}
}

func (h *history) end(token string, excused bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.tokens[token]
	o.ended, o.excused = time.Now(), o.excused || excused
}

// leases are those of the invocations. Each has a deadline of 20 s at most.
var leases = []lock.LeaseMode{lock.Heartbeat(9 * time.Second), lock.FixedLease(8 * time.Second), lock.UntilDeadline()}

// worker is a process that works for events, one after the other.
type worker struct {
	h      *history
	name   string
	store  driver.Store
	random *rand.Rand
	clock  *simclock.Clock
	ctx    context.Context // carries the clock
}

// worker returns the one of that number, with its connections.
func (h *history) worker(number uint64) *worker {
	c := simclock.New(0, 0)
	c.Schedule(h.turns, number, h.seed<<32+number)
	return &worker{
		h: h, name: fmt.Sprint("owner ", number), store: h.open(number), random: rand.New(rand.NewPCG(h.seed, number<<32)),
		clock: c, ctx: clock.With(context.Background(), c),
	}
}

func (w *worker) locker(store driver.Store) *lock.Locker {
	l, err := lock.New(store, &lock.Options{
		Lease: leases[w.random.IntN(len(leases))], MaxWait: time.Duration(w.random.IntN(2)) * 8 * time.Second,
		Logger: slog.New(slog.DiscardHandler), Holder: func(context.Context) string { return w.name },
	})
	if err != nil {
		w.h.Fatal(err)
	}
	return l
}

// own works for one event.
func (w *worker) own() {
	key, limit := lock.Key{Name: fmt.Sprint("n", w.random.IntN(2))}, 1
	switch w.random.IntN(6) {
	case 0:
		key.Name, limit = "limited", 2
	case 1:
	default:
		key.Event = redistest.Event(w.random.IntN(12))
	}
	c := &client{Store: w.store, h: w.h}
	defer c.over()
	ctx, cancel := w.clock.WithDeadlineCause(w.ctx, w.clock.Now().Add(10*time.Second), nil)
	defer cancel()
	before := w.h.completions(key)
	l, err := acquire(ctx, w.locker(c), key, limit)
	w.happens("acquire "+key.Name+" "+key.Event, outcome(err), err)
	w.h.replays(key, before, err)
	if err == nil {
		w.work(c, l, key)
	}
}

// acquire acquires a key, or a name as one of so many.
func acquire(ctx context.Context, l *lock.Locker, key lock.Key, limit int) (*lock.Lock, error) {
	if limit > 1 {
		return l.AcquireOneOf(ctx, key.Name, limit)
	}
	return l.Acquire(ctx, key)
}

// happens counts an outcome.
func (w *worker) happens(what, outcome string, err error) {
	w.h.mu.Lock()
	w.h.count[outcome]++
	w.h.mu.Unlock()
	w.h.trace("%s: %s: %s: %v", w.name, what, outcome, err)
}

// work works and ends the lock in some way.
func (w *worker) work(c *client, l *lock.Lock, key lock.Key) {
	h := w.h
	h.runs(key, w.name)
	start := time.Now()
	_ = w.clock.Sleep(l.Context(), within(w.random, 4*time.Second))
	h.worked(simhistory.Hold{Name: key.Name, Holder: w.name, Fence: l.Lease().Fence, Start: start, End: time.Now()})
	switch w.random.IntN(8) {
	case 0:
		w.happens("end", "crash", nil)
		c.mu.Lock()
		c.crashed = true
		c.mu.Unlock()
		_ = l.Release()
	case 1, 2:
		err := l.Release()
		w.happens("end", "release: "+outcome(err), err)
		h.keeps(l, key, err)
	default:
		result := fmt.Sprint("result of ", l.Lease().Fence)
		h.mu.Lock()
		n := len(h.done[key.Name])
		h.done[key.Name] = append(h.done[key.Name], completion{event: key.Event, result: result})
		h.mu.Unlock()
		err := l.CompleteWith(lock.Completion{Result: []byte(result)})
		w.happens("end", "complete: "+outcome(err), err)
		h.keeps(l, key, err)
		h.mu.Lock()
		h.done[key.Name][n].certain = err == nil
		h.mu.Unlock()
	}
}

func outcome(err error) string {
	for name, target := range map[string]error{"held": lock.ErrHeld, "completed": lock.ErrCompleted, "lost": lock.ErrLost} {
		if errors.Is(err, target) {
			return name
		}
	}
	if err != nil {
		return "failed"
	}
	return "ok"
}
