package azblobstore_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/azblobstore"
	"github.com/lambdalock/lambdalock/stores/azblobstore/internal/azuretest"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	azuretest.OnServices(t, func(t *testing.T, s *azuretest.Service) {
		locktest.Run(t, locktest.Harness{
			Open:    func(*testing.T) driver.Store { return azblobstore.New(s.Client, "locks/") },
			Advance: s.Advance,
			MakeNewer: func(t *testing.T, _ driver.Store, name string) {
				o := azblobstore.NewObjects(s.Client, "locks/")
				key := objectstore.Key(name)
				old, err := o.Get(t.Context(), key)
				fields := map[string]any{}
				err = errors.Join(err, json.Unmarshal(old.Body, &fields))
				fields["rowFormat"], fields["stamp"] = 2, []int{1}
				body, _ := json.Marshal(fields)
				if _, err2 := o.Put(t.Context(), key, body, old.Version); err != nil || err2 != nil {
					t.Fatal(err, err2)
				}
			},
		})
	})
}

// TestObjects is the contract of objectstore.Objects, one answer after another.
func TestObjects(t *testing.T) {
	t.Parallel()
	azuretest.OnServices(t, func(t *testing.T, s *azuretest.Service) {
		ctx, o := t.Context(), azblobstore.NewObjects(s.Client, "a b/")
		if _, err := o.Get(ctx, "k%2F"); !errors.Is(err, objectstore.ErrNotExist) {
			t.Errorf("get without a blob: %v", err)
		}
		if _, err := o.Put(ctx, "k%2F", []byte("x"), `"0x8D"`); !errors.Is(err, objectstore.ErrChanged) {
			t.Errorf("put of a version without a blob: %v", err)
		}
		v1, err := o.Put(ctx, "k%2F", []byte("same"), "")
		if err != nil || v1 == "" {
			t.Fatalf("put of a new blob: version %q, error %v", v1, err)
		}
		if _, err := o.Put(ctx, "k%2F", []byte("y"), ""); !errors.Is(err, objectstore.ErrChanged) {
			t.Errorf("put of a new blob over another: %v", err)
		}
		v2, err := o.Put(ctx, "k%2F", []byte("same"), v1)
		if err != nil || v2 == v1 {
			t.Errorf("put of a version: %q after %q, error %v", v2, v1, err)
		}
		if _, err := o.Put(ctx, "k%2F", []byte("z"), v1); !errors.Is(err, objectstore.ErrChanged) {
			t.Errorf("put of an old version: %v", err)
		}
		got, err := o.Get(ctx, "k%2F")
		if err != nil || string(got.Body) != "same" || got.Version != v2 || got.Modified.IsZero() || got.Now.Before(got.Modified) {
			t.Errorf("get has %q, version %q, modified %v, now %v, error %v", got.Body, got.Version, got.Modified, got.Now, err)
		}
	})
}

func TestOneOfManyWritersWins(t *testing.T) {
	t.Parallel()
	azuretest.OnServices(t, func(t *testing.T, s *azuretest.Service) {
		o := azblobstore.NewObjects(s.Client, "")
		version := ""
		for round := range 4 { // the first creates the blob
			versions := make(chan string, 32)
			for range cap(versions) {
				go func() {
					v, err := o.Put(t.Context(), "k", []byte("x"), version)
					if err != nil && !errors.Is(err, objectstore.ErrChanged) {
						t.Error(err)
					}
					versions <- v
				}()
			}
			var won []string
			for range cap(versions) {
				if v := <-versions; v != "" {
					won = append(won, v)
				}
			}
			if len(won) != 1 {
				t.Fatalf("round %d: %d of 32 writers won, want 1", round, len(won))
			}
			version = won[0]
		}
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	azuretest.OnServices(t, func(t *testing.T, s *azuretest.Service) {
		ctx, o := t.Context(), azblobstore.NewObjects(s.Client, "p/")
		var want []string
		for i := range 10 {
			want = append(want, "n%2F"+strconv.Itoa(i))
			expect.Value(o.Put(ctx, want[i], nil, ""))(t)
		}
		expect.Value(azblobstore.NewObjects(s.Client, "p2").Put(ctx, "k", nil, ""))(t)
		var got []string
		for key, err := range o.Keys(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, key)
		}
		got = slices.DeleteFunc(got, func(key string) bool { return key == "~probe" }) // of a server that is not Azure's
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		for range o.Keys(ctx) {
			break
		}
	})
}

// TestNoClient: a mistake in code is an error that says what to pass.
func TestNoClient(t *testing.T) {
	t.Parallel()
	o := azblobstore.NewObjects(nil, "locks")
	_, getErr := o.Get(t.Context(), "k")
	_, putErr := o.Put(t.Context(), "k", nil, "")
	var listErr error
	for _, err := range o.Keys(t.Context()) {
		listErr = err
	}
	for name, err := range map[string]error{"get": getErr, "put": putErr, "list": listErr, "check": azblobstore.New(nil, "locks").Check(t.Context())} {
		if e := (*driver.ConfigError)(nil); !errors.As(err, &e) || !strings.Contains(e.Reason, "azblobstore.New") {
			t.Errorf("%s: %v, want a *driver.ConfigError that names azblobstore.New", name, err)
		}
	}
	if o.String() != "Azure container" {
		t.Errorf("it is called %q", o.String())
	}
}

// TestNoContainer also shows that the answer of Azurite is described like that
// of the fake.
func TestNoContainer(t *testing.T) {
	t.Parallel()
	azuretest.OnServices(t, func(t *testing.T, s *azuretest.Service) {
		expect.Value(s.Delete(t.Context(), nil))(t)
		o := azblobstore.NewObjects(s.Client, "")
		_, getErr := o.Get(t.Context(), "k")
		_, putErr := o.Put(t.Context(), "k", nil, "")
		var listErr error
		for _, err := range o.Keys(t.Context()) {
			listErr = err
		}
		for name, err := range map[string]error{"get": getErr, "put": putErr, "list": listErr} {
			var e *driver.Error
			if !errors.As(err, &e) || !e.Lasting || !e.Answered || !e.Unapplied || e.Hint != "create the container, or correct its name" {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
