// several locks two warehouses together, because a move of stock changes both
// of them. The stock of each is in a system of its own, so no transaction
// covers the two. The locks of every move are acquired in the same order, so
// two moves in opposite directions never deadlock. With one WithLock inside
// another, each would hold one warehouse and wait for the other one.
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
	both := keyfuncs.All(
		keyfuncs.EventBridgeDetail(warehouse("from", func(m move) string { return m.From })),
		keyfuncs.EventBridgeDetail(warehouse("to", func(m move) string { return m.To })),
	)
	lambda.Start(middleware.WithLocks(both, handle, middleware.OnHeld(middleware.Wait(5*time.Second))))
}

type move struct {
	From  string      `json:"from"`
	To    string      `json:"to"`
	Boxes json.Number `json:"boxes"`
}

func warehouse(field string, of func(move) string) keyfuncs.Func[move] {
	return func(_ context.Context, m move) (lock.Key, error) {
		if of(m) == "" {
			return lock.Key{}, &lock.NoKeyError{Field: field, Reason: "is missing"}
		}
		return lock.Key{Name: "warehouse/" + of(m)}, nil
	}
}

func handle(ctx context.Context, e events.EventBridgeEvent) error {
	var m move
	if err := json.Unmarshal(e.Detail, &m); err != nil {
		return fmt.Errorf("move in event %s: %w", e.ID, err)
	}
	return book(ctx, m)
}

// book is where your own work goes. Each warehouse has a fence of its own.
func book(ctx context.Context, m move) error {
	fences := map[string]int64{}
	for _, lease := range lock.Leases(ctx) {
		fences[lease.Key.Name] = lease.Fence
	}
	slog.InfoContext(ctx, "stock moved", "from", m.From, "to", m.To, "boxes", m.Boxes, "fences", fences)
	return nil
}
