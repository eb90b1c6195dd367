package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/schedule"
	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

const (
	// outages is the number of histories of TestDeadline, unless LAMBDALOCK_SEEDS
	// says otherwise: 625 have 100,000 invocations.
	outages = 60
	// clients share a store and its few names, and each invokes so many times.
	clients, invocations = 4, 40
)

// TestDeadline lets the store hang at every request of an invocation, and
// checks that the invocation ends before its deadline nevertheless, with time
// for the answer if the handler heeds its context.
func TestDeadline(t *testing.T) { // F2, F11, F12, F16, P7
	t.Parallel()
	var all endings
	simulation.Play(t, simulation.Config{Histories: atLength(outages)}, func(t *testing.T, seed uint64, note func(string)) {
		playOutage(t, seed, note, &all)
	})
	t.Log(&all)
	if os.Getenv("LAMBDALOCK_SEED") != "" {
		return
	}
	if all.hung == 0 || all.unanswered == 0 || all.overlong == 0 || all.ran == 0 {
		t.Errorf("not everything happened: %v", &all)
	}
}

// TestDeadlineIsItsSeed shows that a seed brings the same history back.
func TestDeadlineIsItsSeed(t *testing.T) {
	t.Parallel()
	simulation.CheckReplay(t, simulation.Config{Histories: atLength(10), Share: 10}, func(t *testing.T, seed uint64, note func(string)) {
		playOutage(t, seed, note, &endings{})
	})
}

// outage is one history of TestDeadline.
type outage struct {
	t     *testing.T
	seed  uint64
	turns *schedule.Scheduler
	note  func(line string) // what happens; nil: nobody wants to know
	store driver.Store
	late  fault.Copies
	mu    sync.Mutex
}

