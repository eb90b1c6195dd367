package lock_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// TestCompletedAt shows that a row says when its events were completed, by the
// clock of their owners and in whole seconds: also of one that was forgotten
// and completed again, of one with an Order, and of those that were remembered
// for different times.
func TestCompletedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		hour, day := f.locker(lock.Options{Remember: time.Hour}), f.locker(lock.Options{Remember: 24 * time.Hour})
		wantAt := func(want map[string]time.Time) {
			t.Helper()
			got := map[string]time.Time{}
			for _, c := range f.row().Memory.Completed {
				got[c.Event] = c.At
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the row says %v, want %v", got, want)
			}
		}
		start := time.Now()
		time.Sleep(1900 * time.Millisecond)
		complete(t, hour, "e1")
		time.Sleep(10 * time.Minute)
		expect.Must(t, day.Do(t.Context(), lock.Key{Name: "resource", Event: "e2", Order: "2"}, nothing))
		wantAt(map[string]time.Time{"e1": start.Add(time.Second), "e2": start.Add(10*time.Minute + time.Second)})
		time.Sleep(time.Hour)
		complete(t, day, "e1") // it was forgotten, and ran again
		again := start.Add(70*time.Minute + time.Second)
		wantAt(map[string]time.Time{"e1": again, "e2": start.Add(10*time.Minute + time.Second)})

		expect.Must(t, skewed(day, 3*time.Hour).Do(t.Context(), event("e3"), nothing))
		wantAt(map[string]time.Time{"e1": again, "e2": start.Add(10*time.Minute + time.Second), "e3": again.Add(3 * time.Hour)})
	})
}

// TestCompletedAtCostsNothing shows that the times of completion make a row
// forget no event and cost no write unit, whatever its name is and whatever it
// remembers; and that the last events keep theirs.
func TestCompletedAtCostsNothing(t *testing.T) {
	const shortest = 250 // how much less a row may have than is counted
	units := func(size int) int { return (size + 1023) / 1024 }
	for _, c := range []struct {
		least, result int
		payload       string
		want          int // of the first events all have their time
	}{{want: 9}, {payload: "GET /", want: 4}, {least: 40, want: 9}, {least: 60, want: 9}, {result: 100, want: 7}, {result: 1500}} {
		for length := 0; length < 48; length += 1 + c.least/10 {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				name := strings.Repeat("n", 1+length)
				l := f.locker(lock.Options{RememberEvents: c.least, Lease: lock.FixedLease(time.Minute)})
				for i := range 8 + c.least {
					lk := f.mustAcquire(l, lock.Key{Name: name, Event: id(i), Payload: c.payload})
					expect.Must(t, lk.CompleteWith(lock.Completion{Result: make([]byte, c.result)}))
					m := readRow(t, f.faulty.Store, "/"+name).Memory
					without, times := rowSize("/"+name, &m)
					if i < c.want && times <= i {
						t.Fatalf("%+v: %d times of %d events in a row of %d bytes", c, times, i+1, without)
					}
					if units(without+4*times) != units(without) || times > 0 && without > 1024 && units(without-shortest) != units(without) {
						t.Fatalf("%+v: %d times in a row of %d bytes", c, times, without)
					}
					for j, d := range m.Completed {
						if last := m.Completed[len(m.Completed)-1]; j > 0 && d.At.IsZero() && !m.Completed[j-1].At.IsZero() || last.At.IsZero() && times > 0 {
							t.Fatalf("event %d of %d has lost its time before an older one", j, len(m.Completed))
						}
					}
				}
			})
		}
	}
}

// rowSize returns the size of a row while its next owner has it, without the
// times of completion, and how many there are. The owner is a Lambda function
// with the longest name, and its event is as long as any.
func rowSize(name string, m *driver.Memory) (without, times int) {
	without = 337 + len(name)
	longest, payloads := 0, 0
	for _, c := range m.Completed {
		without += len(c.Event) + 12
		if c.Payload != "" {
			without += len(c.Event) + 1 + len(c.Payload)
			payloads = 18
		}
		longest = max(longest, len(c.Event)+len(c.Payload))
		if !c.At.IsZero() {
			times++
		}
	}
	if m.Result.Event != "" {
		without += 21 + len(m.Result.Event) + len(m.Result.Body)
	}
	return without + longest + payloads, times
}
