package delivery_test

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/simulation"
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

// atLength returns how many of n histories are played: in the short form a
// tenth, as of the other simulations.
func atLength(n uint64) uint64 {
	if testing.Short() {
		return max(n/10, 1)
	}
	return n
}

type drainer interface{ drain() }

// source is an event source.
type source struct {
	name    string
	managed bool // the function runs on managed instances
	open    opener
	make    func(*world) drainer
}

// play plays one history, and tells note what happens unless it is nil.
func (s *source) play(t *testing.T, seed uint64, note func(string)) tally {
	w := newWorld(t, s.name, seed, s.open(t), note)
	defer w.turns.Stop()
	w.managed = s.managed
	s.make(w).drain()
	w.under.Wait()
	w.late.Wait()
	return w.verdict()
}

// sources are the event sources. Few events share a name, because the store in
// memory copies all completed events of a name.
var sources = slices.Concat(long, short)

var long = []source{
	{"SQS", false, inMemory, func(w *world) drainer { return newQueue(w, 2000, messageID) }},
	{"SQSByCustomer", false, inMemory, func(w *world) drainer { return newQueue(w, 2000, perCustomer, waits5s) }},
	{"SQSByBody", false, inMemory, func(w *world) drainer { return newQueue(w, 600, orderID) }},
	{"SQSFIFO", false, inMemory, func(w *world) drainer { return newFIFO(w, 1600, messageID) }},
	{"SQSFIFOByBody", false, inMemory, func(w *world) drainer { return newFIFO(w, 600, orderID, rememberEvents(100)) }},
	{"S3", false, inMemory, func(w *world) drainer { return newBucket(w, 1000, eachRecord) }},
	{"S3WithLock", false, inMemory, func(w *world) drainer { return newBucket(w, 1000, wholeEvent, waits5s) }},
	{"S3Latest", false, inMemory, func(w *world) drainer { return newBucket(w, 1000, latestOnly) }},
	{"S3WithLocks", false, inMemory, func(w *world) drainer { return newBucket(w, 400, severalLocks, waits5s) }},
	{"S3Nested", false, inMemory, func(w *world) drainer { return newBucket(w, 400, nestedLocks, waits5s) }},
	{"Kinesis", false, inMemory, func(w *world) drainer { return newStream(w, 1000, false) }},
	{"KinesisByName", false, inMemory, func(w *world) drainer { return newStream(w, 1000, true, middleware.OrderPerName(), waits10s) }},
	{"Kafka", false, inMemory, func(w *world) drainer { return newTopic(w, 1000, false) }},
	{"KafkaByName", false, inMemory, func(w *world) drainer { return newTopic(w, 600, true, middleware.OrderPerName(), rememberEvents(100)) }},
	{"CustomBus", false, inMemory, func(w *world) drainer { return newBus(w, 1000, false) }},
	{"CustomBusFIFO", false, inMemory, func(w *world) drainer { return newBus(w, 1000, true, rememberEvents(100)) }},
}

// short are the sources whose histories are short.
var short = []source{
	{"SQSManaged", true, inMemory, func(w *world) drainer { return newQueue(w, 400, perCustomer, waits5s) }},
	{"S3Managed", true, inMemory, func(w *world) drainer { return newBucket(w, 400, wholeEvent, waits5s) }},
	{"S3ManagedNested", true, inMemory, func(w *world) drainer { return newBucket(w, 200, nestedLocks, waits5s) }},
	{"KinesisManaged", true, inMemory, func(w *world) drainer { return newStream(w, 200, false) }},

	{"KafkaManaged", true, inMemory, func(w *world) drainer { return newTopic(w, 200, false) }},
	{"CustomBusManaged", true, inMemory, func(w *world) drainer { return newBus(w, 200, true, rememberEvents(100)) }},

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
// every way, until all are completed or given up, and lets the oracle judge.
func TestDelivery(t *testing.T) { // F1 to F8, F11, F14 to F16, F18 to F21, F32 to F34, F36, F39, F48
	var mu sync.Mutex
	var all tally
	ran, played := 0, 0
	t.Run("from", func(t *testing.T) {
		for _, source := range sources {
			t.Run(source.name, func(t *testing.T) {
				t.Parallel()
				var sum tally
				n := 0
				simulation.Play(t, simulation.Config{Histories: atLength(histories)}, func(t *testing.T, seed uint64, note func(string)) {
					sum.add(source.play(t, seed, note))
					n++
				})
				t.Log(&sum)
				if sum.events >= 10*rare {
					sum.checkLuck(t)
				}
				mu.Lock()
				defer mu.Unlock()
				ran++
				played += n
				all.add(sum)
			})
		}
	})
	if ran < len(sources) { // one failed, or not all were asked for
		return
	}
	t.Logf("all: %v", &all)
	all.checkLuck(t)
	if played < histories*len(sources) {
		return
	}
	if all.deliveries < least {
		t.Errorf("%d deliveries are fewer than %d", all.deliveries, least)
	}
	for _, metric := range append(slices.Sorted(maps.Values(metricOf)), "Completed", "Released", "InProgress", "Contended") {
		if all.counted[metric] == 0 && metric != "Mismatched" && metric != "Unlocked" {
			t.Errorf("no history counted %s", metric)
		}
	}
}

// checkLuck checks that few events were given up that could be handled.
func (t *tally) checkLuck(test *testing.T) {
	test.Helper()
	if unlucky := t.bystanders - t.waited; unlucky*rare > t.events {
		test.Errorf("%d of %d events that could be handled were given up", unlucky, t.events)
	}
}

// TestDeliveryIsItsSeed shows that a seed brings the same history back.
func TestDeliveryIsItsSeed(t *testing.T) {
	t.Parallel()
	for _, source := range short {
		t.Run(source.name, func(t *testing.T) {
			t.Parallel()
			simulation.CheckReplay(t, simulation.Config{Histories: 1, Share: 100}, func(t *testing.T, seed uint64, note func(string)) {
				source.play(t, seed, note)
			})
		})
	}
}
