package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestWrongUsePanicsAtConstruction shows that a handler, a key function and
// options that do not fit together panic when the handler is wrapped.
func TestWrongUsePanicsAtConstruction(t *testing.T) {
	t.Parallel()
	opts := newFixture().options
	ok := func(context.Context, order) error { return nil }
	text := func(context.Context, order) (string, error) { return "", nil }
	for name, c := range map[string]struct {
		use    func()
		within string
	}{
		"three arguments": {func() {
			middleware.WithLock(byOrder, func(context.Context, order, int) error { return nil }, opts()...)
		}, "no more"},
		"variadic": {func() {
			middleware.WithLock(byOrder, func(context.Context, ...order) error { return nil }, opts()...)
		}, "no more"},
		"no context first": {func() { middleware.WithLock(byOrder, func(order, context.Context) error { return nil }, opts()...) }, "context.Context"},
		"other event":      {func() { middleware.WithLock(keyfuncs.S3Object, ok, opts()...) }, "takes middleware_test.order, but the key function takes events.S3Event"},
		"no event":         {func() { middleware.WithLock(byOrder, func(context.Context) error { return nil }, opts()...) }, "let the handler take the event, or use keyfuncs.Static, with which duplicates run again"},
		"no event, an interface": {func() {
			middleware.WithLock(func(context.Context, fmt.Stringer) (lock.Key, error) { return lock.Key{}, nil }, func(context.Context) error { return nil }, opts()...)
		}, "let the handler take the event"},
		"result, no error": {func() { middleware.WithLock(byOrder, func(order) string { return "" }, opts()...) }, "an error"},
		"three results":    {func() { middleware.WithLock(byOrder, func(order) (int, int, error) { return 0, 0, nil }, opts()...) }, "an error"},
		"own error":        {func() { middleware.WithLock(byOrder, func(order) *middleware.PanicError { return nil }, opts()...) }, "returns its error as *middleware.PanicError"},
		"narrower error": {func() {
			middleware.WithLock(byOrder, func(order) (string, net.Error) { return "", nil }, opts()...)
		}, "returns its error as net.Error, which cannot hold those of the wrapper: let it return error"},
		"other gateway": {func() {
			middleware.WithLock(keyfuncs.IdempotencyKey[v2Event], func(context.Context, embeddedEvent) (restResponse, error) { return restResponse{}, nil }, opts()...)
		}, "write the handler's type, such as IdempotencyKey[middleware_test.embeddedEvent]"},
		"key of the body": {func() {
			middleware.WithLock(byOrder, func(context.Context, events.SQSEvent) error { return nil }, opts()...)
		}, "takes events.SQSEvent, but the key function takes middleware_test.order: use the key function for the handler's event; or, to lock what it carries, let the handler take middleware_test.order, and wrap it with EachSQSBody"},
		"key of the detail": {func() {
			middleware.WithLock(byOrder, func(context.Context, events.EventBridgeEvent) error { return nil }, opts()...)
		}, "the handler takes events.EventBridgeEvent, but the key function takes middleware_test.order: use the key function for the handler's event; or, to lock what it carries, let the handler take middleware_test.order, and wrap it with WithEventBridgeDetail"},
		"key of the message": {func() {
			middleware.WithLock(byOrder, func(context.Context, events.SNSEvent) error { return nil }, opts()...)
		}, "and wrap it with EachSNSBody"},
		"key of the data": {func() {
			middleware.WithLock(byOrder, func(context.Context, *events.KinesisEvent) error { return nil }, opts()...)
		}, "and wrap it with EachKinesisBody"},
		"key of a request":       {func() { middleware.WithLock(keyfuncs.IdempotencyKey[v2Event], ok, opts()...) }, "or make one with keyfuncs.ByField"},
		"key of an event":        {func() { middleware.WithLock(keyfuncs.EventBridgeSchedule, ok, opts()...) }, "or make one with keyfuncs.ByField"},
		"key of no request":      {func() { middleware.WithLock(byOrder, handles[v2Event], opts()...) }, "or make one with keyfuncs.ByField"},
		"key of no event of AWS": {func() { middleware.WithLock(byOrder, handles[events.AutoScalingEvent], opts()...) }, "or make one with keyfuncs.ByField"},
		"no name":                {func() { middleware.WithLimit[order](nil, 3, ok, opts()...) }, "the function for the name is nil"},
		"limit 0":                {func() { middleware.WithLimit(toPartner[order], 0, ok, opts()...) }, "WithLimit(…, 0, …): use 1 to 100"},
		"negative":               {func() { middleware.WithLimit(toPartner[order], -1, ok, opts()...) }, "WithLimit(…, -1, …): use 1 to 100"},
		"more than 100":          {func() { middleware.WithLimit(toPartner[order], lock.MaxLimit+1, ok, opts()...) }, "WithLimit(…, 101, …): use 1 to 100"},
		"completed, limit": {func() {
			middleware.WithLimit(toPartner[order], 3, ok, opts(middleware.OnCompleted(middleware.Fail))...)
		}, "OnCompleted is about events"},
		"remembered, limit": {func() {
			middleware.WithLimit(toPartner[order], 3, text, opts(middleware.RememberFor(func(string) time.Duration { return time.Hour }))...)
		}, "RememberFor is about events"},
		"order, S3": {func() {
			middleware.EachS3Record(keyfuncs.S3Record, handles[events.S3EventRecord], opts(middleware.OrderPerName())...)
		}, "OrderPerName is for streams"},
		"order, SNS": {func() { middleware.EachSNSBody(byOrder, ok, opts(middleware.OrderPerName())...) }, "OrderPerName is for streams"},
		"order, SQS": {func() { middleware.EachSQSBody(byOrder, ok, opts(middleware.OrderPerName())...) }, "OrderPerName is for streams"},
		"order, bus": {func() {
			middleware.EachEventBridgeEvent(keyfuncs.CustomBusEvent, handles[awsevents.CustomBusEvent], opts(middleware.OrderPerName())...)
		}, "OrderPerName is for streams"},
		"no error, fail":      {func() { middleware.WithLock(byOrder, func(order) {}, opts()...) }, "OnHeld(Skip)"},
		"no function":         {func() { middleware.WithLock(byOrder, 42, opts()...) }, "not a function"},
		"nil":                 {func() { middleware.WithLock[order, any](byOrder, nil, opts()...) }, "nil"},
		"nil function":        {func() { middleware.WithLock(byOrder, (func(context.Context, order) error)(nil), opts()...) }, "nil"},
		"nil other function":  {func() { middleware.WithLock(byOrder, (func(order) error)(nil), opts()...) }, "nil"},
		"nil key":             {func() { middleware.WithLock(keyfuncs.Func[order](nil), ok, opts()...) }, "key function is nil"},
		"OnHeld(nil)":         {func() { middleware.WithLock(byOrder, ok, opts(middleware.OnHeld(nil))...) }, "OnHeld"},
		"OnCompleted(nil)":    {func() { middleware.WithLock(byOrder, ok, opts(middleware.OnCompleted(nil))...) }, "OnCompleted"},
		"Respond, other type": {func() { middleware.WithLock(byOrder, text, opts(middleware.OnHeld(middleware.Respond(42)))...) }, "int"},
		"Respond, no result":  {func() { middleware.WithLock(byOrder, ok, opts(middleware.OnHeld(middleware.Respond(42)))...) }, "has none: choose Fail, Skip or Wait"},
		"Respond, no error": {func() {
			middleware.WithLock(byOrder, func(order) {}, opts(middleware.OnHeld(middleware.Respond(42)))...)
		}, "has none: choose Skip"},
		"Replay, no result": {func() { middleware.WithLock(byOrder, ok, opts(middleware.OnCompleted(middleware.Replay))...) }, "Replay"},
		"Respond with a stream": {func() {
			middleware.WithLock(byOrder, func(order) (io.Reader, error) { return nil, nil }, opts(middleware.OnHeld(middleware.Respond(strings.NewReader("busy"))))...)
		}, "read once"},
		"Respond with a stream, hidden": {func() {
			middleware.WithLock(byOrder, func(order) (any, error) { return nil, nil }, opts(middleware.OnHeld(middleware.Respond(&events.LambdaFunctionURLStreamingResponse{Body: strings.NewReader("busy")})))...)
		}, "read once"},
		"Respond with a stream, hidden, without a body": {func() {
			middleware.WithLock(byOrder, func(order) (any, error) { return nil, nil }, opts(middleware.OnHeld(middleware.Respond(&events.LambdaFunctionURLStreamingResponse{StatusCode: 409})))...)
		}, "read once"},
		"Respond with a stream, raw": {func() {
			middleware.WithLock(byOrder, lambda.Handler(echo{}), opts(middleware.OnHeld(middleware.Respond(strings.NewReader("busy"))))...)
		}, "read once"},
		"Respond with a stream, no stream": {func() {
			middleware.WithLock(byOrder, text, opts(middleware.OnHeld(middleware.Respond(strings.NewReader("busy"))))...)
		}, "a *strings.Reader, but the handler returns a string"},
		"Replay of a stream": {func() {
			middleware.WithLock(byOrder, func(order) (io.Reader, error) { return nil, nil }, opts(middleware.OnCompleted(middleware.Replay))...)
		}, "stream"},
		"concrete stream": {func() {
			middleware.WithLock(byOrder, func(order) (*strings.Reader, error) { return nil, nil }, opts()...)
		}, "io.Reader"},
		"Fail without an error": {func() {
			middleware.WithLock(byOrder, func(order) {}, opts(middleware.OnHeld(middleware.Skip), middleware.OnCompleted(middleware.Fail))...)
		}, "returns no error"},
		"Respond, raw, no JSON": {func() {
			middleware.WithLock(byOrder, lambda.Handler(echo{}), opts(middleware.OnHeld(middleware.Respond(func() {})))...)
		}, "no JSON form"},
		"nil raw handler":  {func() { middleware.WithLock(byOrder, lambda.Handler(nil), opts()...) }, "nil"},
		"NewHandler":       {func() { middleware.WithLock(byOrder, lambda.NewHandler(ok), opts()...) }, "StartWithOptions"},
		"concrete Handler": {func() { middleware.WithLock(byOrder, echo{}, opts()...) }, "lambda.Handler"},
	} {
		t.Run(name, func(t *testing.T) { wantPanic(t, c.use, c.within) })
	}
	middleware.WithLimit(toPartner[order], lock.MaxLimit, ok, opts()...) // fits
}

