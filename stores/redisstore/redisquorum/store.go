package redisquorum

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/server"
)

// nodeTimeout is how long a node may take for one request. It is short, because
// one node that is paused must not use up the time of the others.
const nodeTimeout = 250 * time.Millisecond

// Store implements [driver.Store] and [driver.Inspector] on a quorum of
// servers. It is safe for concurrent use.
type Store struct {
	nodes   []*node
	need    int // a majority
	name    string
	timeout time.Duration // of one request to one node
}

// New returns a Store on the servers of clients: 3, 5 or another odd number. It
// returns a [*driver.ConfigError] with an even number, with fewer than 3, and
// for a client that redisstore.New refuses.
func New(clients ...redis.Scripter) (*Store, error) {
	if len(clients) < 3 || len(clients)%2 == 0 {
		return nil, &driver.ConfigError{Reason: fmt.Sprintf("redisquorum.New has %d clients: pass 3, 5 or another odd number, each of an independent server", len(clients))}
	}
	q := &Store{need: len(clients)/2 + 1, name: fmt.Sprintf("quorum of %d Redis servers", len(clients)), timeout: nodeTimeout}
	seen := map[string]bool{}
	for _, c := range clients {
		n, err := newNode(c)
		if err != nil {
			return nil, err
		}
		name := n.String()
		if strings.Contains(name, ":") && seen[name] {
			return nil, &driver.ConfigError{Reason: "redisquorum.New has two clients of " + name + ": pass clients of independent servers"}
		}
		seen[name] = true
		q.nodes = append(q.nodes, n)
	}
	return q, nil
}

// String returns what errors call the store.
func (q *Store) String() string { return q.name }

// ready returns why no request can be sent.
func (q *Store) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &driver.Error{Store: q.name, Unapplied: true, Err: err}
	}
	return nil
}

// Acquire implements [driver.Store]. The name is the claim's once a majority
// has granted it. Otherwise the claim is given up where it was granted or may
// have been. The event is completed, or stale, if any one node says so.
func (q *Store) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	if err := q.ready(ctx); err != nil {
		return driver.Row{}, false, err
	}
	if c.InterruptedFor > 0 { // its nodes do not die together, so they disagree about who left what
		return driver.Row{}, false, &driver.ConfigError{Reason: "OnInterrupted needs a store that keeps the events of dead holders, and " + q.name + " cannot: use DynamoDB, Redis on one server, S3 or Azure Blob Storage"}
	}
	claim := *c // package lock dates its claim anew, while a client may still hang
	c = &claim
	got := q.ask(ctx, all, func(ctx context.Context, i int) answer { return q.nodes[i].Acquire(ctx, c, 0, nil) })
	if err := q.tooFew(got); err != nil {
		return driver.Row{}, false, err
	}
	row := q.merge(got, c.Token, c.Now)
	verdict := row.Judge(c)
	done := verdict == driver.Newer || verdict == driver.Completed || verdict == driver.Stale
	if !done && count(got, has(c)) >= q.need {
		return q.grant(ctx, c, got, row)
	}
	if err := q.undo(ctx, c, got); err != nil {
		return driver.Row{}, false, err
	}
	if !done {
		q.clear(ctx, c.Name, got, c.Now)
	}
	if !row.Newer && (row.Token == "" || row.Token == c.Token) {
		row = driver.Row{Stamp: repeatAbove(got, c), Fence: row.Fence, Memory: row.Memory, DeleteAfter: row.DeleteAfter}
	}
	return row, false, nil
}

// has returns whether a node has granted c, now or before. Its answer may be a
// refusal, because another claim that was given up has raised the row's stamp.
// What an earlier round of the claim was granted does not count: a late copy of
// its undo would release it.
func has(c *driver.Claim) func(*answer) bool {
	stamp := server.Timestamp(c.Stamp)
	return func(a *answer) bool { return !failed(a) && a.Row.Token == c.Token && a.ClaimStamp == stamp }
}

