package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// upload returns what S3 sends for one uploaded object.
func upload(key, sequencer string) events.S3Event {
	var r events.S3EventRecord
	r.S3.Bucket.Name, r.S3.Object.Key, r.S3.Object.Sequencer = "pictures", key, sequencer
	return events.S3Event{Records: []events.S3EventRecord{r}}
}

func ExampleWithLock() {
	handle := func(ctx context.Context, e events.S3Event) error {
		fmt.Println("resize", e.Records[0].S3.Object.Key)
		return nil
	}
	// In a function: lambda.Start(middleware.WithLock(keyfuncs.S3Object, handle)).
	// In a test, use a store in memory and call the wrapped handler directly.
	wrapped := middleware.WithLock(keyfuncs.S3Object, handle, middleware.Store(memstore.New()))

	ctx := context.Background()
	fmt.Println(wrapped(ctx, upload("cat.png", "01")))
	fmt.Println(wrapped(ctx, upload("cat.png", "01"))) // delivered again: nothing happens
	fmt.Println(wrapped(ctx, upload("cat.png", "02"))) // another upload of the object
	// Output:
	// resize cat.png
	// <nil>
	// <nil>
	// resize cat.png
	// <nil>
}

func ExampleWithLock_noEvent() {
	nightly := func(ctx context.Context) error {
		fmt.Println("one at a time")
		return nil
	}
	wrapped := middleware.WithLock(keyfuncs.Static("nightly"), nightly, middleware.Store(memstore.New()))
	fmt.Println(wrapped(context.Background()))
	// Output:
	// one at a time
	// <nil>
}

func ExampleWithLock_stream() {
	download := func(ctx context.Context, e order) (io.Reader, error) {
		return strings.NewReader("the lock is held until this is read"), nil
	}
	wrapped := middleware.WithLock(byOrder, download, middleware.Store(memstore.New()))
	body, err := wrapped(context.Background(), order{ID: "7"})
	if err != nil {
		panic(err)
	}
	text, err := io.ReadAll(body)
	fmt.Println(string(text), err)
	// Output: the lock is held until this is read <nil>
}

func ExampleWithLock_fence() {
	handle := func(ctx context.Context, e order) error {
		lease, ok := lock.FromContext(ctx)
		// Write lease.Fence beside the data, with a condition such as
		// "attribute_not_exists(fence) OR fence <= :fence".
		fmt.Println(ok, lease.Key.Name, lease.Fence > 0)
		return nil
	}
	wrapped := middleware.WithLock(byOrder, handle, middleware.Store(memstore.New()))
	fmt.Println(wrapped(context.Background(), order{ID: "7"}))
	// Output:
	// true orders true
	// <nil>
}

// heldBy wraps a handler that calls its wrapped self, and returns what the
// inner call got, which finds the lock held.
func heldBy(policy middleware.HeldPolicy) (string, error) {
	var wrapped func(context.Context, order) (string, error)
	var answer string
	var err error
	wrapped = middleware.WithLock(byOrder, func(context.Context, order) (string, error) {
		answer, err = wrapped(context.Background(), order{ID: "second"})
		return "", nil
	}, middleware.Store(memstore.New()), middleware.OnHeld(policy), middleware.Logger(slog.New(slog.DiscardHandler)))
	_, _ = wrapped(context.Background(), order{ID: "first"})
	return answer, err
}

func ExampleWithLimit() {
	call := func(ctx context.Context, m events.SQSMessage) error {
		fmt.Println("call the partner for", m.MessageId)
		return nil
	}
	// At most three invocations call the partner at the same time. The others wait
	// for up to 20 s and then fail, so that their messages come back.
	calls := middleware.EachSQSMessage(keyfuncs.Prefix(keyfuncs.SQSMessage, "call/"),
		middleware.WithLimit(func(events.SQSMessage) string { return "partner" }, 3, call,
			middleware.OnHeld(middleware.Wait(20*time.Second)), middleware.Store(memstore.New())),
		middleware.Store(memstore.New()))

	batch := events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m1", EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:calls"}}}
	fmt.Println(calls(context.Background(), batch))
	// Output:
	// call the partner for m1
	// {[]} <nil>
}

func ExampleOnHeld() {
	_, err := heldBy(middleware.Fail) // the default: the source delivers again
	fmt.Println(errors.Is(err, lock.ErrHeld))
	// Output: true
}

func ExampleRespond() {
	fmt.Println(heldBy(middleware.Respond("already under way")))
	// Output: already under way <nil>
}

func ExampleWait() {
	_, err := heldBy(middleware.Wait(10 * time.Millisecond))
	fmt.Println(errors.Is(err, lock.ErrHeld)) // it was not released in time
	// Output: true
}

func ExampleOnCompleted() {
	pay := func(ctx context.Context, o order) (string, error) { return "receipt for " + o.ID, nil }
	wrapped := middleware.WithLock(byOrder, pay, middleware.Store(memstore.New()), middleware.OnCompleted(middleware.Replay))
	for range 2 {
		fmt.Println(wrapped(context.Background(), order{ID: "7"}))
	}
	// Output:
	// receipt for 7 <nil>
	// receipt for 7 <nil>
}

