package simulation

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// patience is for how long a name may be held for nobody: one attempt of a
// request.
const patience = time.Second

const (
	// glance is how often the watcher judges the rows.
	glance = 300 * time.Millisecond
	// rereads is after how many glances the watcher reads a row again that no
	// request was about: what a client sends after it gave up is not noted.
	rereads = 10
)

var quiet = slog.New(slog.DiscardHandler)

// grip is a token's hold of a row.
type grip struct{ name, token string }

// grabbed is what is known of a grip.
type grabbed struct {
	event       string
	open        bool      // a claim of it was granted, or got no answer
	settling    bool      // a settlement of it was sent
	first       time.Time // when its first claim was sent
	settlements int       // that were sent
	handed      int       // over to so many invocations that have not begun
	shared      bool      // two invocations resume it
	holders     int       // invocations that have it
	gone        time.Time // from when nobody holds it; zero: somebody may
	losses      int       // of its row when its last settlement was sent
	forgotten   bool      // its row has gone back since
}

// grant is a claim that was granted, as its sender saw it.
type grant struct {
	grip
	fence          int64
	sent, answered time.Time
}

// claims notes that a claim is sent.
func (w *world) claims(ctx context.Context, c *driver.Claim) grip {
	g := grip{c.Name, c.Token}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.grips[g] == nil {
		w.grips[g] = &grabbed{event: c.Event, first: time.Now()}
		if w.rows[g.name] == nil {
			w.rows[g.name] = &watched{}
			w.save(g.name, w.rows[g.name])
		}
	}
	if inv := invocationOf(ctx); inv != nil && !inv.claims[g] {
		inv.claims[g] = true
		w.grips[g].holders++
	}
	return g
}

// claimed notes the answer to a claim.
func (w *world) claimed(g grip, sent time.Time, a *answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var e *driver.Error
	if a.ok || a.err != nil && !(errors.As(a.err, &e) && e.Unapplied) {
		w.grips[g].open = true
	}
	switch {
	case a.err != nil:
	case a.ok:
		w.grants = append(w.grants, grant{g, a.row.Fence, sent, time.Now()})
	case a.row.Token == g.token: // an earlier round of it was granted
		w.grants = append(w.grants, grant{g, a.row.Fence, w.grips[g].first, time.Now()})
	}
}

// settles notes that a settlement is sent.
func (w *world) settles(s *driver.Settlement) grip {
	g := grip{s.Name, s.Token}
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.grips[g]; known != nil {
		known.settling = true
		known.settlements++
		known.losses = w.losses(g.name)
		if known.forgotten && s.Memory != nil {
			w.overwrites(g.name, s.Memory)
		}
		w.excuseOthers(known)
	}
	return g
}

// answered notes the answer to a settlement. If the store has applied or
// refused it, the token never owns the row again.
func (w *world) answered(g grip, s *driver.Settlement, a *answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.grips[g]
	if known == nil || a.err != nil {
		return
	}
	if known.gone.IsZero() {
		known.gone = time.Now()
	}
	if a.ok && s.Memory != nil && known.losses == w.losses(g.name) {
		w.confirmed(event{g.name, known.event}, g.token)
	}
}

// ended notes that an invocation has ended. It may leave a name held if its
// process was killed, if the request that released the name got no answer, or
// if it has handed the lock over. Nothing is known of a name if every claim got
// an answer and was refused: the engine relies on the network not to deliver a
// copy of such a claim, but this one does.
func (w *world) ended(inv *invocation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for g := range inv.claims {
		known := w.grips[g]
		known.holders--
		if known.gone.IsZero() && known.open && !known.settling && known.handed == 0 && known.holders == 0 && !inv.p.isDead() {
			known.gone = time.Now()
		}
	}
}

// handedOver notes that so many invocations are to resume the lock.
func (w *world) handedOver(h lock.Ticket, invocations int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.grips[grip{h.Name, h.Token}]
	known.handed += invocations
	known.shared = known.shared || invocations > 1
}

