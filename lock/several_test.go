package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// recorder notes the names for which requests are sent, and can stop to send
// them.
type recorder struct {
	driver.Store
	mu       sync.Mutex
	requests []string // such as "acquire a"
	// fault is called before a request is sent, with its number for this
	// operation, starting at 1.
	fault func(op, name string, nth int) error
}

func (r *recorder) note(op, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	name = strings.TrimPrefix(name, "/")
	r.requests = append(r.requests, op+" "+name)
	nth := 0
	for _, s := range r.requests {
		if strings.HasPrefix(s, op+" ") {
			nth++
		}
	}
	if r.fault == nil {
		return nil
	}
	return r.fault(op, name, nth)
}

// sent returns the requests since the last call.
func (r *recorder) sent() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := strings.Join(r.requests, ", ")
	r.requests = nil
	return s
}

func (r *recorder) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	if err := r.note("acquire", c.Name); err != nil {
		return driver.Row{}, false, err
	}
	return r.Store.Acquire(ctx, c)
}

func (r *recorder) Renew(ctx context.Context, n *driver.Renewal) (driver.Row, bool, error) {
	if err := r.note("renew", n.Name); err != nil {
		return driver.Row{}, false, err
	}
	return r.Store.Renew(ctx, n)
}

func (r *recorder) Settle(ctx context.Context, s *driver.Settlement) (driver.Row, bool, error) {
	op := "release"
	if s.Memory != nil {
		op = "complete"
	}
	if err := r.note(op, s.Name); err != nil {
		return driver.Row{}, false, err
	}
	return r.Store.Settle(ctx, s)
}

// record puts a recorder in front of the fixture's store, for a Locker with o.
func (f *fixture) record(o lock.Options) (*recorder, *lock.Locker) {
	f.t.Helper()
	r := &recorder{Store: f.faulty}
	o.Logger = discard
	l := expect.Value(lock.New(r, &o))(f.t)
	return r, l
}

// keys returns keys with these names and one event.
func keys(event string, names ...string) []lock.Key {
	all := make([]lock.Key, len(names))
	for i, n := range names {
		all[i] = lock.Key{Name: n, Event: event}
	}
	return all
}

// stays is a lease that needs no goroutine and outlasts every test.
var stays = lock.Options{Lease: lock.FixedLease(24 * time.Hour)}

func (f *fixture) mustAcquireAll(l *lock.Locker, keys ...lock.Key) *lock.Lock {
	f.t.Helper()
	all, err := l.AcquireAll(f.t.Context(), keys...)
	if err != nil {
		f.t.Fatalf("acquire all: %v", err)
	}
	return all
}

// wantAllFree fails the test unless every name can be acquired immediately.
func (f *fixture) wantAllFree(when string, names ...string) {
	f.t.Helper()
	for _, n := range names {
		if err := f.locker(lock.Options{}).Do(context.Background(), lock.Key{Name: n}, nothing); err != nil {
			f.t.Errorf("%s, %s: %v", when, n, err)
		}
	}
}

// TestAcquireAll shows the order of the requests: acquired and completed in the
// order of the names, released in reverse, and each name once.
func TestAcquireAll(t *testing.T) {
	given := append(keys("e", "c", "a", "b"), keys("e", "a")...)
	for name, c := range map[string]struct {
		end  func(*lock.Lock) error
		want string
	}{
		"complete": {func(all *lock.Lock) error { return all.CompleteWith(lock.Completion{Result: []byte("result")}) }, "acquire a, acquire b, acquire c, complete a, complete b, complete c"},
		"release":  {(*lock.Lock).Release, "acquire a, acquire b, acquire c, release c, release b, release a"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				r, l := f.record(stays)
				all := f.mustAcquireAll(l, given...)
				if err := all.Context().Err(); err != nil {
					t.Errorf("the context has ended: %v", err)
				}
				for range 2 { // only the first call counts
					expect.OK(t, c.end(all))
				}
				if err := all.Release(); err != nil {
					t.Errorf("Release in the end: %v", err)
				}
				if err := c.end(all); err != nil {
					t.Errorf("%s after that: %v", name, err)
				}
				if got := r.sent(); got != c.want {
					t.Errorf("sent %s\nwant %s", got, c.want)
				}
				if all.Context().Err() == nil {
					t.Error("the context goes on")
				}
				for _, k := range keys("e", "a", "b", "c") {
					_, err := l.Acquire(t.Context(), k)
					var done *lock.CompletedError
					if completed := errors.As(err, &done); completed != (name == "complete") || completed && string(done.Result) != "result" {
						t.Errorf("a duplicate for %s: %v", k.Name, err)
					}
				}
			})
		})
	}
	if given[0].Name != "c" {
		t.Error("the caller's keys were sorted")
	}
}

