// several locks two accounts at once, because a transfer changes both of them.
// The locks of every transfer are acquired in the same order, so two transfers
// in opposite directions never deadlock. With one WithLock inside another, each
// would hold one account and wait for the other one.
//
// Event source: an EventBridge rule, with a dead-letter queue on the rule and a
// failure destination on the function, whose timeout is longer than the wait of
// 5 s. Each event costs four writes instead of two.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	// The id of the EventBridge event is the Event of both keys.
	accounts := keyfuncs.All(
		keyfuncs.EventBridgeDetail(account("from", func(t transfer) string { return t.From })),
		keyfuncs.EventBridgeDetail(account("to", func(t transfer) string { return t.To })),
	)
	lambda.Start(middleware.WithLocks(accounts, handle, middleware.OnHeld(middleware.Wait(5*time.Second))))
}

type transfer struct {
	From   string      `json:"from"`
	To     string      `json:"to"`
	Amount json.Number `json:"amount"`
}

func account(field string, of func(transfer) string) keyfuncs.Func[transfer] {
	return func(_ context.Context, t transfer) (lock.Key, error) {
		if of(t) == "" {
			return lock.Key{}, &lock.KeyError{Field: field, Reason: "is missing"}
		}
		return lock.Key{Name: "account/" + of(t)}, nil
	}
}

func handle(ctx context.Context, e events.EventBridgeEvent) error {
	var t transfer
	if err := json.Unmarshal(e.Detail, &t); err != nil {
		return fmt.Errorf("transfer in event %s: %w", e.ID, err)
	}
	return book(ctx, t)
}

// book is where your own work goes. Both accounts are locked, each with a fence
// of its own.
func book(ctx context.Context, t transfer) error {
	fences := map[string]int64{}
	for _, lease := range lock.Leases(ctx) {
		fences[lease.Key.Name] = lease.Fence
	}
	slog.InfoContext(ctx, "amount transferred", "from", t.From, "to", t.To, "amount", t.Amount, "fences", fences)
	return nil
}