func ExampleEachSQSMessage() {
	handle := func(ctx context.Context, m events.SQSMessage) error {
		fmt.Println("handle", m.MessageId)
		if m.Body == "" {
			return errors.New("the body is empty")
		}
		return nil
	}
	// In a function, call
	// lambda.Start(middleware.EachSQSMessage(keyfuncs.SQSMessage, handle)).
	wrapped := middleware.EachSQSMessage(keyfuncs.SQSMessage, handle,
		middleware.Store(memstore.New()), middleware.Concurrency(1), middleware.Logger(slog.New(slog.DiscardHandler)))
	batch := events.SQSEvent{Records: []events.SQSMessage{{MessageId: "a", Body: "{}"}, {MessageId: "b"}, {MessageId: "a", Body: "{}"}}}
	for range 2 { // the second time, only what is left
		answer, err := wrapped(context.Background(), batch)
		fmt.Println(answer.BatchItemFailures, err)
	}
	// Output:
	// handle a
	// handle b
	// [{b}] <nil>
	// handle b
	// [{b}] <nil>
}

// A handler of HTTP requests answers a repeated request with the first
// response, one that uses the key for something else with status 422, and one
// without Idempotency-Key with status 400.
func ExampleWithLock_idempotencyKey() {
	pay := func(ctx context.Context, r events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		fmt.Println("pay")
		return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: "receipt 17"}, nil
	}
	wrapped := middleware.WithLock(keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest], pay,
		middleware.Store(memstore.New()), middleware.Logger(slog.New(slog.DiscardHandler)))

	request := events.APIGatewayV2HTTPRequest{RawPath: "/payments", Headers: map[string]string{"idempotency-key": "8e03978e"}, Body: "100 EUR"}
	request.RequestContext.APIID, request.RequestContext.HTTP.Method = "a1b2c3", "POST"
	send := func() {
		r, err := wrapped(context.Background(), request)
		fmt.Println(r.StatusCode, r.Body, r.Headers["Idempotent-Replayed"], err)
	}
	send()
	send()
	request.Body = "200 EUR"
	send()
	request.Headers = nil
	send()
	// Output:
	// pay
	// 201 receipt 17  <nil>
	// 201 receipt 17 true <nil>
	// 422 {"type":"about:blank","title":"Unprocessable Entity","status":422,"detail":"the key was used for another request or by another caller: send a new key with every request, and the same one only with its retries"}  <nil>
	// 400 {"type":"about:blank","title":"Bad Request","status":400,"detail":"headers[Idempotency-Key] is missing: send a value that is new for every request and the same in its retries"}  <nil>
}

// Any result that is not an error counts, or not, as the function says.
func ExampleCompletedIf() {
	type outcome struct{ Paid bool }
	declined := true
	wrapped := middleware.WithLock(byOrder, func(context.Context, order) (outcome, error) {
		fmt.Println("charge the card")
		return outcome{Paid: !declined}, nil
	}, middleware.Store(memstore.New()), middleware.OnCompleted(middleware.Replay),
		middleware.CompletedIf(func(o outcome) bool { return o.Paid }))
	for range 3 {
		fmt.Println(wrapped(context.Background(), order{ID: "7"}))
		declined = false
	}
	// Output:
	// charge the card
	// {false} <nil>
	// charge the card
	// {true} <nil>
	// {true} <nil>
}

// A client reads why its request did not run in the words of the API.
func ExampleOnError() {
	type response = events.APIGatewayProxyResponse
	explain := func(_ context.Context, err error) (response, error) {
		if errors.As(err, new(*lock.PayloadMismatchError)) {
			return response{StatusCode: 422, Body: "This key belongs to another payment."}, nil
		}
		return response{}, err // everything else as usual
	}
	key := keyfuncs.PayloadFrom(keyfuncs.Once(byOrder), keyfuncs.ByField(func(o order) string { return fmt.Sprint(o.Item) }))
	wrapped := middleware.WithLock(key, func(context.Context, order) (response, error) { return response{StatusCode: 201}, nil },
		middleware.Store(memstore.New()), middleware.Logger(slog.New(slog.DiscardHandler)), middleware.OnError(explain))
	for _, item := range []int64{1, 2} {
		r, err := wrapped(context.Background(), order{ID: "7", Item: item})
		fmt.Println(r.StatusCode, r.Body, err)
	}
	// Output:
	// 201  <nil>
	// 422 This key belongs to another payment. <nil>
}

func ExampleObserve() {
	count := map[lock.Outcome]int{}
	wrapped := middleware.WithLock(byOrder, func(context.Context, order) error { return nil },
		middleware.Store(memstore.New()),
		middleware.Observe(func(_ context.Context, o lock.Observation) { count[o.Outcome]++ }))
	for range 3 {
		_ = wrapped(context.Background(), order{ID: "7"})
	}
	fmt.Println(count[lock.OutcomeAcquired], count[lock.OutcomeReleased], count[lock.OutcomeAlreadyCompleted])
	// Output: 1 1 2
}

// Those who find the lock held are told which build holds it.
func ExampleHolder() {
	build := middleware.Holder(func(_ context.Context, description string) string { return description + " build 1.4.2" })
	middleware.WithLock(byOrder, func(context.Context, order) error { return nil }, middleware.Store(memstore.New()), build)
}

// Options that need no more than their value.
func Example_options() {
	handle := func(context.Context, order) error { return nil }
	wrapped := middleware.WithLock(byOrder, handle,
		middleware.Store(memstore.New()),     // default: middleware.DefaultStore("")
		middleware.Namespace("orders"),       // shared with another function
		middleware.Remember(14*24*time.Hour), // as long as the queue keeps messages
		middleware.Heartbeat(10*time.Second), // quick takeover
		middleware.FailOpen(),                // run unprotected when the store is down
		middleware.Logger(slog.New(slog.DiscardHandler)),
		middleware.LogKeys(),
		middleware.Engine(func(o *lock.Options) {
			o.Reserve = 500 * time.Millisecond // kept for the release before the deadline
			o.RememberEvents = 100             // of one name, whatever the row costs
		}),
	)
	fmt.Println(wrapped(context.Background(), order{ID: "7"}))
	// Output: <nil>
}
