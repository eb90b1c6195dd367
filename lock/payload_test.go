package lock_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
)

func carrying(id, payload string) lock.Key {
	return lock.Key{Name: "resource", Event: id, Payload: payload}
}

// TestPayload shows what becomes of an event that comes again with another
// payload, with one request.
func TestPayload(t *testing.T) { // F37
	for name, c := range map[string]struct {
		first, second lock.Key
		mismatch      bool
	}{
		"same":                 {carrying("e1", "10 EUR"), carrying("e1", "10 EUR"), false},
		"another":              {carrying("e1", "10 EUR"), carrying("e1", "20 EUR"), true},
		"none the first time":  {carrying("e1", ""), carrying("e1", "20 EUR"), false},
		"none the second time": {carrying("e1", "10 EUR"), carrying("e1", ""), false},
		"long and binary":      {carrying("e1", strings.Repeat("\xff", 1<<20)), carrying("e1", strings.Repeat("\xff", 1<<20)+"\x00"), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{MaxWait: time.Minute, Lease: lock.FixedLease(time.Minute)})
				first := f.mustAcquire(l, c.first)
				f.outcomes()
				began := time.Now()
				_, err := l.Acquire(t.Context(), c.second)
				if mismatched := isMismatch(err); mismatched != c.mismatch {
					t.Errorf("while held: %v", err)
				}
				if c.mismatch {
					f.wantOutcomes(lock.OutcomeMismatch)
					if waited := time.Since(began); waited != 0 {
						t.Errorf("waited %v for a mistake that no wait can mend", waited)
					}
				}
				expect.Must(t, first.Complete())
				before := f.faulty.Requests(fault.Acquire)
				_, err = l.Acquire(t.Context(), c.second)
				if isMismatch(err) != c.mismatch || isCompleted(err) == c.mismatch {
					t.Errorf("after completion: %v", err)
				}
				if n := f.faulty.Requests(fault.Acquire) - before; n != 1 {
					t.Errorf("%d requests, want 1", n)
				}
			})
		})
	}
}

// TestResultForAnotherPayload shows that the result of an event is not given to
// one of which it is not known that it has the same payload.
func TestResultForAnotherPayload(t *testing.T) { // F28, F37
	for name, c := range map[string]struct {
		first, second lock.Key
		want          string
	}{
		"same":                 {carrying("e1", "10 EUR"), carrying("e1", "10 EUR"), "receipt"},
		"none both times":      {carrying("e1", ""), carrying("e1", ""), "receipt"},
		"none the first time":  {carrying("e1", ""), carrying("e1", "20 EUR"), ""},
		"none the second time": {carrying("e1", "10 EUR"), carrying("e1", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{})
				expect.Must(t, f.mustAcquire(l, c.first).CompleteWith(lock.Completion{Result: []byte("receipt")}))
				var completed *lock.CompletedError
				if _, err := l.Acquire(t.Context(), c.second); !errors.As(err, &completed) || string(completed.Result) != c.want {
					t.Errorf("%v with the result %q, want %q", err, completed.Result, c.want)
				}
			})
		})
	}
}

// TestPayloadOfAnotherEvent shows that only payloads of the same event are
// compared.
func TestPayloadOfAnotherEvent(t *testing.T) { // F37
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{})
		held := f.mustAcquire(l, carrying("e1", "10 EUR"))
		if _, err := l.Acquire(t.Context(), carrying("e2", "20 EUR")); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("another event: %v", err)
		}
		mutex := lock.Key{Name: "resource", Payload: "20 EUR"}
		if _, err := l.Acquire(t.Context(), mutex); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("no event: %v", err)
		}
		expect.Must(t, held.Release())
		for _, key := range []lock.Key{carrying("e1", "20 EUR"), carrying("e2", "30 EUR")} { // e1 failed, so it may change
			lk := f.mustAcquire(l, key)
			expect.Must(t, lk.Complete())
		}
		for _, key := range []lock.Key{carrying("e1", "20 EUR"), carrying("e2", "30 EUR")} {
			if _, err := l.Acquire(t.Context(), key); !isCompleted(err) {
				t.Errorf("%s again: %v", key.Event, err)
			}
		}
		_, err := l.Acquire(t.Context(), carrying("e1", "30 EUR"))
		if !isMismatch(err) || errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrCompleted) {
			t.Errorf("e1 with the payload of e2: %v", err)
		}
		if strings.Contains(err.Error(), "resource") || strings.Contains(err.Error(), "EUR") {
			t.Errorf("%q shows what the key holds", err) // F29
		}
		if row := f.row(); strings.Contains(row.Memory.Completed[0].Payload, "EUR") || len(row.Memory.Completed[0].Payload) != 22 {
			t.Errorf("stored as %q, want a digest", row.Memory.Completed[0].Payload)
		}
	})
}

func isMismatch(err error) bool { return errors.As(err, new(*lock.PayloadMismatchError)) }
