package objectstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/objectstore"
)

const lease = 15 * time.Second

// claimAt returns the claim of a process whose clock shows now.
func claimAt(now time.Time, name, token string) *driver.Claim {
	return &driver.Claim{
		Name: name, Token: token, Holder: "holder " + token,
		Now: now, Stamp: now, Until: now.Add(lease), DeleteAfter: now.Add(24 * time.Hour),
	}
}

func acquire(t *testing.T, s driver.Store, c *driver.Claim) (driver.Row, bool) {
	t.Helper()
	return answer(t)(s.Acquire(t.Context(), c))
}

func mustAcquire(t *testing.T, s driver.Store, c *driver.Claim) driver.Row {
	t.Helper()
	row, ok := acquire(t, s, c)
	if !ok {
		t.Fatalf("the claim of %s was refused by %+v", c.Token, row)
	}
	return row
}

func mustRefuse(t *testing.T, s driver.Store, c *driver.Claim) driver.Row {
	t.Helper()
	row, ok := acquire(t, s, c)
	if ok {
		t.Fatalf("the claim of %s was granted: %+v", c.Token, row)
	}
	return row
}

func release(t *testing.T, s driver.Store, c *driver.Claim) (driver.Row, bool) {
	t.Helper()
	return answer(t)(s.Settle(t.Context(), &driver.Settlement{Name: c.Name, Token: c.Token, DeleteAfter: c.DeleteAfter}))
}

func mustRelease(t *testing.T, s driver.Store, c *driver.Claim) {
	t.Helper()
	if row, ok := release(t, s, c); !ok {
		t.Fatalf("the release of %s was refused by %+v", c.Token, row)
	}
}

func renew(t *testing.T, s driver.Store, c *driver.Claim, now time.Time) (driver.Row, bool) {
	t.Helper()
	return answer(t)(s.Renew(t.Context(), &driver.Renewal{Name: c.Name, Token: c.Token, Now: now, Until: now.Add(lease), DeleteAfter: c.DeleteAfter}))
}

func abandon(t *testing.T, s driver.Store, c *driver.Claim) (driver.Row, bool) {
	t.Helper()
	return answer(t)(s.Settle(t.Context(), &driver.Settlement{Name: c.Name, Token: c.Token, DeleteAfter: c.DeleteAfter, Abandon: true, Stamp: c.Stamp}))
}

func mustClaim(t *testing.T, s driver.Store, name string, now time.Time) *driver.Claim {
	t.Helper()
	c := claimAt(now, name, "b")
	mustAcquire(t, s, c)
	return c
}

// TestRequestsPerCycle counts the requests of an acquire and a release.
func TestRequestsPerCycle(t *testing.T) {
	t.Parallel()
	now := noon
	cycle := func(t *testing.T, s driver.Store, name string) {
		t.Helper()
		now = now.Add(time.Millisecond)
		c := claimAt(now, name, fmt.Sprint("token at ", now))
		mustAcquire(t, s, c)
		mustRelease(t, s, c)
	}
	f := newFake()
	for i := range 20 {
		cycle(t, objectstore.New(f), fmt.Sprint("known", i))
	}
	s := objectstore.New(f)
	f.requests()
	for _, c := range []struct {
		name string
		want string
	}{
		{"fresh1", "put put"},
		{"fresh2", "put put"},
		{"fresh1", "put put"},         // in the cache
		{"known0", "put get put put"}, // its process thought that it is fresh
		{"known1", "get put put"},
		{"known2", "get put put"},
		{"known1", "put put"}, // in the cache
		{"fresh3", "get put put"},
		{"fresh4", "put put"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cycle(t, s, c.name)
			var methods []string
			for _, r := range f.requests() {
				method, key, _ := strings.Cut(r, " ")
				if key != c.name {
					t.Errorf("request %q", r)
				}
				methods = append(methods, method)
			}
			if got := strings.Join(methods, " "); got != c.want {
				t.Errorf("made the requests %q, want %q", got, c.want)
			}
		})
	}
}

