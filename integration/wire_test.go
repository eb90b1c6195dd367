package integration_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
)

// wire is the network between a client and a server. It counts requests and
// delays each of them, and it can let them meet faults.
type wire struct {
	next     *http.Transport
	delay    time.Duration
	requests atomic.Int64

	dialect fault.Dialect // of HTTP
	plan    fault.Plan    // nil: no faults
	late    fault.Late
	clock   *movedClock // of the server, as the client sees it; nil: the real one
}

func newWire(delay time.Duration) *wire {
	return &wire{next: newTransport(), delay: delay, dialect: fault.DynamoDB}
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	var next http.RoundTripper = reported{w.next}
	if w.clock != nil {
		next = movedTransport{next, w.clock}
	}
	if w.plan != nil {
		next = &fault.Transport{Next: next, Dialect: w.dialect, Plan: w.plan, Late: w.late}
	}
	err = w.carry(r.Context(), func() error {
		resp, err = next.RoundTrip(r)
		return err
	})
	return resp, err
}

// carry sends one request.
func (w *wire) carry(ctx context.Context, send func() error) error {
	w.requests.Add(1)
	if err := delayFor(ctx, w.delay); err != nil {
		return err
	}
	return send()
}

// take returns how many requests were sent since it was last called.
func (w *wire) take() int64 { return w.requests.Swap(0) }

// hook is a wire between a client and a server of Redis.
type hook struct{ *wire }

// DialHook implements redis.Hook.
func (hook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook implements redis.Hook.
func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return h.carry(ctx, func() error {
			if name := cmd.Name(); h.plan == nil || name != "evalsha" && name != "eval" { // it sets up a connection
				return next(ctx, cmd)
			}
			e := fault.Exchange[redis.Cmder]{
				Apply: func(ctx context.Context, late bool) (redis.Cmder, error) {
					sent := cmd
					if late { // the answer is already being read
						sent = redis.NewCmd(ctx, cmd.Args()...)
					}
					arrived, err := beginPassage(ctx)
					if err != nil {
						return nil, err
					}
					err = next(ctx, sent)
					arrived(unanswered(err))
					return sent, err
				},
				Spoil: func(f fault.Fault, _ redis.Cmder) (redis.Cmder, error) {
					if text := fault.RedisAnswer(f, cmd.Name()); text != "" {
						return nil, redisError(text)
					}
					return nil, fault.ErrBroken
				},
			}
			_, err := e.Meet(ctx, h.plan.Next(cmd.Name()), h.late)
			return err
		})
	}
}

// redisError is an error as Redis answers it.
type redisError string

func (e redisError) Error() string { return string(e) }

// RedisError implements redis.Error.
func (redisError) RedisError() {}

func delayFor(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
