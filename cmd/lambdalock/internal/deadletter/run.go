package deadletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// mostFailures is after how many messages in a row that cannot be sent or
// deleted the reason is not one message.
const mostFailures = 10

// Run decides about the messages of a queue, and does what was decided.
type Run struct {
	queue *Queue
	judge *Judge

	stays    map[string]bool // groups of a FIFO queue of which a message is to stay
	failed   map[string]bool // and those of which one was not sent
	failures int             // since a message was deleted
	sent     bool            // a message was
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

// Do does what was decided about a round, as far as that is still right, and
// notes what came of it. The error says that there is no use in going on; what
// was done until then is noted.
//
// Messages are deleted first: if that is denied, none was sent that would stay
// in the dead-letter queue, too.
func (r *Run) Do(ctx context.Context, round []Decision) error {
	for _, action := range []string{Delete, Send, Invoke} {
		var pending, some []*Decision
		for i := range round {
			if round[i].Action == action {
				pending = append(pending, &round[i])
			}
		}
		for len(pending) > 0 {
			some, pending = r.some(pending)
			if err := r.act(ctx, action, some); err != nil {
				return err
			}
		}
	}
	return nil
}

// some returns the decisions for one request, and the rest. Parts of a request
// may fail, so one that sends has one message of each group of a FIFO queue.
// The first message that is sent goes alone, as does the first event: if it may
// not be deleted, no other is in both places.
func (r *Run) some(pending []*Decision) (some, rest []*Decision) {
	size, most, groups := 0, batch, map[string]bool{}
	sends := pending[0].Action == Send
	if pending[0].Action != Delete && !r.sent {
		most = 1
	}
	for _, d := range pending {
		size += d.message.size()
		full := len(some) >= most || sends && len(some) > 0 && (d.To != some[0].To || size > batchBytes)
		if full || sends && r.queue.FIFO && groups[d.Group] {
			size -= d.message.size()
			rest = append(rest, d)
		} else {
			some = append(some, d)
		}
		groups[d.Group] = true
	}
	return some, rest
}

// act does what was decided about some messages.
func (r *Run) act(ctx context.Context, action string, some []*Decision) error {
	var sure []*Decision
	for _, d := range some {
		if err := r.check(ctx, d); err != nil {
			return err
		}
		if d.Action == Leave {
			r.fails(d)
			continue
		}
		sure = append(sure, d)
	}
	if action != Delete && len(sure) > 0 {
		var err error
		if sure, err = r.deliver(ctx, sure); err != nil {
			return err
		}
	}
	if len(sure) == 0 {
		return nil
	}
	return r.delete(ctx, sure)
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

// send sends messages, and returns an error for each that SQS has not taken.
func (r *Run) send(ctx context.Context, some []*Decision) []error {
	errs := r.queue.Send(ctx, messagesOf(some))
	if len(some) > 1 {
		for i, d := range some { // one of those that were refused together may be the reason
			if err := errs[i]; wholly(err) && !unclear(err) && !denied(err) {
				errs[i] = r.queue.Send(ctx, messagesOf([]*Decision{d}))[0]
			}
		}
	}
	return errs
}

// invoke invokes functions, one request for each event, until there is no use
// in going on. It returns the errors of those that it asked for.
func (r *Run) invoke(ctx context.Context, some []*Decision) (errs []error) {
	for _, d := range some {
		if ctx.Err() != nil {
			break
		}
		id, err := r.judge.Functions.invoke(ctx, d.To, d.message.failed.event)
		if id != "" {
			r.queue.sent[id] = true
		}
		if errs = append(errs, err); denied(err) {
			break
		}
	}
	return errs
}

// deliver sends messages or invokes functions, and returns the messages that
// were taken.
func (r *Run) deliver(ctx context.Context, some []*Decision) (taken []*Decision, end error) {
	var errs []error
	verb := "sent"
	if some[0].Action == Send {
		errs = r.send(ctx, some)
	} else {
		verb, errs = "invoked", r.invoke(ctx, some)
	}
	if len(errs) < len(some) {
		end = context.Cause(ctx) // nil: what was denied says more
	}
	for i, err := range errs {
		d := some[i]
		switch {
		case err == nil:
			d.Sent, r.sent = Yes, true
			taken = append(taken, d)
			continue
		case errors.As(err, new(*driver.ConfigError)):
			d.leave(err.Error() + ": give --to")
		case unclear(err):
			d.Sent, d.Error = Perhaps, fmt.Sprintf("perhaps %s, and still in the dead-letter queue: %v", verb, err)
			end = cmp.Or(end, r.failure(d, err))
		default:
			d.Error = fmt.Sprintf("not %s: %v", verb, err)
			end = cmp.Or(end, r.failure(d, err))
		}
		r.fails(d)
	}
	if end != nil && len(taken) > 0 { // what was taken is to be deleted in any case
		end = cmp.Or(r.delete(ctx, taken), end)
	}
	return taken, end
}

// delete deletes messages that were completed, or sent. Nothing is sent after a
// request that failed as a whole: it would be in both queues.
func (r *Run) delete(ctx context.Context, some []*Decision) (end error) {
	for i, err := range r.queue.Delete(ctx, messagesOf(some)) {
		d := some[i]
		if d.Done = err == nil; d.Done {
			r.failures = 0
			continue
		}
		d.Error = fmt.Sprintf("not deleted, so it is still in the dead-letter queue: %v", err)
		if unclear(err) {
			d.Error = fmt.Sprintf("perhaps still in the dead-letter queue: %v", err)
		}
		r.fails(d)
		end = cmp.Or(end, r.failure(d, err))
		if wholly(err) {
			end = cmp.Or(end, fmt.Errorf("gave up: %s", d.Error))
		}
	}
	return end
}

// fails notes that a message stays, so that those after it in its group stay,
// too.
func (r *Run) fails(d *Decision) { r.failed[d.Group] = r.failed[d.Group] || r.queue.FIFO }

// failure returns the error of a run that ends because of what happened to a
// message: a permission is missing, or it was not the first.
func (r *Run) failure(d *Decision, err error) error {
	if denied(err) {
		return fmt.Errorf("gave up, because a permission is missing: %s", d.Error)
	}
	if r.failures++; r.failures >= mostFailures {
		return fmt.Errorf("gave up after %d failures, the last one: %s", mostFailures, d.Error)
	}
	return nil
}

func messagesOf(some []*Decision) []*Message {
	all := make([]*Message, 0, len(some))
	for _, d := range some {
		all = append(all, d.message)
	}
	return all
}
