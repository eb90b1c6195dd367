package deadletter

import (
	"context"
	"fmt"
	"time"
)

const (
	// actTimeout bounds what is done with one message. An interrupt does not end
	// it, so that a message that was sent is deleted, too.
	actTimeout = 10 * time.Second
	// mostFailures is after how many messages that cannot be sent or deleted the
	// reason is not one message.
	mostFailures = 10
)

// Run decides about the messages of a queue, and does what was decided.
type Run struct {
	queue *Queue
	judge *Judge

	stays    map[string]bool // groups of a FIFO queue of which a message is to stay
	failed   map[string]bool // and those of which one was not sent
	failures int
}

// NewRun returns a run that has not begun.
func NewRun(q *Queue, j *Judge) *Run {
	return &Run{queue: q, judge: j, stays: map[string]bool{}, failed: map[string]bool{}}
}

// Next decides about the next round of messages, of which it returns none in
// the end.
func (r *Run) Next(ctx context.Context) ([]Decision, error) {
	messages, err := r.queue.Receive(ctx)
	if err != nil {
		return nil, err
	}
	round := make([]Decision, 0, len(messages))
	for _, m := range messages {
		d, err := r.judge.Decide(ctx, m)
		if err != nil {
			return nil, err
		}
		d.message = m
		if d.Action == Send && (r.stays[m.Group] || r.failed[m.Group]) {
			d.leave("an earlier message of its group stays")
		}
		r.stays[m.Group] = r.stays[m.Group] || r.queue.FIFO && d.Action == Leave
		round = append(round, d)
	}
	return round, nil
}

// Do does what was decided, if that is still right, and notes what came of it.
// The error says that there is no use in going on.
func (r *Run) Do(ctx context.Context, d *Decision) error {
	if d.Action == Leave {
		return nil
	}
	if err := r.check(ctx, d); err != nil {
		return err
	}
	if d.Action == Leave {
		r.failed[d.Group] = r.failed[d.Group] || r.queue.FIFO
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), actTimeout)
	defer cancel()
	err := r.act(ctx, d)
	if err == nil {
		d.Done = true
		return nil
	}
	d.Error = err.Error()
	r.failed[d.Group] = r.failed[d.Group] || r.queue.FIFO
	if r.failures++; r.failures == mostFailures {
		return fmt.Errorf("gave up after %d failures, the last one: %w", mostFailures, err)
	}
	return nil
}

// check leaves a message if what was decided is not right any more.
func (r *Run) check(ctx context.Context, d *Decision) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case d.Action == Send && r.failed[d.Group]:
		d.leave("an earlier message of its group stays")
		return nil
	case r.queue.Late(d.message):
		d.leave("too late: others may receive it. Run the command again, with a longer --hide")
		return nil
	}
	now, err := r.judge.Decide(ctx, d.message)
	if err == nil && now.Action != d.Action {
		d.leave("changed meanwhile: " + now.Why)
	}
	return err
}

// act sends first, and deletes what SQS has acknowledged.
func (r *Run) act(ctx context.Context, d *Decision) error {
	if d.Action == Send {
		if err := r.queue.Send(ctx, d.message); err != nil {
			return fmt.Errorf("not sent: %w", err)
		}
	}
	if err := r.queue.Delete(ctx, d.message); err != nil {
		return fmt.Errorf("not deleted, so it is still in the dead-letter queue: %w", err)
	}
	return nil
}
