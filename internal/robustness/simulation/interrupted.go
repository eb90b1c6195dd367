package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/schedule"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Interrupted delivers events, each until it is acknowledged, to processes that
// die and freeze, while requests meet faults. The events of a name differ in
// what OnInterrupted says, and events and mutexes without it take the name
// over. The work of an event begins only if each earlier run of it has a known
// end, or if a question that was asked under this lock has let it run.
func Interrupted(t *testing.T, open Opener, c Config) {
	t.Helper()
	c = c.withDefaults()
	c.Skew = min(c.Skew, lock.DefaultGrace) // it counts on every store
	happened, histories, able := map[string]int{}, 0, true
	Play(t, c, func(t *testing.T, seed uint64, note func(string)) {
		i := &interruptions{c: c, seed: seed, note: note, happened: map[string]int{}, violation: func(what string) { t.Errorf("seed %d: %s", seed, what) }}
		able = i.play(t, open)
		for what, n := range i.happened {
			happened[what] += n
		}
		histories++
	})
	if !able {
		t.Skip("the store is not a driver.Coalescer")
	}
	t.Log(histories, happened)
	for _, what := range interruptedKinds {
		if happened[what] == 0 && histories >= 20 {
			t.Errorf("it never happened: %s", what)
		}
	}
}

// interruptedKinds is what must happen in a few histories.
var interruptedKinds = []string{
	"killed at a request", "killed", "frozen", "failed", "panicked", "could not tell", "cut short", "completed",
	"skip asked", "fail asked", "ask asked", "done", "not done", "no answer", "the question panicked",
	"of a run that never began", "of a run that ended", "after another took the name over", "run after an answer", "asked again after that", "taken over from the dead",
}

const (
	interruptedNames = 2
	// longestWait is longer than any lease, freeze and late copy together.
	longestWait = 2 * time.Minute
)

// policies are those of the events of each name.
var policies = []string{"skip", "skip", "skip", "fail", "fail", "ask", "ask", "ask", "none", "none", "mutex", "mutex"}

// interruptions is one history while it is played.
type interruptions struct {
	c         Config
	seed      uint64
	stores    []driver.Store // one for each client
	turns     *schedule.Scheduler
	note      func(string)
	violation func(string)
	wg        sync.WaitGroup
	sources   uint64 // of deliveries

	mu        sync.Mutex
	happened  map[string]int
	processes []*mortal
	events    []*interruptible
	last      map[string]*mortal // the last one that was granted a name
}

// interruptible is an event, and the truth about it.
type interruptible struct {
	policy  string
	key     lock.Key
	begun   []*mortal // whose work has begun
	done    bool      // what its work is for was done
	refused int       // how often its delivery was interrupted
	over    bool      // acknowledged, or given up
}

func (i *interruptions) play(t *testing.T, open Opener) (able bool) {
	i.turns = schedule.Start(i.seed)
	defer i.turns.Stop()
	i.last = map[string]*mortal{}
	late := fault.Copies{Turns: i.turns}
	mix := fault.Usual(i.seed, i.c.PerMille)
	mix.Late = i.c.LateBy
	client := open(t, &History{Seed: i.seed, Late: &late, turns: i.turns, mix: mix, streams: map[uint64]*fault.Stream{}})
	for id := range i.c.Clients {
		i.stores = append(i.stores, client(uint64(id)+1))
	}
	if _, ok := i.stores[0].(driver.Coalescer); !ok {
		return false
	}
	random := rand.New(rand.NewPCG(i.seed, 13))
	for n := range interruptedNames {
		for j, policy := range policies {
			e := &interruptible{policy: policy, key: lock.Key{Name: fmt.Sprint("n", n), Event: fmt.Sprint(policy, j)}}
			if policy == "mutex" {
				e.key.Event = ""
			}
			i.events = append(i.events, e)
			first := random.IntN(30000)
			i.come(e, time.Duration(first)*time.Millisecond)
			if random.IntN(3) == 0 { // the source delivers it twice
				i.come(e, time.Duration(first+random.IntN(10000))*time.Millisecond)
			}
		}
	}
	i.wg.Wait()
	late.Wait()
	time.Sleep(longestWait)
	i.checkEnd(client(Watcher))
	return true
}

// come delivers an event to a client of its own then.
func (i *interruptions) come(e *interruptible, then time.Duration) {
	i.sources++
	client := i.sources
	random := rand.New(rand.NewPCG(i.seed, client+100))
	i.after(client, then, func() { i.deliver(e, client, random, 0) })
}