// TestWrongOptions shows that every wrapper refuses an option that would be
// ignored, or would do something else than it says.
func TestWrongOptions(t *testing.T) {
	t.Parallel()
	ms := middleware.Store(memstore.New())
	for name, c := range map[string]struct {
		opts   []middleware.Option
		within string
	}{
		"nil option":          {[]middleware.Option{ms, nil}, "option 2 is nil"},
		"nil in a Group":      {[]middleware.Option{middleware.Group(ms, nil)}, "option 2 is nil"},
		"Holder(nil)":         {[]middleware.Option{ms, middleware.Holder(nil)}, "Holder(nil)"},
		"nil store":           {[]middleware.Option{middleware.Store(nil)}, "Store(nil)"},
		"store of nil":        {[]middleware.Option{middleware.Store((*memstore.Store)(nil))}, "Store(nil)"},
		"HoldAtLeast(30)":     {[]middleware.Option{ms, middleware.HoldAtLeast(30)}, "HoldAtLeast(30ns): durations have units, write 30*time.Second"},
		"Remember(24)":        {[]middleware.Option{ms, middleware.Remember(24)}, "Remember(24ns): durations have units, write 24*time.Hour"},
		"Remember of seconds": {[]middleware.Option{ms, middleware.Remember(86400)}, "Remember(86.4µs): durations have units"},
		"Remember of millis":  {[]middleware.Option{ms, middleware.Remember(86_400_000)}, "Remember(86.4ms): durations have units"},
		"Wait(5)":             {[]middleware.Option{ms, middleware.OnHeld(middleware.Wait(5))}, "Wait(5ns): durations have units, write 5*time.Second"},
		"Engine(nil)":         {[]middleware.Option{ms, middleware.Engine(nil)}, "Engine(nil)"},
		"Heartbeat(20)":       {[]middleware.Option{ms, middleware.Heartbeat(20)}, "Heartbeat(20ns): durations have units, write 20*time.Second"},
		"Reserve(500)":        {[]middleware.Option{ms, engine(func(o *lock.Options) { o.Reserve = 500 })}, "Reserve(500ns): durations have units, write 500*time.Millisecond"},
		"negative Remember":   {[]middleware.Option{ms, middleware.Remember(-time.Hour)}, "Remember is negative"},
		"negative Wait":       {[]middleware.Option{ms, middleware.OnHeld(middleware.Wait(-time.Hour))}, "lambdalock: Wait is negative (-1h0m0s)"},
		"negative lease":      {[]middleware.Option{ms, fixedLease(-1)}, "FixedLease is negative"},
		"CompleteWithin(5)":   {[]middleware.Option{ms, engine(func(o *lock.Options) { o.CompleteWithin = 5 })}, "CompleteWithin(5ns): durations have units, write 5*time.Second"},
		"negative Reserve":    {[]middleware.Option{ms, engine(func(o *lock.Options) { o.Reserve = -1 })}, "Reserve is negative"},
		"unknown policy":      {[]middleware.Option{ms, middleware.OnHeld(middleware.Policy(7))}, "neither Fail nor Skip"},
		"policy of nil":       {[]middleware.Option{ms, middleware.OnHeld((*middleware.Policy)(nil))}, "OnHeld(nil)"},
		"other policy of nil": {[]middleware.Option{ms, middleware.OnCompleted((*middleware.Policy)(nil))}, "OnCompleted(nil)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("WithLock", func(t *testing.T) {
				wantPanic(t, func() {
					middleware.WithLock(byOrder, func(context.Context, order) error { return nil }, c.opts...)
				}, c.within)
			})
			t.Run("WithLock of a raw handler", func(t *testing.T) {
				wantPanic(t, func() {
					middleware.WithLock(byOrder, lambda.Handler(echo{}), c.opts...)
				}, c.within)
			})
			t.Run("EachSQSMessage", func(t *testing.T) {
				wantPanic(t, func() {
					middleware.EachSQSMessage(keyfuncs.SQSMessage, func(context.Context, events.SQSMessage) error { return nil }, c.opts...)
				}, c.within)
			})
		})
	}
}