// TestRequestsOfOtherSteps counts the requests of renewals, refusals and claims
// that are given up.
func TestRequestsOfOtherSteps(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := objectstore.New(f)
	c := claimAt(noon, "n", "a")
	mustAcquire(t, s, c)
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"renewal", func() { renew(t, s, c, noon.Add(time.Second)) }, "put n"},
		{"the same renewal", func() { renew(t, s, c, noon.Add(time.Second)) }, "get n"},
		{"refused claim", func() { mustRefuse(t, s, claimAt(noon.Add(2*time.Second), "n", "b")) }, "get n"},
		{"renewal after that", func() { renew(t, s, c, noon.Add(3*time.Second)) }, "put n"},
		{"renewal in another process", func() { renew(t, objectstore.New(f), c, noon.Add(4*time.Second)) }, "get n, put n"},
		{"renewal with an old row in the cache", func() { renew(t, s, c, noon.Add(5*time.Second)) }, "put n, get n, put n"},
		{"abandon of another claim", func() { abandon(t, s, claimAt(noon.Add(6*time.Second), "n", "b")) }, "get n, put n"},
		{"release in another process", func() { mustRelease(t, objectstore.New(f), c) }, "get n, put n"},
		{"claim of a name that another process took", func() {
			mustRelease(t, s, mustClaim(t, s, "taken", noon))
			mustClaim(t, objectstore.New(f), "taken", noon.Add(7*time.Second))
			mustRefuse(t, s, claimAt(noon.Add(8*time.Second), "taken", "c"))
		}, "get taken, put taken, put taken, put taken, get taken, put taken, put taken, get taken"},
		{"the same once more", func() { mustRefuse(t, s, claimAt(noon.Add(9*time.Second), "taken", "c")) }, "get taken"},
		{"claim of a name whose event was completed elsewhere", func() {
			other := objectstore.New(f)
			complete(t, other, "e1")
			c := claimAt(noon.Add(10*time.Second), "n", "c")
			c.Event = "e1"
			mustRefuse(t, s, c)
			c.Event = "e2"
			mustAcquire(t, s, c)
		}, "put n, get n, put n, put n, get n, put n"},
		{"abandon without a row", func() { abandon(t, objectstore.New(f), claimAt(noon, "new", "b")) }, "get new, put new"},
		{"claim after a lost answer", func() {
			f.fault = func(string) fault { f.fault = nil; return lostAnswer }
			fresh := objectstore.New(f)
			if _, _, err := fresh.Acquire(t.Context(), claimAt(noon, "fresh", "b")); err == nil {
				t.Error("no error")
			}
			c := mustClaim(t, fresh, "fresh", noon)
			mustClaim(t, fresh, "fresh too", noon)
			mustRelease(t, fresh, c)
		}, "put fresh, put fresh, get fresh, put fresh%20too, put fresh"},
		{"claim of a cached row that was not sent", func() {
			c := claimAt(noon.Add(time.Minute), "new", "b")
			s := objectstore.New(f)
			if row, ok := renew(t, s, c, noon); ok {
				t.Errorf("renewed %+v", row)
			}
			f.fault = func(string) fault { f.fault = nil; return noRequest }
			if _, _, err := s.Acquire(t.Context(), c); err == nil {
				t.Error("no error")
			}
			mustAcquire(t, s, c)
		}, "get new, put new, put new"},
		{"release without a row", func() { release(t, s, claimAt(noon, "none", "b")) }, "get none"},
		{"renewal without a row", func() { renew(t, s, claimAt(noon, "none", "b"), noon) }, "get none"},
	} {
		f.requests()
		step.do()
		if got := strings.Join(f.requests(), ", "); got != step.want {
			t.Errorf("%s: made the requests %q, want %q", step.name, got, step.want)
		}
	}
}