func TestAcquireAllWithoutUsableKeys(t *testing.T) { // F26
	a := lock.Key{Name: "a", Event: "e", Order: "1", Payload: "p"}
	with := func(change func(*lock.Key)) []lock.Key {
		b := a
		change(&b)
		return []lock.Key{a, {Name: "b"}, b}
	}
	for name, c := range map[string]struct {
		keys     []lock.Key
		field    string
		observed string // name of the key
	}{
		"none":              {nil, "keys", ""},
		"no name":           {[]lock.Key{a, {Event: "e"}}, "keys[1].Name", ""},
		"order too long":    {[]lock.Key{{Name: "b", Order: strings.Repeat("9", 257)}, a}, "keys[0].Order", "b"},
		"different event":   {with(func(k *lock.Key) { k.Event = "other" }), "keys", "a"},
		"different order":   {with(func(k *lock.Key) { k.Order = "2" }), "keys", "a"},
		"different payload": {with(func(k *lock.Key) { k.Payload = "other" }), "keys", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			_, err := f.locker(lock.Options{}).AcquireAll(t.Context(), c.keys...)
			var e *lock.NoKeyError
			if !errors.As(err, &e) || e.Field != c.field {
				t.Errorf("got %v, want a NoKeyError of %s", err, c.field)
			}
			if o := f.observed[0]; o.Key.Name != c.observed {
				t.Errorf("observed of %+v", o.Key)
			}
			f.wantOutcomes(lock.OutcomeRefused)
			if n := f.faulty.Requests(fault.Acquire); n > 0 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// TestAllOrNone shows that the refusal of one key, whichever it is, leaves none
// of the others held, and what it costs.
func TestAllOrNone(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	mine := make([]lock.Key, len(names))
	for i, n := range names {
		mine[i] = lock.Key{Name: n, Event: "e", Order: "5", Payload: "mine"}
	}
	for name, c := range map[string]struct {
		prepare  func(f *fixture, r *recorder, key lock.Key)
		is       func(error) bool
		attempts int           // requests for the key that is refused
		maxWait  time.Duration // zero: the refusal is immediate
	}{
		"held": {func(f *fixture, _ *recorder, k lock.Key) {
			f.mustAcquire(f.locker(stays), lock.Key{Name: k.Name, Event: "other"})
		}, func(err error) bool { return isHeld(err) && !errors.Is(err, lock.ErrLost) }, 1, 0},
		"held for longer than MaxWait": {func(f *fixture, _ *recorder, k lock.Key) {
			f.mustAcquire(f.locker(stays), lock.Key{Name: k.Name, Event: "other"})
		}, isHeld, -1, 3 * time.Second},
		"completed": {func(f *fixture, _ *recorder, k lock.Key) {
			_ = f.locker(lock.Options{}).Do(f.t.Context(), lock.Key{Name: k.Name, Event: "e"}, nothing)
		}, func(err error) bool {
			var done *lock.CompletedError
			return errors.As(err, &done) && !done.Stale
		}, 1, 0},
		"stale": {func(f *fixture, _ *recorder, k lock.Key) {
			_ = f.locker(lock.Options{}).Do(f.t.Context(), lock.Key{Name: k.Name, Order: "6"}, nothing)
		}, func(err error) bool {
			var done *lock.CompletedError
			return errors.As(err, &done) && done.Stale
		}, 1, 0},
		"another payload": {func(f *fixture, _ *recorder, k lock.Key) {
			k.Payload = "theirs"
			_ = f.locker(lock.Options{}).Do(f.t.Context(), k, nothing)
		}, func(err error) bool { return errors.As(err, new(*lock.PayloadMismatchError)) }, 1, 0},
		"store refuses": {func(_ *fixture, r *recorder, k lock.Key) {
			r.fault = func(op, name string, _ int) error {
				if op == "acquire" && name == k.Name {
					return &driver.Error{Lasting: true, Answered: true, Unapplied: true, Err: errors.New("denied")}
				}
				return nil
			}
		}, isStoreError, 1, 0},
		"no answer": {func(_ *fixture, r *recorder, k lock.Key) {
			r.fault = func(op, name string, _ int) error {
				if op == "acquire" && name == k.Name {
					return errDropped
				}
				return nil
			}
		}, isStoreError, -1, 0},
	} {
		for i, key := range mine {
			t.Run(fmt.Sprintf("%s, number %d", name, i+1), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t)
					r, l := f.record(lock.Options{Lease: lock.Heartbeat(10 * time.Second), MaxWait: c.maxWait})
					c.prepare(f, r, key)
					began := time.Now()
					all, err := l.AcquireAll(t.Context(), mine...)
					if all != nil || !c.is(err) || !strings.Contains(fmt.Sprint(err, key.Digest()), key.Digest()) {
						t.Errorf("got %v, %v", all, err)
					}
					if took := time.Since(began); c.maxWait > 0 && took != c.maxWait {
						t.Errorf("it took %v, want %v", took, c.maxWait)
					}
					sent := strings.Split(r.sent(), ", ")
					var want []string
					for _, n := range names[:i] {
						want = append(want, "acquire "+n)
					}
					if !slices.Equal(sent[:i], want) {
						t.Errorf("sent %q first, want %q", sent[:i], want)
					}
					slices.Reverse(want)
					for j := range want {
						want[j] = strings.Replace(want[j], "acquire", "release", 1)
					}
					last := sent[len(sent)-i:]
					if !slices.Equal(last, want) {
						t.Errorf("sent %q last, want %q", last, want)
					}
					if n := len(sent) - 2*i; c.attempts > 0 && n != c.attempts {
						t.Errorf("%d requests for %s in %q, want %d", n, key.Name, sent, c.attempts)
					}
					for _, n := range names {
						if n != key.Name || !isHeld(err) {
							f.wantAllFree("afterwards", n)
						}
					}
				})
			})
		}
	}
}

