package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// tableRate is how many writes per second the overloaded table takes, with a
// burst of one second.
const tableRate = 400

// BenchmarkOverload sends a table more requests than it takes, or fewer while
// it has an outage. Each event has its own function (a handler of 50 ms, a
// deadline in 30 s) and needs two writes.
func BenchmarkOverload(b *testing.B) {
	seconds := 10
	if testing.Short() {
		seconds = 1
	}
	f := newFigures(fmt.Sprintf("Overload: %d writes/s and a burst of one second, %d s of events, handler 50 ms, deadline 30 s", tableRate, seconds),
		"", "events", "ran", "not completed", "refused", "requests an event", "of the capacity used well")
	for b.Loop() {
		for _, times := range []float64{0.9, 1.1, 1.5, 2, 4} {
			f.add(overload(b, fmt.Sprintf("%v times its capacity", times), times, seconds, nil)...)
		}
		for _, p := range []struct {
			name  string
			fault func() fakedynamo.Fault
		}{
			{"0.9 times, an outage of 3 s", func() fakedynamo.Fault { return fakedynamo.DropBefore }},
			{"0.9 times, 3 s of answers after 1.5 s", func() fakedynamo.Fault { time.Sleep(1500 * time.Millisecond); return fakedynamo.None }},
			{"0.9 times, 3 s in which half of the requests fail", func() fakedynamo.Fault {
				if rand.N(2) == 0 {
					return fakedynamo.ApplyThen500
				}
				return fakedynamo.None
			}},
		} {
			f.add(overload(b, p.name, 0.9, seconds, p.fault)...)
		}
	}
}

// overload runs the events of one scenario and returns its line of figures.
func overload(b *testing.B, name string, times float64, seconds int, fault func() fakedynamo.Fault) []string {
	server := fakedynamo.New()
	srv := httptest.NewServer(server)
	defer srv.Close()
	newTable(b, servers.Server{Name: "embedded endpoint", Endpoint: srv.URL})
	rt := newTransport()
	defer rt.CloseIdleConnections()
	store := dynamostore.New(newClient(srv.URL, rt), table)
	began := time.Now()
	t := newThrottle(tableRate)
	server.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
		at := time.Since(began)
		third := time.Duration(seconds) * time.Second * 3 / 10
		if fault != nil && at > third && at < 2*third {
			return fault()
		}
		return t.take()
	})
	before := server.Requests()
	var wg sync.WaitGroup
	var mu sync.Mutex
	events := int(times * tableRate / 2 * float64(seconds))
	ran, uncompleted, refused := 0, 0, 0
	for i := range events {
		wg.Go(func() {
			_ = delayFor(b.Context(), time.Duration(float64(i)/float64(events)*float64(seconds)*float64(time.Second)))
			ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
			defer cancel()
			l := newLocker(b, store, lock.Options{Lease: lock.UntilDeadline()})
			lk, err := l.Acquire(ctx, lock.Key{Name: fmt.Sprint("overload/", i), Event: "e"})
			if err == nil {
				_ = delayFor(b.Context(), 50*time.Millisecond)
				err = lk.Complete()
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case lk == nil:
				refused++
			case err != nil:
				ran, uncompleted = ran+1, uncompleted+1
			default:
				ran++
			}
		})
	}
	wg.Wait()
	possible := min(2*events, tableRate*(seconds+1))
	return []string{
		name, fmt.Sprint(events), fmt.Sprint(ran), fmt.Sprintf("%d (%.1f %%)", uncompleted, 100*float64(uncompleted)/float64(max(ran, 1))), fmt.Sprint(refused),
		fmt.Sprintf("%.1f", float64(server.Requests()-before)/float64(events)), fmt.Sprintf("%.0f %%", 100*min(1, float64(2*(ran-uncompleted))/float64(possible))),
	}
}

// BenchmarkThrottledBatch gives a function one batch of messages, each of which
// needs two writes, and a minute (a handler of 1 ms).
func BenchmarkThrottledBatch(b *testing.B) {
	const rate = 100 // writes per second of the table
	messages := 1000
	if testing.Short() {
		messages = 100
	}
	f := newFigures(fmt.Sprintf("A throttled batch: %d writes/s and a burst of one second, handler %v, %v per request, deadline 1m", rate, batchHandler, batchDelay),
		"messages", "untried", "returned", "requests a message", "of the capacity used", "s")
	for b.Loop() {
		f.add(throttledBatch(b, messages, rate)...)
	}
}

// throttledBatch runs one batch and returns its line of figures.
func throttledBatch(b *testing.B, messages int, rate float64) []string {
	server := fakedynamo.New()
	srv := httptest.NewServer(server)
	defer srv.Close()
	newTable(b, servers.Server{Name: "embedded endpoint", Endpoint: srv.URL})
	w := newWire(batchDelay)
	defer w.next.CloseIdleConnections()
	var tried atomic.Int64
	h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { tried.Add(1); batchWork(); return nil },
		middleware.Store(dynamostore.New(newClient(srv.URL, w), table)), middleware.Logger(discard))
	var e events.SQSEvent
	for i := range messages {
		e.Records = append(e.Records, events.SQSMessage{MessageId: fmt.Sprint("m", i)})
	}
	t := newThrottle(rate)
	server.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return t.take() })
	before, began := server.Requests(), time.Now()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	r, err := h(ctx, e)
	if err != nil {
		b.Fatal(err)
	}
	took := time.Since(began).Seconds()
	return []string{
		fmt.Sprint(messages), fmt.Sprint(messages - int(tried.Load())), fmt.Sprint(len(r.BatchItemFailures)),
		fmt.Sprintf("%.1f", float64(server.Requests()-before)/float64(messages)), fmt.Sprintf("%.0f %%", 100*float64(t.taken)/(rate*(took+1))), fmt.Sprintf("%.1f", took),
	}
}

// throttle is a token bucket.
type throttle struct {
	mu     sync.Mutex
	rate   float64 // tokens per second, and the burst
	tokens float64
	last   time.Time
	taken  int
}

func newThrottle(rate float64) *throttle {
	return &throttle{rate: rate, tokens: rate, last: time.Now()}
}

func (t *throttle) take() fakedynamo.Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.tokens = min(t.rate, t.tokens+t.rate*now.Sub(t.last).Seconds())
	t.last = now
	if t.tokens < 1 {
		return fakedynamo.Throttle
	}
	t.tokens--
	t.taken++
	return fakedynamo.None
}
