package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	shared "github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestCoalescedDelivery lets a source with an order and a queue deliver changes
// of the same names at the same time, to functions that coalesce them and have
// any other options. Handlers fail in every way, processes die, and requests
// and answers are lost. After each change that was acknowledged came, a whole
// run of its name has begun that succeeded, no two runs of a name overlap, and
// no change runs after a later one of its group.
func TestCoalescedDelivery(t *testing.T) { // F1 to F8, F11, F14 to F16, F32, F48
	t.Parallel()
	for source := range mergedSources {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			var all mergedTally
			simulation.Play(t, simulation.Config{Histories: atLength(200)}, func(t *testing.T, seed uint64, note func(string)) {
				all.add(playMerged(t, seed, source, note))
			})
			t.Logf("%+v", all)
			if all.changes > 10_000 && (all.runs > all.changes/2 || all.moved == 0 || all.owed == 0 || all.died == 0) {
				t.Errorf("%+v: too little happened, or too little was coalesced", all)
			}
			if all.exhausted*rare > all.changes {
				t.Errorf("%d of %d changes were given up", all.exhausted, all.changes)
			}
		})
	}
}

// mergedTally counts what happened.
type mergedTally struct{ changes, deliveries, runs, moved, owed, died, exhausted int }

func (m *mergedTally) add(o mergedTally) {
	m.changes += o.changes
	m.deliveries += o.deliveries
	m.runs += o.runs
	m.moved += o.moved
	m.owed += o.owed
	m.died += o.died
	m.exhausted += o.exhausted
}

const (
	mergedTimeout  = 30 * time.Second
	mergedReceives = 40
)

// mergedChange is a change of a name, as a message or a record.
type mergedChange struct {
	id, name     string
	came         time.Time // first delivered
	receives     int
	acknowledged bool
	owes         bool // others relied on it
	moved        bool // it failed with Permanent, and owed nobody
	exhausted    bool // its source gave it up
}

// wholeRun is a run of the handler.
type wholeRun struct {
	p          *mergedProcess
	name       string
	fence      int64 // of its lock, under which there may be several
	start, end time.Time
	succeeded  bool
}

// merged is one history.
type merged struct {
	t       *testing.T
	note    func(string)
	seed    uint64
	store   driver.Store
	late    fault.Copies
	options []middleware.Option
	byName  bool // streams keep the order of names
	least   time.Duration

	mu      sync.Mutex
	random  *rand.Rand
	clients uint64
	byID    map[string]*mergedChange
	runs    []wholeRun
	mergedTally
}

func playMerged(t *testing.T, seed uint64, ordered string, note func(string)) mergedTally {
	m := &merged{t: t, note: note, seed: seed, store: memstore.New(), random: rand.New(rand.NewPCG(seed, 21)), byID: map[string]*mergedChange{}}
	m.draw()
	names := []string{ordered, "SQS"}
	changes := make([][]*mergedChange, len(names))
	for i := range names {
		for n := range 60 {
			c := &mergedChange{id: fmt.Sprintf("%d-%d", i, n), name: fmt.Sprint("n", m.roll(3))}
			m.byID[c.id] = c
			changes[i] = append(changes[i], c)
		}
	}
	var sources sync.WaitGroup
	for i, source := range names {
		if mergedSources[source].ordered {
			sources.Go(func() { m.drain(source, changes[i], 40) })
			continue
		}
		for part := range slices.Chunk(changes[i], 20) { // each with a poller of its own
			sources.Go(func() { m.drain(source, part, 10) })
		}
	}
	sources.Wait()
	m.late.Wait()
	m.judge()
	return m.mergedTally
}

// draw draws the options that all functions have.
func (m *merged) draw() {
	m.options = []middleware.Option{
		middleware.Namespace(namespace), middleware.Logger(quietly), middleware.OnlyLatest(),
		middleware.Concurrency(1 + m.roll(8)), rememberEvents(m.roll(30)),
	}
	switch m.roll(4) {
	case 0:
		m.options = append(m.options, fixedLease(mergedTimeout+5*time.Second))
	case 1:
		m.options = append(m.options, middleware.Heartbeat(4*time.Second))
	}
	m.byName = m.roll(2) == 0
	if m.roll(3) == 0 {
		m.least = time.Duration(1+m.roll(5)) * time.Second
		m.options = append(m.options, middleware.HoldAtLeast(m.least))
	}
}

func (m *merged) roll(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.random.IntN(n)
}

// drain delivers batches until all changes are acknowledged or given up: from
// the front, or, without an order, any.
func (m *merged) drain(source string, left []*mergedChange, most int) {
	for len(left) > 0 {
		if !mergedSources[source].ordered {
			m.mu.Lock()
			m.random.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
			m.mu.Unlock()
		}
		batch := left[:min(len(left), 1+m.roll(most))]
		again := mergedSources[source].again(batch, m.deliver(source, batch))
		left = slices.DeleteFunc(slices.Concat(again, left[len(batch):]), m.givesUp)
		time.Sleep(time.Duration(m.roll(8000)) * time.Millisecond)
	}
}

