package redisquorum

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/redisstore/internal/server"
)

type answer = server.Answer

// answers has an answer of each node.
type answers []answer

func failed(a *answer) bool  { return a.Err != nil }
func applied(a *answer) bool { return a.Applied != 0 }

func count(got answers, is func(*answer) bool) int {
	n := 0
	for i := range got {
		if is(&got[i]) {
			n++
		}
	}
	return n
}

// where selects the nodes by their answers.
func (got answers) where(is func(*answer) bool) func(node int) bool {
	return func(i int) bool { return is(&got[i]) }
}

// all selects all nodes.
func all(int) bool { return true }

// ask sends a request to the selected nodes and waits for their answers. Nodes
// that are not asked have the zero answer. Once the time for one request is
// over, ask waits for nodes to be connected only while there is no majority of
// answers.
func (q *Store) ask(ctx context.Context, selected func(node int) bool, request func(ctx context.Context, node int) answer) answers {
	type numbered struct {
		answer
		node int
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	got := make(answers, len(q.nodes))
	answered := make(chan numbered, len(q.nodes))
	waiting := 0
	for i, node := range q.nodes {
		if selected(i) {
			waiting++
			got[i].Err = errHangs // until it answers
			go func() {
				answered <- numbered{node.exchange(ctx, q.timeout, func(ctx context.Context) answer { return request(ctx, i) }), i}
			}()
		}
	}
	late := make(chan struct{})
	defer clock.From(ctx).AfterFunc(q.timeout, func() { close(late) }).Stop()
	for isLate := false; waiting > 0; {
		select {
		case a := <-answered:
			got[a.node] = a.answer
			waiting--
		case <-late:
			isLate, late = true, nil
		}
		if isLate && len(got)-count(got, failed) >= q.need {
			cancel()
		}
	}
	return got
}

// askAgain sends a further request of a step to the selected nodes. It returns
// their answers to that, and the answers of the others from before.
func (q *Store) askAgain(ctx context.Context, before answers, selected func(*answer) bool, request func(ctx context.Context, node int) answer) answers {
	got := q.ask(ctx, before.where(selected), request)
	for i := range got {
		if !selected(&before[i]) {
			got[i] = before[i]
		}
	}
	return got
}

// tooFew returns an error if there is no majority of answers, or if two nodes
// are the same server. A setting that is wrong is told first.
func (q *Store) tooFew(got answers) error {
	seen := map[string]*node{}
	for _, node := range q.nodes {
		id := node.Process()
		if id == "" {
			continue
		}
		if other := seen[id]; other != nil {
			return &driver.ConfigError{Reason: fmt.Sprintf("%s and %s of the quorum are one server, so it would count twice: pass redisquorum.New clients of independent servers", other, node)}
		}
		seen[id] = node
	}
	if len(got)-count(got, failed) >= q.need {
		return nil
	}
	for i := range got {
		var wrong *driver.ConfigError
		if errors.As(got[i].Err, &wrong) {
			return wrong
		}
	}
	return q.failure(got)
}

// failure returns the error of a step for which too few nodes succeeded. It is
// Answered if a majority answered, even with refusals, and Unapplied if no node
// can have applied the step.
func (q *Store) failure(got answers) *driver.Error {
	e := &driver.Error{Store: q.name, Unapplied: count(got, applied) == 0}
	lasting, silent := 0, 0
	var first *driver.Error
	for i := range got {
		var one *driver.Error
		if !errors.As(got[i].Err, &one) {
			continue
		}
		if one.Lasting {
			lasting++
		}
		if first == nil || one.Lasting && !first.Lasting {
			first = one
		}
		if !one.Answered {
			silent++
		}
		e.Unapplied = e.Unapplied && one.Unapplied
	}
	e.Answered = silent <= len(got)-q.need
	e.Lasting = lasting > len(got)-q.need
	e.Err = errors.New("the servers disagree")
	if first != nil {
		e.Action, e.Hint = first.Action, first.Hint
		e.Err = fmt.Errorf("%d of %d servers failed, %s with: %w", count(got, failed), len(got), first.Store, first.Err)
	}
	return e
}

// merge returns the row that a majority has, as the owner of the token sees it
// now: that of the owner on a majority of the nodes, or else a free row. It has
// the memory of all nodes.
func (q *Store) merge(got answers, token string, now time.Time) driver.Row {
	if count(got, func(a *answer) bool { return !failed(a) && a.Row.Newer }) > 0 {
		return driver.Row{Newer: true}
	}
	rows := got.rows()
	var row driver.Row
	if owned := q.owned(rows, token, now); len(owned) > 0 {
		row = *owned[0]
		// The lease lasts, and the fence is known, where a majority says so.
		row.Until = highest(owned, q.need, func(r *driver.Row) time.Time { return r.Until }, time.Time.Compare)
		row.Fence = highest(owned, q.need, fenceOf, cmp.Compare[int64])
	} else {
		row.Stamp = rows[0].Stamp
		row.Fence = highest(rows, q.need, fenceOf, cmp.Compare[int64])
	}
	row.Previous = driver.InterruptedEvent{}
	row.Memory, _ = mergeMemories(got)
	for _, r := range rows {
		if r.DeleteAfter.After(row.DeleteAfter) {
			row.DeleteAfter = r.DeleteAfter
		}
	}
	return row
}

// previous returns the run of the dead owner from whom a claim takes over, by
// the nodes that have granted it. A node that missed a release still has the
// owner. So an owner that is not left on a majority does not count if a node
// was free whose stamp was not below that of its claim, because a release has
// raised it (or, on a node that missed the owner's claim, one that was given
// up: then nobody is told of that owner), or if a majority had another claim
// last.
func (q *Store) previous(got answers, granted func(*answer) bool) driver.InterruptedEvent {
	left := func(a *answer) bool { return granted(a) && a.DeadClaim != "" }
	before := func(a *answer) string {
		if left(a) {
			return a.DeadClaim
		}
		return a.ClaimBefore
	}
	last := &answer{}
	for i := range got {
		owner := &got[i]
		if !left(owner) || owner.DeadClaim <= last.DeadClaim {
			continue
		}
		same := count(got, func(a *answer) bool { return left(a) && a.DeadClaim == owner.DeadClaim })
		freed := count(got, func(a *answer) bool { return !left(a) && before(a) >= owner.DeadClaim })
		others := count(got, func(a *answer) bool { return before(a) != "" && before(a) != owner.DeadClaim })
		if same >= q.need || freed == 0 && others < q.need {
			last = owner
		}
	}
	return last.Dead
}

// rows returns the rows that can be read, the one with the latest stamp first.
func (got answers) rows() []*driver.Row {
	rows := make([]*driver.Row, 0, len(got))
	for i := range got {
		if a := &got[i]; !failed(a) && !a.Row.Newer {
			rows = append(rows, &a.Row)
		}
	}
	slices.SortStableFunc(rows, func(a, b *driver.Row) int { return b.Stamp.Compare(a.Stamp) })
	return rows
}

// owned returns the rows of the owner on a majority of the nodes, or nil. The
// lease of another owner than the asker must not have ended.
func (q *Store) owned(rows []*driver.Row, token string, now time.Time) []*driver.Row {
	for _, first := range rows {
		var same []*driver.Row
		for _, r := range rows {
			if r.Token != "" && r.Token == first.Token && (r.Token == token || !r.Until.Before(now)) {
				same = append(same, r)
			}
		}
		if len(same) >= q.need {
			return same
		}
	}
	return nil
}

func fenceOf(r *driver.Row) int64 { return r.Fence }

// highest returns the nth highest value of the rows.
func highest[T any](rows []*driver.Row, nth int, value func(*driver.Row) T, compare func(a, b T) int) T {
	values := make([]T, len(rows))
	for i, r := range rows {
		values[i] = value(r)
	}
	slices.SortFunc(values, func(a, b T) int { return compare(b, a) })
	return values[nth-1]
}

// mergeMemories returns what any of the nodes remembers, and the stamp of the
// claim that completed last. A node that was down, or that has lost its last
// writes, knows fewer events than the others, or other ones. So an event keeps
// its place behind the one before it on its own node, and the node whose
// completion is the newest decides otherwise.
func mergeMemories(got answers) (m driver.Memory, last string) {
	var nodes []*answer
	for i := range got {
		if a := &got[i]; !failed(a) && !a.Row.Newer {
			nodes = append(nodes, a)
		}
	}
	slices.SortStableFunc(nodes, func(a, b *answer) int { return cmp.Compare(b.MemoryStamp, a.MemoryStamp) })
	for _, a := range nodes {
		last = max(last, a.MemoryStamp)
		m.Completed = mergeEvents(m.Completed, a.Row.Memory.Completed)
		m.HighestOrder = max(m.HighestOrder, a.Row.Memory.HighestOrder)
		if m.Result.Event == "" {
			m.Result = a.Row.Memory.Result
		}
	}
	return m, last
}

// mergeEvents adds the events of an older list to a newer one.
func mergeEvents(newer, older []driver.CompletedEvent) []driver.CompletedEvent {
	place := make(map[string]int, len(newer))
	for i, c := range newer {
		place[c.Event] = i
	}
	behind := map[string][]driver.CompletedEvent{} // what only the older list has, by the event before it
	previous := ""
	for _, c := range older {
		i, known := place[c.Event]
		switch {
		case !known:
			behind[previous] = append(behind[previous], c)
			continue
		case newer[i].Until.Before(c.Until):
			newer[i].Until, newer[i].At = c.Until, c.At
		}
		previous = c.Event
	}
	if len(behind) == 0 {
		return newer
	}
	merged := behind[""]
	for _, c := range newer {
		merged = append(append(merged, c), behind[c.Event]...)
	}
	return merged
}
