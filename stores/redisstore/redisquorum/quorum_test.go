package redisquorum_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/redistest"
	"github.com/lambdalock/lambdalock/stores/redisstore/redisquorum"
)

// tap is a client whose requests can be made to fail, or be counted.
type tap struct {
	redis.Scripter
	requests atomic.Int32
	fail     func(nth int32) error // nil: none fails
	loses    func(nth int32) bool  // whether a request that was applied gets no answer; nil: none
}

// Options tell the store what it may expect of the client.
func (c *tap) Options() *redis.Options { return c.Scripter.(*redis.Client).Options() }

func (c *tap) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	n := c.requests.Add(1)
	if c.fail != nil {
		if err := c.fail(n); err != nil {
			return redistest.ErrorCmd(ctx, err)
		}
	}
	answer := c.Scripter.EvalSha(ctx, sha, keys, args...)
	if c.loses != nil && c.loses(n) {
		return redistest.ErrorCmd(ctx, io.EOF)
	}
	return answer
}

func (c *tap) Scan(ctx context.Context, cursor uint64, match string, count int64) *redis.ScanCmd {
	return c.Scripter.(*redis.Client).Scan(ctx, cursor, match, count)
}

// quorum is a Quorum of miniredis servers.
type quorum struct {
	*redisquorum.Store
	minis []*miniredis.Miniredis
	taps  []*tap
}

// newQuorum returns a quorum of servers with a port each.
func newQuorum(t *testing.T, n int) *quorum {
	t.Helper()
	return quorumOf(n, func() (*miniredis.Miniredis, *redis.Client) {
		m := redistest.NewMini(t)
		return m, redistest.NewClient(t, m.Addr())
	})
}

// newTimedQuorum returns a quorum for testing/synctest. Package lock gives a
// request a second, which a busy machine can exceed, but not a bubble's clock.
func newTimedQuorum(t *testing.T, n int) *quorum {
	t.Helper()
	return quorumOf(n, func() (*miniredis.Miniredis, *redis.Client) {
		m := redistest.NewMachine(t)
		return m.Mini, distant(t, m, 0)
	})
}

func quorumOf(n int, server func() (*miniredis.Miniredis, *redis.Client)) *quorum {
	q := &quorum{}
	var clients []redis.Scripter
	for range n {
		m, client := server()
		c := &tap{Scripter: client}
		q.minis, q.taps, clients = append(q.minis, m), append(q.taps, c), append(clients, c)
	}
	q.Store = openQuorum(clients...).(*redisquorum.Store)
	return q
}

// only lets the nodes answer, and no others.
func (q *quorum) only(nodes ...int) {
	for i, c := range q.taps {
		c.fail = func(int32) error { return io.EOF }
		for _, n := range nodes {
			if n == i {
				c.fail = nil
			}
		}
	}
}

func (q *quorum) owner(node int, name string) string {
	return q.minis[node].HGet("lambdalock:"+name, "ownerToken")
}

// TestFenceAcrossMajorities acquires through every majority of five nodes in
// turn, whose rows began at different times. A renewal raises the fences too,
// so it must also go without one.
func TestFenceAcrossMajorities(t *testing.T) { // F24
	t.Parallel()
	for _, renews := range []bool{false, true} {
		t.Run(fmt.Sprint("with a renewal ", renews), func(t *testing.T) {
			t.Parallel()
			q := newQuorum(t, 5)
			for i, m := range q.minis {
				m.SetTime(time.Now().Add(time.Duration(i*i) * time.Hour))
			}
			last := int64(0)
			for i := range 30 {
				nodes := majorities[i*7%len(majorities)]
				q.only(nodes[:]...)
				mine := redistest.Claim("n")
				row := redistest.MustAcquire(t, q, mine)
				if row.Fence <= last {
					t.Fatalf("turn %d, nodes %v: fence %d after %d", i, nodes, row.Fence, last)
				}
				last = row.Fence
				if renews {
					if renewed, ok, err := q.Renew(t.Context(), redistest.Renewal(mine)); !ok || err != nil || renewed.Fence < row.Fence {
						t.Fatalf("renewal: applied %v, error %v, fence %d, want %d", ok, err, renewed.Fence, row.Fence)
					}
				}
				if _, ok, err := q.Settle(t.Context(), redistest.Settlement(mine)); !ok || err != nil {
					t.Fatalf("release: applied %v, error %v", ok, err)
				}
			}
		})
	}
}

// TestCooldownWhoseAnswerIsLost ends a lease for a cooldown through one node,
// and again through that and another one: together they are a majority. The
// third learns the same cooldown.
func TestCooldownWhoseAnswerIsLost(t *testing.T) { // F4
	t.Parallel()
	q := newQuorum(t, 3)
	c := redistest.Claim("n")
	redistest.MustAcquire(t, q, c)
	end := redistest.Settlement(c)
	end.Now, end.Until = c.Now, c.Now.Add(time.Hour)
	q.only(0)
	if _, ok, err := q.Settle(t.Context(), end); ok || err == nil {
		t.Fatalf("the end on one of three nodes: applied %v", ok)
	}
	q.only(0, 1)
	if _, ok, err := q.Settle(t.Context(), end); !ok || err != nil {
		t.Errorf("the end on two of three nodes: applied %v, error %v", ok, err)
	}
	q.only(0, 1, 2)
	if row, ok, err := q.Acquire(t.Context(), redistest.Claim("n")); ok || err != nil || !row.Cooling() {
		t.Errorf("a claim in the cooldown: %+v, applied %v, error %v", row, ok, err)
	}
	if owner := q.owner(2, "n"); owner != end.CooldownToken { // the claim has cleared it
		t.Errorf("the server that missed the end is held by %q, want %q", owner, end.CooldownToken)
	}
}

// TestEndWithoutSomeServers lets some servers miss the claim and others be away
// during its end. Those that missed the claim take the end too, so that no
// majority knows less: a cooldown lasts by the servers' clocks, and a completed
// event is remembered.
func TestEndWithoutSomeServers(t *testing.T) { // F4, F5, F42
	t.Parallel()
	ends := []end{{cools: true}, {completes: true}, {cools: true, completes: true}, {cools: true, polled: true}, {completes: true, polled: true}}
	for n, size := range map[int]int{3: 1, 5: 2} {
		for i, missed := range parts(n, size) {
			for j, away := range parts(n, size) {
				for k, e := range ends {
					if n == 5 && (k != (i+j)%len(ends) || testing.Short() && i < j) {
						continue // each pair in one way
					}
					t.Run(fmt.Sprintf("%d servers, %v miss the claim, %v are away, %+v", n, missed, away, e), func(t *testing.T) {
						t.Parallel()
						e.check(t, newQuorum(t, n), missed, away)
					})
				}
			}
		}
	}
}

// end is how a lease ends.
type end struct {
	cools, completes bool
	polled           bool // a waiter has asked before, whose stamp stays
}

func (e end) check(t *testing.T, q *quorum, missed, away []int) {
	const least = 10 * time.Minute // longer than the lease
	const keep = 100 * time.Hour   // longer than the claim asks for
	began, n := time.Now(), len(q.minis)
	at := func(d time.Duration) {
		for _, m := range q.minis {
			m.SetTime(began.Add(d))
		}
	}
	at(0)
	c := redistest.Claim("n")
	c.Event = "e"
	q.only(without(n, missed)...)
	redistest.MustAcquire(t, q, c)
	if e.polled {
		q.only(without(n, nil)...)
		redistest.MustRefuse(t, q, redistest.Claim("n"))
	}
	at(time.Second)
	s := redistest.Settlement(c)
	s.Now = c.Now.Add(time.Second)
	s.DeleteAfter = s.Now.Add(keep + time.Hour)
	if e.cools {
		s.Until = s.Now.Add(least)
	}
	if e.completes {
		s.Memory = &driver.Memory{Completed: []driver.CompletedEvent{{Event: "e", Until: s.Now.Add(24 * time.Hour)}}}
	}
	q.only(without(n, away)...)
	if _, ok, err := q.Settle(t.Context(), s); !ok || err != nil {
		t.Fatalf("the end of the lease: applied %v, error %v", ok, err)
	}
	next := func() *driver.Claim {
		claim := redistest.Claim("n")
		claim.Event, claim.Stamp = "e", claim.Stamp.Add(time.Hour)
		return claim
	}
	for _, d := range []time.Duration{2 * time.Second, least} {
		at(d)
		for _, down := range append(parts(n, n-n/2-1), nil) {
			q.only(without(n, down)...)
			redistest.MustRefuse(t, q, next())
		}
		for i, m := range q.minis {
			if kept := m.TTL("lambdalock:n"); e.cools && q.owner(i, "n") == s.CooldownToken && kept < keep {
				t.Errorf("server %d keeps the row for %v, want %v", i, kept, keep)
			}
		}
	}
	at(least + 2*time.Second)
	q.only(without(n, missed)...)
	if row, ok, err := q.Acquire(t.Context(), next()); ok == e.completes || err != nil || e.completes != row.Memory.Has("e", s.Now) {
		t.Errorf("in the end: applied %v, error %v, row %+v", ok, err, row)
	}
}

