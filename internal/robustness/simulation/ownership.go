package simulation

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// tolerance is for how long a name may stay held after its owner is gone: one
// attempt of a request.
const tolerance = time.Second

const (
	// pollInterval is how often the watcher checks the rows.
	pollInterval = 300 * time.Millisecond
	// rereadAfter is after how many polls the watcher reads a row again that no
	// request was about: what a client sends after it gave up is not noted.
	rereadAfter = 10
)

var quiet = slog.New(slog.DiscardHandler)

// ownership names a row and the token that owns or asks for it.
type ownership struct{ name, token string }

// owner is what is known of an [ownership].
type owner struct {
	event       string
	open        bool          // a claim of it was granted, or got no answer
	settling    bool          // a settlement of it was sent
	first       time.Time     // when its first claim was sent
	settlements int           // that were sent
	settled     time.Time     // when the first of them was sent
	cools       time.Duration // the cooldown that it asked for
	last        settlement
	gone        time.Time // from when it has no holder; zero: it may have one
	rollbacks   int       // of its row when its last settlement was sent
	forgotten   bool      // its row has gone back since
}

// grant is a claim that was granted, as its sender saw it.
type grant struct {
	ownership
	fence          int64
	sent, answered time.Time
}

// claims notes that a claim is sent.
func (sim *simulation) claims(ctx context.Context, c *driver.Claim) ownership {
	o := ownership{c.Name, c.Token}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	if sim.owners[o] == nil {
		sim.owners[o] = &owner{event: c.Event, first: time.Now()}
		if sim.rows[o.name] == nil {
			sim.rows[o.name] = &watched{}
			sim.save(o.name, sim.rows[o.name])
		}
	}
	if inv := invocationOf(ctx); inv != nil {
		inv.claims[o] = true
	}
	return o
}

// claimed notes the answer to a claim.
func (sim *simulation) claimed(o ownership, sent time.Time, a *answer) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	var e *driver.Error
	if a.ok || a.err != nil && !(errors.As(a.err, &e) && e.Unapplied) {
		sim.owners[o].open = true
	}
	sim.outlasts(o, a)
	switch {
	case a.err != nil:
	case a.ok:
		sim.grants = append(sim.grants, grant{o, a.row.Fence, sent, time.Now()})
	case a.row.Token == o.token: // an earlier round of it was granted
		sim.grants = append(sim.grants, grant{o, a.row.Fence, sim.owners[o].first, time.Now()})
	}
}

// settles notes that a settlement is sent.
func (sim *simulation) settles(s *driver.Settlement) ownership {
	o := ownership{s.Name, s.Token}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	if known := sim.owners[o]; known != nil {
		if known.settlements == 0 {
			known.settled = time.Now()
			if !s.Until.IsZero() {
				known.cools = s.Until.Sub(s.Now)
			}
		}
		known.settling = true
		known.settlements++
		known.rollbacks = sim.rollbacks(o.name)
		if known.last = (settlement{time.Now(), s.Memory}); known.forgotten && s.Memory != nil {
			sim.overwrites(o.name, s.Memory)
		}
	}
	return o
}

// answered notes the answer to a settlement. If the store has applied or
// refused it, the token never owns the row again.
func (sim *simulation) answered(o ownership, s *driver.Settlement, a *answer) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	known := sim.owners[o]
	if known == nil || a.err != nil {
		return
	}
	if known.gone.IsZero() {
		known.gone = time.Now()
	}
	if known.cools > 0 && (a.ok || a.row.Cooldown == s.Token) {
		sim.cools(o, known)
	}
	if a.ok && s.Memory != nil && known.rollbacks == sim.rollbacks(o.name) {
		sim.confirmed(event{o.name, known.event}, o.token)
	}
}

// ended notes that an invocation has ended. It may leave a name held if its
// process was killed, or if the request that released the name got no answer.
// Nothing is known of a name if every claim got an answer and was refused: the
// engine relies on the network not to deliver a copy of such a claim, but this
// one does.
func (sim *simulation) ended(inv *invocation) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for o := range inv.claims {
		known := sim.owners[o]
		if known.gone.IsZero() && known.open && !known.settling && !inv.p.isDead() {
			known.gone = time.Now()
		}
	}
}

