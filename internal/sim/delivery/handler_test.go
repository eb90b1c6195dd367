package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lambdalock/lambdalock/internal/sim/history"
	"github.com/lambdalock/lambdalock/lock"
)

// fate says what will happen to one run of a handler.
type fate int

const (
	succeeds fate = iota
	fails
	panics
	hangs          // to the deadline, where Lambda kills the process
	diesBefore     // the effect
	diesAfter      // the effect, before the completion is sent
	diesCompleting // while the completion is sent: it does not arrive
	diesCompleted  // while the completion is sent: it arrives, its answer does not
	denied         // the store refuses the completion for good
)

// fateOf draws the fate of a run: 1 % crash, 2 % fail, 0.5 % panic.
func fateOf(e *event) fate {
	n := e.random.IntN(1000)
	for _, f := range []struct {
		below int
		fate  fate
	}{{20, fails}, {25, panics}, {27, hangs}, {30, diesBefore}, {33, diesAfter}, {35, diesCompleting}, {37, diesCompleted}, {38, denied}} {
		if n < f.below {
			return f.fate
		}
	}
	return succeeds
}

// run is one execution of the handler.
type run struct {
	event  *event
	env    *environment
	start  time.Time
	fence  int64
	fate   fate
	ended  bool
	effect bool
}

// begin notes that a handler begins. The caller holds w.mu.
func (w *world) begin(inv *invocation, e *event, lease lock.Lease) *run {
	w.runs++
	e.runs++
	if g := e.group; g != nil {
		for g.next < len(g.events) && (g.events[g.next].completed() || g.events[g.next].dead) {
			g.next++
		}
		if e.place > g.next {
			w.fail("%s began before %s of the same group %s was completed", e.id, g.events[g.next].id, g.name)
		}
	}
	if w.stale(e) {
		w.fail("%s began after a later one of %s was completed", e.id, e.resource)
	}
	r := &run{event: e, env: inv.env, start: time.Now(), fence: lease.Fence, fate: fateOf(e)}
	inv.env.began(r, lease)
	return r
}

// end notes that a run ended, at the latest with its environment. The caller
// holds w.mu.
func (w *world) end(r *run) {
	if r.ended {
		return
	}
	r.ended = true
	w.holds = append(w.holds, history.Hold{
		Name: r.event.resource, Holder: fmt.Sprintf("%s in environment %d", r.event.id, r.env.id), Fence: r.fence, Start: r.start, End: time.Now(),
	})
}

var (
	errKilled    = errors.New("the process is dead")
	errPoison    = errors.New("nobody can handle this")
	errTransient = errors.New("the backend is busy")
)

// work is the handler of every source. Its effect is one step, which happens or
// not.
func (w *world) work(ctx context.Context, id, body string) error {
	inv := ctx.Value(invocationKey{}).(*invocation)
	lease, ok := lock.FromContext(ctx)
	w.mu.Lock()
	if inv.env.dead {
		w.mu.Unlock()
		return errKilled
	}
	e := w.byID[id]
	if !ok {
		w.fail("the handler of %s runs without a lock", id)
	}
	r := w.begin(inv, e, lease)
	first := time.Duration(20+e.random.IntN(1500)) * time.Millisecond
	last := time.Duration(e.random.IntN(30)) * time.Millisecond
	w.mu.Unlock()

	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.end(r)
		if !r.effect && inv.reasons[e] == "" {
			inv.reasons[e] = "the handler failed"
		}
	}()
	var decoded order
	if err := json.Unmarshal([]byte(body), &decoded); err != nil {
		return err
	}
	if r.fate == hangs { // ignores the end of its context
		ctx, first = context.WithoutCancel(ctx), 2*timeout
	}
	if err := inv.spend(ctx, first); err != nil {
		return err
	}
	if err := w.effect(r); err != nil {
		return err
	}
	_ = inv.spend(ctx, last) // the effect cannot be undone
	if r.fate == diesAfter {
		inv.env.crash()
	}
	return nil
}

// effect does what must not be done twice.
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
	}
	w.effects++
	r.event.effects++
	r.effect = true
	return nil
}

// spend lets time pass in the handler. A process that is killed meanwhile would
// never return; here it returns an error, which nobody sees.
func (inv *invocation) spend(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-inv.env.died:
		return errKilled
	}
}