func (m *merged) givesUp(c *mergedChange) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.receives >= mergedReceives {
		c.exhausted = true
		m.exhausted++
	}
	return c.exhausted
}

// deliver delivers a batch to a process of its own, and returns what comes
// again.
func (m *merged) deliver(source string, batch []*mergedChange) []*mergedChange {
	m.mu.Lock()
	m.clients++
	p := &mergedProcess{Store: fault.NewStore(m.store, fault.Usual(m.seed, faulty).Client(m.clients), &m.late), m: m, source: source, batch: batch, places: map[string]int{}, dies: -1}
	if m.random.IntN(20) == 0 {
		p.dies = int64(m.random.IntN(8))
	}
	lost := m.random.IntN(50) == 0 // the answer
	for _, c := range batch {
		c.receives++
		m.deliveries++
		if c.came.IsZero() {
			c.came = time.Now()
		}
	}
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), mergedTimeout)
	defer cancel()
	var again []*mergedChange
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		again = mergedSources[source].deliver(ctx, p, batch)
	}()
	select {
	case <-answered:
	case <-time.After(mergedTimeout):
		p.die() // the platform kills it
		<-answered
	}
	if p.isDead() {
		m.mu.Lock()
		m.died++
		m.mu.Unlock()
		lost = true
	}
	if lost {
		again = batch
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range batch {
		if !slices.Contains(again, c) {
			c.acknowledged = true
		}
		m.say("%s of %s comes again: %v", c.id, c.name, slices.Contains(again, c))
	}
	return again
}

func (m *merged) say(format string, args ...any) {
	if m.note != nil {
		m.note(fmt.Sprint(time.Now().Format("04:05.000 "), fmt.Sprintf(format, args...)))
	}
}

var errMerged = errors.New("the handler fails")

// work is the handler.
func (p *mergedProcess) work(ctx context.Context, id string) (err error) {
	m := p.m
	m.mu.Lock()
	c := m.byID[id]
	fate, takes := m.random.IntN(100), time.Duration(m.random.IntN(2500))*time.Millisecond
	r := wholeRun{p: p, name: c.name, fence: lock.Leases(ctx)[0].Fence, start: time.Now()}
	m.say("%s runs for %s with fate %d", id, c.name, fate)
	p.inOrder(c)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if r.succeeded = err == nil && fate > 12 && !p.isDead(); r.end.IsZero() {
			r.end = p.now()
		}
		m.mergedTally.runs++
		m.runs = append(m.runs, r)
	}()
	if fate == 0 {
		takes = 2 * mergedTimeout
	}
	select {
	case <-ctx.Done():
		if r.end = p.now(); fate == 0 { // it goes on, beyond the deadline
			time.Sleep(mergedTimeout)
		}
		return ctx.Err()
	case <-time.After(takes):
	}
	switch {
	case fate == 1:
		p.die()
	case fate == 2:
		runtime.Goexit()
	case fate < 5:
		panic(middleware.Permanent(errMerged))
	case fate < 9:
		return errMerged
	case fate < 13:
		return middleware.Permanent(errMerged)
	}
	return nil
}

// move acknowledges what failed for good, as package redelivery does.
func (m *merged) move(id string, err error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.byID[id]
	if errors.As(err, new(*lock.DeadlineError)) || errors.As(err, new(*shared.OwedError)) {
		m.owed++
		c.owes = true
	}
	moves := errors.As(err, new(*middleware.PermanentError))
	if moves && !c.moved {
		c.moved = true
		m.moved++
	}
	return moves
}

// judge checks a history whose sources have drained.
func (m *merged) judge() {
	m.changes = len(m.byID)
	slices.SortFunc(m.runs, func(a, b wholeRun) int { return a.start.Compare(b.start) })
	// What relied on a change may be lost with it: its source gave it up, or it
	// came again and failed for good.
	lost := map[string]bool{}
	for _, c := range m.byID {
		lost[c.name] = lost[c.name] || c.exhausted || c.owes && c.moved
	}
	for _, c := range m.byID {
		served := c.moved || c.exhausted || lost[c.name] || slices.ContainsFunc(m.runs, func(r wholeRun) bool {
			return r.name == c.name && r.succeeded && !r.start.Before(c.came)
		})
		if !served || !c.acknowledged && !c.exhausted {
			m.t.Errorf("seed %d: %s of %s came first at %v, acknowledged %v, and no whole run has begun since", m.seed, c.id, c.name, c.came, c.acknowledged)
		}
	}
	last, first := map[string]wholeRun{}, map[string]wholeRun{} // first: of the last lock
	for _, r := range m.runs {
		if !r.end.After(r.start) { // its process had died
			continue
		}
		if before, ok := last[r.name]; ok && r.start.Before(before.end) {
			m.t.Errorf("seed %d: %+v and %+v overlap", m.seed, before, r)
		}
		last[r.name] = r
		if before := first[r.name]; before.fence != r.fence {
			if before.p != nil && !before.p.isDead() && r.start.Sub(before.start) < m.least {
				m.t.Errorf("seed %d: %+v and %+v begin less than %v apart", m.seed, before, r, m.least)
			}
			first[r.name] = r
		}
	}
}
