package middleware

import (
	"context"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/lock"
)

// Totals sums up what the wrapper did in one invocation, since the function
// given to [Metrics] was called for it before. Each call gets a value of its
// own, which may be kept and changed.
type Totals struct {
	Namespace string        // of the locks
	Began     time.Time     // when the wrapper was called
	Duration  time.Duration // of the invocation, to the end of a streamed response; zero before the last call
	// Outcomes counts the outcomes of package lock and of this package.
	// [OutcomeNotBegun] counts records.
	Outcomes   map[lock.Outcome]int
	Completed  int             // the lock.OutcomeReleased that completed an event
	InProgress int             // the lock.OutcomeHeld whose holder handles the same event
	Contended  map[string]int  // the other lock.OutcomeHeld, by the digest of the key
	Requests   int             // to the store
	Acquires   []time.Duration // how long it took to acquire each lock, with its wait
	Waits      []time.Duration // how long each claim waited that did wait
	Holds      []time.Duration // how long each lock was held that has ended
}

// both returns a function that calls before and then f, also if before panics.
// Nil does nothing.
func both[T any](before, f func(context.Context, T)) func(context.Context, T) {
	switch {
	case f == nil:
		return before
	case before == nil:
		return f
	}
	return func(ctx context.Context, v T) {
		defer f(ctx, v)
		before(ctx, v)
	}
}

// atOnce are the outcomes that are told when they occur. An event that kills
// each of its runs has no end of an invocation that could tell.
var atOnce = map[lock.Outcome]bool{
	lock.OutcomeTakenOver: true, lock.OutcomeInterrupted: true, lock.OutcomeLost: true, OutcomeUnlocked: true,
}

// tally is the totals of an invocation that is under way.
type tally struct {
	ctx context.Context
	f   func(context.Context, Totals)

	mu     sync.Mutex
	open   int // the invocation, and every streamed response in it
	totals Totals
}

type tallyKey struct{}

func tallyOf(ctx context.Context) *tally {
	t, _ := ctx.Value(tallyKey{}).(*tally)
	return t
}

func noTally() {}

// measure begins the totals of an invocation, which end with done.
func (w *wrapper) measure(ctx context.Context) (_ context.Context, done func()) {
	if w.metrics == nil || tallyOf(ctx) != nil {
		return ctx, noTally
	}
	t := &tally{ctx: ctx, f: w.metrics, open: 1, totals: newTotals(w.engine.Namespace, clock.From(ctx).Now())}
	return context.WithValue(ctx, tallyKey{}, t), t.close
}

// keepOpen keeps the totals open until done is called.
func keepOpen(ctx context.Context) (done func()) {
	t := tallyOf(ctx)
	if t == nil {
		return noTally
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open++
	return t.close
}

// close calls the function given to Metrics when it is called for the last
// time.
func (t *tally) close() {
	t.mu.Lock()
	t.open--
	last := t.open == 0
	t.mu.Unlock()
	if last {
		t.totals.Duration = clock.From(t.ctx).Now().Sub(t.totals.Began)
		t.f(t.ctx, t.totals)
	}
}

// tallyUp adds an observation to the totals of its invocation, unless they are
// closed: a heartbeat that is stuck may report later.
func tallyUp(ctx context.Context, o lock.Observation) {
	t := tallyOf(ctx)
	if t == nil {
		return
	}
	if told := t.add(o); told != nil {
		t.f(t.ctx, *told)
	}
}

// add returns the totals if they are to be told at once. Then they begin anew.
func (t *tally) add(o lock.Observation) *Totals {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == 0 {
		return nil
	}
	t.totals.add(o)
	if !atOnce[o.Outcome] {
		return nil
	}
	told := t.totals
	t.totals = newTotals(told.Namespace, told.Began)
	return &told
}

func newTotals(namespace string, began time.Time) Totals {
	return Totals{Namespace: namespace, Began: began, Outcomes: map[lock.Outcome]int{}}
}

func (t *Totals) add(o lock.Observation) {
	t.Outcomes[o.Outcome] += max(o.Records, 1)
	t.Requests += o.Requests
	if o.Waited > 0 {
		t.Waits = append(t.Waits, o.Waited)
	}
	if o.Completed {
		t.Completed++
	}
	if o.Op == "complete" || o.Op == "release" { // whatever the outcome: those that outlived their lease took longest
		t.Holds = append(t.Holds, o.HeldFor)
	}
	switch o.Outcome {
	case lock.OutcomeAcquired, lock.OutcomeTakenOver:
		t.Acquires = append(t.Acquires, o.Duration)
	case lock.OutcomeHeld:
		t.addHeld(o)
	}
}

func (t *Totals) addHeld(o lock.Observation) {
	if o.Duplicate {
		t.InProgress++
		return
	}
	if t.Contended == nil {
		t.Contended = map[string]int{}
	}
	t.Contended[o.Key.Digest()]++
}
