package operate

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// TestCompleteWithoutOnInterrupted: an event that kills each holder is skipped
// once somebody says so, and no other event is. Without a flag the row must
// name it as that of its dead holder.
func TestCompleteWithoutOnInterrupted(t *testing.T) { // F2
	t.Parallel()
	long := strings.Repeat("e", 200) // stored as a hash
	free := func(t *testing.T, s *memstore.Store, _ string) {
		expect.Must(t, release(t.Context(), s, "orders", "a", &strings.Builder{}, answering(nil, nil)))
	}
	again := func(t *testing.T, s *memstore.Store, event string) *lock.Lock {
		return rowtest.Acquire(t, s, "f request 2", time.Minute, lock.Key{Name: "a", Event: event, Payload: "p"})
	}
	for name, c := range map[string]struct {
		event     string // whose holder died; e1
		of        string // whose completion is asked for; event
		skip      bool
		before    func(t *testing.T, store *memstore.Store, event string)
		meanwhile func(t *testing.T, store *memstore.Store, event string)
		status    int
		says, not string
	}{
		"of the dead holder":          {says: "by f request 1", not: "unknown"},
		"a long one":                  {event: long, says: "by f request 1"},
		"skipped":                     {skip: true, says: "Skip e1 from now on?"},
		"another one":                 {of: "e2", status: 1, says: "--skip skips it nevertheless"},
		"another one, skipped":        {of: "e2", skip: true, says: "unknown        e2"},
		"released":                    {before: free, status: 1, says: "knows of no interrupted run of e1"},
		"released, skipped":           {before: free, skip: true, says: "the row knows no run of it"},
		"long and released":           {event: long, before: free, skip: true, says: "Completed"},
		"the holder lives":            {skip: true, before: func(t *testing.T, s *memstore.Store, e string) { again(t, s, e) }, status: 1, says: "is held by f request 2"},
		"it comes meanwhile":          {skip: true, meanwhile: func(t *testing.T, s *memstore.Store, e string) { again(t, s, e) }, status: 1, says: "is held by f request 2"},
		"it is completed meanwhile":   {skip: true, meanwhile: func(t *testing.T, s *memstore.Store, e string) { expect.Must(t, again(t, s, e).Complete()) }, status: 1, says: "nothing was changed"},
		"another completes meanwhile": {meanwhile: func(t *testing.T, s *memstore.Store, _ string) { expect.Must(t, again(t, s, "e7").Complete()) }, says: "Completed"},
		"it fails meanwhile":          {meanwhile: func(t *testing.T, s *memstore.Store, e string) { expect.Must(t, again(t, s, e).Release()) }, says: "Completed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := memstore.New()
				event := c.event
				if event == "" {
					event = "e1"
				}
				rowtest.Acquire(t, store, "f request 1", time.Minute, lock.Key{Name: "a", Event: event, Payload: "p"})
				time.Sleep(2 * time.Minute)
				if c.before != nil {
					c.before(t, store, event)
				}
				of := event
				if c.of != "" {
					of = c.of
				}
				var out strings.Builder
				command := &Complete{StoreFlags: console.StoreFlags{Namespace: "orders"}, Key: "a", Event: of, Remember: time.Hour, Skip: c.skip}
				err := command.complete(t.Context(), store, &out, func(_ context.Context, question string) error {
					out.WriteString(question)
					if c.meanwhile != nil {
						c.meanwhile(t, store, event)
					}
					return nil
				})
				if err != nil {
					out.WriteString(err.Error())
				}
				if status(err) != c.status || !strings.Contains(out.String(), c.says) || c.not != "" && strings.Contains(out.String(), c.not) {
					t.Errorf("status %d: %s", status(err), out.String())
				}
				if err != nil {
					return
				}
				row := rowtest.Read(t, store, "orders/a")
				locker := expect.Value(lock.New(store, &lock.Options{Namespace: "orders", Logger: slog.New(slog.DiscardHandler)}))(t)
				knows := c.before == nil && c.of == "" // what the dead holder's event carried
				if _, err := locker.Acquire(t.Context(), lock.Key{Name: "a", Event: of, Payload: "q"}); errors.As(err, new(*lock.PayloadMismatchError)) != knows {
					t.Errorf("its next delivery with another payload: %v; the row remembers %+v", err, row.Memory)
				}
				if _, err := locker.Acquire(t.Context(), lock.Key{Name: "a", Event: of, Payload: "p"}); !errors.Is(err, lock.ErrCompleted) {
					t.Errorf("its next delivery: %v; the row remembers %+v", err, row.Memory)
				}
			})
		})
	}
}

// watched is a store that keeps the claims.
type watched struct {
	*memstore.Store
	claims []driver.Claim
}

func (w *watched) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	w.claims = append(w.claims, *c)
	return w.Store.Acquire(ctx, c)
}

// TestDecisionsHoldTheName: who meets a decision is told whose it is, and if
// its process dies, the name is soon free.
func TestDecisionsHoldTheName(t *testing.T) {
	t.Parallel()
	flags := console.StoreFlags{Namespace: "orders"}
	for holder, decide := range map[string]func(context.Context, driver.Store, io.Writer, asker) error{
		"lambdalock complete by ": (&Complete{StoreFlags: flags, Key: "a", Event: "e1", Remember: time.Hour}).complete,
		"lambdalock forget by ":   (&Forget{StoreFlags: flags, Key: "a", Event: "e1"}).forget,
	} {
		store := &watched{Store: memstore.New()}
		interrupt(t, store.Store, "e1")
		expect.OK(t, decide(t.Context(), store, io.Discard, answering(nil, nil)))
		if len(store.claims) != 1 || !strings.HasPrefix(store.claims[0].Holder, holder) || store.claims[0].Until.Sub(store.claims[0].Now) > time.Minute {
			t.Errorf("%s: the claims are %+v", holder, store.claims)
		}
	}
}

// TestCompleteSaysWhatReliesOnIt: events that were coalesced have been
// acknowledged, and only a run of the dead holder's event does their work.
func TestCompleteSaysWhatReliesOnIt(t *testing.T) {
	t.Parallel()
	if got := relying(&driver.Row{Marks: 2}); !strings.Contains(got, "nothing runs for them either") {
		t.Errorf("of two coalesced events: %q", got)
	}
}

// TestForgetSaysWhatReliesOnIt: the row that was changed has no marks.
func TestForgetSaysWhatReliesOnIt(t *testing.T) {
	t.Parallel()
	const coalesced = "Events were coalesced"
	c := &Forget{Event: "e1"}
	for _, marks := range []int64{0, 2, -1} {
		got := c.consequences(&driver.NamedRow{Name: "orders/42", Row: driver.Row{Marks: marks}}, time.Now())
		if strings.Contains(got, coalesced) != (marks != 0) {
			t.Errorf("with %d marks: %q", marks, got)
		}
	}
}

// TestDeadHoldersSince: what others asked of the holder moved the stamp.
func TestDeadHoldersSince(t *testing.T) {
	t.Parallel()
	now := time.Now()
	row := &driver.NamedRow{Name: "a", Row: driver.Row{Token: "t", Event: "e1", Holder: "f", Fence: now.Add(-time.Hour).UnixMicro(), Stamp: now.Add(-time.Minute), Until: now.Add(-time.Second)}}
	e := expect.Value((&Complete{Event: "e1"}).find(row, now))(t)
	if since := now.Sub(e.Since).Round(time.Second); since != time.Hour {
		t.Errorf("since %v", since)
	}
}
