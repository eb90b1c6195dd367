package redelivery

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
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
	// mostDoublings is how often the turns double that a message lets others have.
	mostDoublings = 9
)

// holds are how long locks were held last, and when the messages come back that
// wait for one.
type holds struct {
	mu       sync.Mutex
	recent   []time.Duration
	next     int                // place of the oldest
	reserved map[string][]int64 // by lock name, in µs, sorted
}

// observe adds a hold, unless it has failed, which may be quick. That is not
// known of a key that completes nothing.
func (h *holds) observe(_ context.Context, o lock.Observation) {
	unknown := o.Key.Event == "" && o.Key.Order == ""
	if o.Outcome == lock.OutcomeReleased && (o.Completed || unknown) {
		h.mu.Lock()
		defer h.mu.Unlock()
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

// longerThan returns how long a lock of that age is held in all: as long as
// most holds that took longer, or as the longest; if none did, up to twice as
// long as the longest. Zero: unknown.
func (h *holds) longerThan(age time.Duration, longest bool) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.recent) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(h.recent))
	longer := slices.DeleteFunc(slices.Clone(sorted), func(d time.Duration) bool { return d <= age })
	if len(longer) == 0 {
		if hold := 2*sorted[len(sorted)-1] + alike; hold > age {
			return hold
		}
		return 0
	}
	if !longest {
		limit := longer[len(longer)/2] + alike
		longer = slices.DeleteFunc(longer, func(d time.Duration) bool { return d > limit })
	}
	return longer[len(longer)-1]
}

// back returns when a message should come back that found its lock held: when
// the lock is likely to be free and those ahead have had it, each for at least
// as long as middleware.HoldAtLeast says. If the message began, the lock is one
// inside, and its own name, if it acquired one then, cools down as well.
func (h *holds) back(ctx context.Context, held *lock.HeldError, f *failure, claim *invocation.RecordClaim) time.Time {
	m := &f.Record
	again := receives(m) > 1
	since := acquired(held, f.Ended)
	hold := h.longerThan(f.Ended.Sub(since), again)
	free := since.Add(hold + toRelease)
	batch := invocation.BatchOf(ctx)
	// A holder that renews its lease keeps the lock beyond the end that it has now.
	if hold == 0 || held.Cooldown || since.IsZero() || free.After(held.Until) && !batch.Renews {
		free = held.Until
	}
	inside := !claim.Began.IsZero()
	if cooled := cmp.Or(claim.Began, since).Add(batch.LeastHold + toRelease); free.Before(cooled) && !claim.Unlocked && (inside || !held.Cooldown) {
		free = cooled
	}
	least := leastHold(batch, inside)
	if held.Cooldown {
		least = max(least, held.Until.Sub(since))
	}
	if batch.Coalesces { // one run is for all of them
		return free
	}
	turn := max(hold, least) + time.Second // because timeouts are rounded up
	// If another one was faster, several wait.
	if again && !eventkind.IsFIFO(m) && wasBefore(m, since) {
		free = free.Add(time.Duration(ahead(ctx, receives(m), turn, least > 0)) * turn)
	}
	return h.reserve(held.Key.Name, free, turn)
}

// ahead returns a random number of turns that a message leaves to messages of
// other processes: more the more often it was received, and if a receive is
// certain to be lost while another has its turn. From the third receive on, it
// leaves the first turns to those that were received less often.
func ahead(ctx context.Context, receives int, turn time.Duration, cools bool) int {
	doublings := 3 * (receives - 1)
	if cools {
		doublings++
	}
	most := min(1<<min(doublings, mostDoublings), max(1, int(longestTimeout/turn)))
	least := 0
	if receives > 2 {
		least = most / 8
	}
	return least + rand.New(clock.From(ctx)).IntN(most-least)
}

// reserve returns the first time from free on that is a turn apart from all
// that other messages of the name got from this process. So does a name that
// several may hold: other processes wait for it too, and shorter turns cost
// more receives than they save.
func (h *holds) reserve(name string, free time.Time, turn time.Duration) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	times, at, apart := h.reserved[name], free.UnixMicro(), turn.Microseconds()
	i, _ := slices.BinarySearch(times, at-apart+1)
	for ; i < len(times) && times[i]-at < apart; i++ {
		at = times[i] + apart
	}
	h.reserved[name] = slices.Insert(times, i, at)
	return time.UnixMicro(at)
}

// forget gives up what was reserved before now.
func (h *holds) forget(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, times := range h.reserved {
		if i, _ := slices.BinarySearch(times, now.UnixMicro()); i < len(times) {
			h.reserved[name] = slices.Delete(times, 0, i)
		} else {
			delete(h.reserved, name)
		}
	}
}

// isCool reports whether a name is certain to stay held because of a
// HoldAtLeast, so that no estimate of its hold is needed.
func isCool(ctx context.Context, held *lock.HeldError, began, now time.Time) bool {
	return held.Cooldown || now.Sub(acquired(held, now)) < leastHold(invocation.BatchOf(ctx), !began.IsZero())
}

// leastHold returns for how long a name stays held at least, which is not known
// of a lock inside.
func leastHold(batch *invocation.Batch, inside bool) time.Duration {
	if inside {
		return 0
	}
	return batch.LeastHold
}

// acquired returns when the holder acquired the name, of which the stamp is too
// late if the clock of an earlier claim was ahead.
func acquired(held *lock.HeldError, now time.Time) time.Time {
	if held.Since.After(now) {
		return now
	}
	return held.Since
}
