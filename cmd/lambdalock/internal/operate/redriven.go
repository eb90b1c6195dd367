package operate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/deadletter"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/inspect"
)

// rounds does one round after the other, until there is none.
func (r *redriven) rounds(ctx context.Context, ask asker) error {
	for {
		round, err := r.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil || len(round) == 0:
			return err
		}
		if err := r.do(ctx, round, ask); err != nil {
			return err
		}
	}
}

// redriven is a run that prints what it does.
type redriven struct {
	*deadletter.Run
	out           io.Writer
	json, dry     bool
	deleted, stay int
	again         int            // of stay: back since, because they failed again
	done          map[string]int // by action: sent or invoked, and deleted
	both, perhaps map[string]int // and not deleted
	early         string         // why it may not have seen all messages
}

// do shows a round, asks, and does it.
func (r *redriven) do(ctx context.Context, round []deadletter.Decision, ask asker) error {
	defer func() { r.count(round) }()
	if !r.json {
		if err := r.list(round); err != nil {
			return err
		}
	}
	err := r.act(ctx, round, ask)
	if r.json {
		for i := range round {
			if err := inspect.WriteJSON(r.out, &round[i], ""); err != nil {
				return err
			}
		}
	}
	return err
}

func (r *redriven) act(ctx context.Context, round []deadletter.Decision, ask asker) error {
	question := consequences(round)
	if r.dry || question == "" {
		return nil
	}
	if err := ask(ctx, question); err != nil {
		return err
	}
	shown := slices.Clone(round)
	err := r.Do(ctx, round)
	return cmp.Or(r.listStaying(shown, round), err)
}

// listStaying prints which messages stay although another action was shown.
func (r *redriven) listStaying(shown, round []deadletter.Decision) error {
	for i := range round {
		d := &round[i]
		why := cmp.Or(d.Error, d.Why)
		if r.json || d.Done || shown[i].Action == deadletter.Leave || why == shown[i].Why { // or it was not its turn
			continue
		}
		if _, err := fmt.Fprintf(r.out, "%s stays: %s\n", inspect.Safe(d.Message), console.Printable(why)); err != nil {
			return err
		}
	}
	return nil
}

// list prints a round.
func (r *redriven) list(round []deadletter.Decision) error {
	t := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "ACTION\tMESSAGE\tGROUP\tNAME\tEVENT\tWHY")
	for i := range round {
		d := &round[i]
		_, _ = fmt.Fprint(t, d.Action)
		for _, text := range []string{d.Message, d.Group, cmp.Or(d.Row, d.Name), d.Event} { // the row shows a wrong namespace
			if text != "" {
				text = inspect.Safe(text)
			}
			_, _ = fmt.Fprint(t, "\t", text)
		}
		_, _ = fmt.Fprintf(t, "\t%s\n", console.Printable(d.Why))
	}
	return t.Flush()
}

// consequences asks about what would be done, if anything.
func consequences(round []deadletter.Decision) string {
	count, functions := map[string]int{}, map[string]bool{}
	for i := range round {
		d := &round[i]
		count[d.Action]++
		if d.Action == deadletter.Invoke {
			functions[d.To] = true
		}
	}
	var all []string
	if n := count[deadletter.Delete]; n > 0 {
		all = append(all, fmt.Sprintf("delete %d", n))
	}
	if n := count[deadletter.Send]; n > 0 {
		all = append(all, fmt.Sprintf("send %d", n))
	}
	if n := count[deadletter.Invoke]; n > 0 {
		all = append(all, fmt.Sprintf("invoke %s with %d", console.Printable(strings.Join(slices.Sorted(maps.Keys(functions)), " or ")), n))
	}
	if len(all) == 0 {
		return ""
	}
	if last := len(all) - 1; last > 0 {
		all[last] = "and " + all[last]
	}
	text := strings.Join(all, ", ")
	return strings.ToUpper(text[:1]) + text[1:] + "?"
}

// count counts what was done or, in a dry run, what would be.
func (r *redriven) count(round []deadletter.Decision) {
	for i := range round {
		switch d := &round[i]; {
		case d.Sent == deadletter.Perhaps:
			r.perhaps[d.Action]++
		case d.Sent == deadletter.Yes && !d.Done:
			r.both[d.Action]++
		case d.Action == deadletter.Leave || !d.Done && !r.dry:
			r.stay++
		case d.Action == deadletter.Delete:
			r.deleted++
		default:
			r.done[d.Action]++
		}
	}
}

func (r *redriven) summary() string {
	text := fmt.Sprintf("%d deleted, %d sent, ", r.deleted, r.done[deadletter.Send])
	if n := r.done[deadletter.Invoke]; n > 0 {
		text += fmt.Sprintf("%d invoked, ", n)
	}
	for _, a := range []struct{ action, verb string }{{deadletter.Send, "sent"}, {deadletter.Invoke, "invoked"}} {
		if n := r.both[a.action]; n > 0 {
			text += fmt.Sprintf("%d %s and still here, ", n, a.verb)
		}
		if n := r.perhaps[a.action]; n > 0 {
			text += fmt.Sprintf("%d perhaps %s and still here, ", n, a.verb)
		}
	}
	text += fmt.Sprintf("%d left", r.stay)
	if r.again > 0 {
		text += fmt.Sprintf(": %d failed again", r.again)
	}
	text += "."
	if r.dry {
		text = "Would be: " + text
	}
	return strings.TrimSpace(text + " " + r.early)
}

// left returns an error if a message stays, or may: it cannot tell what became
// of those that were in flight.
func (r *redriven) left(inFlight int) error {
	n := r.stay
	for _, here := range []map[string]int{r.both, r.perhaps} {
		n += here[deadletter.Send] + here[deadletter.Invoke]
	}
	switch {
	case n > 0:
		return no("%d of the messages stay in the queue", n)
	case inFlight > 0:
		return no("%d of the messages were in flight", inFlight)
	}
	return nil
}