// TestContextOfLocks shows that the work runs under all leases, with one
// reserve, and that each lease lasts to the deadline of the
// function.
func TestContextOfLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		deadline, _ := ctx.Deadline()
		outer := expect.Value(f.locker(untilDeadline).Acquire(ctx, lock.Key{Name: "outer"}))(t)
		names := make([]string, 50)
		for i := range names {
			names[i] = fmt.Sprintf("n%02d", i)
		}
		slow := &recorder{Store: f.faulty, fault: func(string, string, int) error { time.Sleep(5 * time.Millisecond); return nil }}
		l := expect.Value(lock.New(slow, &lock.Options{Lease: lock.UntilDeadline(), Logger: discard}))(t)
		all := expect.Value(l.AcquireAll(outer.Context(), keys("e", names...)...))(t)
		leases := lock.Leases(all.Context())
		if len(leases) != 51 || leases[0].Key.Name != "n49" || leases[49].Key.Name != "n00" || leases[50].Key.Name != "outer" {
			t.Errorf("the work runs under %d leases: %v", len(leases), leases)
		}
		if last, _ := lock.FromContext(all.Context()); last != leases[0] {
			t.Errorf("FromContext returns %v", last)
		}
		end, _ := outer.Context().Deadline()
		for _, lease := range leases[:50] {
			if got := lease.Until; !got.Equal(deadline.Add(lock.DefaultGrace)) {
				t.Errorf("the lease of %s ends at %v, want %v after the deadline, at which the process is killed", lease.Key.Name, got, lock.DefaultGrace)
			}
		}
		if got, _ := all.Context().Deadline(); !got.Equal(end.Add(-time.Second)) {
			t.Errorf("the work ends %v before the deadline of the function, want 1 s for each of two calls", deadline.Sub(got))
		}
		expect.OK(t, errors.Join(all.Complete(), outer.Release()))
		if n := len(lock.Leases(all.Context())); n != 51 {
			t.Errorf("%d leases after their end", n)
		}
		if n := f.faulty.Requests(fault.Acquire) + f.faulty.Requests(fault.Release); n != 2*51 {
			t.Errorf("%d requests, want 2 for each lock", n)
		}
	})
}

