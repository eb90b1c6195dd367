package integration_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// BenchmarkCompany reports what a batch of messages takes with a store that
// sends the requests of a batch together, beside one that does not: requests,
// time, and this process's CPU, with that of the server, which is embedded:
// dynoxide does not take all of the texts, and DynamoDB Local is too slow for
// 200 at a time.
func BenchmarkCompany(b *testing.B) {
	s := embedded(b)
	newTable(b, s)
	for _, records := range []int{1, 10, 100, 1000, 10_000} {
		for _, workers := range []int{16, 200} {
			b.Run(fmt.Sprintf("%d records, %d at a time", records, workers), func(b *testing.B) {
				if testing.Short() && records > 100 {
					b.Skip("minutes: left out in the short form")
				}
				benchmarkCompany(b, s, records, workers)
			})
		}
	}
}

func benchmarkCompany(b *testing.B, s servers.Server, records, workers int) {
	w := newWire(batchDelay)
	b.Cleanup(w.next.CloseIdleConnections)
	single := dynamostore.New(newClient(s.Endpoint, w), table)
	round := 0
	// deliver handles a batch of new events, of names of that round.
	deliver := func(b *testing.B, store *dynamostore.Store, names int) {
		b.Helper()
		round++
		key := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
			return lock.Key{Name: fmt.Sprint("company/", records, "/", workers, "/", names, "/", m.Body), Event: fmt.Sprint(round)}, nil
		}
		h := middleware.EachSQSMessage(key, func(context.Context, events.SQSMessage) error { batchWork(); return nil },
			middleware.Store(store), middleware.Logger(discard), middleware.Concurrency(workers))
		e := events.SQSEvent{Records: make([]events.SQSMessage, records)}
		for i := range e.Records {
			e.Records[i] = events.SQSMessage{MessageId: fmt.Sprint(i), Body: fmt.Sprint(i)}
		}
		if r, err := h(b.Context(), e); err != nil || len(r.BatchItemFailures) > 0 {
			b.Fatalf("%d messages failed: %v", len(r.BatchItemFailures), err)
		}
	}
	for _, c := range []struct {
		name string
		run  func(*testing.B, func(*dynamostore.Store, int))
	}{
		{"single", func(_ *testing.B, measured func(*dynamostore.Store, int)) { measured(single, round) }},
		{"new", func(_ *testing.B, measured func(*dynamostore.Store, int)) { measured(single.InBatches(), round) }},
		{"existing", func(b *testing.B, measured func(*dynamostore.Store, int)) {
			deliver(b, single.InBatches(), 0)
			measured(single.InBatches(), 0)
		}},
		{"known", func(b *testing.B, measured func(*dynamostore.Store, int)) {
			store := single.InBatches()
			deliver(b, store, 0)
			measured(store, 0)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var requests int64
			var wall, cpu time.Duration
			for b.Loop() {
				c.run(b, func(store *dynamostore.Store, names int) {
					w.take()
					began, before := time.Now(), cpuTime()
					deliver(b, store, names)
					requests, wall, cpu = requests+w.take(), wall+time.Since(began), cpu+cpuTime()-before
				})
			}
			b.ReportMetric(float64(requests)/float64(b.N), "requests/op")
			b.ReportMetric(float64(wall.Milliseconds())/float64(b.N), "wall-ms/op")
			b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}
