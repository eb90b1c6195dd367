package delivery_test

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// shapes are the ways to wrap a handler.
var shapes = []struct {
	name string
	wrap func(work func(context.Context) error, o []middleware.Option) func(context.Context, job) error
}{
	{"event", func(work func(context.Context) error, o []middleware.Option) func(context.Context, job) error {
		return middleware.WithLock(byJob, func(ctx context.Context, _ job) error { return work(ctx) }, o...)
	}},
	{"mutex", func(work func(context.Context) error, o []middleware.Option) func(context.Context, job) error {
		return middleware.WithLock(byName, func(ctx context.Context, _ job) error { return work(ctx) }, o...)
	}},
	{"replay", func(work func(context.Context) error, o []middleware.Option) func(context.Context, job) error {
		h := middleware.WithLock(byJob, func(ctx context.Context, j job) (job, error) { return j, work(ctx) }, append(o, middleware.OnCompleted(middleware.Replay))...)
		return func(ctx context.Context, j job) error {
			_, err := h(ctx, j)
			return err
		}
	}},
	{"HTTP", func(work func(context.Context) error, o []middleware.Option) func(context.Context, job) error {
		h := middleware.WithLock[events.APIGatewayV2HTTPRequest](keyfuncs.IdempotencyKey, func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			return events.APIGatewayV2HTTPResponse{StatusCode: 201}, work(ctx)
		}, o...)
		return func(ctx context.Context, j job) error {
			r := events.APIGatewayV2HTTPRequest{RawPath: "/" + j.Name, Headers: map[string]string{"idempotency-key": j.ID}}
			r.RequestContext.HTTP.Method = "POST"
			_, err := h(ctx, r)
			return err
		}
	}},
	{"several", func(work func(context.Context) error, o []middleware.Option) func(context.Context, job) error {
		return middleware.WithLocks(func(_ context.Context, j job) ([]lock.Key, error) {
			return []lock.Key{{Name: j.Name, Event: j.ID}, {Name: "name 2 " + j.ID}, {Name: "name 3", Event: j.ID}}, nil
		}, func(ctx context.Context, _ job) error { return work(ctx) }, o...)
	}},
	{"nested", func(work func(context.Context) error, o []middleware.Option) func(context.Context, job) error {
		inner := middleware.WithLock(keyfuncs.Static("inner"), func(ctx context.Context, _ job) error { return work(ctx) }, o...)
		return middleware.WithLock(byJob, inner, o...)
	}},
	{"limit", func(work func(context.Context) error, o []middleware.Option) func(context.Context, job) error {
		return middleware.WithLimit(func(j job) string { return j.Name }, 3, func(ctx context.Context, _ job) error { return work(ctx) }, o...)
	}},
	{"SQS", func(work func(context.Context) error, o []middleware.Option) func(context.Context, job) error {
		return eachMessage(work, "", o)
	}},
	{"SQS FIFO", func(work func(context.Context) error, o []middleware.Option) func(context.Context, job) error {
		return eachMessage(work, "1", o)
	}},
}

// heldBy makes the holder that of the history: the pid of the test would be a
// part of every request, and decide which of two has the first turn.
func heldBy(id any) middleware.Option {
	return middleware.Holder(func(context.Context, string) string { return fmt.Sprint("environment ", id) })
}

func fixedLease(d time.Duration) middleware.Option {
	return middleware.Engine(func(o *lock.Options) { o.Lease = lock.FixedLease(d) })
}

func rememberEvents(n int) middleware.Option {
	return middleware.Engine(func(o *lock.Options) { o.RememberEvents = n })
}

func byJob(_ context.Context, j job) (lock.Key, error) {
	return lock.Key{Name: j.Name, Event: j.ID}, nil
}
func byName(_ context.Context, j job) (lock.Key, error) { return lock.Key{Name: j.Name}, nil }

// inClientsTurn lets the records of a batch, which begin at the same time, take
// turns.
var inClientsTurn = middleware.Around(func(ctx context.Context, m events.SQSMessage, next func(context.Context) error) error {
	clock.From(ctx).(*simclock.Clock).Turn("record " + m.MessageId)
	return next(ctx)
})

// eachMessage makes a batch of ten messages for each job, of few names.
func eachMessage(work func(context.Context) error, sequence string, o []middleware.Option) func(context.Context, job) error {
	key := func(_ context.Context, m events.SQSMessage) (lock.Key, error) {
		return lock.Key{Name: m.Body, Event: m.MessageId}, nil
	}
	h := middleware.EachSQSMessage(key, func(ctx context.Context, _ events.SQSMessage) error { return work(ctx) }, append(o, inClientsTurn)...)
	return func(ctx context.Context, j job) error {
		var e events.SQSEvent
		for i := range 10 {
			e.Records = append(e.Records, events.SQSMessage{
				MessageId: fmt.Sprint(j.ID, " ", i), Body: fmt.Sprint("name ", i%6),
				Attributes: map[string]string{"SequenceNumber": sequence, "MessageGroupId": fmt.Sprint(i % 4)},
			})
		}
		_, err := h(ctx, e)
		return err
	}
}
