// Package simulation simulates processes that contend for locks in any store,
// with everything that may go wrong: requests meet faults, processes are
// killed and frozen, clocks differ, handlers, observers and loggers panic, work
// ignores its context. Oracles that know the true time and the rows check what
// packages lock and middleware promise.
//
// A store takes part by its [Opener].
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

// Opener makes the server of a store for one history, inside its bubble of
// virtual time. The function that it returns opens the store as a new process
// of that client does; it may be called several times for one client. Every
// request of the client, or of the part of a request that the client's library
// sends, must meet the faults of [History.Plan].
type Opener func(t *testing.T, h *History) func(client uint64) driver.Store

// Watcher is the client whose requests meet no faults. Its store must have
// the method Read of a [driver.Inspector]. It reads every row that may have
// changed, and acquires every name in the end. If it also has the method Save,
// rows go back to earlier states: see saver.
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
			s.Calm()
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

// Config says what happens in the histories. Zero values are the defaults.
type Config struct {
	// First is the seed of the first history, and Histories the number of them.
	// LAMBDALOCK_SEEDS and LAMBDALOCK_SEED replace them; see [Play].
	First, Histories uint64
	// Share divides LAMBDALOCK_SEEDS for a slow store. Default: 1.
	Share uint64
	// PerMille is how many of a thousand requests meet a fault. Default: 200.
	PerMille int
	// Clients is the number of processes at a time, and Turns that of the
	// invocations of each. Default: 8 and 20.
	Clients, Turns int
	// Names is how many names there are without a limit. Default: 3.
	Names int
	// Skew is by how much any two wall clocks differ at most. Default: Grace. If it
	// is more, invocations have no deadline, and handlers may overlap: only the
	// fence protects what they write.
	Skew time.Duration
	// ServerClock says that the store judges leases by its own clock. Then handlers
	// never overlap, whatever Skew is.
	ServerClock bool
	// LateBy is the longest time by which a copy is late. Default: 30 s.
	LateBy time.Duration
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
	return c
}

// beyond reports whether handlers may overlap.
func (c Config) beyond() bool { return c.Skew > lock.DefaultGrace && !c.ServerClock }

// Run plays histories as [Play] does, and logs what happened in them.
func Run(t *testing.T, open Opener, c Config) Figures {
	t.Helper()
	c = c.withDefaults()
	var all Figures
	defer func() { t.Log(all) }() // a bubble that fails ends the test
	Play(t, c, func(t *testing.T, seed uint64, note func(string)) {
		all.add(play(t, open, c, seed, note, func(what string) { t.Error(what) }))
	})
	return all
}

// Figures say what happened.
type Figures struct {
	Histories, Requests, Faults          int
	Acquired, Refused, Runs              int // acquisitions granted and not, and runs of a handler
	Overlaps, Stale, Orphans, Idle       int // overlaps that no promise rules out, effects that the fence refused
	Kills, Freezes, Panics, Resumed      int
	TakenOver, LostLeases                int // as the engine observed them
	Completed, Lost, Skipped, WhileLimit int
	Watched, WentBack                    int // rows read, and rows that went back to an earlier state
}

func (f *Figures) add(g Figures) {
	f.Histories += g.Histories
	f.Requests += g.Requests
	f.Faults += g.Faults
	f.Acquired += g.Acquired
	f.Refused += g.Refused
	f.Runs += g.Runs
	f.Overlaps += g.Overlaps
	f.Stale += g.Stale
	f.Kills += g.Kills
	f.Freezes += g.Freezes
	f.Panics += g.Panics
	f.Resumed += g.Resumed
	f.TakenOver += g.TakenOver
	f.LostLeases += g.LostLeases
	f.Completed += g.Completed
	f.Lost += g.Lost
	f.Skipped += g.Skipped
	f.WhileLimit = max(f.WhileLimit, g.WhileLimit)
	f.Watched += g.Watched
	f.WentBack += g.WentBack
}

// String shows the figures in one line.
func (f Figures) String() string {
	return fmt.Sprintf("%d histories, %d requests, %d of them faulted; %d acquisitions, %d refusals; %d runs, %d completed, %d completions lost, %d skipped; "+
		"%d kills, %d freezes, %d panics, %d taken over, %d leases lost, %d resumed; %d effects refused by their fence, %d overlaps beyond the assumptions; %d rows watched, %d went back",
		f.Histories, f.Requests, f.Faults, f.Acquired, f.Refused, f.Runs, f.Completed, f.Lost, f.Skipped,
		f.Kills, f.Freezes, f.Panics, f.TakenOver, f.LostLeases, f.Resumed, f.Stale, f.Overlaps, f.Watched, f.WentBack)
}

