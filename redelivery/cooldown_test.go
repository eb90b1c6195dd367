package redelivery_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/eventsource"
	"github.com/lambdalock/lambdalock/middleware"
)

// onceAMinute is a queue of messages of one name in front of a function that
// runs for a name once a minute: its handler takes 100 ms, its timeout is 30 s,
// and the queue is as AWS advises.
type onceAMinute struct {
	messages, batch, processes int
	seed                       uint64
	every                      time.Duration // a message is sent; zero: all at once
	receives                   int           // maxReceiveCount; zero: 5
}

// play returns the queue when it is empty, and how long that took.
func (o onceAMinute) play(t *testing.T, more ...middleware.Option) (q *queue, took time.Duration) {
	q = newQueue(t)
	q.timeout, q.visibility = 30*time.Second, 180*time.Second
	q.messages.MaxReceiveCount = cmp.Or(o.receives, eventsource.MaxReceiveCount)
	q.chance.source = rand.NewPCG(o.seed, 2)
	var all []*process
	for range o.processes {
		all = append(all, q.process(nil, append(more, middleware.HoldAtLeast(time.Minute))...))
	}
	began := time.Now()
	for i := range o.messages {
		q.sendAt(message(fmt.Sprint("m", i), "customer", "100ms"), began.Add(time.Duration(i)*o.every))
	}
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
							q, _ := onceAMinute{messages: messages, batch: batch, processes: processes, seed: seed}.play(t)
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

// TestDebounce shows that HoldAtLeast beside OnlyLatest loses no message of a
// name that comes more often, runs a few times a minute however many there are,
// and for the last one within five: what finds the name in its cooldown comes
// back together, because one run is for all of it.
func TestDebounce(t *testing.T) {
	t.Parallel()
	for _, c := range []onceAMinute{
		{messages: 100, batch: 1, processes: 1, every: 6 * time.Second},
		{messages: 100, batch: 1, processes: 5, every: 6 * time.Second},
		{messages: 100, batch: 10, processes: 5, every: 6 * time.Second},
		{messages: 1000, batch: 10, processes: 5, every: 600 * time.Millisecond, receives: 20},
		{messages: 1000, batch: 1000, processes: 1},
	} {
		t.Run(fmt.Sprintf("%d messages every %v, batches of %d, %d processes", c.messages, c.every, c.batch, c.processes), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sent := time.Duration(c.messages-1) * c.every
				began := time.Now()
				q, _ := c.play(t, middleware.OnlyLatest())
				late := q.lastRun.Sub(began) - sent
				t.Logf("%d runs, the last %v after the last message", q.runs, late)
				if most := 10 * int(sent.Minutes()+1); len(q.dead) > 0 || q.runs > most || late < 0 || late > 5*time.Minute {
					t.Errorf("%d dead letters, %d runs, want at most %d", len(q.dead), q.runs, most)
				}
			})
		})
	}
}

// TestManyMessagesInACooldown measures what becomes of more messages than that.
func TestManyMessagesInACooldown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		messages, batch, processes int
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
					q, took := onceAMinute{messages: c.messages, batch: c.batch, processes: c.processes, seed: seed}.play(t)
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
