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

// DefaultStore returns the store that decorators use if they have no [Store] option:
// the DynamoDB table of that name or, if table is empty, the one in LOCK_TABLE_NAME.
// There is one per table and process, so that nested decorators and your own code
// share a client, its connections, and the connection that is opened during INIT.
// The client is built from the default AWS configuration, at the first request.
//
// To give a decorator a client of its own, use Store with [dynamostore.New] or
// [dynamostore.Open].
func DefaultStore(table string) driver.Store {
	table = cmp.Or(table, os.Getenv(dynamostore.TableVariable))
	if table == "" {
		return &defaultStore{} // fails until the variable is set
	}
	stores.Lock()
	defer stores.Unlock()
	if stores.byTable == nil {
		stores.byTable = map[string]*defaultStore{}
	}
	if stores.byTable[table] == nil {
		stores.byTable[table] = &defaultStore{table: table}
	}
	return stores.byTable[table]
}

// stores holds the default stores of the process.
var stores struct {
	sync.Mutex
	byTable map[string]*defaultStore
}

// defaultStore opens its DynamoDB store at the first use, and again after an error,
// which may have been temporary.
type defaultStore struct {
	table  string
	warmed sync.Once
	mu     sync.Mutex
	opened *dynamostore.Store
}

// warmUpTimeout bounds what INIT spends on opening the connection: a store that is
// down must not keep the function from starting.
const warmUpTimeout = time.Second

// warmUp opens the connection during INIT, where Lambda does it before the first
// event. An error is not lost: the first invocation meets it again.
func (d *defaultStore) warmUp() {
	if !inLambda() {
		return
	}
	d.warmed.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), warmUpTimeout)
		defer cancel()
		_ = d.Check(ctx)
	})
}

func (d *defaultStore) open(ctx context.Context) (*dynamostore.Store, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.opened != nil {
		return d.opened, nil
	}
	s, err := dynamostore.Open(ctx, d.table)
	d.opened = s
	return s, err
}

// Acquire implements [driver.Store].
func (d *defaultStore) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	s, err := d.open(ctx)
	if err != nil {
		return driver.Row{}, false, err
	}
	return s.Acquire(ctx, c)
}

// Renew implements [driver.Store].
func (d *defaultStore) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	s, err := d.open(ctx)
	if err != nil {
		return driver.Row{}, false, err
	}
	return s.Renew(ctx, r)
}

// Release implements [driver.Store].
func (d *defaultStore) Release(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	s, err := d.open(ctx)
	if err != nil {
		return driver.Row{}, false, err
	}
	return s.Release(ctx, t)
}

// Check implements [driver.Checker].
func (d *defaultStore) Check(ctx context.Context) error {
	s, err := d.open(ctx)
	if err != nil {
		return err
	}
	return s.Check(ctx)
}
