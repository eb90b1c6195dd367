// mutex works on one instance at a time. There is no event to recognise: everybody
// who asks has their turn, and waits for it. Different instances are worked on
// side by side.
//
// Event source: whoever invokes the function directly and waits for the answer, a
// state machine for example. The function's timeout must leave room for waiting
// and working; a caller who is not served in time gets a HeldError and may ask
// again.
package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	lambda.Start(middleware.WithLock(byInstance, handle, middleware.OnHeld(middleware.Wait(20*time.Second))))
}

type request struct {
	Instance string `json:"instance"`
	Action   string `json:"action"`
}

// byInstance is keyfuncs.JSON("instance") for a handler that takes a type of its own.
func byInstance(_ context.Context, r request) (lock.Key, error) {
	if r.Instance == "" {
		return lock.Key{}, &lock.KeyError{Field: "instance", Reason: "is missing: name the instance to work on"}
	}
	return lock.Key{Name: "instance/" + r.Instance}, nil
}

func handle(ctx context.Context, r request) error {
	if r.Action == "" {
		return errors.New("action is missing")
	}
	slog.InfoContext(ctx, "maintenance begun", "instance", r.Instance, "action", r.Action)
	if err := maintain(ctx, r); err != nil {
		return err
	}
	slog.InfoContext(ctx, "maintenance done", "instance", r.Instance, "action", r.Action)
	return nil
}

// maintain stands for your own work, which must end with its context.
func maintain(ctx context.Context, _ request) error {
	select {
	case <-time.After(100 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
