package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cirello.io/dynamolock/v2"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/dynamostore/dynamotest"
)

const (
	invocation = 12 * time.Minute
	shortLease = 20 * time.Second
)

// versions of the function, in the order in which they are deployed.
var versions = map[string]func(*account) func(context.Context, order) error{
	"only the old lock": func(a *account) func(context.Context, order) error {
		return oldLock{a.oldLocks(dynamolock.WithLeaseDuration(shortLease)), invocation, a.book}.handle
	},
	"both": func(a *account) func(context.Context, order) error {
		locks := a.oldLocks(dynamolock.WithLeaseDuration(oldLease), dynamolock.DisableHeartbeat())
		return a.newLock(oldLock{locks, oldLease - 2*answerTime, a.book}.handle)
	},
	"only the new lock": func(a *account) func(context.Context, order) error { return a.newLock(a.book) },
}

// TestCutOver runs two versions at the same time, three environments each,
// which get the same orders of two customers.
func TestCutOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		versions       [2]string
		overlaps, once bool
	}{
		"the first deployment":      {versions: [2]string{"only the old lock", "both"}},
		"between the deployments":   {versions: [2]string{"both", "both"}, once: true},
		"the second deployment":     {versions: [2]string{"both", "only the new lock"}, once: true},
		"both deployments in one":   {versions: [2]string{"only the old lock", "only the new lock"}, overlaps: true},
		"after the old lock's time": {versions: [2]string{"only the new lock", "only the new lock"}, once: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t)
				var source sync.WaitGroup
				for range 3 {
					for _, v := range c.versions {
						handle := versions[v](a)
						source.Go(func() { deliver(t, handle) })
					}
				}
				source.Wait()
				if (a.overlaps > 0) != c.overlaps {
					t.Errorf("%d overlaps, want some: %v", a.overlaps, c.overlaps)
				}
				for _, o := range orders {
					if n := a.booked[o.ID]; n < 1 || c.once && n > 1 {
						t.Errorf("order %s was booked %d times", o.ID, n)
					}
				}
			})
		})
	}
}

var orders = []order{{"1", "jane"}, {"2", "omar"}, {"3", "jane"}, {"4", "jane"}, {"5", "omar"}}

// deliver delivers each order until it is acknowledged.
func deliver(t *testing.T, handle func(context.Context, order) error) {
	for _, o := range orders {
		for tries := 0; invoke(t, handle, o) != nil; tries++ {
			if tries == 1000 {
				t.Errorf("order %s is still refused", o.ID)
				return
			}
			time.Sleep(time.Second)
		}
	}
}

func invoke(t *testing.T, handle func(context.Context, order) error, o order) error {
	ctx, cancel := context.WithTimeout(t.Context(), invocation)
	defer cancel()
	return handle(ctx, o)
}

// TestHeartbeatFails shows what becomes of a handler that works for ten minutes
// while none of its heartbeats reaches the table, and another one waits.
func TestHeartbeatFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		holder   string
		overlaps bool
	}{
		"a lease that is renewed":              {"only the old lock", true},
		"a lease that is longer than the work": {"both", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t)
				a.work = 10 * time.Minute
				waiter := versions["only the old lock"](a)
				a.unreachable = true
				holder := versions[c.holder](a)
				var source sync.WaitGroup
				source.Go(func() { _ = invoke(t, holder, orders[0]) })
				time.Sleep(time.Second)
				source.Go(func() {
					for range 2 {
						_ = invoke(t, waiter, orders[2])
					}
				})
				source.Wait()
				if (a.overlaps > 0) != c.overlaps {
					t.Errorf("%d overlaps, want some: %v", a.overlaps, c.overlaps)
				}
				if a.booked[orders[2].ID] == 0 {
					t.Error("the waiter never had its turn")
				}
			})
		})
	}
}

// TestKilledHolder shows that the next invocation takes the old lock of one
// that was killed if it lives for longer than the lease, and that otherwise
// none ever does.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lease time.Duration
		taken bool
	}{
		"two leases fit into an invocation":    {oldLease, true},
		"the lease is longer than the timeout": {15 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t)
				locks := a.oldLocks(dynamolock.WithLeaseDuration(c.lease), dynamolock.DisableHeartbeat())
				if _, err := locks.AcquireLockWithContext(t.Context(), "jane"); err != nil {
					t.Fatal(err)
				}
				taken := false
				for range 10 {
					taken = taken || invoke(t, versions["both"](a), orders[0]) == nil
				}
				if taken != c.taken {
					t.Errorf("taken within two hours: %v, want %v", taken, c.taken)
				}
			})
		})
	}
}

// account has both tables, and notes what the handlers do.
type account struct {
	t           *testing.T
	client      *dynamodb.Client
	work        time.Duration // of a handler
	unreachable bool          // to the heartbeats of the next client, and to its releases

	mu       sync.Mutex
	busy     map[string]int // handlers at work, by customer
	overlaps int
	booked   map[string]int // by order
}

func newAccount(t *testing.T) *account {
	return &account{
		t: t, client: dynamotest.New(map[string]string{"old": "key"}), work: 3 * time.Second,
		busy: map[string]int{}, booked: map[string]int{},
	}
}

// oldLocks returns the lock client of one environment, for the length of the
// test.
func (a *account) oldLocks(opts ...dynamolock.ClientOption) *dynamolock.Client {
	locks, err := dynamolock.New(oldTable{a.client, a.unreachable}, "old", opts...)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() {
		_ = locks.Close()       // the lock of a killed holder may be another's
		time.Sleep(time.Minute) // the heartbeat ends when it is due next
	})
	return locks
}

func (a *account) newLock(handle func(context.Context, order) error) func(context.Context, order) error {
	return middleware.WithLock(byCustomer, handle, middleware.Store(dynamostore.New(a.client, dynamotest.LockTable)),
		middleware.Namespace("orders"), middleware.Logger(slog.New(slog.DiscardHandler)))
}

func (a *account) book(ctx context.Context, o order) error {
	a.begin(o.Customer, 1)
	defer a.begin(o.Customer, -1)
	select {
	case <-time.After(a.work):
	case <-ctx.Done():
		return ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.booked[o.ID]++
	return nil
}

func (a *account) begin(customer string, handlers int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy[customer] += handlers
	if a.busy[customer] > 1 {
		a.overlaps++
	}
}

type oldTable struct {
	*dynamodb.Client
	unreachable bool
}

func (c oldTable) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if c.unreachable {
		return nil, errors.New("no answer")
	}
	return c.Client.UpdateItem(ctx, in, opts...)
}
