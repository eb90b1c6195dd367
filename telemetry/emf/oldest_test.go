package emf_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/telemetry/emf"
)

// rows is a store with these rows, in the order in which it yields them.
type rows struct {
	driver.Inspector
	name   string
	rows   []driver.NamedRow
	errors []error // after the rows
}

func (r rows) String() string { return r.name }

func (r rows) Rows(context.Context, string) iter.Seq2[driver.NamedRow, error] {
	return func(yield func(driver.NamedRow, error) bool) {
		for _, row := range r.rows {
			if !yield(row, nil) {
				return
			}
		}
		for _, err := range r.errors {
			name := ""
			if errors.Is(err, errDamaged) {
				name = "a/damaged"
			}
			if !yield(driver.NamedRow{Name: name}, err) {
				return
			}
		}
	}
}

var errDamaged, errDenied = errors.New("damaged"), errors.New("denied")

// TestOldestHeld shows which rows count, since when they are held, and that
// there is a line unless the rows are not known.
func TestOldestHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		held := func(name string, since, left time.Duration, change func(*driver.Row)) driver.NamedRow {
			r := driver.NamedRow{Name: name, Row: driver.Row{Token: "t", Fence: now.Add(-since).UnixMicro(), Stamp: now.Add(-since), Until: now.Add(left)}}
			if change != nil {
				change(&r.Row)
			}
			return r
		}
		begin := fmt.Sprintf(`{"_aws":{"Timestamp":%d,"CloudWatchMetrics":[{"Namespace":"lambdalock","Dimensions":[["service"]],`+
			`"Metrics":[{"Name":"OldestHeld","Unit":"Seconds"}]}]},"service":"DynamoDB table orders-locks",`, now.UnixMilli())
		minute := held("a/minute", time.Minute, time.Minute, nil)
		nothing := []driver.NamedRow{
			held("a/free", time.Hour, 0, func(r *driver.Row) { r.Token, r.Until = "", time.Time{} }),
			held("a/dead", time.Hour, -time.Microsecond, nil),
			held("a/cools", time.Hour, time.Hour, func(r *driver.Row) { r.Cooldown = "u" }),
			held("a/newer", time.Hour, time.Hour, func(r *driver.Row) { r.Newer = true }),
			held("a/clock is fast", -time.Hour, time.Hour, nil),
		}
		for name, c := range map[string]struct {
			rows   []driver.NamedRow
			errors []error
			want   string // the end of the line; empty: there is none
		}{
			"no rows":             {nil, nil, `"OldestHeld":0}`},
			"none is held":        {nothing, nil, `"OldestHeld":0}`},
			"one":                 {append(nothing, minute), nil, `"OldestHeld":60}`},
			"the oldest":          {[]driver.NamedRow{minute, held("b/day", 24*time.Hour, 0, nil), minute}, nil, `"OldestHeld":86400}`},
			"others gave up":      {[]driver.NamedRow{held("a/n", time.Hour, time.Minute, func(r *driver.Row) { r.Stamp = now })}, nil, `"OldestHeld":3600}`},
			"no fence":            {[]driver.NamedRow{held("a/n", time.Hour, time.Minute, func(r *driver.Row) { r.Fence = 0 })}, nil, `"OldestHeld":3600}`},
			"a row is damaged":    {[]driver.NamedRow{minute}, []error{errDamaged}, `"OldestHeld":60}`},
			"the rest is missing": {[]driver.NamedRow{minute}, []error{errDamaged, errDenied}, ""},
		} {
			var out bytes.Buffer
			err := emf.OldestHeld(t.Context(), rows{name: "DynamoDB table orders-locks", rows: c.rows, errors: c.errors}, &emf.Options{Output: &out})
			if c.want == "" {
				if !errors.Is(err, errDenied) || out.Len() != 0 {
					t.Errorf("%s: %q, error %v", name, &out, err)
				}
				continue
			}
			expect.OK(t, err)
			if line := out.String(); line != begin+c.want+"\n" {
				t.Errorf("%s: %s", name, line)
			}
			parse(t, out.String())
		}
		var out bytes.Buffer
		expect.Must(t, emf.OldestHeld(t.Context(), rows{}, &emf.Options{Service: "mine", Output: &out}))
		if !strings.Contains(out.String(), `"service":"mine"`) {
			t.Error(out.String())
		}
		if err := emf.OldestHeld(t.Context(), rows{}, &emf.Options{Output: full{}}); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("error %v", err)
		}
	})
}

// full takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// work holds a lock for so long, outside of Lambda, while another function
// looks.
func (a *account) work(t *testing.T, long time.Duration) {
	locker, err := lock.New(a.store(), &lock.Options{Namespace: "nightly", Lease: lock.Heartbeat(time.Minute)})
	expect.Must(t, err)
	ended := time.Now().Add(long)
	expect.OK(t, locker.Do(t.Context(), lock.Key{Name: "report"}, func(context.Context) error {
		for ; time.Now().Before(ended); time.Sleep(time.Minute) {
			if time.Until(ended).Truncate(time.Minute)%(10*time.Minute) == 0 {
				a.look(t)
			}
		}
		return nil
	}))
}

// look runs the function that is scheduled.
func (a *account) look(t *testing.T) {
	expect.OK(t, emf.OldestHeld(t.Context(), a.store(), &emf.Options{Output: stdout{a, t}}))
}