// parts returns the sets of so many of the first n numbers.
func parts(n, size int) [][]int {
	if size == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for last := size - 1; last < n; last++ {
		for _, rest := range parts(last, size-1) {
			all = append(all, append(slices.Clone(rest), last))
		}
	}
	return all
}

// without returns the first n numbers but those.
func without(n int, those []int) []int {
	var rest []int
	for i := range n {
		if !slices.Contains(those, i) {
			rest = append(rest, i)
		}
	}
	return rest
}

// TestRenewalWithoutSomeServers renews a lock of which only one server that
// answers knows: another one missed the claim, or was away until its lease had
// ended, and the rest is away now. Its dead holder gets no lease from any.
func TestRenewalWithoutSomeServers(t *testing.T) { // F19, F42
	t.Parallel()
	for name, c := range map[string]struct{ missed, ended, dead bool }{
		"missed the claim": {missed: true}, "away until the lease had ended": {ended: true}, "dead holder": {dead: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQuorum(t, 3)
			began := time.Now()
			claim := redistest.Claim("n")
			claim.Event = "e"
			if c.missed {
				q.only(0, 1)
			}
			redistest.MustAcquire(t, q, claim)
			late := redistest.Renewal(claim)
			if c.ended {
				q.only(0, 1)
				if _, ok, err := q.Renew(t.Context(), late); !ok || err != nil {
					t.Fatalf("a renewal by two servers: applied %v, error %v", ok, err)
				}
			}
			if c.ended || c.dead {
				for _, m := range q.minis {
					m.SetTime(began.Add(90 * time.Second))
				}
				late.Now, late.Until = late.Now.Add(90*time.Second), late.Until.Add(90*time.Second)
			}
			q.only(0, 2)
			row, ok, err := q.Renew(t.Context(), late)
			if ok == c.dead || err != nil && !c.dead || ok && (row.Event != "e" || row.Holder != "holder") {
				t.Errorf("a renewal by one server with the lock and one without: applied %v, error %v, row %+v", ok, err, row)
			}
			if q.only(1, 2); c.dead {
				next := redistest.Claim("n")
				next.Stamp = next.Stamp.Add(time.Second)
				redistest.MustAcquire(t, q, next)
			} else {
				redistest.MustRefuse(t, q, redistest.Claim("n"))
			}
		})
	}
}

// majorities are those of five nodes.
var majorities = [][3]int{{0, 1, 2}, {0, 1, 3}, {0, 1, 4}, {0, 2, 3}, {0, 2, 4}, {0, 3, 4}, {1, 2, 3}, {1, 2, 4}, {1, 3, 4}, {2, 3, 4}}

// TestFenceOfRenewal renews through a majority most of which had missed earlier
// owners. The fence must be that of the acquire: the resource has seen those of
// the earlier owners.
func TestFenceOfRenewal(t *testing.T) { // F24
	t.Parallel()
	release := func(t *testing.T, q *quorum, c *driver.Claim) {
		t.Helper()
		expect.Granted(q.Settle(t.Context(), redistest.Settlement(c)))(t)
	}
	for name, acquire := range map[string]func(*testing.T, *quorum, *driver.Claim) driver.Row{
		"a node of the claim is behind": func(t *testing.T, q *quorum, last *driver.Claim) driver.Row {
			release(t, q, last)
			q.only(0, 1, 2, 3)
			c := redistest.Claim("n")
			*last = *c
			return redistest.MustAcquire(t, q, c)
		},
		"a node has an earlier round": func(t *testing.T, q *quorum, last *driver.Claim) driver.Row {
			first := redistest.Claim("n")
			q.only(3, 4)
			if _, _, err := q.Acquire(t.Context(), first); err == nil {
				t.Fatal("a minority granted a claim")
			}
			q.only(0, 1, 2)
			release(t, q, last)
			*last = *first
			last.Stamp = time.Now().UTC().Truncate(time.Microsecond)
			return redistest.MustAcquire(t, q, last)
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQuorum(t, 5)
			c := redistest.Claim("n")
			redistest.MustAcquire(t, q, c)
			release(t, q, c)
			q.only(0, 1, 2) // the others miss some owners
			for range 3 {
				c = redistest.Claim("n")
				redistest.MustAcquire(t, q, c)
				release(t, q, c)
			}
			c = redistest.Claim("n")
			redistest.MustAcquire(t, q, c)
			row := acquire(t, q, c)
			q.only(1, 2, 3)
			renewed, ok, err := q.Renew(t.Context(), redistest.Renewal(c))
			if !ok || err != nil || renewed.Fence < row.Fence {
				t.Errorf("renewal: applied %v, error %v, fence %d after %d", ok, err, renewed.Fence, row.Fence)
			}
			q.only(0, 1, 2, 3, 4)
			release(t, q, c)
			q.only(0, 3, 4)
			if next := redistest.MustAcquire(t, q, redistest.Claim("n")); next.Fence <= renewed.Fence {
				t.Errorf("the next owner has fence %d after %d", next.Fence, renewed.Fence)
			}
		})
	}
}

// TestFenceThatCannotBeRaised: the only node of a majority that knows the last
// fences has the next one, and the other does not answer when it is to take it
// over. The fence must rise all the same for the majority after that.
func TestFenceThatCannotBeRaised(t *testing.T) { // F24
	t.Parallel()
	q := newQuorum(t, 3)
	now := time.Now()
	for _, m := range q.minis { // the clocks stand still, so the fence is not theirs
		m.SetTime(now)
	}
	q.only(0, 1)
	last := int64(0)
	for range 3 {
		c := redistest.Claim("n")
		last = redistest.MustAcquire(t, q, c).Fence
		expect.Granted(q.Settle(t.Context(), redistest.Settlement(c)))(t)
	}
	q.only(0, 2)
	q.taps[2].requests.Store(0)
	q.taps[2].fail = func(n int32) error {
		if n == 2 { // the first is the claim, which was applied
			return redistest.ServerError("LOADING Redis is loading the dataset in memory")
		}
		return nil
	}
	c := redistest.Claim("n")
	row, ok, err := q.Acquire(t.Context(), c)
	var e *driver.Error
	if !ok && (!errors.As(err, &e) || e.Lasting || e.Unapplied || !strings.Contains(err.Error(), "2 of 3 servers failed")) {
		t.Fatalf("error %v, want a temporary one that may be applied", err)
	}
	last = max(last, row.Fence)
	givenUp := redistest.Settlement(c)
	givenUp.Abandon = true
	expect.Granted(q.Settle(t.Context(), givenUp))(t)
	q.only(1, 2)
	if next := redistest.MustAcquire(t, q, redistest.Claim("n")); next.Fence <= last {
		t.Errorf("fence %d after %d", next.Fence, last)
	}
}

// TestRestartedNode shows that a renewal gives the row to a node that has lost
// it, and that no copy of what it sent brings the lock back there.
func TestRestartedNode(t *testing.T) { // F3, F23, F42, F44
	t.Parallel()
	q := newQuorum(t, 3)
	first := redistest.Claim("n")
	first.Event = "e1"
	redistest.MustAcquire(t, q, first)
	done := redistest.Settlement(first)
	done.Memory = &driver.Memory{Completed: []driver.CompletedEvent{{Event: "e1", Until: first.Until}}, HighestOrder: "5", Result: driver.Result{Event: "e1", Body: []byte("r")}}
	expect.Granted(q.Settle(t.Context(), done))(t)
	c := redistest.Claim("n")
	c.Event, c.Payload = "e2", "p"
	before := redistest.MustAcquire(t, q, c)
	q.minis[1].FlushAll()
	var copies []func()
	real := q.taps[1].Scripter
	q.taps[1].Scripter = recorder{real, &copies}
	r := redistest.Renewal(c)
	if row, ok, err := q.Renew(t.Context(), r); !ok || err != nil || !row.Until.Equal(r.Until) {
		t.Fatalf("renewal: applied %v, error %v, row %+v", ok, err, row)
	}
	q.taps[1].Scripter = real
	got, err := redistest.Must(redisstore.New(real)).Read(t.Context(), "n")
	if err != nil || got.Token != c.Token || got.Event != "e2" || got.Payload != "p" || got.Holder != "holder" || got.Fence < before.Fence ||
		!got.Memory.Has("e1", c.Now) || got.Memory.HighestOrder != "5" || string(got.Memory.Result.Body) != "r" {
		t.Fatalf("the node has %+v, error %v, want the whole row", got, err)
	}
	for _, lose := range []bool{false, true} {
		if lose {
			q.minis[1].FlushAll()
		}
		if _, _, err := q.Settle(t.Context(), redistest.Settlement(c)); err != nil {
			t.Fatal(err)
		}
		for _, send := range copies {
			send()
		}
		if owner := q.owner(1, "n"); owner != "" {
			t.Errorf("a late copy brought the lock of %s back (row lost before: %v)", owner, lose)
		}
	}
}

