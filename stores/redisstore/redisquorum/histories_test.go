package redisquorum_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	simhistory "github.com/lambdalock/lambdalock/internal/history"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/schedule"
	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
	"github.com/lambdalock/lambdalock/stores/redisstore/redisquorum"
)

// setting says what happens to the nodes of a quorum in a history.
type setting struct {
	faulted  []int // for each node, how many of a thousand requests meet a fault
	pauses   int   // how often a node is paused
	restarts int   // how often a node is down, for longer than the longest lease
	lost     bool  // a node that was down has lost its data
	// back says that a node that was down has lost its last writes, at most for
	// that long. As long after its return, and not before, the next one goes down.
	back time.Duration
	both bool // two of three nodes go back at once
	down bool // the last node is down all the time
	// live says that nothing may be held for nobody. Where more than a minority of
	// the nodes meets faults, a claim that was given up may keep a name until its
	// lease ends.
	live bool
}

const (
	owners   = 8
	attempts = 12
	// longestLease is more than that of a lease to the deadline, with Grace.
	longestLease = 14 * time.Second
	// attempt is how long a request may take. So long after its last request, an
	// owner may still seem to hold the name.
	attempt = time.Second
)

var stored = []string{"/n0", "/n1", "/limited", "/slot:2:limited"}

// history is one run of many owners of a few names, over a quorum.
type history struct {
	*testing.T
	setting
	seed     uint64
	turns    *schedule.Scheduler
	note     func(line string) // what happens; nil: nobody wants to know
	began    time.Time
	random   *rand.Rand // of what disturbs the nodes
	machines []*redistest.Machine
	late     fault.Copies
	plans    []*fault.Stream

	mu      sync.Mutex
	states  [][]redistest.State // of the nodes, every 100 ms
	holds   []simhistory.Hold
	limited []simhistory.Hold
	done    map[string][]completion // by name, in order
	tokens  map[string]*owner
	count   map[string]int // outcomes
	over    bool
}

// trace notes what happens.
func (h *history) trace(format string, args ...any) {
	if h.note != nil {
		h.note(fmt.Sprintf("%12v: %s", time.Since(h.began), fmt.Sprintf(format, args...)))
	}
}

// broken reports a promise that was broken.
func (h *history) broken(format string, args ...any) {
	h.trace("BROKEN: "+format, args...)
	h.Errorf("seed %d, %v: %s", h.seed, time.Since(h.began), fmt.Sprintf(format, args...))
}

// sleep sleeps, and waits for the turn to do what.
func (h *history) sleep(d time.Duration, what string) {
	at := schedule.Point{What: what, Due: int64(d), Since: h.turns.Now()}
	time.Sleep(d)
	h.turns.Wait(at)
}

// within returns a random time of less than d.
func within(random *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(d)))
}

// open returns the store of a client, with a plan for each node.
func (h *history) open(client uint64) driver.Store {
	links := make([]redis.Scripter, len(h.machines))
	for i, m := range h.machines {
		mix := fault.Usual(h.seed, h.faulted[i])
		plan := mix.Client(client*uint64(len(h.machines)) + uint64(i))
		plan.Turns = h.turns
		h.plans = append(h.plans, plan)
		links[i] = redistest.NewLink(m, fmt.Sprint("node:", i), plan, &h.late, h.seed, client+uint64(i)<<32)
	}
	return redistest.Must(redisquorum.New(links...))
}

// play runs the history of a seed, in its bubble of fake time.
func play(t *testing.T, seed uint64, note func(string), s setting) *history {
	h := &history{
		T: t, setting: s, seed: seed, turns: schedule.Start(seed), note: note, began: time.Now(), random: rand.New(rand.NewPCG(seed, 11)),
		done: map[string][]completion{}, tokens: map[string]*owner{}, count: map[string]int{},
	}
	defer h.turns.Stop()
	h.late.Turns = h.turns
	for i := range s.faulted {
		m := redistest.NewMachine(t)
		m.Turns, m.ID = h.turns, uint64(i)
		h.machines = append(h.machines, m)
	}
	h.warm()
	if s.down {
		h.machines[len(h.machines)-1].SetDown(true)
	}
	var all sync.WaitGroup
	for i := range owners {
		w := h.worker(uint64(i))
		all.Go(func() {
			w.clock.Turn("begins")
			for range attempts + int(2*s.back/time.Second) { // as long as servers go back
				w.own()
				_ = w.clock.Sleep(w.ctx, within(w.random, 3*time.Second))
			}
		})
	}
	var watch sync.WaitGroup
	watch.Go(h.watch)
	if s.back > 0 {
		watch.Go(h.snapshots)
	}
	h.disturb()
	all.Wait()
	h.becalm()
	watch.Wait()
	h.late.Wait()
	h.mustBeFree()
	h.check()
	h.neverMoreThanLimit()
	return h
}

// warm lets the nodes know the scripts. A node that does not, and is paused,
// never gets what was sent to it meanwhile: nobody is left to send the text.
func (h *history) warm() {
	for _, m := range h.machines {
		store := redistest.Must(redisstore.New(redistest.NewLink(m, "node", &fault.Script{}, &h.late, h.seed, owners)))
		c := redistest.Claim("warm")
		redistest.MustAcquire(h.T, store, c)
		if _, ok, err := store.Renew(h.Context(), redistest.Renewal(c)); !ok || err != nil {
			h.Fatal(ok, err)
		}
		if _, ok, err := store.Settle(h.Context(), redistest.Settlement(c)); !ok || err != nil {
			h.Fatal(ok, err)
		}
	}
}

