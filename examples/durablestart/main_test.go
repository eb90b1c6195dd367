package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/credentials"
	lambdaclient "github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/lambdalock/lambdalock/lock"
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
	name := idFor("fulfil", lock.Key{Name: "order/o-17", Event: "o-17"})
	if len(x.payloads) != 1 || x.payloads[name] != o17 || x.starts != 2 {
		t.Errorf("executions %q after %d starts; want %s after 2", x.payloads, x.starts, name)
	}
}

// TestIDFor: the id of an effect does not change with the delivery, the fence
// does.
func TestIDFor(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	leaseOf := func(k lock.Key) lock.Lease {
		var lease lock.Lease
		handler := middleware.WithLock(func(context.Context, string) (lock.Key, error) { return k, nil }, func(ctx context.Context, _ string) error {
			lease, _ = lock.FromContext(ctx)
			return http.ErrNotSupported // so that the next delivery runs
		}, middleware.Store(store))
		_ = handler(t.Context(), "") // the error above
		return lease
	}
	k := lock.Key{Name: "s3/bucket/a", Event: "0055"}
	first, second := leaseOf(k), leaseOf(k)
	if idFor("charge", first.Key) != idFor("charge", second.Key) || first.Fence >= second.Fence {
		t.Errorf("first delivery %+v, second %+v: want the same id and a larger fence", first, second)
	}
	for what, other := range map[string]string{
		"another effect":               idFor("refund", k),
		"the event of another object":  idFor("charge", lock.Key{Name: "s3/bucket/b", Event: "0055"}),
		"another event of the object":  idFor("charge", lock.Key{Name: "s3/bucket/a", Event: "0056"}),
		"the same text, cut elsewhere": idFor("charge", lock.Key{Name: "s3/bucket/a0055", Event: ""}),
	} {
		if other == idFor("charge", k) {
			t.Errorf("%s has the same id", what)
		}
	}
}
