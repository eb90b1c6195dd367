package delivery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

const (
	// visibilityTimeout is what AWS advises: six times the function's timeout.
	// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
	visibilityTimeout = 6 * timeout
	// maxReceiveCount is the least that AWS advises there.
	maxReceiveCount = 5
	batchSize       = 10
	pollers         = 4
	// arrival is how long the producers send.
	arrival = 2 * time.Minute
)

// queue is an SQS queue with its event source mapping.
//
// Standard: at least once, in any order, and a message may be received again
// while it is in flight.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues-at-least-once-delivery.html
//
// FIFO: in order within a message group; while some of its messages are in
// flight, no more are received. A batch without an answer is received again.
// The messages behind a failed one are received as often, and may follow it to
// the dead-letter queue.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html
//
// When the queue is empty, the dead letters are sent back, once. Among them are
// completed messages, as if a stuck one had taken them along.
type queue struct {
	*function[events.SQSEvent, events.SQSEventResponse]
	fifo   bool
	byBody bool // the key tells a message by its body, and not by its id

	mu      sync.Mutex
	entries []*entry // in the order in which they were sent
	letters []*entry // in the dead-letter queue
}

// entry is a message in the queue. A standard queue may have a second one: the
// copy on a server that knows neither of the first delivery nor of the
// deletion.
type entry struct {
	event    *event
	message  events.SQSMessage
	visible  time.Time
	received int
	copied   bool
}

// is reports whether o holds the same message.
func (n *entry) is(o *entry) bool { return n.message.MessageId == o.message.MessageId }

func (q *queue) send(m events.SQSMessage, e *event, at time.Time) {
	m.MessageId, m.EventSource = e.id, "aws:sqs"
	q.entries = append(q.entries, &entry{event: e, message: m, visible: at})
}

// keyedBy says what the key of a message in a standard queue is.
type keyedBy int

const (
	messageID   keyedBy = iota
	perCustomer         // the message id is the Event
	orderID             // of the body
)

func (by keyedBy) key() keyfuncs.Func[events.SQSMessage] {
	switch by {
	case perCustomer:
		return keyfuncs.SQSBody(keyfuncs.ByField(func(o order) string { return "customer " + o.Customer }))
	case orderID:
		return keyfuncs.SQSBody(keyfuncs.Once(keyfuncs.ByField(func(o order) string { return o.ID })))
	}
	return keyfuncs.SQSMessage
}

// newQueue fills a queue with n messages.
func newQueue(w *world, n int, by keyedBy, with ...middleware.Option) *queue {
	q := &queue{function: sqsFunction(w, by.key(), with), byBody: by == orderID}
	for i := range n {
		id := fmt.Sprintf("059f36b4-87a3-44ab-83d2-%012d", i)
		customer := strconv.Itoa(w.random.IntN(n / 4))
		resource := id
		if by == perCustomer {
			resource = customer
		}
		e := w.event(id, resource, "")
		e.place = i
		m := events.SQSMessage{Body: w.body(e, customer), EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:orders"}
		q.send(m, e, w.began.Add(time.Duration(w.random.Int64N(int64(arrival)))))
	}
	return q
}

// newFIFO fills a FIFO queue with n messages of n/50 groups, each in order.
func newFIFO(w *world, n int, by keyedBy, with ...middleware.Option) *queue {
	key := keyfuncs.Func[events.SQSMessage](keyfuncs.SQSFIFOMessage)
	if by == orderID {
		key = keyfuncs.EventFrom(key, by.key())
	}
	q := &queue{function: sqsFunction(w, key, with), fifo: true, byBody: by == orderID}
	at := w.began
	for i := range n {
		id := fmt.Sprintf("259f36b4-87a3-44ab-83d2-%012d", i)
		name := fmt.Sprint("group ", w.random.IntN(n/50))
		e := w.event(id, name, name)
		m := events.SQSMessage{
			Body:           w.body(e, name),
			EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:orders.fifo",
			Attributes: map[string]string{
				"MessageGroupId": name, "MessageDeduplicationId": id, "SequenceNumber": fmt.Sprintf("188%017d", 256*i),
			},
		}
		at = at.Add(time.Duration(w.random.Int64N(int64(2*arrival) / int64(n))))
		q.send(m, e, at)
	}
	return q
}

func sqsFunction(w *world, key keyfuncs.Func[events.SQSMessage], with []middleware.Option) *function[events.SQSEvent, events.SQSEventResponse] {
	key = keyed(w, key, func(m events.SQSMessage) string { return m.MessageId })
	handler := func(ctx context.Context, m events.SQSMessage) error { return w.work(ctx, m.MessageId, m.Body) }
	return &function[events.SQSEvent, events.SQSEventResponse]{
		w: w, with: with,
		wrap: func(o ...middleware.Option) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
			return middleware.EachSQSMessage(key, handler, o...)
		},
	}
}

// drain polls until the queue is empty, and once more for what was in the
// dead-letter queue.
func (q *queue) drain() {
	q.poll()
	q.redrive()
	q.poll()
}

