package batching_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/internal/robustness/traffic"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/dynamostore/batching"
)

const table = "locks"

// latency is that of a request to the endpoint of a fixture.
const latency = 5 * time.Millisecond

// fixture is a store that sends requests together, without a network.
type fixture struct {
	*fakedynamo.Server
	store *dynamostore.Store
	meter traffic.Meter

	mu   sync.Mutex
	sent []string // the operations, and the texts of PartiQL
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{Server: fakedynamo.New()}
	expect.Must(t, dynamostore.EnsureTable(t.Context(), clientOf(f), table))
	f.store = storeOf(f)
	f.sent = nil
	return f
}

// storeOf returns a store that sends requests together to h.
func storeOf(h http.Handler) *dynamostore.Store {
	return dynamostore.New(batching.Client(clientOf(h)), table)
}

func clientOf(h http.Handler) *dynamodb.Client { return clientOver(fault.InProcess{Handler: h}) }

func clientOver(transport http.RoundTripper) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String("http://dynamodb"), HTTPClient: &http.Client{Transport: transport},
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
}

// split answers requests of several statements with together, and others with
// alone.
func split(alone http.Handler, together http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".BatchExecuteStatement") {
			together(w, r)
			return
		}
		alone.ServeHTTP(w, r)
	}
}

// refusal answers with a status such as "400 ValidationException", with or
// without a code.
func refusal(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		status, code, _ := strings.Cut(answer, " ")
		n, _ := strconv.Atoi(status)
		w.WriteHeader(n)
		_, _ = fmt.Fprintf(w, `{"__type":"com.amazon.coral#%s","message":"said"}`, code)
	}
}

// memberRefusals answers each statement with a code, or "" for success.
func memberRefusals(codes ...types.BatchStatementErrorCodeEnum) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		var out struct{ Responses []map[string]any }
		for _, code := range codes {
			one := map[string]any{}
			if code != "" {
				one["Error"] = map[string]any{"Code": code, "Message": "said"}
			}
			out.Responses = append(out.Responses, one)
		}
		_ = json.NewEncoder(w).Encode(out)
	}
}

// ServeHTTP implements http.Handler.
func (f *fixture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var in struct{ Statements []struct{ Statement string } }
	_ = json.Unmarshal(body, &in)
	f.mu.Lock()
	f.sent = append(f.sent, operation)
	for _, s := range in.Statements {
		f.sent = append(f.sent, s.Statement)
	}
	f.mu.Unlock()
	defer f.meter.Begin(operation, max(1, len(in.Statements)))()
	time.Sleep(latency)
	f.Server.ServeHTTP(w, r)
}

// take returns what was sent, and forgets it.
func (f *fixture) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	sent := f.sent
	f.sent = nil
	return sent
}

// company runs all requests at the same time, in one batch.
func company(ctx context.Context, requests ...func(context.Context)) {
	ctx = invocation.WithBatch(ctx, &invocation.Batch{Claims: len(requests)})
	var all sync.WaitGroup
	for _, request := range requests {
		all.Go(func() { request(ctx) })
	}
	all.Wait()
}

func claimOf(name string) *driver.Claim {
	now := time.Now()
	return &driver.Claim{Name: name, Token: "token of " + name, Now: now, Stamp: now, Until: now.Add(time.Minute), DeleteAfter: now.Add(time.Hour)}
}

// outcome is the answer to a claim.
type outcome struct {
	row driver.Row
	ok  bool
	err error
}

// acquire claims all names together.
func (f *fixture) acquire(ctx context.Context, claims ...*driver.Claim) []outcome {
	outcomes := make([]outcome, len(claims))
	requests := make([]func(context.Context), len(claims))
	for i, c := range claims {
		requests[i] = func(ctx context.Context) {
			o := &outcomes[i]
			o.row, o.ok, o.err = f.store.Acquire(ctx, c)
		}
	}
	company(ctx, requests...)
	return outcomes
}

func (f *fixture) mustAcquire(t *testing.T, claims ...*driver.Claim) {
	t.Helper()
	for i, o := range f.acquire(t.Context(), claims...) {
		if o.err != nil || !o.ok {
			t.Fatalf("claim of %s: %v, %v, %+v", claims[i].Name, o.ok, o.err, o.row)
		}
	}
}

func claimsOf(names string, n int) []*driver.Claim {
	claims := make([]*driver.Claim, n)
	for i := range claims {
		claims[i] = claimOf(fmt.Sprint(names, i))
	}
	return claims
}

// inFakeTime runs a test with a fixture in fake time.
func inFakeTime(t *testing.T, test func(*testing.T, *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newFixture(t)) })
}