// undo gives a claim up where it was granted or may have been. A minority that
// keeps the claim, because undo did not arrive, does so until the lease ends.
// If so many may keep it that no other claim could get a majority, the error is
// Lasting: the claim must not be repeated with the same stamp, because a late
// copy of what undo sends would release it.
func (q *Store) undo(ctx context.Context, c *driver.Claim, got answers) error {
	t := &driver.Settlement{Name: c.Name, Token: c.Token, DeleteAfter: c.DeleteAfter}
	granted := func(a *answer) bool { return !failed(a) && a.Row.Token == c.Token }
	ctx, cancel := outlive(ctx)
	defer cancel()
	undone := q.ask(ctx, got.where(func(a *answer) bool { return granted(a) || failed(a) }),
		func(ctx context.Context, i int) answer { return q.nodes[i].Settle(ctx, t, c.Stamp, server.SameRound) })
	if len(q.nodes)-count(undone, failed) >= q.need {
		return nil
	}
	err := q.failure(undone)
	err.Lasting, err.Unapplied = true, false
	return err
}

// repeatAbove returns the stamp of a row of which no claim has a majority,
// because several have met, or because the stamp of c is too low. Package lock
// then repeats the claim, above that stamp.
func repeatAbove(got answers, c *driver.Claim) time.Time {
	stamp := c.Stamp.Add(-time.Microsecond)
	for i := range got {
		a := &got[i]
		raised := a.Row.Token == c.Token && a.Row.Stamp.After(c.Stamp)
		if !failed(a) && (raised || a.Row.Judge(c) == driver.Behind) && a.Row.Stamp.After(stamp) {
			stamp = a.Row.Stamp
		}
	}
	return stamp
}

// grant returns the row of a claim that a majority has granted. Its fence is
// above all fences that these nodes had before, and afterwards a majority has
// it or a higher one, so the next majority continues from there. Nearly always
// a majority has it immediately: each node's fence is by its own clock, and
// that of the claim is the highest that a majority has reached.
func (q *Store) grant(ctx context.Context, c *driver.Claim, got answers, row driver.Row) (driver.Row, bool, error) {
	granted := has(c)
	var fences []*driver.Row
	least := int64(0)
	for i := range got {
		if a := &got[i]; granted(a) {
			fences = append(fences, &a.Row)
			least = max(least, a.Before+1)
		}
	}
	row.Previous = q.previous(got, granted)
	fence := max(least, highest(fences, q.need, fenceOf, cmp.Compare[int64]))
	high := func(a *answer) bool { return granted(a) && a.Row.Fence >= fence }
	if count(got, high) < q.need {
		low := func(a *answer) bool { return granted(a) && a.Row.Fence < fence }
		raised := q.askAgain(ctx, got, low, func(ctx context.Context, i int) answer { return q.nodes[i].Acquire(ctx, c, fence, nil) })
		if count(raised, high) < q.need {
			err := q.failure(raised)
			err.Unapplied = false
			return driver.Row{}, false, err
		}
	}
	row.Token, row.Event, row.Payload, row.Holder, row.TakesMarks = c.Token, c.Event, c.Payload, c.Holder, c.TakesMarks
	row.Stamp, row.Until, row.DeleteAfter, row.Fence = c.Stamp, c.Until, c.DeleteAfter, fence
	return row, true, nil
}

