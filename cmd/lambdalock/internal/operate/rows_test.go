package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/rowtest"
	"github.com/lambdalock/lambdalock/internal/event/stored"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/simclock"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/memstore"
	"github.com/lambdalock/lambdalock/stores/redisstore/redisquorum"
)

// answering answers a question, after something has happened.
func answering(meanwhile func(), err error) asker {
	return func(context.Context, string) error {
		if meanwhile != nil {
			meanwhile()
		}
		return err
	}
}

// TestRelease: the lock of the holder that was shown is taken, and nobody
// else's, whatever happens between the question and the answer.
func TestRelease(t *testing.T) {
	t.Parallel()
	key := lock.Key{Name: "a", Event: "e2"}
	for name, c := range map[string]struct {
		lease     time.Duration
		order     string        // that is remembered
		remember  time.Duration // the event; zero: a day
		meanwhile func(t *testing.T, store *memstore.Store, lk *lock.Lock)
		answer    error
		status    int    // of the error; 0: none
		says      string // what is printed, or the error
		owner     string // afterwards
	}{
		"yes":            {lease: time.Hour, says: "Released orders/a. The next claim gets it. Nothing delivers its event by itself."},
		"fence is named": {lease: time.Hour, says: "checks the fence"},
		"order":          {lease: time.Hour, order: "05", says: "Released orders/a."},
		"long memory":    {lease: time.Hour, remember: 4 * 24 * time.Hour, says: "Released orders/a."},
		"no":             {lease: time.Hour, answer: yes("n\n"), status: 1, says: "nothing was changed", owner: "f request 1"},
		"the holder completes": {
			lease: time.Hour, status: 1, says: "f request 1 released orders/a itself",
			meanwhile: func(t *testing.T, _ *memstore.Store, lk *lock.Lock) {
				expect.OK(t, lk.Complete())
			},
		},
		"another holder": {
			lease: time.Hour, status: 1, says: "orders/a is held by f request 2 now", owner: "f request 2",
			meanwhile: func(t *testing.T, store *memstore.Store, lk *lock.Lock) {
				expect.OK(t, lk.Release())
				rowtest.Acquire(t, store, "f request 2", time.Hour, key)
			},
		},
		"the same function again": {
			lease: time.Hour, status: 1, says: "held by f request 1 now", owner: "f request 1",
			meanwhile: func(t *testing.T, store *memstore.Store, lk *lock.Lock) {
				_ = lk.Release()
				rowtest.Acquire(t, store, "f request 1", time.Hour, key)
			},
		},
		"a dead holder": {lease: -time.Second, says: "has ended, so the next claim gets the lock anyway"},
		"a dead holder, and a takeover": {lease: -time.Second, status: 1, says: "held by f request 2 now", owner: "f request 2", meanwhile: func(t *testing.T, store *memstore.Store, _ *lock.Lock) {
			rowtest.Acquire(t, store, "f request 2", time.Hour, key)
		}},
		"a slow answer": {lease: 24 * time.Hour, order: "05", says: "Released orders/a.", meanwhile: func(*testing.T, *memstore.Store, *lock.Lock) {
			time.Sleep(3 * time.Hour)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := memstore.New()
				remember := func(o *lock.Options) { o.Remember = c.remember }
				rowtest.Complete(t, store, lock.Key{Name: "a", Event: "e1", Order: c.order}, nil, remember)
				lk := rowtest.Acquire(t, store, "f request 1", c.lease, key)
				meanwhile := func() {
					if c.meanwhile != nil {
						c.meanwhile(t, store, lk)
					}
				}
				var out strings.Builder
				err := release(t.Context(), store, "orders", "a", &out, answering(meanwhile, c.answer))
				if got := status(err); got != c.status || !strings.Contains(out.String()+fmt.Sprint(err), c.says) {
					t.Errorf("status %d, want %d with %q\n%s%v", got, c.status, c.says, out.String(), err)
				}
				row := rowtest.Read(t, store, "orders/a")
				if row.Holder != c.owner || !row.Memory.Has("e1", time.Now()) {
					t.Errorf("the row is %+v, want the owner %q", row, c.owner)
				}
				kept := max(24*time.Hour, c.remember)
				if c.order != "" {
					kept = longestRemember
				}
				if left := time.Until(row.DeleteAfter); c.status == 0 && (left < kept-time.Hour || left > kept+time.Hour) {
					t.Errorf("the row is kept for %v, want %v", left, kept)
				}
			})
		})
	}
}

