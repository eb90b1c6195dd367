package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/keyfuncs/services"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// stack receives the answers of custom resources, as CloudFormation does
// through S3.
type stack struct {
	server  *httptest.Server
	mu      sync.Mutex
	down    bool
	answers []string // status and physical id
}

func newStack(t *testing.T) *stack {
	t.Helper()
	before := log.Writer()
	log.SetOutput(io.Discard) // where package cfn writes
	t.Cleanup(func() { log.SetOutput(before) })
	s := &stack{}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer cfn.Response
		err := json.NewDecoder(r.Body).Decode(&answer)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil || s.down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		s.answers = append(s.answers, string(answer.Status)+" "+answer.PhysicalResourceID)
	}))
	t.Cleanup(s.server.Close)
	return s
}

func (s *stack) request() cfn.Event {
	return cfn.Event{RequestType: cfn.RequestCreate, RequestID: "request", ResponseURL: s.server.URL, LogicalResourceID: "Bucket", StackID: "stack"}
}

// want checks the answers so far.
func (s *stack) want(t *testing.T, answers ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.answers, answers) {
		t.Errorf("CloudFormation was answered %q, want %q", s.answers, answers)
	}
}

// TestCloudFormationLockOutside shows that every request is answered once if
// the lock is outside cfn.LambdaWrap, and delivered again if it was not
// answered.
func TestCloudFormationLockOutside(t *testing.T) {
	s := newStack(t)
	ctx, runs, fails := t.Context(), 0, error(nil)
	var f cfn.CustomResourceLambdaFunction
	f = middleware.WithLock(services.CloudFormation, cfn.LambdaWrap(func(_ context.Context, e cfn.Event) (string, map[string]any, error) {
		runs++
		if _, err := f(ctx, e); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("a duplicate of a request in progress: %v, want that Lambda delivers it again", err)
		}
		return "arn:bucket", nil, fails
	}), middleware.Store(memstore.New()), noLog)

	s.down = true
	if _, err := f(ctx, s.request()); err == nil {
		t.Error("a request that could not be answered was acknowledged")
	}
	s.down = false
	if _, err := f(ctx, s.request()); err != nil || runs != 2 {
		t.Errorf("after %d runs: %v", runs, err)
	}
	if _, err := f(ctx, s.request()); err != nil || runs != 2 {
		t.Errorf("a duplicate: %v after %d runs", err, runs)
	}
	s.want(t, "SUCCESS arn:bucket")

	fails = errors.New("no such bucket")
	failing := s.request()
	failing.RequestID = "another"
	for range 2 {
		if _, err := f(ctx, failing); err != nil || runs != 3 {
			t.Errorf("a request that failed was answered so, which completes it: %v after %d runs", err, runs)
		}
	}
	s.want(t, "SUCCESS arn:bucket", "FAILED arn:bucket")
}

// TestCloudFormationLockInside shows why the other order is wrong: a duplicate
// answers for the delivery that is in progress, or with another physical id.
func TestCloudFormationLockInside(t *testing.T) {
	s := newStack(t)
	type resource struct{ ID string }
	var f cfn.CustomResourceLambdaFunction
	working := false
	locked := middleware.WithLock(services.CloudFormation, func(_ context.Context, e cfn.Event) (resource, error) {
		if !working {
			working = true
			if _, err := f(t.Context(), e); err != nil {
				t.Error(err)
			}
			s.want(t, "FAILED request") // of a request that is about to succeed
		}
		return resource{"arn:bucket"}, nil
	}, middleware.Store(memstore.New()), noLog)
	f = cfn.LambdaWrap(func(ctx context.Context, e cfn.Event) (string, map[string]any, error) {
		r, err := locked(ctx, e)
		return r.ID, nil, err
	})
	for range 2 {
		if _, err := f(t.Context(), s.request()); err != nil {
			t.Error(err)
		}
	}
	s.want(t, "FAILED request", "SUCCESS arn:bucket", "SUCCESS request")
}

// For a custom resource, the lock goes around cfn.LambdaWrap, which answers
// CloudFormation.
func ExampleWithLock_cloudFormation() {
	handle := func(ctx context.Context, e cfn.Event) (physicalResourceID string, data map[string]any, err error) {
		return "arn:aws:s3:::pictures", nil, nil
	}
	lambda.Start(middleware.WithLock(services.CloudFormation, cfn.LambdaWrap(handle)))
}
