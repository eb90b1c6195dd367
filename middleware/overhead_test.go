package middleware_test

import (
	"context"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// BenchmarkWithLock is what the wrapper adds to a handler that does nothing.
// `make bench` prints it beside the bare store calls.
func BenchmarkWithLock(b *testing.B) {
	mutex := func(context.Context, order) (lock.Key, error) { return lock.Key{Name: "orders"}, nil }
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	h := middleware.WithLock(mutex, func(context.Context, order) error { return nil }, middleware.Store(memstore.New()))
	b.ReportAllocs()
	for b.Loop() {
		expect.Must(b, h(ctx, order{}))
	}
}
