package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// Watch prints what happens to the locks of a store.
type Watch struct {
	console.StoreFlags
	jsonFlag
	Keys     []string      `arg:"" optional:"" name:"key" help:"Names of the locks to watch (all)."`
	Interval time.Duration `short:"i" default:"5s" help:"How often to look (${default})."`
}

// Help returns what --help adds.
func (c *Watch) Help() string {
	return `Prints who holds a lock or died with it and which events are interrupted, and then a line for each change: acquired; released; completed (an event, and released); expired (the lease has ended and the holder did not release it: it died, or lost its lease); taken_over (by the next one, from a holder whose lease had ended); interrupted (an event: a run of it began, and nothing is known of its end); renewed (after it had expired); deleted (the row); newer (a newer version of lambdalock writes the row now, which this one cannot read). What happens between two looks is seen only by what it leaves behind, and renewals are not printed. If a lease ends and the next owner begins between two looks, the holder before may have died or released the lock: then only the next one may show, as acquired, if no renewal of that lease was seen, or with an interval of more than half a lease.

Without keys, each look reads the whole store: on DynamoDB one read unit for each 4 KB of the table, on S3 and Azure a request for each row. With keys it reads their rows only.

It ends with Ctrl-C, and then its status is 0. A look that fails is reported and repeated, unless an action is denied or the store is not there.

On DynamoDB it needs dynamodb:Scan or, with keys, dynamodb:GetItem.

Examples:
  lambdalock watch --namespace orders        # everything that changes
  lambdalock watch --interval 1s orders/42   # one lock`
}

// shortestInterval keeps a slip of the finger from becoming expensive.
const shortestInterval = 100 * time.Millisecond

// Run runs the command.
func (c *Watch) Run(ctx context.Context) error {
	if c.Interval < shortestInterval {
		return wrongUse("--interval %v: the shortest is %v", c.Interval, shortestInterval)
	}
	store, err := openInspector(ctx, &c.StoreFlags)
	if err != nil {
		return trouble(err)
	}
	return trouble(c.watch(ctx, store, os.Stdout, os.Stderr))
}

func (c *Watch) watch(ctx context.Context, store driver.Inspector, out, notes io.Writer) error {
	rows := func() iter.Seq2[driver.NamedRow, error] { return store.Rows(ctx, prefix(c.Namespace)) }
	cost, shown := "the whole store", ""
	if c.Namespace != "" {
		shown = ", and shows the locks" + inNamespace(c.Namespace)
	}
	if len(c.Keys) > 0 {
		read := inspect.ReadAll(ctx, store, c.Namespace, c.Keys)
		rows = func() iter.Seq2[driver.NamedRow, error] { return read }
		cost, shown = "these rows", ""
	}
	_, _ = fmt.Fprintf(notes, "Reads %s every %v, until Ctrl-C%s.\n", cost, c.Interval, shown)
	ticker := time.NewTicker(c.Interval)
	defer ticker.Stop()
	changes := inspect.Changes{Skipped: sayUnreadable}
	for {
		all, err := changes.Next(rows(), time.Now())
		failed := (*driver.Error)(nil)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &failed) && !failed.Lasting:
			_, _ = fmt.Fprintln(notes, err)
		case err != nil:
			return err
		}
		if err := c.print(out, all); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (c *Watch) print(out io.Writer, all []inspect.Change) error {
	for i := range all {
		var err error
		if c.JSON {
			err = inspect.WriteJSON(out, &all[i], "")
		} else {
			_, err = fmt.Fprintln(out, all[i].Text())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
