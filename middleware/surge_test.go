package middleware_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/local/eventsource"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// What the real one has, in which every surge is a part of some size: all but
// the times and the batches grows with the size.
const (
	eventsPerSecond = 100_000
	namesInAll      = 1_000_000
	partitionRate   = 1000
	// inFlight is how many messages a queue has with its consumers at a time, see
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html.
	inFlight = 120_000
	// An event source mapping begins with 5 invocations at a time and adds 300 per
	// minute, up to 1,250. That is slower than Lambda adds environments: 1,000 in
	// 10 s for each function. See
	// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html and
	// https://docs.aws.amazon.com/lambda/latest/dg/scaling-behavior.html.
	firstInvocations     = 5
	invocationsPerMinute = 300
	mostInvocations      = 1250
)

// surge is a standard queue that gets eventsPerSecond for a time, and a
// function that handles its messages, with their locks in a table that has
// limits.
type surge struct {
	size       float64       // of the real one
	lasts      time.Duration // for which messages are sent
	throughput float64       // of the table at first, in writes per second
	splits     time.Duration // of its partitions
	batch      int
	atATime    int  // invocations at most; zero: mostInvocations
	ready      bool // all pollers are there from the beginning
	timeout    time.Duration
	work       time.Duration
	options    []middleware.Option

	began    time.Time
	table    *fault.Limited
	mu       sync.Mutex
	names    *rand.Rand
	sent     int // messages that were received for the first time
	flying   int
	returned []*parcel // by the time at which they become visible
	running  map[string]bool
	runs     []int // of each message
	figured
}

// parcel is a message that was received.
type parcel struct {
	events.SQSMessage
	index, received int
	visible         time.Time
}

// figured says what became of a surge.
type figured struct {
	completed   []time.Duration // after how long
	dead        int             // moved to the dead-letter queue
	untried     int             // of these
	overlaps    int             // of handlers of one name
	again       int             // receives after the first
	invocations int
	busy        time.Duration // of all environments
}

func (s *surge) part(of float64) int { return max(1, int(of*s.size+0.5)) }

func (s *surge) messages() int { return int(eventsPerSecond * s.size * s.lasts.Seconds()) }

// run delivers the messages until each is completed or a dead letter.
func (s *surge) run(t *testing.T) {
	t.Helper()
	s.began, s.running, s.runs = time.Now(), map[string]bool{}, make([]int, s.messages())
	s.names = rand.New(rand.NewPCG(1, 1))
	partitions := s.part(s.throughput / partitionRate)
	s.table = &fault.Limited{Store: memstore.New(), Wait: 5 * time.Millisecond, Partitions: &fault.Partitions{
		Rate: s.throughput * s.size / float64(partitions), First: partitions, Splits: s.splits,
	}}
	var all sync.WaitGroup
	for i := range s.part(float64(cmp.Or(s.atATime, mostInvocations))) {
		all.Go(func() {
			if added := (float64(i)+0.5)/s.size - firstInvocations; !s.ready { // half of those that it stands for
				time.Sleep(time.Duration(added / invocationsPerMinute * float64(time.Minute)))
			}
			s.poll(t.Context())
		})
	}
	all.Wait()
	if len(s.completed) == 0 {
		t.Fatal("nothing was completed")
	}
}

// poll is one environment with its poller.
func (s *surge) poll(ctx context.Context) {
	key := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
		return lock.Key{Name: m.Body, Event: m.MessageId}, nil
	}
	h := middleware.EachSQSMessage(key, s.handle, append([]middleware.Option{middleware.Store(s.table), noLog}, s.options...)...)
	for !s.over() {
		batch := s.receive()
		if len(batch) == 0 {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		var e events.SQSEvent
		for _, p := range batch {
			e.Records = append(e.Records, p.SQSMessage)
		}
		invocation, cancel := context.WithTimeout(ctx, s.timeout)
		began := time.Now()
		r, err := h(invocation, e)
		s.answer(batch, r, err != nil || invocation.Err() != nil, time.Since(began))
		cancel()
	}
}

func (s *surge) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.completed)+s.dead == len(s.runs)
}

func (s *surge) handle(_ context.Context, m events.SQSMessage) error {
	var index int
	if _, err := fmt.Sscan(m.MessageId, &index); err != nil {
		return err
	}
	s.mu.Lock()
	s.runs[index]++
	if s.running[m.Body] {
		s.overlaps++
	}
	s.running[m.Body] = true
	s.mu.Unlock()
	time.Sleep(s.work)
	s.mu.Lock()
	delete(s.running, m.Body)
	s.mu.Unlock()
	return nil
}

// receive returns what is visible, at most a batch: first what was returned.
func (s *surge) receive() []*parcel {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var batch []*parcel
	for len(batch) < s.batch && len(s.returned) > 0 && !s.returned[0].visible.After(now) {
		p := s.returned[0]
		s.returned = s.returned[1:]
		if p.received == eventsource.MaxReceiveCount {
			s.bury(p)
			continue
		}
		s.again++
		batch = append(batch, p)
	}
	arrived := min(len(s.runs), int(eventsPerSecond*s.size*now.Sub(s.began).Seconds()))
	for len(batch) < s.batch && s.sent < arrived && s.flying < s.part(inFlight) {
		m := message(fmt.Sprint(s.sent), fmt.Sprint("name ", s.names.IntN(s.part(namesInAll))))
		batch = append(batch, &parcel{SQSMessage: m, index: s.sent})
		s.sent++
		s.flying++
	}
	for _, p := range batch {
		p.received++
		p.visible = now.Add(eventsource.VisibilityTimeouts * s.timeout)
	}
	return batch
}

func (s *surge) bury(p *parcel) {
	s.dead++
	s.flying--
	if s.runs[p.index] == 0 {
		s.untried++
	}
}

func (s *surge) answer(batch []*parcel, r events.SQSEventResponse, failed bool, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.invocations++
	s.busy += took
	left := map[string]bool{}
	for _, f := range r.BatchItemFailures {
		left[f.ItemIdentifier] = true
	}
	since := time.Since(s.began)
	for _, p := range batch {
		if failed || left[p.MessageId] {
			at, _ := slices.BinarySearchFunc(s.returned, p, func(a, b *parcel) int { return a.visible.Compare(b.visible) })
			s.returned = slices.Insert(s.returned, at, p)
			continue
		}
		s.completed = append(s.completed, since)
		s.flying--
	}
}

// drained returns after how long 99.9 % of what was completed was.
func (s *surge) drained() time.Duration { return s.completed[len(s.completed)*999/1000] }

// line returns a line of the table in BENCHMARKS.md, with prices of us-east-1:
// of a write to DynamoDB, and of an invocation and a second of a function with
// 128 MB on Arm.
func (s *surge) line(name string) string {
	const write, invocation, second = 0.625e-6, 0.2e-6, 0.0000133334 / 8
	n := float64(s.messages())
	sent, accepted := s.table.Requests()
	inTime, _ := slices.BinarySearch(s.completed, s.lasts)
	function := float64(s.invocations)*invocation + s.busy.Seconds()*second
	return fmt.Sprintf("| %s | %.1f %% | %v | %.2f | %.2f | %.2f %% | %.2f %% | $%.2f + $%.2f |", name, 100*float64(inTime)/n, s.drained().Round(time.Second),
		float64(sent-accepted)/n, float64(sent)/n, 100*float64(s.again)/n, 100*float64(s.dead)/n, 1e6/n*float64(accepted)*write, 1e6/n*function)
}