// resumed notes that an invocation goes on with the lock. Its fence may be
// above that of the handle, because a copy of the claim arrived late.
func (w *world) resumed(inv *invocation, h lock.Ticket, fence int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := grip{h.Name, h.Token}
	known := w.grips[g]
	known.handed--
	known.holders++
	if inv.claims[g] = true; known.shared {
		w.shared[lockID{h.Name, fence}] = known
	}
}

// names returns all rows that were claimed.
func (w *world) names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.rows))
}

// watched is what the watcher knows of a row.
type watched struct {
	row     driver.Row
	fresh   bool // no request was about it since it was read
	glances int  // since it was read

	states []state     // of the last minute; none if it never goes back
	losses []time.Time // when it went back
}

// touched notes that a request about a row may have been applied; empty: about
// any of them.
func (w *world) touched(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, row := range w.rows {
		if n == name || name == "" {
			row.fresh = false
			w.save(n, row)
		}
	}
}

// After implements [fault.Late].
func (w *world) After(d time.Duration, apply func()) {
	w.copies.After(d, func() {
		apply()
		w.touched("")
	})
}

// reader is the part of [driver.Inspector] that is needed.
type reader interface {
	Read(context.Context, string) (driver.Row, error)
}

// watch looks at the rows until stop is called.
func (w *world) watch(store driver.Store) (stop func()) {
	rows, ok := store.(reader)
	if !ok {
		w.t.Fatalf("%T has no Read, so nobody can watch its rows", store)
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(glance)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.turn(Watcher, "look")
				w.look(rows)
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

// look checks that nobody's token owns a row (P4).
func (w *world) look(rows reader) {
	for _, name := range w.names() {
		row, err := w.row(rows, name)
		if err != nil {
			w.fail("reading the row of %s: %v", name, err)
			continue
		}
		w.mu.Lock()
		w.figures.Watched++
		known := w.grips[grip{name, row.Token}]
		if row.Token != "" && row.Until.After(time.Now()) && known != nil && !known.gone.IsZero() && !known.forgotten && time.Since(known.gone) > patience {
			w.fail("%s is held until %v by %s, although nobody holds it since %v", name, row.Until.Sub(w.began), row.Token, known.gone.Sub(w.began))
			known.gone = time.Time{} // once is enough
		}
		w.mu.Unlock()
	}
}

// row returns what the row is now. It reads the row only if it may have
// changed.
func (w *world) row(rows reader, name string) (driver.Row, error) {
	w.mu.Lock()
	known := w.rows[name]
	if known.glances++; known.fresh && known.glances < rereads {
		defer w.mu.Unlock()
		return known.row, nil
	}
	known.fresh, known.glances = true, 0
	w.mu.Unlock()
	row, err := rows.Read(w.ctx, name)
	w.mu.Lock()
	defer w.mu.Unlock()
	known.row = row
	return row, err
}

// fencesRise checks that the fence of every claim is above that of all claims
// that were granted before it was sent (P3).
func (w *world) fencesRise() {
	bySent := slices.Clone(w.grants)
	slices.SortFunc(bySent, func(a, b grant) int { return a.sent.Compare(b.sent) })
	byAnswer := slices.Clone(w.grants)
	slices.SortFunc(byAnswer, func(a, b grant) int { return a.answered.Compare(b.answered) })
	highest := map[string]grant{}
	for _, g := range bySent {
		for len(byAnswer) > 0 && byAnswer[0].answered.Before(g.sent) {
			if before := byAnswer[0]; before.fence > highest[before.name].fence {
				highest[before.name] = before
			}
			byAnswer = byAnswer[1:]
		}
		if before := highest[g.name]; before.token != g.token && before.fence >= g.fence && !w.mayRepeat(g.name, g.sent) {
			w.fail("%s has fence %d, although %s had %d before", g.token, g.fence, before.token, before.fence)
		}
	}
}