// TestClocksHoursApart: clients whose clocks differ by hours do not take a held
// name, and do not wait for hours.
func TestClocksHoursApart(t *testing.T) { // F14
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		ahead, behind := objectstore.New(f), objectstore.New(f)
		aheadNow := func() time.Time { return time.Now().Add(5 * time.Hour) }
		behindNow := func() time.Time { return time.Now().Add(-3 * time.Hour) }

		holder := claimAt(behindNow(), "n", "behind")
		mustAcquire(t, behind, holder)
		time.Sleep(lease - time.Second)
		row := mustRefuse(t, ahead, claimAt(aheadNow(), "n", "ahead"))
		if left := row.Until.Sub(aheadNow()); left < time.Second || left > 3*time.Second {
			t.Errorf("the claimant is told that the lease ends in %v, want 1 s to 3 s", left)
		}
		if row, ok := renew(t, behind, holder, behindNow()); !ok || !row.Until.Equal(behindNow().Add(lease)) {
			t.Errorf("the renewal was applied: %v, until %v, want the owner's own time", ok, row.Until)
		}
		time.Sleep(lease - time.Second)
		mustRefuse(t, ahead, claimAt(aheadNow(), "n", "ahead"))
		time.Sleep(3 * time.Second)
		took := claimAt(aheadNow(), "n", "ahead")
		mustAcquire(t, ahead, took) // from the dead holder
		late := claimAt(behindNow(), "n", "behind 2")
		late.Stamp = took.Stamp.Add(time.Microsecond)
		mustRefuse(t, behind, late)
		mustRelease(t, ahead, took)
		mustAcquire(t, behind, late)
	})
}

// TestWholeSeconds moves the beginning of a lease and the takeover through the
// second: the name is never taken before the lease has ended, and always when
// it has ended 2 s ago.
func TestWholeSeconds(t *testing.T) { // F14, F19
	t.Parallel()
	for _, exact := range []bool{false, true} {
		t.Run(fmt.Sprint("exact times ", exact), func(t *testing.T) {
			t.Parallel()
			for begin := time.Duration(0); begin < time.Second; begin += 90 * time.Millisecond {
				for lease := 2 * time.Second; lease < 3*time.Second; lease += 70 * time.Millisecond {
					for after := -time.Second; after <= 2*time.Second; after += 100 * time.Millisecond {
						f := newFake()
						f.exact = exact
						server := noon.Add(begin)
						f.clock = func() time.Time { return server }
						s := objectstore.New(f)
						c := claimAt(noon, "n", "a")
						c.Until = noon.Add(lease)
						mustAcquire(t, s, c)
						server = server.Add(lease + after)
						_, ok := acquire(t, s, claimAt(noon.Add(time.Hour), "n", "b"))
						if ok && after <= 0 || !ok && after >= 2*time.Second {
							t.Fatalf("begun at %v, lease %v, claimed %v after its end: granted %v", begin, lease, after, ok)
						}
					}
				}
			}
		})
	}
}

// TestStrangerWritesHeldRow: a claim that is given up changes another owner's
// object, and with that its time of writing. The lease ends when it would have
// ended without that, and the owner can still renew and release it.
func TestStrangerWritesHeldRow(t *testing.T) { // F2, F44
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		s, other := objectstore.New(f), objectstore.New(f)
		owner := claimAt(time.Now(), "n", "owner")
		mustAcquire(t, s, owner)
		for range 4 {
			time.Sleep(3 * time.Second)
			if row, ok := abandon(t, other, claimAt(time.Now(), "n", "gave up")); !ok || row.Token != "owner" || row.Until.Sub(owner.Until).Abs() > 2*time.Second {
				t.Fatalf("abandoning was applied: %v, and told %+v", ok, row)
			}
		}
		time.Sleep(2 * time.Second)
		mustRefuse(t, other, claimAt(time.Now(), "n", "early"))
		for range 2 { // the second time there is no begin of the lease in the row
			row, ok := renew(t, s, owner, time.Now())
			if !ok || !row.Until.Equal(time.Now().Add(lease)) {
				t.Fatalf("the renewal was applied: %v, %+v", ok, row)
			}
			time.Sleep(lease - time.Second)
			mustRefuse(t, other, claimAt(time.Now(), "n", "contender"))
		}
		if _, ok := abandon(t, other, claimAt(time.Now(), "n", "gave up")); !ok {
			t.Fatal("abandoning was refused")
		}
		time.Sleep(3 * time.Second)
		if row := mustAcquire(t, other, claimAt(time.Now(), "n", "successor")); row.Previous.Holder != "holder owner" {
			t.Errorf("took over from %q", row.Previous.Holder)
		}
		if _, ok := release(t, s, owner); ok {
			t.Error("the late owner released its successor's lock")
		}
	})
}