// Renew implements [driver.Store]. It is applied if a majority has the lease
// until then. A node that lost the row gets it again from the others, and one
// of them is enough for that if a majority answers.
func (q *Store) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	if err := q.ready(ctx); err != nil {
		return driver.Row{}, false, err
	}
	got := q.ask(ctx, all, func(ctx context.Context, i int) answer { return q.nodes[i].Renew(ctx, r, "", 0) })
	if err := q.tooFew(got); err != nil {
		return driver.Row{}, false, err
	}
	row := q.merge(got, r.Token, r.Now)
	own := func(a *answer) bool {
		return !failed(a) && r.Token != "" && a.Row.Token == r.Token && (applied(a) || !a.Row.Until.Before(r.Now))
	}
	owned := count(got, own)
	switch {
	case row.Newer, owned+count(got, failed) < q.need:
		return row, false, nil
	case owned == 0: // those that failed may have it
		return driver.Row{}, false, q.failure(got)
	}
	claimStamp := ""
	var owners, fences []*driver.Row
	for i := range got {
		a := &got[i]
		if own(a) {
			claimStamp, owners = max(claimStamp, a.ClaimStamp), append(owners, &a.Row)
		}
		if !failed(a) && a.Row.Token == r.Token { // also where the lease is over
			fences = append(fences, &a.Row)
		}
	}
	if owned < q.need { // the lock is still ours if enough of the others never had a later owner
		remembered := row.Memory
		row = *owners[0]
		row.Memory = remembered
	}
	// A majority of all nodes had the fence of the claim, or more. The nodes that
	// are missing here may be of that majority.
	row.Fence = highest(fences, max(q.need-(len(got)-len(fences)), 1), fenceOf, cmp.Compare[int64])
	restored := q.restore(ctx, r, got, &row, claimStamp)
	settled := func(a *answer) bool { return own(a) && a.ClaimStamp == claimStamp && a.Row.Fence >= row.Fence }
	if count(restored, settled) < q.need {
		return driver.Row{}, false, q.failure(restored)
	}
	q.clear(ctx, r.Name, got, r.Now)
	return row, !row.Until.After(r.Until), nil
}

// clear releases the nodes that are held by claims which can never have a
// majority again, because a release or an undo did not arrive there. Otherwise
// such a node would refuse all claims until the lease ends, which may take days
// if that is fixed, and two such nodes of three would block the name. It
// clears a node only if a majority of the others has a stamp that is not below
// that of the claim: they refuse every copy of it. The claim of a waiter has a
// higher stamp.
//
// The release may still be under way. So clear applies the rest of it: the node
// learns what the others remember, the cooldown in which they are, and that it
// was cleared. now is the time by which the rows were read.
func (q *Store) clear(ctx context.Context, name string, got answers, now time.Time) {
	ended := func(a *answer) bool {
		return !failed(a) && a.Row.Token != "" && a.ClaimStamp != "" &&
			count(got, func(b *answer) bool {
				return !failed(b) && b.Row.Token != a.Row.Token && server.Timestamp(b.Row.Stamp) >= a.ClaimStamp
			}) >= q.need
	}
	memory, last := mergeMemories(got)
	q.ask(ctx, got.where(ended), func(ctx context.Context, i int) answer {
		a := got[i]
		stamp := server.ParseTimestamp(a.ClaimStamp)
		t := &driver.Settlement{Name: name, Token: a.Row.Token, Memory: &memory, DeleteAfter: a.Row.DeleteAfter}
		for _, r := range got.rows() {
			if r.Cooldown == t.Token && r.Until.After(t.Until) {
				t.Now, t.Until, t.CooldownToken, t.DeleteAfter = now, r.Until, r.Token, r.DeleteAfter
			}
		}
		return q.nodes[i].Settle(ctx, t, stamp, server.Clears, "memoryStamp", last)
	})
}

