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
	histories = 6
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
	name string
	make func(*world) drainer
}{
	{"SQS", func(w *world) drainer { return newQueue(w, 2000, false) }},
	{"SQSByCustomer", func(w *world) drainer {
		return newQueue(w, 2000, true, middleware.OnHeld(middleware.Wait(5*time.Second)))
	}},
	{"SQSFIFO", func(w *world) drainer { return newFIFO(w, 1600) }},
	{"S3", func(w *world) drainer { return newBucket(w, 1000, eachRecord) }},
	{"S3WithLock", func(w *world) drainer {
		return newBucket(w, 1000, wholeEvent, middleware.OnHeld(middleware.Wait(5*time.Second)))
	}},
	{"S3Latest", func(w *world) drainer { return newBucket(w, 1000, latestOnly) }},
	{"Kinesis", func(w *world) drainer { return newStream(w, 1000, false) }},
	{"KinesisByName", func(w *world) drainer {
		return newStream(w, 1000, true, middleware.OrderByName(), middleware.OnHeld(middleware.Wait(10*time.Second)))
	}},
}

// TestDelivery lets every source deliver events to a function that fails in
// every way, until all are completed or given up, and lets the oracle judge. A
// failure names the source and the seed; LAMBDALOCK_SEEDS sets the number of
// seeds.
func TestDelivery(t *testing.T) { // F1, F5, F7, F8, F16, F18, F19, F36
	seeds := uint64(histories)
	if s := os.Getenv("LAMBDALOCK_SEEDS"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = n
	}
	var mu sync.Mutex
	var all tally
	ran := 0
	t.Run("from", func(t *testing.T) {
		for _, source := range sources {
			t.Run(source.name, func(t *testing.T) {
				t.Parallel()
				var sum tally
				for seed := range seeds {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t, source.name, seed)
						source.make(w).drain()
						sum.add(w.verdict())
					})
					if t.Failed() {
						return
					}
				}
				t.Log(&sum)
				if unlucky := sum.bystanders - sum.waited; unlucky*rare > sum.events {
					t.Errorf("%d events that could be handled were given up", unlucky)
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
	if seeds >= histories && all.deliveries < least {
		t.Errorf("%d deliveries are fewer than %d", all.deliveries, least)
	}
}
