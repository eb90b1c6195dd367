//go:build unix

package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

const (
	batchNames   = 4
	batchWorkers = 4
	batchLease   = 4 * time.Second
	batchTime    = 20 * time.Second // of an invocation
	// leastRemembered is how many events of a name are remembered by default,
	// whatever the row costs.
	leastRemembered = 8
	// batchFaults is how many of a thousand requests meet a fault.
	batchFaults = 333
	latestCopy  = 3 * time.Second
)

// batchLine is a line of a process that handles batches: one of these.
type batchLine struct {
	Begun, Returned, Recorded string // the event
	Name                      string
	At                        time.Time
	Done                      int // the batch; its processes count from 1
	Failed                    []string
}

// handleBatches is the part of a child that handles batches of SQS messages
// until its input ends.
func handleBatches(t task) error {
	store, err := t.open(newWire(0))
	if err != nil {
		return err
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	say := func(l batchLine) {
		mu.Lock()
		defer mu.Unlock()
		l.At = time.Now()
		_ = out.Encode(l) // the parent may have gone
	}
	each := middleware.EachSQSMessage(
		func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
			return lock.Key{Name: m.Body, Event: m.MessageId}, nil
		},
		func(ctx context.Context, m events.SQSMessage) error {
			say(batchLine{Begun: m.MessageId, Name: m.Body})
			err := delayFor(ctx, time.Duration(1+rand.IntN(20))*time.Millisecond)
			if err == nil && rand.IntN(20) == 0 {
				err = errors.New("this run fails")
			}
			if err == nil {
				say(batchLine{Returned: m.MessageId, Name: m.Body})
			}
			return err
		},
		middleware.Store(store), middleware.Heartbeat(batchLease), middleware.Logger(discard),
		middleware.Observe(func(_ context.Context, o lock.Observation) {
			if o.Outcome == lock.OutcomeReleased && o.Completed {
				say(batchLine{Recorded: o.Key.Event, Name: o.Key.Name})
			}
		}),
	)
	var under sync.WaitGroup
	defer under.Wait()
	for in, n := json.NewDecoder(os.Stdin), 1; ; n++ {
		var e events.SQSEvent
		if err := in.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		under.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), batchTime)
			defer cancel()
			done := batchLine{Done: n}
			answer, err := each(ctx, e)
			for _, m := range e.Records {
				if err != nil || slices.ContainsFunc(answer.BatchItemFailures, func(f events.SQSBatchItemFailure) bool { return f.ItemIdentifier == m.MessageId }) {
					done.Failed = append(done.Failed, m.MessageId)
				}
			}
			say(done)
		})
	}
}

// TestKilledBatches lets processes handle batches of SQS messages of few names
// over a proxy with faults, and kills them (F1, F2, F3, F5, F19, F20). No event
// is lost, and after a confirmed completion an event runs again only if its
// name may have completed as many others since as it remembers.
//
// What runs again is judged by what may have happened: another event counts as
// completed in between if its handler returned before the second run began, and
// its completion may have been applied after that of the first.
func TestKilledBatches(t *testing.T) {
	for _, b := range backends {
		kills := b.kills
		if testing.Short() {
			kills = b.killsShort / 2
		}
		if kills == 0 {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel() // most of the time is spent waiting
			seed := testSeed(t)
			for done := 0; done < kills; done += killsPerHistory {
				t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
					newBatches(t, b, seed).run(min(killsPerHistory, kills-done))
				})
				seed++
			}
		})
	}
}

// batches is a standard queue and its consumers.
type batches struct {
	t       *testing.T
	place   place
	late    fault.Copies
	choice  *rand.Rand // of whom to kill; only for the goroutine of the test
	changed chan struct{}

	mu      sync.Mutex
	random  *rand.Rand
	hired   int
	crew    map[*batchWorker]bool
	closing bool
	made    int
	queue   []events.SQSMessage
	lines   []batchLine
	open    map[string]int // deliveries of a message that were not acknowledged
}

type batchWorker struct {
	*child
	in    *json.Encoder
	ended chan struct{}
	sent  int
	under map[int][]events.SQSMessage
}

func newBatches(t *testing.T, b backend, seed uint64) *batches {
	q := &batches{t: t, changed: make(chan struct{}, 1), crew: map[*batchWorker]bool{}, open: map[string]int{}}
	q.choice, q.random = rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	mix := fault.Usual(seed, batchFaults)
	mix.Delay, mix.Late = 500*time.Millisecond, latestCopy
	q.place = b.start(t).behindProxy(t, mix.Client(0), &q.late)
	return q
}

func (q *batches) run(kills int) {
	for range batchWorkers {
		q.hire()
	}
	for range kills {
		q.await(time.Duration(200+q.choice.IntN(1500)) * time.Millisecond)
		q.kill()
	}
	q.mu.Lock()
	q.closing = true
	q.mu.Unlock()
	limit := time.Now().Add(20 * time.Minute) // a machine may be busy
	for q.left() > 0 {
		if time.Now().After(limit) {
			q.t.Fatalf("%d deliveries of %d messages are not acknowledged", q.left(), q.made)
		}
		q.await(100 * time.Millisecond)
	}
	for w := range q.crew {
		_ = w.stdin.Close()
		<-w.ended
		if err := w.cmd.Wait(); err != nil {
			q.t.Errorf("%s: %v", w.who, err)
		}
	}
	q.late.Wait()
	q.check()
}

