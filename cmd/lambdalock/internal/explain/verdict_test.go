package explain_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/explain"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestVerdictOfInterrupted: an event of a dead holder is not said to run, also
// after others took over.
func TestVerdictOfInterrupted(t *testing.T) { // F19
	t.Parallel()
	for name, c := range map[string]struct {
		payload string // of the run that was interrupted
		now     string // the event
		wait    time.Duration
		takes   bool // another event completes meanwhile
		would   string
		why     string
	}{
		"its holder works":     {now: "e", would: explain.Refuse, why: "the same event"},
		"its holder died":      {now: "e", wait: 2 * time.Minute, would: explain.Decide, why: "in f request 1 was interrupted"},
		"others took over":     {now: "e", wait: 2 * time.Minute, takes: true, would: explain.Decide, why: "in f request 1 was interrupted"},
		"another event":        {now: "d", wait: 2 * time.Minute, would: explain.Run, why: "the holder f request 1 died"},
		"no event":             {wait: 2 * time.Minute, would: explain.Run, why: "the holder f request 1 died"},
		"forgotten by now":     {now: "e", wait: 48 * time.Hour, would: explain.Run, why: "the holder f request 1 died"},
		"with another payload": {payload: "p", now: "e", wait: 2 * time.Minute, would: explain.Refuse, why: "another payload"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := memstore.New()
				locker := expect.Value(lock.New(store, &lock.Options{
					Lease: lock.FixedLease(time.Minute), Logger: slog.New(slog.DiscardHandler), OnInterrupted: lock.FailInterrupted, Holder: func(context.Context) string { return "f request 1" },
				}))(t)
				expect.Value(locker.Acquire(t.Context(), lock.Key{Name: "n", Event: "e", Payload: c.payload}))(t)
				time.Sleep(c.wait)
				if c.takes {
					expect.Must(t, locker.Do(t.Context(), lock.Key{Name: "n", Event: "f"}, func(context.Context) error { return nil }))
				}
				e := explain.OfKey(lock.Key{Name: "n", Event: c.now, Payload: "q"})
				expect.Must(t, e.Judge(t.Context(), store, "", time.Now()))
				if v := e.Records[0].Keys[0].Verdict; v.Would != c.would || !strings.Contains(v.Why, c.why) {
					t.Errorf("got %+v, want %s: %s", *v, c.would, c.why)
				}
			})
		})
	}
}

// damaged is a store whose reads of the name orders/n fail, and of all others.
type damaged struct {
	driver.Inspector
	row, others error
}

func (d damaged) Read(_ context.Context, name string) (driver.Row, error) {
	if name == "orders/n" {
		return driver.Row{}, d.row
	}
	return driver.Row{}, d.others
}

// TestVerdictOfADamagedRow: it is about that row. A store that cannot be read
// at all is an error. S3 denies to read what does not exist, unless
// s3:ListBucket is allowed.
func TestVerdictOfADamagedRow(t *testing.T) { // F41
	t.Parallel()
	unreadable := &driver.Error{Store: "it", Lasting: true, Err: errors.New("no readable stamp")}
	denied := &driver.Error{Store: "it", Lasting: true, Action: "s3:GetObject"}
	for name, c := range map[string]struct {
		store damaged
		ends  bool
	}{
		"the others are read":   {damaged{row: unreadable}, false},
		"the others are denied": {damaged{row: unreadable, others: denied}, false},
		"all are denied":        {damaged{row: denied, others: denied}, true},
		"there is no store":     {damaged{row: unreadable, others: unreadable}, true},
	} {
		e := explain.OfKey(lock.Key{Name: "n", Event: "e"})
		err := e.Judge(t.Context(), c.store, "orders", time.Now())
		if errors.As(err, new(*driver.Error)) != c.ends {
			t.Errorf("%s: got %v", name, err)
		}
		if v := e.Records[0].Keys[0].Verdict; err == nil && (v.Row != "orders/n" || v.Would != explain.Refuse || !strings.Contains(v.Why, "no readable stamp")) {
			t.Errorf("%s: got %+v", name, *v)
		}
	}
}
