package operate

import (
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
	"github.com/lambdalock/lambdalock/internal/event/stored"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// jsonFlag chooses the output for scripts.
type jsonFlag struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Show shows a lock.
type Show struct {
	console.StoreFlags
	jsonFlag
	Key    string `arg:"" optional:"" help:"Name of the lock: as the key function gives it, in the --namespace, or as list prints it."`
	Digest string `placeholder:"HEX" help:"Find the row by the digest that a log line has as \"key\". Reads all rows of the namespace."`
}

// Help returns what --help adds.
func (c *Show) Help() string {
	return `Prints who holds the lock and until when, the events that are remembered as completed or interrupted (a run began, and nothing is known of its end), and when the row may be deleted. "expired" is a lock whose holder died: the next claim gets it. Times are compared with the clock of this machine.

The status is 0 if there is a row, 1 if not, 64 if a flag or the environment is wrong, and 69 if the store did not answer or refused.

On DynamoDB it needs dynamodb:GetItem, and dynamodb:Scan for --digest.

Examples:
  lambdalock show --namespace orders s3/my-bucket/cat.png   # the key as the key function gives it
  lambdalock show --digest 0a1b2c3d4e5f                     # the "key" of a log line`
}

// digest is what lock.Key.Digest returns.
var digest = regexp.MustCompile(`^[0-9a-f]{12}$`)

// Run runs the command.
func (c *Show) Run(ctx context.Context) error { return trouble(c.show(ctx, os.Stdout)) }

func (c *Show) show(ctx context.Context, out io.Writer) error {
	switch {
	case (c.Key == "") == (c.Digest == ""):
		return wrongUse("name the lock, or give the --digest of a log line")
	case c.Digest != "" && !digest.MatchString(c.Digest):
		return wrongUse("--digest %q: a digest has 12 characters of 0-9 and a-f, like \"key\" of a log line", c.Digest)
	}
	store, err := inspector(ctx, &c.StoreFlags)
	if err != nil {
		return err
	}
	rows, err := c.find(ctx, store)
	if err != nil {
		return err
	}
	for i := range rows {
		if err := c.print(ctx, out, store, &rows[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Show) find(ctx context.Context, store driver.Inspector) ([]driver.NamedRow, error) {
	if c.Digest == "" {
		row, err := inspect.Find(ctx, store, c.Namespace, c.Key)
		if errors.As(err, new(*inspect.NotFoundError)) && digest.MatchString(c.Key) {
			err = no("%w A digest, as log lines have it, takes --digest", err)
		}
		return []driver.NamedRow{row}, err
	}
	rows, err := inspect.FindDigest(ctx, store, prefix(c.Namespace), c.Digest)
	if err == nil && len(rows) == 0 {
		err = no("no row%s has the digest %s: its lock was never granted (not_begun, store_failed), or the row was deleted since, or is in another namespace or store", inNamespace(c.Namespace), c.Digest)
	}
	return rows, err
}

// prefix is how the stored names begin that a command reads.
func prefix(namespace string) string {
	if namespace == "" {
		return ""
	}
	return stored.Prefix(namespace)
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " of the namespace " + inspect.Safe(namespace)
}

func (c *Show) print(ctx context.Context, out io.Writer, store driver.Inspector, row *driver.NamedRow) error {
	now := time.Now()
	r := inspect.Describe(row.Name, &row.Row, now)
	slots, err := inspect.Slots(ctx, store, row.Name)
	if err != nil {
		return err
	}
	for i := range slots {
		r.Slots = append(r.Slots, inspect.Describe(slots[i].Name, &slots[i].Row, now))
	}
	if c.JSON {
		return inspect.WriteJSON(out, r, "  ")
	}
	return r.Text(out, now)
}
