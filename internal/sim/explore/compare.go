package explore

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// Store is what can be compared.
type Store interface {
	driver.Store
	driver.Inspector
}

// Comparison is how much of a store was compared.
type Comparison struct {
	Rows, Requests, Pairs int
	Verdicts              map[driver.Verdict]int
}

func (c *Comparison) String() string {
	return fmt.Sprintf("%d rows, %d requests, %d pairs of them: %d granted, %d completed, %d stale, %d held, %d behind", c.Rows, c.Requests, c.Pairs,
		c.Verdicts[driver.Granted], c.Verdicts[driver.Completed], c.Verdicts[driver.Stale], c.Verdicts[driver.Held], c.Verdicts[driver.Behind])
}

// Compare sends every request of the exploration to every row that it reached,
// and returns an error if the store decides otherwise than [driver.Row.Judge]
// and the rules of [driver.Store], or has another row afterwards. setTime sets
// the clock of a store that judges by its own; otherwise it is nil. Of all
// pairs of a row and a request, it tries one out of share, always the same
// ones.
//
// It does not look at DeleteAfter.
func (r *Result) Compare(ctx context.Context, s Store, setTime func(time.Time), share int) (*Comparison, error) {
	c := &comparison{Comparison: Comparison{Requests: len(r.tables.requests) - 1, Verdicts: map[driver.Verdict]int{}}, ctx: ctx, store: s, setTime: setTime}
	last := r.tables.bounds.Ticks
	if setTime == nil {
		last = 0
	}
	all := 0
	for _, way := range r.tables.ways() {
		c.Rows++
		for now := way.at; int(now) <= last; now++ {
			for _, q := range r.tables.requests[1:] {
				if all++; all%share != 0 {
					continue
				}
				c.Pairs++
				if err := c.try(way, timed{q.Request, now}); err != nil {
					return &c.Comparison, err
				}
			}
			c.fresh()
		}
	}
	return &c.Comparison, nil
}

// timed is a request that is applied at a tick of the store's clock.
type timed struct {
	Request
	at int8
}

// way is how a row is reached.
type way struct {
	row   int32
	steps []timed
	at    int8 // the tick of the last one
}

// ways returns how each row is reached, as early as possible, beginning with
// the one of no request.
func (t *tables) ways() []way {
	next := map[int32][]step{}
	last := int8(0)
	for s, r := range t.steps {
		if r.after != s.row {
			next[s.row] = append(next[s.row], s)
			last = max(last, s.at)
		}
	}
	known := map[int32]bool{0: true}
	all := []way{{}}
	for now := int8(0); now <= last; now++ {
		for i := 0; i < len(all); i++ {
			w := all[i]
			for _, s := range next[w.row] {
				after := t.steps[s].after
				if s.at != now || known[after] {
					continue
				}
				known[after] = true
				steps := append(w.steps[:len(w.steps):len(w.steps)], timed{t.requests[s.request].Request, now})
				all = append(all, way{after, steps, now})
			}
		}
	}
	return all
}

// comparison is the state of Compare. Each row is made under a name of its own.
// A request that is refused leaves it, so that it serves for the next one.
type comparison struct {
	Comparison
	ctx     context.Context
	store   Store
	setTime func(time.Time)

	names int
	name  string // of the row; empty if it has to be made anew
	want  Stored
	// fence is the highest that the store gave, and owner to whom.
	fence int64
	owner string
}

func (c *comparison) fresh() { c.name = "" }

// try compares what the store does with one request to one row.
func (c *comparison) try(w way, q timed) error {
	if c.name == "" {
		c.names++
		c.name, c.want, c.fence, c.owner = fmt.Sprintf("row %d", c.names), Stored{}, 0, ""
		for _, s := range w.steps {
			if err := c.send(s); err != nil {
				return err
			}
		}
	}
	before := c.want
	if q.Claim != nil {
		seen := before.seenBy(q.Claim.Token, q.Claim.Now, c.at(q.at))
		c.Verdicts[seen.Judge(q.Claim)]++
	}
	if err := c.send(q); err != nil {
		return fmt.Errorf("%w\nThe row before: %+v", err, before.Row)
	}
	if !reflect.DeepEqual(before, c.want) {
		c.fresh()
	}
	return nil
}

// at returns the time of the store's clock, or zero.
func (c *comparison) at(now int8) time.Time {
	if c.setTime == nil {
		return time.Time{}
	}
	return at(now)
}

// send sends a request, and compares the answer with that of the rules.
func (c *comparison) send(q timed) error {
	now := c.at(q.at)
	if c.setTime != nil {
		c.setTime(now)
	}
	var got, want driver.Row
	var ok, wantOK bool
	var err error
	rules := Right()
	switch {
	case q.Claim != nil:
		claim := *q.Claim
		claim.Name = c.name
		c.want, want, wantOK = c.want.Acquire(&rules, &claim, now)
		got, ok, err = c.store.Acquire(c.ctx, &claim)
	case q.Renewal != nil:
		renewal := *q.Renewal
		renewal.Name = c.name
		c.want, want, wantOK = c.want.Renew(&rules, &renewal, now)
		got, ok, err = c.store.Renew(c.ctx, &renewal)
	default: // the answer need not tell the row
		settlement := *q.Settlement
		settlement.Name = c.name
		c.want, want, wantOK = c.want.Release(&rules, &settlement)
		_, ok, err = c.store.Release(c.ctx, &settlement)
		if err == nil && (ok || wantOK) {
			got, err = c.store.Read(c.ctx, c.name)
		} else {
			want = driver.Row{}
		}
		got.Until, want.Until = time.Time{}, time.Time{} // by no clock of an asker
	}
	if err != nil {
		return fmt.Errorf("%v: %w", q.Request, err)
	}
	c.sameFence(&got, &want)
	if a, b := c.plain(got), c.plain(want); ok != wantOK || !reflect.DeepEqual(a, b) {
		return fmt.Errorf("at tick %d, %v\nthe store answers %v %+v\nthe rules say     %v %+v", q.at, q.Request, ok, a, wantOK, b)
	}
	return nil
}

// sameFence compares the fences of a row. A server gives those of its own
// clock, which rise with every owner and never fall.
func (c *comparison) sameFence(got, want *driver.Row) {
	if c.setTime == nil || want.Fence == 0 {
		return
	}
	if got.Fence > c.fence || got.Fence == c.fence && (want.Token == "" || want.Token == c.owner) {
		c.fence, want.Fence = got.Fence, got.Fence
	}
	if want.Token != "" {
		c.owner = want.Token
	}
}

// plain returns the row without what may differ from store to store. The end of
// another's lease may be up to a second later, because a server may count whole
// seconds.
func (c *comparison) plain(r driver.Row) driver.Row {
	r.DeleteAfter, r.Stamp = time.Time{}, r.Stamp.UTC()
	r.Until = r.Until.UTC()
	if c.setTime != nil {
		r.Until = r.Until.Truncate(time.Second)
	}
	if r.Token == "" {
		r.Until = time.Time{} // it means nothing then
	}
	completed := make([]driver.CompletedEvent, 0, len(r.Memory.Completed))
	for _, e := range r.Memory.Completed {
		e.Until = e.Until.UTC()
		completed = append(completed, e)
	}
	r.Memory.Completed = completed
	return r
}
