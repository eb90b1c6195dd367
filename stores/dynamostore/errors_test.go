package dynamostore_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/patience"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// TestErrorsNameTheCause shows that an error says what the person who is paged
// has to change, and nothing that would mislead them. It also shows which
// errors are retried.
func TestErrorsNameTheCause(t *testing.T) { // F8, F9, F10, F11
	for name, c := range map[string]struct {
		open    func(t *testing.T, f *fixture) *dynamostore.Store // nil for the fixture's store
		fault   fakedynamo.Fault
		fake    bool // in fake time, without a network
		action  string
		retried bool
		says    []string
		never   []string
	}{
		"deny": {
			fault: fakedynamo.Deny, action: "dynamodb:UpdateItem",
			says: []string{"dynamodb:UpdateItem was denied", "allow the function's role, or who else asked,", "LeadingKeys"},
		},
		"deny key": {
			fault: fakedynamo.DenyKey, action: "kms:Decrypt",
			says: []string{"kms:Decrypt was denied", "encrypted", "or who else asked,"}, never: []string{"dynamodb:UpdateItem was denied"},
		},
		"throttle": {fault: fakedynamo.Throttle, fake: true, retried: true},
		"conflict": {fault: fakedynamo.Conflict, fake: true, retried: true},
		"hang": {
			fault: fakedynamo.Hang, fake: true, retried: true,
			says: []string{"no answer in time", "reach http://dynamodb?", "AWS_ENDPOINT_URL_DYNAMODB"}, never: []string{"StatusCode: 0", "RequestID: ,", "VPC"},
		},
		"hang, at no endpoint of its own": {
			open: func(_ *testing.T, f *fixture) *dynamostore.Store {
				return dynamostore.New(dynamodb.New(f.client.Options(), func(o *dynamodb.Options) { o.BaseEndpoint = nil }), table)
			},
			fault: fakedynamo.Hang, fake: true, retried: true, says: []string{"no answer in time", "VPC", "AWS_REGION"}, never: []string{"AWS_ENDPOINT_URL"},
		},
		"drop before": {
			fault: fakedynamo.DropBefore, retried: true,
			says: []string{"no answer: EOF"}, never: []string{"StatusCode: 0", "VPC"},
		},
		"closed port": {
			open: func(*testing.T, *fixture) *dynamostore.Store {
				srv := httptest.NewServer(nil)
				srv.Close()
				return dynamostore.New(client(srv.URL), table)
			},
			retried: true,
			says:    []string{"connection refused", "AWS_ENDPOINT_URL_DYNAMODB"}, never: []string{"StatusCode: 0", "VPC"},
		},
		"unknown host": {
			open: func(*testing.T, *fixture) *dynamostore.Store {
				return dynamostore.New(client("http://dynamodb.nowhere.invalid"), table)
			},
			retried: true,
			says:    []string{"no such host", "AWS_ENDPOINT_URL_DYNAMODB"}, never: []string{"StatusCode: 0"},
		},
		"page of a proxy": {
			open: answering(http.StatusForbidden, "<html>Forbidden</html>"), retried: true, says: []string{"not an answer of DynamoDB", "AWS_ENDPOINT_URL_DYNAMODB", "proxies"}, never: []string{"VPC"},
		},
		"proxy without upstream": {
			open: answering(http.StatusBadGateway, "<html>Bad Gateway</html>"), retried: true, never: []string{"AWS_ENDPOINT_URL_DYNAMODB"},
		},
		"refusal that was cut off":        {open: answering(http.StatusBadRequest, `{"__type":"com.amazonaws.dyn`), retried: true},
		"refusal whose connection broke":  {open: breaking(http.StatusBadRequest, syscall.ECONNRESET), retried: true, never: []string{"not an answer"}},
		"refusal whose connection closed": {open: breaking(http.StatusBadRequest, net.ErrClosed), retried: true, never: []string{"not an answer"}},
		"unknown credentials": {
			open: func(_ *testing.T, f *fixture) *dynamostore.Store {
				return dynamostore.New(refusing{f.client, "UnrecognizedClientException"}, table)
			},
			says: []string{"credentials"},
		},
		"missing table": {
			open: func(_ *testing.T, f *fixture) *dynamostore.Store { return dynamostore.New(f.client, "missing") },
			says: []string{"DynamoDB table missing", "create-table", "in this account in eu-central-1: "},
		},
		"no name, as of a variable that is not set": {
			open: func(_ *testing.T, f *fixture) *dynamostore.Store { return dynamostore.New(f.client, "") },
			says: []string{"the table's name is empty", "LOCK_TABLE_NAME"}, never: []string{"correct its name"},
		},
		"no name, as DynamoDB answers": {
			open: func(_ *testing.T, f *fixture) *dynamostore.Store {
				return dynamostore.New(refusing{f.client, "ValidationException"}, "")
			},
			says: []string{"the table's name is empty"},
		},
		"missing table, a client that hides its Region": {
			open: func(_ *testing.T, f *fixture) *dynamostore.Store {
				return dynamostore.New(refusing{f.client, "ResourceNotFoundException"}, table)
			},
			says: []string{"create-table", "in this account and Region: "},
		},
		"wrong key": {
			open: func(t *testing.T, f *fixture) *dynamostore.Store {
				createTable(t, f, "other-table", "id")
				return dynamostore.New(f.client, "other-table")
			},
			says: []string{`a partition key named "lock"`},
		},
	} {
		check := func(t *testing.T, f *fixture) {
			if c.open != nil {
				f.store = c.open(t, f)
			}
			f.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return c.fault })
			ctx := t.Context()
			if !c.retried {
				ctx = patience.Context(t)
			}
			_, err := f.locker(t, lock.Options{}).Acquire(ctx, lock.Key{Name: "n"})
			se, ok := err.(*lock.StoreError)
			if !ok || se.Action != c.action || c.retried != (se.Requests > 1) {
				t.Fatalf("%+v", err)
			}
			for _, s := range append(c.says, "DynamoDB table ") {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("no %q in %v", s, err)
				}
			}
			for _, s := range append(c.never, "\n") {
				if strings.Contains(err.Error(), s) {
					t.Errorf("%q in %v", s, err)
				}
			}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.fake {
				synctest.Test(t, func(t *testing.T) { check(t, newFakeFixture(t)) })
				return
			}
			check(t, newFixture(t))
		})
	}
}

