package delivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lambdalock/lambdalock/internal/history"
	"github.com/lambdalock/lambdalock/lock"
)

// fate says what will happen to one run of a handler.
type fate int

const (
	succeeds fate = iota
	fails
	failsAfter // the effect
	panics
	hangs          // ignores its context, beyond the deadline
	freezes        // the whole environment, before the effect
	freezesAfter   // the effect
	diesBefore     // the effect
	diesAfter      // the effect, before the completion is sent
	diesCompleting // while the completion is sent: it does not arrive
	diesCompleted  // while the completion is sent: it arrives, its answer does not
	denied         // the store refuses the completion for good
)

// fateOf draws the fate of a run: 1 % crash, 2 % fail, 0.5 % panic, 0.5 % are
// frozen.
func fateOf(e *event) fate {
	n := e.random.IntN(1000)
	for _, f := range []struct {
		below int
		fate  fate
	}{
		{20, fails},
		{21, failsAfter},
		{25, panics},
		{27, hangs},
		{30, diesBefore},
		{33, diesAfter},
		{35, diesCompleting},
		{37, diesCompleted},
		{38, denied},
		{41, freezes},
		{43, freezesAfter},
	} {
		if n < f.below {
			return f.fate
		}
	}
	return succeeds
}

// run is one execution of the handler.
type run struct {
	event  *event
	inv    *invocation
	env    *environment
	start  time.Time
	lease  lock.Lease // of the event
	leases []lock.Lease
	fate   fate
	late   bool      // it was frozen before it began, so its lease may have ended
	doubt  time.Time // from then on its lease may have ended: it was frozen, or told so
	ended  bool
	effect bool

	completed bool // in the store
	reported  bool // the middleware said how the lock ended
	died      bool // with its environment, before that
}

// doubtful notes that the lease may have ended. The caller holds w.mu.
func (r *run) doubtful(at time.Time) {
	if r.doubt.IsZero() {
		r.doubt = at
	}
}

// begin notes that a handler begins. The caller holds w.mu.
func (w *world) begin(inv *invocation, e *event, leases []lock.Lease) *run {
	w.runs++
	e.runs++
	r := &run{event: e, inv: inv, env: inv.env, start: time.Now(), fate: fateOf(e)}
	inv.began(r, leases)
	w.trace("invocation %d runs %s with fate %d", inv.number, e.id, r.fate)
	if r.late { // what it does is refused if somebody took over meanwhile
		r.doubtful(r.start)
		return r
	}
	if g := e.group; g != nil {
		for g.next < len(g.events) && (g.events[g.next].completed() || g.events[g.next].dead) {
			g.next++
		}
		if e.place > g.next {
			w.fail("%s began before %s of the same group %s was completed", e.id, g.events[g.next].id, g.name)
		}
	}
	if e.completions > 0 {
		w.fail("%s began after it was completed", e.id)
	}
	if w.stale(e) {
		w.fail("%s began after a later one of %s was completed", e.id, e.resource)
	}
	return r
}

// end notes that a run ended, at the latest with its environment. A run that
// may have lost its lease counts until then. The caller holds w.mu.
func (w *world) end(r *run) {
	delete(r.inv.running, r)
	if r.ended || r.late {
		return
	}
	r.ended = true
	end := time.Now()
	if !r.doubt.IsZero() {
		end = r.doubt
	}
	holder := fmt.Sprintf("%s in environment %d", r.event.id, r.env.id)
	w.holds = append(w.holds, history.Hold{Name: "resource " + r.event.resource, Holder: holder, Fence: r.lease.Fence, Start: r.start, End: end})
	for _, l := range r.leases {
		w.holds = append(w.holds, history.Hold{Name: "lock " + l.Key.Name, Holder: holder, Fence: l.Fence, Start: r.start, End: end})
	}
}

var (
	errKilled    = errors.New("the process is dead")
	errPoison    = errors.New("nobody can handle this")
	errTransient = errors.New("the backend is busy")
	errStale     = errors.New("the resource knows a larger fence")
	errPanicked  = errors.New("the handler panicked")
)

// work is the handler of every source. Its effect is one step, which happens or
// not.
func (w *world) work(ctx context.Context, id, body string) (err error) {
	err = errPanicked // unless it returns
	inv := invocationOf(ctx)
	leases := lock.Leases(ctx)
	w.mu.Lock()
	if inv.env.dead {
		w.mu.Unlock()
		return errKilled
	}
	e := w.byID[id]
	r := w.begin(inv, e, leases)
	first := time.Duration(20+e.random.IntN(1500)) * time.Millisecond
	last := time.Duration(e.random.IntN(30)) * time.Millisecond
	frozen := time.Duration(e.random.Int64N(int64(2 * timeout)))
	if e.random.IntN(50) == 0 {
		inv.env.setClock()
	}
	w.mu.Unlock()

	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.end(r)
		if err != nil {
			inv.failed++
		}
		if !r.effect && inv.reasons[e] == "" {
			inv.reasons[e] = "the handler failed"
		}
	}()
	var decoded order
	if err := json.Unmarshal([]byte(body), &decoded); err != nil {
		return err
	}
	switch r.fate {
	case hangs:
		ctx, first = inv.env.life, 2*timeout
	case freezes:
		inv.env.freeze(frozen)
	}
	if err := inv.spend(ctx, first); err != nil {
		return err
	}
	if err := w.effect(r); err != nil {
		return err
	}
	if r.fate == freezesAfter {
		inv.env.freeze(frozen)
	}
	_ = inv.spend(ctx, last) // the effect cannot be undone
	switch r.fate {
	case diesAfter:
		inv.env.crash()
	case failsAfter:
		w.mu.Lock()
		defer w.mu.Unlock()
		inv.reasons[e] = "the handler failed after its effect"
		return errTransient
	}
	return nil
}

// effect does what must not be done twice, on a resource that checks the fence.
func (w *world) effect(r *run) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case r.env.dead:
		return errKilled
	case r.fate == diesBefore:
		r.env.die()
		w.crashes++
		return errKilled
	case r.event.poison:
		return errPoison
	case r.fate == fails:
		return errTransient
	case r.fate == panics:
		panic(errTransient)
	case r.lease.Fence < w.fences[r.lease.Key.Name]:
		w.staleEffects++
		if r.doubt.IsZero() {
			w.fail("%s came with a stale fence, although it cannot have lost its lease", r.event.id)
		}
		return errStale
	}
	w.fences[r.lease.Key.Name] = r.lease.Fence
	if r.event.completions > 0 {
		w.fail("%s had its effect after it was completed", r.event.id)
	}
	w.trace("%s has its effect", r.event.id)
	w.effects++
	r.event.effects++
	r.effect = true
	r.event.withEffect = append(r.event.withEffect, r)
	return nil
}

// spend lets time pass in the handler. A process that is killed meanwhile would
// never return; here it returns an error, which nobody sees.
func (inv *invocation) spend(ctx context.Context, d time.Duration) error {
	err := inv.env.clock.Sleep(ctx, d)
	inv.env.clock.Awake()
	select {
	case <-inv.env.died:
		return errKilled
	default:
		return err
	}
}
