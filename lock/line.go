package lock

import (
	"cmp"
	"context"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// line is what a waiter knows of those who wait for the same name. It only says
// when to look again: if it is wrong, that costs requests or time.
type line struct {
	asked  bool      // for a place, which is done once
	others time.Time // when another holder than the present one was last seen; zero: never
	place  int64     // zero: none
	served int64     // the row's, as it was first seen at the time at
	at     time.Time
	fence  int64         // of the owner, when the row was last seen
	idle   int           // how many new owners were seen since then
	turn   time.Duration // zero: served has not moved on yet
}

// keenest is how many waiters look as soon as a cooldown is over. The first may
// have given up, and more would only be refused.
const keenest = 8

// joins reports whether it is time to ask for a place: the waiter has seen the
// name pass from one holder to another, so others wait too. If it waits alone,
// a place would only cost a request.
func (w *waiter) joins() bool {
	return !w.line.asked && !w.line.others.IsZero() && w.row.Token != ""
}

// join asks for a place once, until end at most. The wait goes on without one.
func (w *waiter) join(end time.Time) {
	w.line.asked = true
	store, ok := w.locker.store.(driver.Line)
	if !ok {
		return
	}
	r := retries{locker: w.locker, clock: w.clock, until: end, once: true}
	ok, err := r.send(w.ctx, "join", func(ctx context.Context) (bool, error) {
		row, ok, err := store.Join(ctx, w.claim.Name)
		if ok && err == nil {
			w.row = row
		}
		return ok, err
	})
	w.requests.sent += r.sent
	if ok && err == nil {
		w.line.place, w.line.served, w.line.fence, w.line.at = w.row.Line, w.row.Served, w.row.Fence, w.clock.Now()
	}
}

// turnComes returns how long to wait until the waiter's turn is likely to come,
// or otherwise if it has no place. held is how long the owner has had the name,
// and toEnd how long it may still have it.
func (w *waiter) turnComes(now time.Time, held, toEnd, otherwise time.Duration) time.Duration {
	l := &w.line
	if l.place == 0 {
		return min(otherwise, toEnd)
	}
	turn := l.length(now, &w.row)
	held = max(min(held, now.Sub(l.others)), 0) // the holder's clock may be wrong
	turns := time.Duration(l.before(&w.row))
	left := turns*max(turn, held) - held
	// One that is far from its turn may find the name free all the same. Its place
	// must not count as served, because those before it still wait.
	w.claim.Place = 0
	if l.place > w.row.Served && left < longestPoll {
		w.claim.Place = l.place
	}
	look := min(max(left*95/100, held/2), longestPoll)
	// After the lease of a dead holder, all of them have looked at the same moment.
	look += clock.Jitter(w.clock, min(turn, longestPoll)/8)
	return min(look, toEnd)
}

// cooldownEnds returns how long to wait in a cooldown, which lasts for toEnd:
// until then or, if the waiter is far from its turn, for half of the time until
// that. Every turn has a cooldown of its own. Those who are near come one after
// the other, so that the first has the name and the others need not try.
//
// The holder's stamp tells how long a turn is, unless the waiter has seen
// otherwise: where the store has a clock of its own, theirs may differ by
// hours.
func (w *waiter) cooldownEnds(now time.Time, toEnd time.Duration) time.Duration {
	l := &w.line
	if l.place == 0 {
		return toEnd
	}
	hold := w.row.Until.Sub(w.row.Stamp)
	if hold > now.Sub(l.others)+toEnd {
		hold = toEnd
	}
	turn := max(l.length(now, &w.row), hold)
	turns := time.Duration(l.before(&w.row))
	w.claim.Place = 0
	if turns > keenest {
		return max(toEnd, (toEnd+(turns-1)*turn)/2) + clock.Jitter(w.clock, turn/8)
	}
	if l.place > w.row.Served {
		w.claim.Place = l.place
	}
	return toEnd + (turns-1)*min(turn/(2*keenest), shortestPoll)
}

// length returns how long a turn takes: as long as those that the waiter has
// seen pass or, until then, half of the time between two holders, but not long.
func (l *line) length(now time.Time, row *driver.Row) time.Duration {
	switch moved := row.Served - l.served; {
	case moved > 0:
		l.turn = now.Sub(l.at) / time.Duration(moved)
		fallthrough
	case moved < 0:
		l.served, l.at, l.idle = row.Served, now, 0
	case row.Fence != l.fence:
		l.idle++
	}
	l.fence = row.Fence
	return cmp.Or(l.turn, min(now.Sub(l.others)/2, shortestPoll))
}

// before returns how many turns are left, at least one. If the name passes from
// one owner to another and the places do not move on, those who had them may
// have given up, so each time the number is halved.
func (l *line) before(row *driver.Row) int64 {
	turns := min(l.place-row.Served, int64(longestPoll/time.Millisecond))
	return max(turns>>min(l.idle, 62), 1)
}
