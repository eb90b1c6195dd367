// Package operate has the tools of an operator: they create the lock table,
// show what its rows say, and change them.
package operate

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// List lists the locks of a store.
type List struct {
	console.StoreFlags
	jsonFlag
	Held    bool           `xor:"which" help:"Only locks that are held."`
	HeldFor *time.Duration `xor:"which" placeholder:"1h" help:"Only locks that one holder has held for so long."`
	Expired bool           `xor:"which" help:"Only locks whose holder died, and that nobody has acquired since."`
	All     bool           `xor:"which" help:"All rows, free ones as well."`

	Interrupted bool `xor:"which" help:"Events of which a run began and nothing is known of its end."`
}

// Help returns what --help adds.
func (c *List) Help() string {
	return `Without --held, --held-for, --expired, --interrupted or --all it lists the locks that have a holder, alive or dead. With --namespace it lists that namespace only. With --interrupted it lists the events, since when each is interrupted and by whom, and when the row forgets it: decide before, with lambdalock complete or forget.

Up to 1,000 rows are sorted by name; more are printed while they are read, in no order. --json prints one object on each line; the last line of the table goes to standard error.

It reads the whole table, whatever it prints: on DynamoDB one read unit for each 4 KB, and it needs dynamodb:Scan.

Examples:
  lambdalock list                                       # who holds what, in the table LOCK_TABLE_NAME
  lambdalock list --namespace orders --expired          # whose holder died
  lambdalock list --held-for 1h                         # who has worked for an hour
  lambdalock list --store redis://localhost:6379 --json # for scripts`
}

// chunk is how many rows are kept before they are printed.
const chunk = 1000

// Run runs the command.
func (c *List) Run(ctx context.Context) error {
	if c.HeldFor != nil && *c.HeldFor < 0 {
		return wrongUse("--held-for %v: zero or more", *c.HeldFor)
	}
	store, err := inspector(ctx, &c.StoreFlags)
	if err != nil {
		return trouble(err)
	}
	return trouble(c.print(ctx, store, os.Stdout, os.Stderr))
}

func (c *List) print(ctx context.Context, store driver.Inspector, out, summary io.Writer) error {
	l := lister{out: out, json: c.JSON, since: c.HeldFor != nil, interrupted: c.Interrupted, now: time.Now(), count: map[inspect.State]int{}}
	for row, err := range store.Rows(ctx, prefix(c.Namespace)) {
		if err != nil {
			return cmp.Or(l.flush(), err)
		}
		r := inspect.Describe(row.Name, &row.Row, l.now)
		l.count[r.State]++
		held := time.Duration(-1)
		if r.State == inspect.Held && !row.Cooling() {
			held = max(0, l.now.Sub(r.Since)) // its clock may be ahead
			if l.oldest.IsZero() || r.Since.Before(l.oldest) {
				l.oldest = r.Since
			}
		}
		if !c.wants(&r, held) {
			continue
		}
		if err := l.add(r); err != nil {
			return err
		}
	}
	if err := l.flush(); err != nil || c.JSON {
		return err
	}
	text := l.summary() + inNamespace(c.Namespace)
	if !l.oldest.IsZero() {
		text += "; the oldest is held since " + inspect.Moment(l.oldest, l.now)
	}
	_, err := fmt.Fprintln(summary, text)
	return err
}

// wants reports whether to print a row. held is for how long its holder has had
// it; negative if it has none.
func (c *List) wants(r *inspect.Row, held time.Duration) bool {
	switch {
	case c.Held:
		return r.State == inspect.Held
	case c.HeldFor != nil:
		return held >= *c.HeldFor
	case c.Expired:
		return r.State == inspect.Expired
	case c.Interrupted:
		return len(r.Interrupted) > 0
	}
	return c.All || r.State != inspect.Free
}

// lister prints rows, a chunk at a time.
type lister struct {
	out     io.Writer
	json    bool
	since   bool // also since when each is held
	now     time.Time
	rows    []inspect.Row
	printed bool // a chunk was
	count   map[inspect.State]int
	oldest  time.Time // since when one holder has had a lock

	interrupted bool // the interrupted events in place of the holders
}

func (l *lister) add(r inspect.Row) error {
	l.rows = append(l.rows, r)
	if len(l.rows) < chunk {
		return nil
	}
	return l.flush()
}

// flush prints the rows that are kept, in few writes.
func (l *lister) flush() error {
	out := bufio.NewWriterSize(l.out, 64<<10)
	return cmp.Or(l.write(out), out.Flush())
}

func (l *lister) write(out io.Writer) error {
	slices.SortFunc(l.rows, func(a, b inspect.Row) int { return cmp.Compare(a.Name, b.Name) })
	defer func() { l.rows, l.printed = l.rows[:0], true }()
	if l.json {
		for i := range l.rows {
			if err := inspect.WriteJSON(out, &l.rows[i], ""); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if !l.printed && len(l.rows) > 0 {
		_, _ = fmt.Fprintln(t, l.heading())
	}
	for i := range l.rows {
		if l.interrupted {
			l.writeInterrupted(t, &l.rows[i])
			continue
		}
		l.writeHolder(t, &l.rows[i])
	}
	return t.Flush()
}

func (l *lister) heading() string {
	switch {
	case l.interrupted:
		return "STATE\tSINCE\tDECIDE BEFORE\tDIGEST\tNAME\tEVENT\tHOLDER"
	case l.since:
		return "STATE\tSINCE\tUNTIL\tDIGEST\tNAME\tHOLDER"
	}
	return "STATE\tUNTIL\tDIGEST\tNAME\tHOLDER"
}

func (l *lister) writeHolder(out io.Writer, r *inspect.Row) {
	since, until, holder := "", "", ""
	if r.State == inspect.Held || r.State == inspect.Expired {
		until, holder = inspect.Moment(r.Until, l.now), inspect.Safe(r.Holder)
	}
	if l.since {
		since = inspect.Moment(r.Since, l.now) + "\t"
	}
	_, _ = fmt.Fprintf(out, "%s\t%s%s\t%s\t%s\t%s\n", r.State, since, until, r.Digest, inspect.Safe(r.Name), holder)
}

// writeInterrupted writes a line for each event that complete and forget can
// decide about.
func (l *lister) writeInterrupted(out io.Writer, r *inspect.Row) {
	for _, e := range r.Interrupted {
		_, _ = fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.State, inspect.Moment(e.Since, l.now), inspect.Moment(e.Until, l.now),
			r.Digest, inspect.Safe(r.Name), inspect.Safe(e.Event), inspect.Safe(e.Holder))
	}
}

// summary counts all rows that were read.
func (l *lister) summary() string {
	s := fmt.Sprintf("%d held, %d expired, %d free", l.count[inspect.Held], l.count[inspect.Expired], l.count[inspect.Free])
	if n := l.count[inspect.Newer]; n > 0 {
		s += fmt.Sprintf(", %d of a newer format", n)
	}
	return s
}
