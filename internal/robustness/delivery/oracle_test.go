package delivery_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/history"
	"github.com/lambdalock/lambdalock/internal/local/eventsource"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/schedule"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// longest is the fake time in which every source must have drained.
const longest = 7 * 24 * time.Hour

// event is what a producer meant to happen once, and what happened.
type event struct {
	id       string
	resource string // no two handlers of one resource may overlap
	group    *group // in which order matters; nil: it does not
	place    int    // in group
	poison   bool   // no handler can succeed
	random   *rand.Rand

	deliveries  int
	runs        int
	effects     int
	withEffect  []*run
	completions int // that reached the store
	completedAt time.Time
	acks        int
	waited      int  // times it was returned because an earlier event of its group was
	dead        bool // in the dead-letter queue or failure destination
}

// completed reports whether the function may acknowledge the event: it is
// completed, or it had its effect and the middleware reported that it could not
// be completed.
func (e *event) completed() bool {
	return e.completions > 0 || slices.ContainsFunc(e.withEffect, func(r *run) bool { return r.reported && r.fate != failsAfter })
}

// group is a message group, a shard, or a partition key.
type group struct {
	name   string
	events []*event
	next   int // all before are completed or dead
}

func (g *group) add(e *event) {
	e.group, e.place = g, len(g.events)
	g.events = append(g.events, e)
}

// tally counts what happened in a history.
type tally struct {
	events, deliveries, copies, redeliveries int
	runs, effects, lostCompletions           int
	crashes, timeouts, lostAnswers, held     int
	freezes, panics, staleEffects, ghosts    int
	poison, dead, bystanders, waited         int
	redriven                                 int
	counted                                  map[string]int // by the metrics that were written
}

func (t *tally) add(o tally) {
	t.events += o.events
	t.deliveries += o.deliveries
	t.copies += o.copies
	t.redeliveries += o.redeliveries
	t.runs += o.runs
	t.effects += o.effects
	t.lostCompletions += o.lostCompletions
	t.crashes += o.crashes
	t.timeouts += o.timeouts
	t.lostAnswers += o.lostAnswers
	t.held += o.held
	t.freezes += o.freezes
	t.panics += o.panics
	t.ghosts += o.ghosts
	t.staleEffects += o.staleEffects
	t.poison += o.poison
	t.dead += o.dead
	t.bystanders += o.bystanders
	t.waited += o.waited
	t.redriven += o.redriven
	if t.counted == nil {
		t.counted = map[string]int{}
	}
	for name, n := range o.counted {
		t.counted[name] += n
	}
}

func (t *tally) String() string {
	return fmt.Sprintf("%d events, %d of them poison; %d deliveries of records (%d copies by the source, %d redeliveries, %d after lost answers); "+
		"%d crashes, %d timeouts, %d freezes, %d panics of callbacks, %d times held, %d times by the late copy of a refused claim; "+
		"%d runs, %d effects (%d without a completion that reached the store), %d stale effects refused; "+
		"%d dead letters, %d of them not poison, of which %d had to wait for an earlier one; %d redriven; metrics %v",
		t.events, t.poison, t.deliveries, t.copies, t.redeliveries, t.lostAnswers,
		t.crashes, t.timeouts, t.freezes, t.panics, t.held, t.ghosts, t.runs, t.effects, t.lostCompletions, t.staleEffects, t.dead, t.bystanders, t.waited, t.redriven, t.counted)
}

