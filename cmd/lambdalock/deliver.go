package main

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
)

// inFlight is how many deliveries are under way at most, those in the line for an
// environment among them: a hundred thousand copies need not exist all at once.
const inFlight = 1000

// receives is how often a queue delivers a message, or a stream a record: AWS advises
// a maxReceiveCount of at least 5, see
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html.
const receives = 5

// deliverer delivers events to a platform.
type deliverer struct {
	*invokeCmd
	platform *locallambda.Platform
	table    *localtable.Table // nil: not embedded
	report   *report
}

// all delivers everything at once: in the given order into the line for an
// environment, without waiting for anything to end.
func (d *deliverer) all(ctx context.Context, deliveries iter.Seq[*event]) {
	places := make(chan struct{}, inFlight)
	var wg sync.WaitGroup
	defer wg.Wait()
	for e := range deliveries {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		queued := make(chan struct{})
		wg.Go(func() {
			defer func() { <-places }()
			d.deliver(ctx, e, sync.OnceFunc(func() { close(queued) }))
		})
		<-queued
	}
}

// deliver brings one event to its end, as its source does.
func (d *deliverer) deliver(ctx context.Context, e *event, queued func()) {
	defer queued() // where there was no attempt
	c := &chain{deliverer: d, event: e, batch: e.batch}
	opt := locallambda.Async{Scale: d.Scale, Queued: queued, TooEarly: c.tooEarly, Observe: c.observe, Waits: []time.Duration{}}
	switch {
	case e.batch != nil:
		opt.Again = c.again
		for range receives - 1 {
			opt.Waits = append(opt.Waits, d.visibility())
		}
	case d.Async:
		opt.Waits = nil // Lambda's
	}
	d.platform.Deliver(ctx, e.payload, opt)
	if ctx.Err() != nil && !c.over {
		d.report.interrupt(e)
	}
}

// visibility is how long a message that failed stays away: the timeout that AWS
// advises for a queue, see services-sqs-configure.html.
func (d *deliverer) visibility() time.Duration { return 6 * d.Timeout }

// chain is one delivery of an event, with what follows on it. Its methods are called
// one after the other for each attempt: tooEarly, observe, again.
type chain struct {
	*deliverer
	event   *event
	batch   *batch // what is being delivered of it; nil: the event is no batch
	outcome outcome
	failed  []string // records of the last attempt
	over    bool     // nothing is left to deliver
}

// tooEarly: an attempt that was held up says nothing yet. A real wait would have
// outlasted that lock, or the lock will still be there when the real wait is over.
func (c *chain) tooEarly(r locallambda.Result) bool {
	records := 1
	if c.batch != nil {
		records = len(c.batch.records)
	}
	if c.Concurrency > 1 {
		r.LogStream = "" // others share it
	}
	c.outcome = outcomeOf(r, c.table, records)
	if c.batch != nil {
		c.judgeRecords(r)
	}
	return c.outcome.heldUp()
}

// judgeRecords: a success that returns records is none.
func (c *chain) judgeRecords(r locallambda.Result) {
	if r.Outcome != locallambda.Succeeded {
		c.failed = c.batch.ids()
		return
	}
	c.failed = c.batch.failed(r.Payload)
	heldUp := onlyHeld(logged(r.Log))
	switch {
	case len(c.failed) == 0:
	case len(c.failed) < len(c.batch.records):
		c.outcome = outcome{word: partly}
		if heldUp {
			c.outcome = c.outcome.note(held)
		}
	case heldUp:
		c.outcome = outcome{word: held}
	default:
		c.outcome = outcome{word: failed}
	}
}

func (c *chain) observe(r locallambda.Result, counts bool) {
	w := row{event: c.event, outcome: c.outcome, result: r, completed: c.completed()}
	if !counts {
		w.outcome = w.outcome.note("too early")
	}
	if c.batch != nil && r.Outcome == locallambda.Succeeded && len(c.failed) > 0 {
		w.remark = fmt.Sprintf("%s failed: %s", c.batch.share(c.failed), strings.Join(c.failed, " "))
	}
	c.over = counts && r.Outcome == locallambda.Succeeded && len(c.failed) == 0
	c.report.add(w)
}

// completed returns the records that the last attempt completed.
func (c *chain) completed() []string {
	switch {
	case c.batch == nil && c.outcome.completed():
		return []string{whole}
	case c.batch == nil, c.outcome.word == skipped && c.outcome.heldUp():
		return nil
	}
	return slices.DeleteFunc(c.batch.ids(), func(id string) bool { return slices.Contains(c.failed, id) })
}

// again is what comes again after an attempt.
func (c *chain) again(locallambda.Result) []byte {
	next := c.batch.again(c.failed)
	if next == nil {
		return nil
	}
	c.batch = next
	return next.payload()
}
