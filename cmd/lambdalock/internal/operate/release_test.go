package operate

import (
	"context"
	"errors"
	"io"
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

// lossy fails settlements, before or after they are applied.
type lossy struct {
	*memstore.Store
	fails   int
	applied bool
	err     error
}

func (s *lossy) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	if s.fails--; s.fails < 0 {
		return s.Store.Settle(ctx, t)
	}
	if s.applied {
		_, _, _ = s.Store.Settle(ctx, t)
	}
	return driver.Row{}, false, s.err
}

// The errors of a store.
var (
	passing   = &driver.Error{Store: "it", Err: errors.New("connection reset")}
	throttled = &driver.Error{Store: "it", Err: errors.New("throttled"), Answered: true, Unapplied: true}
	denied    = &driver.Error{Store: "it", Err: errors.New("denied"), Lasting: true, Action: "dynamodb:UpdateItem", Answered: true, Unapplied: true}
)

// settlements are what may become of one that an operator asks for: if its
// answer is missing, it may be applied nevertheless.
func settlements(done string) map[string]settled {
	return map[string]settled{
		"applied, no answer":     {lossy{fails: 1, applied: true, err: passing}, true, 0, done},
		"not applied, no answer": {lossy{fails: 1, err: passing}, true, 0, done},
		"throttled":              {lossy{fails: 2, err: throttled}, true, 0, done},
		"always throttled":       {lossy{fails: 99, err: throttled}, false, 69, "throttled"},
		"never an answer":        {lossy{fails: 99, applied: true, err: passing}, true, 69, "nevertheless, as an answer is missing"},
		"denied":                 {lossy{fails: 99, err: denied}, false, 69, "dynamodb:UpdateItem was denied"},
	}
}

type settled struct {
	store  lossy
	done   bool
	status int
	says   string
}

func TestReleaseSaysWhatHappened(t *testing.T) {
	t.Parallel()
	for name, c := range settlements("Released orders/a.") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c.store.Store = memstore.New()
				rowtest.Acquire(t, c.store.Store, "f", time.Hour, lock.Key{Name: "a", Event: "e"})
				var out strings.Builder
				err := release(t.Context(), &c.store, "orders", "a", &out, answering(nil, nil))
				row, _ := c.store.Read(t.Context(), "orders/a")
				c.check(t, out.String(), err, row.Token == "")
				if repeated := c.store.fails != 98; c.store.err == denied && repeated {
					t.Error("a request that cannot succeed was repeated")
				}
			})
		})
	}
}

// check compares what was said with what was done.
func (c settled) check(t *testing.T, out string, err error, done bool) {
	t.Helper()
	if err != nil {
		out += err.Error()
	}
	if status(trouble(err)) != c.status || !strings.Contains(out, c.says) || strings.Contains(out, "nevertheless") != strings.Contains(c.says, "nevertheless") || done != c.done {
		t.Errorf("status %d, done is %v, it says\n%s", status(trouble(err)), done, out)
	}
}

// TestReleaseNamesTheSlot: of a limited lock whose first slot is free, it names
// one that somebody can be released from. JSON has all that have rows. The
// first may be the row of a lock that had no limit, and remember its event.
func TestReleaseNamesTheSlot(t *testing.T) {
	t.Parallel()
	now := time.Now()
	cooled := driver.Row{Token: "cools", Cooldown: "t", Stamp: now, Until: now.Add(-time.Second)}
	free, held := driver.Row{Stamp: now}, driver.Row{Token: "t", Stamp: now, Until: now.Add(time.Hour)}
	dead := driver.Row{Token: "t", Stamp: now, Until: now.Add(-time.Second)}
	remembers := free
	remembers.Memory.Completed = []driver.CompletedEvent{{Event: "e", Until: now.Add(time.Hour)}}
	for name, c := range map[string]struct {
		slots someRows
		says  string
	}{
		"the third is held": {someRows{"slot:2:a": free, "slot:3:a": held}, "nobody holds slot 1 of orders/a; release another one by its own name, for example orders/slot:3:a"},
		"the third is dead": {someRows{"slot:3:a": dead}, "for example orders/slot:3:a"},
		"one has cooled":    {someRows{"slot:2:a": cooled, "slot:3:a": held}, "for example orders/slot:3:a"},
		"all are free":      {someRows{"slot:2:a": cooled, "slot:3:a": free}, "nobody holds orders/a"},
	} {
		for _, first := range []driver.Row{free, remembers} {
			c.slots["a"] = first
			var shown strings.Builder
			expect.Must(t, (&Show{jsonFlag: jsonFlag{true}}).print(t.Context(), &shown, c.slots, &driver.NamedRow{Name: "orders/a", Row: first}))
			if n := strings.Count(shown.String(), "\"slot\":"); n != len(c.slots) {
				t.Errorf("%s: show --json has %d slots:\n%s", name, n, shown.String())
			}
			err := release(t.Context(), rowsOnly{memstore.New(), c.slots}, "orders", "a", io.Discard, answering(nil, nil))
			if status(err) != 1 || !strings.HasSuffix(err.Error(), c.says) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// rowsOnly is a store with these rows.
type rowsOnly struct {
	driver.Store
	someRows
}

// TestReleaseOrNot: if the lock has another holder after a failed attempt, that
// attempt may have released it, unless the store says that it was not applied.
func TestReleaseOrNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"no answer": {passing, "an answer is missing, so perhaps this released orders/a: it is held by g now"},
		"throttled": {throttled, "nothing was changed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &lossy{Store: memstore.New(), fails: 1, applied: true, err: c.err}
				rowtest.Acquire(t, s.Store, "f", time.Hour, lock.Key{Name: "a", Event: "e"})
				go func() {
					time.Sleep(releasePause)
					rowtest.Acquire(t, s.Store, "g", time.Hour, lock.Key{Name: "a", Event: "e2"})
				}()
				err := release(t.Context(), s, "orders", "a", io.Discard, answering(nil, nil))
				if status(trouble(err)) != 1 || !strings.Contains(err.Error(), c.says) {
					t.Errorf("status %d: %v", status(trouble(err)), err)
				}
			})
		})
	}
}

func TestForgetSaysWhatHappened(t *testing.T) {
	t.Parallel()
	for name, c := range settlements("Forgotten.") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c.store.Store = memstore.New()
				rowtest.Complete(t, c.store.Store, lock.Key{Name: "a", Event: "e"}, nil)
				var out strings.Builder
				command := Forget{StoreFlags: console.StoreFlags{Namespace: "orders"}, Key: "a", Event: "e"}
				err := command.forget(t.Context(), &c.store, &out, answering(nil, nil))
				row, _ := c.store.Read(t.Context(), "orders/a")
				c.check(t, out.String(), err, len(row.Memory.Completed) == 0)
			})
		})
	}
}
