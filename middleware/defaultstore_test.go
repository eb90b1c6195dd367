package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/patience"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/dynamostore/dynamotest"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestDefaultStore shows that wrappers without the option Store use the table
// named in the environment or in DefaultStore.
func TestDefaultStore(t *testing.T) {
	table := expect.Value(localtable.Start(patience.Context(t), "locks"))(t)
	t.Cleanup(table.Close)
	environment(t, table.URL, "locks")
	ran := 0
	handle := func(context.Context, order) error { ran++; return nil }
	h := middleware.WithLock(byOrder, handle)
	for range 2 {
		expect.OK(t, h(patience.Context(t), order{ID: "1"}))
	}
	if ran != 1 {
		t.Errorf("ran %d times", ran)
	}
	t.Setenv("LOCK_TABLE_NAME", "")
	if err := middleware.WithLock(byOrder, handle, middleware.Store(middleware.DefaultStore("locks")))(patience.Context(t), order{ID: "1"}); err != nil || ran != 1 {
		t.Errorf("the table by name: %v after %d runs", err, ran)
	}
	t.Setenv("LOCK_TABLE_NAME", "locks")
	middleware.ForgetDefaultStores()
	nested := middleware.WithLock(byOrder, middleware.WithLock(byOrder, handle), middleware.OnHeld(middleware.Wait(time.Hour)))
	if err := nested(patience.Context(t), order{ID: "3"}); !errors.As(err, new(*lock.ConfigError)) { // F33
		t.Errorf("nested, with one name: %v, want a ConfigError", err)
	}
	renewed := make(chan struct{}, 10)
	heartbeat := middleware.WithLock(byOrder, func(context.Context, order) error { <-renewed; return nil },
		middleware.Heartbeat(3*time.Second), middleware.Observe(func(_ context.Context, o lock.Observation) {
			if o.Outcome == lock.OutcomeRenewed {
				renewed <- struct{}{}
			}
		}))
	if err := heartbeat(patience.Context(t), order{ID: "2"}); err != nil {
		t.Errorf("with a heartbeat: %v", err)
	}
}

// TestDefaultStoreCanDoWhatItsTableCan coalesces an event, and compares the
// optional interfaces of the default store with those of the store in it.
func TestDefaultStoreCanDoWhatItsTableCan(t *testing.T) {
	table := expect.Value(localtable.Start(patience.Context(t), "locks"))(t)
	t.Cleanup(table.Close)
	environment(t, table.URL, "locks")
	runs := 0
	var h func(context.Context, order) error
	h = middleware.Latest(byOrder, func(context.Context, order) error {
		if runs++; runs == 1 {
			return h(patience.Context(t), order{ID: "2"})
		}
		return nil
	}, noLog)
	if err := h(patience.Context(t), order{ID: "1"}); err != nil || runs != 2 {
		t.Errorf("%d runs, %v", runs, err)
	}
	inside, outside := driver.Store(&dynamostore.Store{}), middleware.DefaultStore("locks")
	for name, can := range map[string]func(driver.Store) bool{
		"Checker":   func(s driver.Store) bool { _, ok := s.(driver.Checker); return ok },
		"Coalescer": func(s driver.Store) bool { _, ok := s.(driver.Coalescer); return ok },
		"Line":      func(s driver.Store) bool { _, ok := s.(driver.Line); return ok },
	} {
		if can(inside) != can(outside) {
			t.Errorf("driver.%s: %v, and of the default store %v", name, can(inside), can(outside))
		}
	}
}