// TestContextEndsWithAnyLease shows that the loss of any lease ends the work.
func TestContextEndsWithAnyLease(t *testing.T) { // F15, F21
	names := []string{"a", "b", "c"}
	for _, lost := range names {
		t.Run(lost, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				l := f.locker(lock.Options{Lease: lock.Heartbeat(30 * time.Second)})
				all := f.mustAcquireAll(l, keys("e", names...)...)
				row := readRow(t, f.faulty.Store, "/"+lost)
				expect.Granted(f.faulty.Store.Settle(t.Context(), &driver.Settlement{Name: "/" + lost, Token: row.Token}))(t)
				time.Sleep(11 * time.Second) // the next renewal
				synctest.Wait()
				var cause *lock.LostError
				if !errors.As(context.Cause(all.Context()), &cause) || cause.Key.Name != lost {
					t.Errorf("the context's cause is %v, want the loss of %s", context.Cause(all.Context()), lost)
				}
				err := all.CompleteWith(lock.Completion{Result: []byte("result")})
				var e *lock.LostError
				if !errors.As(err, &e) || e.Key.Name != lost {
					t.Errorf("Complete: %v, want the loss of %s", err, lost)
				}
				if again := all.Complete(); again != err {
					t.Errorf("Complete again: %v", again)
				}
				// The work is done, so its duplicates are skipped.
				if _, err := l.AcquireAll(t.Context(), keys("e", names...)...); !isCompleted(err) {
					t.Errorf("a duplicate: %v", err)
				}
				f.wantAllFree("in the end", names...)
			})
		})
	}
}

// TestLostWhileAcquiring shows that a set of which a lease is lost while it
// waits for the last name is lost, and does not go on to wait.
func TestLostWhileAcquiring(t *testing.T) { // F21
	notRenewed := func(f *fixture) { f.faulty.Always(fault.Renew, fault.Deny) }
	takenOver := func(f *fixture) {
		s := &driver.Settlement{Name: "/a", Token: readRow(f.t, f.faulty.Store, "/a").Token}
		_, _, _ = f.faulty.Store.Settle(context.Background(), s)
	}
	for name, c := range map[string]struct {
		names []string
		lose  func(*fixture)
	}{
		"not renewed":               {[]string{"a", "b"}, notRenewed},
		"taken over":                {[]string{"a", "b"}, takenOver},
		"taken over, after another": {[]string{"0", "a", "b"}, takenOver},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.mustAcquire(f.locker(stays), lock.Key{Name: "b"})
				f.outcomes()
				l := f.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second), MaxWait: time.Minute})
				time.AfterFunc(time.Second, func() { c.lose(f) })
				began := time.Now()
				_, err := l.AcquireAll(t.Context(), keys("e", c.names...)...)
				var lost *lock.LostError
				if !errors.As(err, &lost) || lost.Key.Name != "a" || isHeld(err) {
					t.Errorf("got %v, want the loss of a", err)
				}
				if took := time.Since(began); took > 9*time.Second {
					t.Errorf("it took %v", took)
				}
				if got := f.outcomes(); got[len(got)-2] != lock.OutcomeLost {
					t.Errorf("observed %q", got)
				}
				f.wantAllFree("afterwards", "a")
			})
		})
	}
}

// TestSlowAcquireAll shows that a set whose first lease ends before the last
// one was acquired is lost. That is not a failure of the store: FailOpen must
// not let the work run without locks.
func TestSlowAcquireAll(t *testing.T) { // F15, F20
	for name, c := range map[string]struct {
		answers time.Duration
		lost    bool
	}{"too slow": {600 * time.Millisecond, true}, "just fast enough": {300 * time.Millisecond, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				r, l := f.record(lock.Options{Lease: lock.FixedLease(3 * time.Second)})
				r.fault = func(op, _ string, _ int) error {
					if op == "acquire" {
						time.Sleep(c.answers)
					}
					return nil
				}
				all, err := l.AcquireAll(t.Context(), keys("e", "a", "b", "c")...)
				var lost *lock.LostError
				if errors.As(err, &lost) != c.lost || c.lost && lost.Key.Name != "a" {
					t.Fatalf("got %v", err)
				}
				if !c.lost {
					_ = all.Release()
				}
				f.wantAllFree("afterwards", "a", "b", "c")
			})
		})
	}
}

