package integration_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/alicebob/miniredis/v2"
	"github.com/anishathalye/porcupine"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fakeblob"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/azblobstore"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/memstore"
	"github.com/lambdalock/lambdalock/stores/redisstore"
	"github.com/lambdalock/lambdalock/stores/s3store"
)

// TestSimulation plays whole invocations in fake time, on servers in this
// process, and compares every history of requests with the model (P1).
func TestSimulation(t *testing.T) { // F1 to F6, F14, F18 to F21, F44
	for name, s := range map[string]struct {
		open   func(*testing.T, *simulation.History) func(client uint64) driver.Store
		clock  *serverClock
		config simulation.Config
	}{
		"memory":   {open: simulatedMemory, config: simulation.Config{Histories: 40}},
		"DynamoDB": {open: simulatedTable, config: simulation.Config{Histories: 10, Share: 10}},
		"Redis":    {open: simulatedRedis, clock: &serverClock{}, config: simulation.Config{Histories: 10, Share: 20, ServerClock: true}},
		"S3":       {open: simulatedBucket, clock: &serverClock{late: coarseLease}, config: simulation.Config{Histories: 10, Share: 20, ServerClock: true}},
		"Azure":    {open: simulatedContainer, clock: &serverClock{late: coarseLease}, config: simulation.Config{Histories: 10, Share: 20, ServerClock: true}},
	} {
		t.Run(name, func(t *testing.T) {
			// Checked outside of the bubble, in whose time no check would take too long.
			played, operations := make(chan *simulated), 0
			var checks sync.WaitGroup
			checks.Go(func() {
				for history := range played {
					operations += history.check(t, s.clock)
				}
			})
			defer func() {
				close(played)
				checks.Wait()
				t.Logf("%d operations in histories that are linearizable", operations)
			}()
			s.config.NoCooldown = true
			simulation.Faults(t, func(t *testing.T, h *simulation.History) func(uint64) driver.Store {
				open, history := s.open(t, h), &simulated{seed: h.Seed}
				t.Cleanup(func() { played <- history })
				return func(client uint64) driver.Store {
					if client == simulation.Watcher { // it reads, and acquires when the others have ended
						return open(client)
					}
					w := newWitness(open(client), history.add)
					w.now = history.now
					return w
				}
			}, s.config)
		})
	}
}

// simulatedMemory makes a store in memory, below the faults.
func simulatedMemory(_ *testing.T, h *simulation.History) func(uint64) driver.Store {
	rows := memstore.New()
	return func(client uint64) driver.Store {
		if client == simulation.Watcher {
			return rows
		}
		return fault.NewStore(fault.Hooks{Store: rows, Each: arrive}, h.Plan(client), h.Late)
	}
}

// arrive reports a request that arrives at a store in this process.
func arrive(ctx context.Context, r fault.Request) (driver.Row, bool, error) {
	arrived, err := beginPassage(ctx)
	if err != nil {
		return driver.Row{}, false, err
	}
	defer arrived(nil)
	return r.Send(ctx)
}

// simulatedTable makes a table of the embedded endpoint.
func simulatedTable(t *testing.T, h *simulation.History) func(uint64) driver.Store {
	server := fakedynamo.New()
	client := func(id uint64) *dynamodb.Client {
		return newClient("http://dynamodb", inProcess(server, fault.DynamoDB, h, id))
	}
	expect.Must(t, dynamostore.EnsureTable(context.Background(), client(simulation.Watcher), table))
	return func(id uint64) driver.Store { return dynamostore.New(client(id), table) }
}

// simulatedRedis makes a server of miniredis.
func simulatedRedis(t *testing.T, h *simulation.History) func(uint64) driver.Store {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	t.Cleanup(server.Close)
	return func(id uint64) driver.Store {
		client := redis.NewClient(&redis.Options{
			Dialer:                func(context.Context, string, string) (net.Conn, error) { return server.Dial() },
			ContextTimeoutEnabled: true, MaxRetries: -1,
		})
		t.Cleanup(func() { _ = client.Close() })
		client.AddHook(hook{&wire{plan: h.Plan(id), late: h.Late}})
		store := expect.Value(redisstore.New(client))(t)
		return store
	}
}

// simulatedBucket makes a bucket of gofakes3.
func simulatedBucket(t *testing.T, h *simulation.History) func(uint64) driver.Store {
	backend := s3mem.New()
	expect.Must(t, backend.CreateBucket(bucket))
	server := gofakes3.New(backend, gofakes3.WithTimeSkewLimit(0)).Server()
	return func(id uint64) driver.Store {
		return s3store.New(newS3("http://s3", inProcess(server, fault.S3, h, id)), bucket, "locks/")
	}
}

// simulatedContainer makes a container of a fake of Azure.
func simulatedContainer(t *testing.T, h *simulation.History) func(uint64) driver.Store {
	server := fakeblob.New()
	client := func(id uint64) *container.Client {
		c := expect.Value(newContainer("http://azure", inProcess(server, fault.Azure, h, id)))(t)
		return c
	}
	if _, err := client(simulation.Watcher).Create(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	return func(id uint64) driver.Store { return azblobstore.New(client(id), "locks/") }
}

// inProcess is the way of one client of a history to a server in this process.
func inProcess(server http.Handler, d fault.Dialect, h *simulation.History, client uint64) http.RoundTripper {
	return &fault.Transport{Next: reported{fault.InProcess{Handler: server}}, Dialect: d, Plan: h.Plan(client), Late: h.Late}
}

// simulated collects the operations of one history.
type simulated struct {
	seed uint64

	mu   sync.Mutex
	told []operation
	last int64
}

// now returns the time, later than any before. In fake time, requests that
// follow each other may take none at all: then the check would have to try all
// their orders.
func (s *simulated) now() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(time.Now().UnixNano(), s.last+1)
	return s.last
}

func (s *simulated) add(l line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.Op != nil {
		s.told = append(s.told, *l.Op)
	}
}

// check compares the history with the model, and returns its length if it is
// linearizable.
func (s *simulated) check(t *testing.T, clock *serverClock) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	history := make([]porcupine.Operation, len(s.told))
	for i, o := range s.told {
		history[i] = o.toModel(clock)
	}
	if result := check(history); result != porcupine.Ok {
		t.Errorf("seed %d: the history is %s:\n%s", s.seed, result, dispute(history))
		return 0
	}
	return len(history)
}
