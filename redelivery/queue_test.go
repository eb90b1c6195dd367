package redelivery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/local/eventsource"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/redelivery"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

const (
	// timeout is that of most functions, whose queue has six times as much.
	timeout = 15 * time.Minute
	// latency is how long each request to SQS takes, and how long Lambda takes to
	// deliver a message that is visible.
	latency = 50 * time.Millisecond
	arn     = "arn:aws:sqs:eu-central-1:123456789012:orders"
	url     = "https://sqs.eu-central-1.amazonaws.com/123456789012/orders"
	letters = "https://sqs.eu-central-1.amazonaws.com/123456789012/letters"
)

// queue is SQS with the queue of a function and a dead-letter queue, by the
// rules of package eventsource. It implements [redelivery.Client].
type queue struct {
	t      *testing.T
	store  *memstore.Store
	chance *seeded
	// timeout is that of the function, and visibility that of the queue.
	timeout, visibility time.Duration
	// fault says what becomes of a request; "": it is applied and answered.
	fault func(request string) string
	// nameless says that keys have no Event, and ordered that they have an Order.
	nameless  bool
	ordered   bool
	malformed string // the name for which the key function fails for good
	// begins is called when a handler begins; nil: it is not.
	begins func(id string)

	changed chan struct{}

	mu       sync.Mutex
	messages eventsource.Queue[events.SQSMessage]
	dead     []*sqs.SendMessageInput
	received map[string][]time.Time // by message id
	handled  map[string]time.Time   // by message id: when the handler began first
	order    []string               // in which they began
	runs     int
	lastRun  time.Time // began then
	requests int
	log      bytes.Buffer
	logger   *slog.Logger // to log
}

func newQueue(t *testing.T) *queue {
	q := &queue{t: t, timeout: timeout, visibility: eventsource.VisibilityTimeouts * timeout, chance: &seeded{Clock: clock.From(t.Context()), source: rand.NewPCG(1, 2)}, store: memstore.New(), changed: make(chan struct{}, 1), received: map[string][]time.Time{}, handled: map[string]time.Time{}}
	q.messages.MaxReceiveCount = eventsource.MaxReceiveCount
	q.logger = slog.New(slog.NewTextHandler(&q.log, nil))
	return q
}

// seeded is the clock of the test with chance that comes from a seed.
type seeded struct {
	clock.Clock
	mu     sync.Mutex
	source rand.Source
}

func (s *seeded) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source.Uint64()
}

// message returns a message whose lock is name. Its handler does what the
// first word of does says.
func message(id, name, does string) events.SQSMessage {
	return events.SQSMessage{MessageId: id, Body: does + " " + name, EventSourceARN: arn, Attributes: map[string]string{}}
}

func (q *queue) send(m events.SQSMessage) { q.sendAt(m, time.Now()) }

// sendAt sends a message that is delivered from then on.
func (q *queue) sendAt(m events.SQSMessage, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.change()
	if q.messages.FIFO {
		m.Attributes["SequenceNumber"] = fmt.Sprintf("%020d", len(q.received))
	}
	q.received[m.MessageId] = nil
	q.messages.Send(&eventsource.Message[events.SQSMessage]{Value: m, Group: m.Attributes["MessageGroupId"], Visible: at})
}

// process returns a handler as one execution environment has it.
func (q *queue) process(o *redelivery.Options, more ...middleware.Option) *process {
	key := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
		_, name, _ := strings.Cut(m.Body, " ")
		if name == q.malformed {
			return lock.Key{}, middleware.Permanent(errors.New("the body is malformed"))
		}
		k := lock.Key{Name: name}
		if !q.nameless {
			k.Event = m.MessageId
		}
		if q.ordered {
			k.Order = "1"
		}
		return k, nil
	}
	own := redelivery.Options{}
	if o != nil {
		own = *o
	}
	own.Logger = q.logger
	options := append([]middleware.Option{
		middleware.Store(q.store), middleware.Namespace(namespace), middleware.Engine(func(o *lock.Options) { o.Lease = lock.FixedLease(q.timeout) }), middleware.Logger(discard),
		redelivery.SQS(q, &own),
	}, more...)
	return &process{q, middleware.EachSQSMessage(keyfuncs.Func[events.SQSMessage](key), q.handle, options...)}
}

func (q *queue) handle(_ context.Context, m events.SQSMessage) error {
	q.mu.Lock()
	q.runs, q.lastRun = q.runs+1, time.Now()
	if _, begun := q.handled[m.MessageId]; !begun {
		q.handled[m.MessageId] = time.Now()
		q.order = append(q.order, m.MessageId)
	}
	if q.begins != nil {
		q.begins(m.MessageId)
	}
	q.mu.Unlock()
	switch does, _, _ := strings.Cut(m.Body, " "); does {
	case "fails":
		return errors.New("no article 7")
	case "permanent":
		return middleware.Permanent(errors.New("no article 7"))
	default:
		d, err := time.ParseDuration(does)
		time.Sleep(d)
		return err
	}
}

