// Package simulation simulates processes that contend for locks in any store,
// with everything that may go wrong: requests meet faults, processes are
// killed and frozen, clocks differ, handlers, observers and loggers panic, and
// handlers ignore their context. Checks that know the true time and the rows
// validate what packages lock and middleware promise.
//
// A store's test calls [Run] with its [Opener]. docs/TESTING.md explains the
// words, and how to replay a failure.
package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/schedule"
	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Opener starts a store's server for one history, inside its bubble of fake
// time, and returns a function that opens the store for a client. It is called
// again when a new process of that client starts. Every request that the client
// or its SDK sends must meet the faults of [History.Plan].
type Opener func(t *testing.T, h *History) func(client uint64) driver.Store

// Watcher is the client whose requests meet no faults. Its store must have
// the method Read of a [driver.Inspector]. It reads every row that may have
// changed, and acquires every name in the end. If its store also has the method
// Save, rows go back to earlier states: see snapshotter.
const Watcher uint64 = 0

// History is one simulated history.
type History struct {
	Seed uint64
	// Late applies the copies of requests that arrive late.
	Late fault.Late

	turns   *schedule.Scheduler
	mix     fault.Mix
	mu      sync.Mutex
	streams map[uint64]*fault.Stream
}

// Plan returns what becomes of the requests of a client.
func (h *History) Plan(client uint64) fault.Plan {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.streams[client]
	if s == nil {
		s = h.mix.Client(client)
		s.Turns = h.turns
		if client == Watcher {
			s.Heal()
		}
		h.streams[client] = s
	}
	return s
}

// met returns how many requests there were, and how many of them met a fault.
func (h *History) met() (requests, faults int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for client, s := range h.streams {
		if client == Watcher {
			continue
		}
		for f, n := range s.Met() {
			requests += n
			if f != fault.None {
				faults += n
			}
		}
	}
	return requests, faults
}

// Wrapper wraps a handler so that it runs under the lock of key.
type Wrapper func(store driver.Store, o *lock.Options, key lock.Key, handler func(context.Context) error) func(context.Context) error

// Config says what happens in the histories. Zero values are the defaults.
type Config struct {
	// Histories is how many are played, with the seeds from 0 on.
	// LAMBDALOCK_SEEDS and LAMBDALOCK_SEED replace that; see [Play].
	Histories uint64
	// Share divides LAMBDALOCK_SEEDS for a slow store. Default: 1.
	Share uint64
	// PerMille is how many of a thousand requests meet a fault. Default: 200.
	PerMille int
	// Clients is the number of processes at a time, and Turns that of the
	// invocations of each. Default: 8 and 20.
	Clients, Turns int
	// Names is how many names there are without a limit. Default: 3.
	Names int
	// Skew is by how much any two wall clocks differ at most. Default: Grace; [Run]
	// adds ten hours if ServerClock is set. If it is more than Grace, invocations
	// have no deadline, and handlers may overlap: only the fence protects what they
	// write.
	Skew time.Duration
	// ServerClock says that the store decides by its own clock when a lease ends.
	// Then handlers never overlap, whatever Skew is.
	ServerClock bool
	// NoCooldown says that no lock has HoldAtLeast, because the caller compares the
	// history with a model that knows no cooldowns.
	NoCooldown bool
	// LateBy is the longest time by which a copy is late. Default: 30 s.
	LateBy time.Duration
	// Wrap wraps the handler of every third invocation, which skips an event that
	// was completed. Default: Locker.Do. The tests of package middleware give its
	// wrapper, so that no others depend on it and on the key functions.
	Wrap Wrapper
	// Latest wraps all handlers of [Bursts]. Default: Locker.Latest.
	Latest Wrapper
	// Once wraps all handlers of [Interrupted], whose Options may have
	// OnInterrupted. Default: Locker.Do.
	Once Wrapper

	tests string // the package of the test, for the command that replays it
}

