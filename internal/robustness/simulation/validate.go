package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/history"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// record is what is known of a history by true time.
type record struct {
	began time.Time

	mu          sync.Mutex
	report      report
	holds       []*hold
	fences      map[string]*hold // the highest that each resource knows, by name
	worked      map[event]bool   // the events of which a handler succeeded
	completions map[event]*completion
	owners      map[ownership]*owner
	rows        map[string]*watched // by the names that were claimed
	grants      []grant
	cooldowns   map[string]cooldown // the last of each name
}

// event is an event of a name.
type event struct{ name, id string }

func eventOf(key lock.Key) event { return event{"/" + key.Name, key.Event} }

type completion struct {
	at    time.Time
	token string
}

func (r *record) init() {
	*r = record{
		began: time.Now(), fences: map[string]*hold{}, worked: map[event]bool{}, completions: map[event]*completion{}, owners: map[ownership]*owner{},
		rows: map[string]*watched{}, cooldowns: map[string]cooldown{},
	}
}

func (r *record) count(what func(*report)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what(&r.report)
}

// works notes that a handler has succeeded.
func (r *record) works(key lock.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.worked[eventOf(key)] = true
}

// acknowledged notes that an invocation succeeded without running its handler,
// because the event is completed. Then a handler must have succeeded (P6).
func (sim *simulation) acknowledged(key lock.Key) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.report.Skipped++
	if !sim.worked[eventOf(key)] {
		sim.fail("%v was acknowledged as completed, and no handler of it has succeeded", key)
	}
}

// asked notes how an acquisition ended.
func (sim *simulation) asked(inv *invocation, key lock.Key, err error) {
	var completed *lock.CompletedError
	switch {
	case inv.p.isDead():
	case err == nil:
		sim.count(func(r *report) { r.Acquired++ })
	case errors.As(err, &completed):
		sim.acknowledged(key)
	default:
		sim.count(func(r *report) { r.Refused++ })
	}
}

// confirmed notes that the engine reported a completion. One event is completed
// by one owner.
func (sim *simulation) confirmed(e event, token string) {
	if e.id == "" || sim.mayBeOverwritten(e) {
		return
	}
	before := sim.completions[e]
	if before == nil {
		sim.completions[e] = &completion{time.Now(), token}
		sim.report.Completed++
		return
	}
	if token != "" && before.token != "" && before.token != token {
		sim.fail("%v was completed by %s, and by %s at %v", e, token, before.token, before.at.Sub(sim.began))
	}
}

// validate checks what can only be known in the end.
func (sim *simulation) validate() {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	var exclusive []history.Hold
	for _, h := range sim.holds {
		if h.key.Name != limitedName {
			exclusive = append(exclusive, history.Hold{Name: h.key.Name, Holder: fmt.Sprintf("%s with fence %d", h.key.Event, h.fence), Fence: h.fence, Start: h.start, End: h.end})
		}
	}
	for _, overlap := range history.Overlaps(exclusive) {
		if sim.c.beyond() {
			sim.report.Overlaps++
			continue
		}
		sim.fail("%v", overlap) // P2
	}
	sim.neverMoreThanLimit()
	sim.fencesRise()
}

// neverMoreThanLimit checks how many held the limited name when each of its
// holders began.
func (sim *simulation) neverMoreThanLimit() {
	for _, h := range sim.holds {
		holders := 0
		for _, other := range sim.holds {
			if h.key.Name == limitedName && other.key.Name == limitedName && !other.start.After(h.start) && other.end.After(h.start) {
				holders++
			}
		}
		if holders > limit && !sim.c.beyond() {
			sim.fail("%d holders of the limited name at %v", holders, h.start.Sub(sim.began))
		}
		sim.report.WhileLimit = max(sim.report.WhileLimit, holders)
	}
}

// allFree acquires every name once the longest lease has ended, and
// asks for every completed event.
func (sim *simulation) allFree() {
	time.Sleep(timeout + sim.c.Skew + 15*time.Second)
	l, err := lock.New(sim.open(Watcher), &lock.Options{Logger: quiet})
	if err != nil {
		sim.fail("%v", err)
		return
	}
	for _, e := range slices.SortedFunc(maps.Keys(sim.completions), func(a, b event) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.id, b.id))
	}) {
		lk, err := l.Acquire(sim.ctx, lock.Key{Name: e.name[1:], Event: e.id})
		if err == nil {
			_ = lk.Release()
		}
		if !errors.Is(err, lock.ErrCompleted) {
			sim.fail("the completed event %v in the end: %v", e, err) // P5
		}
	}
	for _, name := range sim.names() {
		c := driver.Claim{
			Name: name, Token: "the last", Now: time.Now().Truncate(time.Microsecond), Stamp: time.Now().Add(time.Hour + sim.c.Skew).Truncate(time.Microsecond),
			Until: time.Now().Add(time.Minute).Truncate(time.Microsecond), DeleteAfter: time.Now().Add(time.Hour),
		}
		if row, ok, err := sim.open(Watcher).Acquire(sim.ctx, &c); !ok || err != nil {
			sim.fail("%s cannot be acquired in the end: %v, %+v", name, err, row) // P4
		}
	}
}
