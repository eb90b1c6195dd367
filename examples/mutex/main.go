// mutex works on one instance at a time. It has no duplicates to detect: every
// caller gets a turn, and waits for it. It works on different instances in
// parallel.
//
// Event source: any caller that invokes the function directly and waits for the
// answer, such as a state machine. The function's timeout must leave enough
// time to wait and to work. A caller whose turn does not come in time gets a
// HeldError and may try again.
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

// byInstance does what jmespath.Path("instance") does, for a typed handler.
func byInstance(_ context.Context, r request) (lock.Key, error) {
	if r.Instance == "" {
		return lock.Key{}, &lock.NoKeyError{Field: "instance", Reason: "is missing: name the instance to work on"}
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

// maintain is where your own work goes. It must end when its context does.
func maintain(ctx context.Context, _ request) error {
	select {
	case <-time.After(100 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
