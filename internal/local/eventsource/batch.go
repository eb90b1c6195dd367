package eventsource

import (
	"context"
	"time"
)

// Batch is a batch of a shard on its way to a function. Lambda delivers one
// batch of a shard at a time, in order. After a failure it delivers the batch
// again, from the first record on that failed if the function says so, and
// nothing that follows until that is over. A batch that has used up its
// attempts goes to the on-failure destination, see
// https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html
// and
// https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html.
//
// It is also the event of an asynchronous invocation, or of a subscriber of a
// Custom Event Bus, as one record.
type Batch[T any] struct {
	Attempts int // at most: MaximumRetryAttempts, and the first
	// BisectAfter is how many attempts fail before a batch is split, which does
	// not count as one; zero: it is not. BisectBatchOnFunctionError makes it 1.
	BisectAfter int
	Scale       float64 // divides the pauses; zero means 1
	GiveUp      func([]T)

	pause    func(failures int) time.Duration
	parts    [][]T // the first is delivered next
	failures int   // of that
}

// NewBatch returns a batch of a shard. AWS does not say how long the pauses
// between two deliveries are; here they grow to 15 seconds.
func NewBatch[T any](records []T, attempts int) *Batch[T] {
	pause := func(failures int) time.Duration { return min(15*time.Second, time.Second<<min(failures, 10)) }
	return &Batch[T]{Attempts: attempts, pause: pause, parts: [][]T{records}}
}

// NewAsync returns the event of an asynchronous invocation: Lambda delivers it
// again after one minute, and after two more, see
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html.
func NewAsync[T any](event T) *Batch[T] {
	pause := func(failures int) time.Duration { return time.Minute * time.Duration(min(max(failures, 1), 2)) }
	return &Batch[T]{Attempts: AsyncAttempts, pause: pause, parts: [][]T{{event}}}
}

// NewBus returns what a subscriber of a Custom Event Bus sends at once. AWS
// does not say how long the pauses are; here they double from 2 seconds on, so
// that the 5 retries of the default all take place within its 300 seconds.
func NewBus[T any](array T) *Batch[T] {
	pause := func(failures int) time.Duration { return min(time.Minute, time.Second<<min(failures, 10)) }
	return &Batch[T]{Attempts: BusAttempts, pause: pause, parts: [][]T{{array}}}
}

// Run delivers the batch until all of it succeeded or is given up, or the
// context ends. The wait before a delivery is nil if there was none. deliver
// returns how many records succeeded before the first one that failed, and
// whether the attempt counts. Its error ends Run.
func (b *Batch[T]) Run(ctx context.Context, deliver func(records []T, wait *Wait) (succeeded int, counts bool, err error)) error {
	var wait *Wait
	for len(b.parts) > 0 && len(b.parts[0]) > 0 {
		if !wait.Sleep(ctx) {
			return context.Cause(ctx)
		}
		due := wait.Due(time.Now())
		succeeded, counts, err := deliver(b.parts[0], wait)
		if err != nil {
			return err
		}
		pause := b.delivered(succeeded, counts)
		switch {
		case pause == 0:
			wait = nil
		case counts || due:
			wait = NewWait(pause, b.Scale, time.Now())
		}
	}
	return nil
}

// delivered notes that so many records succeeded before the first one that
// failed. It returns how long to wait before the others are delivered again; 0:
// there are none, or other records come next.
func (b *Batch[T]) delivered(succeeded int, counts bool) time.Duration {
	left, rest := b.parts[0][succeeded:], b.parts[1:]
	if counts {
		b.failures++
	}
	pause := b.pause(b.failures)
	if counts && succeeded > 0 {
		b.failures = 1 // a smaller batch, which has failed once
	}
	switch {
	case len(left) == 0:
	case counts && succeeded == 0 && len(left) > 1 && b.BisectAfter > 0 && b.failures >= b.BisectAfter:
		rest = append([][]T{left[:len(left)/2], left[len(left)/2:]}, rest...)
	case b.failures < b.Attempts:
		b.parts[0] = left
		return pause
	case b.GiveUp != nil:
		b.GiveUp(left)
	}
	b.parts, b.failures = rest, 0
	return 0
}
