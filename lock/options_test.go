package lock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

func TestWrongOptions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*lock.Options{
		"negative lease":        {Lease: lock.FixedLease(-1)},
		"negative heartbeat":    {Lease: lock.Heartbeat(-1)},
		"fixed lease of zero":   {Lease: lock.FixedLease(0)},
		"negative wait":         {MaxWait: -1},
		"negative grace":        {Grace: -1},
		"negative reserve":      {Reserve: -1},
		"negative hold":         {HoldAtLeast: -1},
		"hold too long":         {HoldAtLeast: 367 * 24 * time.Hour},
		"negative remember":     {Remember: -1},
		"negative time limit":   {CompleteWithin: -1},
		"lease below a request": {Lease: lock.Heartbeat(time.Millisecond)},
		"namespace too long":    {Namespace: strings.Repeat("x", 257)},
		"remember too long":     {Remember: 367 * 24 * time.Hour},
		"remember fewer than 0": {RememberEvents: -1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := lock.New(memstore.New(), o)
			var config *lock.ConfigError
			if !errors.As(err, &config) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want a ConfigError of one line", err)
			}
		})
	}
	if _, err := lock.New(nil, nil); !errors.As(err, new(*lock.ConfigError)) {
		t.Errorf("nil store: %v", err)
	}
	for _, o := range []*lock.Options{nil, {Namespace: strings.Repeat("/", 256)}} { // each is stored as "%2F"
		if _, err := lock.New(memstore.New(), o); err != nil {
			t.Error(err)
		}
	}
}

func TestWrongKeys(t *testing.T) { // F26, F27
	t.Parallel()
	f := newFixture(t)
	for name, key := range map[string]lock.Key{
		"empty name":      {Event: "e"},
		"long order":      {Name: "n", Order: strings.Repeat("9", 257)},
		"order of 258 B":  {Name: "n", Order: strings.Repeat("é", 129)},
		"order not UTF-8": {Name: "n", Order: "\xff"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.locker(lock.Options{}).Acquire(t.Context(), key)
			if _, ok := err.(*lock.NoKeyError); !ok {
				t.Errorf("got %v, want a NoKeyError", err)
			}
		})
	}
	if n := f.faulty.Requests(fault.Acquire); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	expect.OK(t, f.locker(lock.Options{}).Do(t.Context(), lock.Key{Name: "n", Order: strings.Repeat("9", 256)}, nothing))
}

// TestNamesNeverCollide holds the names of all cases at the same time: two that
// collide could not both be held.
func TestNamesNeverCollide(t *testing.T) { // F27, F28
	t.Parallel()
	store := memstore.New()
	long := strings.Repeat("x", 3000)
	for _, k := range []struct{ namespace, name string }{
		{"", "a"},
		{"a", "b/c"},
		{"a/b", "c"},
		{"a%2Fb", "c"},
		{"a%252Fb", "c"},
		{"a", "b%2Fc"},
		{"a|b", "c"},
		{"a", "|b/c"},
		{"\xff", "c"},
		{"\xfe", "c"},
		{"a", "\xff"},
		{"a", "\xfe"},
		{"a", "\ufffd"},
		{"a", long},
		{"a", long + "x"},
		{"aa", long},
		{"a", "sha256:" + long[:43]},
		{"a", "\x00"},
		{"a", "\n"},
		{"a", " b"},
		{"a", "B"},
		{"a", "b"},
		{"a", "é"},
		{"a", "e\u0301"},
	} {
		t.Run(fmt.Sprintf("%q, %.20q", k.namespace, k.name), func(t *testing.T) {
			l := expect.Value(lock.New(store, &lock.Options{Namespace: k.namespace, Logger: discard, Lease: lock.FixedLease(time.Hour)}))(t)
			if _, err := l.Acquire(t.Context(), lock.Key{Name: k.name}); err != nil {
				t.Errorf("collides with another case: %v", err)
			}
		})
	}
}

func TestEventsThatAreHashed(t *testing.T) {
	t.Parallel()
	l := newFixture(t).locker(lock.Options{})
	for name, e := range map[string]string{
		"long": strings.Repeat("x", 51), "very long": strings.Repeat("x", 5000), "not UTF-8": "\xff", "like a hash": "sha256:" + strings.Repeat("x", 43),
	} {
		t.Run(name, func(t *testing.T) {
			expect.OK(t, l.Do(t.Context(), event(e), nothing))
			if err := l.Do(t.Context(), event(e), nothing); !isCompleted(err) {
				t.Errorf("again: %v, want completed", err)
			}
		})
	}
}

