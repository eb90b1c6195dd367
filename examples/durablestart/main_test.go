package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/credentials"
	lambdaclient "github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// executions starts an execution for each new name, as Lambda does. It does not
// answer the first start.
type executions struct {
	payloads map[string]string // by name
	starts   int
}

func (x *executions) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	name := r.Header.Get("X-Amz-Durable-Execution-Name")
	payload, _ := io.ReadAll(r.Body)
	if earlier, ok := x.payloads[name]; ok && earlier != string(payload) {
		rw.Header().Set("X-Amzn-ErrorType", "DurableExecutionAlreadyStartedException")
		rw.WriteHeader(http.StatusConflict)
		return
	}
	x.payloads[name] = string(payload)
	if x.starts++; x.starts == 1 {
		panic(http.ErrAbortHandler) // the answer is lost
	}
	rw.WriteHeader(http.StatusAccepted)
}

// TestStart: an order whose first start was not answered is delivered again, by
// the queue and by its sender. One execution works on it.
func TestStart(t *testing.T) {
	t.Parallel()
	x := &executions{payloads: map[string]string{}}
	server := httptest.NewServer(x)
	defer server.Close()
	s := starter{function: "fulfil:1", client: lambdaclient.New(lambdaclient.Options{
		Region: "eu-central-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})}
	handler := middleware.EachSQSBody(byOrder, s.start, middleware.Store(memstore.New()))
	deliver := func(id, body string) bool {
		m := events.SQSMessage{MessageId: id, Body: body, EventSource: "aws:sqs"}
		_, err := handler(t.Context(), events.SQSEvent{Records: []events.SQSMessage{m}})
		return err == nil
	}
	const o17 = `{"order":"o-17","amount":1999}`
	if deliver("m-1", o17) {
		t.Error("a start without an answer succeeded")
	}
	if !deliver("m-1", o17) || !deliver("m-2", o17) {
		t.Error("a further delivery failed")
	}
	name, _, err := idUnder(t, memstore.New(), "fulfil", lock.Key{Name: "order/o-17", Event: "o-17"})
	if err != nil || len(x.payloads) != 1 || x.payloads[name] != o17 || x.starts != 2 {
		t.Errorf("executions %q after %d starts; want %s after 2", x.payloads, x.starts, name)
	}
}

// idUnder returns the id that an effect has under locks with these keys, the
// outermost first, and the fence of the innermost.
func idUnder(t *testing.T, store driver.Store, effect string, keys ...lock.Key) (id string, fence int64, err error) {
	handler := func(ctx context.Context, _ string) error {
		lease, _ := lock.FromContext(ctx)
		fence = lease.Fence
		id, err = idFor(ctx, effect)
		return http.ErrNotSupported // so that the next delivery runs
	}
	for _, k := range slices.Backward(keys) {
		handler = middleware.WithLock(func(context.Context, string) (lock.Key, error) { return k, nil }, handler, middleware.Store(store))
	}
	_ = handler(t.Context(), "") // the error above
	return id, fence, err
}

// TestIDFor: the id of an effect does not change with the delivery, nor with a
// lock inside that knows no event. The fence changes with the delivery.
func TestIDFor(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	k, customer := lock.Key{Name: "s3/bucket/a", Event: "0055"}, lock.Key{Name: "customer"}
	first, fence, err := idUnder(t, store, "charge", k)
	again, later, _ := idUnder(t, store, "charge", k)
	inside, _, _ := idUnder(t, store, "charge", k, customer)
	if err != nil || first != again || first != inside || fence >= later {
		t.Errorf("first delivery %s with fence %d, second %s with %d, inside another lock %s, %v: want the same id and a larger fence", first, fence, again, later, inside, err)
	}
	for what, other := range map[string]struct {
		effect string
		keys   []lock.Key
	}{
		"another effect":               {"refund", []lock.Key{k}},
		"the event of another object":  {"charge", []lock.Key{{Name: "s3/bucket/b", Event: "0055"}}},
		"another event of the object":  {"charge", []lock.Key{{Name: "s3/bucket/a", Event: "0056"}}},
		"another event, inside a lock": {"charge", []lock.Key{{Name: "s3/bucket/a", Event: "0056"}, customer}},
		"the same text, cut elsewhere": {"charge", []lock.Key{{Name: "s3/bucket/a00", Event: "55"}}},
	} {
		if id, _, err := idUnder(t, store, other.effect, other.keys...); err != nil || id == first {
			t.Errorf("%s: %s, %v", what, id, err)
		}
	}
	if id, _, err := idUnder(t, store, "charge", customer); err == nil {
		t.Errorf("a lock without an event gives the id %s", id)
	}
}

// unreachable cannot be asked for a lock.
type unreachable struct{ driver.Store }

func (unreachable) Acquire(context.Context, *driver.Claim) (driver.Row, bool, error) {
	return driver.Row{}, false, io.ErrUnexpectedEOF
}

// TestNoIDWithoutLock: a record that runs without its lock does not get the id
// of the lock around it, which is the same for all records.
func TestNoIDWithoutLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locked := func(next func(context.Context, lock.Key) error, opts ...middleware.Option) func(context.Context, lock.Key) error {
			return middleware.WithLock(func(_ context.Context, k lock.Key) (lock.Key, error) { return k, nil }, next, opts...)
		}
		record := locked(func(ctx context.Context, k lock.Key) error {
			if id, err := idFor(ctx, "charge"); err == nil {
				t.Errorf("the record %s has the id %s", k.Event, id)
			}
			return nil
		}, middleware.Store(unreachable{memstore.New()}), middleware.FailOpen())
		batch := locked(func(ctx context.Context, _ lock.Key) error {
			return record(ctx, lock.Key{Name: "order", Event: "o-17"})
		}, middleware.Store(memstore.New()))
		if err := batch(t.Context(), lock.Key{Name: "batch", Event: "b-1"}); err != nil {
			t.Error(err)
		}
	})
}
