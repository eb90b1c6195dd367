package middleware

import (
	"cmp"
	"context"
	"os"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// DefaultStore returns the store that wrappers use without the option [Store]:
// the DynamoDB table of that name or, if table is empty, the one named in
// LOCK_TABLE_NAME. There is one per table and process, so that nested wrappers
// and your own code share its connections. It builds the client from the
// default AWS configuration at the first request, which in Lambda a wrapper
// sends during INIT. To use another client, see [Store] and [dynamostore.Open].
func DefaultStore(table string) driver.Store {
	table = cmp.Or(table, os.Getenv(dynamostore.TableVariable))
	if table == "" {
		return &defaultStore{} // reports the missing name until the variable is set
	}
	defaultStoresMu.Lock()
	defer defaultStoresMu.Unlock()
	if defaultStores[table] == nil {
		defaultStores[table] = &defaultStore{table: table}
	}
	return defaultStores[table]
}

// defaultStores holds the default stores of the process by table.
var (
	defaultStores   = map[string]*defaultStore{}
	defaultStoresMu sync.Mutex
)

// defaultStore opens its DynamoDB store at the first request. If that fails,
// the next request tries again, because the error may be temporary.
type defaultStore struct {
	table  string
	warmed sync.Once

	mu    sync.Mutex
	store *dynamostore.Store // nil: not opened
}

const (
	// warmUpTimeout is how long INIT may wait for the connection: a store that is
	// down must not keep the function from starting.
	warmUpTimeout = time.Second
	// checkTimeout is that of a given store, which may have to look at its server
	// first. The whole of INIT has 10 s:
	// https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html
	checkTimeout = 5 * time.Second
)

// warmUp checks the store during INIT, so that the first event waits neither
// for the connection nor for what a store has to find out about its server. An
// error can be ignored, because the first invocation meets it again.
func warmUp(store driver.Store) {
	if !inLambda() {
		return
	}
	switch s := store.(type) {
	case *defaultStore:
		s.warmed.Do(func() { checkWithin(warmUpTimeout, s) })
	case driver.Checker:
		checkWithin(checkTimeout, s)
	}
}

func checkWithin(limit time.Duration, c driver.Checker) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_ = c.Check(ctx)
}

// String returns what errors call the store.
func (d *defaultStore) String() string { return dynamostore.New(nil, d.table).String() }

// DynamoStore returns the store, for dynamostore.Transact.
func (d *defaultStore) DynamoStore(ctx context.Context) (*dynamostore.Store, error) {
	return d.open(ctx)
}

func (d *defaultStore) open(ctx context.Context) (*dynamostore.Store, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.store != nil {
		return d.store, nil
	}
	var err error
	d.store, err = dynamostore.Open(ctx, d.table)
	return d.store, err
}

// send gives a request to the store.
func send[R any](ctx context.Context, d *defaultStore, method func(*dynamostore.Store, context.Context, R) (driver.Row, bool, error), request R) (driver.Row, bool, error) {
	s, err := d.open(ctx)
	if err != nil {
		return driver.Row{}, false, err
	}
	return method(s, ctx, request)
}

// Acquire implements [driver.Store].
func (d *defaultStore) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	return send(ctx, d, (*dynamostore.Store).Acquire, c)
}

// Renew implements [driver.Store].
func (d *defaultStore) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	return send(ctx, d, (*dynamostore.Store).Renew, r)
}

// Settle implements [driver.Store].
func (d *defaultStore) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	return send(ctx, d, (*dynamostore.Store).Settle, t)
}

// Mark implements [driver.Coalescer].
func (d *defaultStore) Mark(ctx context.Context, m *driver.Mark) (driver.Row, bool, error) {
	return send(ctx, d, (*dynamostore.Store).Mark, m)
}

// Join implements [driver.Line].
func (d *defaultStore) Join(ctx context.Context, name string) (driver.Row, bool, error) {
	return send(ctx, d, (*dynamostore.Store).Join, name)
}

// Check implements [driver.Checker].
func (d *defaultStore) Check(ctx context.Context) error {
	s, err := d.open(ctx)
	if err != nil {
		return err
	}
	return s.Check(ctx)
}
