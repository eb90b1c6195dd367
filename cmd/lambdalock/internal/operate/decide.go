package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// decision is what an operator wants a row to remember of an event.
type decision struct {
	command         string
	shown, question string // before it is done
	change          func(driver.Memory) (*driver.Memory, error)
	left            func(*driver.Memory) bool // whether something of it is undone; nil: nothing can be
	done            string
}

// decide finds a row that nobody holds, shows what would become of it, asks,
// and does it.
func decide(ctx context.Context, store driver.Store, namespace, key string, out io.Writer, ask asker, of func(*driver.NamedRow, time.Time) (*decision, error)) error {
	_, row, err := findToChange(ctx, store, namespace, key)
	if err != nil {
		return err
	}
	now := time.Now()
	if r := inspect.Describe(row.Name, &row.Row, now); r.State == inspect.Held {
		return heldBy(row.Name, r.Holder, r.Until, now)
	}
	d, err := of(&row, now)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "%s\n%s", inspect.Safe(row.Name), d.shown); err != nil {
		return err
	}
	if err := ask(ctx, d.question); err != nil {
		return err
	}
	after, err := edit(ctx, store, d.command, row.Name, d.change)
	if err != nil {
		return err
	}
	if d.left != nil && d.left(after) {
		return fmt.Errorf("%s: a server of the quorum missed the change and still remembers what it was about: enter the command again", inspect.Safe(row.Name))
	}
	_, err = io.WriteString(out, d.done)
	return err
}

func heldBy(name, holder string, until, now time.Time) error {
	return no("%s is held by %s until %s: wait, or release it first", inspect.Safe(name), inspect.Safe(holder), inspect.Moment(until, now))
}

// edit changes what a row remembers, and returns what it remembers afterwards,
// as far as the store tells. It holds the lock meanwhile, so that no one else
// changes it, and no run completes what was to be forgotten.
func edit(ctx context.Context, store driver.Store, command, name string, change func(driver.Memory) (*driver.Memory, error)) (*driver.Memory, error) {
	e := &editor{Store: store, name: name}
	locker, err := lock.New(e, &lock.Options{
		Lease: lock.FixedLease(15 * time.Second), Remember: longestRemember, Logger: slog.New(slog.DiscardHandler),
		Holder: func(context.Context) string { return "lambdalock " + command + " by " + person() },
	})
	if err != nil {
		return nil, err
	}
	err = locker.Do(ctx, lock.Key{Name: "row"}, func(context.Context) (err error) {
		e.next, err = change(e.memory)
		return err
	})
	if held := (*lock.HeldError)(nil); errors.As(err, &held) {
		return nil, heldBy(name, held.Holder, held.Until, time.Now())
	}
	if err != nil && e.unclear {
		return nil, fmt.Errorf("it may be changed nevertheless, as an answer is missing: look with show: %w", err)
	}
	return &e.after, err
}

// editor is a store of one row. Its locks have another name than the row, whose
// name is given as it is stored. A release changes what the row remembers.
type editor struct {
	driver.Store
	name   string
	memory driver.Memory  // of the row that was acquired
	next   *driver.Memory // nil: unchanged
	after  driver.Memory  // of the row that was changed

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
	if ok {
		e.after = row.Memory
	}
	known := (*driver.Error)(nil)
	e.unclear = e.unclear || err != nil && settlement.Memory != nil && !(errors.As(err, &known) && known.Unapplied)
	return row, ok, err
}
