package invoke

import (
	"context"
	"fmt"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/eventsource"
)

// pacing is what a message or its message group waits for.
type pacing struct {
	wait  *eventsource.Wait // the last one; nil: there was none
	due   bool              // that was over when the messages were received
	real  time.Duration     // how long SQS would have let them wait
	ended time.Time         // when the last delivery did
}

// repeat delivers a batch until all of it is completed or given up. It reports
// false if the run ends first.
func (d *deliverer) repeat(ctx context.Context, b *eventsource.Batch[*record], destination string, queued func()) bool {
	b.Scale = d.Scale
	b.GiveUp = func(given []*record) {
		for _, r := range given {
			r.givenUp = true
		}
		if destination != "" {
			d.report.giveUp(given, fmt.Sprintf("%s after %s", destination, attempts(b.Attempts)))
		}
	}
	last, requestID, pausing := &delivery{}, "", false
	err := b.Run(ctx, func(records []*record, wait *eventsource.Wait) (int, bool, error) {
		pausing = false
		v, err := d.send(ctx, records, requestID, queued)
		if err != nil {
			return 0, false, err
		}
		if records[0].event.batch == nil {
			pausing = true
			if d.Source != sourceBus { // whose retries are invocations of their own
				requestID = v.result.RequestID
			}
		}
		if wait != nil {
			d.report.waited(last.result.Ended, v.result.Started, wait.Real)
		}
		last = v
		counts := d.counts(v, wait.Due(v.result.Started))
		d.finish(v, counts)
		return len(records) - len(v.again(counts)), counts, nil
	})
	if err != nil && pausing {
		d.report.interrupt(nameOf(last.records))
	}
	return err == nil
}

// counts reports whether an attempt counts. One that a lock made fail says
// nothing before it is due: the real wait would have outlasted that lock, or
// the lock will still be held after it. A batch of a stream does not count even
// then: with its default, Lambda would repeat it for as long as the records are
// kept, and no lease lasts that long. With --attempts it counts.
func (d *deliverer) counts(v *delivery, due bool) bool {
	whole := v.records[0].event.batch == nil
	return !v.outcome.heldUp() || due && (whole || d.Attempts > 0 || len(v.returned) == 0)
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}