// TestFrozenWhileAcquiring shows that a set is lost if the environment was
// frozen after its first lock was acquired, for longer than the lease.
func TestFrozenWhileAcquiring(t *testing.T) { // F15
	for _, when := range []string{"during a request", "between two requests"} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				var process onClock
				r := &recorder{Store: f.faulty, fault: func(_, name string, _ int) error {
					if name == "b" && when == "during a request" {
						process.freeze(time.Hour)
					}
					return nil
				}}
				l, err := lock.New(r, &lock.Options{Lease: lock.FixedLease(time.Minute), Logger: discard, Holder: func(ctx context.Context) string {
					if len(lock.Leases(ctx)) == 1 && when == "between two requests" {
						process.freeze(time.Hour)
					}
					return "holder"
				}})
				if err != nil {
					t.Fatal(err)
				}
				process = skewed(l, 0)
				_, err = process.AcquireAll(t.Context(), keys("e", "a", "b", "c")...)
				if !errors.Is(err, lock.ErrLost) {
					t.Errorf("got %v, want ErrLost", err)
				}
				if got := r.sent(); got != "acquire a, acquire b, release b, release a" {
					t.Errorf("sent %s", got)
				}
			})
		})
	}
}

// TestLongWaitOfASet shows that the leases that a set has already are renewed
// while it waits for the next one, under a deadline that counts for nothing.
func TestLongWaitOfASet(t *testing.T) { // F22
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		b := f.mustAcquire(f.locker(stays), lock.Key{Name: "b"})
		time.AfterFunc(30*time.Second, func() { _ = b.Release() })
		ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
		defer cancel()
		set := expect.Value(f.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second), MaxWait: time.Minute}).AcquireAll(ctx, keys("e", "a", "b", "c")...))(t)
		if err := set.Context().Err(); err != nil {
			t.Errorf("the work begins with a context that has ended: %v", err)
		}
		expect.OK(t, set.Complete())
	})
}

// TestLostAndCompleted shows that a completed event is told as such, even if a
// lease of the set is lost by then: nothing is left to do.
func TestLostAndCompleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		expect.Must(t, f.locker(lock.Options{}).Do(t.Context(), lock.Key{Name: "b", Event: "e"}, nothing))
		var process onClock
		l := expect.Value(lock.New(f.faulty, &lock.Options{Lease: lock.FixedLease(time.Minute), Logger: discard, Holder: func(ctx context.Context) string {
			process.freeze(time.Hour * time.Duration(len(lock.Leases(ctx))))
			return "holder"
		}}))(t)
		process = skewed(l, 0)
		if _, err := process.AcquireAll(t.Context(), keys("e", "a", "b")...); !isCompleted(err) {
			t.Errorf("got %v", err)
		}
	})
}

// TestWaitOfASet shows that MaxWait is for the whole set, and that a fixed
// lease of the set ends the wait while there is still time to work.
func TestWaitOfASet(t *testing.T) {
	const untilFixedEnds = 8*time.Second - lock.DefaultGrace - 2*time.Second - 100*time.Millisecond + 4*time.Second
	fixed := lock.Options{Lease: lock.FixedLease(8 * time.Second), MaxWait: time.Minute}
	for name, c := range map[string]struct {
		o      lock.Options
		within time.Duration // the caller's deadline; zero: none
		want   time.Duration
	}{
		"MaxWait":                         {lock.Options{Lease: lock.Heartbeat(10 * time.Second), MaxWait: 6 * time.Second}, 0, 6 * time.Second},
		"a fixed lease":                   {fixed, 0, untilFixedEnds},
		"a fixed lease, under a deadline": {fixed, time.Minute, untilFixedEnds},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				a := f.mustAcquire(f.locker(stays), lock.Key{Name: "a"})
				time.AfterFunc(4*time.Second, func() { _ = a.Release() })
				f.mustAcquire(f.locker(stays), lock.Key{Name: "b"})
				l := f.locker(c.o)
				began, ctx := time.Now(), t.Context()
				if c.within > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.within)
					defer cancel()
				}
				_, err := l.AcquireAll(ctx, keys("e", "a", "b")...)
				var held *lock.HeldError
				if !errors.As(err, &held) || held.Key.Name != "b" || errors.Is(err, lock.ErrLost) {
					t.Errorf("got %v, want b to be held", err)
				}
				// a is acquired up to one look after its release.
				if took := time.Since(began); took < c.want || took > c.want+longestLook {
					t.Errorf("waited for %v, want %v", took, c.want)
				}
				f.wantAllFree("afterwards", "a")
			})
		})
	}
}