// TestTransactInDefaultStore shows that a handler can complete its event in a
// transaction although the wrapper opens the table by itself and replays what
// the transaction kept, and that one that runs without a lock is told so.
func TestTransactInDefaultStore(t *testing.T) {
	fake := fakedynamo.New()
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	environment(t, server.URL, "locks")
	client := expect.Value(dynamostore.NewClient(patience.Context(t)))(t)
	expect.Must(t, dynamostore.EnsureTable(t.Context(), client, "locks"))
	expect.Must(t, dynamotest.Create(t.Context(), client, "other-schema", "id"))
	in := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Put: &types.Put{
		TableName: aws.String("other-schema"), Item: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "1"}},
	}}}}
	handle := func(ctx context.Context, o order) (string, error) {
		receipt := "receipt of " + o.ID
		_, err := dynamostore.TransactWithResult(ctx, client, in, receipt)
		return receipt, err
	}
	before := fake.Requests()
	h := middleware.WithLock(byOrder, handle, noLog, middleware.OnCompleted(middleware.Replay))
	if r, err := h(patience.Context(t), order{ID: "1"}); err != nil || r != "receipt of 1" || fake.Item("other-schema", "1") == nil || fake.Requests()-before != 2 {
		t.Errorf("%q, %v after %d requests", r, err, fake.Requests()-before)
	}
	if r, err := h(patience.Context(t), order{ID: "1"}); err != nil || r != "receipt of 1" || fake.Requests()-before != 3 {
		t.Errorf("a duplicate: %q, %v after %d requests", r, err, fake.Requests()-before)
	}
	fake.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return fakedynamo.DropBefore })
	open := middleware.WithLock(byOrder, handle, noLog, middleware.FailOpen())
	if _, err := open(patience.Context(t), order{ID: "2"}); !errors.As(err, new(*lock.ConfigError)) {
		t.Errorf("without a lock: %v, want a ConfigError", err)
	}
}

// TestDefaultStoreIsShared shows that all wrappers of a process that use one
// table share one client, and open one connection during INIT.
func TestDefaultStoreIsShared(t *testing.T) {
	fake := fakedynamo.New()
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	environment(t, server.URL, "locks")
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9001")
	var opened atomic.Int64
	fake.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
		if r.Operation == "DescribeEndpoints" {
			opened.Add(1)
		}
		return fakedynamo.None
	})
	handle := func(context.Context, order) error { return nil }
	own := expect.Value(dynamostore.Open(t.Context(), "locks"))(t)
	for _, step := range []struct {
		name string
		opts []middleware.Option
		want int64
	}{
		{"first wrapper", nil, 1},
		{"second wrapper", nil, 1},
		{"the same table by name", []middleware.Option{middleware.Store(middleware.DefaultStore("locks"))}, 1},
		{"another table", []middleware.Option{middleware.Store(middleware.DefaultStore("others"))}, 2},
		{"its own client", []middleware.Option{middleware.Store(own)}, 3},
	} {
		t.Run(step.name, func(t *testing.T) {
			middleware.WithLock(byOrder, handle, step.opts...)
			if got := opened.Load(); got != step.want {
				t.Errorf("%d connections were opened during INIT, want %d", got, step.want)
			}
		})
	}
}

// checked is a store that takes long to look at its server.
type checked struct {
	*memstore.Store
	checks int
	asked  time.Duration // how long Check may take
}

func (c *checked) Check(ctx context.Context) error {
	c.checks++
	deadline, _ := ctx.Deadline()
	c.asked = time.Until(deadline)
	<-ctx.Done()
	return ctx.Err()
}

// TestStoreIsCheckedDuringINIT: a store that has to find out about its server
// does so before the first event, but does not keep the function from starting.
func TestStoreIsCheckedDuringINIT(t *testing.T) {
	handle := func(context.Context, order) error { return nil }
	synctest.Test(t, func(t *testing.T) {
		store := &checked{Store: memstore.New()}
		middleware.WithLock(byOrder, handle, middleware.Store(store))
		if store.checks != 0 {
			t.Error("checked outside Lambda")
		}
		t.Setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9001")
		middleware.WithLock(byOrder, handle, middleware.Store(store))
		if store.checks != 1 || store.asked != 5*time.Second {
			t.Errorf("%d checks, of %v", store.checks, store.asked)
		}
	})
}

// TestDefaultStoreIsOnePerTable shows that the table may be named or left to
// the environment.
func TestDefaultStoreIsOnePerTable(t *testing.T) {
	environment(t, "http://127.0.0.1:1", "locks")
	if middleware.DefaultStore("") != middleware.DefaultStore("locks") {
		t.Error("the table of the environment has two stores")
	}
	if middleware.DefaultStore("others") == middleware.DefaultStore("locks") {
		t.Error("two tables have one store")
	}
}

// TestDefaultStoreIsSafeForConcurrentUse shows that all who ask at the same
// time for the store of a table get the same one.
func TestDefaultStoreIsSafeForConcurrentUse(t *testing.T) { // F39
	environment(t, "http://127.0.0.1:1", "locks")
	var all sync.WaitGroup
	start := make(chan struct{})
	var got [16][100]driver.Store
	for i := range got {
		all.Go(func() {
			<-start
			for j := range got[i] {
				got[i][j] = middleware.DefaultStore(fmt.Sprint("table", j))
			}
		})
	}
	close(start)
	all.Wait()
	for i := range got {
		if got[i] != got[0] {
			t.Error("one table has two stores")
		}
	}
}