// names returns all rows that were claimed.
func (sim *simulation) names() []string {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return slices.Sorted(maps.Keys(sim.rows))
}

// watched is what the watcher knows of a row.
type watched struct {
	row   driver.Row
	fresh bool // no request was about it since it was read
	polls int  // since it was read

	states    []state      // of the last minute; none if it never goes back
	rollbacks []time.Time  // when it went back
	lost      []settlement // that were sent before that
}

// touched notes that a request about a row may have been applied; empty: about
// any of them.
func (sim *simulation) touched(name string) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for n, row := range sim.rows {
		if n == name || name == "" {
			row.fresh = false
			sim.save(n, row)
		}
	}
}

// After implements [fault.Late].
func (sim *simulation) After(d time.Duration, apply func()) {
	sim.copies.After(d, func() {
		apply()
		sim.touched("")
	})
}

// reader is the part of [driver.Inspector] that is needed.
type reader interface {
	Read(context.Context, string) (driver.Row, error)
}

// watch polls the rows until stop is called.
func (sim *simulation) watch(store driver.Store) (stop func()) {
	rows, ok := store.(reader)
	if !ok {
		sim.t.Fatalf("%T has no Read, so nobody can watch its rows", store)
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(pollInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				sim.turn(Watcher, "poll")
				sim.poll(rows)
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

// poll checks that no row is held by a token whose owner is gone (P4).
func (sim *simulation) poll(rows reader) {
	for _, name := range sim.names() {
		row, err := sim.row(rows, name)
		if err != nil {
			sim.fail("reading the row of %s: %v", name, err)
			continue
		}
		sim.mu.Lock()
		sim.report.Watched++
		known := sim.owners[ownership{name, row.Token}]
		if row.Token != "" && row.Until.After(time.Now()) && known != nil && !known.gone.IsZero() && !known.forgotten && time.Since(known.gone) > tolerance {
			sim.fail("%s is held until %v by %s, although nobody holds it since %v", name, row.Until.Sub(sim.began), row.Token, known.gone.Sub(sim.began))
			known.gone = time.Time{} // once is enough
		}
		sim.mu.Unlock()
	}
}

// row returns what the row is now. It reads the row only if it may have
// changed.
func (sim *simulation) row(rows reader, name string) (driver.Row, error) {
	sim.mu.Lock()
	known := sim.rows[name]
	if known.polls++; known.fresh && known.polls < rereadAfter {
		defer sim.mu.Unlock()
		return known.row, nil
	}
	known.fresh, known.polls = true, 0
	sim.mu.Unlock()
	row, err := rows.Read(sim.ctx, name)
	sim.mu.Lock()
	defer sim.mu.Unlock()
	known.row = row
	return row, err
}

// fencesRise checks that the fence of every claim is above that of all claims
// that were granted before it was sent (P3).
func (sim *simulation) fencesRise() {
	bySent := slices.Clone(sim.grants)
	slices.SortFunc(bySent, func(a, b grant) int { return a.sent.Compare(b.sent) })
	byAnswer := slices.Clone(sim.grants)
	slices.SortFunc(byAnswer, func(a, b grant) int { return a.answered.Compare(b.answered) })
	highest := map[string]grant{}
	for _, g := range bySent {
		for len(byAnswer) > 0 && byAnswer[0].answered.Before(g.sent) {
			if before := byAnswer[0]; before.fence > highest[before.name].fence {
				highest[before.name] = before
			}
			byAnswer = byAnswer[1:]
		}
		if before := highest[g.name]; before.token != g.token && before.fence >= g.fence && !sim.mayRepeat(g.name, g.sent) {
			sim.fail("%s has fence %d, although %s had %d before", g.token, g.fence, before.token, before.fence)
		}
	}
}