// TestReplayNeedsAResultThatCanBeDecoded shows that Replay refuses a result
// that is an interface with methods, because every duplicate would get nil.
func TestReplayNeedsAResultThatCanBeDecoded(t *testing.T) {
	t.Parallel()
	replay := newFixture().options(middleware.OnCompleted(middleware.Replay))
	for name, use := range map[string]func(){
		"Stringer": func() {
			middleware.WithLock(byOrder, func(context.Context, order) (fmt.Stringer, error) { return nil, nil }, replay...)
		},
		"error": func() {
			middleware.WithLock(byOrder, func(context.Context, order) (error, error) { return nil, nil }, replay...)
		},
	} {
		t.Run(name, func(t *testing.T) { wantPanic(t, use, "OnCompleted(Replay)", "into the interface", "any") })
	}
	// A concrete type, or any, can be decoded.
	middleware.WithLock(byOrder, func(context.Context, order) (any, error) { return nil, nil }, replay...)
	middleware.WithLock(byOrder, func(context.Context, order) (*order, error) { return nil, nil }, replay...)
}

// TestNilMeansTheDefault shows that a nil logger, a nil observer and a duration
// of zero mean the default.
func TestNilMeansTheDefault(t *testing.T) {
	t.Parallel()
	h := middleware.WithLock(byOrder, func(context.Context, order) error { return nil }, middleware.Store(memstore.New()),
		middleware.Logger(nil), middleware.Observe(nil), middleware.Remember(0), engine(func(*lock.Options) {}),
		middleware.Heartbeat(0), middleware.OnHeld(middleware.Wait(0)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 2 {
		expect.OK(t, h(ctx, order{ID: "1"}))
	}
}

// TestLastOptionCounts shows that the second one counts if an option is given
// twice.
func TestLastOptionCounts(t *testing.T) {
	t.Parallel()
	f := newFixture()
	h := middleware.WithLock(byOrder, func(context.Context, order) error { return nil },
		f.options(middleware.OnCompleted(middleware.Fail), middleware.OnCompleted(middleware.Skip),
			middleware.OnHeld(middleware.Wait(time.Millisecond)), middleware.OnHeld(middleware.Fail))...)
	for range 2 {
		expect.OK(t, h(t.Context(), order{ID: "1"}))
	}
	f.acquireElsewhere(t, expect.Value(byOrder(t.Context(), order{ID: "3"}))(t))
	if err := h(t.Context(), order{ID: "2"}); !errors.Is(err, lock.ErrHeld) || f.of(lock.OutcomeHeld)[0].Waited != 0 {
		t.Errorf("%v, after a wait of %v", err, f.of(lock.OutcomeHeld)[0].Waited)
	}
}