// TestLateCopiesExtendNothing sends copies of a claim and of a renewal shortly
// before the lease ends.
func TestLateCopiesExtendNothing(t *testing.T) { // F3, F4
	t.Parallel()
	for name, open := range map[string]func(*fake) (owner, other driver.Store){
		"one process": func(f *fake) (driver.Store, driver.Store) { s := objectstore.New(f); return s, s },
		"two":         func(f *fake) (driver.Store, driver.Store) { return objectstore.New(f), objectstore.New(f) },
		"many":        func(f *fake) (driver.Store, driver.Store) { return strangers{f}, strangers{f} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				s, other := open(f)
				c := claimAt(time.Now(), "n", "owner")
				mustAcquire(t, s, c)
				time.Sleep(10 * time.Second)
				mustAcquire(t, s, c) // a copy
				renewal := &driver.Renewal{Name: "n", Token: "owner", Now: time.Now(), Until: time.Now().Add(lease), DeleteAfter: c.DeleteAfter}
				for range 3 {
					if row, ok := answer(t)(s.Renew(t.Context(), renewal)); !ok || !row.Until.Equal(renewal.Until) {
						t.Fatalf("the renewal was applied: %v, %+v", ok, row)
					}
					acquire(t, s, c)
					time.Sleep(4 * time.Second)
				}
				later := *renewal // only DeleteAfter moves
				later.DeleteAfter = later.DeleteAfter.Add(time.Hour)
				if row, ok := answer(t)(s.Renew(t.Context(), &later)); !ok || !row.DeleteAfter.Equal(later.DeleteAfter) {
					t.Errorf("the renewal was applied: %v, %+v", ok, row)
				}
				round := *c // a later round of the claim with the same end
				round.Stamp, round.Until = time.Now(), renewal.Until
				if row, ok := acquire(t, s, &round); !ok || !row.Stamp.Equal(round.Stamp) {
					t.Errorf("the later round was granted: %v, %+v", ok, row)
				}
				time.Sleep(5 * time.Second) // 17 s after the renewal
				if row := mustAcquire(t, other, claimAt(time.Now(), "n", "successor")); row.Previous.Holder != "holder owner" {
					t.Errorf("took over from %q", row.Previous.Holder)
				}
			})
		})
	}
}

// TestLeaseNeverMovesBack: a renewal for a shorter time arrives whose sender's
// clock is ahead, so that its end is the later one.
func TestLeaseNeverMovesBack(t *testing.T) { // F4, F14
	t.Parallel()
	for _, late := range []time.Duration{0, lease / 2} {
		for name, open := range map[string]func(*fake, *objectstore.Store) driver.Store{
			"the owner":       func(_ *fake, s *objectstore.Store) driver.Store { return s },
			"another process": func(f *fake, _ *objectstore.Store) driver.Store { return objectstore.New(f) },
		} {
			t.Run(fmt.Sprint(name, " after ", late), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFake()
					s := objectstore.New(f)
					c := claimAt(time.Now(), "n", "owner")
					mustAcquire(t, s, c)
					time.Sleep(late)
					ahead := c.Until.Add(time.Minute)
					for n := range 3 {
						r := &driver.Renewal{Name: "n", Token: "owner", Now: ahead, Until: ahead.Add(time.Second), DeleteAfter: c.DeleteAfter}
						if row, ok := answer(t)(open(f, s).Renew(t.Context(), r)); !ok || !row.Until.Equal(r.Until) {
							t.Fatalf("renewal %d was applied: %v, %+v", n, ok, row)
						}
						ahead = ahead.Add(time.Minute)
					}
					time.Sleep(lease - late)
					mustRefuse(t, objectstore.New(f), claimAt(time.Now(), "n", "early"))
					time.Sleep(2 * time.Second)
					mustAcquire(t, objectstore.New(f), claimAt(time.Now(), "n", "successor"))
				})
			})
		}
	}
}

