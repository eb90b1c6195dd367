package middleware_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/dynamostore/dynamotest"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestFailOpen shows that the handler runs without a lock only if the store
// does not answer. It does not run after a mistake in the deployment, any
// answer, or the end of the invocation.
func TestFailOpen(t *testing.T) { // F10, F13
	t.Parallel()
	all := func(f fakedynamo.Fault) func(int, context.CancelFunc) fakedynamo.Fault {
		return func(int, context.CancelFunc) fakedynamo.Fault { return f }
	}
	for name, c := range map[string]struct {
		table string
		fault func(request int, cancel context.CancelFunc) fakedynamo.Fault
		runs  bool
	}{
		"no answer":         {"locks", all(fakedynamo.Hang), true},
		"broken connection": {"locks", all(fakedynamo.DropBefore), true},
		"lost answers":      {"locks", all(fakedynamo.ApplyThenDrop), true},
		"throttled, then silent": {"locks", func(request int, _ context.CancelFunc) fakedynamo.Fault {
			if request == 1 {
				return fakedynamo.Throttle
			}
			return fakedynamo.Hang // to the end of the budget
		}, false},
		"internal server error":  {"locks", all(fakedynamo.ApplyThen500), true},
		"throttled":              {"locks", all(fakedynamo.Throttle), false},
		"conflict":               {"locks", all(fakedynamo.Conflict), false},
		"denied action":          {"locks", all(fakedynamo.Deny), false},
		"typo in the table name": {"lokks", all(fakedynamo.None), false},
		"other schema":           {"other-schema", all(fakedynamo.None), false},
		"cancelled meanwhile": {"locks", func(_ int, cancel context.CancelFunc) fakedynamo.Fault {
			cancel()
			return fakedynamo.Hang
		}, false},
		"nothing wrong": {"locks", all(fakedynamo.None), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fake := fakedynamo.New()
				client := inProcess(fake)
				expect.Must(t, dynamostore.EnsureTable(t.Context(), client, "locks"))
				expect.Must(t, dynamotest.Create(t.Context(), client, "other-schema", "id"))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				requests := 0
				fake.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { requests++; return c.fault(requests, cancel) })
				checkFailOpen(t, ctx, dynamostore.New(client, c.table), c.runs)
			})
		})
	}
}

// TestFailOpenWithoutDynamoDB: nobody is at the address, or somebody else.
func TestFailOpenWithoutDynamoDB(t *testing.T) { // F10, F13
	nobody := httptest.NewServer(nil) // its port is closed
	nobody.Close()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<html>Forbidden</html>")
	}))
	t.Cleanup(proxy.Close)
	for name, c := range map[string]struct {
		url, table string
		runs       bool
	}{
		"closed port":     {nobody.URL, "locks", true},
		"page of a proxy": {proxy.URL, "locks", false},
		"no table name":   {nobody.URL, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, c.url, c.table)
			patience := time.Minute // of which 2 s are for the acquire: an answer may be late on a busy machine
			if c.runs {
				patience = 5 * time.Second // 500 ms: they pass
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			checkFailOpen(t, ctx, middleware.DefaultStore(""), c.runs)
		})
	}
}

func checkFailOpen(t *testing.T, ctx context.Context, store driver.Store, runs bool) {
	t.Helper()
	ran := false
	h := middleware.WithLock(lockPerOrder, func(context.Context, order) error { ran = true; return nil },
		middleware.Store(store), middleware.FailOpen(), noLog)
	if err := h(ctx, order{ID: "1"}); ran != runs || ran != (err == nil) {
		t.Errorf("ran: %v, want %v; %T %v", ran, runs, err, err)
	}
}

// TestFailOpenOfAnEndedInvocation shows that nothing runs after the invocation
// was cancelled.
func TestFailOpenOfAnEndedInvocation(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.faulty.Always(fault.Acquire, fault.DropBefore)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(io.ErrClosedPipe)
	h := middleware.WithLock(byOrder, func(context.Context, order) error { t.Error("ran"); return nil }, f.options(middleware.FailOpen())...)
	if err := h(ctx, order{ID: "1"}); !errors.As(err, new(*lock.StoreError)) {
		t.Errorf("%v, want the StoreError", err)
	}
	f.want(t, lock.OutcomeRefused) // by its caller: the store was not asked
}

