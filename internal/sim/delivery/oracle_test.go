package delivery

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/sim/history"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// longest is by when every source must have drained, in fake time.
const longest = 7 * 24 * time.Hour

// event is what a producer meant to happen once, and what did.
type event struct {
	id       string
	resource string // no two handlers of one resource may overlap
	group    *group // in which order matters; nil: none
	place    int    // in group
	poison   bool   // no handler can succeed
	random   *rand.Rand

	deliveries int
	runs       int
	effects    int
	records    int // completions that reached the store
	recorded   time.Time
	excuses    int  // effects of which the record could not reach the store
	denied     bool // one of them is an effect whose record was refused for good
	acks       int
	waited     int  // returned because an earlier one of its group was
	dead       bool // in the dead-letter queue or failure destination
}

// done: whoever was told so by the function was told the truth.
func (e *event) done() bool { return e.records > 0 || e.denied }

// group is a message group, a shard, or a partition key.
type group struct {
	name   string
	events []*event
	next   int // all before are done or dead
}

func (g *group) add(e *event) {
	e.group, e.place = g, len(g.events)
	g.events = append(g.events, e)
}

// tally is what a history was made of.
type tally struct {
	events, deliveries, copies, redeliveries int
	runs, effects, excuses                   int
	crashes, timeouts, lostAnswers, held     int
	poison, dead, bystanders, waited         int
}

func (t *tally) add(o tally) {
	t.events += o.events
	t.deliveries += o.deliveries
	t.copies += o.copies
	t.redeliveries += o.redeliveries
	t.runs += o.runs
	t.effects += o.effects
	t.excuses += o.excuses
	t.crashes += o.crashes
	t.timeouts += o.timeouts
	t.lostAnswers += o.lostAnswers
	t.held += o.held
	t.poison += o.poison
	t.dead += o.dead
	t.bystanders += o.bystanders
	t.waited += o.waited
}

func (t *tally) String() string {
	return fmt.Sprintf("%d events, %d of them poison; %d deliveries of records (%d copies by the source, %d redeliveries, %d after lost answers); "+
		"%d crashes, %d timeouts, %d times held; %d runs, %d effects (%d again, after a crash or refusal before the record); "+
		"%d dead letters, %d of them no poison, of which %d had to wait for an earlier one",
		t.events, t.poison, t.deliveries, t.copies, t.redeliveries, t.lostAnswers,
		t.crashes, t.timeouts, t.held, t.runs, t.effects, t.excuses, t.dead, t.bystanders, t.waited)
}

// world is one simulated history of one source. The seed fixes what the simulator
// decides, but neither the jitter of the engine nor the order of what falls into the
// same instant: most failures come again with their seed, not all.
type world struct {
	t      *testing.T
	name   string
	seed   uint64
	began  time.Time
	orders bool // of one name only the newest event counts
	tally

	mu     sync.Mutex
	store  *memstore.Store
	random *rand.Rand
	events []*event
	byID   map[string]*event
	groups map[string]*group
	holds  []history.Hold
	envs   int
	errors int
}

func newWorld(t *testing.T, name string, seed uint64) *world {
	return &world{
		t: t, name: name, seed: seed, began: time.Now(), store: memstore.New(),
		random: rand.New(rand.NewPCG(seed, 0)), byID: map[string]*event{}, groups: map[string]*group{},
	}
}

// event makes an event. Each decides for itself, so that what happens to one does
// not change what happens to the others.
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

// order is what the bodies hold as JSON.
type order struct {
	ID       string
	Customer string
}

// body is not JSON for every second poison; the handler refuses the other ones.
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

// roll needs no lock.
func (w *world) roll(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

// fail needs the lock.
func (w *world) fail(format string, args ...any) {
	if w.errors++; w.errors <= 5 {
		w.t.Errorf("%s, seed %d, after %v: %s", w.name, w.seed, time.Since(w.began), fmt.Sprintf(format, args...))
	}
}

func (w *world) complain(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail(format, args...)
}

// checkAnswer: an answer always names what failed, and comes with an error if nothing
// succeeded. The error gives back the whole batch, and so does such an answer. Of an event
// that is twice in the batch, one delivery may have failed and the other succeeded.
func (w *world) checkAnswer(records []*event, missing bool, failed map[*event]bool, err error) {
	all := !slices.ContainsFunc(records, func(e *event) bool { return !failed[e] })
	twice := len(failed) < len(records)
	if missing || err != nil && !all || err == nil && all && !twice {
		w.complain("of %d records %d failed, list missing: %v, with the error %v", len(records), len(failed), missing, err)
	}
}

// answered compares what the function said of its records with what happened.
// failed are those that it wants again; the source has not acted on it yet.
func (w *world) answered(inv *invocation, failed map[*event]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	late := !time.Now().Before(inv.deadline.Add(-lastStart))
	for _, g := range inv.env.grants {
		if g.owned && !late {
			w.fail("the function answered, and still owns %s", g.name)
		}
	}
	waits := map[*group]bool{}
	for _, e := range inv.events {
		switch {
		case !failed[e] && !e.done() && !w.overtaken(e):
			w.fail("%s was acknowledged, but never completed", e.id)
		case !failed[e]:
			e.acks++
		case e.group != nil && waits[e.group]:
			e.waited++
		case inv.reasons[e] == "" && !late && !(e.poison && e.runs == 0):
			w.fail("%s was returned without a reason", e.id)
		}
		if failed[e] && e.group != nil {
			waits[e.group] = true
		}
	}
}

// overtaken: under keyfuncs.S3LatestRecord an upload is given up when a later one of
// the same object was completed.
func (w *world) overtaken(e *event) bool {
	if !w.orders {
		return false
	}
	for _, o := range w.events {
		if o.resource == e.resource && o.place > e.place && o.records > 0 {
			return true
		}
	}
	return false
}

// bury: the source gives an event up.
func (w *world) bury(e *event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.dead = true
}

// verdict is the oracle's last word, when the source has drained.
func (w *world) verdict() tally {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errors = 0 // the last word is heard after many others, too
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
	w.tally.excuses += e.excuses
	if e.dead {
		w.dead++
	}
	switch {
	case e.deliveries == 0:
		w.fail("%s was never delivered", e.id)
	case e.acks == 0 && !e.dead:
		w.fail("%s is neither acknowledged nor a dead letter", e.id)
	case e.records > 1:
		w.fail("%s was completed %d times", e.id, e.records)
	case e.effects != e.records+e.excuses:
		w.fail("%s had its effect %d times, with %d completions and %d crashes or refusals between effect and record", e.id, e.effects, e.records, e.excuses)
	case e.poison && (e.effects > 0 || (!e.dead || e.acks > 0) && !w.overtaken(e)):
		w.fail("%s is poison: dead letter %v, effects %d, acknowledged %d times", e.id, e.dead, e.effects, e.acks)
	case !e.poison && e.acks > 0 && e.effects == 0 && !w.overtaken(e):
		w.fail("%s was acknowledged without an effect", e.id)
	}
	if e.poison {
		w.poison++
	} else if e.dead {
		w.bystanders++
		w.waited += min(1, e.waited)
	}
}
