package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
)

const (
	// streamBatch is Lambda's default, see
	// https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-parameters.html.
	streamBatch = 100
	// streamAttempts is how often a batch is delivered here unless --attempts says
	// otherwise. Lambda's default is to repeat it until its records expire.
	streamAttempts = 5
	// AWS does not say how long the pauses between two attempts are. Here they
	// grow, from firstPause to longestPause.
	firstPause, longestPause = time.Second, 15 * time.Second
)

// shard is a shard of a stream with its event source mapping. Lambda delivers
// one batch at a time, in order. After a failure it delivers the batch again,
// from the first record on that failed if the function says so, and nothing
// that follows until that is over. A batch that has used up its attempts goes
// to the on-failure destination. See
// https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html and
// https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html.
type shard struct {
	*deliverer
	size    int // records of a batch, at most
	copies  int // how often each batch is delivered, as after a lost checkpoint
	records []*record
}

func (s *shard) run(ctx context.Context, queued func()) {
	for batch := range s.batches() {
		for range s.copies {
			if !s.process(ctx, batch, queued) {
				return
			}
			batch = slices.DeleteFunc(slices.Clone(batch), func(r *record) bool { return r.failures > 0 })
		}
	}
}

// batches cuts the records into batches that Lambda can deliver.
func (s *shard) batches() func(func([]*record) bool) {
	return func(yield func([]*record) bool) {
		for left := s.records; len(left) > 0; {
			n, bytes := 1, left[0].size
			for n < min(s.size, len(left)) && bytes+left[n].size < maxEvent-n-len(`{"Records":[]}`) {
				bytes += left[n].size
				n++
			}
			if !yield(left[:n]) {
				return
			}
			left = left[n:]
		}
	}
}

// process delivers a batch until all of it is completed or given up. It reports
// false if the run ends first.
func (s *shard) process(ctx context.Context, batch []*record, queued func()) bool {
	r := &repetition{shard: s}
	for len(batch) > 0 {
		if !pause(ctx, r.step()) {
			return false
		}
		v, ok := s.send(ctx, batch, queued)
		if !ok {
			return false
		}
		counts := r.ended(v)
		s.finish(v, counts)
		left := v.again(counts)
		if len(left) < len(batch) && counts {
			r.failures = 1 // a smaller batch, which has failed once
		}
		batch = left
		switch {
		case counts && s.Bisect && len(batch) > 1 && len(batch) == len(v.records):
			// Splitting a batch does not count as a retry.
			half := len(batch) / 2
			return s.process(ctx, batch[:half], queued) && s.process(ctx, batch[half:], queued)
		case len(batch) > 0 && r.failures >= s.attempts(streamAttempts):
			for _, given := range batch {
				given.failures = r.failures
			}
			s.report.giveUp(batch, fmt.Sprintf("to the on-failure destination after %s", attempts(r.failures)))
			return true
		}
	}
	return true
}

// repetition counts the attempts of a batch.
type repetition struct {
	*shard
	failures int
	pause    time.Duration     // Lambda's after the last attempt
	wait     *locallambda.Wait // that, cut short; nil: there was no attempt
	last     time.Time         // when the last attempt ended
}

// step returns how long to wait now.
func (r *repetition) step() time.Duration {
	if r.wait == nil {
		return 0
	}
	return r.wait.Step(time.Now())
}

// ended reports whether an attempt counts. One that a lock made fail does not:
// with its default, Lambda would repeat it for as long as the records are kept,
// and no lease lasts that long. With --attempts it counts after the real pause.
func (r *repetition) ended(v *delivery) bool {
	due := r.wait == nil || r.wait.Due(v.result.Started)
	counts := !v.outcome.heldUp() || due && (r.Attempts > 0 || len(v.returned) == 0)
	if !r.last.IsZero() {
		r.report.waited(r.last, v.result.Started, r.pause)
	}
	r.last = v.result.Ended
	if counts {
		r.failures++
	}
	if counts || due {
		r.pause = min(longestPause, firstPause<<min(r.failures, 10))
		r.wait = locallambda.NewWait(r.pause, r.Scale, r.last)
	}
	return counts
}

// pause waits. It reports false if the context ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// shards returns the shards of these records, each in the order of its sequence
// numbers.
func shards(records []*record) [][]*record {
	var names []string
	of := map[string][]*record{}
	for _, r := range records {
		if of[r.group] == nil {
			names = append(names, r.group)
		}
		of[r.group] = append(of[r.group], r)
	}
	all := make([][]*record, len(names))
	for i, name := range names {
		slices.SortStableFunc(of[name], func(a, b *record) int { return compareNumbers(a.id, b.id) })
		all[i] = of[name]
	}
	return all
}

// compareNumbers compares decimal numbers of any length.
func compareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
