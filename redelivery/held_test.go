package redelivery_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/redelivery"
)

// TestHeldMessageComesBack shows how soon after its holder ends a held message
// is handled, and how often it is received.
func TestHeldMessageComesBack(t *testing.T) {
	t.Parallel()
	const soon = 2 * time.Second
	usual := []time.Duration{20 * time.Second, 19800 * time.Millisecond, 20200 * time.Millisecond}
	for name, c := range map[string]struct {
		holds    []time.Duration // that the process has seen
		nameless bool            // the keys have no Event
		hint     time.Duration
		holder   time.Duration // holds the lock so long; 0: it dies
		arrives  time.Duration // after the holder began
		beside   time.Duration // what another message of its batch takes
		late     time.Duration
		receives int
	}{
		"ends as others do":              {holds: usual, holder: 20 * time.Second, arrives: 5 * time.Second, late: soon, receives: 2},
		"ends as others do, soon":        {holds: usual, holder: 20 * time.Second, arrives: 19900 * time.Millisecond, late: soon, receives: 2},
		"ends as others do, and one not": {holds: append(usual, time.Minute, time.Millisecond), holder: 20 * time.Second, late: soon, receives: 2},
		"ends as others do, no events":   {holds: usual, nameless: true, holder: 20 * time.Second, arrives: 5 * time.Second, late: soon, receives: 2},
		"ends as the last 64 did":        {holds: append(slices.Repeat([]time.Duration{time.Minute}, 64), slices.Repeat(usual, 22)...), holder: 20 * time.Second, arrives: 5 * time.Second, late: soon, receives: 2},
		"ends as the hint says":          {hint: 20 * time.Second, holder: 20 * time.Second, arrives: 5 * time.Second, late: soon, receives: 2},
		"ends while others take long":    {holds: usual, holder: 20 * time.Second, arrives: 5 * time.Second, beside: time.Minute, late: 47 * time.Second, receives: 2},
		"ends at once":                   {holds: []time.Duration{time.Millisecond}, holder: 2 * time.Millisecond, arrives: time.Millisecond, late: soon, receives: 2},
		"ends at its deadline":           {holds: []time.Duration{timeout - 3*time.Second}, holder: timeout - 3*time.Second, arrives: time.Minute, late: soon, receives: 2},
		"ends later than others":         {holds: append(usual, time.Minute), holder: time.Minute, arrives: 5 * time.Second, late: soon, receives: 3},
		"ends later than ever":           {holds: usual, holder: 5 * time.Minute, arrives: time.Minute, late: timeout - 4*time.Minute, receives: 2},
		"ends early, nothing is known":   {holder: 20 * time.Second, arrives: 5 * time.Second, late: timeout, receives: 2},
		"dies":                           {arrives: 5 * time.Second, late: soon, receives: 2},
		"dies, and others take less":     {holds: usual, arrives: time.Minute, late: soon, receives: 2},
		"dies, and others take longer":   {holds: usual, arrives: 5 * time.Second, late: soon, receives: 4},
		"dies, and the message is late":  {holds: usual, arrives: timeout + 1500*time.Millisecond, late: soon, receives: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t)
				q.nameless = c.nameless
				p := q.process(&redelivery.Options{HoldTime: c.hint})
				p.warm(c.holds...)
				free := q.hold("customer", c.holder)
				time.Sleep(c.arrives)
				q.send(message("m", "customer", "1ms"))
				if c.beside > 0 {
					q.send(message("beside", "another", c.beside.String()))
				}
				q.poll(10, p)
				if late := q.handled["m"].Sub(free); late < 0 || late > c.late || len(q.received["m"]) != c.receives {
					t.Errorf("handled %v after the lock was free, and received %d times, want at most %v and %d", late, len(q.received["m"]), c.late, c.receives)
				}
				if w := q.warnings(); len(w) > 0 || q.requests != c.receives-1 {
					t.Errorf("%d requests, logged %q", q.requests, w)
				}
			})
		})
	}
}

// TestFailuresAreNoHolds shows that runs that failed, which may be quick, do
// not shorten the estimate. Either an Event or an Order is enough to tell them.
func TestFailuresAreNoHolds(t *testing.T) {
	t.Parallel()
	for _, nameless := range []bool{false, true} {
		t.Run(fmt.Sprint("no event ", nameless), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t)
				q.nameless, q.ordered = nameless, nameless
				p := q.process(nil)
				p.warm(20 * time.Second)
				for range 64 {
					if _, err := p.handler(t.Context(), events.SQSEvent{Records: []events.SQSMessage{message("bad", "another", "fails")}}); err == nil {
						t.Error("the handler has not failed")
					}
				}
				free := q.hold("customer", 20*time.Second)
				q.send(message("m", "customer", "1ms"))
				q.poll(10, p)
				if late := q.handled["m"].Sub(free); late < 0 || late > 2*time.Second || len(q.received["m"]) != 2 {
					t.Errorf("handled %v after the lock was free, and received %d times", late, len(q.received["m"]))
				}
			})
		})
	}
}