const namespace = "shop"

var discard = slog.New(slog.DiscardHandler)

// warnings returns the lines that were logged, without info.
func (q *queue) warnings() []string {
	return slices.DeleteFunc(strings.Split(q.log.String(), "\n"), func(l string) bool { return !strings.Contains(l, "level=WARN") })
}

// process is an execution environment.
type process struct {
	*queue
	handler func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)
}

// warm lets a process hold a lock for so long, so that it knows how long that
// is.
func (p *process) warm(holds ...time.Duration) {
	for i, d := range holds {
		id := fmt.Sprint("warm ", i, d)
		if r, err := p.handler(p.t.Context(), events.SQSEvent{Records: []events.SQSMessage{message(id, id, d.String())}}); err != nil {
			p.t.Errorf("%v, %v", r, err)
		}
	}
}

// poll delivers the messages of the queue to the processes in turn, until there
// are none.
func (q *queue) poll(batch int, processes ...*process) {
	var invocations sync.WaitGroup
	defer invocations.Wait()
	for i, last := 0, time.Now().Add(24*time.Hour); time.Now().Before(last); {
		taken, wait := q.receive(batch)
		switch {
		case len(taken) > 0:
			p := processes[i%len(processes)]
			i++
			invocations.Go(func() { p.invoke(taken) })
		case wait == 0:
			return
		default:
			select {
			case <-time.After(wait):
			case <-q.changed:
			}
			time.Sleep(latency)
		}
	}
	q.t.Error("messages are left after a day")
}

type entry = *eventsource.Message[events.SQSMessage]

// receive returns messages, or how long to wait if none is visible; zero: the
// queue is empty.
func (q *queue) receive(most int) (taken []entry, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for _, m := range q.messages.DeadLetters(now) {
		q.dead = append(q.dead, &sqs.SendMessageInput{MessageBody: aws.String(m.Value.Body)})
	}
	for _, group := range q.messages.Visible(now) {
		taken = append(taken, group[:min(len(group), most-len(taken))]...)
	}
	for _, m := range taken {
		q.received[m.Value.MessageId] = append(q.received[m.Value.MessageId], now)
	}
	q.messages.Receive(taken, now.Add(q.visibility))
	if q.messages.Empty() {
		return nil, 0
	}
	next, _ := q.messages.Next(now)
	return taken, max(next.Sub(now), latency)
}

// change tells the poller that a message may be visible, or was deleted.
func (q *queue) change() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// receipt returns the receipt handle of the last receive of a message.
func receipt(m entry) string { return fmt.Sprint(m.Value.MessageId, " ", m.Receives) }

// invoke delivers a batch, and deletes the messages that are not returned.
func (p *process) invoke(batch []entry) {
	var e events.SQSEvent
	p.mu.Lock()
	for _, m := range batch {
		record := m.Value
		record.ReceiptHandle = receipt(m)
		record.Attributes = map[string]string{
			"ApproximateReceiveCount":          fmt.Sprint(m.Receives),
			"ApproximateFirstReceiveTimestamp": fmt.Sprint(p.received[m.Value.MessageId][0].UnixMilli()),
		}
		for name, value := range m.Value.Attributes {
			record.Attributes[name] = value
		}
		e.Records = append(e.Records, record)
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(clock.With(context.Background(), p.chance), p.timeout)
	defer cancel()
	answer, err := p.handler(ctx, e)
	if ctx.Err() != nil {
		p.t.Error("an invocation ran into its deadline")
	}
	if err != nil && len(answer.BatchItemFailures) != len(batch) {
		p.t.Error(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.change()
	p.messages.Delete(slices.DeleteFunc(slices.Clone(batch), func(m entry) bool {
		return slices.Contains(answer.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.Value.MessageId})
	}))
}

// hold acquires the lock of name as another function does, for so long. Zero:
// its process dies. It returns when the lock is free.
func (q *queue) hold(name string, d time.Duration) (free time.Time) {
	if d == 0 { // a lease to the deadline is renewed for as long as this process lives
		return q.holdWith(lock.FixedLease(timeout+lock.DefaultGrace), name, d)
	}
	return q.holdWith(lock.UntilDeadline(), name, d)
}

func (q *queue) holdWith(lease lock.LeaseMode, name string, d time.Duration) (free time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	locker, err := lock.New(q.store, &lock.Options{Namespace: namespace, Lease: lease, Logger: discard})
	if err != nil {
		q.t.Fatal(err)
	}
	l, err := locker.Acquire(ctx, lock.Key{Name: name})
	if err != nil {
		q.t.Fatal(err)
	}
	if d == 0 {
		cancel()
		return l.Lease().Until
	}
	time.AfterFunc(d, func() {
		defer cancel()
		if err := l.Release(); err != nil {
			q.t.Error(err)
		}
	})
	return time.Now().Add(d)
}