// answering opens a store whose server gives this answer to everything.
func answering(status int, body string) func(*testing.T, *fixture) *dynamostore.Store {
	return func(t *testing.T, _ *fixture) *dynamostore.Store {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(srv.Close)
		return dynamostore.New(client(srv.URL), table)
	}
}

// breaking opens a store whose connections break within each answer.
func breaking(status int, cause error) func(*testing.T, *fixture) *dynamostore.Store {
	return func(*testing.T, *fixture) *dynamostore.Store {
		return dynamostore.New(dynamodb.New(dynamodb.Options{
			Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
			HTTPClient: smithyhttp.ClientDoFunc(func(*http.Request) (*http.Response, error) {
				body := iotest.ErrReader(&net.OpError{Op: "read", Net: "tcp", Err: cause})
				return &http.Response{StatusCode: status, Body: io.NopCloser(body)}, nil
			}),
		}), table)
	}
}

// refusing is a client whose requests are answered with an error code.
type refusing struct {
	dynamostore.Client
	code string
}

func (c refusing) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return nil, &smithy.GenericAPIError{Code: c.code}
}

// tooLarge sends a key that is longer than DynamoDB takes.
type tooLarge struct{ dynamostore.Client }

func (c tooLarge) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	in.Key["lock"] = &types.AttributeValueMemberS{Value: strings.Repeat("x", 3000)}
	return c.Client.UpdateItem(ctx, in, opts...)
}

// TestValidationError shows that the table's key is not blamed for every
// request that DynamoDB finds invalid.
func TestValidationError(t *testing.T) { // F10
	t.Parallel()
	f := newFixture(t)
	l, err := lock.New(dynamostore.New(tooLarge{f.client}, table), &lock.Options{Logger: discard})
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Acquire(patience.Context(t), lock.Key{Name: "n"})
	if !strings.Contains(err.Error(), "Size of hashkey has exceeded") || strings.Contains(err.Error(), "needs a partition key") {
		t.Errorf("got %v, want the server's reason and no hint about the table's key", err)
	}
}

