package invoke

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/eventsource"
)

// entry is a message in a queue.
type entry = *eventsource.Message[*record]

// queue is an SQS queue with its event source mapping.
//
// Lambda receives batches of messages, several at the same time, and deletes
// the messages that the function completed. The others become visible again
// when the visibility timeout has passed since they were received, see
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html.
//
// As many batches of a FIFO queue can be under way as there are groups, see
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html.
type queue struct {
	*deliverer
	eventsource.Queue[*record]
	size   int // messages of a batch, at most
	places int // batches at the same time, at most: what the environments can take
	// apart keeps copies of a message out of the same batch, so that they are
	// received at the same time in another environment.
	apart bool
	busy  int // batches in flight
}

// received is a batch in flight.
type received struct {
	messages []entry
	delivery *delivery
}

func (d *deliverer) newQueue(messages []*record, fifo bool, size, places int) *queue {
	q := &queue{deliverer: d, size: size, places: places}
	q.FIFO, q.MaxReceiveCount = fifo, d.attempts(eventsource.MaxReceiveCount)
	of := map[string]*pacing{}
	for _, m := range messages {
		if of[m.group] == nil || !fifo {
			of[m.group] = &pacing{}
		}
		m.pacing = of[m.group]
		q.Send(&eventsource.Message[*record]{Value: m, Group: m.group})
	}
	return q
}

func (q *queue) run(ctx context.Context, queued func()) {
	over := make(chan *received)
	stopped := ctx.Done()
	for {
		q.discard(time.Now())
		for q.busy < q.places && ctx.Err() == nil {
			batch := q.receive(time.Now())
			if batch == nil {
				break
			}
			q.busy++
			go func() {
				batch.delivery, _ = q.send(ctx, batch.records(), "", queued)
				over <- batch
			}()
		}
		next, some := q.Next(time.Now()) // one in flight, at least
		if q.busy == 0 && (!some || ctx.Err() != nil) {
			return
		}
		if q.busy == 0 {
			q.report.idle(time.Until(next))
		}
		select {
		case batch := <-over:
			q.busy--
			q.settle(batch)
		case <-time.After(time.Until(next)):
		case <-stopped:
			stopped = nil // the batches in flight end now
		}
	}
}

// discard moves dead letters to the dead-letter queue.
func (q *queue) discard(now time.Time) {
	var dead []*record
	for _, m := range q.DeadLetters(now) {
		dead = append(dead, m.Value)
	}
	q.report.giveUp(dead, fmt.Sprintf("to the dead-letter queue after %d receives", q.MaxReceiveCount))
}

// receive takes a batch from the messages that are visible. Those of a FIFO
// queue are spread over the environments that are free.
func (q *queue) receive(now time.Time) *received {
	free, groups := q.places-q.busy, q.Visible(now)
	most := (len(groups) + free - 1) / free
	batch, seen, room, bytes := &received{}, map[string]bool{}, q.size, maxEvent-len(`{"Records":[]}`)
	for _, group := range groups {
		if room == 0 || q.FIFO && most == 0 {
			break
		}
		n := 0
		for n < min(room, len(group)) && !(q.apart && seen[group[n].Value.id]) && group[n].Value.size < bytes {
			seen[group[n].Value.id] = true
			bytes -= group[n].Value.size + len(",")
			n++
		}
		if n == 0 {
			continue
		}
		room -= n
		most--
		batch.messages = append(batch.messages, group[:n]...)
		p := group[0].Value.pacing
		if p.due = p.wait.Due(now); p.wait != nil {
			q.report.waited(p.ended, now, p.real)
		}
	}
	if len(batch.messages) == 0 {
		return nil
	}
	q.Receive(batch.messages, now.Add(longest))
	return batch
}

// longest is more than a delivery lasts, of which the command learns how it
// ended.
const longest = 1000 * time.Hour

func (q *queue) visibility() time.Duration { return eventsource.VisibilityTimeouts * q.Timeout }

func (b *received) records() []*record {
	all := make([]*record, len(b.messages))
	for i, m := range b.messages {
		all[i] = m.Value
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
	counts := func(p *pacing) bool { return p.due || !v.outcome.heldUp() }
	q.finish(v, !slices.ContainsFunc(v.records, func(m *record) bool { return !counts(m.pacing) }))
	var completed []entry
	stay := map[*pacing][]entry{}
	for _, m := range b.messages {
		if p := m.Value.pacing; q.stays(m, v, counts(p)) {
			stay[p] = append(stay[p], m)
		} else {
			completed = append(completed, m)
		}
	}
	q.Delete(completed)
	now := v.result.Ended
	for _, m := range completed {
		if p := m.Value.pacing; stay[p] == nil {
			*p = pacing{}
		}
	}
	for p, messages := range stay {
		if at, ok := q.sqs.comesBack(messages[0].Value); ok { // not cut short, because leases are not
			p.wait, p.real = eventsource.NewWait(max(0, at.Sub(now)), 1, now), at.Sub(now)
		} else if counts(p) {
			p.real = q.visibility()
			p.wait = eventsource.NewWait(max(0, q.visibility()-now.Sub(v.result.Started)), q.Scale, now)
		}
		p.ended = now
		visible := now.Add(p.wait.Step(now))
		for _, m := range messages {
			m.Visible = visible
		}
	}
}

// stays reports whether a message stays in the queue after a delivery.
func (q *queue) stays(m entry, v *delivery, counts bool) bool {
	failed := slices.Contains(v.again(counts), m.Value)
	if !failed && m.Value.copies == 0 || q.sqs.isDeleted(m.Value) {
		return false
	}
	if !failed {
		m.Value.copies-- // its deletion was lost
	}
	if !failed || !counts {
		m.Receives--
	}
	if counts {
		m.Value.received++
	}
	return true
}
