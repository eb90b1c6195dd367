package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
)

// maxInFlight is how many deliveries are under way at most, including those
// that wait for an environment, so that a million copies fit into memory.
const maxInFlight = 1000

// A queue delivers a message, and a stream a record, up to maxReceiveCount
// times. A message that failed stays invisible for so many timeouts of the
// function. AWS advises both, see
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html.
const (
	maxReceiveCount   = 5
	visibilityTimeout = 6
)

// deliverer delivers events to a platform.
type deliverer struct {
	*invokeCmd
	platform *locallambda.Platform
	table    *localtable.Table
	report   *report
}

// all delivers events in the given order, all at once: each delivery takes its
// place in the queue for an environment and does not wait for any other to end.
func (d *deliverer) all(ctx context.Context, events []*event) {
	places := make(chan struct{}, maxInFlight)
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, e := range events {
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

// deliver delivers one copy of an event, and delivers it again as its source
// does.
func (d *deliverer) deliver(ctx context.Context, e *event, queued func()) {
	defer queued() // in case that there was no attempt
	s := &source{deliverer: d, event: e, batch: e.batch}
	opt := locallambda.Redelivery{Scale: d.Scale, Queued: queued, TooEarly: s.tooEarly, Observe: s.observe, Waits: []time.Duration{}}
	switch {
	case e.batch != nil:
		opt.Again = s.again
		opt.Waits = slices.Repeat([]time.Duration{visibilityTimeout * d.Timeout}, maxReceiveCount-1)
	case d.Async:
		opt.Waits = nil // Lambda's
	}
	d.platform.Deliver(ctx, e.payload, opt)
	if ctx.Err() != nil && !s.over {
		d.report.interrupt(e)
	}
}

// source is the event source of one copy of an event. Its methods are called in
// this order for each delivery: tooEarly, observe, again.
type source struct {
	*deliverer
	event   *event
	batch   *batch // what is being delivered of it; nil: the event is not a batch
	outcome outcome
	failed  []string // records that the last delivery returned
	over    bool     // nothing is left to deliver
}

// tooEarly reports whether a delivery was held up. It says nothing yet: the
// real wait would have outlasted that lock, or the lock will still be held
// after it.
func (s *source) tooEarly(r locallambda.Result) bool {
	records := 1
	if s.batch != nil {
		records = len(s.batch.ids)
	}
	if s.Concurrency > 1 {
		r.LogStream = "" // others share it
	}
	s.outcome = outcomeOf(r, s.table.Claims(r.RequestID, r.LogStream), records)
	if s.batch != nil {
		s.judgeRecords(r)
	}
	return s.outcome.heldUp()
}

// judgeRecords finds the records that failed. A success that returns all of
// them is a failure.
func (s *source) judgeRecords(r locallambda.Result) {
	if r.Outcome != locallambda.Succeeded {
		s.failed = s.batch.ids
		return
	}
	s.failed = s.batch.failed(r.Payload)
	heldUp := onlyHeld(logged(r.Log))
	switch {
	case len(s.failed) == 0:
	case len(s.failed) < len(s.batch.ids):
		s.outcome = outcome{word: partly}
		if heldUp {
			s.outcome = s.outcome.note(held)
		}
	case heldUp:
		s.outcome = outcome{word: held}
	default:
		s.outcome = outcome{word: failed}
	}
}

func (s *source) observe(r locallambda.Result, counts bool) {
	w := row{event: s.event, outcome: s.outcome, result: r, completed: s.completed()}
	if !counts {
		w.outcome = w.outcome.note("too early")
	}
	succeeded := r.Outcome == locallambda.Succeeded
	if succeeded && len(s.failed) > 0 {
		w.remark = fmt.Sprintf("%s failed: %s", s.batch.share(s.failed), strings.Join(s.failed, " "))
	}
	s.over = counts && succeeded && len(s.failed) == 0
	s.report.add(w)
}

// completed returns the records that the last delivery completed.
func (s *source) completed() []string {
	switch {
	case s.batch == nil && s.outcome.completed():
		return []string{whole}
	case s.batch == nil, s.outcome.word == skipped && s.outcome.heldUp():
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.batch.ids), func(id string) bool { return slices.Contains(s.failed, id) })
}

// again returns the records to deliver again.
func (s *source) again(locallambda.Result) []byte {
	next := s.batch.again(s.failed)
	if next == nil {
		return nil
	}
	s.batch = next
	return next.payload()
}
