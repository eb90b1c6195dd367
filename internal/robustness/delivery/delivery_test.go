package delivery

import (
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/middleware"
)

// histories is the number of simulated histories of each source, unless
// LAMBDALOCK_SEEDS says otherwise; together they have at least least
// deliveries.
const (
	histories = 5
	least     = 100_000
	// Of so many events one may be given up that could be handled, because it
	// failed, crashed or was held at every delivery. One that waits behind a poison
	// message of its group is not counted: each wait is a delivery as well.
	rare = 500
)

type drainer interface{ drain() }

// sources are the event sources. Few events share a name, because the store in
// memory copies all completed events of a name.
var sources = []struct {
	name    string
	managed bool // the function runs on managed instances
	open    opener
	make    func(*world) drainer
}{
	{"SQS", false, inMemory, func(w *world) drainer { return newQueue(w, 2000, messageID) }},
	{"SQSByCustomer", false, inMemory, func(w *world) drainer { return newQueue(w, 2000, perCustomer, waits5s) }},
	{"SQSByBody", false, inMemory, func(w *world) drainer { return newQueue(w, 600, orderID) }},
	{"SQSFIFO", false, inMemory, func(w *world) drainer { return newFIFO(w, 1600, messageID) }},
	{"SQSFIFOByBody", false, inMemory, func(w *world) drainer { return newFIFO(w, 600, orderID, middleware.RememberEvents(100)) }},
	{"S3", false, inMemory, func(w *world) drainer { return newBucket(w, 1000, eachRecord) }},
	{"S3WithLock", false, inMemory, func(w *world) drainer { return newBucket(w, 1000, wholeEvent, waits5s) }},
	{"S3Latest", false, inMemory, func(w *world) drainer { return newBucket(w, 1000, latestOnly) }},
	{"S3WithLocks", false, inMemory, func(w *world) drainer { return newBucket(w, 400, severalLocks, waits5s) }},
	{"S3Nested", false, inMemory, func(w *world) drainer { return newBucket(w, 400, nestedLocks, waits5s) }},
	{"Kinesis", false, inMemory, func(w *world) drainer { return newStream(w, 1000, false) }},
	{"KinesisByName", false, inMemory, func(w *world) drainer { return newStream(w, 1000, true, middleware.OrderPerName(), waits10s) }},

	{"SQSManaged", true, inMemory, func(w *world) drainer { return newQueue(w, 400, perCustomer, waits5s) }},
	{"S3Managed", true, inMemory, func(w *world) drainer { return newBucket(w, 400, wholeEvent, waits5s) }},
	{"S3ManagedNested", true, inMemory, func(w *world) drainer { return newBucket(w, 200, nestedLocks, waits5s) }},
	{"KinesisManaged", true, inMemory, func(w *world) drainer { return newStream(w, 200, false) }},

	{"SQSInDynamoDB", false, inDynamoDB, func(w *world) drainer { return newQueue(w, 200, perCustomer, waits5s) }},
	{"S3InDynamoDB", false, inDynamoDB, func(w *world) drainer { return newBucket(w, 200, severalLocks, waits5s) }},
	{"S3ManagedInDynamoDB", true, inDynamoDB, func(w *world) drainer { return newBucket(w, 200, latestOnly) }},
	{"SQSFIFOInObjects", false, inObjects, func(w *world) drainer { return newFIFO(w, 200, messageID) }},
	{"S3InObjects", false, inObjects, func(w *world) drainer { return newBucket(w, 200, latestOnly) }},
	{"SQSManagedInObjects", true, inObjects, func(w *world) drainer { return newQueue(w, 200, perCustomer, waits5s) }},
}

var (
	waits5s  = middleware.OnHeld(middleware.Wait(5 * time.Second))
	waits10s = middleware.OnHeld(middleware.Wait(10 * time.Second))
)

// TestDelivery lets every source deliver events to a function that fails in
// every way, until all are completed or given up, and lets the oracle judge. A
// failure names the source and the seed, which LAMBDALOCK_SEED plays again;
// LAMBDALOCK_SEEDS sets the number of seeds.
func TestDelivery(t *testing.T) { // F1 to F8, F11, F14 to F16, F18 to F21, F32 to F34, F36, F39, F48
	seeds := seeds(t, histories)
	var mu sync.Mutex
	var all tally
	ran := 0
	t.Run("from", func(t *testing.T) {
		for _, source := range sources {
			t.Run(source.name, func(t *testing.T) {
				t.Parallel()
				var sum tally
				for _, seed := range seeds {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t, source.name, seed, source.open(t))
						w.managed = source.managed
						source.make(w).drain()
						w.under.Wait()
						w.late.Wait()
						sum.add(w.verdict())
					})
					if t.Failed() {
						return
					}
				}
				t.Log(&sum)
				if sum.events >= 10*rare {
					sum.checkLuck(t)
				}
				mu.Lock()
				defer mu.Unlock()
				ran++
				all.add(sum)
			})
		}
	})
	if ran < len(sources) { // one failed, or not all were asked for
		return
	}
	t.Logf("all: %v", &all)
	all.checkLuck(t)
	if len(seeds) >= histories && all.deliveries < least {
		t.Errorf("%d deliveries are fewer than %d", all.deliveries, least)
	}
}

// checkLuck checks that few events were given up that could be handled.
func (t *tally) checkLuck(test *testing.T) {
	test.Helper()
	if unlucky := t.bystanders - t.waited; unlucky*rare > t.events {
		test.Errorf("%d of %d events that could be handled were given up", unlucky, t.events)
	}
}

// seeds returns the seeds to play: those below the number that LAMBDALOCK_SEEDS
// asks for, the one that LAMBDALOCK_SEED names, or otherwise those below usual.
func seeds(t *testing.T, usual uint64) []uint64 {
	t.Helper()
	number := func(variable string, otherwise uint64) uint64 {
		text := os.Getenv(variable)
		if text == "" {
			return otherwise
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if os.Getenv("LAMBDALOCK_SEED") != "" {
		return []uint64{number("LAMBDALOCK_SEED", 0)}
	}
	all := make([]uint64, number("LAMBDALOCK_SEEDS", usual))
	for i := range all {
		all[i] = uint64(i)
	}
	return all
}
