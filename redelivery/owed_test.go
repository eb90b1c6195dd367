package redelivery_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/redelivery"
)

// TestPermanentButOwed shows that a message which failed for good is not moved
// while others rely on its run: it comes back soon, and its queue gives it up
// if it always fails.
func TestPermanentButOwed(t *testing.T) { // F7
	t.Parallel()
	for name, c := range map[string]struct {
		recovers bool // it can be handled once the other one has come
		runs     int
	}{"what it lacked has come": {true, 2}, "it never can": {false, 5}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t)
				runs, whole := 0, false
				p := &process{q, middleware.EachSQSMessage(func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
					return lock.Key{Name: "article", Event: m.MessageId}, nil
				}, func(context.Context, events.SQSMessage) error {
					runs++
					known := runs > 1 && c.recovers
					if time.Sleep(10 * time.Second); !known {
						return middleware.Permanent(errors.New("no article 7"))
					}
					whole = true
					return nil
				}, middleware.Store(q.store), middleware.Engine(func(o *lock.Options) { o.Lease = lock.FixedLease(timeout) }), middleware.Logger(discard), middleware.OnlyLatest(),
					redelivery.SQS(q, &redelivery.Options{DeadLetterQueue: letters, Logger: q.logger}))}
				q.send(message("early", "", ""))
				time.AfterFunc(5*time.Second, func() { q.send(message("late", "", "")) })
				began := time.Now()
				q.poll(1, p)
				if late := q.received["early"][1].Sub(began) - 10*time.Second; late < 0 || late > 2*time.Second {
					t.Errorf("came back %v after its run, although another relies on it", late)
				}
				if runs != c.runs || whole != c.recovers || c.recovers && len(q.dead) > 0 || len(q.received["early"]) != c.runs || len(q.received["late"]) != 1 {
					t.Errorf("%d runs, one whole %v, %d in the dead-letter queue, received %v", runs, whole, len(q.dead), q.received)
				}
			})
		})
	}
}