// TestLeaseErrorsNameTheMode shows that a wrong lease is called as the caller
// called it.
func TestLeaseErrorsNameTheMode(t *testing.T) {
	t.Parallel()
	for want, mode := range map[string]lock.LeaseMode{
		"FixedLease is negative (-1s)": lock.FixedLease(-time.Second),
		"FixedLease is zero":           lock.FixedLease(0),
		"Heartbeat is negative (-1s)":  lock.Heartbeat(-time.Second),
	} {
		t.Run(want, func(t *testing.T) {
			if _, err := lock.New(memstore.New(), &lock.Options{Lease: mode}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestLogLevels shows that what needs a look is logged at its level: a failed
// completion as an error, and how many events were forgotten as information.
func TestLogLevels(t *testing.T) { // F30
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		faulty := fault.NewScripted(memstore.New())
		l := expect.Value(lock.New(faulty, &lock.Options{
			RememberEvents: 1, Lease: lock.FixedLease(time.Minute),
			Logger: slog.New(slog.NewTextHandler(&out, nil)),
		}))(t)
		complete(t, l, ids(0, 20)...)
		faulty.Always(fault.Release, fault.Deny)
		if err := l.Do(t.Context(), event(id(20)), nothing); !isStoreError(err) {
			t.Fatal(err)
		}
		for _, want := range []string{`level=INFO msg="lambdalock: forgotten"`, " forgotten=1", `level=ERROR msg="lambdalock: complete_failed"`} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in\n%s", want, out.String())
			}
		}
	})
}

func TestLogLines(t *testing.T) { // F29, F30
	t.Parallel()
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	key := lock.Key{Name: "users/jane@example.com\ntime=forged", Event: "e1"}
	run := func(o lock.Options) string {
		out.Reset()
		o.Logger = logger
		o.Holder = func(context.Context) string { return "me" }
		l := expect.Value(lock.New(memstore.New(), &o))(t)
		_ = l.Do(t.Context(), key, func(ctx context.Context) error {
			_, err := l.Acquire(context.Background(), key)
			if strings.Contains(err.Error(), "jane") {
				t.Errorf("the error shows the key: %v", err)
			}
			return nil
		})
		_ = l.Do(t.Context(), key, nothing)
		return out.String()
	}
	lines := run(lock.Options{})
	if n := strings.Count(lines, "\n"); n != 4 {
		t.Errorf("%d lines, want one each for acquired, held, released, already_completed:\n%s", n, lines)
	}
	for _, want := range []string{"lambdalock: acquired", "lambdalock: held", "lambdalock: released", "lambdalock: already_completed", "key=" + key.Digest(), "holder=me", "fence=", "reason="} {
		if !strings.Contains(lines, want) {
			t.Errorf("no %q in\n%s", want, lines)
		}
	}
	if strings.Contains(lines, "error=") {
		t.Errorf("a duplicate looks like an error:\n%s", lines)
	}
	if strings.Contains(lines, "jane") {
		t.Errorf("the key is in the log:\n%s", lines)
	}
	if lines = run(lock.Options{LogKeys: true}); !strings.Contains(lines, "jane") || strings.Contains(lines, "\ntime=forged") {
		t.Errorf("want the key in the log, escaped:\n%s", lines)
	}
}

// TestLostLeaseIsAnError shows that a lost lease is seen where only errors are
// logged: another handler may have worked at the same time.
func TestLostLeaseIsAnError(t *testing.T) { // F21
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := expect.Value(lock.New(memstore.New(), &lock.Options{
			Lease: lock.FixedLease(5 * time.Second), Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError})),
		}))(t)
		first := expect.Value(l.Acquire(t.Context(), resource))(t)
		time.Sleep(time.Minute)
		second := expect.Value(l.Acquire(context.Background(), resource))(t)
		if err := first.Complete(); !errors.Is(err, lock.ErrLost) {
			t.Errorf("completed late: %v", err)
		}
		expect.OK(t, second.Release())
		if lines := out.String(); strings.Count(lines, "\n") != 1 || !strings.Contains(lines, `level=ERROR msg="lambdalock: lost"`) {
			t.Errorf("logged at level ERROR:\n%s", lines)
		}
	})
}

