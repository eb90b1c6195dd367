package azblobstore_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/fakeblob"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

// faultsOfAzure are the faults that end with an answer or a broken connection,
// and what the store makes of them.
var faultsOfAzure = map[fault.Fault]driver.Error{
	fault.DropBefore:    {},
	fault.ApplyThenDrop: {},
	fault.ApplyThenFail: {},
	fault.Truncate:      {},
	fault.Fail:          {},
	fault.Throttle:      {Answered: true},
	fault.Deny:          {Lasting: true, Answered: true, Unapplied: true},
}

// TestInjectedFaults shows that the SDK takes injected faults for those of the
// service and of the network, in reads and writes.
func TestInjectedFaults(t *testing.T) { // F8, F10
	t.Parallel()
	for f, want := range faultsOfAzure {
		for _, method := range []string{http.MethodGet, http.MethodPut} {
			t.Run(method+", "+f.String(), func(t *testing.T) {
				t.Parallel()
				plan := &fault.Script{}
				o := objectsUnder(t, plan)
				version, err := o.Put(t.Context(), "k", []byte("old"), "")
				if err != nil {
					t.Fatal(err)
				}
				plan.Plan(method, f)
				if method == http.MethodGet {
					_, err = o.Get(t.Context(), "k")
				} else {
					_, err = o.Put(t.Context(), "k", []byte("new"), version)
				}
				var e *driver.Error
				if !errors.As(err, &e) || e.Lasting != want.Lasting || e.Answered != want.Answered || e.Unapplied != want.Unapplied || (e.Action != "") != (f == fault.Deny) {
					t.Errorf("got %#v, want %+v", err, want)
				}
				got, err := o.Get(t.Context(), "k")
				if written := method == http.MethodPut && f.Applied(); (string(got.Body) == "new") != written || err != nil {
					t.Errorf("then the blob has %q, error %v", got.Body, err)
				}
			})
		}
	}
}

// TestInjectedConflict: another write is in the way, so nothing is written.
func TestInjectedConflict(t *testing.T) { // F9, F43
	t.Parallel()
	plan := &fault.Script{}
	plan.Plan(http.MethodPut, fault.Conflict)
	if _, err := objectsUnder(t, plan).Put(t.Context(), "k", nil, ""); !errors.Is(err, objectstore.ErrChanged) {
		t.Errorf("got %v", err)
	}
}

func objectsUnder(t *testing.T, plan fault.Plan) objectstore.Objects {
	client := &http.Client{Transport: &fault.Transport{Next: fault.InProcess{Handler: fakeblob.New()}, Dialect: fault.Azure, Plan: plan, Late: &fault.Kept{}}}
	return objectsOver(t, client.Do, nil)
}