// disturb pauses and restarts nodes, one at a time.
func (h *history) disturb() {
	for range h.pauses {
		h.sleep(within(h.random, 5*time.Second), "pause")
		n, d := h.random.IntN(len(h.machines)), within(h.random, 20*time.Second)
		h.trace("node %d is paused for %v", n, d)
		h.machines[n].Pause(d)
	}
	for range h.restarts {
		h.sleep(h.back+within(h.random, 10*time.Second), "restart")
		n := h.random.IntN(len(h.machines))
		h.trace("node %d is restarted", n)
		var then redistest.State
		var next sync.WaitGroup
		switch {
		case h.lost:
			then = redistest.State{}
		case h.back > 0:
			then = h.earlier(n)
		}
		if h.both { // the servers are up again at once: the leases last
			other := (n + 1) % len(h.machines)
			before := h.earlier(other)
			next.Go(func() { h.machines[other].Restart(500*time.Millisecond, before) })
			h.machines[n].Restart(500*time.Millisecond, then)
			next.Wait()
			continue
		}
		h.machines[n].Restart(longestLease+within(h.random, 10*time.Second), then)
	}
}

// snapshots keeps what each node has stored, until the history is over.
func (h *history) snapshots() {
	const every = 100 * time.Millisecond
	for !h.isOver() {
		h.mu.Lock()
		h.states = append(h.states, nil)
		for _, m := range h.machines {
			h.states[len(h.states)-1] = append(h.states[len(h.states)-1], redistest.StateOf(m.Mini))
		}
		h.states = h.states[max(len(h.states)-int(h.back/every), 0):]
		h.mu.Unlock()
		h.sleep(every, "snapshot")
	}
}

// earlier returns a state that a node had not too long ago.
func (h *history) earlier(node int) redistest.State {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.states) == 0 {
		return nil
	}
	return h.states[h.random.IntN(len(h.states))][node]
}

func (h *history) becalm() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.plans {
		p.Heal()
	}
	h.over = true
}

func (h *history) isOver() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}

// settings are those of the histories, by name.
var settings = map[string]setting{
	"no faults":                      {faulted: []int{0, 0, 0}, live: true},
	"one node is faulty":             {faulted: []int{0, 600, 0}, live: true},
	"one is down":                    {faulted: []int{0, 0, 0}, down: true, live: true},
	"one is down, the others faulty": {faulted: []int{50, 50, 0}, down: true},
	"one at a time is paused":        {faulted: []int{0, 0, 0}, pauses: 20, live: true},
	"one at a time restarts":         {faulted: []int{50, 50, 50}, restarts: 6},
	"one at a time loses its data":   {faulted: []int{50, 50, 50}, restarts: 6, lost: true},
	"one at a time goes back 1 s":    {faulted: []int{0, 0, 0}, restarts: 6, back: time.Second, live: true},
	"one at a time goes back 1 min":  {faulted: []int{0, 0, 0}, restarts: 3, back: time.Minute, live: true},
	"two at once go back 1 s":        {faulted: []int{50, 50, 50}, restarts: 12, back: time.Second, both: true},
	"two at once go back 1 min":      {faulted: []int{0, 0, 0}, restarts: 3, back: time.Minute, both: true},
	"all are faulty":                 {faulted: []int{200, 200, 200}},
	"all are faulty, one is paused":  {faulted: []int{50, 50, 50}, pauses: 20},
	"five nodes, two are faulty":     {faulted: []int{600, 0, 0, 600, 0}, live: true},
	"five nodes, all are faulty":     {faulted: []int{200, 200, 200, 200, 200}, pauses: 20},
}

// TestQuorumHistories plays random histories over faulty networks. At no time
// may two own the name, fences rise, a completed event does not run again, and
// in the end the name is free.
func TestQuorumHistories(t *testing.T) { // F1, F2, F3, F5, F6, F19, F21, F24, F44, F56
	for name, s := range settings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			count := map[string]int{}
			simulation.Play(t, simulation.Config{Histories: 1, Share: 10}, func(t *testing.T, seed uint64, note func(string)) {
				for outcome, n := range play(t, seed, note, s).count {
					count[outcome] += n
				}
			})
			t.Log(count)
			if os.Getenv("LAMBDALOCK_SEED") == "" && (count["ok"] < 10 || count["completed"] == 0) {
				t.Errorf("the histories have too little in them: %v", count)
			}
		})
	}
}

// TestQuorumHistoryIsItsSeed shows that a seed brings the same history back.
func TestQuorumHistoryIsItsSeed(t *testing.T) {
	for name, s := range settings {
		if s.back == time.Minute || s.live && s.back == 0 {
			continue // longer, or with nothing that another one lacks
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			simulation.CheckReplay(t, simulation.Config{Histories: 1, Share: 100}, func(t *testing.T, seed uint64, note func(string)) {
				play(t, seed, note, s)
			})
		})
	}
}
