package eventsource

import (
	"slices"
	"time"
)

// Queue is an SQS queue.
//
// A message that is received stays invisible until it is deleted or its
// visibility timeout is over, and is received again then, see
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html.
//
// A FIFO queue keeps the order of each message group. While messages of a group
// are in flight, no more of them are received; a batch may hold messages of
// several groups, see
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html.
type Queue[T any] struct {
	FIFO            bool
	MaxReceiveCount int // after so many receives a message is a dead letter

	messages []*Message[T]
}

// Message is a message in a queue.
type Message[T any] struct {
	Value    T
	Group    string    // of a FIFO queue
	Visible  time.Time // from then on
	Receives int
}

// Send puts a message into the queue.
func (q *Queue[T]) Send(m *Message[T]) { q.messages = append(q.messages, m) }

// Visible returns what can be received now: of each message group the messages
// at its beginning; of a standard queue each message by itself.
func (q *Queue[T]) Visible(now time.Time) [][]*Message[T] {
	var groups [][]*Message[T]
	place, blocked := map[string]int{}, map[string]bool{}
	for _, m := range q.messages {
		i, begun := place[m.Group]
		switch {
		case q.FIFO && blocked[m.Group]:
		case m.Visible.After(now):
			blocked[m.Group] = true
		case q.FIFO && begun:
			groups[i] = append(groups[i], m)
		default:
			place[m.Group] = len(groups)
			groups = append(groups, []*Message[T]{m})
		}
	}
	return groups
}

// Receive takes messages, and makes them invisible until then.
func (q *Queue[T]) Receive(batch []*Message[T], until time.Time) {
	for _, m := range batch {
		m.Receives++
		m.Visible = until
	}
	if !q.FIFO { // the others come first
		q.Delete(batch)
		q.messages = append(q.messages, batch...)
	}
}

// Delete deletes messages.
func (q *Queue[T]) Delete(messages []*Message[T]) {
	q.messages = slices.DeleteFunc(q.messages, func(m *Message[T]) bool { return slices.Contains(messages, m) })
}

// DeadLetters removes the messages that would be received too often, and
// returns them, see
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html.
func (q *Queue[T]) DeadLetters(now time.Time) []*Message[T] {
	var dead []*Message[T]
	for _, m := range q.messages {
		if m.Receives >= q.MaxReceiveCount && !m.Visible.After(now) {
			dead = append(dead, m)
		}
	}
	q.Delete(dead)
	return dead
}

// Empty reports whether there are no messages, in flight or not.
func (q *Queue[T]) Empty() bool { return len(q.messages) == 0 }

// Next returns when the next message becomes visible. It reports false if none
// is invisible.
func (q *Queue[T]) Next(now time.Time) (time.Time, bool) {
	var next time.Time
	for _, m := range q.messages {
		if m.Visible.After(now) && (next.IsZero() || m.Visible.Before(next)) {
			next = m.Visible
		}
	}
	return next, !next.IsZero()
}
