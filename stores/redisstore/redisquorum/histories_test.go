package redisquorum_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	simhistory "github.com/lambdalock/lambdalock/internal/history"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
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
	// longestLease is that of a lock that was handed over, with Grace.
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
	machines []*redistest.Machine
	late     fault.Copies
	plans    []*fault.Stream
	wg       sync.WaitGroup // resumed locks

	mu      sync.Mutex
	random  *rand.Rand
	states  [][]redistest.State // of the nodes, every 100 ms
	holds   []simhistory.Hold
	limited []simhistory.Hold
	resumed map[simhistory.Hold]bool
	done    map[string][]completion // by name, in order
	tokens  map[string]*owner
	count   map[string]int // outcomes
	over    bool
}

// completion is one that was begun.
type completion struct {
	event, result string
	certain       bool
}

// owner is what became of a token.
type owner struct {
	ended    time.Time // zero: it may be in use
	excused  bool      // it may hold a name until its lease ends
	reported bool
}

func (h *history) roll(n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.random.IntN(n)
}

func (h *history) within(d time.Duration) time.Duration { return time.Duration(h.roll(int(d))) }

// open returns the store of a client, with a plan for each node.
func (h *history) open(client uint64) driver.Store {
	links := make([]redis.Scripter, len(h.machines))
	for i, m := range h.machines {
		mix := fault.Usual(h.seed, h.faulted[i])
		plan := mix.Client(client*uint64(len(h.machines)) + uint64(i))
		h.plans = append(h.plans, plan)
		links[i] = redistest.NewLink(m, fmt.Sprint("node:", i), plan, &h.late, h.seed, client)
	}
	return redistest.Must(redisquorum.New(links...))
}