// TestConflictsOverHTTP shows that both kinds of conflict are retried. The SDK
// retries neither.
func TestConflictsOverHTTP(t *testing.T) { // F9, F45
	for name, fault := range map[string]fakedynamo.Fault{"conflict": fakedynamo.Conflict, "replicated conflict": fakedynamo.ReplicatedConflict} {
		for op, at := range map[string]int{"acquire": 0, "renew": 1, "complete": 1} {
			t.Run(op+", "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFakeFixture(t)
					f.failUpdates(fault, at, 2)
					if n := f.cycle(t, op); op != "renew" && n != 4 {
						t.Errorf("%d requests, want two more than the two of a cycle", n)
					}
				})
			})
		}
	}
}

// heldBack holds back one UpdateItem request until apply is closed. Its sender
// has gone by then.
type heldBack struct {
	http.Handler
	number         int // of the request
	seen           int
	apply, applied chan struct{}
}

func (h *heldBack) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	update := strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".UpdateItem")
	if update {
		h.seen++
	}
	if !update || h.seen != h.number {
		h.Handler.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	late := r.Clone(context.WithoutCancel(r.Context()))
	late.Body = io.NopCloser(bytes.NewReader(body))
	go func() {
		<-h.apply
		h.Handler.ServeHTTP(httptest.NewRecorder(), late)
		close(h.applied)
	}()
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// TestLateRequestOverHTTP shows that a claim is refused if it arrives after its
// sender was refused and gave up.
func TestLateRequestOverHTTP(t *testing.T) { // F44
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBank(t, nil)
		server := &heldBack{Handler: b.Server, number: 2, apply: make(chan struct{}), applied: make(chan struct{})}
		l := newLocker(t, dynamostore.New(clientOf(server), table), lock.Options{Lease: lock.FixedLease(time.Hour)})
		holder := expect.Value(l.Acquire(t.Context(), order))(t)
		if _, err := l.Acquire(t.Context(), order); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("%v, want held", err)
		}
		expect.OK(t, holder.Release())
		close(server.apply)
		<-server.applied
		if _, err := l.Acquire(t.Context(), order); err != nil {
			t.Errorf("got %v, although nobody holds the name", err)
		}
	})
}

// TestLateTakeover shows that the second request of a claim, which takes over
// from a dead owner whose event is kept, is refused if it arrives after the
// claim was given up.
func TestLateTakeover(t *testing.T) { // F2, F44
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBank(t, nil)
		server := &heldBack{Handler: b.Server, number: 3, apply: make(chan struct{}), applied: make(chan struct{})}
		s := dynamostore.New(clientOf(server), table)
		now := time.Now()
		claim := func(token string, at time.Time) *driver.Claim {
			return &driver.Claim{Name: "n", Token: token, Event: token, Holder: token, Now: at, Stamp: at, Until: at.Add(time.Second), DeleteAfter: at.Add(time.Hour), InterruptedFor: time.Hour}
		}
		expect.Granted(s.Acquire(t.Context(), claim("dead", now)))(t)
		late := claim("late", now.Add(2*time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, ok, err := s.Acquire(ctx, late); ok || err == nil {
			t.Errorf("the second request was not held back: %v, %v", ok, err)
		}
		if _, _, err := s.Settle(t.Context(), &driver.Settlement{Name: "n", Token: "late", Stamp: late.Stamp, DeleteAfter: late.DeleteAfter, Abandon: true}); err != nil {
			t.Error(err)
		}
		close(server.apply)
		<-server.applied
		if row, ok, err := s.Acquire(t.Context(), claim("next", now.Add(2500*time.Millisecond))); !ok || err != nil || row.Previous.Holder != "dead" {
			t.Errorf("granted %v, error %v, after %q", ok, err, row.Previous.Holder)
		}
	})
}

// TestGivingUpNeedsNoAnswer shows that a claim that is given up does not keep
// the name, even if every answer is lost.
func TestGivingUpNeedsNoAnswer(t *testing.T) { // F2
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBank(t, nil)
		b.OnRequest(func(fakedynamo.Request) fakedynamo.Fault { return fakedynamo.ApplyThenDrop })
		l := b.locker(t, lock.Options{Lease: lock.FixedLease(time.Hour)})
		if _, err := l.Acquire(t.Context(), order); !errors.As(err, new(*lock.StoreError)) {
			t.Fatal(err)
		}
		b.OnRequest(nil)
		if _, err := l.Acquire(t.Context(), order); err != nil {
			t.Errorf("got %v, although nobody holds the name", err)
		}
	})
}