// recorder keeps copies of the requests.
type recorder struct {
	redis.Scripter
	copies *[]func()
}

func (c recorder) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	*c.copies = append(*c.copies, func() { c.Scripter.EvalSha(context.WithoutCancel(ctx), sha, keys, args...) })
	return c.Scripter.EvalSha(ctx, sha, keys, args...)
}

// TestNodesDown goes on with one of three nodes, fails with two, and goes on
// again, with a node in another's place.
func TestNodesDown(t *testing.T) {
	t.Parallel()
	q := newQuorum(t, 3)
	q.only(0, 2)
	c := redistest.Claim("n")
	redistest.MustAcquire(t, q, c)
	expect.OK(t, q.Check(t.Context()))
	q.only(2)
	wantUnsure := func(what string, err error) {
		t.Helper()
		var e *driver.Error
		if !errors.As(err, &e) || e.Lasting || e.Answered || e.Unapplied || !strings.Contains(err.Error(), "2 of 3 servers failed") || !errors.Is(err, io.EOF) {
			t.Errorf("%s: error %v, want a temporary one", what, err)
		}
	}
	_, _, err := q.Acquire(t.Context(), redistest.Claim("n"))
	wantUnsure("acquire", err)
	_, _, err = q.Renew(t.Context(), redistest.Renewal(c))
	wantUnsure("renew", err)
	_, _, err = q.Settle(t.Context(), redistest.Settlement(c))
	wantUnsure("release", err)
	wantUnsure("check", q.Check(t.Context()))
	_, err = q.Read(t.Context(), "n")
	wantUnsure("read", err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var e *driver.Error
	if _, _, err := q.Acquire(ended, redistest.Claim("n")); !errors.As(err, &e) || !e.Unapplied || !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: %v, want that nothing was applied", err)
	}
	q.minis[0].FlushAll() // a failover without the latest writes
	q.only(0, 2)
	if _, ok, err := q.Renew(t.Context(), redistest.Renewal(c)); ok || err != nil {
		t.Errorf("renewal without a majority: applied %v, error %v", ok, err)
	}
	q.only(0, 1, 2)
	redistest.MustAcquire(t, q, redistest.Claim("n"))
}

// TestDenied shows what an error says, by the answer of each server: it lasts
// once a majority refuses for good, names a refusal even if another failure
// came before, and counts all that failed.
func TestDenied(t *testing.T) {
	t.Parallel()
	answers := map[string]error{
		"granted": nil, "silent": io.EOF,
		"loading": redistest.ServerError("LOADING Redis is loading the dataset in memory"),
		"denied":  redistest.ServerError("NOPERM this user has no permissions to run the 'evalsha' command"),
	}
	type flags struct{ lasting, answered, unapplied bool }
	for servers, c := range map[string]struct {
		is   flags
		text string
	}{
		"denied silent silent":   {flags{}, "3 of 3 servers failed, Redis 127.0.0.1:1 with: NOPERM"},
		"silent denied silent":   {flags{}, "3 of 3 servers failed, Redis 127.0.0.1:2 with: NOPERM"},
		"denied denied silent":   {flags{lasting: true, answered: true}, "3 of 3 servers failed, Redis 127.0.0.1:1 with: NOPERM"},
		"loading denied denied":  {flags{lasting: true, answered: true, unapplied: true}, "3 of 3 servers failed, Redis 127.0.0.1:2 with: NOPERM"},
		"granted loading silent": {flags{answered: true}, "2 of 3 servers failed, Redis 127.0.0.1:2 with: LOADING"},
	} {
		t.Run(servers, func(t *testing.T) {
			q := newQuorum(t, 3)
			text := c.text
			for i, is := range strings.Fields(servers) {
				q.taps[i].fail = func(int32) error { return answers[is] }
				text = strings.Replace(text, fmt.Sprint("127.0.0.1:", i+1, " "), q.minis[i].Addr()+" ", 1)
			}
			_, _, err := q.Acquire(t.Context(), redistest.Claim("n"))
			var e *driver.Error
			if !errors.As(err, &e) || c.is != (flags{e.Lasting, e.Answered, e.Unapplied}) || !strings.Contains(e.Error(), "quorum of 3 Redis servers") || !strings.Contains(e.Error(), text) {
				t.Fatalf("error %#v, want %+v, and %q", err, c.is, text)
			}
			if strings.Contains(servers, "denied") && (e.Action != "evalsha" || e.Hint == "") {
				t.Errorf("action %q, hint %q", e.Action, e.Hint)
			}
		})
	}
}

// TestClaimOfAMinorityIsAbandoned: one node grants a claim that the others
// refuse, for a moment and then for good. Package lock gives it up.
func TestClaimOfAMinorityIsAbandoned(t *testing.T) { // F2
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newTimedQuorum(t, 3)
		for _, c := range q.taps[1:] {
			c.fail = func(n int32) error {
				if n == 1 {
					return redistest.ServerError("LOADING Redis is loading the dataset in memory")
				}
				return redistest.ServerError("NOPERM this user has no permissions to run the 'evalsha' command")
			}
		}
		locker := expect.Value(lock.New(q, &lock.Options{Logger: slog.New(slog.DiscardHandler)}))(t)
		var e *lock.StoreError
		if _, err := locker.Acquire(t.Context(), lock.Key{Name: "n"}); !errors.As(err, &e) {
			t.Fatalf("error %v, want a StoreError", err)
		}
		for row, err := range redistest.Must(redisstore.New(q.taps[0])).Rows(t.Context(), "") {
			if err != nil || row.Token != "" {
				t.Errorf("the node that granted the claim has %+v, error %v, want a free row", row, err)
			}
		}
	})
}

// TestSplitVote lets three claims get a node each. None keeps it, and the row
// that refuses them says that nobody holds the name.
func TestSplitVote(t *testing.T) {
	t.Parallel()
	q := newQuorum(t, 3)
	others := []*driver.Claim{redistest.Claim("n"), redistest.Claim("n")}
	for i, c := range others {
		redistest.MustAcquire(t, redistest.Must(redisstore.New(q.taps[i].Scripter)), c)
	}
	c := redistest.Claim("n")
	row := redistest.MustRefuse(t, q, c)
	if verdict := row.Judge(c); row.Token != "" || verdict != driver.Granted {
		t.Errorf("the row %+v has verdict %d, want one that nobody holds", row, verdict)
	}
	if owner := q.owner(2, "n"); owner != "" {
		t.Error("the refused claim keeps a node")
	}
	again := *c
	again.Stamp = c.Stamp.Add(-time.Hour)
	if row := redistest.MustRefuse(t, q, &again); row.Judge(&again) != driver.Behind || row.Stamp.Before(c.Stamp) {
		t.Errorf("the row %+v does not tell the stamp to exceed", row)
	}
	q, c = newQuorum(t, 3), redistest.Claim("n")
	own := redistest.Must(redisstore.New(q.taps[2].Scripter))
	redistest.MustAcquire(t, own, c)
	for _, tap := range q.taps[:2] {
		redistest.MustAcquire(t, redistest.Must(redisstore.New(tap.Scripter)), redistest.Claim("n"))
	}
	given := redistest.Settlement(c)
	given.Token, given.Abandon, given.Stamp = "another's", true, c.Stamp.Add(time.Hour)
	_, _, _ = own.Settle(t.Context(), given) // raises the stamp of the claim's row
	if row := redistest.MustRefuse(t, q, c); row.Stamp.Before(given.Stamp) {
		t.Errorf("the row %+v does not tell the stamp that was raised", row)
	}
}

// TestUndoWithoutAnswer shows that a refused claim is also given up on a node
// that may have granted it.
func TestUndoWithoutAnswer(t *testing.T) { // F2
	t.Parallel()
	q := newQuorum(t, 3)
	for i := range 2 {
		redistest.MustAcquire(t, redistest.Must(redisstore.New(q.taps[i].Scripter)), redistest.Claim("n"))
	}
	redistest.MustAcquire(t, redistest.Must(redisstore.New(q.taps[2].Scripter)), redistest.Claim("other")) // now the node knows the script
	lost := q.taps[2].requests.Load() + 1
	q.taps[2].loses = func(n int32) bool { return n == lost }
	redistest.MustRefuse(t, q, redistest.Claim("n"))
	if owner := q.owner(2, "n"); owner != "" || q.taps[2].requests.Load() == lost {
		t.Error("the refused claim keeps a node")
	}
}

