package redisquorum_test

import (
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"time"

	simhistory "github.com/lambdalock/lambdalock/internal/history"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
)

// completion is one that was begun.
type completion struct {
	event, result string
	certain       bool
}

// completions returns those of a name. The last one is certain, or there is
// none.
func (h *history) completions(key lock.Key) []completion {
	h.mu.Lock()
	defer h.mu.Unlock()
	done := h.done[key.Name]
	if n := len(done); n == 0 || !done[n-1].certain {
		return nil
	}
	return slices.Clone(done)
}

// runs checks that no event runs again that was completed and must be
// remembered.
func (h *history) runs(key lock.Key, holder string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	later := map[string]bool{}
	for _, c := range slices.Backward(h.done[key.Name]) {
		if key.Event != "" && c.event == key.Event && c.certain && len(later) < redistest.Remembered && !h.lost && !h.both {
			h.broken("%s runs %s again, although it was completed", holder, key)
		}
		if c.event != "" {
			later[c.event] = true
		}
	}
}

// replays checks that a duplicate of the last event gets its result.
func (h *history) replays(key lock.Key, before []completion, err error) {
	now := h.completions(key)
	e := completedError(err)
	if e == nil || len(before) == 0 || len(now) != len(before) || h.lost || h.both {
		return
	}
	if last := now[len(now)-1]; last.event == key.Event {
		h.count["replayed"]++
		if string(e.Result) != last.result {
			h.broken("the duplicate of %s got %q, want %q", key, e.Result, last.result)
		}
	}
}

// keeps checks that nobody loses a lock whose lease lasts while a majority of
// the nodes answers: its event would run again.
func (h *history) keeps(l *lock.Lock, key lock.Key, err error) {
	if h.live && errors.Is(err, lock.ErrLost) && time.Now().Before(l.Lease().Until) {
		h.broken("the lock of %s with fence %d, whose lease lasts, ended with %v", key, l.Lease().Fence, err)
	}
}

func (h *history) worked(hold simhistory.Hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if hold.Name == "limited" {
		h.limited = append(h.limited, hold)
		return
	}
	h.holds = append(h.holds, hold)
}

// watch looks at the rows of all nodes until the history is over. Nodes that
// are held for nobody must leave a majority to others.
func (h *history) watch() {
	for !h.isOver() {
		h.sleep(250*time.Millisecond, "look")
		for _, name := range stored {
			h.look(name)
		}
	}
}

func (h *history) look(name string) {
	var stale []string
	for _, m := range h.machines {
		if token := h.stale(m, name); token != "" {
			stale = append(stale, token)
		}
	}
	if len(stale) <= len(h.machines)/2 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.tokens[stale[0]]
	if first.reported {
		return
	}
	first.reported = true
	h.count["held for nobody"]++
	if h.live {
		h.broken("nobody can get %s: nodes are held by %v, and the owner of the first has ended at %v", name, stale, first.ended)
	}
}

// stale returns the token that holds the node for nobody.
func (h *history) stale(m *redistest.Machine, name string) string {
	token := m.Mini.HGet("lambdalock:"+name, "ownerToken")
	end, _ := strconv.ParseInt(m.Mini.HGet("lambdalock:"+name, "leaseEnd"), 10, 64)
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.tokens[token]
	if o == nil || o.excused || o.ended.IsZero() || time.Since(o.ended) < attempt || time.UnixMicro(end).Before(time.Now()) {
		return ""
	}
	return token
}

// check checks that no two owned a name at the same time, and that fences rise.
func (h *history) check() {
	if h.both { // owners overlap
		h.fencesRise()
		return
	}
	for _, err := range simhistory.Overlaps(h.holds) {
		h.broken("%v", err)
	}
	if err := simhistory.Check(h.holds); err != nil {
		h.broken("%v", err)
	}
}

// fencesRise checks that the fence of each owner is above that of every owner
// who had begun a round trip earlier.
func (h *history) fencesRise() {
	for _, a := range h.holds {
		for _, b := range h.holds {
			if a.Name == b.Name && b.Start.Sub(a.Start) > 20*time.Millisecond && b.Fence <= a.Fence {
				h.broken("%v after %v", b, a)
			}
		}
	}
}

// neverMoreThanLimit checks how many held the limited name when each of its
// holders began.
func (h *history) neverMoreThanLimit() {
	for _, hold := range h.limited {
		holders := 0
		for _, other := range h.limited {
			if !other.Start.After(hold.Start) && other.End.After(hold.Start) {
				holders++
			}
		}
		if holders > 2 && !h.both {
			h.broken("%d holders of the limited name at %v", holders, hold.Start)
		}
	}
}

// mustBeFree acquires every name once more, after the longest lease has ended.
func (h *history) mustBeFree() {
	time.Sleep(longestLease)
	w := h.worker(owners)
	h.becalm()
	for _, name := range []string{"n0", "n1", "limited"} {
		locker, err := lock.New(w.store, &lock.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			h.Fatal(err)
		}
		l, err := locker.Acquire(w.ctx, lock.Key{Name: name})
		if err != nil {
			h.broken("%s is not free in the end: %v", name, err)
			continue
		}
		if err := l.Release(); err != nil {
			h.broken("%v", err)
		}
	}
}