// MustVary fails the test if no lock was taken over, lost or resumed. Fewer
// than ten histories need not have all of that, and fewer than twenty need not
// resume a lock: over a store whose steps are several requests, each of which
// may meet a fault, ten histories do so about once.
func (f Figures) MustVary(t *testing.T) {
	t.Helper()
	if f.Histories >= 10 && (f.TakenOver == 0 || f.LostLeases == 0) || f.Histories >= 20 && f.Resumed == 0 {
		t.Errorf("%d locks taken over, %d leases lost, %d locks resumed: want some of each", f.TakenOver, f.LostLeases, f.Resumed)
	}
}

// world is one history while it is played.
type world struct {
	t       *testing.T
	c       Config
	history *History
	copies  fault.Copies
	open    func(client uint64) driver.Store
	saver   saver // nil: rows never go back
	turns   *schedule.Scheduler
	ctx     context.Context   // of the Watcher
	note    func(line string) // what happens; nil: nobody wants to know
	broken  func(string)

	processes atomic.Uint64
	busy      sync.WaitGroup // invocations, and what waits to become one
	oracle
}

// play plays one history, tells note what happens, unless it is nil, and broken
// every promise that is.
func play(t *testing.T, open Opener, c Config, seed uint64, note, broken func(string)) Figures {
	w := &world{t: t, c: c, note: note, broken: broken, turns: schedule.Start(seed)}
	defer w.turns.Stop()
	w.copies.Turns = w.turns
	own := simclock.New(0, 0)
	own.Schedule(w.turns, Watcher, seed)
	w.ctx = clock.With(context.Background(), own)
	w.oracle.init(w)
	mix := fault.Usual(seed, c.PerMille)
	mix.Late = c.LateBy
	w.history = &History{Seed: seed, Late: w, turns: w.turns, mix: mix, streams: map[uint64]*fault.Stream{}}
	w.open = open(t, w.history)
	watcher := w.open(Watcher)
	stop := w.watch(watcher)
	if seed%2 == 1 {
		w.saver, _ = watcher.(saver)
	}
	stay := w.goBack()
	var clients sync.WaitGroup
	for i := range c.Clients {
		clients.Go(func() {
			w.turn(uint64(i)+1, "begins")
			w.client(uint64(i) + 1)
		})
	}
	clients.Wait()
	w.busy.Wait()
	stay()
	w.copies.Wait()
	time.Sleep(2 * patience)
	stop()
	w.everythingIsFree()
	w.judge()
	w.figures.Histories = 1
	w.figures.Requests, w.figures.Faults = w.history.met()
	return w.figures
}

// trace says what happens.
func (w *world) trace(format string, args ...any) {
	if w.note != nil {
		w.note(fmt.Sprintf("%12v: %s", time.Since(w.began), fmt.Sprintf(format, args...)))
	}
}

// turn waits for the turn of a client.
func (w *world) turn(client uint64, what string) {
	w.turns.Wait(schedule.Point{Process: client, What: what})
}

// after does what happens to the client then.
func (w *world) after(d time.Duration, client uint64, what string, do func()) {
	at := schedule.Point{Process: client, What: what, Due: int64(d), Since: w.turns.Now()}
	w.busy.Go(func() {
		time.Sleep(d)
		w.turns.Wait(at)
		do()
	})
}

// fail reports a broken promise.
func (w *world) fail(format string, args ...any) {
	w.trace("BROKEN: "+format, args...)
	w.broken(fmt.Sprintf("seed %d, %v: %s", w.history.Seed, time.Since(w.began), fmt.Sprintf(format, args...)))
}

// client is one process after the other. Each ends when it is killed.
func (w *world) client(id uint64) {
	random := rand.New(rand.NewPCG(w.history.Seed, id<<32))
	p := w.start(id, random)
	for range w.c.Turns {
		time.Sleep(time.Duration(random.IntN(2500)) * time.Millisecond)
		w.turn(id, "next")
		if p.isDead() {
			p = w.start(id, random)
		}
		p.turn(random, nil)
	}
}
