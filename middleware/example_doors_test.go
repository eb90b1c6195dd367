package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// In a function, Lambda decodes the event. A test wraps an events.S3Event.
func ExampleEachS3Record() {
	wrapped := middleware.EachS3Record(keyfuncs.S3Record, func(_ context.Context, r events.S3EventRecord) error {
		fmt.Println("resize", r.S3.Object.Key)
		return nil
	}, middleware.Store(memstore.New()))
	e := upload("cat.png", "01")
	for range 2 {
		fmt.Println(wrapped(context.Background(), middleware.S3Records{S3Event: e}))
	}
	// Output:
	// resize cat.png
	// <nil>
	// <nil>
}

// A change that comes while the index is built is acknowledged, and the index
// is built once more.
func ExampleLatest() {
	var wrapped func(context.Context, order) error
	runs := 0
	rebuild := func(ctx context.Context, o order) error {
		runs++
		fmt.Println("read all orders, and build the index")
		if runs == 1 { // meanwhile, in other invocations
			fmt.Println(wrapped(context.Background(), order{ID: "8"}))
			fmt.Println(wrapped(context.Background(), order{ID: "9"}))
		}
		return nil
	}
	key := func(_ context.Context, o order) (lock.Key, error) { return lock.Key{Name: "index", Event: o.ID}, nil }
	wrapped = middleware.Latest(key, rebuild, middleware.Store(memstore.New()), middleware.Logger(slog.New(slog.DiscardHandler)))
	fmt.Println(wrapped(context.Background(), order{ID: "7"}))
	// Output:
	// read all orders, and build the index
	// <nil>
	// <nil>
	// read all orders, and build the index
	// <nil>
}

// A transfer changes two accounts, and runs while it holds both.
func ExampleWithLocks() {
	type transfer struct{ ID, From, To string }
	accounts := func(_ context.Context, t transfer) ([]lock.Key, error) {
		return []lock.Key{{Name: t.From, Event: t.ID}, {Name: t.To, Event: t.ID}}, nil
	}
	wrapped := middleware.WithLocks(accounts, func(ctx context.Context, t transfer) error {
		fmt.Println("move it from", t.From, "to", t.To)
		return nil
	}, middleware.Store(memstore.New()))
	for range 2 {
		fmt.Println(wrapped(context.Background(), transfer{ID: "t1", From: "anna", To: "ben"}))
	}
	// Output:
	// move it from anna to ben
	// <nil>
	// <nil>
}

// The bank did not answer. The next delivery asks it before it pays again.
func ExampleOnInterrupted() {
	paid := false
	pay := func(context.Context, order) error {
		fmt.Println("pay")
		paid = true
		return middleware.Unknown(errors.New("the bank did not answer"))
	}
	wasPaid := func(context.Context, order) (bool, error) {
		fmt.Println("is there a payment with this id?", paid)
		return paid, nil
	}
	wrapped := middleware.WithLock(keyfuncs.Once(byOrder), pay, middleware.Store(memstore.New()), middleware.Logger(slog.New(slog.DiscardHandler)),
		middleware.OnInterrupted(middleware.Ask(wasPaid)))
	for range 3 {
		fmt.Println(wrapped(context.Background(), order{ID: "7"}))
	}
	// Output:
	// pay
	// the bank did not answer
	// is there a payment with this id? true
	// <nil>
	// <nil>
}

// At most one reminder an hour for each customer; the others are skipped.
func ExampleHoldAtLeast() {
	wrapped := middleware.WithLock(byOrder, func(context.Context, order) error {
		fmt.Println("remind")
		return nil
	}, middleware.Store(memstore.New()), middleware.Logger(slog.New(slog.DiscardHandler)), middleware.HoldAtLeast(time.Hour), middleware.OnHeld(middleware.Skip))
	for range 2 {
		fmt.Println(wrapped(context.Background(), order{ID: "7"}))
	}
	// Output:
	// remind
	// <nil>
	// <nil>
}

// What can never succeed is told to somebody, and leaves the queue.
func ExamplePermanent() {
	wrapped := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error {
		return middleware.Permanent(errors.New("no such customer"))
	}, middleware.Store(memstore.New()), middleware.Logger(slog.New(slog.DiscardHandler)),
		middleware.OnFailed(func(_ context.Context, failed []*middleware.Failed[events.SQSMessage]) {
			for _, f := range failed {
				fmt.Println("to a person:", f.Record.MessageId, f.Err)
				f.Err = nil // acknowledged
			}
		}))
	answer, err := wrapped(context.Background(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "a"}}})
	fmt.Println(len(answer.BatchItemFailures), err)
	// Output:
	// to a person: a no such customer
	// 0 <nil>
}

// A webhook: the id of the event is in the body, and the signature is new in
// each delivery. It is checked around the wrapper, so that what has a wrong one
// is not remembered.
func ExampleWithLock_webhook() {
	type request = events.APIGatewayV2HTTPRequest
	type response = events.APIGatewayV2HTTPResponse
	byID := keyfuncs.HTTPBody[request](keyfuncs.Once(keyfuncs.ByField(func(e struct{ ID string }) string { return e.ID })))
	wrapped := middleware.WithLock(byID, func(_ context.Context, r request) (response, error) {
		fmt.Println("handle", r.Body)
		return response{StatusCode: 204}, nil
	}, middleware.Store(memstore.New()), middleware.Remember(4*24*time.Hour))
	verified := func(ctx context.Context, r request) (response, error) {
		if !strings.HasPrefix(r.Headers["stripe-signature"], "valid") {
			return response{StatusCode: 401}, nil
		}
		return wrapped(ctx, r)
	}
	for _, signature := range []string{"forged", "valid, first", "valid, second"} {
		r, err := verified(context.Background(), request{Body: `{"id": "evt_1"}`, Headers: map[string]string{"stripe-signature": signature}})
		fmt.Println(r.StatusCode, err)
	}
	// Output:
	// 401 <nil>
	// handle {"id": "evt_1"}
	// 204 <nil>
	// 204 <nil>
}
