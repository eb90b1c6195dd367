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

// oracle is what is known of a history by true time.
type oracle struct {
	began time.Time

	mu          sync.Mutex
	figures     Figures
	holds       []*hold
	fences      map[string]*hold // the highest that each resource knows, by name
	worked      map[event]bool   // the events of which a handler succeeded
	completions map[event]*completion
	grips       map[grip]*grabbed
	rows        map[string]*watched // by the names that were claimed
	grants      []grant
	shared      map[lockID]*grabbed // that two invocations resume
}

// event is an event of a name.
type event struct{ name, id string }

func eventOf(key lock.Key) event { return event{"/" + key.Name, key.Event} }

type completion struct {
	at    time.Time
	token string
}

func (o *oracle) init(*world) {
	*o = oracle{
		began: time.Now(), fences: map[string]*hold{}, worked: map[event]bool{}, completions: map[event]*completion{}, grips: map[grip]*grabbed{},
		rows: map[string]*watched{}, shared: map[lockID]*grabbed{},
	}
}

func (o *oracle) count(what func(*Figures)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	what(&o.figures)
}

// works notes that a handler has succeeded.
func (o *oracle) works(key lock.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.worked[eventOf(key)] = true
}

// acknowledged notes that an invocation succeeded without running its handler,
// because the event is completed. Then a handler must have succeeded (P6).
func (w *world) acknowledged(key lock.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.figures.Skipped++
	if !w.worked[eventOf(key)] {
		w.fail("%v was acknowledged as completed, and no handler of it has succeeded", key)
	}
}

// asked notes how an acquisition ended.
func (w *world) asked(inv *invocation, key lock.Key, err error) {
	var completed *lock.CompletedError
	switch {
	case inv.p.isDead():
	case err == nil:
		w.count(func(f *Figures) { f.Acquired++ })
	case errors.As(err, &completed):
		w.acknowledged(key)
	default:
		w.count(func(f *Figures) { f.Refused++ })
	}
}

// confirmed notes that the engine reported a completion. One event is completed
// by one owner.
func (w *world) confirmed(e event, token string) {
	if e.id == "" {
		return
	}
	before := w.completions[e]
	if before == nil {
		w.completions[e] = &completion{time.Now(), token}
		w.figures.Completed++
		return
	}
	if token != "" && before.token != "" && before.token != token {
		w.fail("%v was completed by %s, and by %s at %v", e, token, before.token, before.at.Sub(w.began))
	}
}

// judge checks what can only be known in the end.
func (w *world) judge() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var exclusive []history.Hold
	for _, h := range w.holds {
		if h.key.Name != limitedName && !w.giveWay(h) {
			exclusive = append(exclusive, history.Hold{Name: h.key.Name, Holder: fmt.Sprintf("%s with fence %d", h.key.Event, h.fence), Fence: h.fence, Start: h.start, End: h.end})
		}
	}
	for _, overlap := range history.Overlaps(exclusive) {
		if w.c.beyond() {
			w.figures.Overlaps++
			continue
		}
		w.fail("%v", overlap) // P2
	}
	w.neverMoreThanLimit()
	w.fencesRise()
}

// neverMoreThanLimit checks how many held the limited name when each of its
// holders began.
func (w *world) neverMoreThanLimit() {
	for _, h := range w.holds {
		holders := 0
		for _, other := range w.holds {
			if h.key.Name == limitedName && other.key.Name == limitedName && !other.start.After(h.start) && other.end.After(h.start) {
				holders++
			}
		}
		if holders > limit && !w.c.beyond() {
			w.fail("%d holders of the limited name at %v", holders, h.start.Sub(w.began))
		}
		w.figures.WhileLimit = max(w.figures.WhileLimit, holders)
	}
}

// everythingIsFree acquires every name once the longest lease has ended, and
// asks for every completed event.
func (w *world) everythingIsFree() {
	time.Sleep(timeout + w.c.Skew + 15*time.Second)
	l, err := lock.New(w.open(Watcher), &lock.Options{Logger: quiet})
	if err != nil {
		w.fail("%v", err)
		return
	}
	for _, e := range slices.SortedFunc(maps.Keys(w.completions), func(a, b event) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.id, b.id))
	}) {
		lk, err := l.Acquire(w.ctx, lock.Key{Name: e.name[1:], Event: e.id})
		if err == nil {
			_ = lk.Release()
		}
		if !errors.Is(err, lock.ErrCompleted) {
			w.fail("the completed event %v in the end: %v", e, err) // P5
		}
	}
	for _, name := range w.names() {
		c := driver.Claim{
			Name: name, Token: "the last", Now: time.Now().Truncate(time.Microsecond), Stamp: time.Now().Add(time.Hour + w.c.Skew).Truncate(time.Microsecond),
			Until: time.Now().Add(time.Minute).Truncate(time.Microsecond), DeleteAfter: time.Now().Add(time.Hour),
		}
		if row, ok, err := w.open(Watcher).Acquire(w.ctx, &c); !ok || err != nil {
			w.fail("%s cannot be acquired in the end: %v, %+v", name, err, row) // P4
		}
	}
}