// TestCacheNeverRefuses changes the row behind the back of a process that has
// it in its cache.
func TestCacheNeverRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		behind func(t *testing.T, other driver.Store) // what another process does
		claim  func(*driver.Claim)
		want   bool
	}{
		"nothing": {func(*testing.T, driver.Store) {}, func(*driver.Claim) {}, true},
		"taken": {func(t *testing.T, other driver.Store) {
			mustAcquire(t, other, claimAt(noon.Add(time.Minute), "n", "b"))
		}, func(*driver.Claim) {}, false},
		"event forgotten": {func(t *testing.T, other driver.Store) { complete(t, other, "another") }, func(c *driver.Claim) { c.Event = "e1" }, true},
		"event completed": {func(t *testing.T, other driver.Store) { complete(t, other, "e2") }, func(c *driver.Claim) { c.Event = "e2" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.clock = func() time.Time { return noon }
			s := objectstore.New(f)
			complete(t, s, "e1")
			c.behind(t, objectstore.New(f))
			claim := claimAt(noon.Add(2*time.Minute), "n", "mine")
			c.claim(claim)
			if row, ok := acquire(t, s, claim); ok != c.want {
				t.Errorf("granted %v by %+v", ok, row)
			}
		})
	}
}

// complete acquires n and completes an event, which is then the only one that
// the row remembers.
func complete(t *testing.T, s driver.Store, event string) {
	t.Helper()
	c := claimAt(noon, "n", "token of "+event)
	if row, ok := acquire(t, s, c); !ok {
		c.Stamp = row.Stamp.Add(time.Microsecond)
		mustAcquire(t, s, c)
	}
	m := &driver.Memory{Completed: []driver.CompletedEvent{{Event: event, Until: noon.Add(time.Hour)}}}
	if _, ok := answer(t)(s.Settle(t.Context(), &driver.Settlement{Name: "n", Token: c.Token, DeleteAfter: c.DeleteAfter, Memory: m})); !ok {
		t.Fatal("the completion was refused")
	}
}

// TestLostAnswers lets writes go without an answer, applied and not applied.
// The engine repeats them, and finds its own row.
func TestLostAnswers(t *testing.T) { // F1, F5, F7
	t.Parallel()
	for name, wrong := range map[string]fault{"applied": lostAnswer, "not applied": noRequest, "conflict": conflict, "sent twice": twice} {
		for i := range 4 {
			warm, first := i < 2, i%2 // whether the name is known, and which of two writes goes wrong
			t.Run(fmt.Sprint(name, ", known name ", warm, ", write ", first), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFake()
					locker, err := lock.New(objectstore.New(f), &lock.Options{Lease: lock.Heartbeat(lease), Logger: slog.New(slog.DiscardHandler)})
					if err != nil {
						t.Fatal(err)
					}
					ran := 0
					work := func(context.Context) error {
						ran++
						time.Sleep(lease) // with renewals
						return nil
					}
					if warm {
						expect.Must(t, locker.Do(t.Context(), lock.Key{Name: "n", Event: "e0"}, work))
						ran = 0
					}
					n := 0
					f.fault = func(method string) fault {
						if method == "put" {
							if n++; n%2 == first {
								return wrong
							}
						}
						return none
					}
					for range 2 { // the second is a duplicate
						err = locker.Do(t.Context(), lock.Key{Name: "n", Event: "e1"}, work)
						var completed *lock.CompletedError
						if err != nil && !errors.As(err, &completed) {
							t.Fatal(err)
						}
					}
					if ran != 1 || err == nil {
						t.Errorf("the event ran %d times; error of the duplicate: %v", ran, err)
					}
				})
			})
		}
	}
}