// TestDefaultStoreWithoutATable shows that every request reports the missing
// name, and that the store opens once the environment has it.
func TestDefaultStoreWithoutATable(t *testing.T) {
	table := expect.Value(localtable.Start(t.Context(), "locks"))(t)
	t.Cleanup(table.Close)
	environment(t, table.URL, "")
	store := middleware.DefaultStore("")
	check := store.(driver.Checker).Check
	for name, request := range map[string]func() error{
		"acquire": func() error { _, _, err := store.Acquire(t.Context(), &driver.Claim{}); return err },
		"renew":   func() error { _, _, err := store.Renew(t.Context(), &driver.Renewal{}); return err },
		"release": func() error { _, _, err := store.Settle(t.Context(), &driver.Settlement{}); return err },
		"check":   func() error { return check(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := request(); !errors.As(err, new(*lock.ConfigError)) {
				t.Errorf("%v, want a ConfigError", err)
			}
		})
	}
	t.Setenv("LOCK_TABLE_NAME", "locks")
	if err := check(t.Context()); err != nil {
		t.Errorf("with a table: %v", err)
	}
}

// TestDefaultStoreIsSharedAtOnce shows that many wrappers may be made and used
// at the same time, each on its own goroutine, with one client and no overlap.
func TestDefaultStoreIsSharedAtOnce(t *testing.T) { // F39
	table := expect.Value(localtable.Start(patience.Context(t), "locks"))(t)
	t.Cleanup(table.Close)
	environment(t, table.URL, "locks")
	var all sync.WaitGroup
	var running, ran atomic.Int64
	stores := make(chan driver.Store, 16)
	for range 16 {
		all.Go(func() {
			h := middleware.WithLock(lockPerOrder, func(context.Context, order) error {
				if running.Add(1) > 1 {
					t.Error("two handlers run at the same time")
				}
				defer running.Add(-1)
				ran.Add(1)
				return nil
			}, middleware.OnHeld(middleware.Wait(time.Minute)))
			expect.OK(t, h(patience.Context(t), order{ID: "1"}))
			stores <- middleware.DefaultStore("")
		})
	}
	all.Wait()
	close(stores)
	for s := range stores {
		if s != middleware.DefaultStore("locks") {
			t.Error("a wrapper has another store")
		}
	}
	if n := ran.Load(); n != 1 {
		t.Errorf("one event ran %d times", n)
	}
}

// TestDefaultStoreOpensOnce shows that a client is built for the first request
// only, however often the store is used.
func TestDefaultStoreOpensOnce(t *testing.T) {
	table := expect.Value(localtable.Start(patience.Context(t), "locks"))(t)
	t.Cleanup(table.Close)
	environment(t, table.URL, "locks")
	h := middleware.WithLock(lockPerOrder, func(context.Context, order) error { return nil })
	for _, id := range []string{"1", "2"} {
		expect.OK(t, h(patience.Context(t), order{ID: id}))
		t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1") // where another client would go
	}
}

// TestDefaultStoreOpensAgain shows that a store which could not be opened is
// opened by a later request.
func TestDefaultStoreOpensAgain(t *testing.T) { // F10
	table := expect.Value(localtable.Start(patience.Context(t), "locks"))(t)
	t.Cleanup(table.Close)
	environment(t, table.URL, "locks")
	h := middleware.WithLock(lockPerOrder, func(context.Context, order) error { return nil }, noLog)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	if err := h(patience.Context(t), order{ID: "1"}); !errors.As(err, new(*lock.ConfigError)) {
		t.Errorf("without credentials: %v, want a ConfigError", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "local")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "local")
	if err := h(patience.Context(t), order{ID: "1"}); err != nil {
		t.Errorf("with credentials: %v", err)
	}
}

// TestStoresDescribeThemselves shows what observations call a store, before it
// is asked anything.
func TestStoresDescribeThemselves(t *testing.T) {
	t.Parallel()
	for want, store := range map[string]driver.Store{
		"DynamoDB table locks":  middleware.DefaultStore("locks"),
		"DynamoDB table orders": dynamostore.New(nil, "orders"),
		"memory":                memstore.New(),
		"":                      newFixture().faulty,
	} {
		if got := driver.Describe(store); got != want {
			t.Errorf("%T is described as %q, want %q", store, got, want)
		}
	}
}