func playOutage(t *testing.T, seed uint64, note func(string), all *endings) {
	o := &outage{t: t, seed: seed, turns: schedule.Start(seed), note: note, store: memstore.New()}
	defer o.turns.Stop()
	o.late.Turns = o.turns
	defer o.late.Wait()
	var under sync.WaitGroup
	defer under.Wait()
	for id := range uint64(clients) {
		c := o.client(id)
		under.Go(func() {
			for range invocations {
				c.clock.Turn("invocation")
				c.invoke()
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			all.add(&c.endings)
		})
	}
}

// endings counts what became of invocations.
type endings struct {
	invocations, ran, overlong, unanswered, hung int
	least                                        time.Duration // left before the deadline
}

func (e *endings) add(o *endings) {
	if e.invocations == 0 || o.least < e.least {
		e.least = o.least
	}
	e.invocations += o.invocations
	e.ran += o.ran
	e.overlong += o.overlong
	e.unanswered += o.unanswered
	e.hung += o.hung
}

func (e *endings) String() string {
	return fmt.Sprintf("%d invocations, %d handlers ran, %d of them longer than their context; %d requests hung, for %d outcomes the store gave no answer; at least %v were left before the deadline",
		e.invocations, e.ran, e.overlong, e.hung, e.unanswered, e.least)
}

// client is an environment, which invokes one wrapped handler one time after
// the other.
type client struct {
	*outage
	id      uint64
	random  *rand.Rand
	clock   *simclock.Clock
	usual   *fault.Stream
	shape   string
	handler func(context.Context, job) error
	reserve time.Duration // chosen; zero: the default
	endings

	planning    sync.Mutex
	first, many int // requests of the invocation that hang
	sent        int

	deadline time.Time
	works    func(context.Context)
}

func (o *outage) client(id uint64) *client {
	random := rand.New(rand.NewPCG(o.seed, 1000+id))
	c := &client{outage: o, id: id, random: random, clock: simclock.New(0, 0)}
	c.clock.Schedule(o.turns, id, o.seed<<32+id)
	c.usual = fault.Usual(o.seed, []int{0, 50, 300, 900}[random.IntN(4)]).Client(id)
	c.usual.Turns = o.turns
	options := []middleware.Option{
		middleware.Store(fault.NewStore(o.store, c, &o.late)), middleware.Namespace(namespace),
		middleware.Logger(slog.New(slog.DiscardHandler)), middleware.Observe(c.observe), heldBy(id),
	}
	switch random.IntN(4) {
	case 0:
		options = append(options, middleware.Heartbeat([]time.Duration{3 * time.Second, 10 * time.Second, 30 * time.Second}[random.IntN(3)]))
	case 1:
		options = append(options, fixedLease([]time.Duration{3 * time.Second, 10 * time.Second, time.Minute}[random.IntN(3)]))
	}
	if random.IntN(3) == 0 {
		c.reserve = []time.Duration{20 * time.Millisecond, 500 * time.Millisecond, 3 * time.Second}[random.IntN(3)]
		options = append(options, middleware.Engine(func(o *lock.Options) { o.Reserve = c.reserve }))
	}
	if random.IntN(3) == 0 {
		within := time.Duration(1+random.IntN(20)) * time.Second
		options = append(options, middleware.Engine(func(o *lock.Options) { o.CompleteWithin = within }))
	}
	held := middleware.OnHeld(middleware.Fail)
	if random.IntN(2) == 0 {
		held = middleware.OnHeld(middleware.Wait(time.Duration(1+random.IntN(60)) * time.Second))
	}
	options = append(options, held)
	shape := shapes[random.IntN(len(shapes))]
	c.shape, c.handler = shape.name, shape.wrap(c.work, options)
	return c
}

// Next implements [fault.Plan].
func (c *client) Next(op string) fault.Decision { return c.NextOf(op, op) }

// NextOf implements [fault.Telling]: some requests of each invocation hang, the
// others meet what they usually meet.
func (c *client) NextOf(op, request string) fault.Decision {
	usual := c.usual.NextOf(op, request)
	c.planning.Lock()
	defer c.planning.Unlock()
	n := c.sent
	c.sent++
	if n >= c.first && n < c.first+c.many {
		usual = fault.Decision{Fault: []fault.Fault{fault.Hang, fault.ApplyThenHang, fault.HangThenApply}[n%3], Delay: time.Duration(n%7) * 3 * time.Second}
	}
	switch usual.Fault {
	case fault.Hang, fault.ApplyThenHang, fault.HangThenApply:
		c.hung++
	}
	return usual
}

func (c *client) observe(_ context.Context, o lock.Observation) {
	if o.Outcome == lock.OutcomeStoreFailed || o.Outcome == lock.OutcomeCompleteFailed {
		c.planning.Lock()
		defer c.planning.Unlock()
		c.unanswered++
	}
}

// job is an event of TestDeadline.
type job struct{ Name, ID string }

// invoke invokes the handler once, with a random timeout, and works that end at
// once, with their context, or shortly before the deadline.
func (c *client) invoke() {
	timeout := []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second, 30 * time.Second, 15 * time.Minute}[c.random.IntN(6)]
	ctx, cancel := c.clock.WithDeadlineCause(clock.With(context.Background(), c.clock), time.Now().Add(timeout), nil)
	defer cancel()
	c.planning.Lock()
	c.sent, c.first, c.many = 0, c.random.IntN(8), []int{0, 1, 2, 5, 1_000_000}[c.random.IntN(5)]
	c.planning.Unlock()
	c.deadline = time.Now().Add(timeout)
	part := c.random.Float64()
	late := false
	switch c.random.IntN(4) {
	case 0:
		c.works = func(ctx context.Context) { _ = c.clock.Sleep(ctx, time.Duration(part*float64(timeout)/10)) }
	case 1, 2:
		c.works = func(ctx context.Context) { _ = c.clock.Sleep(ctx, 2*timeout) }
	case 3:
		late = true
		before := time.Millisecond + time.Duration(part*float64(timeout)/10)
		c.works = func(context.Context) { _ = c.clock.Sleep(context.Background(), time.Until(c.deadline.Add(-before))) }
	}
	j := job{fmt.Sprint("name ", c.random.IntN(3)), fmt.Sprint(c.random.IntN(20))}
	err := c.handler(ctx, j)
	left := time.Until(c.deadline)
	if c.note != nil {
		c.note(fmt.Sprintf("client %d, %s, %v: %d handlers ran, %d requests hung, %v left: %v", c.id, c.shape, j, c.ran, c.hung, left, err))
	}
	if c.invocations == 0 || left < c.least {
		c.least = left
	}
	c.invocations++
	answer := c.toAnswer(timeout)
	if late {
		c.overlong++
		answer = 0
	}
	if left < answer || left <= 0 {
		c.t.Errorf("seed %d, client %d, %s, a timeout of %v, requests %d to %d hang: ended %v before the deadline, want at least %v (error %v)",
			c.seed, c.id, c.shape, timeout, c.first, c.first+c.many-1, left, answer, err)
	}
}

// toAnswer returns the time that is left for the answer at least, if the
// handler heeds its context. A record of a batch has the reserve of what is
// left when it begins, which is at least the reserve of the whole and 100 ms.
func (c *client) toAnswer(timeout time.Duration) time.Duration {
	reserve := c.reserve
	if reserve == 0 {
		reserve = min(time.Second, timeout/10)
		if strings.HasPrefix(c.shape, "SQS") {
			reserve = (100*time.Millisecond + reserve) / 10
		}
	}
	return min(100*time.Millisecond, reserve/2)
}

var errJob = errors.New("the job failed")

// work is the handler of every shape.
func (c *client) work(ctx context.Context) error {
	c.planning.Lock()
	c.ran++
	fails := c.ran%5 == 0
	c.planning.Unlock()
	c.works(ctx)
	if fails {
		return errJob
	}
	return nil
}