func (c Config) withDefaults() Config {
	if c.Share == 0 {
		c.Share = 1
	}
	if c.PerMille == 0 {
		c.PerMille = 200
	}
	if c.Clients == 0 {
		c.Clients = 8
	}
	if c.Turns == 0 {
		c.Turns = 20
	}
	if c.Names == 0 {
		c.Names = 3
	}
	if c.Skew == 0 {
		c.Skew = lock.DefaultGrace
	}
	if c.LateBy == 0 {
		c.LateBy = 30 * time.Second
	}
	if c.Wrap == nil {
		c.Wrap = skipCompleted((*lock.Locker).Do)
	}
	if c.Latest == nil {
		c.Latest = skipCompleted((*lock.Locker).Latest)
	}
	if c.Once == nil {
		c.Once = skipCompleted((*lock.Locker).Do)
	}
	return c
}

// beyond reports whether handlers may overlap.
func (c Config) beyond() bool { return c.Skew > lock.DefaultGrace && !c.ServerClock }

// simulation is one history while it is played.
type simulation struct {
	t           *testing.T
	c           Config
	history     *History
	copies      fault.Copies
	open        func(client uint64) driver.Store
	snapshotter snapshotter // nil: rows never go back
	turns       *schedule.Scheduler
	ctx         context.Context   // of the Watcher
	note        func(line string) // what happens; nil: no log
	violation   func(string)

	processes atomic.Uint64
	busy      sync.WaitGroup // invocations, and what waits to become one
	record
}

// play plays one history. It calls note with everything that happens, unless
// note is nil, and violation for each broken promise.
func play(t *testing.T, open Opener, c Config, seed uint64, note, violation func(string)) report {
	sim := &simulation{t: t, c: c, note: note, violation: violation, turns: schedule.Start(seed)}
	defer sim.turns.Stop()
	sim.copies.Turns = sim.turns
	own := simclock.New(0, 0)
	own.Schedule(sim.turns, Watcher, seed)
	sim.ctx = clock.With(context.Background(), own)
	sim.record.init()
	mix := fault.Usual(seed, c.PerMille)
	mix.Late = c.LateBy
	sim.history = &History{Seed: seed, Late: sim, turns: sim.turns, mix: mix, streams: map[uint64]*fault.Stream{}}
	sim.open = open(t, sim.history)
	watcher := sim.open(Watcher)
	stop := sim.watch(watcher)
	if s, ok := watcher.(snapshotter); ok && seed%2 == 1 {
		sim.snapshotter = s
		sim.report.MayRollBack++
	}
	stopRollbacks := sim.rollBackRows()
	var clients sync.WaitGroup
	for i := range c.Clients {
		clients.Go(func() {
			sim.turn(uint64(i)+1, "begins")
			sim.client(uint64(i) + 1)
		})
	}
	clients.Wait()
	sim.busy.Wait()
	stopRollbacks()
	sim.copies.Wait()
	time.Sleep(2 * tolerance)
	stop()
	sim.allFree()
	sim.validate()
	sim.report.Histories = 1
	sim.report.Requests, sim.report.Faults = sim.history.met()
	return sim.report
}

// trace logs what happens.
func (sim *simulation) trace(format string, args ...any) {
	if sim.note != nil {
		sim.note(fmt.Sprintf("%12v: %s", time.Since(sim.began), fmt.Sprintf(format, args...)))
	}
}

// turn waits for the turn of a client.
func (sim *simulation) turn(client uint64, what string) {
	sim.turns.Wait(schedule.Point{Process: client, What: what})
}

// after calls do for the client after d.
func (sim *simulation) after(d time.Duration, client uint64, what string, do func()) {
	at := schedule.Point{Process: client, What: what, Due: int64(d), Since: sim.turns.Now()}
	sim.busy.Go(func() {
		time.Sleep(d)
		sim.turns.Wait(at)
		do()
	})
}

// fail reports a violation.
func (sim *simulation) fail(format string, args ...any) {
	sim.trace("VIOLATION: "+format, args...)
	sim.violation(fmt.Sprintf("seed %d, %v: %s", sim.history.Seed, time.Since(sim.began), fmt.Sprintf(format, args...)))
}

// client runs one process after the other. Each ends when it is killed.
func (sim *simulation) client(id uint64) {
	random := rand.New(rand.NewPCG(sim.history.Seed, id<<32))
	p := sim.start(id, random)
	for range sim.c.Turns {
		time.Sleep(time.Duration(random.IntN(2500)) * time.Millisecond)
		sim.turn(id, "next")
		if p.isDead() {
			p = sim.start(id, random)
		}
		p.turn(random)
	}
}
