package lock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Locker acquires locks in one store. It is safe for concurrent use.
type Locker struct {
	store     driver.Store
	storeName string // in observations
	opts      Options
	prefix    string
	lastStamp atomic.Int64 // microseconds; see nextStamp
	lastRun   atomic.Int64 // nanoseconds that the last run of the work took, if Latest ran it
	// pressed counts the settlements that the store has throttled and that are
	// still trying.
	pressed atomic.Int32
}

// New returns a Locker for store. opts may be nil. The error is a
// [*ConfigError].
func New(store driver.Store, opts *Options) (*Locker, error) {
	if store == nil {
		return nil, &ConfigError{Reason: "the store is nil"}
	}
	if opts == nil {
		opts = &Options{}
	}
	filled, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	prefix, err := namespacePrefix(filled.Namespace)
	if err != nil {
		return nil, err
	}
	if _, ok := store.(driver.Coalescer); filled.OnInterrupted != nil && !ok {
		return nil, &ConfigError{Reason: fmt.Sprintf("OnInterrupted needs a store that keeps the events of dead holders, and %s cannot: use DynamoDB, Redis on one server, S3 or Azure Blob Storage", driver.Describe(store))}
	}
	return &Locker{store: store, storeName: driver.Describe(store), opts: filled, prefix: prefix}, nil
}

// Check opens the connection to the store if it has one, and returns a
// [*StoreError] or [*ConfigError] if the store cannot be reached.
func (l *Locker) Check(ctx context.Context) error {
	c, ok := l.store.(driver.Checker)
	if !ok {
		return nil
	}
	err := c.Check(ctx)
	if err == nil || errors.As(err, new(*ConfigError)) {
		return err
	}
	return storeError("check", 1, reported(err))
}

// nextStamp returns a stamp that no other claim of this Locker has, even in the
// same microsecond.
func (l *Locker) nextStamp(now time.Time) time.Time {
	for {
		last := l.lastStamp.Load()
		next := max(now.UnixMicro(), last+1)
		if l.lastStamp.CompareAndSwap(last, next) {
			return time.UnixMicro(next)
		}
	}
}
