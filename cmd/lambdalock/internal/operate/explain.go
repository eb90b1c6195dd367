package operate

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/explain"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
	"github.com/lambdalock/lambdalock/lock"
)

// Explain says what the locks make of an event.
type Explain struct {
	console.StoreFlags
	jsonFlag
	File string `arg:"" optional:"" name:"event-file" help:"File that holds one event, in JSON, or one line of the function's log; - reads standard input."`

	Tenant string `placeholder:"TENANT" help:"With tenant isolation: the tenant of the invocation, whose locks are its own."`

	Name  string `placeholder:"NAME" help:"In place of a file: the name of a key, as a key function of your own gives it."`
	Event string `placeholder:"ID" help:"With --name: the key's Event."`
	Order string `placeholder:"ORDER" help:"With --name: the key's Order."`
}

// Help returns what --help adds.
func (c *Explain) Help() string {
	return `Says of each record of the event which key functions of package keyfuncs take it, and which key each of them gives. Functions of your own, such as ByField, are not known here: give what they return with --name, --event and --order.

With a store and a namespace it also says what the row of that key would mean for a delivery now: run; skip (completed, or stale); refuse (held, another payload, or a row that cannot be read); decide (OnInterrupted does, or the payload, which --name does not give); or unknown (there is no row: it runs if the namespace and the key function are right). That is what happens without options: OnHeld may wait or skip, and over HTTP a duplicate is answered with the first response. Give the --namespace of the function: without the option Namespace and LOCK_NAMESPACE, it is the function's name. Records of one event are judged one by one, as if each came alone.

A log line of lambdalock, or its line of metrics, leads to the rows of its key, as show --digest prints them, which reads all rows of the namespace.

The status is 0 if a key function takes a record of the event, 1 if none does, 64 if the file holds no JSON or a flag or the environment is wrong, and 69 if the store did not answer or refused.

On DynamoDB it needs dynamodb:GetItem. For a log line without a name it needs dynamodb:Scan, too. It changes nothing.

Examples:
  lambdalock explain event.json                                # which key functions take it
  lambdalock explain --namespace orders event.json             # and what would become of it now
  lambdalock explain --namespace orders --name 42 --event e1   # with a key function of your own
  lambdalock explain -                                         # then paste a log line, and press Ctrl-D`
}

// Run runs the command.
func (c *Explain) Run(ctx context.Context) error { return trouble(c.explain(ctx, os.Stdout)) }

func (c *Explain) explain(ctx context.Context, out io.Writer) error {
	name, e, digest, err := c.read(ctx)
	if err != nil {
		return err
	}
	if digest != "" {
		return (&Show{StoreFlags: c.StoreFlags, jsonFlag: c.jsonFlag, Digest: digest}).show(ctx, out)
	}
	if c.Tenant != "" {
		e.OfTenant(c.Tenant)
	}
	if err := c.Resolve(ctx); err != nil {
		return err
	}
	now := time.Now()
	var judged error
	switch {
	case c.URL() == "":
	case c.Namespace == "" && !e.Given():
		console.Say("nothing is said of the rows: give the --namespace of the function, which is its name unless it sets another")
	default:
		judged = c.judge(ctx, e, now)
	}
	if c.JSON {
		err = inspect.WriteJSON(out, e, "  ")
	} else {
		_, err = io.WriteString(out, explained(name, e))
	}
	switch {
	case err != nil:
		return err
	case judged != nil:
		return judged
	case !e.Accepted():
		return no("no key function takes this event")
	}
	return nil
}

// read returns what to explain, and how to name it, or the digest in a log line
// whose rows there are to show.
func (c *Explain) read(ctx context.Context) (name string, e *explain.Event, digest string, err error) {
	switch {
	case (c.Name == "") == (c.File == ""):
		return "", nil, "", wrongUse("name the file of an event, or give the --name of a key")
	case c.File != "" && (c.Event != "" || c.Order != ""):
		return "", nil, "", wrongUse("--event and --order belong to --name: a file has its own")
	case c.Name != "":
		return c.Name, explain.OfKey(lock.Key{Name: c.Name, Event: c.Event, Order: c.Order}), "", nil
	}
	file, event, err := console.ReadEvent(c.File)
	switch line, ok := explain.LogLine(event); {
	case line.Refused != "":
		return "", nil, "", no("%s: %s", file, line.Refused)
	case ok && line == (explain.Line{}):
		return "", nil, "", no("%s: this is a log line of lambdalock that is about no key", file)
	case ok && line.Event == nil && c.URL() == "" && c.Function == "":
		return "", nil, "", no("%s: this is a log line about a lock: for the rows of its key, give --store, or use lambdalock show --digest %s", file, line.Digest)
	case ok:
		return file, line.Event, line.Digest, nil
	case err != nil:
		return "", nil, "", wrongUse("%w", err)
	}
	if e, err = explain.Explain(ctx, event); err != nil {
		return "", nil, "", no("%s: %w", file, err)
	}
	return file, e, "", nil
}

func (c *Explain) judge(ctx context.Context, e *explain.Event, now time.Time) error {
	store, err := inspector(ctx, &c.StoreFlags)
	if err != nil {
		return err
	}
	if err := e.Judge(ctx, store, c.Namespace, now); err != nil || !e.Given() {
		return err
	}
	if key := e.Records[0].Keys[0]; key.Verdict.Would == explain.Unknown {
		if flags := inspect.Namesake(ctx, store, key.Name, "--name"); flags != "" {
			v := key.Verdict
			v.Why = "there is no such row. list prints another lock by this name: for that one, give " + flags
		}
	}
	return nil
}

// explained returns the text about an event.
func explained(name string, e *explain.Event) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s is %s.\n", inspect.Safe(name), e.Kind)
	if e.MayCarry() { // first, because what follows may be about other locks
		text.WriteString("These are the keys of package keyfuncs. For a key function of your own, give what it returns: lambdalock explain --name NAME --event EVENT\n")
	}
	for _, r := range e.Records {
		if r.Where != "" {
			fmt.Fprintf(&text, "\n%s\n", inspect.Safe(r.Where))
		}
		for _, k := range r.Keys {
			text.WriteString(explainedKey(&k))
		}
		if len(r.Keys) == 0 {
			for _, refused := range r.Refused {
				fmt.Fprintf(&text, "\n  %s\n    refuses it: %s\n", refused.Function, inspect.Safe(refused.Reason))
			}
		}
	}
	return text.String()
}

func explainedKey(k *explain.Key) string {
	var text strings.Builder
	line := func(label, value string) {
		if value != "" {
			fmt.Fprintf(&text, "    %-8s %s\n", label, value)
		}
	}
	safe := func(label, value string) {
		if value != "" {
			line(label, inspect.Safe(value))
		}
	}
	fmt.Fprintf(&text, "\n  %s\n", k.Function)
	if k.Ignored {
		line("ignored", "there is nothing to work on: it is acknowledged, and the handler does not run")
		return text.String()
	}
	safe("name", k.Name)
	safe("event", k.Event)
	safe("order", k.Order)
	line("digest", k.Digest)
	line("note", k.Note)
	if v := k.Verdict; v != nil {
		safe("row", v.Row)
		line("would", v.Would+": "+v.Why)
	}
	return text.String()
}
