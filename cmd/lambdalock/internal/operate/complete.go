package operate

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Complete says that the work of an interrupted event was done, or that none of
// an event is to be.
type Complete struct {
	console.StoreFlags
	confirmation
	Key   string `arg:"" help:"Name of the lock: as the key function gives it, in the --namespace, or as list prints it."`
	Event string `arg:"" help:"The event, as the key function gives it or as show prints it."`

	Remember time.Duration `default:"336h" help:"How long its deliveries are skipped from now on (${default}, the longest that SQS keeps a message); longer than its source can deliver it again. An interrupted event is never remembered for less than was left to it."`
	Skip     bool          `help:"Skip the event also if the row knows no run of it that died, for example because each run kills its holder: nothing does its work."`
}

// Help returns what --help adds.
func (c *Complete) Help() string {
	return `Says that the work of an interrupted event was done: a run of it began, nothing is known of its end, and you have found out. Its next delivery is skipped, as that of an event that was completed. It shows the event and asks first. It refuses while somebody holds the lock, and holds the lock itself while it changes the row. The row knows of such a run if the function has OnInterrupted, or if nobody has acquired the lock since its holder died.

With --skip, any event of a name that has a row is skipped from now on, and nobody does its work: for an event that must not run any more, such as one that kills each holder. lambdalock forget takes that back.

If the work was not done, use lambdalock forget: the event then runs at its next delivery. lambdalock list --interrupted lists such events.

No result is kept: over HTTP a repeated request gets status 409.

The status is 0 if the event is completed, 1 if no run of it was interrupted as far as the row tells (without --skip), if it is completed already, while the lock is held, or after "no", 64 if a flag or the environment is wrong or nobody can be asked, and 69 if the store did not answer or refused.

On DynamoDB it needs dynamodb:GetItem and dynamodb:UpdateItem.

Examples:
  lambdalock complete --namespace payment invoice/i-17 i-17
  lambdalock complete --remember 8760h payment/invoice/i-17 i-17   # of a stream that keeps a year`
}

// Run runs the command.
func (c *Complete) Run(ctx context.Context) error {
	store, err := c.Open(ctx)
	if err != nil {
		return trouble(err)
	}
	return trouble(c.complete(ctx, store, os.Stdout, c.confirm))
}

func (c *Complete) complete(ctx context.Context, store driver.Store, out io.Writer, ask asker) error {
	if c.Remember < time.Second || c.Remember > longestRemember {
		return wrongUse("--remember %v: 1s to %v", c.Remember, longestRemember)
	}
	return decide(ctx, store, c.Namespace, c.Key, out, ask, func(row *driver.NamedRow, now time.Time) (*decision, error) {
		e, err := c.find(row, now)
		if err != nil {
			return nil, err
		}
		until := c.until(e, now)
		skipped := fmt.Sprintf("Deliveries of %s are skipped until %s.\n", inspect.Safe(c.Event), inspect.Moment(until, now))
		question := "Was the work of " + inspect.Safe(c.Event) + " done?"
		if c.Skip {
			question = "Skip " + inspect.Safe(c.Event) + " from now on?"
		}
		return &decision{
			command:  "complete",
			shown:    line(e, now) + "\n" + skipped + "If its work was not done, nothing does it any more.\n" + relying(&row.Row),
			question: question,
			change:   func(m driver.Memory) (*driver.Memory, error) { return c.with(m, e, until) },
			done:     "Completed. " + skipped,
		}, nil
	})
}

// line shows the event.
func line(e *driver.InterruptedEvent, now time.Time) string {
	if e.Holder == "" {
		return fmt.Sprintf("  unknown        %s  the row knows no run of it: compare it with what explain prints\n", inspect.Safe(e.Event))
	}
	return interruptedLine(e, now)
}

// relying says what else is lost with a run that will not be.
func relying(row *driver.Row) string {
	if row.Marks == 0 {
		return ""
	}
	return "Events were coalesced with it: nothing runs for them either, until another event of the name comes.\n"
}

// until returns when the event that was completed at now is forgotten. A source
// that the interrupted one was kept for must not outlast it.
func (c *Complete) until(e *driver.InterruptedEvent, now time.Time) time.Time {
	until := now.Add(c.Remember).Truncate(time.Millisecond)
	if e.Until.After(until) {
		return e.Until
	}
	return until
}

// find returns the run of the event that died, as far as the row knows it, or
// why there is nothing to complete.
func (c *Complete) find(row *driver.NamedRow, now time.Time) (*driver.InterruptedEvent, error) {
	name, event := inspect.Safe(row.Name), inspect.Safe(c.Event)
	m := inspect.MemoryAt(&row.Row, now)
	if e := findInterrupted(&m, c.Event, now); e != nil {
		return e, nil
	}
	if i := findCompleted(&m, c.Event); i >= 0 && !m.Completed[i].Expired(now) {
		return nil, no("%s was completed already: %s remembers it until %s", event, name, inspect.Moment(m.Completed[i].Until, now))
	}
	switch {
	case inspect.StateOf(&row.Row, now) == inspect.Expired && slices.Contains(spellings(c.Event), row.Event):
		return &driver.InterruptedEvent{Event: row.Event, Payload: row.Payload, Holder: row.Holder, Since: row.Since()}, nil
	case c.Skip:
		all := spellings(c.Event)
		return &driver.InterruptedEvent{Event: all[len(all)-1]}, nil
	}
	return nil, no("%s knows of no interrupted run of %s: it runs at its next delivery; show %s prints what it knows, and --skip skips it nevertheless", name, event, name)
}

// with returns the memory with the event completed until then. It refuses if
// others have decided since the row was shown.
func (c *Complete) with(m driver.Memory, shown *driver.InterruptedEvent, until time.Time) (*driver.Memory, error) {
	now := time.Now()
	e := findInterrupted(&m, c.Event, now)
	if e == nil && shown.Until.IsZero() && !m.Has(shown.Event, now) { // it was not in the memory then either
		e = shown
	}
	if e == nil {
		return nil, no("nothing was changed: somebody has decided about %s, or it was completed, meanwhile", inspect.Safe(c.Event))
	}
	m.Completed = append(slices.DeleteFunc(slices.Clone(m.Completed), func(d driver.CompletedEvent) bool { return d.Event == e.Event }),
		driver.CompletedEvent{Event: e.Event, Payload: e.Payload, Until: until, At: now.Truncate(time.Second)})
	if m.Result.Event == e.Event { // of an earlier run, whose completion has expired
		m.Result = driver.Result{}
	}
	m.Interrupted = withoutInterrupted(&m, e.Event)
	return &m, nil
}
