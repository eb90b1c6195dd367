package simulation

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// snapshotter is a store whose rows can go back, as after a failover. Save
// returns a function that immediately brings the row of a name back to what it
// is now.
type snapshotter interface {
	Save(name string) (restore func())
}

const (
	// longestRollback is how far a row goes back at most, and sixEvents the number
	// of requests for as many events.
	longestRollback = time.Minute
	sixEvents       = 12
	// longestClaim is how long a claim may be under way, with all its attempts.
	longestClaim = 4 * time.Second
)

// state is what a row was.
type state struct {
	at      time.Time
	restore func()
}

// rollBackRows lets rows go back in every other history until stop is called.
// What the store has answered before is then not promised any more; but fences
// rise, and what is answered later holds.
func (sim *simulation) rollBackRows() (stop func()) {
	if sim.snapshotter == nil {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	random := rand.New(rand.NewPCG(sim.history.Seed, 1<<63))
	go func() {
		defer close(done)
		for {
			select {
			case <-time.After(time.Duration(random.Int64N(int64(30 * time.Second)))):
				sim.turn(Watcher, "go back")
				sim.rollBack(random)
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// save keeps the present state of a row.
func (sim *simulation) save(name string, row *watched) {
	if sim.snapshotter == nil {
		return
	}
	old := func(s state) bool { return time.Since(s.at) > longestRollback }
	row.states = append(slices.DeleteFunc(row.states, old), state{time.Now(), sim.snapshotter.Save(name)})
}

// rollBack lets one row go back by a second, by up to six events or by up to a
// minute.
func (sim *simulation) rollBack(random *rand.Rand) {
	names := sim.names()
	if len(names) == 0 {
		return
	}
	name := names[random.IntN(len(names))]
	sim.mu.Lock()
	defer sim.mu.Unlock()
	row := sim.rows[name]
	to := len(row.states) - 1
	switch random.IntN(3) {
	case 0:
		for to > 0 && time.Since(row.states[to].at) < time.Second {
			to--
		}
	case 1:
		to = max(0, to-1-random.IntN(sixEvents))
	default:
		to = random.IntN(to + 1)
	}
	s := row.states[to]
	sim.trace("the row of %s goes back to what it was at %v", name, s.at.Sub(sim.began))
	s.restore()
	row.states, row.fresh = row.states[:to+1], false
	row.rollbacks = append(row.rollbacks, time.Now())
	sim.report.RolledBack++
	sim.forget(name, s.at)
}

// forget exempts what is not promised any more once the row has gone back to
// its state at that time.
func (sim *simulation) forget(name string, to time.Time) {
	for e, c := range sim.completions {
		if e.name == name && !c.at.Before(to) {
			delete(sim.completions, e)
		}
	}
	for _, h := range sim.holds {
		if h.end.IsZero() && h.isOf(name) {
			h.exempt = true
			h.over()
		}
	}
	for g, known := range sim.owners {
		if g.name == name { // it may own the row again, or a copy of its claim may
			known.forgotten = true
			if known.last.memory != nil {
				sim.rows[name].lost = append(sim.rows[name].lost, known.last)
			}
		}
	}
}

// overwrites exempts the completions that the settlement of a forgotten owner
// does not have in its memory. They may be those of later owners, if a late
// copy of its claim has made it the owner again.
func (sim *simulation) overwrites(name string, by *driver.Memory) {
	for e := range sim.completions {
		if e.name == name && !has(by, e.id) {
			delete(sim.completions, e)
		}
	}
}

func has(m *driver.Memory, event string) bool {
	return slices.ContainsFunc(m.Completed, func(c driver.CompletedEvent) bool { return c.Event == event })
}

// settlement is one that was sent, with what it lets the row remember.
type settlement struct {
	sent   time.Time
	memory *driver.Memory
}

// mayBeOverwritten reports whether an event that is completed now may be
// forgotten, because late copies may come of a claim and its settlement that
// the row has lost: the one makes its sender the owner again, the other brings
// back what it remembered.
func (sim *simulation) mayBeOverwritten(e event) bool {
	return slices.ContainsFunc(sim.rows[e.name].lost, func(s settlement) bool {
		return time.Since(s.sent) < fault.Latest && !has(s.memory, e.id)
	})
}

// isOf reports whether the row may be that of the hold, or one of its slots.
func (h *hold) isOf(row string) bool {
	return row == "/"+h.key.Name || h.key.Name == limitedName && strings.HasSuffix(row, limitedName)
}

// rollbacks returns how often the row has gone back.
func (sim *simulation) rollbacks(name string) int { return len(sim.rows[name].rollbacks) }

// grantOf returns the grant of the hold's fence.
func (sim *simulation) grantOf(h *hold) (grant, bool) {
	i := slices.IndexFunc(sim.grants, func(g grant) bool { return g.fence == h.fence && h.isOf(g.name) })
	if i < 0 {
		return grant{}, false
	}
	return sim.grants[i], true
}

// isForgotten reports whether the row of the hold has gone back since its claim
// was sent.
func (sim *simulation) isForgotten(h *hold) bool {
	g, ok := sim.grantOf(h)
	return ok && sim.owners[g.ownership].forgotten
}

// mayHaveRepeated reports whether the fence of the hold mayRepeat.
func (sim *simulation) mayHaveRepeated(h *hold) bool {
	g, ok := sim.grantOf(h)
	return ok && sim.mayRepeat(g.name, g.sent)
}

// mayRepeat reports whether the fence of a claim that was sent then need not be
// above those that the row has lost: by the claimants' clocks, the claim may be
// the earlier one.
func (sim *simulation) mayRepeat(row string, sent time.Time) bool {
	return !sim.c.ServerClock && slices.ContainsFunc(sim.rows[row].rollbacks, func(lost time.Time) bool {
		return sent.After(lost.Add(-longestClaim)) && sent.Before(lost.Add(sim.c.Skew+longestClaim))
	})
}