// longestLook is the longest time between two requests of one that waits.
const longestLook = 3 * time.Second

// TestDeadlineNearWithinASet shows that no further key is asked for when there
// is no time left to work.
func TestDeadlineNearWithinASet(t *testing.T) { // F12
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r, l := f.record(untilDeadline)
		r.fault = func(op, _ string, _ int) error {
			if op == "acquire" {
				time.Sleep(450 * time.Millisecond)
			}
			return nil
		}
		names := make([]string, 30)
		for i := range names {
			names[i] = fmt.Sprintf("n%02d", i)
		}
		_, err := l.AcquireAll(ctx, keys("e", names...)...)
		if !errors.As(err, new(*lock.DeadlineError)) && !isStoreError(err) {
			t.Errorf("got %v, want a DeadlineError, or no answer within a tenth of the time that is left", err)
		}
		if left := time.Until(deadlineOf(ctx)); left < time.Second {
			t.Errorf("%v are left, less than the reserve", left)
		}
		f.wantAllFree("afterwards", names...)
	})
}

// TestNoTimeLeftWithinASet: each key needs the time to work, as a lock of its
// own does.
func TestNoTimeLeftWithinASet(t *testing.T) { // F12
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		o := untilDeadline
		o.Observe = func(_ context.Context, o lock.Observation) {
			if o.Outcome == lock.OutcomeAcquired {
				time.Sleep(9 * time.Second)
			}
		}
		if _, err := f.locker(o).AcquireAll(ctx, keys("e", "a", "b")...); !isDeadline(err) || f.faulty.Requests(fault.Acquire) != 1 {
			t.Errorf("got %v after %d claims", err, f.faulty.Requests(fault.Acquire))
		}
	})
}

func deadlineOf(ctx context.Context) time.Time {
	d, _ := ctx.Deadline()
	return d
}

// TestCompleteAllGoesOn shows that every row is completed that can be.
func TestCompleteAllGoesOn(t *testing.T) { // F7
	names := []string{"a", "b", "c"}
	for name, c := range map[string]struct {
		fails func(op, name string) error
		took  time.Duration
	}{
		"denied":    {func(_, n string) error { return deniedFor(n, "a") }, 0},
		"denied, b": {func(_, n string) error { return deniedFor(n, "b") }, 0},
		"no answer": {func(op, n string) error {
			if op == "complete" && n == "a" {
				time.Sleep(time.Second)
				return errDropped
			}
			return nil
		}, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				r, l := f.record(lock.Options{Lease: lock.FixedLease(20 * time.Second), CompleteWithin: 10 * time.Second})
				all := f.mustAcquireAll(l, keys("e", names...)...)
				r.fault = func(op, n string, _ int) error { return c.fails(op, n) }
				began := time.Now()
				err := all.CompleteWith(lock.Completion{Result: []byte("result")})
				if !isStoreError(err) || err != all.Release() {
					t.Errorf("Complete: %v, and Release: %v", err, all.Release())
				}
				if took := time.Since(began); took < c.took || took > c.took+time.Second {
					t.Errorf("it took %v, want %v of the 10 s for all of them", took, c.took)
				}
				r.fault = nil
				done := 0
				for _, k := range keys("e", names...) {
					if _, err := l.Acquire(t.Context(), k); isCompleted(err) {
						done++
					} else if !isHeld(err) {
						t.Errorf("%s: %v, want it held: a release would let a duplicate run", k.Name, err)
					}
				}
				if done != 2 {
					t.Errorf("%d rows are completed, want 2", done)
				}
				time.Sleep(21 * time.Second)
				if _, err := l.AcquireAll(t.Context(), keys("e", names...)...); !isCompleted(err) {
					t.Errorf("a duplicate: %v", err)
				}
				f.wantAllFree("after the leases", names...)
			})
		})
	}
}