// TestReleaseSentTwice: a proxy sends a release twice and passes on the refusal
// of the second copy.
func TestReleaseSentTwice(t *testing.T) { // F5
	t.Parallel()
	f := newFake()
	s, c := objectstore.New(f), claimAt(noon, "n", "a")
	mustAcquire(t, s, c)
	f.fault = func(string) fault { return twice }
	mustRelease(t, s, c)
}

// TestRefusedCompletion reads the row of another owner after a completion was
// refused. The event is completed if a proxy had sent the completion twice, and
// the lock is lost if the lease had ended, whatever a duplicate did since.
func TestRefusedCompletion(t *testing.T) { // F5, F21
	t.Parallel()
	for name, key := range map[string]lock.Key{"event": {Name: "n", Event: "e1"}, "order": {Name: "n", Order: "1"}, "both": {Name: "n", Event: "e1", Order: "1"}} {
		for what, c := range map[string]struct{ applied, duplicate, held bool }{
			"applied":                            {applied: true, held: true},
			"taken over":                         {held: true},
			"completed by a duplicate":           {duplicate: true},
			"the same, and the name taken again": {duplicate: true, held: true},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFake()
					next := newLocker(t, f)
					mine := expect.Value(newLocker(t, f).Acquire(t.Context(), key))(t)
					others := func() {
						if c.duplicate {
							expect.OK(t, next.Do(t.Context(), key, func(context.Context) error { return nil }))
						}
						if c.held {
							if _, err := next.Acquire(t.Context(), lock.Key{Name: "n", Event: "e2"}); err != nil {
								t.Error(err)
							}
						}
					}
					if c.applied {
						f.fault = func(string) fault { f.fault = nil; return twice }
						f.before = func(method string) {
							if method == "get" {
								f.before = nil
								others()
							}
						}
					} else {
						time.Sleep(lease + 2*time.Second)
						others()
					}
					if err := mine.Complete(); c.applied && err != nil || !c.applied && !errors.As(err, new(*lock.LostError)) {
						t.Errorf("the completion: %v", err)
					}
				})
			})
		}
	}
}

// TestRefusedCompletionOfForgottenEvent: the next owner's row still has the
// event, from when it was completed before.
func TestRefusedCompletionOfForgottenEvent(t *testing.T) { // F21
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		key, next := lock.Key{Name: "n", Event: "e1"}, newLocker(t, f)
		expect.Must(t, next.Do(t.Context(), key, func(context.Context) error { return nil }))
		time.Sleep(lock.DefaultRemember + time.Minute)
		mine := expect.Value(newLocker(t, f).Acquire(t.Context(), key))(t)
		time.Sleep(lease + 2*time.Second)
		expect.Value(next.Acquire(t.Context(), lock.Key{Name: "n", Event: "e2"}))(t)
		if err := mine.Complete(); !errors.As(err, new(*lock.LostError)) {
			t.Errorf("the late completion: %v, want a LostError", err)
		}
	})
}

