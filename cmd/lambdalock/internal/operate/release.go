package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
	"github.com/lambdalock/lambdalock/lock/driver"
)

// longestRemember is the largest lock.Options.Remember. An operator keeps what
// has no time of its own for so long, because only its user knows better.
const longestRemember = 366 * 24 * time.Hour

// Release takes a lock from its holder.
type Release struct {
	console.StoreFlags
	confirmation
	Key string `arg:"" help:"Name of the lock: as the key function gives it, in the --namespace, or as list prints it."`
}

// Help returns what --help adds.
func (c *Release) Help() string {
	return `Takes the lock from its holder, so that the next claim gets it immediately. It shows the holder and asks first. It changes nothing if the lock has another holder by then. Events that are remembered stay remembered, and if the holder keeps interrupted events, its own becomes one: lambdalock complete or forget decides about it.

A holder that is still alive goes on working, beside the next one, until it notices: with a heartbeat at its next renewal, without one at its end. lambdalock exec then ends its command; to end that first, kill lambdalock on its host, which releases the lock afterwards. Its late renewal, completion or release changes nothing. What it writes elsewhere is refused only where the fence is checked.

The status is 0 if the lock was released, 1 if nobody holds it, if the holder changed, or after "no", 64 if a flag or the environment is wrong or nobody can be asked, and 69 if the store did not answer or refused.

On DynamoDB it needs dynamodb:GetItem and dynamodb:UpdateItem.

Examples:
  lambdalock release --namespace orders nightly   # shows the holder, and asks
  lambdalock release --yes orders/nightly         # the name as list prints it`
}

// Run runs the command.
func (c *Release) Run(ctx context.Context) error {
	store, err := c.Open(ctx)
	if err != nil {
		return trouble(err)
	}
	return trouble(release(ctx, store, c.Namespace, c.Key, os.Stdout, c.confirm))
}

// asker asks a person whether to go on, and returns an error if not.
type asker func(ctx context.Context, question string) error

func release(ctx context.Context, store driver.Store, namespace, key string, out io.Writer, ask asker) error {
	inspector, row, err := findToChange(ctx, store, namespace, key)
	if err != nil {
		return err
	}
	now := time.Now()
	r := inspect.Describe(row.Name, &row.Row, now)
	if r.State == inspect.Free {
		return notHeld(ctx, inspector, row, now)
	}
	if err := r.Text(out, now); err != nil {
		return err
	}
	if err := explainRelease(out, &row.Row, &r); err != nil {
		return err
	}
	if err := ask(ctx, "Release "+inspect.Safe(row.Name)+"?"); err != nil {
		return err
	}
	now = time.Now()
	s := driver.Settlement{Name: row.Name, Token: row.Token, DeleteAfter: row.Memory.KeepUntil(now, longestRemember)}
	if m := interruptedBy(row.Row, now); m != nil {
		s.Memory, s.DeleteAfter = m, m.KeepUntil(now, longestRemember)
	}
	ok, unclear, err := settle(ctx, store, &s)
	switch {
	case err != nil && unclear:
		return fmt.Errorf("it may be released nevertheless, as an answer is missing: look with show: %w", err)
	case err != nil:
		return err
	case !ok:
		if err := changed(ctx, inspector, row, unclear); err != nil {
			return err
		}
	}
	text := "Released " + inspect.Safe(row.Name) + ". The next claim gets it."
	if row.Event != "" {
		text += " Nothing delivers its event by itself."
	}
	_, err = fmt.Fprintln(out, text)
	return err
}

// interruptedBy returns what the row remembers once the lock is taken from its
// holder: the event of one that asked for that is interrupted, as after its
// death. It returns nil if that changes nothing.
func interruptedBy(row driver.Row, now time.Time) *driver.Memory {
	next := driver.Claim{Token: "released", Now: now}
	if !row.Leaves(&next) {
		return nil
	}
	row.Take(&next, now)
	return &row.Memory
}

// A release that gets no answer is tried so often, because it may have been
// applied.
const (
	releaseAttempts = 4
	releasePause    = 250 * time.Millisecond
)

// settle releases a lock. It reports whether that was applied, and whether an
// attempt whose answer is missing may have been.
func settle(ctx context.Context, store driver.Store, s *driver.Settlement) (ok, unclear bool, err error) {
	for attempt := range releaseAttempts {
		if attempt > 0 {
			select {
			case <-ctx.Done():
				return false, unclear, context.Cause(ctx)
			case <-time.After(releasePause << attempt):
			}
		}
		_, ok, err = store.Settle(ctx, s)
		e := (*driver.Error)(nil)
		known := errors.As(err, &e)
		unclear = unclear || err != nil && !(known && e.Unapplied)
		if err == nil || known && e.Lasting {
			break
		}
	}
	return ok, unclear, err
}

