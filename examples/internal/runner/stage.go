package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
)

const (
	environments = 4
	// timeout of the functions; what an act waits for takes a small part of it.
	timeout = 30 * time.Second
	// scale shortens the waits of asynchronous retries: 1 min becomes 0.1 s.
	scale = 600
	// rounds is how often a source delivers again before it is given up.
	rounds = 5
)

// report is what there is to say about an example.
type report struct {
	lines, surprises, printed []string
}

func (r *report) say(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *report) surprise(format string, args ...any) {
	r.surprises = append(r.surprises, fmt.Sprintf(format, args...))
}

// play runs all acts of an example, each in a world of its own.
func play(ctx context.Context, b built, x example) *report {
	ctx, cancel := context.WithTimeoutCause(ctx, longest, fmt.Errorf("not over after %v", longest))
	defer cancel()
	r := &report{}
	acts := x.acts
	if !x.alone {
		acts = append([]act{{"at the same moment", together}, {"while at work", whileAtWork}}, acts...)
	}
	if len(x.wrong) > 0 {
		acts = append(slices.Clone(acts), act{"wrong input", wrongInput})
	}
	for _, a := range acts {
		st, err := newStage(ctx, b, x, r)
		if err == nil {
			err = a.play(ctx, st)
			st.close()
		}
		if err != nil {
			r.surprise("%s: %v", a.title, err)
		}
	}
	return r
}

// stage is one act under way.
type stage struct {
	*report
	example  example
	event    []byte
	world    *world
	platform *locallambda.Platform
	running  []*locallambda.Platform // that one, and those of further functions
	path     string
	wg       sync.WaitGroup
}

func newStage(ctx context.Context, b built, x example, r *report) (*stage, error) {
	event, err := b.event(x.name)
	if err != nil {
		return nil, err
	}
	st := &stage{report: r, example: x, event: event, path: filepath.Join(b.bin, x.name)}
	if st.world, err = newWorld(ctx); err != nil {
		st.close()
		return nil, err
	}
	if x.prepare != nil {
		err = x.prepare(ctx, st.world)
	}
	if err == nil {
		st.platform, err = st.start(ctx, x.name)
	}
	if err != nil {
		st.close()
		return nil, err
	}
	return st, nil
}

// start runs the example as a function of that name.
func (st *stage) start(ctx context.Context, function string) (*locallambda.Platform, error) {
	p, err := locallambda.Start(ctx, locallambda.Config{
		Command: []string{st.path}, Env: st.world.env, Environments: environments,
		Timeout: timeout, Function: function, Logs: st.world.journal.log,
	})
	if err == nil {
		st.running = append(st.running, p)
	}
	return p, err
}

// end ends the functions. Only then is everything known that they printed: an
// answer may overtake the line that was printed before it.
func (st *stage) end() {
	st.world.gate.open()
	st.wg.Wait()
	for _, p := range st.running {
		_ = p.Close() // its error is always nil
	}
}

func (st *stage) close() {
	if st.world != nil {
		st.end()
		st.world.close()
		st.printed = append(st.printed, st.world.journal.printed...)
	}
}

// invoke delivers an event once.
func (st *stage) invoke(ctx context.Context, event []byte) (locallambda.Result, error) {
	return st.platform.Invoke(ctx, locallambda.Invocation{Payload: event})
}

// outcome is what becomes of an invocation in the background.
type outcome struct {
	result locallambda.Result
	err    error
	over   chan struct{}
}

func (st *stage) begin(ctx context.Context, event []byte) *outcome {
	o := &outcome{over: make(chan struct{})}
	st.wg.Go(func() {
		defer close(o.over)
		o.result, o.err = st.invoke(ctx, event)
	})
	return o
}

// atOnce delivers events at the same moment, each to the first environment that
// is free.
func (st *stage) atOnce(ctx context.Context, sent [][]byte) ([]locallambda.Result, error) {
	var under []*outcome
	for _, event := range sent {
		under = append(under, st.begin(ctx, event))
	}
	var results []locallambda.Result
	for _, o := range under {
		<-o.over
		if o.err != nil {
			return nil, o.err
		}
		results = append(results, o.result)
	}
	return results, nil
}

// deliver delivers copies of the event at the same moment, and again what comes
// back, as the source does.
func (st *stage) deliver(ctx context.Context, copies int) ([]locallambda.Result, error) {
	if st.example.async {
		return st.deliverAsync(ctx, copies)
	}
	sent := slices.Repeat([][]byte{st.event}, copies)
	var all []locallambda.Result
	for range rounds {
		results, err := st.atOnce(ctx, sent)
		if err != nil {
			return nil, err
		}
		all = append(all, results...)
		var again [][]byte
		for i, r := range results {
			if rest := st.example.again(sent[i], r); rest != nil && label(r) != st.example.later {
				again = append(again, rest)
			}
		}
		if len(again) == 0 {
			return all, nil
		}
		sent = again
	}
	return all, fmt.Errorf("%d deliveries were not acknowledged in %d rounds", len(sent), rounds)
}

func (st *stage) deliverAsync(ctx context.Context, copies int) ([]locallambda.Result, error) {
	attempts := make([][]locallambda.Result, copies)
	var wg sync.WaitGroup
	for i := range copies {
		wg.Go(func() {
			attempts[i] = st.platform.Deliver(ctx, st.event, locallambda.Async{Scale: scale})
		})
	}
	wg.Wait()
	var all []locallambda.Result
	for _, a := range attempts {
		if len(a) == 0 || a[len(a)-1].Outcome != locallambda.Succeeded {
			return all, fmt.Errorf("a delivery failed for good: %s", summary(a))
		}
		all = append(all, a...)
	}
	return all, nil
}

// expect compares the label of an answer.
func (st *stage) expect(what string, r locallambda.Result, want string) {
	if got := label(r); got != want {
		st.surprise("%s: %q, want %q: %s", what, got, want, r.Payload)
	}
}

// effects ends the functions and compares what they did with what they should
// have done.
func (st *stage) effects(want []string) {
	st.end()
	got := st.example.effect(st.world.journal)
	if byGroup(got, st.example.ordered) != byGroup(want, st.example.ordered) {
		st.surprise("the work was done %d times, want %d: %q, want %q", len(got), len(want), got, want)
		return
	}
	if len(got) == 0 {
		st.say("no work done")
		return
	}
	slices.Sort(got)
	st.say("work done %d ×: %s", len(got), strings.Join(slices.Compact(got), ", "))
}

// byGroup makes lists comparable: of those that are ordered only the order of
// effects with the same first word counts, of the others none.
func byGroup(effects []string, ordered bool) string {
	effects = slices.Clone(effects)
	slices.SortStableFunc(effects, func(a, b string) int {
		if ordered {
			a, _, _ = strings.Cut(a, " ")
			b, _, _ = strings.Cut(b, " ")
		}
		return strings.Compare(a, b)
	})
	return strings.Join(effects, "\n")
}
