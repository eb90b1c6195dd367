package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
	"github.com/lambdalock/lambdalock/internal/event/stored"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Forget makes a completed or interrupted event run again.
type Forget struct {
	console.StoreFlags
	confirmation
	Key   string `arg:"" help:"Name of the lock: as the key function gives it, in the --namespace, or as list prints it."`
	Event string `arg:"" help:"The event, as the key function gives it or as show prints it."`

	ResetOrder bool `help:"Forget the highest completed order too, so that events up to it are no longer stale."`
}

// Help returns what --help adds.
func (c *Forget) Help() string {
	return `Makes an event run again that was completed, or whose run was interrupted: the next delivery of it finds neither. It shows the event and asks first. It refuses while somebody holds the lock, and holds the lock itself while it changes the row.

It delivers nothing: send the event again yourself. It does not undo what the first run did, and what the event stands for happens twice unless the handler prevents it. A result that is kept for replay is lost.

Where keys have an Order (FIFO queues, streams, S3LatestRecord), an event up to the highest completed order is stale, and is skipped even if it is forgotten. --reset-order forgets the highest order. From then on every earlier event that is delivered again runs too, unless the row remembers it, and may undo what later ones did, until a later event is completed.

If a run was interrupted and its work was done nevertheless, use lambdalock complete.

The status is 0 if the event was forgotten, 1 if the row does not remember it, while the lock is held, or after "no", 64 if a flag or the environment is wrong or nobody can be asked, and 69 if the store did not answer or refused.

On DynamoDB it needs dynamodb:GetItem and dynamodb:UpdateItem.

Examples:
  lambdalock forget --namespace orders s3/my-bucket/cat.png 0055AED6DCD90281E5
  lambdalock forget --reset-order orders/42 e1`
}

// Run runs the command.
func (c *Forget) Run(ctx context.Context) error {
	store, err := c.Open(ctx)
	if err != nil {
		return trouble(err)
	}
	return trouble(c.forget(ctx, store, os.Stdout, c.confirm))
}

func (c *Forget) forget(ctx context.Context, store driver.Store, out io.Writer, ask asker) error {
	inspector, err := inspect.Inspector(store)
	if err != nil {
		return err
	}
	row, err := findToChange(ctx, inspector, c.Namespace, c.Key)
	if err != nil {
		return err
	}
	now := time.Now()
	if err := c.check(&row, now); err != nil {
		return err
	}
	if _, err := io.WriteString(out, c.consequences(&row, now)); err != nil {
		return err
	}
	if err := ask(ctx, "Forget "+inspect.Safe(c.Event)+"?"); err != nil {
		return err
	}
	if err := edit(ctx, store, "forget", row.Name, func(m driver.Memory) (*driver.Memory, error) { return c.without(m, &row) }); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "Forgotten. %s runs at its next delivery; nothing delivers it by itself.\n", inspect.Safe(c.Event))
	return err
}

// find returns the place of the event among those that are remembered as
// completed, or -1.
func (c *Forget) find(m *driver.Memory) int { return findCompleted(m, c.Event) }

func findCompleted(m *driver.Memory, event string) int {
	for _, event := range []string{event, stored.Event(event)} {
		if i := slices.IndexFunc(m.Completed, func(e driver.CompletedEvent) bool { return e.Event == event }); i >= 0 {
			return i
		}
	}
	return -1
}

// findInterrupted returns what is remembered at now of an event that was
// interrupted, or nil.
func findInterrupted(m *driver.Memory, event string, now time.Time) *driver.InterruptedEvent {
	return cmp.Or(m.FindInterrupted(event, now), m.FindInterrupted(stored.Event(event), now))
}

// withoutInterrupted returns the interrupted events of m but one.
func withoutInterrupted(m *driver.Memory, event string) []driver.InterruptedEvent {
	return slices.DeleteFunc(slices.Clone(m.Interrupted), func(e driver.InterruptedEvent) bool { return e.Event == event })
}

// check returns why the event cannot be forgotten, as far as the row tells now.
func (c *Forget) check(row *driver.NamedRow, now time.Time) error {
	name, event := inspect.Safe(row.Name), inspect.Safe(c.Event)
	switch inspect.StateOf(&row.Row, now) {
	case inspect.Newer:
		return no("a newer version of lambdalock wrote the row %s: use that version to change it", name)
	case inspect.Held:
		return heldBy(row.Name, row.Holder, row.Until, now)
	}
	i, m := c.find(&row.Memory), inspect.MemoryAt(&row.Row, now)
	switch {
	case findInterrupted(&m, c.Event, now) != nil:
		return nil
	case c.ResetOrder && row.Memory.HighestOrder != "":
		return nil
	case i < 0 && row.Memory.HighestOrder != "":
		return no("%s does not remember %s. If it is skipped as stale, its order is not above the highest completed one, %s: --reset-order forgets that", name, event, inspect.Safe(row.Memory.HighestOrder))
	case i < 0:
		return no("%s does not remember %s, so nothing keeps it from running", name, event)
	case row.Memory.Completed[i].Expired(now):
		return no("%s has forgotten %s since %s, so nothing keeps it from running", name, event, inspect.Moment(row.Memory.Completed[i].Until, now))
	}
	return nil
}

func heldBy(name, holder string, until, now time.Time) error {
	return no("%s is held by %s until %s: wait, or release it first", inspect.Safe(name), inspect.Safe(holder), inspect.Moment(until, now))
}

