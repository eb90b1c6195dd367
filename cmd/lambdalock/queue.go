package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
)

// visibilityTimeout is how many times the function's timeout a message that was
// received stays invisible, and maxReceiveCount how often it is received before
// it moves to the dead-letter queue. AWS advises both, see
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html.
const (
	visibilityTimeout = 6
	maxReceiveCount   = 5
)

// queue is an SQS queue with its event source mapping.
//
// Lambda receives batches of messages, several at once, and deletes the
// messages that the function completed. The others become visible again when
// the visibility timeout has passed since they were received, see
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html.
//
// A FIFO queue keeps the order of each message group. While messages of a group
// are in flight, no more of them are received, and a batch may hold messages of
// several groups. So as many batches can be under way as there are groups, see
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html and
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html.
type queue struct {
	*deliverer
	fifo   bool
	size   int // messages of a batch, at most
	places int // batches at once, at most: what the environments can take
	limit  int // receives of a message, at most
	// apart keeps copies of a message out of the same batch, so that they are
	// received at the same time in another environment.
	apart bool

	// ready are the groups whose first message is visible, waiting those that
	// have a message to become visible first. The others are in flight. In a
	// standard queue, each message is a group of its own.
	ready, waiting []*group
	busy           int // batches in flight
}

// group holds messages that are received in order.
type group struct {
	messages []*record
	wait     *locallambda.Wait // the last one; nil: there was none
	due      bool              // that was over when the messages were received
	wake     time.Time         // when it may be received again
	ended    time.Time         // when its last delivery did
}

// received is a batch in flight: messages of each of these groups.
type received struct {
	groups   []*group
	taken    []int // so many messages of each group
	delivery *delivery
}

func (d *deliverer) newQueue(messages []*record, fifo bool, size, places int) *queue {
	q := &queue{deliverer: d, fifo: fifo, size: size, places: places, limit: d.attempts(maxReceiveCount)}
	of := map[string]*group{}
	for _, m := range messages {
		g := of[m.group]
		if g == nil || !fifo {
			g = &group{}
			of[m.group] = g
			q.ready = append(q.ready, g)
		}
		g.messages = append(g.messages, m)
	}
	return q
}

func (q *queue) run(ctx context.Context, queued func()) {
	over := make(chan *received)
	stopped := ctx.Done()
	for {
		q.wake(time.Now())
		for q.busy < q.places && ctx.Err() == nil {
			batch := q.receive(time.Now())
			if batch == nil {
				break
			}
			q.busy++
			go func() {
				batch.delivery, _ = q.send(ctx, batch.messages(), queued)
				over <- batch
			}()
		}
		if q.busy == 0 && (len(q.waiting) == 0 || ctx.Err() != nil) {
			return
		}
		select {
		case batch := <-over:
			q.busy--
			q.settle(batch)
		case <-q.alarm():
		case <-stopped:
			stopped = nil // the batches in flight end now
		}
	}
}

// alarm is when the next group becomes visible.
func (q *queue) alarm() <-chan time.Time {
	if len(q.waiting) == 0 {
		return nil
	}
	next := slices.MinFunc(q.waiting, func(a, b *group) int { return a.wake.Compare(b.wake) })
	return time.After(time.Until(next.wake))
}

// wake makes groups visible whose time has come. A message that was received
// too often moves to the dead-letter queue instead, see
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html.
func (q *queue) wake(now time.Time) {
	q.waiting = slices.DeleteFunc(q.waiting, func(g *group) bool {
		if g.wake.After(now) {
			return false
		}
		var dead []*record
		g.messages = slices.DeleteFunc(g.messages, func(m *record) bool {
			if m.failures < q.limit {
				return false
			}
			dead = append(dead, m)
			return true
		})
		if len(dead) > 0 {
			q.report.giveUp(dead, fmt.Sprintf("to the dead-letter queue after %d receives", q.limit))
		}
		if len(g.messages) > 0 {
			q.ready = append(q.ready, g)
		}
		return true
	})
}

// receive takes a batch from the groups that are ready. Those of a FIFO queue
// are spread over the environments that are free.
func (q *queue) receive(now time.Time) *received {
	free := q.places - q.busy
	most := (len(q.ready) + free - 1) / free
	batch, seen, room, bytes := &received{}, map[string]bool{}, q.size, maxEvent-len(`{"Records":[]}`)
	q.ready = slices.DeleteFunc(q.ready, func(g *group) bool {
		if room == 0 || q.fifo && len(batch.groups) == most {
			return false
		}
		n := 0
		for n < min(room, len(g.messages)) && !(q.apart && seen[g.messages[n].id]) && g.messages[n].size < bytes {
			seen[g.messages[n].id] = true
			bytes -= g.messages[n].size + len(",")
			n++
		}
		if n == 0 {
			return false
		}
		room -= n
		g.due = g.wait == nil || g.wait.Due(now)
		batch.groups, batch.taken = append(batch.groups, g), append(batch.taken, n)
		if !g.ended.IsZero() {
			q.report.waited(g.ended, now, q.visibility())
		}
		return true
	})
	if len(batch.groups) == 0 {
		return nil
	}
	return batch
}

func (q *queue) visibility() time.Duration { return visibilityTimeout * q.Timeout }

func (b *received) messages() []*record {
	var all []*record
	for i, g := range b.groups {
		all = append(all, g.messages[:b.taken[i]]...)
	}
	return all
}

// settle deletes the messages that were completed. The others stay invisible
// for the rest of the visibility timeout, and their group with them.
func (q *queue) settle(b *received) {
	v := b.delivery
	if v == nil {
		return // interrupted
	}
	counts := func(g *group) bool { return g.due || !v.outcome.heldUp() }
	q.finish(v, !slices.ContainsFunc(b.groups, func(g *group) bool { return !counts(g) }))
	for i, g := range b.groups {
		q.settleGroup(g, b.taken[i], v, counts(g))
	}
}

func (q *queue) settleGroup(g *group, taken int, v *delivery, counts bool) {
	var stay []*record
	back := v.again(counts)
	for _, m := range g.messages[:taken] {
		switch {
		case slices.Contains(back, m) && counts:
			m.failures++
		case slices.Contains(back, m):
		case m.copies > 0:
			m.copies-- // its deletion was lost
		default:
			continue
		}
		if counts {
			m.received++
		}
		stay = append(stay, m)
	}
	g.messages = append(stay, g.messages[taken:]...)
	switch now := v.result.Ended; {
	case len(g.messages) == 0:
	case len(stay) == 0:
		g.wait, g.ended = nil, time.Time{}
		q.ready = append(q.ready, g)
	default:
		if counts {
			took := now.Sub(v.result.Started)
			g.wait = locallambda.NewWait(max(0, q.visibility()-took), q.Scale, now)
		}
		g.ended, g.wake = now, now.Add(g.wait.Step(now))
		q.waiting = append(q.waiting, g)
	}
}