// world is one simulated history of one source, a function of its seed.
type world struct {
	t       *testing.T
	name    string
	seed    uint64
	began   time.Time
	turns   *schedule.Scheduler
	note    func(line string)   // what happens; nil: nobody wants to know
	orders  bool                // of one name only the newest event counts
	single  bool                // each event has one lock of its own
	batches bool                // a delivery is a batch of records, each with one lock
	managed bool                // the environments are managed instances
	open    func() driver.Store // what an environment keeps its locks in
	late    fault.Copies        // of requests
	under   sync.WaitGroup      // invocations
	tally

	mu     sync.Mutex
	random *rand.Rand
	newest map[string]int    // the place of the newest completed event of a resource, and one
	owners map[string]*grant // the last of each row
	fences map[string]int64  // the largest one that each fenced resource has seen
	events []*event
	byID   map[string]*event
	groups map[string]*group
	holds  []history.Hold
	envs   int
	errors int
	invs   int // invocations
}

func newWorld(t *testing.T, name string, seed uint64, open func() driver.Store, note func(string)) *world {
	w := &world{
		t: t, name: name, seed: seed, began: time.Now(), turns: schedule.Start(seed), note: note, single: true, open: open, owners: map[string]*grant{}, fences: map[string]int64{},
		random: rand.New(rand.NewPCG(seed, 0)), byID: map[string]*event{}, groups: map[string]*group{}, newest: map[string]int{},
	}
	w.late.Turns, w.counted = w.turns, map[string]int{}
	return w
}

// turn waits for the turn of a part of the source. The caller does not hold
// w.mu.
func (w *world) turn(who string) { w.turns.Wait(schedule.Point{What: who}) }

// trace says what happens.
func (w *world) trace(format string, args ...any) {
	if w.note != nil {
		w.note(fmt.Sprintf("%14v: %s", time.Since(w.began), fmt.Sprintf(format, args...)))
	}
}

// event adds an event. Each has its own random numbers, so that what happens to
// one does not change what happens to the others.
func (w *world) event(id, resource, groupName string) *event {
	e := &event{id: id, resource: resource, random: rand.New(rand.NewPCG(w.seed, uint64(len(w.events)+1)))}
	e.poison = e.random.IntN(100) == 0
	if groupName != "" {
		if w.groups[groupName] == nil {
			w.groups[groupName] = &group{name: groupName}
		}
		w.groups[groupName].add(e)
	}
	w.events = append(w.events, e)
	w.byID[id] = e
	return e
}

// order is what the bodies contain as JSON.
type order struct {
	ID       string
	Customer string
}

// body returns text that is not JSON for every second poison message; the
// handler refuses the others.
func (w *world) body(e *event, customer string) string {
	b, err := json.Marshal(order{ID: e.id, Customer: customer})
	if err != nil {
		w.t.Error(err)
	}
	if e.undecodable() {
		return "{" + string(b)
	}
	return string(b)
}

func (e *event) undecodable() bool { return e.poison && e.place%2 == 0 }

