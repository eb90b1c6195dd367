package s3store_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/s3store"
)

// TestCallsAreThoseShipped runs the conformance suite and compares the actions
// that its requests need with those of the policies that are documented, and
// checks that no request leaves the prefix.
func TestCallsAreThoseShipped(t *testing.T) { // F40
	server, client := newServer(t)
	store := s3store.New(client, bucket, "rows")
	t.Run("suite", func(t *testing.T) {
		locktest.Run(t, locktest.Harness{Open: func(*testing.T) driver.Store { return store }, Advance: func(d time.Duration) { server.advance(d) }})
	})
	expect.Must(t, store.Check(t.Context()))
	needed := map[string]bool{}
	listed := false
	for _, request := range server.requests() {
		method, rest, _ := strings.Cut(request, " ")
		path, _, _ := strings.Cut(rest, " ")
		switch {
		case method == "GET" && strings.TrimSuffix(path, "/") == "/"+bucket:
			listed = true // by a person, not by a function
		case !strings.HasPrefix(path, "/"+bucket+"/rows/"):
			t.Errorf("the request %s is not for the prefix", request)
		case method == "GET":
			needed["s3:GetObject"] = true
		case method == "PUT":
			needed["s3:PutObject"] = true
		default:
			t.Errorf("the request %s needs another action", request)
		}
	}
	if !listed {
		t.Error("the suite listed no rows")
	}
	want := slices.Sorted(maps.Keys(needed))
	for path, pattern := range map[string]string{
		"doc.go":               `"Action": (.*)`,
		"../../docs/STORES.md": `(?m)^\| S3 \| (.s3:[^|]*)\|`,
	} {
		text := expect.Value(os.ReadFile(path))(t)
		allowed := map[string]bool{}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			for _, action := range regexp.MustCompile(`s3:\w+`).FindAllString(m[1], -1) {
				allowed[action] = true
			}
		}
		if got := slices.Sorted(maps.Keys(allowed)); !slices.Equal(got, want) {
			t.Errorf("the suite needs %q, but %s allows %q", want, path, got)
		}
	}
}

// TestWithoutListBucket: S3 answers 403 if an object does not exist and the
// caller may not list the bucket. Locks do not need to know more.
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
func TestWithoutListBucket(t *testing.T) { // F40
	server, client := newServer(t)
	server.fault = func(r *http.Request) *http.Response {
		if r.Method != http.MethodGet {
			return nil
		}
		response, err := fault.InProcess{Handler: server.handler}.RoundTrip(r)
		if err == nil && response.StatusCode == http.StatusOK && !r.URL.Query().Has("list-type") {
			return nil
		}
		return answers(403, "AccessDenied", "Access Denied")
	}
	t.Run("suite", func(t *testing.T) {
		store := unlisted{s3store.New(client, bucket, "rows")}
		locktest.Run(t, locktest.Harness{Open: func(*testing.T) driver.Store { return store }, Advance: server.advance})
	})
	t.Run("new names after a known one", func(t *testing.T) {
		store := s3store.New(client, bucket, "names")
		for _, name := range []string{"a", "b", "a", "c", "d"} {
			c := claimAt(server.Now(), name, "token "+name)
			expect.Granted(store.Acquire(t.Context(), c))(t)
			expect.Granted(s3store.New(client, bucket, "names").Settle(t.Context(), settlement(c)))(t)
			server.advance(time.Second)
		}
	})
	t.Run("without GetObject", func(t *testing.T) {
		expect.Granted(s3store.New(client, bucket, "denied").Acquire(t.Context(), claimAt(server.Now(), "n", "a")))(t)
		before := server.fault
		server.fault = func(r *http.Request) *http.Response {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/n") {
				return answers(403, "AccessDenied", "Access Denied")
			}
			return before(r)
		}
		_, ok, err := s3store.New(client, bucket, "denied").Acquire(t.Context(), claimAt(server.Now(), "n", "b"))
		if ok {
			t.Error("granted")
		}
		var e *driver.Error
		if !errors.As(err, &e) || e.Action != "s3:GetObject" || !e.Lasting || !strings.Contains(e.Hint, "s3:GetObject") {
			t.Errorf("got %v", err)
		}
	})
}

// unlisted is a store of a caller who may not list objects. It cannot tell a
// row that was deleted from one that it may not read, so without a row its
// renewals and releases fail. The suite wants them refused.
type unlisted struct{ driver.Store }

func (s unlisted) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	return refusedIfDenied(s.Store.Renew(ctx, r))
}

func (s unlisted) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	return refusedIfDenied(s.Store.Settle(ctx, t))
}

func refusedIfDenied(row driver.Row, ok bool, err error) (driver.Row, bool, error) {
	var e *driver.Error
	if errors.As(err, &e) && e.Action == "s3:GetObject" && e.Lasting {
		err = nil
	}
	return row, ok, err
}
