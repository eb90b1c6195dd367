package middleware_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// tables makes a lock table, and one with another partition key.
func tables(t *testing.T) {
	t.Helper()
	client, err := dynamostore.OpenClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := dynamostore.EnsureTable(t.Context(), client, "locks"); err != nil {
		t.Fatal(err)
	}
	_, err = client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("other-schema"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFailOpen: only a store that does not answer lets the handler run without a
// lock. Every mistake in the deployment, every answer and the end of the invocation
// keep it from running, or nobody would notice that nothing is locked.
func TestFailOpen(t *testing.T) { // F10, F13
	server := fakedynamo.New()
	srv := httptest.NewServer(server)
	t.Cleanup(srv.Close)
	nobody := httptest.NewServer(nil) // its port is closed
	nobody.Close()
	environment(t, srv.URL, "locks")
	tables(t)
	var asked atomic.Int32
	all := func(f fakedynamo.Fault) func(context.CancelFunc) fakedynamo.Fault {
		return func(context.CancelFunc) fakedynamo.Fault { return f }
	}
	for name, c := range map[string]struct {
		url, table string
		fault      func(context.CancelFunc) fakedynamo.Fault
		runs       bool
	}{
		"no answer":         {srv.URL, "locks", all(fakedynamo.Hang), true},
		"broken connection": {srv.URL, "locks", all(fakedynamo.DropBefore), true},
		"lost answers":      {srv.URL, "locks", all(fakedynamo.ApplyThenDrop), true},
		"closed port":       {nobody.URL, "locks", all(fakedynamo.None), true},
		"throttled, then silent": {srv.URL, "locks", func(context.CancelFunc) fakedynamo.Fault {
			if asked.Add(1) == 1 {
				return fakedynamo.Throttle
			}
			return fakedynamo.Hang // to the end of the budget
		}, false},
		"internal server error":  {srv.URL, "locks", all(fakedynamo.ApplyThen500), true},
		"throttled":              {srv.URL, "locks", all(fakedynamo.Throttle), false},
		"conflict":               {srv.URL, "locks", all(fakedynamo.Conflict), false},
		"denied action":          {srv.URL, "locks", all(fakedynamo.Deny), false},
		"typo in the table name": {srv.URL, "lokks", all(fakedynamo.None), false},
		"no table name":          {srv.URL, "", all(fakedynamo.None), false},
		"other schema":           {srv.URL, "other-schema", all(fakedynamo.None), false},
		"cancelled meanwhile": {srv.URL, "locks", func(cancel context.CancelFunc) fakedynamo.Fault {
			cancel()
			return fakedynamo.Hang
		}, false},
		"nothing wrong": {srv.URL, "locks", all(fakedynamo.None), true},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, c.url, c.table)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // a tenth of it to acquire
			defer cancel()
			server.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return c.fault(cancel) })
			ran := false
			// Each has a name of its own: a lock that was taken without an answer may stay.
			byID := func(_ context.Context, o order) (lock.Key, error) { return lock.Key{Name: o.ID}, nil }
			h := middleware.WithLock(byID, func(context.Context, order) error { ran = true; return nil },
				middleware.FailOpen(), middleware.Logger(slog.New(slog.DiscardHandler)))
			err := h(ctx, order{ID: name})
			if ran != c.runs || ran != (err == nil) {
				t.Errorf("ran: %v, want %v; %T %v", ran, c.runs, err, err)
			}
		})
	}
}

// TestFailOpenOfAnEndedInvocation: whoever cancelled it does not wait for its work.
func TestFailOpenOfAnEndedInvocation(t *testing.T) {
	t.Parallel()
	q := newQuiet()
	q.store.Always(locktest.Acquire, locktest.Drop)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(io.ErrClosedPipe)
	h := middleware.WithLock(byOrder, func(context.Context, order) error { t.Error("ran"); return nil }, q.with(middleware.FailOpen())...)
	if err := h(ctx, order{ID: "1"}); !errors.As(err, new(*lock.StoreError)) {
		t.Errorf("%v, want the StoreError", err)
	}
	q.want(t, lock.OutcomeStoreFailed)
}

// refusingStore fails every acquire with an error of its own.
type refusingStore struct {
	driver.Store
	err error
}

func (s refusingStore) Acquire(context.Context, *driver.Claim) (driver.Row, bool, error) {
	return driver.Row{}, false, s.err
}

// TestFailOpenAsksWhatTheStoreSays: only an error that may pass, and may have been applied,
// is silence. What a store did not classify may be anything, and counts as that.
func TestFailOpenAsksWhatTheStoreSays(t *testing.T) {
	for _, c := range []struct {
		err  error
		runs bool
	}{
		{&driver.Error{Temporary: true}, true},
		{&driver.Error{Temporary: true, Rejected: true}, false},
		{&driver.Error{Rejected: true}, false},
		{&driver.Error{}, false}, // no later try will succeed: a mistake, not an outage
		{&lock.ConfigError{Reason: "no table"}, false},
		{io.ErrUnexpectedEOF, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			ran := false
			h := middleware.WithLock(byOrder, func(context.Context, order) error { ran = true; return nil }, middleware.FailOpen(),
				middleware.Store(refusingStore{memstore.New(), c.err}), middleware.Logger(slog.New(slog.DiscardHandler)))
			if err := h(t.Context(), order{ID: "1"}); ran != c.runs || ran != (err == nil) {
				t.Errorf("%#v: ran: %v, %v", c.err, ran, err)
			}
		})
	}
}
