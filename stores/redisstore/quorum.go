package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// nodeTimeout is how long a node may take for one request. It is short, because
// one node that is paused must not use up the time of the others.
const nodeTimeout = 250 * time.Millisecond

// Quorum implements [driver.Store] and [driver.Inspector] on an odd number of
// independent servers, of which a majority must answer (the algorithm known as
// Redlock). It is safe for concurrent use.
//
// It does not promise that at most one owner exists, whatever happens:
//   - A server that loses writes can lose locks and completed events with them.
//     The fence rises all the same. What is lost in each case:
//     https://github.com/lambdalock/lambdalock/blob/main/docs/STORES.md#what-redis-may-lose.
//     So let the servers write each change to disk (appendfsync always), or let
//     a server that has crashed stay down for longer than the longest lease.
//     What it has lost it learns again with the next completion of the name.
//   - The clocks of the servers and of the function must run at the same rate,
//     about. A server whose clock is set forward ends leases early.
//   - A function that was paused can write after its lease has ended. Only
//     the fencing token turns such a write away; it rises with every owner,
//     across any two majorities.
//   - A claim that was given up while requests got lost may keep a name until
//     its lease ends, if another server is down or busy.
//   - What is forgotten on purpose (lambdalock forget) comes back from a server
//     that was down then, because one server that remembers is enough.
//
// Two clients of one server are refused with a [*driver.ConfigError], at the
// first request, if the server may tell its run_id. The servers must not
// replicate each other either: a replica that takes over counts as a server
// that has lost its latest writes. Three servers go on when one is down, five
// when two are.
//
// Each step is sent to all servers at once, and each has 250 ms to answer. So a
// server that does not answer makes each step take that long. Opening the
// connection of a *redis.Client does not count: that goes on in the background
// for up to a second, and is waited for only while no majority is connected.
type Quorum struct {
	nodes   []*Store
	need    int // a majority
	name    string
	timeout time.Duration // of one request to one node
}

// NewQuorum returns a Quorum of the servers of clients: 3, 5 or another odd
// number. It returns a [*driver.ConfigError] with an even number, with fewer
// than 3, and for a client that [New] refuses.
func NewQuorum(clients ...redis.Scripter) (*Quorum, error) {
	if len(clients) < 3 || len(clients)%2 == 0 {
		return nil, &driver.ConfigError{Reason: fmt.Sprintf("redisstore.NewQuorum has %d clients: pass 3, 5 or another odd number, each of an independent server", len(clients))}
	}
	q := &Quorum{need: len(clients)/2 + 1, name: fmt.Sprintf("quorum of %d Redis servers", len(clients)), timeout: nodeTimeout}
	seen := map[string]bool{}
	for _, c := range clients {
		s, err := New(c)
		if err != nil {
			return nil, err
		}
		if strings.Contains(s.server, ":") && seen[s.server] {
			return nil, &driver.ConfigError{Reason: "redisstore.NewQuorum has two clients of " + s.server + ": pass clients of independent servers"}
		}
		seen[s.server] = true
		q.nodes = append(q.nodes, s)
	}
	return q, nil
}

// ready returns why no request can be sent.
func (q *Quorum) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &driver.Error{Store: q.name, Temporary: true, Unapplied: true, Err: err}
	}
	return nil
}

// Acquire implements [driver.Store]. The name is the claim's once a majority
// has granted it. Otherwise the claim is given up where it was granted or may
// have been. The event is completed, or stale, if any one node says so.
func (q *Quorum) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	if err := q.ready(ctx); err != nil {
		return driver.Row{}, false, err
	}
	claim := *c // package lock dates its claim anew, while a client may still hang
	c = &claim
	got := q.ask(ctx, all, func(ctx context.Context, i int) answer { return q.nodes[i].acquire(ctx, c, 0, nil) })
	if err := q.tooFew(got); err != nil {
		return driver.Row{}, false, err
	}
	row := q.merge(got, view{c.Token, c.Now})
	verdict := row.Judge(c)
	done := verdict == driver.Newer || verdict == driver.Completed || verdict == driver.Stale
	if !done && count(got, has(c)) >= q.need {
		return q.grant(ctx, c, got, row)
	}
	if err := q.undo(ctx, c, got); err != nil {
		return driver.Row{}, false, err
	}
	if !done {
		q.clear(ctx, c.Name, got)
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
	stamp := timestamp(c.Stamp)
	return func(a *answer) bool { return !failed(a) && a.row.Token == c.Token && a.claimStamp == stamp }
}