// TestReleaseOfAProcess: who releases a lock of exec is told how to end that
// without two at a time.
func TestReleaseOfAProcess(t *testing.T) {
	t.Parallel()
	for holder, want := range map[string]bool{"report.sh on build-7 pid 4711": true, "build 4711": false} {
		store := memstore.New()
		rowtest.Acquire(t, store, holder, time.Hour, lock.Key{Name: "a"})
		var out strings.Builder
		expect.Must(t, release(t.Context(), store, "orders", "a", &out, answering(nil, nil)))
		if strings.Contains(out.String(), "kill 4711 on build-7: exec ends its command") != want {
			t.Errorf("of %s:\n%s", holder, out.String())
		}
	}
}

// TestReleaseDuringCooldown: no holder is left who could work on, and nobody is
// told of one.
func TestReleaseDuringCooldown(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	lk := rowtest.Acquire(t, store, "f request 1", time.Minute, lock.Key{Name: "a", Event: "e"}, func(o *lock.Options) { o.HoldAtLeast = time.Hour })
	expect.Must(t, lk.Complete())
	var out strings.Builder
	err := release(t.Context(), store, "orders", "a", &out, answering(nil, nil))
	if says := out.String(); err != nil || !strings.Contains(says, "The last holder has ended") || strings.Contains(says, "still alive") || strings.Contains(says, "its event") {
		t.Errorf("%v\n%s", err, says)
	}
	if row := rowtest.Read(t, store, "orders/a"); row.Token != "" {
		t.Errorf("the row is %+v, want nobody's", row)
	}
}

// status returns the exit status of an error of these commands.
func status(err error) int {
	if err == nil {
		return 0
	}
	var e *statusError
	if errors.As(trouble(err), &e) {
		return e.status
	}
	return -1
}

func TestNewerRowIsRefused(t *testing.T) {
	t.Parallel()
	newer := newerStore{memstore.New()}
	if err := release(t.Context(), newer, "", "x", io.Discard, answering(nil, nil)); status(err) != 1 || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("a newer row: %v", err)
	}
	if err := (&Forget{Key: "x", Event: "e"}).forget(t.Context(), newer, io.Discard, answering(nil, nil)); status(err) != 1 || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("a newer row: %v", err)
	}
}

// newerStore has rows of a newer format only.
type newerStore struct{ *memstore.Store }

