package middleware

import (
	"context"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
)

// batch wraps a handler of one record as a handler of batches.
type batch[R any] struct {
	*wrapper
	each     eachSettings
	open     opener[R]
	around   around[R]   // nil: none
	onFailed onFailed[R] // nil: none
	// permanentOnce is for the warning that nothing moves a record elsewhere.
	permanentOnce sync.Once
}

// eachSettings are the settings that only handlers of single records have.
type eachSettings struct {
	concurrency  int
	orderPerName bool
	onlyLatest   bool
	// partialAnswers is for a source that takes them if its mapping says so.
	partialAnswers bool
	around         any // func(context.Context, R, func(context.Context) error) error; nil: none
	onFailed       any // func(context.Context, []*Failed[R]); nil: none
}

// run handles the records of one delivery. It returns one error for each, nil
// for those that were completed or skipped.
func (b *batch[R]) run(ctx context.Context, src source[R], records []R) []error {
	ctx, done := b.measure(ctx)
	defer done()
	d := &delivery[R]{
		batch: b, ctx: ctx, source: src,
		tasks: make([]task[R], len(records)), ready: make(chan *task[R], len(records)), remaining: len(records),
		claiming: make(chan struct{}, 1), pace: invocation.Pace{Chance: clock.From(ctx)},
	}
	d.lastStart, _ = invocation.LastStart(ctx, b.engine.Reserve)
	for i := range records { // before any record begins, because a handler may change data that records share
		t := &d.tasks[i]
		t.index, t.record = i, &records[i]
		t.opened, t.err = d.openRecord(t)
	}
	d.chain()
	d.ctx = invocation.WithBatch(ctx, d.rememberedTogether())
	for range d.claims() {
		d.workers.Go(d.work)
	}
	d.workers.Wait()
	errs := d.errors()
	d.tellFailed(errs)
	return errs
}

// delivery is one batch that is being handled.
type delivery[R any] struct {
	*batch[R]
	ctx       context.Context
	source    source[R]
	lastStart time.Time // no record begins after it; zero: no limit
	tasks     []task[R] // one for each record
	ready     chan *task[R]
	pace      invocation.Pace
	claiming  chan struct{} // has an element while a worker waits for the next claim
	workers   sync.WaitGroup

	mu        sync.Mutex    // guards what the tasks know about each other
	remaining int           // tasks that have not ended
	longest   time.Duration // run of a handler
	throttles int           // claims that the store throttled
}

// claims returns how many records are handled at a time.
func (d *delivery[R]) claims() int { return min(d.each.concurrency, len(d.tasks)) }

// rememberedTogether returns the events of the batch that should not be
// forgotten for lack of room while the batch is handled. An event with an Order
// needs no room, because its order tells that it is completed. Of the records
// of a group or of a name only one is handled at a time, so no more locks are
// claimed at the same time than there are records that wait for none, unless
// OnFailed put one elsewhere for which several names waited.
func (d *delivery[R]) rememberedTogether() *invocation.Batch {
	b := &invocation.Batch{
		Claims:    min(d.claims(), len(d.ready)),
		LeastHold: d.engine.HoldAtLeast,
		Renews:    d.engine.Lease.IsHeartbeat(),
		Coalesces: d.each.onlyLatest,
	}
	for i := range d.tasks {
		if k := d.tasks[i].key; k.Event != "" && k.Order == "" {
			b.Add(k.Name, k.Event)
		}
	}
	return b
}
