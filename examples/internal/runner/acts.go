package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
)

// act is one thing that is tried with an example.
type act struct {
	title string
	play  func(context.Context, *stage) error
}

// together delivers the event to several environments at the same moment, and once
// more when all is done.
func together(ctx context.Context, st *stage) error {
	x := st.example
	results, err := st.deliver(ctx, environments)
	if err != nil {
		return fmt.Errorf("%w: %s", err, summary(results))
	}
	st.say("%d at the same moment, %d invocations: %s", environments, len(results), summary(results))
	last, err := st.invoke(ctx, st.event)
	if err != nil {
		return err
	}
	st.say("once more: %s", label(last))
	st.expect("once more", last, x.later)
	for _, r := range results {
		// Which part of a batch comes back from where is a matter of chance.
		part := x.partial && strings.HasPrefix(label(r), "back:") && strings.Contains(label(r), x.poison)
		if l := label(r); l != x.first && l != x.held && l != x.later && !part {
			st.surprise("at the same moment: %q: %s", l, r.Payload)
		}
		if x.replayed && label(r) == x.first && string(r.Payload) != string(last.Payload) {
			st.surprise("not the same answer: %s and %s", r.Payload, last.Payload)
		}
	}
	st.effects(x.expected(append(results, last)))
	return x.verify(ctx, st)
}

// whileAtWork delivers the event while its first delivery is at work for certain,
// because its release is held back.
func whileAtWork(ctx context.Context, st *stage) error {
	x := st.example
	st.world.gate.close(update.releases)
	first := st.begin(ctx, st.event)
	if err := st.world.gate.await(ctx, max(x.holds, 1), first.over); err != nil {
		return err
	}
	duplicates, err := st.atOnce(ctx, [][]byte{st.event, st.event})
	if err != nil {
		return err
	}
	st.world.gate.open()
	<-first.over
	if first.err != nil {
		return first.err
	}
	later, err := st.invoke(ctx, st.event)
	if err != nil {
		return err
	}
	st.say("while at work: %s; then the first: %s; later: %s", summary(duplicates), label(first.result), label(later))
	for _, d := range duplicates {
		st.expect("while at work", d, x.held)
	}
	st.expect("the first", first.result, x.first)
	st.expect("later", later, x.later)
	if x.replayed && string(later.Payload) != string(first.result.Payload) {
		st.surprise("replayed %s, want %s", later.Payload, first.result.Payload)
	}
	st.effects(x.expected([]locallambda.Result{first.result, later}))
	return x.verify(ctx, st)
}

// waiting delivers another event while the first is at work, and checks that it
// waits for its turn.
func waiting(other func([]byte) ([]byte, error), does string) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		event, err := other(st.event)
		if err != nil {
			return err
		}
		st.world.gate.close(update.releases)
		first := st.begin(ctx, st.event)
		if err := st.world.gate.await(ctx, 1, first.over); err != nil {
			return err
		}
		second := st.begin(ctx, event)
		refused := func(e entry) bool { return e.dynamo.acquires() && e.status == http.StatusBadRequest }
		// Should nothing refuse it, it ends without.
		waited, stop := context.WithCancel(ctx)
		defer stop()
		go func() { <-second.over; stop() }()
		if st.world.journal.await(waited, func(es []entry) bool { return slices.ContainsFunc(es, refused) }) != nil {
			return errors.New("the second did not wait")
		}
		st.world.gate.open()
		<-first.over
		<-second.over
		st.expect("the first", first.result, st.example.first)
		st.expect("the second", second.result, st.example.first)
		st.say("while at work: the second waits; then the first: %s; the second: %s", label(first.result), label(second.result))
		st.effects(append(slices.Clone(st.example.want), does))
		return st.example.verify(ctx, st)
	}
}

// mistake is an event that is not as it should be.
type mistake struct {
	what     string
	old, new string   // what is replaced in the event
	want     string   // the label of the answer
	does     []string // what is done all the same
}

// wrongInput checks that what is wrong is refused, and does nothing.
func wrongInput(ctx context.Context, st *stage) error {
	var said, does []string
	for _, m := range st.example.wrong {
		event, err := edit(st.event, m.old, m.new)
		if err != nil {
			return fmt.Errorf("%s: %w", m.what, err)
		}
		r, err := st.invoke(ctx, event)
		if err != nil {
			return err
		}
		st.expect(m.what, r, m.want)
		said = append(said, m.what+": "+label(r))
		does = append(does, m.does...)
	}
	st.say("wrong input: %s", strings.Join(said, "; "))
	st.effects(does)
	return nil
}

// edit replaces a part of an event, which must be there.
func edit(event []byte, old, with string) ([]byte, error) {
	changed := strings.Replace(string(event), old, with, 1)
	if changed == string(event) {
		return nil, fmt.Errorf("the event does not hold %q", old)
	}
	return []byte(changed), nil
}