// consequences says what will happen.
func (c *Forget) consequences(row *driver.NamedRow, now time.Time) string {
	var text strings.Builder
	known := inspect.MemoryAt(&row.Row, now)
	m := &known
	fmt.Fprintln(&text, inspect.Safe(row.Name))
	if e := findInterrupted(m, c.Event, now); e != nil {
		fmt.Fprint(&text, interruptedLine(e, now))
	}
	if i := c.find(m); i >= 0 {
		fmt.Fprintf(&text, "  completed      %s  remembered until %s\n", inspect.Safe(m.Completed[i].Event), inspect.Moment(m.Completed[i].Until, now))
		if m.Result.Event == m.Completed[i].Event {
			fmt.Fprintf(&text, "  result         %d bytes kept for replay\n", len(m.Result.Body))
		}
	}
	if m.HighestOrder != "" {
		fmt.Fprintf(&text, "  highest order  %s\n", inspect.Safe(m.HighestOrder))
	}
	fmt.Fprintln(&text, `
What the first run did is not undone: when the event is delivered again, it happens again.`)
	switch {
	case m.HighestOrder == "":
	case c.ResetOrder:
		fmt.Fprintln(&text, `The highest order is forgotten too: every earlier event that is delivered again runs as well, unless
the row remembers it, and may undo what later ones did.`)
	default:
		fmt.Fprintln(&text, `If its order is not above the highest one, the event stays stale and will be skipped:
--reset-order forgets the highest order too.`)
	}
	return text.String()
}

func interruptedLine(e *driver.InterruptedEvent, now time.Time) string {
	return fmt.Sprintf("  interrupted    %s  since %s by %s\n", inspect.Safe(e.Event), inspect.Moment(e.Since, now), inspect.Safe(e.Holder))
}

// without returns the memory without the event. It refuses if the event was
// completed or interrupted again since the row was shown, because the answer
// was about the earlier run.
func (c *Forget) without(m driver.Memory, shown *driver.NamedRow) (*driver.Memory, error) {
	if i := c.find(&m); i >= 0 {
		entry := m.Completed[i]
		if before := c.find(&shown.Memory); before < 0 || !shown.Memory.Completed[before].Until.Equal(entry.Until) {
			return nil, no("nothing was changed: %s was completed meanwhile", inspect.Safe(entry.Event))
		}
		m.Completed = slices.DeleteFunc(slices.Clone(m.Completed), func(e driver.CompletedEvent) bool { return e.Event == entry.Event })
		if m.Result.Event == entry.Event {
			m.Result = driver.Result{}
		}
	}
	now := time.Now()
	if e := findInterrupted(&m, c.Event, now); e != nil {
		known := inspect.MemoryAt(&shown.Row, now)
		if before := findInterrupted(&known, c.Event, now); before == nil || !before.Since.Equal(e.Since) {
			return nil, no("nothing was changed: another run of %s was interrupted meanwhile", inspect.Safe(e.Event))
		}
		m.Interrupted = withoutInterrupted(&m, e.Event)
	}
	if c.ResetOrder {
		m.HighestOrder = ""
	}
	return &m, nil
}

// edit changes what a row remembers. It holds the lock meanwhile, so that no
// one else changes it, and no run completes what was to be forgotten.
func edit(ctx context.Context, store driver.Store, command, name string, change func(driver.Memory) (*driver.Memory, error)) error {
	e := &editor{Store: store, name: name}
	locker, err := lock.New(e, &lock.Options{
		Lease: lock.FixedLease(15 * time.Second), Remember: longestRemember, Logger: slog.New(slog.DiscardHandler),
		Holder: func(context.Context) string { return "lambdalock " + command + " by " + person() },
	})
	if err != nil {
		return err
	}
	err = locker.Do(ctx, lock.Key{Name: "row"}, func(context.Context) (err error) {
		e.next, err = change(e.memory)
		return err
	})
	if held := (*lock.HeldError)(nil); errors.As(err, &held) {
		return heldBy(name, held.Holder, held.Until, time.Now())
	}
	if err != nil && e.unclear {
		return fmt.Errorf("it may be changed nevertheless, as an answer is missing: look with show: %w", err)
	}
	return err
}

// editor is a store of one row. Its locks have another name than the row, whose
// name is given as it is stored. A release changes what the row remembers.
type editor struct {
	driver.Store
	name   string
	memory driver.Memory  // of the row that was acquired
	next   *driver.Memory // nil: unchanged

	unclear bool // a change whose answer is missing may have been applied
}

// Acquire implements [driver.Store].
func (e *editor) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	claim := *c
	claim.Name = e.name
	row, ok, err := e.Store.Acquire(ctx, &claim)
	if ok || row.Token == c.Token {
		e.memory = row.Memory
	}
	return row, ok, err
}

// Settle implements [driver.Store].
func (e *editor) Settle(ctx context.Context, t *driver.Settlement) (driver.Row, bool, error) {
	settlement := *t
	settlement.Name = e.name
	if !t.Abandon {
		settlement.Memory = e.next
		if e.next != nil {
			settlement.DeleteAfter = e.next.KeepUntil(time.Now(), longestRemember)
		}
	}
	row, ok, err := e.Store.Settle(ctx, &settlement)
	known := (*driver.Error)(nil)
	e.unclear = e.unclear || err != nil && settlement.Memory != nil && !(errors.As(err, &known) && known.Unapplied)
	return row, ok, err
}
