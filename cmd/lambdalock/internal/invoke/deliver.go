package invoke

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/lambdalock/lambdalock/internal/local/eventsource"
	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
	"github.com/lambdalock/lambdalock/lock"
)

// maxInFlight is how many deliveries are under way at most, including those
// that wait for an environment, so that a million copies fit into memory.
const maxInFlight = 1000

// platform runs the function: a *locallambda.Platform.
type platform interface {
	Attempt(context.Context, locallambda.Invocation) (locallambda.Result, error)
}

// deliverer delivers events to a platform.
type deliverer struct {
	*Command
	platform platform
	table    *localtable.Table
	report   *report
	sqs      *sqsAPI // nil: the function asks the SQS of an account
}

// source delivers what it holds, and delivers it again as AWS does, until it is
// completed or given up, or the context ends. It calls queued when its first
// delivery has its place in the queue for an environment.
type source interface {
	run(ctx context.Context, queued func())
}

// all runs sources, all at the same time: each takes its place in the queue for
// an environment, in the given order, and does not wait for any other to end.
func (d *deliverer) all(ctx context.Context, sources iter.Seq[source]) {
	places := make(chan struct{}, maxInFlight)
	var wg sync.WaitGroup
	defer wg.Wait()
	for s := range sources {
		if ctx.Err() != nil {
			return
		}
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		queued := make(chan struct{})
		release := sync.OnceFunc(func() { close(queued) })
		wg.Go(func() {
			defer func() { <-places }()
			defer release() // in case that there was no delivery
			s.run(ctx, release)
		})
		<-queued
	}
}

// delivery is one invocation that ended.
type delivery struct {
	records []*record
	result  locallambda.Result
	outcome outcome
	// failed are the records that the function did not complete, returned those
	// of them that the source delivers again.
	failed, returned []*record
	moved            []*record // of the failed ones: to a dead-letter queue, by the function
	ignored          []*record // of a batch
	named            int       // records of a whole event that its answer says failed
	remark           string    // shown in place of the answer
	claims           localtable.Claims
	fates            fates // of its records
	stale            int   // so many of them were skipped as stale, by the log
}

// send delivers records as one batch. Its error says that the run ended first.
func (d *deliverer) send(ctx context.Context, records []*record, requestID string, queued func()) (*delivery, error) {
	result, err := d.platform.Attempt(ctx, locallambda.Invocation{RequestID: requestID, Payload: payload(records), Queued: queued})
	if err != nil {
		d.report.interrupt(nameOf(records))
		return nil, err
	}
	return d.judge(records, result), nil
}

// judge says what became of a delivery.
func (d *deliverer) judge(records []*record, r locallambda.Result) *delivery {
	stream := r.LogStream
	if d.Concurrency > 1 {
		stream = "" // others share it
	}
	log, claims := logged(r.Log), d.table.Claims(r.RequestID, stream)
	v := &delivery{records: records, result: r, outcome: outcomeOf(r, log, claims, len(records)), claims: claims}
	b, moved := records[0].event.batch, d.moved(records, &r)
	switch {
	case r.Outcome != locallambda.Succeeded:
		v.failed, v.returned = records, records
	case b != nil:
		v.judgeRecords(b, moved, log, !d.IgnoreFailures)
	case records[0].event.kafka:
		v.judgeKafka(log)
	}
	if b != nil {
		v.ignored = named(ignoredRecord, records, r.Log)
	}
	if b != nil || v.outcome.word == skipped { // else the line may be of an inner lock
		v.stale = log[lock.OutcomeStale]
	}
	v.fates = v.fatesOf(log, claims)
	v.fates.shared = d.Concurrency > 1
	if f := v.fates; r.Outcome == locallambda.Succeeded && f.behind > 0 && !f.hidden && !f.unclear {
		v.failedIn(true, log)
	}
	return v
}

// moved returns the messages that the function has moved to a dead-letter
// queue, by its log or by what it has sent. Of those with the same body, the
// log knows which one was sent.
func (d *deliverer) moved(records []*record, r *locallambda.Result) []*record {
	logged := named(movedRecords, records, r.Log)
	sent := d.sqs.moved(append(slices.Clip(logged), without(records, logged)...), r.TraceID)
	return append(logged, without(sent, logged)...)
}