func (newerStore) Read(context.Context, string) (driver.Row, error) {
	return driver.Row{Newer: true}, nil
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{"y\n": true, "Yes\r\n": true, " YES": true, "n\n": false, "": false, "yup": false, "j": false} {
		t.Run(line, func(t *testing.T) {
			if got := yes(line) == nil; got != want {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

// TestForget: the event runs again, and no other one does.
func TestForget(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("e", 200) // stored as a hash
	for name, c := range map[string]struct {
		order     string
		event     string
		reset     bool
		result    bool
		meanwhile func(t *testing.T, store *memstore.Store)
		answer    error
		status    int
		says      string
		runs      []string // afterwards
	}{
		"event":                {event: "e1", says: "Forgotten. e1 runs", runs: []string{"e1"}},
		"newest event, result": {event: "e2", result: true, says: "6 bytes kept for replay", runs: []string{"e2"}},
		"older event, result":  {event: "e1", result: true, says: "Forgotten", runs: []string{"e1"}},
		"long event":           {event: long, says: "Forgotten", runs: []string{long}},
		"no":                   {event: "e1", answer: yes("n"), status: 1, says: "nothing was changed"},
		"unknown event":        {event: "e7", status: 1, says: "does not remember e7, so nothing keeps it", runs: nil},
		"no order to reset":    {event: "e7", reset: true, status: 1, says: "does not remember e7, so nothing keeps it"},
		"unknown, with orders": {order: "05", event: "e7", status: 1, says: "highest completed one, 05: --reset-order"},
		"order is kept":        {order: "05", event: "e1", says: "stays stale and will be skipped"},
		"order is reset":       {order: "05", event: "e1", reset: true, says: "every earlier event that is delivered again runs as well", runs: []string{"e1"}},
		"unknown, order reset": {order: "05", event: "e7", reset: true, says: "The highest order is forgotten too"},
		"completed again":      {event: "e1", status: 1, says: "e1 was completed meanwhile", meanwhile: func(t *testing.T, store *memstore.Store) { completeAgain(t, store, "e1") }},
		"another was completed": {event: "e1", says: "Forgotten", runs: []string{"e1"}, meanwhile: func(t *testing.T, store *memstore.Store) {
			rowtest.Complete(t, store, lock.Key{Name: "a", Event: "e3"}, nil)
		}},
		"somebody holds it now": {event: "e1", status: 1, says: "orders/a is held by f request 9 until", meanwhile: func(t *testing.T, store *memstore.Store) {
			rowtest.Acquire(t, store, "f request 9", time.Hour, lock.Key{Name: "a", Event: "e9"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memstore.New()
			events := []string{"e1", long, "e2"}
			for _, e := range events {
				var result []byte
				if c.result {
					result = []byte("result")
				}
				rowtest.Complete(t, store, lock.Key{Name: "a", Event: e}, result)
			}
			if c.order != "" {
				rowtest.Complete(t, store, lock.Key{Name: "a", Order: c.order}, nil)
			}
			before := rowtest.Read(t, store, "orders/a")
			meanwhile := func() {
				if c.meanwhile != nil {
					c.meanwhile(t, store)
				}
			}
			var out strings.Builder
			cmd := &Forget{StoreFlags: console.StoreFlags{Namespace: "orders"}, Key: "a", Event: c.event, ResetOrder: c.reset}
			err := cmd.forget(t.Context(), store, &out, answering(meanwhile, c.answer))
			if got := status(err); got != c.status || !strings.Contains(out.String()+fmt.Sprint(err), c.says) {
				t.Errorf("status %d, want %d with %q\n%s%v", got, c.status, c.says, out.String(), err)
			}
			after := rowtest.Read(t, store, "orders/a")
			if c.status == 0 && (after.Token != "" || after.Fence <= before.Fence) {
				t.Errorf("the row is %+v afterwards", after)
			}
			if left := time.Until(after.DeleteAfter); c.status == 0 && c.order != "" && !c.reset && left < 365*24*time.Hour {
				t.Errorf("the order is kept for %v", left)
			}
			for _, e := range events {
				claim := driver.Claim{Name: "orders/a", Event: stored.Event(e), Order: c.order, Token: "new", Now: time.Now(), Stamp: time.Now().Add(time.Hour)}
				got := after.Judge(&claim) == driver.Granted
				if want := slices.Contains(c.runs, e); got != want && after.Token == "" {
					t.Errorf("%.10s would run: %v, want %v; the row is %+v", e, got, want, after)
				}
			}
			if kept := after.Memory.Result.Event != ""; c.result && kept != (c.event != "e2") {
				t.Errorf("a result is kept: %v", kept)
			}
		})
	}
}

// completeAgain completes an event once more, as after it was forgotten.
func completeAgain(t *testing.T, store *memstore.Store, event string) {
	t.Helper()
	_, err := edit(t.Context(), store, "forget", "orders/a", func(m driver.Memory) (*driver.Memory, error) {
		m.Completed = slices.Clone(m.Completed)
		for i := range m.Completed {
			if m.Completed[i].Event == event {
				m.Completed[i].Until = m.Completed[i].Until.Add(time.Second)
			}
		}
		return &m, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestForgetAfterALostAnswer: the other events stay completed if the answer to
// the claim was lost, whether the store grants the repeated claim or refuses it
// and shows its own row.
func TestForgetAfterALostAnswer(t *testing.T) { // F1
	t.Parallel()
	for name, refuses := range map[string]bool{"granted again": false, "refused, its own": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &forgetful{Store: memstore.New(), refuses: refuses}
			for _, event := range []string{"e1", "e2"} {
				rowtest.Complete(t, store.Store, lock.Key{Name: "a", Event: event}, nil)
			}
			err := (&Forget{Key: "orders/a", Event: "e1"}).forget(t.Context(), store, io.Discard, answering(nil, nil))
			row := rowtest.Read(t, store.Store, "orders/a")
			if now := time.Now(); err != nil || store.claims != 2 || row.Memory.Has("e1", now) || !row.Memory.Has("e2", now) {
				t.Errorf("%v after %d claims, and the row remembers %+v; want e2 only", err, store.claims, row.Memory.Completed)
			}
		})
	}
}

// forgetful is a store whose first answer to a claim is lost.
type forgetful struct {
	*memstore.Store
	refuses bool // the repeated claim, as locktest allows
	claims  int
}

func (s *forgetful) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	if s.claims++; s.claims > 1 && s.refuses {
		row, err := s.Read(ctx, c.Name)
		return row, false, err
	}
	row, ok, err := s.Store.Acquire(ctx, c)
	if s.claims == 1 {
		return driver.Row{}, false, &driver.Error{Store: "a store", Err: io.ErrUnexpectedEOF}
	}
	return row, ok, err
}

// slowOnce is a client of a server that is too slow for the next request.
type slowOnce struct {
	redis.Scripter
	next bool
}

func (s *slowOnce) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if s.next {
		s.next = false
		cmd := redis.NewCmd(ctx)
		cmd.SetErr(io.EOF)
		return cmd
	}
	return s.Scripter.EvalSha(ctx, sha, keys, args...)
}

// untimed is a quorum whose servers may take any time for an answer, as those
// of a busy machine do.
type untimed struct{ *redisquorum.Store }

func (u untimed) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	return u.Store.Acquire(simclock.Untimed(ctx), c)
}

func (u untimed) Settle(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	return u.Store.Settle(simclock.Untimed(ctx), s)
}

// TestForgetOnAQuorum: a server of three that missed the claim keeps what it
// remembers, although it answers when the row is changed.
func TestForgetOnAQuorum(t *testing.T) { // F42
	t.Parallel()
	for name, reset := range map[string]bool{"an event": false, "an order": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clients := make([]redis.Scripter, 3)
			for i := range clients {
				c := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
				t.Cleanup(func() { _ = c.Close() })
				clients[i] = c
			}
			slow := &slowOnce{Scripter: clients[2]}
			clients[2] = slow
			store := untimed{expect.Value(redisquorum.New(clients...))(t)}
			key := lock.Key{Name: "a", Event: "e1"}
			if reset {
				key = lock.Key{Name: "a", Order: "5"}
			}
			rowtest.Complete(t, store, key, nil)
			forget := func(meanwhile func()) (string, error) {
				var out strings.Builder
				cmd := &Forget{StoreFlags: console.StoreFlags{Namespace: "orders"}, Key: "a", Event: "e1", ResetOrder: reset}
				err := trouble(cmd.forget(t.Context(), store, &out, answering(meanwhile, nil)))
				return out.String(), err
			}
			out, err := forget(func() { slow.next = true })
			if status(err) != 69 || !strings.Contains(fmt.Sprint(err), "enter the command again") || strings.Contains(out, "Forgotten") {
				t.Errorf("a server still remembers it: %v\n%s", err, out)
			}
			if out, err := forget(func() {}); err != nil || !strings.Contains(out, "Forgotten") {
				t.Errorf("again: %v\n%s", err, out)
			}
			if m := expect.Value(store.Read(t.Context(), "orders/a"))(t).Memory; len(m.Completed) > 0 || m.HighestOrder != "" {
				t.Errorf("the row remembers %+v", m)
			}
		})
	}
}

// TestForgottenByTime: an event that has expired needs no forgetting.
func TestForgottenByTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		lk := rowtest.Acquire(t, store, "f", time.Hour, lock.Key{Name: "a", Event: "e"}, func(o *lock.Options) { o.Remember = time.Minute })
		expect.Must(t, lk.Complete())
		time.Sleep(2 * time.Minute)
		err := (&Forget{Key: "orders/a", Event: "e"}).forget(t.Context(), store, io.Discard, answering(nil, nil))
		if status(err) != 1 || !strings.Contains(err.Error(), "has forgotten e since") {
			t.Errorf("got %v", err)
		}
	})
}