// roll returns a random number below n. The caller does not hold w.mu.
func (w *world) roll(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

// fail reports the first few errors of a history. The caller holds w.mu.
func (w *world) fail(format string, args ...any) {
	if w.errors++; w.errors <= 5 {
		what := fmt.Sprintf(format, args...)
		w.trace("BROKEN: %s", what)
		w.t.Errorf("%s, seed %d, after %v: %s", w.name, w.seed, time.Since(w.began), what)
	}
}

// complain calls fail. The caller does not hold w.mu.
func (w *world) complain(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail(format, args...)
}

// failed returns the records that failed by a partial answer. It checks that
// the answer has its list, and that it comes with an error exactly if nothing
// succeeded: that error, like such an answer, returns the whole batch. If an
// event is in the batch twice, one delivery may have failed and the other
// succeeded.
func (w *world) failed(source string, inv *invocation, ids []string, answer any, err error) []string {
	text, _ := json.Marshal(answer) // it is a list of ids
	itself := func(id string) string { return id }
	named := eventsource.Failed(eventsource.SQS, ids, itself, text)
	failed := map[*event]bool{}
	for i, e := range inv.events {
		if slices.Contains(named, ids[i]) {
			failed[e] = true
		}
	}
	all, twice := len(named) == len(ids), len(failed) < len(ids)
	if missing := bytes.Contains(text, []byte("null")); missing || err != nil && !all || err == nil && all && !twice {
		w.complain("of %d records %d failed, by the answer %s with the error %v", len(ids), len(named), text, err)
	}
	w.answered(inv, failed)
	return eventsource.Failed(source, ids, itself, text)
}

// returned checks, when the handler has returned or panicked, that the
// invocation holds nothing any more. Only what it could not release stays held.
func (w *world) returned(inv *invocation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	inv.over = true
	w.checkMetrics(inv)
	for _, g := range inv.grants {
		if g.held && !g.unsettled && !inv.env.dead && !inv.late() {
			w.fail("the function returned, and still holds %s", g.name)
		}
	}
}

// late reports whether there was no time any more to begin something, by the
// clock of the environment.
func (inv *invocation) late() bool {
	return !time.Now().Before(inv.deadline.Add(-lastStart - 2*farthest))
}

// answered compares what the function answered with what happened, before the
// source acts on it. failed are the events that the function returned.
func (w *world) answered(inv *invocation, failed map[*event]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	waits := map[*group]bool{}
	for _, e := range inv.events {
		switch {
		case !failed[e] && !e.completed() && !w.stale(e):
			w.fail("%s was acknowledged, but never completed", e.id)
		case !failed[e]:
			e.acks++
		case e.group != nil && waits[e.group]:
			e.waited++
		case inv.reasons[e] == "" && !inv.late() && !inv.panicked && inv.env.freezes == 0 && !(e.poison && e.runs == 0):
			w.fail("%s was returned without a reason", e.id)
		}
		if failed[e] && e.group != nil {
			waits[e.group] = true
		}
	}
}

// stale reports whether a later upload of the same object was completed, which
// makes an event stale under keyfuncs.S3LatestRecord.
func (w *world) stale(e *event) bool {
	return w.orders && w.newest[e.resource] > e.place+1
}

// giveUp notes that the source sends events to its dead-letter queue or failure
// destination.
func (w *world) giveUp(events []*event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range events {
		w.trace("%s is given up", e.id)
		e.dead = true
	}
}

// verdict judges a history whose source has drained.
func (w *world) verdict() tally {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errors = 0 // these errors are reported even after many others
	overlaps := history.Overlaps(w.holds)
	for _, err := range overlaps {
		w.fail("%v", err)
	}
	if err := history.Check(w.holds); err != nil && len(overlaps) == 0 {
		w.fail("%v", err)
	}
	w.errors = 0
	for _, e := range w.events {
		w.judge(e)
	}
	w.tally.events = len(w.events)
	return w.tally
}

func (w *world) judge(e *event) {
	w.redeliveries += max(0, e.deliveries-1)
	for _, r := range e.withEffect {
		if r.completed {
			continue
		}
		w.tally.lostCompletions++
		if !r.died && !r.reported && !r.inv.panicked && r.fate != failsAfter {
			w.fail("%s had its effect, and is not completed, without a reason", e.id)
		}
	}
	if e.dead {
		w.dead++
	}
	switch {
	case e.deliveries == 0:
		w.fail("%s was never delivered", e.id)
	case e.acks == 0 && !e.dead:
		w.fail("%s is neither acknowledged nor a dead letter", e.id)
	case e.completions > 1:
		w.fail("%s was completed %d times", e.id, e.completions)
	case e.poison && (e.effects > 0 || (!e.dead || e.acks > 0) && !w.stale(e)):
		w.fail("%s is poison: dead letter %v, effects %d, acknowledged %d times", e.id, e.dead, e.effects, e.acks)
	case !e.poison && e.acks > 0 && e.effects == 0 && !w.stale(e):
		w.fail("%s was acknowledged without an effect", e.id)
	}
	if e.poison {
		w.poison++
	} else if e.dead {
		w.bystanders++
		w.waited += min(1, e.waited)
	}
}