// client notes what becomes of the tokens of one invocation.
type client struct {
	driver.Store
	h *history

	mu       sync.Mutex
	token    string
	ended    bool // a release was answered
	crashed  bool
	handed   bool
	released bool // a release was sent
	resumed  bool
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
	c.released = true
	c.mu.Unlock()
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
	if c.token != "" && !c.handed {
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

// play runs the history of a seed.
func play(t *testing.T, seed uint64, s setting) *history {
	h := &history{setting: s, seed: seed, done: map[string][]completion{}, tokens: map[string]*owner{}, resumed: map[simhistory.Hold]bool{}, count: map[string]int{}, random: rand.New(rand.NewPCG(seed, 11))}
	synctest.Test(t, func(t *testing.T) {
		h.T = t
		for range s.faulted {
			h.machines = append(h.machines, redistest.NewMachine(t))
		}
		h.warm()
		if s.down {
			h.machines[len(h.machines)-1].SetDown(true)
		}
		var all sync.WaitGroup
		for i := range owners {
			store := h.open(uint64(i))
			all.Go(func() {
				for range attempts + int(2*s.back/time.Second) { // as long as servers go back
					h.own(store, fmt.Sprint("owner ", i))
					time.Sleep(h.within(3 * time.Second))
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
		h.wg.Wait()
		h.becalm()
		watch.Wait()
		h.late.Wait()
		h.mustBeFree()
		h.check()
		h.neverMoreThanLimit()
	})
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
		time.Sleep(h.within(5 * time.Second))
		h.machines[h.roll(len(h.machines))].Pause(h.within(20 * time.Second))
	}
	for range h.restarts {
		time.Sleep(h.back + h.within(10*time.Second))
		n := h.roll(len(h.machines))
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
		h.machines[n].Restart(longestLease+h.within(10*time.Second), then)
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
		time.Sleep(every)
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

// leases are those of the invocations. Each has a deadline of 20 s at most.
var leases = []lock.LeaseMode{lock.Heartbeat(9 * time.Second), lock.FixedLease(8 * time.Second), lock.UntilDeadline()}

func (h *history) locker(store driver.Store, holder string, limit int) *lock.Locker {
	l, err := lock.New(store, &lock.Options{
		Lease: leases[h.roll(len(leases))], MaxWait: time.Duration(h.roll(2)) * 8 * time.Second, Limit: limit,
		Logger: slog.New(slog.DiscardHandler), Holder: func(context.Context) string { return holder },
	})
	if err != nil {
		h.Fatal(err)
	}
	return l
}

// own works for one event.
func (h *history) own(store driver.Store, holder string) {
	key, limit := lock.Key{Name: fmt.Sprint("n", h.roll(2))}, 0
	switch h.roll(6) {
	case 0:
		key.Name, limit = "limited", 2
	case 1:
	default:
		key.Event = redistest.Event(h.roll(12))
	}
	c := &client{Store: store, h: h}
	defer c.over()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	before := h.completions(key)
	l, err := h.locker(c, holder, limit).Acquire(ctx, key)
	h.note(outcome(err))
	h.replays(key, before, err)
	if err == nil {
		h.work(c, l, key, holder)
	}
}

func (h *history) note(outcome string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count[outcome]++
}

// work works and ends the lock in some way.
func (h *history) work(c *client, l *lock.Lock, key lock.Key, holder string) {
	h.runs(key, holder)
	start := time.Now()
	_ = redistest.Sleep(l.Context(), h.within(4*time.Second))
	h.worked(c, simhistory.Hold{Name: key.Name, Holder: holder, Fence: l.Lease().Fence, Start: start, End: time.Now()})
	switch h.roll(8) {
	case 0:
		h.note("crash")
		c.mu.Lock()
		c.crashed = true
		c.mu.Unlock()
		l.Leave()
	case 1, 2:
		err := l.Release()
		h.note("release: " + outcome(err))
		h.keeps(l, key, err)
	case 3:
		h.handOver(c, l, key, holder)
	default:
		result := fmt.Sprint("result of ", l.Lease().Fence)
		h.mu.Lock()
		n := len(h.done[key.Name])
		h.done[key.Name] = append(h.done[key.Name], completion{event: key.Event, result: result})
		h.mu.Unlock()
		err := l.CompleteWith([]byte(result))
		h.note("complete: " + outcome(err))
		h.keeps(l, key, err)
		h.mu.Lock()
		h.done[key.Name][n].certain = err == nil
		h.mu.Unlock()
	}
}

// completions returns those of a name. The last one is certain, or there is
// none.
func (h *history) completions(key lock.Key) []completion {
	h.mu.Lock()
	defer h.mu.Unlock()
	done := h.done[key.Name]
	if n := len(done); n == 0 || !done[n-1].certain {
		return nil
	}
	return slices.Clone(done)
}

// runs checks that no event runs again that was completed and must be
// remembered.
func (h *history) runs(key lock.Key, holder string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	later := map[string]bool{}
	for _, c := range slices.Backward(h.done[key.Name]) {
		if key.Event != "" && c.event == key.Event && c.certain && len(later) < redistest.Remembered && !h.lost && !h.both {
			h.Errorf("seed %d: at %v %s runs %s again, although it was completed", h.seed, time.Now(), holder, key)
		}
		if c.event != "" {
			later[c.event] = true
		}
	}
}

// replays checks that a duplicate of the last event gets its result.
func (h *history) replays(key lock.Key, before []completion, err error) {
	now := h.completions(key)
	e := completedError(err)
	if e == nil || len(before) == 0 || len(now) != len(before) || h.lost || h.both {
		return
	}
	if last := now[len(now)-1]; last.event == key.Event {
		h.note("replayed")
		if string(e.Result) != last.result {
			h.Errorf("seed %d: at %v the duplicate of %s got %q, want %q", h.seed, time.Now(), key, e.Result, last.result)
		}
	}
}

// keeps checks that nobody loses a lock whose lease lasts while a majority of
// the nodes answers: its event would run again.
func (h *history) keeps(l *lock.Lock, key lock.Key, err error) {
	if h.live && errors.Is(err, lock.ErrLost) && time.Now().Before(l.Lease().Until) {
		h.Errorf("seed %d: at %v the lock of %s with fence %d, whose lease lasts, ended with %v", h.seed, time.Now(), key, l.Lease().Fence, err)
	}
}

func (h *history) worked(c *client, hold simhistory.Hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resumed[hold] = c.resumed
	if hold.Name == "limited" {
		h.limited = append(h.limited, hold)
		return
	}
	h.holds = append(h.holds, hold)
}

// handOver hands the lock over to an invocation that begins soon, or too late.
func (h *history) handOver(c *client, l *lock.Lock, key lock.Key, holder string) {
	handle, err := l.HandOver(context.Background(), 4*time.Second+h.within(6*time.Second))
	h.note("hand over: " + outcome(err))
	if err != nil {
		_ = l.Release()
		return
	}
	c.mu.Lock()
	c.handed = true
	c.mu.Unlock()
	_ = l.Complete()
	h.wg.Go(func() {
		time.Sleep(h.within(9 * time.Second))
		next := &client{Store: c.Store, h: h, token: handle.Token, resumed: true}
		defer next.over()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		l, err := h.locker(next, holder, 0).Resume(ctx, handle)
		h.note("resume: " + outcome(err))
		if err != nil {
			next.crashed = true // nobody releases the name
			return
		}
		if l.Lease().Fence < handle.Fence {
			h.Errorf("seed %d: fence %d has become %d", h.seed, handle.Fence, l.Lease().Fence)
		}
		h.work(next, l, key, holder)
	})
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

// watch looks at the rows of all nodes until the history is over. Nodes that
// are held for nobody must leave a majority to others.
func (h *history) watch() {
	for !h.isOver() {
		time.Sleep(250 * time.Millisecond)
		for _, name := range stored {
			h.look(name)
		}
	}
}

func (h *history) look(name string) {
	var stale []string
	for _, m := range h.machines {
		if token := h.stale(m, name); token != "" {
			stale = append(stale, token)
		}
	}
	if len(stale) <= len(h.machines)/2 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.tokens[stale[0]]
	if first.reported {
		return
	}
	first.reported = true
	h.count["held for nobody"]++
	if h.live {
		h.Errorf("seed %d: at %v nobody can get %s: nodes are held by %v, and the owner of the first has ended at %v", h.seed, time.Now(), name, stale, first.ended)
	}
}

// stale returns the token that holds the node for nobody.
func (h *history) stale(m *redistest.Machine, name string) string {
	token := m.Mini.HGet("lambdalock:"+name, "ownerToken")
	end, _ := strconv.ParseInt(m.Mini.HGet("lambdalock:"+name, "leaseEnd"), 10, 64)
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.tokens[token]
	if o == nil || o.excused || o.ended.IsZero() || time.Since(o.ended) < attempt || time.UnixMicro(end).Before(time.Now()) {
		return ""
	}
	return token
}

// check checks that no two owned a name at the same time, and that fences rise.
// A lock that is resumed keeps its fence.
func (h *history) check() {
	if h.both { // owners overlap
		h.fencesRise()
		return
	}
	for _, err := range simhistory.Overlaps(h.holds) {
		h.Errorf("seed %d: %v", h.seed, err)
	}
	fences := slices.DeleteFunc(slices.Clone(h.holds), func(hold simhistory.Hold) bool { return h.resumed[hold] })
	if err := simhistory.Check(fences); err != nil {
		h.Errorf("seed %d: %v", h.seed, err)
	}
}

// fencesRise checks that the fence of each owner is above that of every owner
// who had begun a round trip earlier.
func (h *history) fencesRise() {
	for _, a := range h.holds {
		for _, b := range h.holds {
			if a.Name == b.Name && !h.resumed[a] && !h.resumed[b] && b.Start.Sub(a.Start) > 20*time.Millisecond && b.Fence <= a.Fence {
				h.Errorf("seed %d: %v after %v", h.seed, b, a)
			}
		}
	}
}

// neverMoreThanLimit checks how many held the limited name when each of its
// holders began.
func (h *history) neverMoreThanLimit() {
	for _, hold := range h.limited {
		holders := 0
		for _, other := range h.limited {
			if !other.Start.After(hold.Start) && other.End.After(hold.Start) {
				holders++
			}
		}
		if holders > 2 && !h.both {
			h.Errorf("seed %d: %d holders of the limited name at %v", h.seed, holders, hold.Start)
		}
	}
}

// mustBeFree acquires every name once more, after the longest lease has ended.
func (h *history) mustBeFree() {
	time.Sleep(longestLease)
	store := h.open(owners)
	h.becalm()
	for _, name := range []string{"n0", "n1", "limited"} {
		locker, err := lock.New(store, &lock.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			h.Fatal(err)
		}
		l, err := locker.Acquire(context.Background(), lock.Key{Name: name})
		if err != nil {
			h.Errorf("seed %d: %s is not free in the end: %v", h.seed, name, err)
			continue
		}
		if err := l.Release(); err != nil {
			h.Errorf("seed %d: %v", h.seed, err)
		}
	}
}

// seeds returns how many histories to play: LAMBDALOCK_SEEDS divided by share,
// or the usual number if it is not set.
func seeds(t *testing.T, usual, share uint64) uint64 {
	s := os.Getenv("LAMBDALOCK_SEEDS")
	if s == "" {
		return usual
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return max(n/share, 1)
}

// TestQuorumHistories plays random histories over faulty networks. At no time
// may two own the name, fences rise, a completed event does not run again, and
// in the end the name is free.
func TestQuorumHistories(t *testing.T) { // F1, F2, F3, F5, F6, F19, F21, F24, F44, F56
	for name, s := range map[string]setting{
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
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			count := map[string]int{}
			enough := func() bool { return count["ok"] >= 10 && count["completed"] > 0 }
			// The order in which servers answer is not in the seed, so one history may hold
			// no duplicate of a completed event.
			few := seeds(t, 1, 10)
			for seed := range few + 10 {
				if seed >= few && enough() {
					break
				}
				h := play(t, seed, s)
				for k, n := range h.count {
					count[k] += n
				}
				if t.Failed() {
					return
				}
			}
			t.Log(count)
			if !enough() {
				t.Errorf("the histories have too little in them: %v", count)
			}
		})
	}
}
