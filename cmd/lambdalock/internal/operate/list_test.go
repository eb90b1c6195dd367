package operate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// counter counts lines and remembers the most memory in use.
type counter struct {
	lines int
	most  uint64
}

func (c *counter) Write(p []byte) (int, error) {
	c.lines += bytes.Count(p, []byte("\n"))
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	c.most = max(c.most, m.HeapAlloc)
	return len(p), nil
}

// manyRows is a store with that many rows, which it makes as it is asked.
type manyRows struct {
	driver.Inspector
	n int
}

func (s manyRows) Rows(context.Context, string) iter.Seq2[driver.NamedRow, error] {
	return func(yield func(driver.NamedRow, error) bool) {
		for i := range s.n {
			row := driver.Row{Token: "t", Stamp: time.Now(), Until: time.Now().Add(time.Hour), Holder: strings.Repeat("h", 100), Memory: driver.Memory{Result: driver.Result{Body: make([]byte, 1000)}}}
			if !yield(driver.NamedRow{Name: fmt.Sprintf("orders/%0100d", i), Row: row}, nil) {
				return
			}
		}
	}
}

// TestLongListIsBounded: rows are printed while they are read.
func TestLongListIsBounded(t *testing.T) {
	for name, json := range map[string]bool{"table": false, "JSON": true} {
		t.Run(name, func(t *testing.T) {
			defer debug.SetGCPercent(debug.SetGCPercent(100)) // whatever GOGC is
			var before runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			out := &counter{}
			c := &List{jsonFlag: jsonFlag{json}}
			expect.Must(t, c.print(t.Context(), manyRows{n: 50_000}, out, io.Discard))
			want := 50_001
			if json {
				want--
			}
			if grown := out.most - before.HeapAlloc; out.lines != want || out.most > before.HeapAlloc && grown > 20<<20 {
				t.Errorf("%d lines, want %d, and %d MB more memory", out.lines, want, grown>>20)
			}
		})
	}
}

// broken is a pipe that nobody reads.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestListEndsWithItsReader(t *testing.T) {
	t.Parallel()
	for _, rows := range []int{1, 1 << 40} {
		for _, json := range []bool{true, false} {
			if err := (&List{jsonFlag: jsonFlag{json}}).print(t.Context(), manyRows{n: rows}, broken{}, io.Discard); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("%d rows, JSON %v: %v", rows, json, err)
			}
		}
	}
}

// TestListSelects: each flag prints the rows that it names; all of them are
// counted, on standard error, and not beside JSON.
func TestListSelects(t *testing.T) {
	t.Parallel()
	now, moment := time.Now(), time.Nanosecond
	store := someRows{
		"held":    {Token: "t", Stamp: now, Until: now.Add(time.Hour)},
		"expired": {Token: "t", Stamp: now, Until: now.Add(-time.Hour)},
		"free":    {Stamp: now},
		"newer":   {Newer: true},
	}
	for name, c := range map[string]struct {
		list List
		want string
	}{
		"by default":       {List{}, "expired held newer"},
		"held":             {List{Held: true}, "held"},
		"held for a while": {List{HeldFor: &moment}, "held"},
		"held at all":      {List{HeldFor: new(time.Duration)}, "held"},
		"expired":          {List{Expired: true}, "expired"},
		"interrupted":      {List{Interrupted: true}, ""},
		"all":              {List{All: true}, "expired free held newer"},
	} {
		for _, json := range []bool{true, false} {
			c.list.jsonFlag = jsonFlag{json}
			var out, summary strings.Builder
			expect.Must(t, c.list.print(t.Context(), store, &out, &summary))
			var got []string
			for line := range strings.Lines(out.String()) {
				if _, rest, found := strings.Cut(line, "orders/"); found {
					got = append(got, strings.FieldsFunc(rest, func(r rune) bool { return r < 'a' || r > 'z' })[0])
				}
			}
			if strings.Join(got, " ") != c.want || strings.HasPrefix(summary.String(), "1 held, 1 expired, 1 free, 1 of a newer format") == json {
				t.Errorf("%s, JSON %v: %q and %q\n%s", name, json, got, summary.String(), out.String())
			}
		}
	}
}

// someRows is a store with these rows, whose names are in the namespace orders.
type someRows map[string]driver.Row

func (s someRows) Read(_ context.Context, name string) (driver.Row, error) {
	return s[strings.TrimPrefix(name, "orders/")], nil
}

