package redelivery_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/middleware"
)

// onceAMinute is a queue of messages of one name in front of a function that
// runs for a name once a minute: its handler takes 100 ms, its timeout is 30 s,
// and the queue is as AWS advises.
type onceAMinute struct {
	messages, batch, processes int
	seed                       uint64
}

// play returns the queue when it is empty, and how long that took.
func (o onceAMinute) play(t *testing.T, more ...middleware.Option) (q *queue, took time.Duration) {
	q = newQueue(t)
	q.timeout, q.visibility = 30*time.Second, 180*time.Second
	q.chance.source = rand.NewPCG(o.seed, 2)
	var all []*process
	for range o.processes {
		all = append(all, q.process(nil, append(more, middleware.HoldAtLeast(time.Minute))...))
	}
	for i := range o.messages {
		q.send(message(fmt.Sprint("m", i), "customer", "100ms"))
	}
	began := time.Now()
	q.poll(o.batch, all...)
	for _, at := range q.handled {
		took = max(took, at.Sub(began))
	}
	return q, took
}

// TestCooldownLosesNoMessage shows that up to 20 messages of a name that may
// run once a minute are all handled, however they come, and that none of them
// uses up its receives.
func TestCooldownLosesNoMessage(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 10} {
		for _, messages := range []int{2, 5, 10, 20} {
			for _, processes := range []int{1, 2, 5, 20} {
				t.Run(fmt.Sprintf("%d messages, batches of %d, %d processes", messages, batch, processes), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						for seed := range uint64(5) {
							q, _ := onceAMinute{messages, batch, processes, seed}.play(t)
							if len(q.dead) > 0 || len(q.handled) != messages {
								t.Errorf("seed %d: %d messages are handled and %d dead letters", seed, len(q.handled), len(q.dead))
							}
						}
					})
				})
			}
		}
	}
}

// TestManyMessagesInACooldown measures what becomes of more messages than that,
// and of as many with Coalesce, which loses none because each is acknowledged
// when it comes.
func TestManyMessagesInACooldown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		messages, batch, processes int
		with                       []middleware.Option
	}{
		{messages: 50, batch: 1, processes: 1},
		{messages: 50, batch: 1, processes: 5},
		{messages: 100, batch: 1, processes: 1},
		{messages: 100, batch: 1, processes: 5},
		{messages: 100, batch: 10, processes: 5},
	} {
		t.Run(fmt.Sprintf("%d messages, batches of %d, %d processes", c.messages, c.batch, c.processes), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				dead, longest := 0, time.Duration(0)
				const seeds = 5
				for seed := range uint64(seeds) {
					q, took := onceAMinute{c.messages, c.batch, c.processes, seed}.play(t, c.with...)
					dead, longest = dead+len(q.dead), max(longest, took)
				}
				t.Logf("%d of %d are dead letters, the last was handled after %v", dead, seeds*c.messages, longest)
				if c.processes == 1 && dead > 0 {
					t.Error("a process does not wait for itself")
				}
			})
		})
	}
}
