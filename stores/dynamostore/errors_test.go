package dynamostore_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// TestErrorsNameTheCause: what the person who is paged has to change stands in the
// error, and nothing that would send them elsewhere.
func TestErrorsNameTheCause(t *testing.T) { // F10, F11
	for name, c := range map[string]struct {
		open   func(t *testing.T, e *endpoint) *dynamostore.Store
		fault  fakedynamo.Fault
		action string
		says   []string
		never  []string
	}{
		"key denied": {
			fault: fakedynamo.DenyKey, action: "kms:Decrypt",
			says: []string{"kms:Decrypt was denied", "encrypted"}, never: []string{"dynamodb:UpdateItem was denied"},
		},
		"action denied": {
			fault: fakedynamo.Deny, action: "dynamodb:UpdateItem",
			says: []string{"dynamodb:UpdateItem was denied", "role", "LeadingKeys"},
		},
		"no answer": {
			fault: fakedynamo.Hang,
			says:  []string{"no answer in time", "VPC", "AWS_REGION"}, never: []string{"StatusCode: 0", "RequestID: ,"},
		},
		"connection lost": {
			fault: fakedynamo.DropBefore,
			says:  []string{"no answer: EOF"}, never: []string{"StatusCode: 0", "VPC"},
		},
		"nobody listens": {
			open: func(t *testing.T, _ *endpoint) *dynamostore.Store {
				srv := httptest.NewServer(nil)
				srv.Close()
				return dynamostore.New(client(srv.URL), table)
			},
			says: []string{"connection refused", "VPC"}, never: []string{"StatusCode: 0"},
		},
		"unknown host": {
			open: func(*testing.T, *endpoint) *dynamostore.Store {
				return dynamostore.New(client("http://dynamodb.nowhere.invalid"), table)
			},
			says: []string{"dynamodb.nowhere.invalid", "AWS_REGION"}, never: []string{"StatusCode: 0"},
		},
		"wrong key": {
			open: func(t *testing.T, e *endpoint) *dynamostore.Store {
				createTable(t, e, "other-table", "id")
				return dynamostore.New(e.client, "other-table")
			},
			says: []string{`a partition key named "lock"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEndpoint(t)
			store := e.store
			if c.open != nil {
				store = c.open(t, e)
			}
			e.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return c.fault })
			l, err := lock.New(store, &lock.Options{Logger: discard})
			if err != nil {
				t.Fatal(err)
			}
			_, err = l.Acquire(t.Context(), lock.Key{Name: "n"})
			var se *lock.StoreError
			if !errors.As(err, &se) || se.Action != c.action {
				t.Fatalf("%+v", err)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("no %q in %v", s, err)
				}
			}
			for _, s := range append(c.never, "\n") {
				if strings.Contains(err.Error(), s) {
					t.Errorf("%q in %v", s, err)
				}
			}
		})
	}
}

// refusesSize answers as DynamoDB does where an item gets too large.
type refusesSize struct{ dynamostore.Client }

func (r refusesSize) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	in.Key["lock"] = &types.AttributeValueMemberS{Value: strings.Repeat("x", 3000)}
	return r.Client.UpdateItem(ctx, in, opts...)
}

// TestValidationError: not every request that DynamoDB cannot validate is the
// fault of the table's key.
func TestValidationError(t *testing.T) { // F10
	t.Parallel()
	e := newEndpoint(t)
	l, err := lock.New(dynamostore.New(refusesSize{e.client}, table), &lock.Options{Logger: discard})
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Acquire(t.Context(), lock.Key{Name: "n"})
	if !strings.Contains(err.Error(), "Size of hashkey has exceeded") || strings.Contains(err.Error(), "needs a partition key") {
		t.Errorf("%v: want the server's reason, and not the table's key", err)
	}
}

// TestConflictsOverHTTP: the SDK repeats neither kind of conflict.
func TestConflictsOverHTTP(t *testing.T) { // F9, F45
	for name, fault := range map[string]fakedynamo.Fault{"transaction": fakedynamo.Conflict, "another Region": fakedynamo.ReplicatedConflict} {
		for _, op := range []string{"acquire", "renew", "complete"} {
			t.Run(name+", "+op, func(t *testing.T) {
				t.Parallel()
				e := newEndpoint(t)
				first := map[string]int{"acquire": 0, "renew": 1, "complete": 1}[op]
				e.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
					if r.Operation == "UpdateItem" && r.N >= first && r.N < first+2 {
						return fault
					}
					return fakedynamo.None
				})
				o := lock.Options{}
				renewed := make(chan struct{}, 100)
				if op == "renew" {
					o.Lease = lock.Heartbeat(3 * time.Second)
					o.Observe = func(_ context.Context, o lock.Observation) {
						if o.Outcome == lock.OutcomeRenewed {
							renewed <- struct{}{}
						}
					}
				}
				l := e.locker(t, o)
				lk, err := l.Acquire(t.Context(), lock.Key{Name: "n", Event: "e"})
				if err != nil {
					t.Fatal(err)
				}
				if op == "renew" {
					select {
					case <-renewed:
					case <-lk.Context().Done():
						t.Fatal("the lease was lost by a conflict")
					}
				}
				if err := lk.Complete(nil); err != nil {
					t.Fatal(err)
				}
				if n := e.Requests(); op != "renew" && n != 4 {
					t.Errorf("%d requests, want two more than the two of a cycle", n)
				}
				if _, err := l.Acquire(t.Context(), lock.Key{Name: "n", Event: "e"}); !errors.Is(err, lock.ErrCompleted) {
					t.Errorf("next delivery: %v", err)
				}
			})
		}
	}
}

// late keeps one request, the given number of those that write, until it is told to let
// it through: its sender has gone by then.
type late struct {
	http.Handler
	number           int32
	written          atomic.Int32
	arrives, applied chan struct{}
}

func (l *late) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".UpdateItem") || l.written.Add(1) != l.number {
		l.Handler.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	<-l.arrives
	r.Body = io.NopCloser(bytes.NewReader(body))
	l.Handler.ServeHTTP(httptest.NewRecorder(), r)
	close(l.applied)
}

// TestLateRequestOverHTTP: the first attempt arrives when its sender has long been
// refused, and given up.
func TestLateRequestOverHTTP(t *testing.T) { // F44
	t.Parallel()
	e := newEndpoint(t)
	slow := &late{Handler: e.Server, number: 2, arrives: make(chan struct{}), applied: make(chan struct{})}
	srv := httptest.NewServer(slow)
	t.Cleanup(srv.Close)
	l, err := lock.New(dynamostore.New(client(srv.URL), table), &lock.Options{Lease: lock.FixedLease(time.Hour), Logger: discard})
	if err != nil {
		t.Fatal(err)
	}
	holder, err := l.Acquire(t.Context(), lock.Key{Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Acquire(t.Context(), lock.Key{Name: "n"}); !errors.Is(err, lock.ErrHeld) {
		t.Fatalf("%v, want held", err)
	}
	if err := holder.Release(); err != nil {
		t.Fatal(err)
	}
	close(slow.arrives)
	<-slow.applied
	next, err := l.Acquire(t.Context(), lock.Key{Name: "n"})
	if err != nil {
		t.Fatalf("the name is free, and its holder is gone: %v", err)
	}
	if err := next.Release(); err != nil {
		t.Error(err)
	}
}

var discard = slog.New(slog.DiscardHandler)

// TestGivingUpNeedsNoAnswer: where every request is applied and every answer is lost, a
// claim that is given up does not keep the name.
func TestGivingUpNeedsNoAnswer(t *testing.T) { // F2
	t.Parallel()
	e := newEndpoint(t)
	e.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return fakedynamo.ApplyThenDrop })
	l := e.locker(t, lock.Options{Lease: lock.FixedLease(time.Hour)})
	if _, err := l.Acquire(t.Context(), lock.Key{Name: "n"}); !errors.As(err, new(*lock.StoreError)) {
		t.Fatal(err)
	}
	e.OnRequest(nil)
	if _, err := l.Acquire(t.Context(), lock.Key{Name: "n"}); err != nil {
		t.Errorf("nobody holds the name: %v", err)
	}
}