func (s someRows) Rows(context.Context, string) iter.Seq2[driver.NamedRow, error] {
	return func(yield func(driver.NamedRow, error) bool) {
		for name, row := range s {
			if !yield(driver.NamedRow{Name: "orders/" + name, Row: row}, nil) {
				return
			}
		}
	}
}

// TestListOfChunks: at the end of a chunk no row is lost or printed twice, and
// there is one heading, if there is any row.
func TestListOfChunks(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, chunk - 1, chunk, chunk + 1, 2 * chunk} {
		var out, summary strings.Builder
		expect.Must(t, (&List{}).print(t.Context(), manyRows{n: n}, &out, &summary))
		lines := slices.Collect(strings.Lines(out.String()))
		if want := n + min(n, 1); len(lines) != want || !strings.HasPrefix(summary.String(), fmt.Sprintf("%d held", n)) {
			t.Errorf("%d rows: %d lines, want %d, and %q", n, len(lines), want, summary.String())
		}
		slices.Sort(lines)
		if unique := slices.Compact(slices.Clone(lines)); len(unique) != len(lines) {
			t.Errorf("%d rows: %d lines are different, of %d", n, len(unique), len(lines))
		}
	}
}

// TestListHeldFor: a lock that has been held for an hour is named, and one that
// only cools is held by nobody.
func TestListHeldFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		rowtest.Acquire(t, store, "long", 3*time.Hour, lock.Key{Name: "a"})
		cools := rowtest.Acquire(t, store, "cools", time.Hour, lock.Key{Name: "b"}, func(o *lock.Options) { o.HoldAtLeast = 3 * time.Hour })
		expect.OK(t, cools.Release())
		time.Sleep(time.Minute)
		since := time.Now()
		rowtest.Acquire(t, store, "short", 3*time.Hour, lock.Key{Name: "c"})
		time.Sleep(59 * time.Minute)
		var out, summary strings.Builder
		hour := time.Hour
		expect.Must(t, (&List{HeldFor: &hour}).print(t.Context(), store, &out, &summary))
		oldest := since.Add(-time.Minute).UTC().Format(time.RFC3339)
		if strings.Count(out.String(), "orders/") != 1 || !strings.Contains(out.String(), "orders/a") || !strings.Contains(out.String(), "held   "+oldest+" (1h0m ago)  ") {
			t.Errorf("--held-for 1h prints\n%s", out.String())
		}
		if !strings.HasPrefix(summary.String(), "3 held, 0 expired, 0 free; the oldest is held since "+oldest) {
			t.Errorf("the summary is %q", summary.String())
		}
	})
}

// TestListInterrupted: each interrupted event has a line with all that decides
// about it: its name for complete and forget, and until when.
func TestListInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		of := func(event, holder string, since time.Duration) driver.InterruptedEvent {
			return driver.InterruptedEvent{Event: event, Holder: holder, Since: now.Add(-since), Until: now.Add(96*time.Hour - since)}
		}
		store := someRows{
			"two":  {Memory: driver.Memory{Interrupted: []driver.InterruptedEvent{of("e1", "f request 1", time.Hour), of("e\x1b", "f request 2", 2*time.Hour)}}},
			"held": {Token: "t", Stamp: now, Until: now.Add(time.Hour), Holder: "f request 3", Memory: driver.Memory{Interrupted: []driver.InterruptedEvent{of("e3", "f request 4", time.Minute)}}},
			"none": {},
		}
		var out, summary strings.Builder
		expect.Must(t, (&List{Interrupted: true}).print(t.Context(), store, &out, &summary))
		at := func(d time.Duration) string { return now.Add(d).UTC().Format(time.RFC3339) }
		var got []string
		for line := range strings.Lines(out.String()) {
			got = append(got, regexp.MustCompile(`  +`).ReplaceAllString(strings.TrimSpace(line), "|"))
		}
		want := []string{
			"STATE|SINCE|DECIDE BEFORE|DIGEST|NAME|EVENT|HOLDER",
			"held|" + at(-time.Minute) + " (1m0s ago)|" + at(96*time.Hour-time.Minute) + " (in 3d23h)|" + lock.Key{Name: "held"}.Digest() + "|orders/held|e3|f request 4",
			"free|" + at(-time.Hour) + " (1h0m ago)|" + at(95*time.Hour) + " (in 3d23h)|" + lock.Key{Name: "two"}.Digest() + "|orders/two|e1|f request 1",
			"free|" + at(-2*time.Hour) + " (2h0m ago)|" + at(94*time.Hour) + " (in 3d22h)|" + lock.Key{Name: "two"}.Digest() + `|orders/two|"e\x1b"|f request 2`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("prints\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
