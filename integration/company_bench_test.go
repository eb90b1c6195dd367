package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/dynamostore/batching"
)

// BenchmarkCompany reports what a batch of messages takes with a store that
// sends the requests of a batch together, beside one that does not, and beside
// the SDK alone with the same statements: requests, time, and this process's
// CPU. The server is the embedded one: dynoxide does not take all of the texts,
// and DynamoDB Local is too slow for 200 at a time.
func BenchmarkCompany(b *testing.B) {
	s := embeddedElsewhere(b)
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
	client := newClient(s.Endpoint, w)
	single := dynamostore.New(client, table)
	together := func(c *dynamodb.Client) *dynamostore.Store { return dynamostore.New(batching.Client(c), table) }
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
		run  func(b *testing.B, measured func(func()))
	}{
		{"single", func(b *testing.B, measured func(func())) { measured(func() { deliver(b, single, round) }) }},
		{"raw", func(b *testing.B, measured func(func())) {
			var r statements
			deliver(b, together(dynamodb.New(client.Options(), r.record)), round)
			r.rename("company/", "raw/")
			measured(func() { r.replay(b, client) })
		}},
		{"new", func(b *testing.B, measured func(func())) {
			measured(func() { deliver(b, together(client), round) })
		}},
		{"existing", func(b *testing.B, measured func(func())) {
			deliver(b, together(client), 0)
			measured(func() { deliver(b, together(client), 0) })
		}},
		{"known", func(b *testing.B, measured func(func())) {
			store := together(client)
			deliver(b, store, 0)
			measured(func() { deliver(b, store, 0) })
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var requests int64
			var wall, cpu time.Duration
			for b.Loop() {
				c.run(b, func(run func()) {
					w.take()
					began, before := time.Now(), cpuTime()
					run()
					requests, wall, cpu = requests+w.take(), wall+time.Since(began), cpu+cpuTime()-before
				})
			}
			b.ReportMetric(float64(requests)/float64(b.N), "requests/op")
			b.ReportMetric(float64(wall.Milliseconds())/float64(b.N), "wall-ms/op")
			b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

// statements are those that a client has sent.
type statements struct {
	mu                  sync.Mutex
	claims, completions []types.BatchStatementRequest
}

// record is an option of the client.
func (r *statements) record(o *dynamodb.Options) {
	o.Interceptors.AddBeforeExecution(r)
}

// BeforeExecution implements an interceptor of the SDK.
func (r *statements) BeforeExecution(_ context.Context, in *smithyhttp.InterceptorContext) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if batch, ok := in.Input.(*dynamodb.BatchExecuteStatementInput); ok {
		for _, s := range batch.Statements {
			if strings.HasPrefix(*s.Statement, "INSERT") {
				r.claims = append(r.claims, s)
			} else {
				r.completions = append(r.completions, s)
			}
		}
	}
	return nil
}

// rename changes the names of all statements, and leaves out the completions
// of claims that travelled alone.
func (r *statements) rename(from, to string) {
	claimed := map[string]bool{} // by token
	for _, s := range slices.Concat(r.claims, r.completions) {
		for i, v := range s.Parameters {
			if text, ok := v.(*types.AttributeValueMemberS); ok {
				s.Parameters[i] = &types.AttributeValueMemberS{Value: strings.Replace(text.Value, from, to, 1)}
				claimed[text.Value] = claimed[text.Value] || strings.HasPrefix(*s.Statement, "INSERT")
			}
		}
	}
	r.completions = slices.DeleteFunc(r.completions, func(s types.BatchStatementRequest) bool {
		token := s.Parameters[len(s.Parameters)-1].(*types.AttributeValueMemberS)
		return !claimed[token.Value]
	})
}

// replay sends the statements with the SDK alone, in as few requests as
// possible, and as many of them at a time as the store does.
func (r *statements) replay(b *testing.B, client *dynamodb.Client) {
	b.Helper()
	for _, all := range [][]types.BatchStatementRequest{r.claims, r.completions} {
		chunks := make(chan []types.BatchStatementRequest)
		var senders sync.WaitGroup
		for range 8 {
			senders.Go(func() {
				for chunk := range chunks {
					out, err := client.BatchExecuteStatement(b.Context(), &dynamodb.BatchExecuteStatementInput{Statements: chunk})
					if err != nil || slices.ContainsFunc(out.Responses, func(a types.BatchStatementResponse) bool { return a.Error != nil }) {
						b.Errorf("the statements: %v", err)
					}
				}
			})
		}
		for chunk := range slices.Chunk(all, 25) {
			chunks <- chunk
		}
		close(chunks)
		senders.Wait()
	}
}
