package operate

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
	"github.com/lambdalock/lambdalock/internal/event/stored"
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

The status is 0 if the event was forgotten, 1 if the row does not remember it, while the lock is held, or after "no", 64 if a flag or the environment is wrong or nobody can be asked, and 69 if the store did not answer or refused, or if a server of a quorum still remembers the event.

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
	return decide(ctx, store, c.Namespace, c.Key, out, ask, func(row *driver.NamedRow, now time.Time) (*decision, error) {
		if err := c.check(row, now); err != nil {
			return nil, err
		}
		return &decision{
			command:  "forget",
			shown:    c.consequences(row, now),
			question: "Forget " + inspect.Safe(c.Event) + "?",
			change:   func(m driver.Memory) (*driver.Memory, error) { return c.without(m, row) },
			left: func(m *driver.Memory) bool {
				return findCompleted(m, c.Event) >= 0 || c.ResetOrder && m.HighestOrder != ""
			},
			done: fmt.Sprintf("Forgotten. %s runs at its next delivery; nothing delivers it by itself.\n", inspect.Safe(c.Event)),
		}, nil
	})
}

// spellings returns how a row may have an event that a person gives as the key
// function does, or as show prints it.
func spellings(event string) []string {
	var all []string
	for _, event := range inspect.Meanings(event) {
		all = append(all, event, stored.Event(event))
	}
	return all
}

// findCompleted returns the place of the event among those that are remembered
// as completed, or -1.
func findCompleted(m *driver.Memory, event string) int {
	for _, event := range spellings(event) {
		if i := slices.IndexFunc(m.Completed, func(e driver.CompletedEvent) bool { return e.Event == event }); i >= 0 {
			return i
		}
	}
	return -1
}

// findInterrupted returns what is remembered at now of an event that was
// interrupted, or nil.
func findInterrupted(m *driver.Memory, event string, now time.Time) *driver.InterruptedEvent {
	for _, event := range spellings(event) {
		if e := m.FindInterrupted(event, now); e != nil {
			return e
		}
	}
	return nil
}

// withoutInterrupted returns the interrupted events of m but one.
func withoutInterrupted(m *driver.Memory, event string) []driver.InterruptedEvent {
	return slices.DeleteFunc(slices.Clone(m.Interrupted), func(e driver.InterruptedEvent) bool { return e.Event == event })
}

// check returns why the event cannot be forgotten, as far as the row tells now.
func (c *Forget) check(row *driver.NamedRow, now time.Time) error {
	name, event := inspect.Safe(row.Name), inspect.Safe(c.Event)
	i, m := findCompleted(&row.Memory, c.Event), inspect.MemoryAt(&row.Row, now)
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

// consequences says what will happen.
func (c *Forget) consequences(row *driver.NamedRow, now time.Time) string {
	var text strings.Builder
	known := inspect.MemoryAt(&row.Row, now)
	m := &known
	if e := findInterrupted(m, c.Event, now); e != nil {
		fmt.Fprint(&text, interruptedLine(e, now))
	}
	if i := findCompleted(m, c.Event); i >= 0 {
		fmt.Fprintf(&text, "  completed      %s\n", inspect.Describe(row.Name, &row.Row, now).Completed[i].Text(now))
		if m.Result.Event == m.Completed[i].Event {
			fmt.Fprintf(&text, "  result         %d bytes kept for replay\n", len(m.Result.Body))
		}
	}
	if m.HighestOrder != "" {
		fmt.Fprintf(&text, "  highest order  %s\n", inspect.Safe(m.HighestOrder))
	}
	fmt.Fprintln(&text, `
What the first run did is not undone: when the event is delivered again, it happens again.`)
	if row.Marks != 0 {
		fmt.Fprintln(&text, `Events were coalesced and wait for a run. The next one of the name serves them, but the row does not
know of them any more: if that run fails with Permanent, nothing runs for them.`)
	}
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
	if i := findCompleted(&m, c.Event); i >= 0 {
		entry := m.Completed[i]
		if before := findCompleted(&shown.Memory, c.Event); before < 0 || !shown.Memory.Completed[before].Until.Equal(entry.Until) {
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
