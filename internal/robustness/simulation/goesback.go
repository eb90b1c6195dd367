package simulation

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// saver is a store whose rows can go back, as after a failover. Save returns a
// function that brings the row of a name back to what it is now, at once.
type saver interface {
	Save(name string) (restore func())
}

const (
	// farBack is how far a row goes back at most, and sixEvents the number of
	// requests for as many events.
	farBack   = time.Minute
	sixEvents = 12
	// underWay is how long a claim may be under way, with all its attempts.
	underWay = 4 * time.Second
)

// state is what a row was.
type state struct {
	at      time.Time
	restore func()
}

// goBack lets rows go back in every other history until stop is called. What
// the store has answered before is then not promised any more; but fences rise,
// and what is answered later holds.
func (w *world) goBack() (stop func()) {
	if w.saver == nil {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	random := rand.New(rand.NewPCG(w.history.Seed, 1<<63))
	go func() {
		defer close(done)
		for {
			select {
			case <-time.After(time.Duration(random.Int64N(int64(30 * time.Second)))):
				w.turn(Watcher, "go back")
				w.lose(random)
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
func (w *world) save(name string, row *watched) {
	if w.saver == nil {
		return
	}
	old := func(s state) bool { return time.Since(s.at) > farBack }
	row.states = append(slices.DeleteFunc(row.states, old), state{time.Now(), w.saver.Save(name)})
}

// lose lets one row go back by a second, by up to six events or by up to a
// minute.
func (w *world) lose(random *rand.Rand) {
	names := w.names()
	if len(names) == 0 {
		return
	}
	name := names[random.IntN(len(names))]
	w.mu.Lock()
	defer w.mu.Unlock()
	row := w.rows[name]
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
	w.trace("the row of %s goes back to what it was at %v", name, s.at.Sub(w.began))
	s.restore()
	row.states, row.fresh = row.states[:to+1], false
	row.losses = append(row.losses, time.Now())
	w.figures.WentBack++
	w.forget(name, s.at)
}

// forget excuses what is not promised any more once the row has gone back to
// its state at that time.
func (w *world) forget(name string, to time.Time) {
	for e, c := range w.completions {
		if e.name == name && !c.at.Before(to) {
			delete(w.completions, e)
		}
	}
	for _, h := range w.holds {
		if h.end.IsZero() && h.isOf(name) {
			h.excused = true
			h.over()
		}
	}
	for g, known := range w.grips {
		if g.name == name { // it may own the row again, or a copy of its claim may
			known.forgotten = true
		}
	}
}

// overwrites excuses the completions that the settlement of a forgotten owner
// does not have in its memory. They may be those of later owners, if a late
// copy of its claim has made it the owner again.
func (w *world) overwrites(name string, by *driver.Memory) {
	for e := range w.completions {
		if e.name == name && !slices.ContainsFunc(by.Completed, func(c driver.CompletedEvent) bool { return c.Event == e.id }) {
			delete(w.completions, e)
		}
	}
}

// isOf reports whether the row may be that of the hold, or one of its slots.
func (h *hold) isOf(row string) bool {
	return row == "/"+h.key.Name || h.key.Name == limitedName && strings.HasSuffix(row, limitedName)
}

// losses returns how often the row has gone back.
func (w *world) losses(name string) int { return len(w.rows[name].losses) }

// grantOf returns the grant of the hold's fence.
func (w *world) grantOf(h *hold) (grant, bool) {
	i := slices.IndexFunc(w.grants, func(g grant) bool { return g.fence == h.fence && h.isOf(g.name) })
	if i < 0 {
		return grant{}, false
	}
	return w.grants[i], true
}

// isForgotten reports whether the row of the hold has gone back since its claim
// was sent.
func (w *world) isForgotten(h *hold) bool {
	g, ok := w.grantOf(h)
	return ok && w.grips[g.grip].forgotten
}

// mayHaveRepeated reports whether the fence of the hold mayRepeat.
func (w *world) mayHaveRepeated(h *hold) bool {
	g, ok := w.grantOf(h)
	return ok && w.mayRepeat(g.name, g.sent)
}

// mayRepeat reports whether the fence of a claim that was sent then need not be
// above those that the row has lost: by the claimants' clocks, the claim may be
// the earlier one.
func (w *world) mayRepeat(row string, sent time.Time) bool {
	return !w.c.ServerClock && slices.ContainsFunc(w.rows[row].losses, func(lost time.Time) bool {
		return sent.After(lost.Add(-underWay)) && sent.Before(lost.Add(w.c.Skew+underWay))
	})
}