// findToChange is inspect.Find for a command that changes the row. A name that
// the namespace lacks may be the whole one of a row elsewhere, by accident, and
// without a namespace a name may mean two rows.
func findToChange(ctx context.Context, store driver.Store, namespace, key string) (driver.Inspector, driver.NamedRow, error) {
	inspector, err := inspect.Inspector(store)
	if err != nil {
		return nil, driver.NamedRow{}, err
	}
	row, err := inspect.Find(ctx, inspector, namespace, key)
	switch {
	case err != nil:
		return nil, row, err
	case !strings.HasPrefix(row.Name, prefix(namespace)):
		return nil, row, no("nothing was changed: %s is in another namespace than %s, which has no such row that can be read: if you mean it, leave out --namespace, --function and LOCK_NAMESPACE", inspect.Safe(row.Name), inspect.Safe(namespace))
	case row.Newer:
		return nil, row, no("a newer version of lambdalock wrote the row %s: use that version to change it", inspect.Safe(row.Name))
	case namespace == "":
		return inspector, row, onlyOne(ctx, inspector, row.Name, key)
	}
	return inspector, row, nil
}

// onlyOne returns an error if the key may mean another row than the found one.
func onlyOne(ctx context.Context, store driver.Inspector, found, key string) error {
	other, err := inspect.Other(ctx, store, key, found)
	if err != nil || other == "" {
		return err
	}
	first, second := found, other
	if found == "/"+other { // of whose first slot there is no row
		first, second = other, found
	}
	remedy := "give its --namespace and the name without it"
	if strings.HasPrefix(first, "/") {
		remedy = "leave out its first slash"
	}
	return no("nothing was changed: %s and %s both have a row: for the first %s, for the second give that whole name", inspect.Safe(first), inspect.Safe(second), remedy)
}

// notHeld returns the error for a name without a holder, which names the slots
// of a limited lock that have one.
func notHeld(ctx context.Context, store driver.Inspector, row driver.NamedRow, now time.Time) error {
	slots, err := inspect.Slots(ctx, store, row.Name)
	if err != nil {
		return err
	}
	for i := range slots {
		if state := inspect.StateOf(&slots[i].Row, now); state == inspect.Held || state == inspect.Expired {
			return no("nobody holds slot 1 of %s; release another one by its own name, for example %s", inspect.Safe(row.Name), inspect.Safe(slots[i].Name))
		}
	}
	return no("nobody holds %s", inspect.Safe(row.Name))
}

// process is what the holder of lambdalock exec ends with, without --holder.
var process = regexp.MustCompile(` on (\S+) pid (\d+)$`)

// instead says how to end a holder that is a process without two at a time.
func instead(holder string) string {
	m := process.FindStringSubmatch(holder)
	if m == nil {
		return ""
	}
	return fmt.Sprintf("To stop it first, answer no, and run kill %s on %s: exec ends its command, and then releases the lock.\n", m[2], inspect.Safe(m[1]))
}

// explainRelease says what the holder can still do.
func explainRelease(out io.Writer, row *driver.Row, r *inspect.Row) error {
	after := "its event runs again when it is delivered again"
	if row.InterruptedFor > 0 {
		after = "its event is interrupted: nothing is known of its end"
	}
	text := fmt.Sprintf(`
This takes the lock from %s.
If that holder is still alive, it works on, beside the next holder, until it notices: lambdalock exec
then ends its command, and a handler is told by its context. Its completion is refused,
and %s.
%sWhat it writes meanwhile is refused only by what checks the fence %d: later holders have a higher one.
`, inspect.Safe(r.Holder), after, instead(r.Holder), r.Fence)
	switch {
	case row.Cooling():
		text = `
The last holder has ended. Only its HoldAtLeast (--hold-at-least) keeps the lock,
so without it the next run may begin too soon after the last one.
`
	case r.State == inspect.Expired:
		text = fmt.Sprintf(`
The lease of %s has ended, so the next claim gets the lock anyway.
`, inspect.Safe(r.Holder))
	}
	_, err := io.WriteString(out, text)
	return err
}

// changed returns the error of a release that was refused: the token is not
// the owner's any more. It is none if an attempt before was applied.
func changed(ctx context.Context, store driver.Inspector, before driver.NamedRow, unclear bool) error {
	row, err := store.Read(ctx, before.Name)
	switch {
	case err != nil:
		return err
	case row.Token == "" && unclear:
		return nil
	case row.Token == "":
		return no("nothing was changed: %s released %s itself", inspect.Safe(before.Holder), inspect.Safe(before.Name))
	case unclear:
		return no("an answer is missing, so perhaps this released %s: it is held by %s now, until %s", inspect.Safe(before.Name), inspect.Safe(row.Holder), inspect.Moment(row.Until, time.Now()))
	}
	return no("nothing was changed: %s is held by %s now, until %s", inspect.Safe(before.Name), inspect.Safe(row.Holder), inspect.Moment(row.Until, time.Now()))
}
