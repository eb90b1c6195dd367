package integration_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

const (
	batchDelay   = 5 * time.Millisecond // per request to the store
	batchHandler = time.Millisecond
)

// BenchmarkBatch compares a batch of SQS messages, each under its own lock,
// with the SDK alone, in a loop and with the same parallelism.
func BenchmarkBatch(b *testing.B) {
	s := servers.Dynoxide(b)
	newTable(b, s)
	for _, size := range []int{10, 100, 1000, 10_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			if testing.Short() && size > 100 {
				b.Skip("minutes: left out in the short form")
			}
			benchmarkBatch(b, s, size)
		})
	}
}

func benchmarkBatch(b *testing.B, s servers.Server, size int) {
	ctx, cancel := context.WithTimeout(b.Context(), invocationTime)
	defer cancel()
	rounds := max(2, min(5000/size, 20))
	if testing.Short() {
		rounds = 2
	}
	loop := batchContestant(b, s, "raw SDK, loop", func(c *dynamodb.Client) func(events.SQSEvent) error { return rawBatch(ctx, c, 1) })
	var all []*contestant
	for _, n := range []int{middleware.DefaultConcurrency, 64} {
		all = append(all, batchContestant(b, s, fmt.Sprintf("raw SDK, %d at a time", n), func(c *dynamodb.Client) func(events.SQSEvent) error {
			return rawBatch(ctx, c, n)
		}), batchContestant(b, s, fmt.Sprintf("raw SDK, our requests, %d at a time", n), func(c *dynamodb.Client) func(events.SQSEvent) error {
			r := newReplay(ctx, b, c, "event-1")
			return inWorkers(n, func(id string) error { return r.cycle(ctx, id, batchWork) })
		}), batchContestant(b, s, fmt.Sprintf("EachSQSMessage, %d at a time", n), func(c *dynamodb.Client) func(events.SQSEvent) error {
			h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { batchWork(); return nil },
				middleware.Store(dynamostore.New(c, table)), middleware.Logger(discard), middleware.Concurrency(n))
			return func(e events.SQSEvent) error {
				r, err := h(ctx, e)
				if err == nil && len(r.BatchItemFailures) > 0 {
					err = fmt.Errorf("%d of %d messages failed", len(r.BatchItemFailures), len(e.Records))
				}
				return err
			}
		}))
	}
	for _, c := range all { // opens the connections
		if err := c.run(min(size, 100)); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		loop.batchRound(b, size)
		for r := range rounds {
			for i := range all {
				all[(i+r)%len(all)].batchRound(b, size)
			}
		}
	}
	f := newFigures(fmt.Sprintf("Batch of %d messages, handler %v, %v per request (%s)", size, batchHandler, batchDelay, s.Name),
		"", "ms", "CPU ms", "requests", "ms/raw", "CPU/raw")
	f.add(loop.name, ms(loop.quantile(0.5)), ms(time.Duration(loop.middle(blockCPU))), whole(loop.middle(blockRequests)))
	for i, c := range all {
		raw := all[i/3*3]
		f.add(c.name, ms(c.quantile(0.5)), ms(time.Duration(c.middle(blockCPU))), whole(c.middle(blockRequests)), times(c.ratio(raw, blockMean)), times(c.ratio(raw, blockCPU)))
	}
	b.ReportMetric(all[2].ratio(all[0], blockMean), "ms/raw")
}

// batchContestant runs batches of a given size, of new messages each time.
func batchContestant(b *testing.B, s servers.Server, name string, make func(*dynamodb.Client) func(events.SQSEvent) error) *contestant {
	w := newWire(batchDelay)
	b.Cleanup(w.next.CloseIdleConnections)
	run := make(newClient(s.Endpoint, w))
	return &contestant{name: name, wire: w, run: func(size int) error {
		prefix := rand.Text()
		var e events.SQSEvent
		for i := range size {
			e.Records = append(e.Records, events.SQSMessage{MessageId: fmt.Sprint(prefix, "-", i)})
		}
		return run(e)
	}}
}

// batchRound runs one batch: block gives run the number of the run, which here
// is the size of the batch.
func (c *contestant) batchRound(b *testing.B, size int) { c.block(b, size, 1) }

func batchWork() { time.Sleep(batchHandler) }

// rawBatch is what one would write by hand: n workers, each with a lock around
// its work.
func rawBatch(ctx context.Context, client *dynamodb.Client, n int) func(events.SQSEvent) error {
	raw := rawLock{client}
	return inWorkers(n, func(id string) error {
		nonce := rand.Text()
		if err := raw.acquire(ctx, id, nonce, time.Minute); err != nil {
			return err
		}
		batchWork()
		return raw.release(ctx, id, nonce)
	})
}

func inWorkers(n int, handle func(id string) error) func(events.SQSEvent) error {
	return func(e events.SQSEvent) error {
		ids := make(chan string, len(e.Records))
		for _, m := range e.Records {
			ids <- "sqs/" + m.MessageId
		}
		close(ids)
		var workers sync.WaitGroup
		errs := make(chan error, n)
		for range n {
			workers.Go(func() {
				for id := range ids {
					if err := handle(id); err != nil {
						errs <- err
						return
					}
				}
			})
		}
		workers.Wait()
		close(errs)
		return <-errs
	}
}