func deniedFor(name, which string) error {
	if name == which {
		return &driver.Error{Lasting: true, Answered: true, Unapplied: true, Err: errors.New("denied")}
	}
	return nil
}

// TestSeveralFailures shows that the error of a set tells of each of them.
func TestSeveralFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		r, l := f.record(lock.Options{Lease: lock.FixedLease(20 * time.Second)})
		all := f.mustAcquireAll(l, keys("e", "a", "b", "c")...)
		row := readRow(t, f.faulty.Store, "/b")
		_, _, _ = f.faulty.Store.Settle(t.Context(), &driver.Settlement{Name: "/b", Token: row.Token})
		r.fault = func(_, n string, _ int) error { return deniedFor(n, "a") }
		err := all.Complete()
		var lost *lock.LostError
		if !isStoreError(err) || !errors.As(err, &lost) || lost.Key.Name != "b" {
			t.Errorf("got %v, want what happened to a and to b", err)
		}
	})
}

func TestLocksAfterTheirEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		l := f.locker(lock.Options{})
		all := f.mustAcquireAll(l, keys("e", "a", "b")...)
		expect.OK(t, all.Release())
		if err := all.Complete(); err != lock.ErrReleased {
			t.Errorf("Complete after Release: %v", err)
		}
		f.faulty.Always(fault.Release, fault.Deny)
		all = f.mustAcquireAll(l, keys("e", "a", "b")...)
		if err := all.Release(); !isStoreError(err) || all.Release() != err {
			t.Errorf("Release: %v, and again: %v", err, all.Release())
		}
	})
}

// TestReleaseOfASetIsShort shows that a store without answers does not take the
// time of one release for each lock.
func TestReleaseOfASetIsShort(t *testing.T) { // F11
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		names := make([]string, 50)
		for i := range names {
			names[i] = fmt.Sprintf("n%02d", i)
		}
		all := f.mustAcquireAll(f.locker(lock.Options{Lease: lock.FixedLease(20 * time.Second)}), keys("e", names...)...)
		f.faulty.Always(fault.Release, fault.Hang)
		began := time.Now()
		if err := all.Release(); !isStoreError(err) {
			t.Errorf("Release: %v", err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v, want at most 2 s", took)
		}
		var before time.Time // when the one before it had ended
		for _, o := range f.observed[len(names):] {
			ended := o.Began.Add(o.Duration)
			if o.HeldFor != ended.Sub(began) || o.Began.Before(before) {
				t.Errorf("%s was held for %v and ended after %v, its release took %v", o.Key.Name, o.HeldFor, ended.Sub(began), o.Duration)
			}
			before = ended
		}
	})
}

// TestCrashBetweenCompletions shows that a process may die at any moment while
// it completes a set: once one row is completed, no duplicate runs, and no name
// is held for longer than its lease.
func TestCrashBetweenCompletions(t *testing.T) { // F19
	names := []string{"a", "b", "c", "d"}
	for done := range len(names) + 1 {
		t.Run(fmt.Sprintf("after %d", done), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				r, l := f.record(lock.Options{Lease: lock.FixedLease(10 * time.Second)})
				all := f.mustAcquireAll(l, keys("e", names...)...)
				r.fault = func(op, _ string, nth int) error { // the process is dead
					if op == "complete" && nth <= done {
						return nil
					}
					return &driver.Error{Lasting: true, Answered: true, Unapplied: true, Err: errors.New("killed")}
				}
				if err := all.CompleteWith(lock.Completion{Result: []byte("result")}); (err == nil) != (done == len(names)) {
					t.Errorf("Complete: %v", err)
				}
				retry, l := f.record(lock.Options{Lease: lock.FixedLease(10 * time.Second)})
				_, err := l.AcquireAll(t.Context(), keys("e", names...)...)
				var completed *lock.CompletedError
				if done > 0 && (!errors.As(err, &completed) || string(completed.Result) != "result") {
					t.Errorf("the retry got %v, want the result of the first run", err)
				}
				if done == 0 && !isHeld(err) {
					t.Errorf("the retry got %v, want held", err)
				}
				if got := retry.sent(); got != "acquire a" {
					t.Errorf("the retry sent %s, want one request: the row that is completed first is the one that it asks first", got)
				}
				time.Sleep(10*time.Second + time.Millisecond)
				f.wantAllFree("after the leases", names...)
				again, err := l.AcquireAll(t.Context(), keys("e", names...)...)
				if done > 0 != isCompleted(err) {
					t.Errorf("after the leases the retry got %v", err)
				}
				if err == nil {
					_ = again.Complete()
				}
				f.wantAllFree("in the end", names...)
			})
		})
	}
}

