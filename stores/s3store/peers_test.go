package s3store_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/s3store"
)

// transport is a function as an http.RoundTripper.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// TestOwnLockIsNotAnothers: a conditional write was applied, its answer was
// lost, and the client's repeated write met 412 because of the lock that the
// first had made; the lock was reported as held by another, and nobody released
// it (opentofu#4405). Here 412 leads to a read, which shows the claim's own
// token.
func TestOwnLockIsNotAnothers(t *testing.T) { // F1
	t.Parallel()
	for name, lost := range map[string]func(sent *http.Request, again func() (*http.Response, error)) (*http.Response, error){
		"broken connection": func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
			return nil, errors.New("connection reset")
		},
		"500 after the write": func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
			return answers(500, "InternalError", ""), nil
		},
		"a proxy sends it again": func(_ *http.Request, again func() (*http.Response, error)) (*http.Response, error) {
			return again()
		},
		"no answer": func(sent *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
			<-sent.Context().Done()
			return nil, sent.Context().Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server, _ := newServer(t)
				left := 1
				client := server.client(func(o *s3.Options) {
					o.HTTPClient = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
						if left == 0 || r.Method != http.MethodPut || strings.Contains(r.URL.Path, "probe") {
							return server.RoundTrip(r)
						}
						left--
						body, err := io.ReadAll(r.Body)
						if err != nil {
							return nil, err
						}
						send := func() (*http.Response, error) {
							r.Body = io.NopCloser(strings.NewReader(string(body)))
							return server.RoundTrip(r)
						}
						if _, err := send(); err != nil {
							return nil, err
						}
						return lost(r, send)
					})}
				})
				locker := expect.Value(lock.New(s3store.New(client, bucket, "rows"), &lock.Options{Logger: discard}))(t)
				key := lock.Key{Name: "n"}
				lk, err := locker.Acquire(t.Context(), key)
				if err != nil || left != 0 {
					t.Fatalf("got %v; %d answers to lose", err, left)
				}
				expect.OK(t, lk.Release())
				if err := locker.Do(t.Context(), key, func(context.Context) error { return nil }); err != nil {
					t.Errorf("the next: %v", err)
				}
			})
		})
	}
}