// restore gives a row of which there is a majority to the nodes that have lost
// it. It is sent as a claim with the stamp of the claim that has the lock, so a
// copy that arrives after the release is rejected like a late copy of that
// claim.
//
// A node may have the row from an earlier round of the claim, which was given
// up: a late copy of the undo would release the row there. Such a row gets the
// stamp of the round that has the lock. Or its lease has ended there, because
// it missed the renewals.
//
// The fence rises to that of the row, where it is lower.
func (q *Store) restore(ctx context.Context, r *driver.Renewal, got answers, row *driver.Row, claimStamp string) answers {
	stamp := server.ParseTimestamp(claimStamp)
	behind := func(a *answer) bool {
		return !failed(a) && a.Row.Token == r.Token && (a.ClaimStamp < claimStamp || a.Row.Fence < row.Fence || !applied(a) && a.Row.Until.Before(r.Now))
	}
	lost := func(a *answer) bool {
		free := a.Row.Token == "" || a.Row.Token != r.Token && a.Row.Until.Before(r.Now)
		return !failed(a) && free && a.Row.Stamp.Before(stamp)
	}
	remembered, last := mergeMemories(got)
	memory := []any{}
	for f := append(server.MemoryFields(&remembered), "memoryStamp", last); len(f) > 0; f = f[2:] {
		if f[1] != "" {
			memory = append(memory, f[0], f[1])
		}
	}
	c := &driver.Claim{
		Name: r.Name, Token: r.Token, Event: row.Event, Payload: row.Payload, Holder: row.Holder, TakesMarks: row.TakesMarks,
		Now: r.Now, Stamp: stamp, Until: row.Until, DeleteAfter: r.DeleteAfter,
	}
	return q.askAgain(ctx, got, func(a *answer) bool { return behind(a) || lost(a) }, func(ctx context.Context, i int) answer {
		if behind(&got[i]) {
			again := &driver.Renewal{Name: r.Name, Token: r.Token, Now: r.Now, Until: row.Until, DeleteAfter: r.DeleteAfter}
			if end := got[i].Row.Until; end.After(again.Until) { // of a renewal that no majority has
				again.Until = end
			}
			return q.nodes[i].Renew(ctx, again, claimStamp, row.Fence)
		}
		return q.nodes[i].Acquire(ctx, c, row.Fence, memory)
	})
}

// Settle implements [driver.Store]. It is applied if a majority has applied it,
// at least one node in this call. If a node with the lock has, so may nodes
// without a holder. On all nodes it raises the stamp, so that no late copy of
// the claim is granted there. A node records a completion only while its lease
// lasts: the next owner may have a majority without this node, and one node
// that remembers is enough.
func (q *Store) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	if err := q.ready(ctx); err != nil {
		return driver.Row{}, false, err
	}
	condition := server.InTime
	if t.Abandon { // as undo does
		condition = server.SameRound
	}
	got := q.ask(ctx, all, func(ctx context.Context, i int) answer { return q.nodes[i].Settle(ctx, t, t.Stamp, condition) })
	if err := q.tooFew(got); err != nil {
		return driver.Row{}, false, err
	}
	now := clock.Wall(clock.From(ctx))
	row := q.merge(got, t.Token, now)
	if t.Abandon {
		return row, count(got, applied) > 0, nil
	}
	settled := func(a *answer) bool { return released(a) || !failed(a) && a.SettledBefore(t) }
	done := count(got, settled)
	possible := done+count(got, failed) >= q.need
	if 0 < done && done < q.need && possible && !t.Stamp.IsZero() {
		q.share(ctx, t, got, settled)
		done = count(got, settled)
	}
	switch {
	case done >= q.need:
		q.clear(ctx, t.Name, got, now)
		keepOwnTime(&row.Memory, t.Memory)
		return row, count(got, released) > 0, nil
	case possible:
		return driver.Row{}, false, q.failure(got)
	case t.Memory != nil:
		row.Memory = driver.Memory{} // what only a minority knows is not recorded
	}
	return row, false, nil
}

// keepOwnTime lets the event that a settlement has completed keep the time of
// that settlement, by which package lock knows its own completion. A node may
// have a later time, of a completion that did not reach the others.
func keepOwnTime(merged, settled *driver.Memory) {
	if settled == nil || len(settled.Completed) == 0 {
		return
	}
	last := settled.Completed[len(settled.Completed)-1]
	for i := range merged.Completed {
		if c := &merged.Completed[i]; c.Event == last.Event {
			c.Until, c.At = last.Until, last.At
		}
	}
}

func released(a *answer) bool { return a.Applied&server.Released != 0 }

// share applies a settlement, which a node with the lock has applied, to nodes
// without it as well. They missed the claim or have lost their rows, and those
// that have the lock and do not answer now may be too many to wait for. A node
// with another holder does not take it.
func (q *Store) share(ctx context.Context, t *driver.Settlement, got answers, settled func(*answer) bool) {
	others := func(a *answer) bool { return !failed(a) && !settled(a) && a.Row.Token != t.Token }
	copy(got, q.askAgain(ctx, got, others, func(ctx context.Context, i int) answer {
		return q.nodes[i].Settle(ctx, t, t.Stamp, server.Takes)
	}))
}
