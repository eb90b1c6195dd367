package redelivery

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/lock"
)

const (
	// mostHolds is how many holds are kept.
	mostHolds = 64
	// alike is by how much holds may differ that count as equally long.
	alike = 500 * time.Millisecond
	// toRelease is for what else lies between the end of a hold and the next claim,
	// such as different clocks and latency.
	toRelease = 250 * time.Millisecond
)

// holds are how long locks were held last.
type holds struct {
	mu     sync.Mutex
	recent []time.Duration
	next   int  // place of the oldest
	renews bool // leases are renewed: a holder that lives keeps the lock beyond the end that it has now
}

func (h *holds) observe(_ context.Context, o lock.Observation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case o.Outcome == lock.OutcomeRenewed:
		h.renews = true
	case o.Outcome == lock.OutcomeReleased && (o.Completed || o.Key.Event == ""): // a failure may be quick
		h.add(o.HeldFor)
	}
}

func (h *holds) add(d time.Duration) {
	if len(h.recent) < mostHolds {
		h.recent = append(h.recent, d)
		return
	}
	h.recent[h.next] = d
	h.next = (h.next + 1) % mostHolds
}

// longerThan returns how long a lock is held in all that has been held for so
// long already: as long as most holds that took longer, or as the longest; if
// none did, up to twice as long as the longest. Zero: nobody can say. It also
// reports whether leases are renewed.
func (h *holds) longerThan(age time.Duration, longest bool) (hold time.Duration, renews bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.recent) == 0 {
		return 0, h.renews
	}
	sorted := slices.Sorted(slices.Values(h.recent))
	longer := slices.DeleteFunc(slices.Clone(sorted), func(d time.Duration) bool { return d <= age })
	if len(longer) == 0 {
		if hold = 2*sorted[len(sorted)-1] + alike; hold <= age {
			hold = 0
		}
		return hold, h.renews
	}
	if !longest {
		limit := longer[len(longer)/2] + alike
		longer = slices.DeleteFunc(longer, func(d time.Duration) bool { return d > limit })
	}
	return longer[len(longer)-1], h.renews
}

// back returns when a message should come back that found its lock held: when
// the lock is likely to be free and those ahead have had it, each with a
// cooldown of its own if it is in one. ahead is how many messages of its batch
// wait for the same lock before it.
func (h *holds) back(ctx context.Context, held *lock.HeldError, f *failure, ahead int) time.Time {
	m := &f.Record
	again := receives(m) > 1
	hold, renews := h.longerThan(f.Ended.Sub(held.Since), again)
	free := held.Since.Add(hold + toRelease)
	if hold == 0 || held.Cooldown || held.Since.IsZero() || free.After(held.Until) && !renews {
		free = held.Until
	}
	if again && wasBefore(m, held.Since) { // another one was faster, so several wait
		ahead += rand.New(clock.From(ctx)).IntN(1 << (3 * (receives(m) - 1)))
	}
	if held.Cooldown {
		hold = max(hold, held.Until.Sub(held.Since))
	}
	return free.Add(time.Duration(ahead) * (hold + time.Second)) // a second, because timeouts are rounded up
}