// after does what happens to a client then.
func (i *interruptions) after(client uint64, d time.Duration, do func()) {
	at := schedule.Point{Process: client, What: "delivery", Due: int64(d), Since: i.turns.Now()}
	i.wg.Go(func() {
		time.Sleep(d)
		i.turns.Wait(at)
		do()
	})
}

// deliver delivers an event, and again until it is acknowledged, and after lost
// acknowledgements.
func (i *interruptions) deliver(e *interruptible, client uint64, random *rand.Rand, times int) {
	err := i.invoke(e, i.stores[client%uint64(i.c.Clients)], random)
	i.trace("a delivery of %v ends with %v", e.key, err)
	i.mu.Lock()
	if errors.As(err, new(*lock.InterruptedError)) {
		e.refused++
	}
	lost := random.IntN(10) == 0 // the acknowledgement
	e.over = e.over || err == nil || e.policy == "fail" && e.refused == 3
	gone := e.over && !lost
	i.mu.Unlock()
	if gone || times == 100 {
		return
	}
	i.after(client, time.Duration(500+random.IntN(4000))*time.Millisecond, func() { i.deliver(e, client, random, times+1) })
}

// checkEnd checks that each name is free, and what it remembers.
func (i *interruptions) checkEnd(watcher driver.Store) {
	l, err := lock.New(watcher, &lock.Options{OnInterrupted: lock.FailInterrupted, Logger: quiet})
	if err != nil {
		panic(err)
	}
	for _, e := range i.events {
		key := e.key
		if e.policy == "mutex" {
			key.Event = "the watcher's"
		}
		lk, err := l.Acquire(context.Background(), key)
		if err == nil {
			_ = lk.Release()
		}
		interrupted := errors.As(err, new(*lock.InterruptedError))
		switch {
		case e.policy == "mutex" && err == nil && e.over:
		case e.policy == "fail" && interrupted && e.refused > 0:
		case e.policy != "mutex" && errors.Is(err, lock.ErrCompleted) && e.over:
		default:
			i.fail("in the end, %v is over: %v, and is refused with %v", e.key, e.over, err)
		}
	}
}

func (i *interruptions) trace(format string, args ...any) {
	if i.note != nil {
		i.note(fmt.Sprintf("%v: %s", time.Now().Format(time.StampMicro), fmt.Sprintf(format, args...)))
	}
}

func (i *interruptions) fail(format string, args ...any) {
	i.trace("VIOLATION: "+format, args...)
	i.violation(fmt.Sprintf(format, args...))
}

// count notes that something happened. i.mu must be held.
func (i *interruptions) count(what string) { i.happened[what]++ }

// begins notes that p begins the work of its event.
func (i *interruptions) begins(p *mortal) {
	i.mu.Lock()
	defer i.mu.Unlock()
	e := p.event
	i.trace("%s begins %v", p.name, e.key)
	if len(p.answered) > 0 {
		i.count("run after an answer")
	}
	for _, before := range e.begun {
		// A freeze between the answer and the work cannot be seen. What was asked then
		// may be out of date, because another has the name and may run.
		stale := e.policy == "ask" && p.freezes.Load() != p.fresh
		if e.key.Event != "" && e.policy != "none" && !before.knownEnd && !before.used && !slices.Contains(p.answered, before) && !stale {
			i.fail("%s begins %v, of which nobody knows the end in %s", p.name, e.key, before.name)
		}
	}
	for _, before := range slices.Concat(p.answered, p.asked) {
		before.used = before != p // its own claim may have been one of them
	}
	e.begun = append(e.begun, p)
}

// asks notes that p is asked about an interruption.
func (i *interruptions) asks(p *mortal, about *lock.InterruptedError) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.trace("%s is asked about %q", p.name, about.Holder)
	i.count(p.event.policy + " asked")
	at := slices.IndexFunc(i.processes, func(q *mortal) bool { return q.name == about.Holder })
	if at < 0 || about.Key != p.event.key || i.processes[at].event != p.event || i.processes[at] == p && !p.mayHaveLost {
		i.fail("%s is asked about %+v, which nobody was", p.name, about)
		return
	}
	q := i.processes[at]
	if !q.claimed || q.recorded {
		i.fail("%s is asked about %s, which sent a claim: %v, and whose end was recorded: %v", p.name, q.name, q.claimed, q.recorded)
	}
	if q.used {
		i.fail("%s is asked about %s again, although an answer was used", p.name, q.name)
	}
	if len(q.answered) > 0 {
		i.count("asked again after that")
	}
	if !slices.Contains(p.event.begun, q) {
		i.count("of a run that never began")
	} else if q.knownEnd {
		i.count("of a run that ended")
	}
	if p.before != q {
		i.count("after another took the name over")
	}
	p.asked = append(p.asked, q)
}