// TestUndoAfterCancellation shows that a refused claim is given up although the
// caller's context ends with the last answer.
func TestUndoAfterCancellation(t *testing.T) { // F2
	t.Parallel()
	q := newQuorum(t, 3)
	redistest.MustAcquire(t, q, redistest.Claim("other")) // now the nodes know the script
	for i := range 2 {
		redistest.MustAcquire(t, redistest.Must(redisstore.New(q.taps[i].Scripter)), redistest.Claim("n"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var answers atomic.Int32
	for _, c := range q.taps {
		c.loses = func(int32) bool {
			if answers.Add(1) == 3 {
				cancel()
			}
			return false
		}
	}
	if _, ok, err := q.Acquire(ctx, redistest.Claim("n")); ok {
		t.Errorf("acquired, error %v", err)
	}
	if owner := q.owner(2, "n"); owner != "" || ctx.Err() == nil {
		t.Error("the refused claim keeps a node")
	}
}

// TestUndoHasADeadline: one server refuses a claim, one does not answer when it
// is given up, and the connections of the third are always used by others. It
// ends all the same.
func TestUndoHasADeadline(t *testing.T) { // F11
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var clients [3]redis.Scripter
		for i := range clients {
			clients[i] = distant(t, redistest.NewMachine(t), 0)
		}
		redistest.MustAcquire(t, redistest.Must(redisstore.New(clients[2])), redistest.Claim("n"))
		second := &tap{Scripter: clients[1]}
		second.fail = func(n int32) error {
			if n > 1 { // the first is the claim
				return io.EOF
			}
			return nil
		}
		redistest.MustAcquire(t, redistest.Must(redisstore.New(clients[1])), redistest.Claim("other")) // now the server knows the script
		q := redistest.Must(redisquorum.New(clients[0], second, clients[2]))
		ended := make(chan struct{})
		defer close(ended)
		go func() {
			for {
				select {
				case <-q.Idle(0):
				case <-ended:
					return
				}
			}
		}()
		synctest.Wait() // it takes the connections first
		began := time.Now()
		_, ok, err := q.Acquire(t.Context(), redistest.Claim("n"))
		var e *driver.Error
		if took := time.Since(began); ok || !errors.As(err, &e) || !e.Lasting || took > 2*time.Second {
			t.Errorf("after %v: granted %v, error %v", took, ok, err)
		}
	})
}

// TestUndoIsLost shows what a refusal means whose undo did not arrive: a
// minority that keeps the claim does not matter, a majority is an error after
// which package lock gives the claim up.
func TestUndoIsLost(t *testing.T) {
	t.Parallel()
	q := newQuorum(t, 3)
	c := redistest.Claim("n")
	c.Event = "e"
	done := redistest.Settlement(c)
	done.Memory = &driver.Memory{Completed: []driver.CompletedEvent{{Event: "e", Until: c.Until}}}
	node := redistest.Must(redisstore.New(q.taps[2].Scripter))
	redistest.MustAcquire(t, node, c)
	expect.Granted(node.Settle(t.Context(), done))(t)
	for _, f := range []struct {
		lost int
		ok   bool
	}{{1, true}, {2, false}} {
		next := redistest.Claim("n")
		next.Event = "e"
		for i := range f.lost {
			sent := q.taps[i].requests.Load()
			q.taps[i].fail = func(n int32) error {
				if n > sent+2 || n == sent+2 && i == 0 || n > sent+1 {
					return io.EOF
				}
				return nil
			}
		}
		row, ok, err := q.Acquire(t.Context(), next)
		var e *driver.Error
		if f.ok && (err != nil || ok || row.Judge(next) != driver.Completed) {
			t.Errorf("%d lost: applied %v, error %v, row %+v, want completed", f.lost, ok, err, row)
		}
		if !f.ok && (!errors.As(err, &e) || !e.Lasting || e.Unapplied) {
			t.Errorf("%d lost: error %#v, want a permanent one that may be applied", f.lost, err)
		}
		q.only(0, 1, 2)
		s := redistest.Settlement(next)
		s.Abandon = true
		if _, _, err := q.Settle(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUndoIsLostWhileNodeIsDown: the claim may be kept by a node that is down
// and by one that lost the undo, so nobody else could get a majority.
func TestUndoIsLostWhileNodeIsDown(t *testing.T) {
	t.Parallel()
	q := newQuorum(t, 3)
	other := redistest.Claim("n")
	redistest.MustAcquire(t, redistest.Must(redisstore.New(q.taps[2].Scripter)), other)
	q.only(0, 2)
	q.taps[0].fail = func(n int32) error {
		if n > 1 { // the first is the claim
			return io.EOF
		}
		return nil
	}
	mine := redistest.Claim("n")
	_, ok, err := q.Acquire(t.Context(), mine)
	if q.owner(0, "n") != mine.Token {
		t.Fatal("the undo arrived")
	}
	var e *driver.Error
	if ok || !errors.As(err, &e) || !e.Lasting || e.Unapplied {
		t.Errorf("applied %v, error %#v, want a permanent one that may be applied", ok, err)
	}
}

// TestLateCompletion: an owner whose lease has ended completes nothing, not
// even on a node on which it still owns the row.
func TestLateCompletion(t *testing.T) { // F21
	t.Parallel()
	q := newQuorum(t, 3)
	first := redistest.Claim("n")
	first.Event = "e"
	redistest.MustAcquire(t, q, first)
	for _, m := range q.minis {
		m.SetTime(time.Now().Add(2 * time.Minute))
	}
	q.only(0, 1)
	second := redistest.Claim("n")
	redistest.MustAcquire(t, q, second)
	q.only(0, 1, 2)
	done := redistest.Settlement(first)
	done.Memory = &driver.Memory{Completed: []driver.CompletedEvent{{Event: "e", Until: first.Until.Add(time.Hour).Truncate(time.Millisecond)}}}
	if row, ok, err := q.Settle(t.Context(), done); ok || err != nil {
		t.Errorf("the completion of the late owner: applied %v, error %v, row %+v", ok, err, row)
	}
	expect.Granted(q.Settle(t.Context(), redistest.Settlement(second)))(t)
	again := redistest.Claim("n")
	again.Event = "e"
	redistest.MustAcquire(t, q, again)
}

// TestLateReleaseFreesTheNode delivers to a node that was paused what the owner
// had sent: first the release, when the lease has ended there, and then a
// renewal, which would bring the lease back.
func TestLateReleaseFreesTheNode(t *testing.T) { // F4
	t.Parallel()
	q := newQuorum(t, 3)
	c := redistest.Claim("n")
	c.Event = "e"
	redistest.MustAcquire(t, q, c)
	done := redistest.Settlement(c)
	done.Memory = &driver.Memory{Completed: []driver.CompletedEvent{{Event: "e", Until: c.Until.Add(time.Hour).Truncate(time.Millisecond)}}}
	q.only(0, 1)
	expect.Granted(q.Settle(t.Context(), done))(t)
	q.minis[2].SetTime(time.Now().Add(2 * time.Minute))
	q.only(2)
	_, _, _ = q.Settle(t.Context(), done)
	if row, ok, err := redistest.Must(redisstore.New(q.taps[2].Scripter)).Renew(t.Context(), redistest.Renewal(c)); ok || err != nil || row.Token != "" || row.Memory.Has("e", c.Now) {
		t.Errorf("the late renewal: applied %v, error %v, row %+v", ok, err, row)
	}
}

// TestPartialRelease repeats a release whose first try reached one node, and a
// completion that only a minority can record.
func TestPartialRelease(t *testing.T) { // F5
	t.Parallel()
	for name, complete := range map[string]bool{"release": false, "complete": true} {
		t.Run(name, func(t *testing.T) {
			q := newQuorum(t, 3)
			c := redistest.Claim("n")
			c.Event = "e"
			redistest.MustAcquire(t, q, c)
			s := redistest.Settlement(c)
			if complete {
				s.Memory = &driver.Memory{Completed: []driver.CompletedEvent{{Event: "e", Until: c.Until.Truncate(time.Millisecond)}}}
			}
			q.only(0)
			if _, _, err := q.Settle(t.Context(), s); err == nil {
				t.Error("a release at one node was applied")
			}
			q.only(0, 1)
			if _, ok, err := q.Settle(t.Context(), s); !ok || err != nil {
				t.Errorf("repeated: applied %v, error %v", ok, err)
			}
			if row, ok, err := q.Settle(t.Context(), s); ok || err != nil || complete && !row.Memory.Has("e", c.Now) {
				t.Errorf("a third time: applied %v, error %v, row %+v", ok, err, row)
			}
		})
	}
	t.Run("another claim comes between", func(t *testing.T) {
		q := newQuorum(t, 3)
		c := redistest.Claim("n")
		c.Event = "e"
		redistest.MustAcquire(t, q, c)
		s := redistest.Settlement(c)
		s.Memory = &driver.Memory{Completed: []driver.CompletedEvent{{Event: "e", Until: c.Until}}}
		q.only(0)
		_, _, _ = q.Settle(t.Context(), s)
		q.only(0, 1)
		redistest.MustRefuse(t, q, redistest.Claim("n")) // and leaves its stamp at the node that was released
		if _, ok, err := q.Settle(t.Context(), s); !ok || err != nil {
			t.Errorf("repeated: applied %v, error %v", ok, err)
		}
		other := redistest.Settlement(c)
		other.Memory = &driver.Memory{Completed: []driver.CompletedEvent{{Event: "e", Until: c.Until.Add(time.Second)}}}
		if _, ok, err := q.Settle(t.Context(), other); ok {
			t.Errorf("another completion of the event: applied %v, error %v", ok, err)
		}
	})
	t.Run("another owner comes between", func(t *testing.T) {
		q := newQuorum(t, 3)
		q.only(0, 1)
		c := redistest.Claim("n")
		c.Event, c.Order = "e", "5"
		redistest.MustAcquire(t, q, c)
		s := redistest.Settlement(c)
		s.Memory = &driver.Memory{Completed: []driver.CompletedEvent{{Event: "e", Until: c.Until}}, HighestOrder: "5"}
		q.only(1, 2)
		_, _, _ = q.Settle(t.Context(), s)
		next := redistest.Claim("n")
		row := redistest.MustAcquire(t, q, next)
		done := redistest.Settlement(next)
		done.Memory = &driver.Memory{Completed: append(row.Memory.Completed, driver.CompletedEvent{Event: "f", Until: c.Until}), HighestOrder: "6"}
		expect.Granted(q.Settle(t.Context(), done))(t)
		q.only(0, 1, 2)
		if _, ok, err := q.Settle(t.Context(), s); !ok || err != nil {
			t.Errorf("repeated: applied %v, error %v", ok, err)
		}
		if row, ok, err := q.Settle(t.Context(), s); ok || err != nil || !row.Memory.Has("e", c.Now) {
			t.Errorf("a third time: applied %v, error %v, row %+v", ok, err, row)
		}
	})
	t.Run("another owner comes after the cooldown", func(t *testing.T) {
		q := newQuorum(t, 3)
		c := redistest.Claim("n")
		c.Event = "e"
		redistest.MustAcquire(t, q, c)
		s := redistest.Settlement(c)
		s.Now, s.Until = c.Now, c.Now.Add(time.Second)
		s.Memory = &driver.Memory{Completed: []driver.CompletedEvent{{Event: "e", Until: c.Until}}}
		q.only(1, 2)
		expect.Granted(q.Settle(t.Context(), s))(t)
		for _, m := range q.minis {
			m.SetTime(time.Now().Add(5 * time.Second))
		}
		next := redistest.Claim("n")
		next.Stamp = next.Stamp.Add(time.Second)
		redistest.MustAcquire(t, q, next)
		q.only(0, 1, 2)
		if _, ok, err := q.Settle(t.Context(), s); !ok || err != nil {
			t.Errorf("repeated: applied %v, error %v", ok, err)
		}
	})
	t.Run("ordered", func(t *testing.T) {
		q := newQuorum(t, 3)
		c := redistest.Claim("n")
		c.Order = "5"
		redistest.MustAcquire(t, q, c)
		s := redistest.Settlement(c)
		s.Memory = &driver.Memory{HighestOrder: "5"}
		q.only(0)
		_, _, _ = q.Settle(t.Context(), s)
		q.only(0, 1)
		if _, ok, err := q.Settle(t.Context(), s); !ok || err != nil {
			t.Errorf("repeated: applied %v, error %v", ok, err)
		}
	})
	t.Run("majority lost", func(t *testing.T) {
		q := newQuorum(t, 3)
		c := redistest.Claim("n")
		c.Event = "e"
		redistest.MustAcquire(t, q, c)
		q.minis[0].FlushAll()
		q.minis[1].FlushAll()
		s := redistest.Settlement(c)
		s.Memory = &driver.Memory{Completed: []driver.CompletedEvent{{Event: "e", Until: c.Until}}}
		if row, ok, err := q.Settle(t.Context(), s); ok || err != nil || row.Memory.Has("e", c.Now) {
			t.Errorf("applied %v, error %v, row %+v, want a refusal without the event", ok, err, row)
		}
	})
	t.Run("unsure", func(t *testing.T) {
		q := newQuorum(t, 3)
		c := redistest.Claim("n")
		redistest.MustAcquire(t, q, c)
		q.minis[0].FlushAll()
		q.only(0, 1)
		s := redistest.Settlement(c)
		s.Stamp = time.Time{}
		if _, _, err := q.Settle(t.Context(), s); err == nil {
			t.Error("no error, although the node that failed may have released")
		}
	})
}

// later keeps one request back, as if its connection broke before it arrived.
type later struct {
	redis.Scripter
	nth  int
	send func()
}

func (c *later) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if c.nth--; c.nth == 0 {
		c.send = func() { c.Scripter.EvalSha(context.WithoutCancel(ctx), sha, keys, args...) }
		return redistest.ErrorCmd(ctx, io.EOF)
	}
	return c.Scripter.EvalSha(ctx, sha, keys, args...)
}

// TestLateShare delivers, late, the end of a lock to a server that missed the
// claim: what a later owner has completed stays there.
func TestLateShare(t *testing.T) { // F3, F5
	t.Parallel()
	q := newQuorum(t, 3)
	completing := func(c *driver.Claim, events ...string) *driver.Settlement {
		s := redistest.Settlement(c)
		s.Memory = &driver.Memory{}
		for _, e := range events {
			s.Memory.Completed = append(s.Memory.Completed, driver.CompletedEvent{Event: e, Until: c.Until})
		}
		return s
	}
	c := redistest.Claim("n")
	c.Event = "e"
	q.only(0, 1)
	redistest.MustAcquire(t, q, c)
	network := &later{Scripter: q.taps[2].Scripter, nth: 2}
	q.taps[2].Scripter = network
	q.only(0, 2)
	if _, ok, err := q.Settle(t.Context(), completing(c, "e")); ok || err == nil || network.send == nil {
		t.Fatalf("the end at one server: applied %v, error %v", ok, err)
	}
	q.only(0, 1, 2)
	if _, ok, err := q.Settle(t.Context(), completing(c, "e")); !ok || err != nil {
		t.Fatalf("repeated: applied %v, error %v", ok, err)
	}
	next := redistest.Claim("n")
	next.Event = "f"
	redistest.MustAcquire(t, q, next)
	expect.Granted(q.Settle(t.Context(), completing(next, "e", "f")))(t)
	want := q.minis[2].HGet("lambdalock:n", "completed")
	network.send()
	if got := q.minis[2].HGet("lambdalock:n", "completed"); got != want || !strings.Contains(got, "f ") {
		t.Errorf("the server remembers %q, want %q", got, want)
	}
}

// undoUnderWay is a quorum whose third node has the first round of a claim,
// although that round was refused: its undo has not arrived. The others are
// free.
type undoUnderWay struct {
	*quorum
	t             *testing.T
	network       *later // has the undo
	first, second *driver.Claim
}

func newUndoUnderWay(t *testing.T) *undoUnderWay {
	t.Helper()
	q := &undoUnderWay{quorum: newQuorum(t, 3), t: t}
	other := redistest.Claim("n")
	q.only(0, 1)
	redistest.MustAcquire(t, q, other)
	q.only(0, 1, 2)
	q.first = redistest.Claim("n")
	q.network = &later{Scripter: q.taps[2].Scripter, nth: 2}
	q.taps[2].Scripter = q.network
	redistest.MustRefuse(t, q, q.first)
	if q.owner(2, "n") != q.first.Token {
		t.Fatal("the undo arrived")
	}
	expect.Granted(q.Settle(t.Context(), redistest.Settlement(other)))(t)
	second := *q.first
	second.Stamp = time.Now().UTC().Truncate(time.Microsecond)
	q.second = &second
	return q
}

// turnAwayTheSecond raises the stamp of the third node above that of the second
// round, so that the node keeps the first.
func (q *undoUnderWay) turnAwayTheSecond() {
	q.t.Helper()
	givenUp := redistest.Settlement(redistest.Claim("n"))
	givenUp.Abandon = true
	if _, ok, err := redistest.Must(redisstore.New(q.taps[2].Scripter)).Settle(q.t.Context(), givenUp); !ok || err != nil {
		q.t.Fatal(ok, err)
	}
}

// TestLateUndo delivers the undo of an earlier round after a renewal has
// counted what that round was granted.
func TestLateUndo(t *testing.T) { // F3, F44
	t.Parallel()
	q := newUndoUnderWay(t)
	q.only(0, 1)
	redistest.MustAcquire(t, q, q.second)
	q.turnAwayTheSecond()
	q.only(0, 2)
	if _, ok, err := q.Renew(t.Context(), redistest.Renewal(q.second)); !ok || err != nil {
		t.Fatalf("renewal: applied %v, error %v", ok, err)
	}
	q.network.send()
	if q.owner(2, "n") != q.first.Token {
		t.Error("a late undo released what the lock's renewal had counted")
	}
}

// TestEarlierRoundDoesNotCount shows that a node which has an earlier round of
// a claim is not counted for a later one: the undo of the earlier round, which
// is still under way, would release it.
func TestEarlierRoundDoesNotCount(t *testing.T) { // F3, F44
	t.Parallel()
	q := newUndoUnderWay(t)
	q.turnAwayTheSecond()
	q.only(0, 2)
	redistest.MustRefuse(t, q, q.second)
}

// TestLateClaimAfterRelease shows that a node which the claim did not reach
// turns it away once the lock is released: it would hold the node for nobody.
func TestLateClaimAfterRelease(t *testing.T) { // F3
	t.Parallel()
	q := newQuorum(t, 3)
	c := redistest.Claim("n")
	q.only(0, 1)
	redistest.MustAcquire(t, q, c)
	q.only(0, 1, 2)
	expect.Granted(q.Settle(t.Context(), redistest.Settlement(c)))(t)
	redistest.MustRefuse(t, redistest.Must(redisstore.New(q.taps[2].Scripter)), c)
}

// TestReleaseMissesNode releases a lock while one node is down, which keeps the
// row for days. Once later owners have a majority, that node must not stay held
// for nobody: otherwise the name is lost when another node goes down.
func TestReleaseMissesNode(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(*quorum, *driver.Claim) error{
		"released": func(q *quorum, c *driver.Claim) error {
			_, _, err := q.Settle(t.Context(), redistest.Settlement(c))
			return err
		},
		"renewed": func(q *quorum, c *driver.Claim) error {
			_, _, err := q.Renew(t.Context(), redistest.Renewal(c))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQuorum(t, 3)
			c := redistest.Claim("n")
			c.Until = c.Now.Add(7 * 24 * time.Hour)
			redistest.MustAcquire(t, q, c)
			q.only(0, 1)
			end := redistest.Settlement(c)
			end.Memory = &driver.Memory{Completed: []driver.CompletedEvent{{Event: "e", Until: c.Until}}}
			expect.Granted(q.Settle(t.Context(), end))(t)
			q.only(0, 1, 2)
			next := redistest.Claim("n")
			redistest.MustAcquire(t, q, next)
			expect.Must(t, use(q, next))
			if owner := q.owner(2, "n"); owner == c.Token {
				t.Error("the node is held by a lock that was released")
			}
			if was, is := q.row(0, "n"), q.row(2, "n"); is["completed"] != was["completed"] || is["memoryStamp"] != was["memoryStamp"] {
				t.Errorf("the node remembers %v, the others %v", is, was)
			}
			deleteAfter, _ := time.Parse(time.RFC3339, q.minis[2].HGet("lambdalock:n", "deleteAfter"))
			if deleteAfter.Before(c.DeleteAfter.Truncate(time.Second)) {
				t.Errorf("the node keeps its row until %v only", deleteAfter)
			}
		})
	}
}

// TestPreviousOwner claims a name whose last lease has ended, when the servers
// tell different things of its owner: only one that a majority never released
// is dead.
func TestPreviousOwner(t *testing.T) { // F19
	t.Parallel()
	for name, c := range map[string]struct {
		before func(q *previousTest)
		want   string // whose run it was; empty: nobody's
	}{
		"dead": {func(q *previousTest) {
			q.claim("first", 0, 1, 2)
		}, "first"},
		"dead, a server missed the claim, another lost it": {func(q *previousTest) {
			q.claim("first", 0, 1)
			q.minis[1].FlushAll()
		}, "first"},
		"dead, a server missed the claim and turned a waiter away": {func(q *previousTest) {
			q.claim("first", 0, 1)
			q.giveUp("second", 2)
		}, "first"},
		"dead, a server missed the claim and keeps a waiter's": {func(q *previousTest) {
			q.claim("first", 1, 2)
			redistest.MustAcquire(q.t, redistest.Must(redisstore.New(q.taps[0].Scripter)), q.claims["second"])
		}, "first"},
		"dead, a server missed the release before": {func(q *previousTest) {
			q.claim("first", 0, 1, 2)
			q.release("first", 1, 2)
			q.claim("second", 1, 2)
		}, "second"},
		"dead, a claim was given up, because a server was still held": {func(q *previousTest) {
			q.claim("first", 0, 1)
			q.endLease(0)
			q.refuse("second", 0, 1)
		}, "first"},
		"dead, two claims were given up": {func(q *previousTest) {
			q.claim("first", 0, 1)
			q.endLease(0)
			q.refuse("second", 0, 1)
			q.refuse("third", 0, 1)
		}, "first"},
		"dead, a claim was given up, and one server had the release": {func(q *previousTest) {
			q.claim("first", 0, 1, 2)
			q.endLease(0)
			q.refuse("second", 0, 1)
			q.giveUp("first", 2)
		}, "first"},
		"a claim was given up, and then the owner released": {func(q *previousTest) {
			q.claim("first", 0, 1, 2)
			q.endLease(0)
			q.refuse("second", 0, 1)
			q.release("first", 1, 2)
		}, ""},
		"a claim was given up, and the next owner released": {func(q *previousTest) {
			q.claim("first", 0, 1)
			q.endLease(0)
			q.refuse("second", 0, 1)
			q.endLease(1)
			q.claim("third", 0, 1)
			q.release("third", 0, 1)
		}, ""},
		"dead, a claim was given up, another server has an older owner": {func(q *previousTest) {
			q.grant("first", 1)
			q.grant("second", 0)
			q.endLease(0)
			q.refuse("third", 0, 1)
		}, "second"},
		"dead, a claim without an answer was abandoned": {func(q *previousTest) {
			q.claim("first", 0, 1, 2)
			q.endLeases()
			q.grant("second", 0, 1)
			q.abandon("second", 0, 1)
		}, "first"},
		"dead, the claim is repeated": {func(q *previousTest) {
			q.claim("first", 0, 1, 2)
			q.endLeases()
			q.grant("next", 0, 1)
			q.next = []int{0, 1}
		}, "first"},
		"a server missed the release, and the claim is repeated": {func(q *previousTest) {
			q.claim("first", 0, 1, 2)
			q.release("first", 1, 2)
			q.endLeases()
			q.grant("next", 1)
			q.next = []int{0, 1}
		}, ""},
		"a server missed the release, and the claim is repeated below the end of a waiter": {func(q *previousTest) {
			q.claim("first", 0, 1, 2)
			q.release("first", 1, 2)
			q.endLeases()
			q.grant("next", 1)
			q.claims["third"].Stamp = q.claims["next"].Stamp.Add(time.Second)
			q.giveUp("third", 1)
			q.next = []int{0, 1}
		}, ""},
		"a claim was given up, and a server missed the next owner": {func(q *previousTest) {
			q.claim("first", 0, 1, 2)
			q.endLease(0)
			q.refuse("second", 0, 1)
			q.endLeases()
			q.claim("third", 1, 2)
			q.release("third", 0, 2)
			q.next = []int{0, 1}
		}, ""},
		"a server missed the release": {func(q *previousTest) {
			q.claim("first", 0, 1, 2)
			q.release("first", 1, 2)
		}, ""},
		"a server missed the release, but not the end of a waiter": {func(q *previousTest) {
			q.claim("first", 0, 1, 2)
			q.giveUp("second", 0)
			q.release("first", 1, 2)
		}, ""},
		"a server keeps the claim of a waiter": {func(q *previousTest) {
			q.claim("first", 1, 2)
			redistest.MustAcquire(q.t, redistest.Must(redisstore.New(q.taps[0].Scripter)), q.claims["second"])
			q.release("first", 1, 2)
		}, ""},
		"a server missed two releases": {func(q *previousTest) {
			q.claim("first", 0, 1, 2)
			q.release("first", 1, 2)
			q.claim("second", 1, 2)
			q.release("second", 1, 2)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := &previousTest{quorum: newQuorum(t, 3), t: t, claims: map[string]*driver.Claim{}, next: []int{0, 1, 2}}
			for i, event := range []string{"first", "second", "third", "next"} {
				claim := redistest.Claim("n")
				claim.Event, claim.Stamp = event, claim.Stamp.Add(time.Duration(i)*time.Second)
				q.claims[event] = claim
			}
			c.before(q)
			q.endLeases()
			q.only(q.next...)
			if row := redistest.MustAcquire(t, q, q.claims["next"]); row.Previous.Event != c.want {
				t.Errorf("the claim took over from %+v, want %q", row.Previous, c.want)
			}
		})
	}
}

// previousTest sends what the owners before sent, to some servers each.
type previousTest struct {
	*quorum
	t       *testing.T
	claims  map[string]*driver.Claim
	next    []int // the servers that answer the last claim
	minutes time.Duration
}

func (q *previousTest) claim(event string, nodes ...int) {
	q.t.Helper()
	q.only(nodes...)
	redistest.MustAcquire(q.t, q, q.claims[event])
}

func (q *previousTest) release(event string, nodes ...int) {
	q.t.Helper()
	q.only(nodes...)
	redistest.MustRelease(q.t, q, q.claims[event], nil)
}

func (q *previousTest) refuse(event string, nodes ...int) {
	q.t.Helper()
	q.only(nodes...)
	if row, ok, err := q.Acquire(q.t.Context(), q.claims[event]); ok || err != nil {
		q.t.Fatalf("the claim of %s: granted %v, error %v, want it refused: %+v", event, ok, err, row)
	}
}

// grant sends a claim to servers whose answers are lost.
func (q *previousTest) grant(event string, nodes ...int) {
	q.t.Helper()
	for _, i := range nodes {
		redistest.MustAcquire(q.t, redistest.Must(redisstore.New(q.taps[i].Scripter)), q.claims[event])
	}
}

// endLease lets the leases end on one server before they do on the others.
func (q *previousTest) endLease(node int) {
	q.minutes += 2
	q.minis[node].SetTime(time.Now().Add(q.minutes * time.Minute))
}

func (q *previousTest) endLeases() {
	for i := range q.minis {
		q.endLease(i)
	}
}

// abandon ends a claim without an answer.
func (q *previousTest) abandon(event string, nodes ...int) {
	q.t.Helper()
	q.only(nodes...)
	s := redistest.Settlement(q.claims[event])
	s.Abandon = true
	expect.Granted(q.Settle(q.t.Context(), s))(q.t)
}

// giveUp ends a claim that was not granted.
func (q *previousTest) giveUp(event string, node int) {
	q.t.Helper()
	s := redistest.Settlement(q.claims[event])
	s.Abandon = true
	expect.Granted(redistest.Must(redisstore.New(q.taps[node].Scripter)).Settle(q.t.Context(), s))(q.t)
}

// TestRestoredStamp renews a lock that has one node through an earlier round.
// That node then refuses the claims that the others refuse, and only when a
// majority does so is another claim's node cleared.
func TestRestoredStamp(t *testing.T) { // F44
	t.Parallel()
	q := newQuorum(t, 3)
	node := func(i int) *redisstore.Store { return redistest.Must(redisstore.New(q.taps[i].Scripter)) }
	first, other := redistest.Claim("n"), redistest.Claim("n")
	other.Stamp = first.Stamp.Add(time.Microsecond)
	second := *first
	second.Stamp = other.Stamp.Add(time.Microsecond)
	redistest.MustAcquire(t, node(0), &second)
	redistest.MustAcquire(t, node(1), first)
	redistest.MustAcquire(t, node(2), other)
	for _, want := range []string{other.Token, ""} {
		expect.Granted(q.Renew(t.Context(), redistest.Renewal(&second)))(t)
		if row, err := node(1).Read(t.Context(), "n"); err != nil || !row.Stamp.Equal(second.Stamp) {
			t.Errorf("the stamp is %v, want %v; error %v", row.Stamp, second.Stamp, err)
		}
		if owner := q.owner(2, "n"); owner != want {
			t.Errorf("the owner of the third node is %q, want %q", owner, want)
		}
	}
}

// TestWaiterIsNotCleared releases a lock while the claim of a waiter is under
// way: it may get the name, so its row stays.
func TestWaiterIsNotCleared(t *testing.T) {
	t.Parallel()
	q := newQuorum(t, 3)
	q.only(0, 1)
	c := redistest.Claim("n")
	redistest.MustAcquire(t, q, c)
	waiter := redistest.Claim("n")
	waiter.Stamp = c.Stamp.Add(time.Microsecond)
	redistest.MustAcquire(t, redistest.Must(redisstore.New(q.taps[2].Scripter)), waiter)
	q.only(0, 1, 2)
	expect.Granted(q.Settle(t.Context(), redistest.Settlement(c)))(t)
	if owner := q.owner(2, "n"); owner != waiter.Token {
		t.Errorf("the owner is %q, want the waiter", owner)
	}
}

// TestRestoreFails shows that a renewal counts a row of an earlier round only
// once it is the lock's.
func TestRestoreFails(t *testing.T) {
	t.Parallel()
	q := newQuorum(t, 3)
	first := redistest.Claim("n")
	redistest.MustAcquire(t, redistest.Must(redisstore.New(q.taps[2].Scripter)), first)
	second := *first
	second.Stamp = first.Stamp.Add(time.Microsecond)
	q.only(0, 1)
	redistest.MustAcquire(t, q, &second)
	q.only(0, 2)
	sent := q.taps[2].requests.Load()
	q.taps[2].fail = func(n int32) error {
		if n > sent+1 {
			return io.EOF
		}
		return nil
	}
	var e *driver.Error
	if _, ok, err := q.Renew(t.Context(), redistest.Renewal(&second)); ok || !errors.As(err, &e) || e.Lasting || e.Unapplied {
		t.Errorf("applied %v, error %v, want a temporary one", ok, err)
	}
	q.only(0, 1, 2)
	if _, ok, err := q.Renew(t.Context(), redistest.Renewal(&second)); !ok || err != nil {
		t.Errorf("applied %v, error %v", ok, err)
	}
}

// hanging is a client that ignores its context.
type hanging struct {
	redis.Scripter
	end chan struct{}
}

func (c hanging) EvalSha(ctx context.Context, _ string, _ []string, _ ...any) *redis.Cmd {
	<-c.end
	return redistest.ErrorCmd(ctx, io.EOF)
}

func (c hanging) Scan(ctx context.Context, _ uint64, _ string, _ int64) *redis.ScanCmd {
	<-c.end
	return redis.NewScanCmd(ctx, nil)
}

func TestHangingClient(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	defer close(end)
	q := redistest.Must(redisquorum.New(redistest.NewClient(t, redistest.NewMini(t).Addr()), hanging{end: end}, redistest.NewClient(t, redistest.NewMini(t).Addr())))
	redistest.MustAcquire(t, q, redistest.Claim("n"))
	listed := make(chan string, 1)
	go func() {
		var names []string
		for row, err := range q.Rows(t.Context(), "") {
			names = append(names, fmt.Sprint(row.Name, err))
		}
		listed <- strings.Join(names, " ")
	}()
	select {
	case got := <-listed:
		if got != "n<nil>" {
			t.Errorf("listed %s", got)
		}
	case <-time.After(20 * time.Second):
		t.Error("the list waits for the client that hangs")
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	list := func(s driver.Inspector, prefix string) (names []string, err error) {
		for row, err := range s.Rows(t.Context(), prefix) {
			if err != nil {
				return names, err
			}
			names = append(names, row.Name)
		}
		return names, nil
	}
	t.Run("keys of others", func(t *testing.T) {
		q := newQuorum(t, 3)
		for _, tap := range q.taps {
			c := tap.Scripter.(*redis.Client)
			expect.Must(t, c.Set(t.Context(), "lambdalock:text", "x", 0).Err())
			expect.Must(t, c.HSet(t.Context(), "lambdalock:damaged", "claimStamp", "x").Err())
		}
		for i := range 3 {
			redistest.MustAcquire(t, q, redistest.Claim(fmt.Sprint("name", i)))
		}
		for name, store := range map[string]driver.Inspector{"one server": redistest.Must(redisstore.New(q.taps[0])), "quorum": q} {
			var rows, unreadable []string
			for row, err := range store.Rows(t.Context(), "") {
				if err == nil {
					rows = append(rows, row.Name)
				} else {
					unreadable = append(unreadable, row.Name)
				}
			}
			slices.Sort(rows)
			slices.Sort(unreadable)
			if !slices.Equal(rows, []string{"name0", "name1", "name2"}) || !slices.Equal(unreadable, []string{"damaged", "text"}) {
				t.Errorf("%s: the rows %q, and errors of %q", name, rows, unreadable)
			}
		}
	})
	t.Run("clients without Scan", func(t *testing.T) {
		q := newQuorum(t, 3)
		mute := func(i int) redis.Scripter { return struct{ redis.Scripter }{q.taps[i].Scripter} }
		redistest.MustAcquire(t, q, redistest.Claim("n"))
		if names, err := list(redistest.Must(redisquorum.New(q.taps[0], q.taps[1], mute(2))), ""); err != nil || len(names) != 1 {
			t.Errorf("one of three: %q, error %v", names, err)
		}
		_, err := list(redistest.Must(redisquorum.New(q.taps[0], mute(1), mute(2))), "")
		if e := (*driver.ConfigError)(nil); !errors.As(err, &e) || !strings.Contains(e.Reason, "Scan") {
			t.Errorf("two of three: error %v, want a ConfigError that names Scan", err)
		}
	})
	t.Run("by who only reads", func(t *testing.T) {
		var all, reading []redis.Scripter
		for range 3 {
			srv := redistest.NewServer(t)
			admin := redistest.NewClient(t, srv.Addr)
			expect.Must(t, admin.Do(t.Context(), "ACL", "SETUSER", "u", "on", ">p", "~lambdalock:*", "+eval", "+evalsha", "+time", "+hgetall", "+scan").Err())
			c := redis.NewClient(&redis.Options{Addr: srv.Addr, Username: "u", Password: "p", ContextTimeoutEnabled: true, MaxRetries: -1})
			t.Cleanup(func() { _ = c.Close() })
			all, reading = append(all, admin), append(reading, c)
		}
		redistest.MustAcquire(t, openQuorum(all...), redistest.Claim("n"))
		for name, store := range map[string]driver.Store{"one server": redistest.Must(redisstore.New(reading[0])), "quorum": openQuorum(reading...)} {
			if names, err := list(store.(driver.Inspector), ""); err != nil || !slices.Equal(names, []string{"n"}) {
				t.Errorf("%s: %q, error %v", name, names, err)
			}
		}
	})
	t.Run("quorum", func(t *testing.T) {
		q := newQuorum(t, 3)
		for i := range 250 {
			redistest.MustAcquire(t, q, redistest.Claim(fmt.Sprint("name", i)))
		}
		for _, down := range []int{0, 1} {
			if down > 0 {
				q.minis[2].Close()
			}
			if names, err := list(q, "name"); err != nil || len(names) != 250 {
				t.Errorf("%d down: %d names, error %v, want 250", down, len(names), err)
			}
		}
		for range q.Rows(t.Context(), "") {
			break
		}
		q.minis[1].Close()
		if _, err := list(q, "name"); err == nil {
			t.Error("no error with two nodes down")
		}
	})
}

// TestMergedMemory acquires through nodes that remember different events, and
// two of them until different times.
func TestMergedMemory(t *testing.T) {
	t.Parallel()
	q := newQuorum(t, 3)
	now := time.Now().UTC().Truncate(time.Millisecond)
	again := now.Truncate(time.Second)
	first := again.Add(-time.Hour)
	memories := []*driver.Memory{
		{Completed: []driver.CompletedEvent{{Event: "a", Until: now.Add(time.Hour), At: first}, {Event: "b", Until: now.Add(time.Hour)}}, HighestOrder: "1"},
		{Completed: []driver.CompletedEvent{{Event: "b", Until: now.Add(2 * time.Hour), At: again}, {Event: "c", Until: now.Add(time.Hour)}, {Event: "d", Until: now.Add(time.Hour)}}, HighestOrder: "3"},
		{Completed: []driver.CompletedEvent{{Event: "a", Until: now.Add(2 * time.Hour), At: again}}, HighestOrder: "2", Result: driver.Result{Event: "a", Body: []byte("r")}},
	}
	for i, m := range memories {
		node, c := redistest.Must(redisstore.New(q.taps[i].Scripter)), redistest.Claim("n")
		redistest.MustAcquire(t, node, c)
		s := redistest.Settlement(c)
		s.Memory = m
		expect.Granted(node.Settle(t.Context(), s))(t)
		q.minis[i].HSet("lambdalock:n", "memoryStamp", stampOf(now.Add(-time.Duration(i)*time.Hour)))
	}
	next := redistest.Claim("n")
	row := redistest.MustAcquire(t, q, next)
	order := ""
	for _, c := range row.Memory.Completed {
		order += c.Event
		if (c.Event == "a" || c.Event == "b") && (!c.Until.Equal(now.Add(2*time.Hour)) || !c.At.Equal(again)) {
			t.Errorf("%s was completed at %v and is forgotten at %v, want the later times", c.Event, c.At, c.Until)
		}
	}
	if order != "abcd" || row.Memory.HighestOrder != "3" || row.Memory.Result.Event != "a" {
		t.Errorf("the memory is %+v", row.Memory)
	}
	q.minis[2].FlushAll()
	_, ok, err := q.Renew(t.Context(), redistest.Renewal(next))
	if got, want := q.row(2, "n")["memoryStamp"], stampOf(now); !ok || err != nil || got != want {
		t.Errorf("applied %v, error %v: the server that forgot has a memory of %s, the newest is of %s", ok, err, got, want)
	}
}

// TestEarlierCompletionOnOneNode: only the node that was away remembers an
// earlier completion of the event, for longer. The owner repeats its own
// completion, which had no answer, and must know it by its time.
func TestEarlierCompletionOnOneNode(t *testing.T) { // F5, F42
	t.Parallel()
	q := newQuorum(t, 3)
	complete := func(c *driver.Claim, remember time.Duration) *driver.Settlement {
		s := redistest.Settlement(c)
		s.Memory = &driver.Memory{Completed: []driver.CompletedEvent{{Event: "e", Until: c.Now.Add(remember).Truncate(time.Millisecond)}}}
		return s
	}
	first := redistest.Claim("n")
	first.Event = "e"
	node := redistest.Must(redisstore.New(q.taps[2].Scripter))
	redistest.MustAcquire(t, node, first)
	expect.Granted(node.Settle(t.Context(), complete(first, 24*time.Hour)))(t)
	q.only(0, 1)
	second := redistest.Claim("n")
	second.Event = "e"
	redistest.MustAcquire(t, q, second)
	done := complete(second, time.Hour)
	expect.Granted(q.Settle(t.Context(), done))(t)
	q.only(0, 1, 2)
	row, _, err := q.Settle(t.Context(), done)
	if got := row.Memory.Completed; err != nil || len(got) != 1 || !got[0].Until.Equal(done.Memory.Completed[0].Until) {
		t.Errorf("the repeated completion: error %v, memory %+v, want %+v", err, row.Memory, done.Memory)
	}
}

// TestTwoNodesAreLeft: a release did not arrive at one node, and the undo of a
// later claim not at another one. The name must be free for the next claim, and
// not only once one of their leases has ended.
func TestTwoNodesAreLeft(t *testing.T) { // F5
	t.Parallel()
	q := newQuorum(t, 3)
	first, second := redistest.Claim("n"), redistest.Claim("n")
	second.Stamp = first.Stamp.Add(time.Microsecond)
	for i, tap := range q.taps {
		node := redistest.Must(redisstore.New(tap.Scripter))
		redistest.MustAcquire(t, node, first)
		if i == 0 {
			continue
		}
		expect.Granted(node.Settle(t.Context(), redistest.Settlement(first)))(t)
		if i == 1 {
			redistest.MustAcquire(t, node, second)
		}
	}
	next := redistest.Claim("n")
	next.Stamp = second.Stamp.Add(time.Microsecond)
	redistest.MustRefuse(t, q, next)
	if owner := q.owner(1, "n"); owner != second.Token {
		t.Errorf("the owner of the second node is %q: a claim that may still get a majority was released", owner)
	}
	next.Stamp = next.Stamp.Add(time.Microsecond)
	redistest.MustAcquire(t, q, next)
}

// around is a client that does something before and after each request.
type around struct {
	redis.Scripter
	before, after func()
}

func (c around) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	c.before()
	defer c.after()
	return c.Scripter.EvalSha(ctx, sha, keys, args...)
}

// TestReleaseMeetsClear clears a node of a lock whose release has reached
// another node only, and gives the name to the next owner. Nobody has lost
// anything then, and the event does not run again.
func TestReleaseMeetsClear(t *testing.T) { // F5
	t.Parallel()
	for name, complete := range map[string]bool{"release": false, "complete": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQuorum(t, 3)
			others := openQuorum(q.taps[0].Scripter, q.taps[1].Scripter, q.taps[2].Scripter)
			c := redistest.Claim("n")
			c.Event = "e"
			q.only(0, 1)
			redistest.MustAcquire(t, q, c)
			q.only(0, 1, 2)
			minority := redistest.Claim("n")
			minority.Stamp = c.Stamp.Add(time.Microsecond)
			redistest.MustAcquire(t, redistest.Must(redisstore.New(q.taps[2].Scripter)), minority)
			s := redistest.Settlement(c)
			if complete {
				s.Memory = &driver.Memory{Completed: []driver.CompletedEvent{{Event: "e", Until: c.Until.Truncate(time.Millisecond)}}}
			}
			if _, _, err := others.Settle(t.Context(), redistest.Settlement(redistest.Claim("other"))); err != nil { // now the nodes know the script
				t.Fatal(err)
			}
			arrived := make(chan struct{})
			q.taps[1].Scripter = around{q.taps[1].Scripter, func() {}, sync.OnceFunc(func() { close(arrived) })}
			q.taps[0].Scripter = around{q.taps[0].Scripter, func() {
				<-arrived
				redistest.MustRefuse(t, others, redistest.Claim("n"))
				if owner := q.owner(0, "n"); owner != "" {
					t.Error("the node was not cleared")
				}
				again := redistest.Claim("n")
				again.Event = "e"
				row, ok, err := others.Acquire(t.Context(), again)
				if err != nil || ok == complete || complete && row.Judge(again) != driver.Completed {
					t.Errorf("a duplicate: granted %v, error %v, row %+v", ok, err, row)
				}
				if complete {
					redistest.MustAcquire(t, others, redistest.Claim("n"))
				}
			}, func() {}}
			if row, ok, err := q.Settle(t.Context(), s); err != nil || !ok {
				t.Errorf("the release: applied %v, error %v, row %+v", ok, err, row)
			}
		})
	}
}