// undo gives a claim up where it was granted or may have been. A minority that
// keeps the claim, because undo did not arrive, does so until the lease ends.
// If so many may keep it that nobody else could get a majority, the error is
// not Temporary: the claim must not be repeated with the same stamp, because a
// late copy of what undo sends would release it.
func (q *Quorum) undo(ctx context.Context, c *driver.Claim, got answers) error {
	t := &driver.Settlement{Name: c.Name, Token: c.Token, DeleteAfter: c.DeleteAfter}
	granted := func(a *answer) bool { return !failed(a) && a.row.Token == c.Token }
	undone := q.ask(context.WithoutCancel(ctx), got.where(func(a *answer) bool { return granted(a) || failed(a) }),
		func(ctx context.Context, i int) answer { return q.nodes[i].settle(ctx, t, c.Stamp, sameRound) })
	if len(q.nodes)-count(undone, failed) >= q.need {
		return nil
	}
	err := q.failure(undone)
	err.Temporary, err.Unapplied = false, false
	return err
}

// repeatAbove returns the stamp of a row that nobody has a majority of, because
// the claims of several have met, or because the stamp of c is too low. Package
// lock then repeats the claim, above that stamp.
func repeatAbove(got answers, c *driver.Claim) time.Time {
	stamp := c.Stamp.Add(-time.Microsecond)
	for i := range got {
		a := &got[i]
		raised := a.row.Token == c.Token && a.row.Stamp.After(c.Stamp)
		if !failed(a) && (raised || a.row.Judge(c) == driver.Behind) && a.row.Stamp.After(stamp) {
			stamp = a.row.Stamp
		}
	}
	return stamp
}

// grant returns the row of a claim that a majority has granted. Its fence is
// above all fences that these nodes had before, and a majority of all nodes has
// it or a higher one afterwards: the next majority has at least one node in
// common with this one, and goes on from there. Nearly always a majority has it
// at once: each node's fence is by its own clock, and that of the claim is the
// highest that a majority has reached.
func (q *Quorum) grant(ctx context.Context, c *driver.Claim, got answers, row driver.Row) (driver.Row, bool, error) {
	granted := has(c)
	var fences []*driver.Row
	least := int64(0)
	for i := range got {
		if a := &got[i]; granted(a) {
			fences = append(fences, &a.row)
			least = max(least, a.before+1)
			row.Previous = cmp.Or(row.Previous, a.row.Previous)
		}
	}
	fence := max(least, highest(fences, q.need, fenceOf, cmp.Compare[int64]))
	high := func(a *answer) bool { return granted(a) && a.row.Fence >= fence }
	if enough := count(got, high); enough < q.need {
		low := func(a *answer) bool { return granted(a) && a.row.Fence < fence }
		raised := q.ask(ctx, got.where(low), func(ctx context.Context, i int) answer { return q.nodes[i].acquire(ctx, c, fence, nil) })
		if enough+count(raised, high) < q.need {
			err := q.failure(raised)
			err.Unapplied = false
			return driver.Row{}, false, err
		}
	}
	row.Token, row.Event, row.Payload, row.Holder = c.Token, c.Event, c.Payload, c.Holder
	row.Stamp, row.Until, row.DeleteAfter, row.Fence = c.Stamp, c.Until, c.DeleteAfter, fence
	return row, true, nil
}

// Renew implements [driver.Store]. It is applied if a majority has the lease
// until then. A node that lost the row gets it again from the others.
func (q *Quorum) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	if err := q.ready(ctx); err != nil {
		return driver.Row{}, false, err
	}
	got := q.ask(ctx, all, func(ctx context.Context, i int) answer { return q.nodes[i].renew(ctx, r, "", 0) })
	if err := q.tooFew(got); err != nil {
		return driver.Row{}, false, err
	}
	row := q.merge(got, view{r.Token, r.Now})
	own := func(a *answer) bool { return !failed(a) && r.Token != "" && a.row.Token == r.Token }
	switch owned := count(got, own); {
	case row.Newer, owned+count(got, failed) < q.need:
		return row, false, nil
	case owned < q.need: // those that failed may have it
		return driver.Row{}, false, q.failure(got)
	}
	claimStamp := ""
	var fences []*driver.Row
	for i := range got {
		if own(&got[i]) {
			claimStamp, fences = max(claimStamp, got[i].claimStamp), append(fences, &got[i].row)
		}
	}
	// A majority of all nodes had the fence of the claim, or more. The nodes that
	// are missing here may be of that majority.
	row.Fence = highest(fences, max(q.need-(len(got)-len(fences)), 1), fenceOf, cmp.Compare[int64])
	restored := q.restore(ctx, r, got, &row, claimStamp)
	settled := func(a *answer) bool { return own(a) && a.claimStamp == claimStamp && a.row.Fence >= row.Fence }
	if count(got, settled)+count(restored, settled) < q.need {
		return driver.Row{}, false, q.failure(restored)
	}
	q.clear(ctx, r.Name, got)
	return row, !row.Until.After(r.Until), nil
}

