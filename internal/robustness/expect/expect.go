// Package expect is for the steps of a test that must not fail.
package expect

import "testing"

// Must ends the test if a step that the others need has failed.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// OK fails the test if a step has failed.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Value returns what returns the result of a step, or ends the test if the step
// has failed: lk := expect.Value(l.Acquire(ctx, key))(t).
func Value[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Must(t, err)
		return v
	}
}

// Granted is [Value] for a request to a store, which must be granted.
func Granted[T any](v T, ok bool, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if !ok || err != nil {
			t.Fatalf("granted: %v, error: %v", ok, err)
		}
		return v
	}
}