// judgeRecords finds the records that failed: those that the answer returns,
// and those that the function has moved elsewhere. If that is all of them, the
// success is a failure. Without ReportBatchItemFailures in its mapping, Lambda
// does not read what the function returns, and every record counts as
// completed, see
// https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html.
func (v *delivery) judgeRecords(b *batch, moved []*record, log tally, reported bool) {
	back := eventsource.Failed(b.source, v.records, func(r *record) string { return r.id }, v.result.Payload)
	v.moved = without(moved, back)
	v.failed = append(slices.Clip(back), v.moved...)
	if len(v.failed) == 0 {
		return
	}
	verb := "failed"
	if b.stream() { // it returns completed ones, too
		verb = "returned"
	}
	v.remark = fmt.Sprintf("%s %s: %s", b.share(len(v.failed), len(v.records)), verb, strings.Join(ids(v.failed), " "))
	if reported {
		v.returned = back
	} else if len(back) > 0 {
		v.remark += ", and are lost: without ReportBatchItemFailures, Lambda takes them for completed"
	}
	v.failedIn(len(v.failed) < len(v.records), log)
}

// judgeKafka finds out whether records failed. Lambda repeats only those that
// the answer names; here all come again, and the others are skipped.
func (v *delivery) judgeKafka(log tally) {
	failures, _ := eventsource.Failures(v.result.Payload) // no JSON: none
	if len(failures) == 0 {
		return
	}
	all := max(v.records[0].event.several, 1)
	v.failed, v.returned, v.named = v.records, v.records, min(len(failures), all)
	v.failedIn(v.named < all, log)
}

// failedIn is the outcome of a success whose answer returns records: a part of
// them, or all.
func (v *delivery) failedIn(part bool, log tally) {
	heldUp := onlyHeld(log)
	switch {
	case part:
		v.outcome = outcome{word: partly}
		if heldUp {
			v.outcome = v.outcome.note(held)
		}
	case heldUp:
		v.outcome = outcome{word: held}
	default:
		v.outcome = outcome{word: failed}
	}
}

// completed returns the records that need no further delivery because they were
// completed, now or earlier.
func (v *delivery) completed() []*record {
	whole := v.records[0].event.batch == nil
	switch {
	case whole && !v.outcome.completed(), !whole && v.outcome.word == skipped && v.outcome.heldUp():
		return nil
	case whole:
		return v.records
	}
	return without(without(v.records, v.failed), v.ignored)
}

// perhaps returns the records that the source delivers again although they may
// have been completed: in a stream, those behind the first one that was not.
func (v *delivery) perhaps() []*record {
	switch {
	case v.fates.behind == 0:
		return nil
	case v.result.Outcome != locallambda.Succeeded:
		return v.failed
	}
	return v.failed[1:]
}

// again returns the records to deliver again, of a delivery that counts or not.
// One that was skipped too early because of a lock is repeated, too.
func (v *delivery) again(counts bool) []*record {
	if !counts && len(v.failed) == 0 {
		return v.records
	}
	return v.returned
}

func without(records, some []*record) []*record {
	return slices.DeleteFunc(slices.Clone(records), func(r *record) bool { return slices.Contains(some, r) })
}

// finish reports a delivery.
func (d *deliverer) finish(v *delivery, counts bool) {
	w := row{name: nameOf(v.records), delivery: v, outcome: v.outcome, completed: v.completed(), perhaps: v.perhaps()}
	if !counts {
		w.outcome = w.outcome.note("too early")
	}
	d.report.add(w)
	d.report.giveUp(v.moved, "to the dead-letter queue by the function")
	lost := without(without(v.failed, v.returned), v.moved)
	d.report.giveUp(without(lost, w.perhaps), "lost")
	d.report.giveUp(without(lost, without(lost, w.perhaps)), "lost or completed: "+untold)
}

// nameOf names the events of a delivery.
func nameOf(records []*record) string {
	var names []string
	for _, r := range records {
		if !slices.Contains(names, r.event.name) {
			names = append(names, r.event.name)
		}
	}
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
}

// single is one copy of an event that is delivered alone: once, as an
// asynchronous invocation, or by a subscriber of a Custom Event Bus.
type single struct {
	*deliverer
	event *event
	async bool
}

func (s *single) run(ctx context.Context, queued func()) {
	b, destination := eventsource.NewAsync(&record{event: s.event}), ""
	b.Attempts = 1
	switch {
	case s.Source == sourceBus:
		b = eventsource.NewBus(&record{event: s.event})
		b.Attempts, destination = s.attempts(eventsource.BusAttempts), "to the subscriber's dead-letter queue, which gets the ids of the events, or nowhere"
	case s.async:
		b.Attempts, destination = s.attempts(eventsource.AsyncAttempts), "to the on-failure destination or dead-letter queue"
	}
	s.repeat(ctx, b, destination, queued)
}