// TestFailOpenAsksWhatTheStoreSays shows which errors of a store mean that it
// gave no answer: those that are temporary without an answer, and those that
// the store did not classify.
func TestFailOpenAsksWhatTheStoreSays(t *testing.T) { // F13, F57
	for name, c := range map[string]struct {
		err  error
		runs bool
	}{
		"temporary":           {&driver.Error{}, true},
		"never sent":          {&driver.Error{Unapplied: true}, true},
		"throttled":           {&driver.Error{Answered: true, Unapplied: true}, false},
		"throttled at last":   {&driver.Error{Answered: true}, false}, // an earlier attempt had no answer
		"refused":             {&driver.Error{Lasting: true, Answered: true, Unapplied: true}, false},
		"permanent":           {&driver.Error{Lasting: true}, false}, // a mistake, not an outage
		"wrong configuration": {&lock.ConfigError{Reason: "no table"}, false},
		"not classified":      {io.ErrUnexpectedEOF, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ran := false
				store := fault.Hooks{Store: memstore.New(), OnAcquire: func(context.Context, *driver.Claim) (driver.Row, bool, error) {
					return driver.Row{}, false, c.err
				}}
				h := middleware.WithLock(byOrder, func(context.Context, order) error { ran = true; return nil }, middleware.FailOpen(),
					middleware.Store(store), noLog)
				if err := h(t.Context(), order{ID: "1"}); ran != c.runs || ran != (err == nil) {
					t.Errorf("ran: %v, want %v; %v", ran, c.runs, err)
				}
			})
		})
	}
}

// TestFailOpenWithAStream shows that a streamed result reaches the runtime
// unchanged if there is no lock that its end could release.
func TestFailOpenWithAStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.faulty.Always(fault.Acquire, fault.DropBefore)
		body := strings.NewReader("body")
		h := middleware.WithLock(byOrder, func(context.Context, order) (io.Reader, error) { return body, nil },
			f.options(middleware.FailOpen())...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r, err := h(ctx, order{ID: "1"}); r != body || err != nil {
			t.Errorf("got %v, %v", r, err)
		}
	})
}

// TestFailOpenInsideALock shows what a handler sees that runs without its lock
// inside another wrapper: no lease. The lock around it is still known to those
// inside.
func TestFailOpenInsideALock(t *testing.T) { // F13
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		outer, inner := newFixture(), newFixture()
		inner.faulty.Always(fault.Acquire, fault.DropBefore)
		var ran, nested bool
		around := func(context.Context, order) (lock.Key, error) { return lock.Key{Name: "around"}, nil }
		h := middleware.WithLock(around, middleware.WithLock(byOrder, func(ctx context.Context, o order) error {
			ran = true
			if lease, ok := lock.FromContext(ctx); ok {
				t.Errorf("the handler seems to have a lease of %q", lease.Key.Name)
			}
			if all := lock.Leases(ctx); len(all) != 1 || all[0].Key.Name != "around" {
				t.Errorf("leases %+v", all)
			}
			again := middleware.WithLock(around, func(context.Context, order) error { return nil }, outer.options()...)
			if err := again(ctx, o); !errors.As(err, new(*lock.ConfigError)) {
				t.Errorf("the same name inside itself: %v", err)
			}
			other := middleware.WithLock(lockPerOrder, func(ctx context.Context, _ order) error {
				lease, ok := lock.FromContext(ctx)
				nested = ok && lease.Key.Name == "1" && len(lock.Leases(ctx)) == 2
				return nil
			}, outer.options()...)
			return other(ctx, o)
		}, inner.options(middleware.FailOpen())...), outer.options()...)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := h(ctx, order{ID: "1"}); err != nil || !ran || !nested {
			t.Errorf("ran: %v, with a lock inside: %v, %v", ran, nested, err)
		}
	})
}
