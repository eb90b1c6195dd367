// Package rowtest makes rows for the tests of commands.
package rowtest

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Acquire acquires a lock in the namespace orders. A lease below zero has ended
// already.
func Acquire(t *testing.T, store driver.Store, holder string, lease time.Duration, key lock.Key, opts ...func(*lock.Options)) *lock.Lock {
	t.Helper()
	lk, err := locker(t, store, holder, lease, opts).Acquire(t.Context(), key)
	if err != nil && !errors.Is(err, lock.ErrLost) {
		t.Fatal(err)
	}
	return lk
}

// AcquireOneOfTwo acquires a name that two may hold, and is like [Acquire] in
// all else.
func AcquireOneOfTwo(t *testing.T, store driver.Store, holder string, lease time.Duration, name string, opts ...func(*lock.Options)) {
	t.Helper()
	if _, err := locker(t, store, holder, lease, opts).AcquireOneOf(t.Context(), name, 2); err != nil {
		t.Fatal(err)
	}
}

func locker(t *testing.T, store driver.Store, holder string, lease time.Duration, opts []func(*lock.Options)) *lock.Locker {
	t.Helper()
	o := lock.Options{
		Namespace: "orders", Lease: lock.FixedLease(max(lease, time.Minute)), Logger: slog.New(slog.DiscardHandler),
		Holder: func(context.Context) string { return holder },
	}
	for _, opt := range opts {
		opt(&o)
	}
	if lease < 0 {
		store = past{store, lease - time.Minute}
	}
	l, err := lock.New(store, &o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// past is a store whose leases ended earlier.
type past struct {
	driver.Store
	shift time.Duration
}

func (p past) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	c.Until = c.Until.Add(p.shift)
	return p.Store.Acquire(ctx, c)
}

func (p past) Settle(context.Context, *driver.Settlement) (driver.Row, bool, error) {
	return driver.Row{}, true, nil // the holder died
}

// Complete completes an event in the namespace orders.
func Complete(t *testing.T, store driver.Store, key lock.Key, result []byte, opts ...func(*lock.Options)) {
	t.Helper()
	if err := Acquire(t, store, "f request 0", time.Hour, key, opts...).CompleteWith(lock.Completion{Result: result}); err != nil {
		t.Fatal(err)
	}
}

// Read returns a row.
func Read(t *testing.T, store driver.Inspector, name string) driver.Row {
	t.Helper()
	row, err := store.Read(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return row
}