func (q *queue) poll() {
	var wg sync.WaitGroup
	for range pollers {
		wg.Go(func() {
			for time.Since(q.w.began) < longest {
				batch, wait := q.receive()
				switch {
				case len(batch) > 0:
					q.deliver(batch)
				case wait < 0:
					return
				default:
					time.Sleep(wait + time.Duration(q.w.roll(2000))*time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	if len(q.entries) > 0 {
		q.w.complain("%d messages are left", len(q.entries))
	}
}

// receive returns a batch, or how long to wait if there is none; below zero:
// the queue is empty.
func (q *queue) receive() ([]*entry, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.discard()
	if len(q.entries) == 0 {
		return nil, -1
	}
	var batch []*entry
	if q.fifo {
		batch = q.groups()
	} else {
		batch = q.any()
	}
	now := time.Now()
	for _, n := range batch {
		n.received++
		if !n.copied {
			n.visible = now.Add(visibilityTimeout)
		}
		n.copied = false
	}
	if len(batch) > 0 {
		return batch, 0
	}
	next := slices.MinFunc(q.entries, func(a, b *entry) int { return a.visible.Compare(b.visible) })
	return nil, max(2*time.Second, next.visible.Sub(now))
}

// redrive sends the dead letters back, as new messages with new ids and
// sequence numbers. Only a key of the body shows that they were there before.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
func (q *queue) redrive() {
	q.w.mu.Lock()
	defer q.w.mu.Unlock()
	for i, n := range q.letters {
		m, e := n.message, n.event
		m.MessageId = fmt.Sprintf("359f36b4-87a3-44ab-83d2-%012d", i)
		group := m.Attributes["MessageGroupId"]
		if q.fifo {
			m.Attributes = map[string]string{"MessageGroupId": group, "MessageDeduplicationId": e.id, "SequenceNumber": fmt.Sprintf("189%017d", 256*i)}
		}
		if q.byBody {
			e.dead = false
			q.w.byID[m.MessageId] = e
		} else {
			resource := e.resource
			if resource == e.id {
				resource = m.MessageId
			}
			e = q.w.event(m.MessageId, resource, group)
			e.poison = n.event.poison
		}
		q.entries = append(q.entries, &entry{event: e, message: m, visible: time.Now()})
	}
	q.w.redriven += len(q.letters)
	q.letters = nil
}

// discard moves messages that were received too often to the dead-letter queue.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
func (q *queue) discard() {
	now := time.Now()
	q.entries = slices.DeleteFunc(q.entries, func(n *entry) bool {
		if n.received < maxReceiveCount || n.visible.After(now) {
			return false
		}
		q.w.giveUp(n.event)
		if !slices.ContainsFunc(q.letters, n.is) {
			q.letters = append(q.letters, n)
		}
		return true
	})
}

// any takes visible messages, in no order. 2 % of them stay visible for another
// poller, 3 % are in the batch twice.
func (q *queue) any() []*entry {
	now := time.Now()
	var batch []*entry
	first := q.w.roll(len(q.entries))
	for _, n := range slices.Concat(q.entries[first:], q.entries[:first]) {
		if len(batch) == batchSize {
			break
		}
		if n.visible.After(now) {
			continue
		}
		batch = append(batch, n)
		switch c := q.w.roll(100); {
		case c < 2:
			q.copy(n)
		case c < 5 && len(batch) < batchSize:
			batch = append(batch, q.copy(n))
		}
	}
	return batch
}

func (q *queue) copy(n *entry) *entry {
	q.w.mu.Lock()
	q.w.copies++
	q.w.mu.Unlock()
	c := *n
	q.entries = append(q.entries, &c)
	return &c
}

// groups takes the first messages of groups that have none in flight.
func (q *queue) groups() []*entry {
	now := time.Now()
	waiting := map[string][]*entry{}
	for _, n := range q.entries {
		g := n.message.Attributes["MessageGroupId"]
		if n.visible.After(now) && n.received == 0 {
			break // this message and the following ones are not sent yet
		}
		waiting[g] = append(waiting[g], n)
	}
	names := slices.Sorted(maps.Keys(waiting))
	var batch []*entry
	for len(names) > 0 && len(batch) < batchSize {
		i := q.w.roll(len(names))
		group := waiting[names[i]]
		names = slices.Delete(names, i, i+1)
		if slices.ContainsFunc(group, func(n *entry) bool { return n.visible.After(now) }) {
			continue
		}
		n := min(len(group), batchSize-len(batch), 1+q.w.roll(6))
		batch = append(batch, group[:n]...)
	}
	return batch
}

// deliver invokes the function, and deletes the messages that it does not
// return. No answer, or an error, leaves the whole batch; so would an id that
// is not in the batch.
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
func (q *queue) deliver(batch []*entry) {
	var e events.SQSEvent
	var records []*event
	for _, n := range batch {
		m := n.message
		m.ReceiptHandle = fmt.Sprint(m.MessageId, " ", n.received)
		e.Records = append(e.Records, m)
		records = append(records, n.event)
	}
	listed := map[*event]bool{}
	_, out := q.invoke(records, e, func(inv *invocation, a events.SQSEventResponse, err error) {
		for _, f := range a.BatchItemFailures {
			n := slices.IndexFunc(batch, func(n *entry) bool { return n.message.MessageId == f.ItemIdentifier })
			if n < 0 {
				q.w.complain("the answer names %q, which is not in the batch", f.ItemIdentifier)
				continue
			}
			listed[records[n]] = true
		}
		q.w.checkAnswer(records, a.BatchItemFailures == nil, listed, err)
		q.w.answered(inv, listed)
	})
	if out != answered {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.entries = slices.DeleteFunc(q.entries, func(n *entry) bool {
		succeeded := slices.Contains(batch, n) && !listed[n.event]
		if succeeded && !slices.ContainsFunc(q.letters, n.is) && q.w.roll(50) == 0 {
			q.letters = append(q.letters, n)
		}
		return succeeded
	})
}
