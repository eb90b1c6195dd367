package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/explain"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
)

type explainCmd struct {
	storeFlags
	jsonFlag
	Event string `arg:"" help:"File that holds one event, in JSON; - reads standard input."`
}

// Help returns what --help adds.
func (c *explainCmd) Help() string {
	return `Says of each record of the event which key functions of package keyfuncs take it, and which key each of them gives. Functions of your own, such as ByField, are not known here.

With a store it also says what the row of that key would mean for a delivery now: run; skip (completed, or stale); or refuse (held, or another payload). That is what happens without options: OnHeld may wait or skip, and over HTTP a duplicate is answered with the first response. Give the --namespace of the function: without the option Namespace and LOCK_NAMESPACE, it is the function's name. Records of one event are judged one by one, as if each came alone.

The status is 0 if a key function takes a record of the event, 1 if none does, 64 if the file holds no JSON or a flag or the environment is wrong, and 69 if the store did not answer or refused.

On DynamoDB it needs dynamodb:GetItem. It changes nothing.`
}

func (c *explainCmd) Run(ctx context.Context) error { return trouble(c.explain(ctx, os.Stdout)) }

func (c *explainCmd) explain(ctx context.Context, out io.Writer) error {
	file, err := readEvent(c.Event)
	if err != nil {
		return wrongUse("%w", err)
	}
	e, err := explain.Explain(ctx, file.payload)
	if err != nil {
		return no("%s: %w", file.name, err)
	}
	now := time.Now()
	var judged error
	if c.url() != "" {
		judged = c.judge(ctx, e, now)
	}
	if c.JSON {
		err = inspect.WriteJSON(out, e, "  ")
	} else {
		_, err = io.WriteString(out, explained(file.name, e))
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

func (c *explainCmd) judge(ctx context.Context, e *explain.Event, now time.Time) error {
	store, err := c.inspector(ctx)
	if err != nil {
		return err
	}
	return e.Judge(ctx, store, c.Namespace, now)
}

// explained returns the text about an event.
func explained(name string, e *explain.Event) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s is %s.\n", inspect.Safe(name), e.Kind)
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