// TestCooldownIsOver shows that a message which found a name in its cooldown
// comes back when that ends, whatever the process has seen of the name's
// holders.
func TestCooldownIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		p := q.process(&redelivery.Options{HoldTime: time.Second})
		p.warm(time.Second)
		locker := expect.Value(lock.New(q.store, &lock.Options{Namespace: namespace, HoldAtLeast: time.Minute, Logger: discard}))(t)
		free := time.Now().Add(time.Minute)
		expect.Must(t, locker.Do(t.Context(), lock.Key{Name: "customer"}, func(context.Context) error { return nil }))
		q.send(message("m", "customer", "1ms"))
		q.poll(10, p)
		if late := q.handled["m"].Sub(free); late < 0 || late > 2*time.Second || len(q.received["m"]) != 2 {
			t.Errorf("handled %v after the cooldown, and received %d times", late, len(q.received["m"]))
		}
	})
}

// TestOneMessageInEachCooldown shows that messages of one name that must run a
// minute apart come back a minute apart.
func TestOneMessageInEachCooldown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		p := q.process(&redelivery.Options{HoldTime: time.Second}, middleware.HoldAtLeast(time.Minute))
		began := time.Now()
		for i := range 10 {
			q.send(message(fmt.Sprint("m", i), "customer", "1ms"))
		}
		q.poll(10, p)
		for id, times := range q.received {
			if len(times) > 2 {
				t.Errorf("%s was received %d times", id, len(times))
			}
		}
		for i, id := range q.order {
			if late := q.handled[id].Sub(began) - time.Duration(i)*time.Minute; late < 0 || late > 20*time.Second {
				t.Errorf("message %d was handled %v after its minute", i, late)
			}
		}
	})
}

// TestOwedMessageComesBack shows that a message whose handler has to run once
// more, for others that were coalesced, comes back at once if no time was left.
func TestOwedMessageComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		p := q.process(nil, middleware.OnlyLatest())
		const run = 8 * time.Minute // of 15
		began := time.Now()
		q.send(message("m1", "customer", run.String()))
		q.send(message("m2", "customer", run.String()))
		q.poll(1, p)
		for id, times := range q.received {
			if len(times) == 2 {
				if late := times[1].Sub(began) - run; late < 0 || late > 2*time.Second {
					t.Errorf("%s came back %v after its run", id, late)
				}
			}
		}
		if n := len(q.received["m1"]) + len(q.received["m2"]); n != 3 {
			t.Errorf("received %d times", n)
		}
	})
}

// TestThousandHeldMessages shows that each of 1,000 messages of as many
// customers comes back as soon as a single one, whether they come in one batch
// or in hundreds.
func TestThousandHeldMessages(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{10, 1000} {
		t.Run(fmt.Sprint("batches of ", batch), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(1, uint64(batch)))
				q := newQueue(t)
				p := q.process(&redelivery.Options{HoldTime: time.Minute})
				free := map[string]time.Time{}
				for i := range 1000 {
					id := fmt.Sprint("m", i)
					free[id] = q.hold(id, time.Minute)
					if random.IntN(3) == 0 {
						time.Sleep(10 * time.Millisecond)
					}
				}
				for id := range free {
					q.send(message(id, id, "1ms"))
				}
				q.poll(batch, p)
				for id, free := range free {
					if late := q.handled[id].Sub(free); late < 0 || late > 2*time.Second || len(q.received[id]) != 2 {
						t.Errorf("%s: handled %v after its lock was free, received %d times", id, late, len(q.received[id]))
					}
				}
				if q.requests != 100 {
					t.Errorf("%d requests, want 100 of ten messages each", q.requests)
				}
			})
		})
	}
}

// TestManyMessagesOfOneName shows that messages that wait for one lock do not
// all come back in the same second, and that none is received so often that it
// becomes a dead letter.
func TestManyMessagesOfOneName(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ messages, batch, processes, together int }{
		"one batch":            {200, 200, 1, 3},
		"one more than fits":   {1000, 1000, 1, 8},
		"batches, one process": {20, 10, 1, 8},
		"batches, processes":   {12, 4, 3, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t)
				var all []*process
				for range c.processes {
					p := q.process(&redelivery.Options{HoldTime: time.Second})
					all = append(all, p)
				}
				q.hold("customer", time.Second)
				for i := range c.messages {
					q.send(message(fmt.Sprint("m", i), "customer", "1s"))
				}
				q.poll(c.batch, all...)
				seconds := map[int64]int{}
				most := 0
				for _, at := range q.received {
					most = max(most, len(at))
					if len(at) > 1 {
						seconds[at[1].Unix()]++
					}
				}
				together := 0
				for _, n := range seconds {
					together = max(together, n)
				}
				t.Logf("up to %d receives, up to %d messages in one second", most, together)
				if together > c.together || len(q.dead) > 0 {
					t.Errorf("%d messages came back in one second, %d are dead letters", together, len(q.dead))
				}
			})
		})
	}
}