// clear releases the nodes that are held by claims which can never have a
// majority again, because a release or an undo did not arrive there. Otherwise
// such a node would refuse all claims until the lease ends, which may take days
// after a hand-over, and two such nodes of three would keep the name from
// everybody. It clears a node only if a majority of the others has a stamp that
// is not below that of the claim: they refuse every copy of it. The claim of a
// waiter has a higher stamp.
//
// The release may still be under way. So clear applies the rest of it: the node
// learns what the others remember, and that it was cleared.
func (q *Quorum) clear(ctx context.Context, name string, got answers) {
	ended := func(a *answer) bool {
		return !failed(a) && a.row.Token != "" && a.claimStamp != "" &&
			count(got, func(b *answer) bool {
				return !failed(b) && b.row.Token != a.row.Token && timestamp(b.row.Stamp) >= a.claimStamp
			}) >= q.need
	}
	memory, last := mergeMemories(got)
	q.ask(ctx, got.where(ended), func(ctx context.Context, i int) answer {
		a := got[i]
		stamp, _ := time.Parse(layout, a.claimStamp)
		t := &driver.Settlement{Name: name, Token: a.row.Token, Memory: &memory, DeleteAfter: a.row.DeleteAfter}
		return q.nodes[i].settle(ctx, t, stamp, clears, "memoryStamp", last)
	})
}

// restore gives a row of which there is a majority to the nodes that have lost
// it. It is sent as a claim with the stamp of the claim that has the lock, so a
// copy that arrives after the release is turned away like a late copy of that
// claim.
//
// A node may have the row from an earlier round of the claim, which was given
// up: a late copy of the undo would release the row there. Such a row gets the
// stamp of the round that has the lock.
//
// The fence rises to that of the row, where it is lower.
func (q *Quorum) restore(ctx context.Context, r *driver.Renewal, got answers, row *driver.Row, claimStamp string) answers {
	stamp, _ := time.Parse(layout, claimStamp)
	behind := func(a *answer) bool {
		return !failed(a) && a.row.Token == r.Token && (a.claimStamp < claimStamp || a.row.Fence < row.Fence)
	}
	lost := func(a *answer) bool {
		free := a.row.Token == "" || a.row.Token != r.Token && a.row.Until.Before(r.Now)
		return !failed(a) && free && a.row.Stamp.Before(stamp)
	}
	remembered, last := mergeMemories(got)
	memory := []any{}
	for f := append(memoryFields(&remembered), "memoryStamp", last); len(f) > 0; f = f[2:] {
		if f[1] != "" {
			memory = append(memory, f[0], f[1])
		}
	}
	c := &driver.Claim{
		Name: r.Name, Token: r.Token, Event: row.Event, Payload: row.Payload, Holder: row.Holder,
		Now: r.Now, Stamp: stamp, Until: row.Until, DeleteAfter: r.DeleteAfter,
	}
	return q.ask(ctx, got.where(func(a *answer) bool { return behind(a) || lost(a) }), func(ctx context.Context, i int) answer {
		if behind(&got[i]) {
			again := &driver.Renewal{Name: r.Name, Token: r.Token, Now: r.Now, Until: row.Until, DeleteAfter: r.DeleteAfter}
			if end := got[i].row.Until; end.After(again.Until) { // of a renewal that no majority has
				again.Until = end
			}
			return q.nodes[i].renew(ctx, again, claimStamp, row.Fence)
		}
		return q.nodes[i].acquire(ctx, c, row.Fence, memory)
	})
}

// Settle implements [driver.Store]. It is applied if a majority has applied
// it, at least one node in this call. On the other nodes it raises the stamp,
// so that no late copy of the claim is granted there. A node records a
// completion only while its lease lasts: the next owner may have a majority
// without this node, and one node that remembers is enough.
func (q *Quorum) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	if err := q.ready(ctx); err != nil {
		return driver.Row{}, false, err
	}
	got := q.ask(ctx, all, func(ctx context.Context, i int) answer { return q.nodes[i].settle(ctx, t, t.Stamp, inTime) })
	if err := q.tooFew(got); err != nil {
		return driver.Row{}, false, err
	}
	row := q.merge(got, view{t.Token, clock.Wall(clock.From(ctx))})
	if t.Abandon {
		return row, count(got, applied) > 0, nil
	}
	now := count(got, func(a *answer) bool { return a.applied&released != 0 })
	before := count(got, func(a *answer) bool { return !failed(a) && a.applied&released == 0 && settledBefore(a, t) })
	switch {
	case now+before >= q.need:
		q.clear(ctx, t.Name, got)
		return row, now > 0, nil
	case now+before+count(got, failed) >= q.need:
		return driver.Row{}, false, q.failure(got)
	case t.Memory != nil:
		row.Memory = driver.Memory{} // what only a minority knows is not recorded
	}
	return row, false, nil
}
