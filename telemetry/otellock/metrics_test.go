package otellock_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestMetrics shows the attributes of the counter, and which outcomes the
// histograms measure.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		h := middleware.EachSQSMessage(keyfuncs.SQSMessage, func(_ context.Context, m events.SQSMessage) error {
			time.Sleep(time.Second)
			if m.MessageId == "bad" {
				return fmt.Errorf("no stock: %w", errors.ErrUnsupported)
			}
			return nil
		}, f.with(middleware.Store(memstore.New()), middleware.Concurrency(1))...)
		_, _ = h(t.Context(), batch("good", "bad", "good", ""))
		events, values := measured(t, f.reader)
		at := func(outcome string, more ...attribute.KeyValue) attribute.Set {
			return attribute.NewSet(append(more, attribute.String("lambdalock.outcome", outcome),
				attribute.String("lambdalock.namespace", "shop"), attribute.String("lambdalock.store", "memory"))...)
		}
		want := map[attribute.Set]int{
			at("acquired"): 2, at("completed"): 1, at("released"): 1, at("already_completed"): 1,
			at("handler_failed", attribute.String("error.type", "wrapError")): 1,
			at("refused", attribute.String("error.type", "NoKeyError")):       1,
		}
		if !maps.Equal(events, want) {
			t.Errorf("counted %v", events)
		}
		if want := map[string]int{"lambdalock.acquire.duration": 3, "lambdalock.hold.duration": 2}; !maps.Equal(values, want) {
			t.Errorf("measured %v, want %v", values, want)
		}
	})
}

// TestDurations shows that durations are in seconds, and that the bounds of
// the histograms tell long ones apart. The first lock is held until its release
// has failed.
func TestDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		wait := f.with(middleware.OnHeld(middleware.Wait(time.Minute)), middleware.Engine(func(o *lock.Options) { o.Lease = lock.FixedLease(10 * time.Second) }))
		f.die(t, "n")
		expect.Must(t, middleware.WithLock(keyfuncs.Static("n"), func(context.Context) error { time.Sleep(2 * time.Second); return nil }, wait...)(t.Context()))
		var all metricdata.ResourceMetrics
		expect.Must(t, f.reader.Collect(t.Context(), &all))
		want := map[string]float64{"lambdalock.acquire.duration": 8, "lambdalock.wait.duration": 8, "lambdalock.hold.duration": 1.95 + 2}
		for _, m := range all.ScopeMetrics[0].Metrics {
			h, ok := m.Data.(metricdata.Histogram[float64])
			if !ok {
				continue
			}
			sum := 0.0
			for _, p := range h.DataPoints {
				if sum += p.Sum; p.Bounds[len(p.Bounds)-1] != 900 {
					t.Errorf("%s has the bounds %v", m.Name, p.Bounds)
				}
			}
			if m.Unit != "s" || sum < want[m.Name] || sum > want[m.Name]+1 {
				t.Errorf("%s is %v %s", m.Name, sum, m.Unit)
			}
			delete(want, m.Name)
		}
		if len(want) > 0 {
			t.Errorf("not measured: %v", want)
		}
	})
}