// TestRefusedReleaseOfInterrupted: a release that changes what is interrupted
// was applied if a proxy had sent it twice, and the lock is lost if the lease
// had ended.
func TestRefusedReleaseOfInterrupted(t *testing.T) { // F5, F21
	t.Parallel()
	for name, end := range map[string]func(*lock.Lock) error{
		"failed":  func(l *lock.Lock) error { return l.Fail(errors.New("boom")) },
		"unknown": func(l *lock.Lock) error { return l.Fail(lock.ErrUnknown) },
	} {
		for _, applied := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, applied %v", name, applied), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFake()
					l := expect.Value(lock.New(objectstore.New(f), &lock.Options{
						Lease: lock.FixedLease(lease), Logger: slog.New(slog.DiscardHandler),
						OnInterrupted: func(context.Context, *lock.InterruptedError) (*lock.Completion, error) { return nil, nil },
					}))(t)
					key, next := lock.Key{Name: "n", Event: "e1"}, newLocker(t, f)
					expect.Value(l.Acquire(t.Context(), key))(t)
					time.Sleep(lease + 2*time.Second)
					mine := expect.Value(l.Acquire(t.Context(), key))(t)
					takeOver := func() { expect.Value(next.Acquire(t.Context(), lock.Key{Name: "n", Event: "e2"}))(t) }
					if applied {
						f.fault = func(string) fault { f.fault = nil; return twice }
						f.before = func(method string) {
							if method == "get" {
								f.before = nil
								takeOver()
							}
						}
					} else {
						time.Sleep(lease + 2*time.Second)
						takeOver()
					}
					if err := end(mine); applied && err != nil || !applied && !errors.As(err, new(*lock.LostError)) {
						t.Errorf("the release: %v", err)
					}
				})
			})
		}
	}
}

func newLocker(t *testing.T, f *fake) *lock.Locker {
	t.Helper()
	l := expect.Value(lock.New(objectstore.New(f), &lock.Options{Lease: lock.FixedLease(lease), Logger: slog.New(slog.DiscardHandler)}))(t)
	return l
}

// TestChangedBetweenGetAndPut: a stranger writes the object between each read
// and write of a claim. The write after that may be sent twice by a proxy.
func TestChangedBetweenGetAndPut(t *testing.T) { // F1
	t.Parallel()
	for name, c := range map[string]struct {
		times int
		then  fault
	}{"once": {1, none}, "twice": {2, none}, "three times, and the last write is repeated": {3, twice}, "each time": {100, none}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			s, other := objectstore.New(f), objectstore.New(f)
			const name = "n 1" // whose key is another
			mustRelease(t, s, mustClaim(t, s, name, noon))
			now := noon.Add(time.Minute)
			writes, busy := 0, false
			f.before = func(method string) {
				if method != "put" || busy || writes == c.times {
					return
				}
				busy = true
				writes++
				now = now.Add(time.Millisecond)
				if _, ok := abandon(t, other, claimAt(now, name, "stranger")); !ok {
					t.Error("the stranger changed nothing")
				}
				busy = false
			}
			f.fault = func(method string) fault {
				if method == "put" && writes == c.times && !busy {
					return c.then
				}
				return none
			}
			row, ok, err := s.Acquire(t.Context(), claimAt(noon.Add(time.Hour), name, "mine"))
			var e *driver.Error
			if c.times < 4 {
				if !ok || err != nil {
					t.Errorf("granted %v, %+v, error %v", ok, row, err)
				}
			} else if !errors.As(err, &e) || e.Lasting || !e.Unapplied || !e.Conflict || ok || !strings.Contains(err.Error(), "object n%201:") {
				t.Errorf("granted %v, error %v, want a conflict about the object", ok, err)
			}
		})
	}
}

func mustAcquireAndRelease(t *testing.T, s driver.Store) {
	t.Helper()
	c := claimAt(noon, "n", "first")
	mustAcquire(t, s, c)
	mustRelease(t, s, c)
}

// TestDeletedObject: a lifecycle rule deletes the object of a name that is in
// the cache.
func TestDeletedObject(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := objectstore.New(f)
	mustAcquireAndRelease(t, s)
	delete(f.objects, "n")
	if row := mustAcquire(t, s, claimAt(noon.Add(time.Hour), "n", "next")); row.Fence != noon.Add(time.Hour).UnixMicro() {
		t.Errorf("the fence is %d", row.Fence)
	}
}