// TestTurnsAfterAnEarlyEnd shows that a message does not come back within the
// turn of one that found the name held by a holder before, which ended early.
func TestTurnsAfterAnEarlyEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		p := q.process(&redelivery.Options{HoldTime: time.Minute})
		q.hold("customer", 20*time.Second)
		q.send(message("m1", "customer", "1ms"))
		q.sendAt(message("m2", "customer", "1ms"), time.Now().Add(25*time.Second))
		time.AfterFunc(21*time.Second, func() { q.hold("customer", time.Minute) })
		q.poll(10, p)
		if apart := q.received["m2"][1].Sub(q.received["m1"][1]); apart < time.Minute {
			t.Errorf("m2 came back %v after m1, whose turn takes a minute", apart)
		}
	})
}

// TestHeldMessageOfAGroup shows that the rest of a message group comes back
// with the message that was held, in order, and that another group does not
// wait.
func TestHeldMessageOfAGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		q.messages.FIFO = true
		send := func(ids ...string) {
			for _, id := range ids {
				m := message(id, "customer "+id[:1], "1ms")
				m.EventSourceARN += ".fifo"
				m.Attributes["MessageGroupId"] = id[:1]
				q.send(m)
			}
		}
		free := q.hold("customer a", 20*time.Second)
		send("a1", "a2", "a3")
		time.AfterFunc(time.Second, func() { send("b1", "b2") })
		q.poll(10, q.process(&redelivery.Options{HoldTime: 20 * time.Second}))
		if got := strings.Join(q.order, " "); got != "b1 b2 a1 a2 a3" {
			t.Errorf("handled %s", got)
		}
		for _, id := range []string{"a1", "a2", "a3"} {
			if late := q.handled[id].Sub(free); late < 0 || late > 2*time.Second || len(q.received[id]) != 2 {
				t.Errorf("%s: %v after the lock was free, received %d times", id, late, len(q.received[id]))
			}
		}
		if q.requests != 1 {
			t.Errorf("%d requests", q.requests)
		}
	})
}

// TestOtherFailuresAreLeftAlone shows that nothing is asked of SQS for a batch
// without held messages, and that its failures come back after the queue's
// visibility timeout, with what is behind them in their group.
func TestOtherFailuresAreLeftAlone(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(*queue){
		"standard queue": func(q *queue) { q.send(message("ok", "a", "1ms")); q.send(message("bad", "b", "fails")) },
		"FIFO queue":     func(q *queue) { q.sendGroup("o1", "b1F", "b2") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t)
				send(q)
				q.poll(10, q.process(nil))
				for id, at := range q.received {
					if q.requests != 0 || id[0] == 'b' && (len(at) != 5 || at[1].Sub(at[0]) < 6*timeout) {
						t.Errorf("%d requests, %s received at %v", q.requests, id, at)
					}
				}
			})
		})
	}
}

// TestRenewedLease shows what becomes of a message whose holder renews its
// lease, so that the end of the lease says little: a process that renews too
// goes by its own holds. Another one stops after two attempts, so that a
// message does not use up its receives.
func TestRenewedLease(t *testing.T) {
	t.Parallel()
	heartbeat := middleware.Heartbeat(30 * time.Second)
	for name, c := range map[string]struct {
		holds    []time.Duration
		late     time.Duration
		receives int
	}{
		"known":     {holds: []time.Duration{10 * time.Minute}, late: 2 * time.Second, receives: 2},
		"not known": {late: 6 * timeout, receives: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t)
				p := q.process(nil, heartbeat)
				p.warm(c.holds...)
				free := q.holdWith(lock.Heartbeat(30*time.Second), "customer", 10*time.Minute)
				time.Sleep(time.Minute)
				q.send(message("m", "customer", "1ms"))
				q.poll(10, p)
				if late := q.handled["m"].Sub(free); late < 0 || late > c.late || len(q.received["m"]) != c.receives {
					t.Errorf("handled %v after the lock was free, received %d times, want at most %v and %d", late, len(q.received["m"]), c.late, c.receives)
				}
			})
		})
	}
}
