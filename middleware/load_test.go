package middleware_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// load is an SQS queue with a dead-letter queue, and environments of a function
// that handle its messages with their locks in one table.
type load struct {
	messages     int
	batch        int // messages of one invocation; zero: all
	environments int // zero: one
	timeout      time.Duration
	receives     int // after which a message moves to the dead-letter queue
	work         time.Duration
	instant      bool // the table answers immediately, instead of after 5 ms
	groups       int  // of a FIFO queue; zero: a standard queue
	table        *fault.Limited
	key          keyfuncs.Func[events.SQSMessage] // nil: of the queue
	options      []middleware.Option

	mu    sync.Mutex
	queue []*letter
	byID  map[string]*letter
	order []string // in which handlers began
	began time.Time
	carried
}

// letter is a message in the queue.
type letter struct {
	events.SQSMessage
	visible  time.Time
	received int
	tried    bool
}

// carried says what became of a load.
type carried struct {
	completed, dead, untried int
	invocations, late        int // late: not back before the deadline
	took                     time.Duration
}

// run delivers the messages until none is left.
func (l *load) run(t *testing.T) {
	t.Helper()
	l.table.Store = memstore.New()
	if !l.instant {
		l.table.Wait = 5 * time.Millisecond
	}
	l.began, l.byID = time.Now(), map[string]*letter{}
	for i := range l.messages {
		m := message(fmt.Sprintf("m%05d", i), "")
		if l.groups > 0 {
			m = inGroup(fmt.Sprint("g", i%l.groups), m)
			m.Attributes["SequenceNumber"] = fmt.Sprintf("%020d", i)
		}
		l.queue = append(l.queue, &letter{SQSMessage: m})
		l.byID[m.MessageId] = l.queue[i]
	}
	var all sync.WaitGroup
	for range max(l.environments, 1) {
		all.Go(func() { l.poll(t.Context()) })
	}
	all.Wait()
}

// poll is one environment with its poller.
func (l *load) poll(ctx context.Context) {
	key := l.key
	switch {
	case key != nil:
	case l.groups > 0:
		key = keyfuncs.SQSFIFOMessage
	default:
		key = keyfuncs.SQSMessage
	}
	h := middleware.EachSQSMessage(key, l.handle, append([]middleware.Option{middleware.Store(l.table), noLog}, l.options...)...)
	for {
		batch, wait := l.receive()
		if batch == nil {
			if wait < 0 {
				return
			}
			time.Sleep(wait)
			continue
		}
		var e events.SQSEvent
		for _, m := range batch {
			e.Records = append(e.Records, m.SQSMessage)
		}
		invocation, cancel := context.WithTimeout(ctx, l.timeout)
		r, err := h(invocation, e)
		l.answer(batch, r, err, invocation.Err() != nil)
		cancel()
	}
}

func (l *load) handle(_ context.Context, m events.SQSMessage) error {
	l.mu.Lock()
	l.byID[m.MessageId].tried = true
	l.order = append(l.order, m.MessageId)
	l.mu.Unlock()
	time.Sleep(l.work)
	return nil
}

// receive returns a batch, or how long to wait if there is none; below zero:
// the queue is empty.
func (l *load) receive() ([]*letter, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.queue = slices.DeleteFunc(l.queue, func(m *letter) bool {
		gone := m.received == l.receives && !m.visible.After(now)
		if gone {
			l.dead++
			if !m.tried {
				l.untried++
			}
		}
		return gone
	})
	var batch []*letter
	wait := time.Duration(-1)
	for _, m := range l.queue {
		switch {
		case m.visible.After(now):
			if d := m.visible.Sub(now); wait < 0 || d < wait {
				wait = d
			}
		case l.batch == 0 || len(batch) < l.batch:
			m.received, m.visible = m.received+1, now.Add(6*l.timeout)
			batch = append(batch, m)
		}
	}
	return batch, wait
}

func (l *load) answer(batch []*letter, r events.SQSEventResponse, err error, late bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.invocations++
	if late {
		l.late++
		return
	}
	left := map[string]bool{}
	for _, f := range r.BatchItemFailures {
		left[f.ItemIdentifier] = true
	}
	gone := map[*letter]bool{}
	for _, m := range batch {
		gone[m] = err == nil && !left[m.MessageId]
	}
	before := len(l.queue)
	l.queue = slices.DeleteFunc(l.queue, func(m *letter) bool { return gone[m] })
	if n := before - len(l.queue); n > 0 {
		l.completed += n
		l.took = time.Since(l.began)
	}
}

// figures returns how many requests there were for each message, and which
// share of the writes that the table could take was used until the last answer
// that completed one.
func (l *load) figures() (perMessage, used float64) {
	sent, accepted := l.table.Requests()
	return float64(sent) / float64(l.messages), float64(accepted) / (l.table.Rate * (l.took.Seconds() + 1))
}