// TestDuplicateMeetsAnyRow shows that whichever row of a set is the only one
// that is completed, a duplicate does not run.
func TestDuplicateMeetsAnyRow(t *testing.T) {
	names := []string{"a", "b", "c"}
	for _, completed := range names {
		t.Run(completed, func(t *testing.T) {
			f := newFixture(t)
			l := f.locker(lock.Options{})
			expect.Must(t, l.Do(t.Context(), lock.Key{Name: completed, Event: "e"}, nothing))
			var e *lock.CompletedError
			if _, err := l.AcquireAll(t.Context(), keys("e", names...)...); !errors.As(err, &e) || e.Key.Name != completed {
				t.Errorf("got %v", err)
			}
			f.wantAllFree("afterwards", names...)
		})
	}
}

// TestSetWithinLocks shows that nobody waits for itself.
func TestSetWithinLocks(t *testing.T) { // F33
	f := newFixture(t)
	l := f.locker(lock.Options{MaxWait: time.Hour})
	one := f.mustAcquire(l, lock.Key{Name: "b"})
	if _, err := l.AcquireAll(one.Context(), keys("e", "a", "b")...); !isConfigError(err) {
		t.Errorf("a set inside a lock of one of its names: %v", err)
	}
	_ = one.Release()
	set := f.mustAcquireAll(l, keys("e", "a", "b", "c")...)
	for _, n := range []string{"a", "b", "c"} {
		if _, err := l.Acquire(set.Context(), lock.Key{Name: n}); !isConfigError(err) {
			t.Errorf("a lock of %s inside the set: %v", n, err)
		}
		if _, err := l.AcquireAll(set.Context(), keys("e", "0", n)...); !isConfigError(err) {
			t.Errorf("a set with %s inside the set: %v", n, err)
		}
	}
	inner := expect.Value(l.AcquireAll(set.Context(), keys("e", "x", "y")...))(t)
	expect.OK(t, errors.Join(inner.Complete(), set.Complete()))
	f.wantAllFree("in the end", "0", "a", "b", "c", "x", "y")
}

func isConfigError(err error) bool { return errors.As(err, new(*lock.ConfigError)) }

// TestSetIsEndedAsAWhole shows that no lock of a set can be completed in a
// transaction on its own.
func TestSetIsEndedAsAWhole(t *testing.T) {
	f := newFixture(t)
	set := f.mustAcquireAll(f.locker(lock.Options{}), keys("e", "a", "b")...)
	before := f.faulty.Requests(fault.Release) + f.faulty.Requests(fault.Renew)
	held, _ := driver.FromContext(set.Context())
	err := held.CompleteWith(t.Context(), nil, func(context.Context, *driver.Settlement) (driver.Row, bool, error) {
		t.Error("the transaction was sent")
		return driver.Row{}, false, nil
	})
	if !isConfigError(err) {
		t.Errorf("CompleteWith: %v", err)
	}
	if n := f.faulty.Requests(fault.Release) + f.faulty.Requests(fault.Renew) - before; n > 0 {
		t.Errorf("%d requests", n)
	}
	if err := set.Complete(); err != nil {
		t.Errorf("the set goes on: %v", err)
	}
}

// TestHeartbeatsOfASet shows that every lease of a set is renewed.
func TestHeartbeatsOfASet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		set := f.mustAcquireAll(f.locker(lock.Options{Lease: lock.Heartbeat(9 * time.Second)}), keys("e", "a", "b", "c")...)
		time.Sleep(time.Minute)
		if err := context.Cause(set.Context()); err != nil {
			t.Errorf("the work has ended: %v", err)
		}
		for _, lease := range lock.Leases(set.Context()) {
			if left := time.Until(lease.Until); left < 5*time.Second {
				t.Errorf("%v are left of the lease of %s", left, lease.Key.Name)
			}
		}
		expect.OK(t, set.Complete())
	})
}
