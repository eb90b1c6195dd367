package otellock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/oracle"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
	"github.com/lambdalock/lambdalock/telemetry/otellock"
)

var (
	errHandler = errors.New("handler")
	errDead    = errors.New("the process is dead")
)

// TestCountersAreExact shows that what was exported adds up to what happened to
// 100,000 messages, as their processes saw it: requests meet faults, handlers
// fail and panic, and processes die in the middle of a batch. A process exports
// after each invocation. What it has counted when it dies is lost, and nothing
// else.
func TestCountersAreExact(t *testing.T) { // F1, F2, F5, F63
	synctest.Test(t, func(t *testing.T) {
		const size = 100
		batches := 1000
		if testing.Short() {
			batches = 200
		}
		chance := rand.New(rand.NewPCG(1, 2))
		mix := fault.Usual(1, 60)
		mix.PerMille[fault.Deny] = 1
		store, late := memstore.New(), fault.Kept{}
		counted, values, want, wantValues := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
		deaths := 0
		var p *process
		var ids []string
		for b := range batches {
			if p == nil || !p.dead { // else the batch comes again
				ids = nil
			}
			for i := len(ids); i < size; i++ {
				id := b*size + i
				if chance.IntN(4) == 0 { // again, in this batch or from one before it
					id = max(0, id-chance.IntN(3*size))
				}
				ids = append(ids, fmt.Sprint(id))
			}
			if p == nil || p.dead {
				p = newProcess(fault.NewStore(store, mix.Client(uint64(b)), &late))
			}
			p.dieAt, p.slow = 0, chance.IntN(50) == 0
			if chance.IntN(20) == 0 {
				p.dieAt = 1 + chance.IntN(3*size)
			}
			happened := p.invoke(t.Context(), batch(ids...))
			if p.dead {
				deaths++
				time.Sleep(time.Duration(chance.IntN(20)) * time.Second)
				continue
			}
			add(want, happened)
			wantValues["lambdalock.acquire.duration"] += p.claims
			wantValues["lambdalock.hold.duration"] += happened["acquired"] + happened["taken_over"] // however they ended
			byAttributes, counts := measured(t, p.reader)
			for attributes, n := range byAttributes {
				outcome, _ := attributes.Value("lambdalock.outcome")
				counted[outcome.AsString()] += n
			}
			add(values, counts)
		}
		if !maps.Equal(counted, want) || !maps.Equal(values, wantValues) {
			t.Errorf("counted  %v\nwant     %v\nmeasured %v\nwant     %v", counted, want, values, wantValues)
		}
		for _, some := range []string{"completed", "released", "already_completed", "in_progress", "taken_over", "complete_failed", "store_failed", "handler_failed", "requeued", "not_begun"} {
			if want[some] == 0 && !testing.Short() { // which has few deaths
				t.Errorf("none was %s, with %d deaths", some, deaths)
			}
		}
		t.Logf("%d deaths, %v", deaths, want)
	})
}

func add(to, more map[string]int) {
	for name, n := range more {
		to[name] += n
	}
}

// process is an execution environment with its own providers.
type process struct {
	driver.Store
	reader  sdkmetric.Reader
	handler func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)

	mu      sync.Mutex
	log     *oracle.Log // of the invocation
	claims  int         // in the invocation
	failed  int         // handlers, in the invocation
	handled int
	slow    bool // the handlers
	dieAt   int  // at that request from now on; 0: not
	dead    bool
}

func newProcess(store driver.Store) *process {
	p := &process{Store: store, reader: sdkmetric.NewManualReader(sdkmetric.WithTemporalitySelector(
		func(sdkmetric.InstrumentKind) metricdata.Temporality { return metricdata.DeltaTemporality },
	))}
	p.handler = middleware.EachSQSMessage(keyfuncs.SQSMessage, p.handle, middleware.Store(p), middleware.Namespace("shop"), middleware.Logger(slog.New(slog.DiscardHandler)),
		otellock.Observe(&otellock.Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(p.reader)), TracerProvider: noop.NewTracerProvider()}))
	return p
}

// invoke delivers a batch, and returns what happened to it.
func (p *process) invoke(ctx context.Context, e events.SQSEvent) map[string]int {
	p.log, p.failed, p.claims = &oracle.Log{}, 0, 0
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, _ = p.handler(ctx, e)
	claims, happened := p.log.Outcomes()
	requeued, all := claims["throttled"], 0
	delete(claims, "throttled")
	for _, n := range claims {
		all += n
	}
	p.claims += all + requeued
	add(happened, claims)
	add(happened, map[string]int{"requeued": requeued, "handler_failed": p.failed})
	if left := len(e.Records) - all; left > 0 {
		happened["not_begun"] = left
	}
	return happened
}

func (p *process) handle(ctx context.Context, _ events.SQSMessage) (err error) {
	if p.slow {
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handled++
	fate := p.handled % 50
	if fate < 2 || err != nil {
		p.failed++
	}
	switch fate {
	case 0:
		return errHandler
	case 1:
		panic(errHandler)
	}
	return err
}

// lives reports whether the process may send a request.
func (p *process) lives() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dieAt > 0 {
		p.dieAt--
		p.dead = p.dead || p.dieAt == 0
	}
	return !p.dead
}

func (p *process) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	if !p.lives() {
		return driver.Row{}, false, &driver.Error{Lasting: true, Err: errDead}
	}
	row, ok, err := p.Store.Acquire(ctx, c)
	p.log.Claim(c, row, ok, err)
	return row, ok, err
}

func (p *process) Settle(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	if !p.lives() {
		return driver.Row{}, false, &driver.Error{Lasting: true, Err: errDead}
	}
	row, ok, err := p.Store.Settle(ctx, s)
	p.log.Settlement(s, row, ok, err)
	return row, ok, err
}
