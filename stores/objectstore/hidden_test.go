package objectstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

// TestHiddenObjects: a service that does not tell whether there is an object
// tells when one is created.
func TestHiddenObjects(t *testing.T) { // F40
	t.Parallel()
	f := newFake()
	f.hides = true
	s := objectstore.New(f)
	now := noon
	var claims []*driver.Claim
	for _, step := range []struct{ name, want string }{
		{"fresh1", "put fresh1"},
		{"fresh2", "put fresh2"},
		{"known", "put known, get known, put known"},
		{"fresh3", "get fresh3, put fresh3"},
		{"fresh4", "put fresh4"},
	} {
		if now = now.Add(time.Second); step.name == "known" {
			mustRelease(t, objectstore.New(f), mustClaim(t, objectstore.New(f), "known", now.Add(-time.Millisecond)))
			f.requests()
		}
		claims = append(claims, mustClaim(t, s, step.name, now))
		if got := strings.Join(f.requests(), ", "); got != step.want {
			t.Errorf("%s: made the requests %q, want %q", step.name, got, step.want)
		}
	}
	for _, c := range claims {
		mustRefuse(t, objectstore.New(f), claimAt(now, c.Name, "late"))
		mustRelease(t, s, c)
	}
	c := claimAt(now, "given up", "a")
	if _, ok := abandon(t, s, c); !ok {
		t.Error("not abandoned")
	}
	mustRefuse(t, objectstore.New(f), c)
	for step, request := range map[string]func() error{
		"renewal": func() error {
			_, _, err := s.Renew(t.Context(), &driver.Renewal{Name: "none", Token: "a", Now: now, Until: now})
			return err
		},
		"release": func() error {
			_, _, err := s.Settle(t.Context(), &driver.Settlement{Name: "none", Token: "a"})
			return err
		},
	} {
		var e *driver.Error
		f.requests()
		if err := request(); !errors.As(err, &e) || e.Action != "s3:GetObject" || f.objects["none"].Version != "" || len(f.log) != 1 {
			t.Errorf("%s without a row: %v after the requests %q", step, err, f.log)
		}
	}
}

// TestDeniedReads: what may not be read is not overwritten, and the error says
// what is denied.
func TestDeniedReads(t *testing.T) {
	t.Parallel()
	f := newFake()
	mustClaim(t, objectstore.New(f), "n", noon)
	f.fault = func(method string) fault {
		if method == "get" {
			return denied
		}
		return none
	}
	var e *driver.Error
	if _, ok, err := objectstore.New(f).Acquire(t.Context(), claimAt(noon.Add(time.Hour), "n", "b")); ok || !errors.As(err, &e) || e.Action == "" {
		t.Errorf("granted %v, error %v", ok, err)
	}
}
