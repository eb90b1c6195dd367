package redelivery_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// busyName is a queue whose 300 messages have one name, of which each handler
// holds the lock for 20 s.
type busyName struct {
	receives  int     // maxReceiveCount
	load      float64 // the part of the time for which the lock is held
	processes int
	seed      uint64
}

const busyMessages = 300

// deadLetters returns how many messages are dead letters in the end.
func (b busyName) deadLetters(t *testing.T) int {
	const hold = 20 * time.Second
	random := rand.New(rand.NewPCG(b.seed, 3))
	q := newQueue(t)
	q.timeout, q.visibility = 30*time.Second, 180*time.Second
	q.messages.MaxReceiveCount = b.receives
	q.chance.source = rand.NewPCG(b.seed, 2)
	var all []*process
	for range b.processes {
		all = append(all, q.process(nil))
	}
	at := time.Now()
	for i := range busyMessages {
		q.sendAt(message(fmt.Sprint("m", i), "customer", hold.String()), at)
		at = at.Add(time.Duration(random.ExpFloat64() * float64(hold) / b.load))
	}
	q.poll(1, all...)
	return len(q.dead)
}

// TestBusyName measures how many messages of a busy name are dead letters
// although none failed.
func TestBusyName(t *testing.T) {
	t.Parallel()
	const seeds = 3
	for _, b := range []busyName{
		{receives: 5, load: 0.5, processes: 1},
		{receives: 5, load: 0.5, processes: 5},
		{receives: 5, load: 0.7, processes: 1},
		{receives: 5, load: 0.7, processes: 5},
		{receives: 20, load: 0.5, processes: 5},
		{receives: 20, load: 0.7, processes: 5},
	} {
		t.Run(fmt.Sprintf("maxReceiveCount %d, held for %v of the time, %d processes", b.receives, b.load, b.processes), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				dead := 0
				for b.seed = range uint64(seeds) {
					dead += b.deadLetters(t)
				}
				t.Logf("%d of %d are dead letters", dead, seeds*busyMessages)
				if most := 2 * seeds; dead > most && (b.receives == 20 || b.processes == 1) {
					t.Errorf("%d dead letters, want at most %d", dead, most)
				}
			})
		})
	}
}
