package delivery_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/local/eventsource"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
)

const (
	visibilityTimeout = eventsource.VisibilityTimeouts * timeout
	pollers           = 4
	// arrival is how long the producers send.
	arrival = 2 * time.Minute
)

// queue is an SQS queue with its event source mapping. A batch without an
// answer is received again.
//
// Standard: at least once, in any order, and a message may be received again
// while it is in flight: there may be a copy on a server that knows neither of
// the first delivery nor of the deletion.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues-at-least-once-delivery.html
//
// FIFO: the messages behind a failed one are received as often, and may follow
// it to the dead-letter queue.
//
// When the queue is empty, the dead letters are sent back, once. Among them are
// completed messages, as if a stuck one had taken them along.
type queue struct {
	*function[events.SQSEvent, events.SQSEventResponse]
	byBody bool // the key tells a message by its body, and not by its id

	mu sync.Mutex
	eventsource.Queue[sent]
	letters []sent // in the dead-letter queue
}

// sent is a message in the queue.
type sent struct {
	event   *event
	message events.SQSMessage
}

type entry = *eventsource.Message[sent]

func (q *queue) send(m events.SQSMessage, e *event, at time.Time) {
	m.MessageId, m.EventSource = e.id, "aws:sqs"
	q.Send(&eventsource.Message[sent]{Value: sent{e, m}, Group: m.Attributes["MessageGroupId"], Visible: at})
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
	q := openQueue(w, by.key(), by, with)
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
	q := openQueue(w, key, by, with)
	q.FIFO = true
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

func openQueue(w *world, key keyfuncs.Func[events.SQSMessage], by keyedBy, with []middleware.Option) *queue {
	key = keyed(w, key, func(m events.SQSMessage) string { return m.MessageId })
	handler := func(ctx context.Context, m events.SQSMessage) error { return w.work(ctx, m.MessageId, m.Body) }
	q := &queue{byBody: by == orderID, function: &function[events.SQSEvent, events.SQSEventResponse]{
		w: w, with: with,
		wrap: func(o ...middleware.Option) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
			return middleware.EachSQSMessage(key, handler, append(o, inTurn(func(m events.SQSMessage) string { return m.MessageId }))...)
		},
	}}
	w.batches = true
	q.MaxReceiveCount = eventsource.MaxReceiveCount
	return q
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
	for i := range pollers {
		who := fmt.Sprint("poller ", i)
		wg.Go(func() {
			q.w.turn(who)
			for time.Since(q.w.began) < longest {
				batch, wait := q.receive()
				switch {
				case len(batch) > 0:
					q.deliver(batch)
				case wait < 0:
					return
				default:
					time.Sleep(wait + time.Duration(q.w.roll(2000))*time.Millisecond)
					q.w.turn(who)
				}
			}
		})
	}
	wg.Wait()
	if !q.Empty() {
		q.w.complain("messages are left")
	}
}

// receive returns a batch, or how long to wait if there is none; below zero:
// the queue is empty.
func (q *queue) receive() ([]entry, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for _, n := range q.DeadLetters(now) {
		q.w.giveUp([]*event{n.Value.event})
		q.letter(n.Value)
	}
	if q.Empty() {
		return nil, -1
	}
	if batch := q.pick(now); len(batch) > 0 {
		q.Receive(batch, now.Add(visibilityTimeout))
		return batch, 0
	}
	next, _ := q.Next(now)
	return nil, max(2*time.Second, next.Sub(now))
}

// letter puts a message into the dead-letter queue, unless it is there.
func (q *queue) letter(s sent) {
	if !slices.ContainsFunc(q.letters, func(o sent) bool { return o.message.MessageId == s.message.MessageId }) {
		q.letters = append(q.letters, s)
	}
}

// redrive sends the dead letters back, as new messages with new ids and
// sequence numbers. Only a key of the body shows that they were there before.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
func (q *queue) redrive() {
	q.w.mu.Lock()
	defer q.w.mu.Unlock()
	letters := q.letters
	q.letters = nil
	for i, n := range letters {
		m, e := n.message, n.event
		m.MessageId = fmt.Sprintf("359f36b4-87a3-44ab-83d2-%012d", i)
		group := m.Attributes["MessageGroupId"]
		if q.FIFO {
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
		q.Send(&eventsource.Message[sent]{Value: sent{e, m}, Group: group, Visible: time.Now()})
	}
	q.w.redriven += len(letters)
}

// pick takes visible messages of any groups. Of a standard queue, 2 % of them
// stay visible for another poller, and 3 % are in the batch twice.
func (q *queue) pick(now time.Time) []entry {
	var batch []entry
	groups := q.Visible(now)
	for len(groups) > 0 && len(batch) < eventsource.QueueBatch {
		i := q.w.roll(len(groups))
		group := groups[i]
		groups = slices.Delete(groups, i, i+1)
		batch = append(batch, group[:min(len(group), eventsource.QueueBatch-len(batch), 1+q.w.roll(6))]...)
		if q.FIFO {
			continue
		}
		switch c := q.w.roll(100); {
		case c < 2:
			q.copy(group[0])
		case c < 5 && len(batch) < eventsource.QueueBatch:
			batch = append(batch, q.copy(group[0]))
		}
	}
	return batch
}

func (q *queue) copy(n entry) entry {
	q.w.mu.Lock()
	defer q.w.mu.Unlock()
	q.w.copies++
	c := *n
	q.Send(&c)
	return &c
}

// deliver invokes the function, and deletes the messages that it does not
// return. No answer, or an error, leaves the whole batch.
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
func (q *queue) deliver(batch []entry) {
	var e events.SQSEvent
	var records []*event
	var ids []string
	for _, n := range batch {
		m := n.Value.message
		m.ReceiptHandle = fmt.Sprint(m.MessageId, " ", n.Receives)
		e.Records = append(e.Records, m)
		records, ids = append(records, n.Value.event), append(ids, m.MessageId)
	}
	var failed []string
	out := q.invoke(records, e, func(inv *invocation, a events.SQSEventResponse, err error) {
		failed = q.w.failed(eventsource.SQS, inv, ids, a, err)
	})
	if out != answered {
		return
	}
	completed := slices.DeleteFunc(batch, func(n entry) bool { return slices.Contains(failed, n.Value.message.MessageId) })
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, n := range completed {
		if q.w.roll(50) == 0 {
			q.letter(n.Value)
		}
	}
	q.Delete(completed)
}