// TestWatch follows a lock through its life.
func TestWatch(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{"all": nil, "by key": {"b", "a"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				store := &flaky{Store: memstore.New()}
				var out, notes strings.Builder
				w := &Watch{StoreFlags: console.StoreFlags{Namespace: "orders"}, Keys: keys, Interval: 10 * time.Second}
				ended := make(chan error)
				first := rowtest.Acquire(t, store, "f request 1", time.Minute, lock.Key{Name: "a", Event: "e1"})
				go func() { ended <- w.watch(ctx, store, &out, &notes) }()
				time.Sleep(15 * time.Second)
				store.fails.Store(true)
				expect.OK(t, first.Complete())
				time.Sleep(10 * time.Second)
				store.fails.Store(false)
				rowtest.Acquire(t, store, "f request 2", time.Minute, lock.Key{Name: "a", Event: "e2"})
				time.Sleep(10 * time.Second)
				store.damaged.Store(true)
				time.Sleep(10 * time.Second)
				store.damaged.Store(false)
				time.Sleep(60 * time.Second)
				rowtest.Acquire(t, store, "f request 3", time.Minute, lock.Key{Name: "a", Event: "e2"})
				time.Sleep(10 * time.Second)
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				var got []string
				for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
					fields := strings.Fields(line)
					got = append(got, fields[1]+" "+strings.Join(fields[3:], " "))
				}
				want := []string{"held event e1 by f request 1", "completed event e1 by f request 1", "acquired event e2 by f request 2", "expired event e2 by f request 2", "taken_over event e2 by f request 3 from f request 2"}
				if len(got) != len(want) {
					t.Fatalf("got %q, want %q", got, want)
				}
				for i := range want {
					if !strings.HasPrefix(got[i], want[i]) {
						t.Errorf("line %d is %q, want %q", i, got[i], want[i])
					}
				}
				if !strings.Contains(notes.String(), "until Ctrl-C") || !strings.Contains(notes.String(), "flaky") || strings.Contains(notes.String(), "of the namespace orders") != (keys == nil) {
					t.Errorf("notes: %s", notes.String())
				}
			})
		})
	}
}

// flaky is a store that fails for a while, or has a damaged row.
type flaky struct {
	*memstore.Store
	fails   atomic.Bool
	damaged atomic.Bool // its row orders/a
}

func (f *flaky) Read(ctx context.Context, name string) (driver.Row, error) {
	if f.fails.Load() {
		return driver.Row{}, &driver.Error{Store: "flaky"}
	}
	if f.damaged.Load() && name == "orders/a" {
		return driver.Row{}, errDamaged
	}
	return f.Store.Read(ctx, name)
}

func (f *flaky) Rows(ctx context.Context, prefix string) iter.Seq2[driver.NamedRow, error] {
	return func(yield func(driver.NamedRow, error) bool) {
		switch {
		case f.fails.Load():
			yield(driver.NamedRow{}, &driver.Error{Store: "flaky"})
		case f.damaged.Load():
			yield(driver.NamedRow{Name: "orders/a"}, errDamaged)
		default:
			f.Store.Rows(ctx, prefix)(yield)
		}
	}
}

var errDamaged = &driver.Error{Store: "flaky", Lasting: true}
