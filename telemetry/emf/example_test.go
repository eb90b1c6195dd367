package emf_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/memstore"
	"github.com/lambdalock/lambdalock/telemetry/emf"
)

// In a function, emf.Metrics(nil) writes to standard output.
func ExampleMetrics() {
	var lines bytes.Buffer
	wrapped := middleware.WithLock(keyfuncs.EventBridgeEvent, func(context.Context, events.EventBridgeEvent) error { return nil },
		middleware.Store(memstore.New()), middleware.Namespace("orders"), middleware.Logger(slog.New(slog.DiscardHandler)),
		emf.Metrics(&emf.Options{Output: &lines}))
	for range 2 {
		_ = wrapped(context.Background(), events.EventBridgeEvent{Source: "shop", ID: "17"})
	}
	for decoder := json.NewDecoder(&lines); decoder.More(); {
		var line map[string]any
		if err := decoder.Decode(&line); err != nil {
			log.Fatal(err)
		}
		fmt.Println(line["service"], line["Completed"], line["Duplicates"], line["StoreRequests"])
	}
	// Output:
	// orders 1 <nil> 2
	// orders <nil> 1 1
}

// A function that a schedule invokes every ten minutes. It looks at the table
// LOCK_TABLE_NAME.
func ExampleOldestHeld() {
	store, err := dynamostore.Open(context.Background(), "")
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(func(ctx context.Context) error { return emf.OldestHeld(ctx, store, nil) })
}