// TestErrorsOfTheService: an error of a read or write is returned, and says
// whether a write may have been applied: a proxy may have sent one twice.
func TestErrorsOfTheService(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"get", "put"} {
		for name, c := range map[string]struct {
			fault   fault
			refused bool
		}{"no answer": {noRequest, false}, "lost answer": {lostAnswer, false}, "refused": {broken, true}} {
			t.Run(method+", "+name, func(t *testing.T) {
				t.Parallel()
				f := newFake()
				s := objectstore.New(f)
				mustAcquireAndRelease(t, s)
				f.fault = func(m string) fault {
					if m == method {
						return c.fault
					}
					return none
				}
				claim := claimAt(noon.Add(time.Hour), "n", "mine")
				if method == "get" { // a cached row would not be read
					s = objectstore.New(f)
				}
				_, ok, err := s.Acquire(t.Context(), claim)
				var e *driver.Error
				unapplied := c.refused && method == "put" // before the read, a write was refused
				if !errors.As(err, &e) || e.Answered != c.refused || e.Unapplied != unapplied || ok {
					t.Errorf("granted %v, error %v, unapplied: %v", ok, err, e.Unapplied)
				}
				f.fault = nil
				mustAcquire(t, s, claim)
			})
		}
	}
}

// TestRefusedAfterAWrite: a proxy has sent the first write twice, and passes on
// the refusal of the second copy. What is refused then says nothing about it.
func TestRefusedAfterAWrite(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string][]fault{
		"a read":               {twice, broken},
		"a write":              {conflict, none, broken},
		"a write, reads, too":  {twice, denied, broken},
		"a read, reads before": {conflict, denied, conflict, broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.fault = func(string) fault {
				next := faults[0]
				faults = faults[1:]
				return next
			}
			_, ok, err := objectstore.New(f).Acquire(t.Context(), claimAt(noon, "n", "mine"))
			var e *driver.Error
			if !errors.As(err, &e) || !e.Lasting || e.Unapplied || ok || len(faults) > 0 {
				t.Errorf("granted %v, error %v, unapplied: %v, %d faults left", ok, err, e.Unapplied, len(faults))
			}
		})
	}
}

// TestFirstWriteIsRefused: what is in the cache refuses the claim, and then the
// service its only write. So nothing was applied.
func TestFirstWriteIsRefused(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := objectstore.New(f)
	mustAcquireAndRelease(t, s)
	delete(f.objects, "n")
	f.fault = func(method string) fault {
		if method == "put" {
			return broken
		}
		return none
	}
	_, ok, err := s.Acquire(t.Context(), claimAt(noon, "n", "mine"))
	var e *driver.Error
	if !errors.As(err, &e) || !e.Unapplied || ok {
		t.Errorf("granted %v, error %v, want one that nothing was written", ok, err)
	}
}

func TestClaimsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	c := claimAt(noon, "n", "a")
	c.Until = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	_, ok, err := objectstore.New(newFake()).Acquire(t.Context(), c)
	var e *driver.Error
	if !errors.As(err, &e) || !e.Unapplied || !e.Lasting || ok {
		t.Errorf("granted %v, error %v, want one that nothing was written", ok, err)
	}
}

// TestNoTwoWritesAreEqual: no two writes of a name have the same content, even
// if its owner sets everything back.
func TestNoTwoWritesAreEqual(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := objectstore.New(f)
	c := claimAt(noon, "n", "a")
	mustAcquire(t, s, c)
	for i := range 4 {
		r := &driver.Renewal{Name: "n", Token: "a", Now: noon, Until: c.Until, DeleteAfter: c.DeleteAfter.Add(time.Duration(i%2) * time.Hour)}
		answer(t)(s.Renew(t.Context(), r))
	}
	mustRelease(t, s, c)
	if n := f.repeat(); n != 0 {
		t.Errorf("%d late copies of writes were applied", n)
	}
	var bodies []string
	for _, put := range f.bodies {
		if slices.Contains(bodies, put) {
			t.Errorf("written twice: %s", put)
		}
		bodies = append(bodies, put)
	}
	if len(bodies) < 5 {
		t.Errorf("only %d writes", len(bodies))
	}
}