// TestErrorTexts shows that every error is one line that names the library and
// does not show the key.
func TestErrorTexts(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	key, noon := resource.Digest(), time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for want, err := range map[string]error{
		"key " + key + " is held by another invocation":                                                                                             &lock.HeldError{Key: resource},
		"key " + key + " is held by another event":                                                                                                  &lock.HeldError{Key: lock.Key{Name: resource.Name, Event: "e"}},
		"key " + key + ` is held by a delivery of the same event in "fn" until 2026-11-22T12:00:00Z at the latest`:                                  &lock.HeldError{Key: resource, Holder: "fn", Until: noon, Duplicate: true},
		"key " + key + ` is held by 3 other invocations, as many as its limit allows, one of them in "fn" until 2026-11-22T12:00:00Z at the latest`: &lock.HeldError{Key: resource, Holder: "fn", Until: noon, Limit: 3},
		"key " + key + " is held by 3 other invocations, as many as its limit allows":                                                               &lock.HeldError{Key: resource, Limit: 3},
		"key " + key + ": this event came before with another payload, such as another request or other credentials: let the sender give every new event an identity of its own, and repeat one unchanged": &lock.PayloadMismatchError{Key: resource},
		"key " + key + ": this event was already completed":             &lock.CompletedError{Key: resource},
		"key " + key + ": a later event was already completed":          &lock.CompletedError{Key: resource, Stale: true},
		"key " + key + ": the lease until 2026-11-22T12:00:00Z is lost": &lock.LostError{Key: resource, Until: noon},
		"1s are left before the deadline, and at least 2s are needed to run and to release the lock: raise the function's timeout, or lower Reserve": &lock.DeadlineError{
			Left: time.Second, Need: 2 * time.Second,
		},
		"acquire at DynamoDB table t: dynamodb:UpdateItem was denied: cause (allow it)": &lock.StoreError{Op: "acquire", Store: "DynamoDB table t", Action: "dynamodb:UpdateItem", Hint: "allow it", Err: cause},
		"renew": &lock.StoreError{Op: "renew"},
		"no key: Records[0].s3.object.key is missing: cause": &lock.NoKeyError{Field: "Records[0].s3.object.key", Reason: "is missing", Err: cause},
		"no key: body is empty":                              &lock.NoKeyError{Field: "body", Reason: "is empty"},
		"no table: cause":                                    &lock.ConfigError{Reason: "no table", Err: cause},
		"no table":                                           &lock.ConfigError{Reason: "no table"},
	} {
		t.Run(want, func(t *testing.T) {
			if got := err.Error(); got != "lambdalock: "+want {
				t.Errorf("got %q", got)
			}
		})
	}
	if !errors.Is(&lock.StoreError{Err: cause}, cause) || !errors.Is(&lock.NoKeyError{Err: cause}, cause) || !errors.Is(&lock.ConfigError{Err: cause}, cause) {
		t.Error("a cause is hidden")
	}
}

// checker is a store whose Check returns err.
type checker struct {
	driver.Store
	err error
}

func (c checker) Check(context.Context) error { return c.err }

func TestCheck(t *testing.T) {
	t.Parallel()
	if err := newFixture(t).locker(lock.Options{}).Check(t.Context()); err != nil {
		t.Errorf("a store with nothing to open: %v", err)
	}
	cause := errors.New("connection refused")
	for name, c := range map[string]struct {
		reported error
		want     func(error) bool
	}{
		"reachable":     {nil, func(err error) bool { return err == nil }},
		"an error":      {cause, func(err error) bool { return isStoreError(err) && errors.Is(err, cause) }},
		"no answer":     {&driver.Error{Err: cause}, func(err error) bool { return isStoreError(err) && errors.Is(err, cause) }},
		"wrong setting": {&driver.ConfigError{Reason: "no table"}, func(err error) bool { return errors.As(err, new(*lock.ConfigError)) && !isStoreError(err) }},
	} {
		t.Run(name, func(t *testing.T) {
			l := expect.Value(lock.New(checker{memstore.New(), c.reported}, nil))(t)
			if err := l.Check(t.Context()); !c.want(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestHolderIsNeverEmptyNorLong shows that a takeover is seen whatever the
// holder says about itself, and that no description is too long for a row.
func TestHolderIsNeverEmptyNorLong(t *testing.T) { // F19
	for name, holder := range map[string]string{"empty": "", "500 KB": "x" + strings.Repeat("é", 250_000), "not text": strings.Repeat("\x80", 600), "as usual": "me"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				options := lock.Options{Lease: lock.FixedLease(3 * time.Second), Holder: func(context.Context) string { return holder }}
				f.mustAcquire(f.locker(options), resource)
				got := f.row().Holder
				if got == "" || len(got) > 512 || !utf8.ValidString(got) || len(holder) < 512 && holder != "" && got != holder {
					t.Errorf("the holder is %q", got)
				}
				time.Sleep(4 * time.Second)
				f.outcomes()
				lk := f.mustAcquire(f.locker(options), resource)
				f.wantOutcomes(lock.OutcomeTakenOver)
				_ = lk.Release()
			})
		})
	}
}

// TestHugeGrace shows that a Grace that no lease can have is refused.
func TestHugeGrace(t *testing.T) {
	for _, mode := range []lock.LeaseMode{{}, lock.UntilDeadline(), lock.FixedLease(time.Hour), lock.Heartbeat(math.MaxInt64)} {
		for _, grace := range []time.Duration{math.MaxInt64, math.MaxInt64 - time.Second/2} {
			if _, err := lock.New(memstore.New(), &lock.Options{Lease: mode, Grace: grace}); !errors.As(err, new(*lock.ConfigError)) {
				t.Errorf("%v with a Grace of %v: %v", mode, grace, err)
			}
		}
	}
}
