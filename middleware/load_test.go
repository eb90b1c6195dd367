package middleware_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/local/eventsource"
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
	work         time.Duration
	instant      bool // the table answers immediately, instead of after 5 ms
	groups       int  // of a FIFO queue; zero: a standard queue
	table        *fault.Limited
	key          keyfuncs.Func[events.SQSMessage] // nil: of the queue
	options      []middleware.Option

	message func(i int) events.SQSMessage           // nil: of the groups
	sent    func(since time.Duration) int           // how many messages; nil: all
	begins  func(environment int) (d time.Duration) // nil: immediately
	flight  int                                     // messages with consumers at a time; zero: all

	mu       sync.Mutex
	began    time.Time
	letters  map[string]*letter // that were received
	returned []*letter          // by the time at which they become visible
	running  map[string]bool
	order    []string // in which handlers began
	carried
}

// letter is a message that was received.
type letter struct {
	events.SQSMessage
	visible        time.Time
	received, runs int
}

// carried says what became of a load.
type carried struct {
	completed   []time.Duration // after how long
	dead        int             // moved to the dead-letter queue
	untried     int             // of these
	overlaps    int             // of handlers of one name
	again       int             // receives after the first
	invocations int
	late        int           // of these: not back before the deadline
	busy        time.Duration // of all environments
}

// run delivers the messages until each is completed or a dead letter.
func (l *load) run(t *testing.T) {
	t.Helper()
	l.table.Store = memstore.New()
	if !l.instant {
		l.table.Wait = 5 * time.Millisecond
	}
	if l.message == nil {
		l.message = l.plain
	}
	l.began, l.letters, l.running = time.Now(), map[string]*letter{}, map[string]bool{}
	var all sync.WaitGroup
	for i := range max(l.environments, 1) {
		all.Go(func() {
			if l.begins != nil {
				time.Sleep(l.begins(i))
			}
			l.poll(t.Context())
		})
	}
	all.Wait()
}

// plain is a message without a body.
func (l *load) plain(i int) events.SQSMessage {
	m := message(fmt.Sprintf("m%05d", i), "")
	if l.groups > 0 {
		m = inGroup(fmt.Sprint("g", i%l.groups), m)
		m.Attributes["SequenceNumber"] = fmt.Sprintf("%020d", i)
	}
	return m
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
	for !l.over() {
		batch := l.receive()
		if len(batch) == 0 {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		var e events.SQSEvent
		for _, m := range batch {
			e.Records = append(e.Records, m.SQSMessage)
		}
		invocation, cancel := context.WithTimeout(ctx, l.timeout)
		began := time.Now()
		r, err := h(invocation, e)
		l.answer(batch, r, err != nil, invocation.Err() != nil, time.Since(began))
		cancel()
	}
}

func (l *load) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.completed)+l.dead == l.messages
}

func (l *load) handle(_ context.Context, m events.SQSMessage) error {
	name := cmp.Or(m.Body, m.MessageId)
	l.mu.Lock()
	l.letters[m.MessageId].runs++
	l.order = append(l.order, m.MessageId)
	if l.running[name] {
		l.overlaps++
	}
	l.running[name] = true
	l.mu.Unlock()
	time.Sleep(l.work)
	l.mu.Lock()
	delete(l.running, name)
	l.mu.Unlock()
	return nil
}

// receive returns what is visible, at most a batch: first what was returned.
func (l *load) receive() []*letter {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, sent := time.Now(), l.messages
	var batch []*letter
	most, flight := cmp.Or(l.batch, l.messages), cmp.Or(l.flight, math.MaxInt)
	for len(batch) < most && len(l.returned) > 0 && !l.returned[0].visible.After(now) {
		m := l.returned[0]
		l.returned = l.returned[1:]
		if m.received < eventsource.MaxReceiveCount {
			l.again++
			batch = append(batch, m)
			continue
		}
		l.dead++
		if m.runs == 0 {
			l.untried++
		}
	}
	if l.sent != nil {
		sent = min(sent, l.sent(now.Sub(l.began)))
	}
	for len(batch) < most && len(l.letters) < sent && len(l.letters)-len(l.completed)-l.dead < flight {
		m := &letter{SQSMessage: l.message(len(l.letters))}
		l.letters[m.MessageId] = m
		batch = append(batch, m)
	}
	for _, m := range batch {
		m.received++
		m.visible = now.Add(eventsource.VisibilityTimeouts * l.timeout)
	}
	return batch
}

func (l *load) answer(batch []*letter, r events.SQSEventResponse, failed, late bool, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.invocations++
	l.busy += took
	if late {
		l.late++
	}
	left := map[string]bool{}
	for _, f := range r.BatchItemFailures {
		left[f.ItemIdentifier] = true
	}
	for _, m := range batch {
		if late || failed || left[m.MessageId] {
			at, _ := slices.BinarySearchFunc(l.returned, m, func(a, b *letter) int { return a.visible.Compare(b.visible) })
			l.returned = slices.Insert(l.returned, at, m)
			continue
		}
		l.completed = append(l.completed, time.Since(l.began))
	}
}

// String says what became of the load.
func (l *load) String() string {
	return fmt.Sprintf("of %d messages %d were completed, %d moved to the dead-letter queue, %d of them untried; of %d invocations %d were late",
		l.messages, len(l.completed), l.dead, l.untried, l.invocations, l.late)
}

// figures returns how many requests there were for each message, and which
// share of the writes that the table could take was used until the last answer
// that completed one.
func (l *load) figures() (perMessage, used float64) {
	sent, accepted := l.table.Requests()
	return float64(sent) / float64(l.messages), float64(accepted) / (l.table.Rate * (l.completed[len(l.completed)-1].Seconds() + 1))
}