// await waits until something has happened, but for no longer than that.
func (q *batches) await(atMost time.Duration) {
	select {
	case <-q.changed:
	case <-time.After(atMost):
	}
}

func (q *batches) left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.open)
}

func (q *batches) hire() {
	q.hired++
	w := &batchWorker{
		child: startChild(q.t, "batches", task{Place: q.place, Who: fmt.Sprint("worker ", q.hired)}),
		ended: make(chan struct{}), under: map[int][]events.SQSMessage{},
	}
	w.in = json.NewEncoder(w.stdin)
	q.mu.Lock()
	q.crew[w] = true
	q.feed()
	q.mu.Unlock()
	go func() {
		defer close(w.ended)
		for {
			var l batchLine
			if w.child.lines.Decode(&l) != nil {
				return // it was killed, perhaps in the middle of a line, or has ended
			}
			q.hear(w, l)
		}
	}()
}

func (q *batches) hear(w *batchWorker, l batchLine) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.Done == 0 {
		q.lines = append(q.lines, l)
		return
	}
	for _, m := range w.under[l.Done] {
		again := slices.Contains(l.Failed, m.MessageId)
		if !again {
			if q.open[m.MessageId]--; q.open[m.MessageId] == 0 {
				delete(q.open, m.MessageId)
			}
		}
		if again || !q.closing && q.random.IntN(8) == 0 { // a late duplicate
			if !again {
				q.open[m.MessageId]++
			}
			q.queue = append(q.queue, m)
		}
	}
	delete(w.under, l.Done)
	q.feed()
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// feed gives two batches to each process.
func (q *batches) feed() {
	for w := range q.crew {
		for len(w.under) < 2 {
			var e events.SQSEvent
			for len(e.Records) < 10 && (len(q.queue) > 0 || !q.closing) {
				e.Records = append(e.Records, q.next())
			}
			if len(e.Records) == 0 {
				return
			}
			w.sent++
			w.under[w.sent] = e.Records
			_ = w.in.Encode(e) // it may have ended: then it is killed soon
		}
	}
}

// next returns a message that comes again or, if there are none or by chance, a
// new one.
func (q *batches) next() events.SQSMessage {
	if len(q.queue) > 0 && (q.closing || len(q.queue) > 40 || q.random.IntN(3) > 0) {
		i := q.random.IntN(len(q.queue))
		m := q.queue[i]
		q.queue = slices.Delete(q.queue, i, i+1)
		return m
	}
	q.made++
	m := events.SQSMessage{
		MessageId: fmt.Sprintf("%090d", q.made), // so long that a row has room for few
		Body:      fmt.Sprint("batches/", q.random.IntN(batchNames)),
	}
	q.open[m.MessageId]++
	return m
}

// kill kills a process and starts another. Its messages come again.
func (q *batches) kill() {
	all := slices.SortedFunc(maps.Keys(q.crew), func(a, b *batchWorker) int { return a.cmd.Process.Pid - b.cmd.Process.Pid })
	w := all[q.choice.IntN(len(all))]
	if err := w.cmd.Process.Kill(); err != nil {
		q.t.Fatal(err)
	}
	<-w.ended
	_ = w.cmd.Wait() // it was killed
	q.mu.Lock()
	delete(q.crew, w)
	for _, n := range slices.Sorted(maps.Keys(w.under)) {
		q.queue = append(q.queue, w.under[n]...)
	}
	q.mu.Unlock()
	q.hire()
}

// check judges every run that began after its event was recorded.
func (q *batches) check() {
	begun, again, fewest := 0, 0, len(q.lines)
	returned, recorded := map[string][]time.Time{}, map[string][]time.Time{}
	for _, l := range q.lines {
		returned[l.Returned] = append(returned[l.Returned], l.At)
		recorded[l.Recorded] = append(recorded[l.Recorded], l.At)
	}
	for _, l := range q.lines {
		if l.Begun == "" {
			continue
		}
		begun++
		confirmed := latest(recorded[l.Begun], l.At)
		if confirmed.IsZero() {
			continue
		}
		again++
		completed := latest(returned[l.Begun], confirmed) // or later: its answer may have been lost at first
		between := map[string]bool{}
		for _, o := range q.lines {
			if o.Returned == "" || o.Name != l.Name || o.Returned == l.Begun || o.At.After(l.At) {
				continue
			}
			// Without a confirmation, its completion was applied until then, or never: it
			// is tried until the deadline, under a lease that is renewed.
			at := o.At.Add(batchTime + latestCopy)
			for _, confirmed := range recorded[o.Returned] {
				if confirmed.After(o.At) && confirmed.Before(at) {
					at = confirmed
				}
			}
			if !at.Before(completed) {
				between[o.Returned] = true
			}
		}
		fewest = min(fewest, len(between))
		if len(between) < leastRemembered {
			q.t.Errorf("%s of %s ran again %v after its completion was confirmed, and at most %d others were completed since", l.Begun, l.Name, l.At.Sub(confirmed), len(between))
		}
	}
	q.t.Logf("%d events, %d runs, %d after a confirmed completion; at least %d others may have been completed since", q.made, begun, again, fewest)
	if len(recorded) < q.made*9/10 {
		q.t.Errorf("only %d of %d completions were confirmed", len(recorded), q.made)
	}
}

// latest returns the last of the times that is not after limit, or zero.
func latest(times []time.Time, limit time.Time) (last time.Time) {
	for _, t := range times {
		if !t.After(limit) && t.After(last) {
			last = t
		}
	}
	return last
}
