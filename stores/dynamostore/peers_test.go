package dynamostore_test

import (
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// TestUnitsOfTimes: one condition compared the same number with a time in
// seconds and with one in milliseconds, so a record whose owner had timed out
// was never taken over (powertools-lambda-java#1281). Here the lease decides to
// the microsecond, and DynamoDB's own deletion is in seconds.
func TestUnitsOfTimes(t *testing.T) { // F23
	t.Parallel()
	f := newFixture(t)
	start := time.Date(2026, 9, 9, 9, 9, 9, 9000, time.UTC)
	dead := &driver.Claim{
		Name: "n", Event: "e1", Token: "dead", Now: start, Stamp: start, Until: start.Add(15*time.Minute + 2*time.Second), DeleteAfter: start.Add(24 * time.Hour).Truncate(time.Second),
	}
	expect.Granted(f.store.Acquire(t.Context(), dead))(t)
	if got, want := f.Item(table, "n")["deleteAfter"], (map[string]any{"N": strconv.FormatInt(dead.DeleteAfter.Unix(), 10)}); !reflect.DeepEqual(got, want) {
		t.Errorf("deleteAfter is %v, want seconds: %v", got, want)
	}
	claim := func(now time.Time) bool {
		t.Helper()
		_, ok, err := f.store.Acquire(t.Context(), &driver.Claim{
			Name: "n", Event: "e1", Token: "retry at " + now.String(), Now: now, Stamp: now, Until: now.Add(time.Minute), DeleteAfter: now.Add(24 * time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	for _, early := range []time.Duration{15 * time.Minute, time.Minute, time.Second, time.Millisecond, 0} {
		if now := dead.Until.Add(-early); claim(now) {
			t.Errorf("taken over %v before the end of the lease", early)
		}
	}
	if !claim(dead.Until.Add(time.Microsecond)) {
		t.Error("not taken over after the end of the lease")
	}
}
