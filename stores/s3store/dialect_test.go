package s3store_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/s3store"
)

// faultsOfS3 are the faults that end with an answer or a broken connection, and
// what the store makes of them.
var faultsOfS3 = map[fault.Fault]driver.Error{
	fault.DropBefore:    {},
	fault.ApplyThenDrop: {},
	fault.ApplyThenFail: {},
	fault.Truncate:      {},
	fault.Fail:          {},
	fault.Throttle:      {Answered: true},
	fault.Deny:          {Lasting: true, Answered: true, Unapplied: true},
}

// TestInjectedFaults shows that the SDK takes injected faults for those of S3
// and of the network, in reads and writes.
func TestInjectedFaults(t *testing.T) { // F8, F10
	t.Parallel()
	for f, want := range faultsOfS3 {
		for _, method := range []string{http.MethodGet, http.MethodPut} {
			t.Run(method+", "+f.String(), func(t *testing.T) {
				t.Parallel()
				server, plan := startServer(bucket), &fault.Script{}
				store := s3store.New(clientWith(server, plan), bucket, "rows")
				first := claimAt(server.Now(), "n", "a")
				expect.Granted(store.Acquire(t.Context(), first))(t)
				plan.Always(method, f)
				var err error
				if method == http.MethodGet {
					_, _, err = store.Acquire(t.Context(), claimAt(server.Now(), "n", "b"))
				} else {
					_, _, err = store.Settle(t.Context(), settlement(first))
				}
				var e *driver.Error
				if !errors.As(err, &e) || e.Lasting != want.Lasting || e.Answered != want.Answered || e.Unapplied != (want.Unapplied || method == http.MethodGet) || (e.Action != "") != (f == fault.Deny) {
					t.Errorf("got %#v, want %+v", err, want)
				}
				plan.Always(method, fault.None)
				_, free, err := store.Acquire(t.Context(), claimAt(server.Now(), "n", "c"))
				if released := method == http.MethodPut && f.Applied(); free != released || err != nil {
					t.Errorf("then the name is free: %v, want %v; error %v", free, released, err)
				}
			})
		}
	}
}

// TestInjectedConflict: another write is in the way, so the store looks again.
func TestInjectedConflict(t *testing.T) { // F9
	t.Parallel()
	server, plan := startServer(bucket), &fault.Script{}
	store := s3store.New(clientWith(server, plan), bucket, "rows")
	claim := claimAt(server.Now(), "n", "a")
	expect.Granted(store.Acquire(t.Context(), claim))(t)
	puts := plan.Requests(http.MethodPut)
	plan.Plan(http.MethodPut, fault.Conflict)
	if _, ok, err := store.Settle(t.Context(), settlement(claim)); !ok || err != nil || plan.Requests(http.MethodPut) != puts+2 {
		t.Errorf("released %v, error %v, after %d writes", ok, err, plan.Requests(http.MethodPut)-puts)
	}
}

func clientWith(server *server, plan fault.Plan) *s3.Client {
	return server.client(func(o *s3.Options) {
		o.HTTPClient = &http.Client{Transport: &fault.Transport{Next: server, Dialect: fault.S3, Plan: plan, Late: &fault.Kept{}}}
	})
}
