package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/local/locallambda"
)

// act tries one thing with an example.
type act func(context.Context, *stage)

// play runs all acts of an example, each on a stage of its own.
func (x example) play(ctx context.Context, root, bin string, r *report) {
	acts := []act{together, whileAtWork(delivery{what: "while at work", answer: x.held})}
	for _, d := range x.others {
		acts = append(acts, whileAtWork(d))
	}
	if x.only != nil {
		acts = x.only
	}
	for _, a := range slices.Concat(acts, x.special, []act{wrongInput}) {
		x.perform(ctx, root, filepath.Join(bin, x.name), r, a)
	}
}

// perform plays one act with an executable, on a stage of its own.
func (x example) perform(ctx context.Context, root, path string, r *report, play act) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	before := r.failures.Load()
	st := newStage(ctx, x, root, path, r)
	if len(st.functions) > 0 {
		play(ctx, st)
	}
	st.end()
	if r.verbose || r.failures.Load() > before {
		r.Print(strings.Join(st.log, "\n"))
	}
}

// together delivers the event to all environments at the same moment, and once
// more when they have answered.
func together(ctx context.Context, st *stage) {
	var copies []<-chan attempts
	for range environments {
		copies = append(copies, st.begin(ctx, st.retried, st.event, 0, nil))
	}
	for _, results := range copies {
		got := <-results
		st.Printf("at the same moment: %v", got)
		for i, r := range got {
			// Only an attempt that is retried may fail, for whatever part of a batch.
			l, retried := label(r), i < len(got)-1
			refused := l == st.held && (retried || r.Outcome == locallambda.Succeeded)
			if l != st.answer && !refused && !(retried && strings.HasPrefix(l, "back:")) {
				st.fail("at the same moment: %s: %.300s", l, r.Payload)
			}
		}
	}
	st.expect("once more", st.once(ctx, st.event), st.answer)
	st.effects(st.due()...)
}

// whileAtWork delivers d while the first delivery is certainly at work: the
// gate holds back the release of its locks. Afterwards it delivers d once more.
func whileAtWork(d delivery) act {
	return func(ctx context.Context, st *stage) {
		event := st.edit(d.edits...)
		// A lock's first request acquires it, and its second one releases it.
		first := st.begin(ctx, st.once, st.event, max(st.locks, 1), func(_ string, nth int) bool { return nth == 2 })
		var second <-chan attempts
		if d.answer == waits {
			// The third request is refused, and the fourth one tries again.
			second = st.begin(ctx, st.once, event, 1, func(_ string, nth int) bool { return nth == 4 })
		} else {
			st.expect(d.what, st.once(ctx, event), d.answer)
			st.expect(d.what, st.once(ctx, event), d.answer)
		}
		if len(first) > 0 { // after 1 s, its release is tried again
			st.fail("%s: the first delivery ended early", d.what)
		}
		if st.open(); second != nil {
			st.expect(d.what+", it waits", <-second, st.answer)
		}
		st.expect("the first", <-first, st.answer)
		st.expect("later", st.once(ctx, event), st.answer)
		st.effects(append(st.due(), d.work...)...)
	}
}

// wrongInput checks that wrong events are refused and cause no work.
func wrongInput(ctx context.Context, st *stage) {
	var want []string
	for _, d := range st.wrong {
		st.expect(d.what, st.once(ctx, st.edit(d.edits...)), d.answer)
		want = append(want, d.work...)
	}
	st.effects(want...)
}

// reusedKey sends another payment with a key that was used, and then the first
// one again.
func reusedKey(ctx context.Context, st *stage) {
	other := st.edit("9007199254740993", "8")
	st.expect("the first payment", st.once(ctx, st.event), st.answer)
	st.expect("another payment with its key", st.once(ctx, other), "status 422")
	st.expect("the first payment again", st.once(ctx, st.event), st.answer)
	st.effects(st.due()...)
}

// nothingToDo delivers the event three times, one after the other. The
// duplicates say that there is nothing to do, and nothing else does.
func nothingToDo(ctx context.Context, st *stage) {
	for _, what := range []string{"the first delivery", "the second", "the third"} {
		st.expect(what, st.once(ctx, st.event), ok)
	}
	st.effects(st.due()...)
	said := 0
	for _, line := range st.log {
		if strings.Contains(line, "nothing to do") && strings.Contains(line, url.PathEscape(upload)) {
			said++
		}
	}
	if st.Printf("nothing to do: said %d times", said); said != 2 {
		st.fail("nothing to do: said %d times, want 2", said)
	}
}

// changesWithinAMinute delivers more changes in the minute after a run, and
// again after it.
func changesWithinAMinute(ctx context.Context, st *stage) {
	more := st.edit("1d0001", "1d0004", "1d0002", "1d0005", "1d0003", "1d0006")
	st.expect("the first changes", st.once(ctx, st.event), st.answer)
	// The third change was in the batch of the first one's run, so its own event is
	// not completed.
	st.expect("the same once more", st.once(ctx, st.event), "back: …0003")
	st.expect("more within the minute", st.once(ctx, more), st.held)
	for _, name := range st.want {
		st.expire(ctx, "debounce/customer/"+name)
	}
	st.expect("more after the minute", st.once(ctx, more), st.answer)
	st.effects(slices.Concat(st.due(), st.due())...)
}

// twoSubscribers runs the example as two functions with one lock table.
func twoSubscribers(ctx context.Context, st *stage) {
	for _, name := range []string{"billing", "mailer"} {
		st.start(ctx, name)
		for range 2 {
			st.expect("subscriber "+name, st.once(ctx, st.event), ok)
		}
	}
	st.effects("17 billing", "17 mailer")
}

// lateWriter holds back a holder's write until its lease has expired and a
// later holder has written.
func lateWriter(ctx context.Context, st *stage) {
	lock := "" // the function acquires it before it writes to the account
	late := st.begin(ctx, st.retried, st.event, 1, func(key string, _ int) bool {
		if key != account {
			lock = key
		}
		return key == account
	})
	st.expire(ctx, lock)
	other := st.edit("c2f4a7de", "d3f5b8ef", "1042.50", "990", `"statement": 17`, `"statement": 18`)
	st.expect("a later holder", st.once(ctx, other), ok)
	st.open()
	got := <-late
	st.expect("the late write, its retry", got, "wrapError, ok")
	if !strings.Contains(got[0].ErrorMessage, "a later holder has written") {
		st.fail("the late write: %s", got[0].ErrorMessage)
	}
	st.effects("/archive-example/accounts/DE-4711/18.json", "map[account:map[S:DE-4711] balance:map[N:990] fence:map[N:archived]]")
}

// fourthCall delivers a fourth event while the calls for three others are
// certainly at work.
func fourthCall(ctx context.Context, st *stage) {
	event := func(order string) []byte { return st.edit("8c1f6a52", "call-"+order, `"order": 17`, `"order": `+order) }
	var calls []<-chan attempts
	for _, order := range []string{"1", "2", "3"} {
		// A slot's first request acquires it, and its second one releases it.
		calls = append(calls, st.begin(ctx, st.once, event(order), 1, func(_ string, nth int) bool { return nth == 2 }))
	}
	// The fourth is refused by each of the three slots, and then asks again. With
	// a fourth slot, its last request would be the fifth one at the latest.
	asked := 0
	calls = append(calls, st.begin(ctx, st.once, event("4"), 1, func(key string, _ int) bool {
		if strings.Contains(key, "partner/acme") {
			asked++
		}
		return asked == 6
	}))
	for i, c := range calls[:3] {
		if len(c) > 0 { // after 1 s, its release is tried again
			st.fail("call %d ended early", i+1)
		}
	}
	st.open()
	for i, c := range calls {
		st.expect(fmt.Sprintf("call %d", i+1), <-c, ok)
	}
	st.effects("1", "2", "3", "4")
}

// lostTransactions delivers the event while the answers of its transactions get
// lost, although they are applied.
func lostTransactions(ctx context.Context, st *stage) {
	lost := map[string]bool{}
	st.dynamo.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
		st.mu.Lock()
		defer st.mu.Unlock()
		id := strings.Join(r.Keys, " ")
		if id == "" || lost[id] {
			return fakedynamo.None
		}
		lost[id] = true
		return fakedynamo.ApplyThenDrop
	})
	st.expect("answers get lost", st.once(ctx, st.event), st.answer)
	st.expect("later", st.once(ctx, st.event), st.answer)
	if len(lost) != st.locks {
		st.fail("%d answers got lost, want %d", len(lost), st.locks)
	}
	st.effects(st.due()...)
}

// slowClient requests a second export when its client has read only the first
// line of the first one. A million rows do not fit into the buffers of a
// connection.
func slowClient(ctx context.Context, st *stage) {
	body, stream := io.Pipe()
	slow := st.begin(ctx, func(ctx context.Context, event []byte) attempts {
		defer stream.Close()
		r, _ := st.functions[0].Invoke(ctx, locallambda.Invocation{Payload: event, Stream: stream})
		return attempts{r} // after an error it has no label
	}, st.edit(`"rows": "1000"`, `"rows": "1000000"`), 0, nil)
	lines := bufio.NewScanner(body)
	lines.Scan()
	st.expect("while it is read", st.once(ctx, st.event), st.held)
	rows, last := 0, ""
	for lines.Scan() {
		rows, last = rows+1, lines.Text()
	}
	st.expect("a slow client", <-slow, st.answer)
	if rows != 1_000_000 || !strings.HasPrefix(last, "1000000,") {
		st.fail("the body has %d rows and ends with %q", rows, last)
	}
	st.expect("later", st.once(ctx, st.event), st.answer)
	st.effects(append([]string{"export begun 1000000", "export done 1000000"}, st.due()...)...)
}

// oppositeMoves delivers moves in both directions at the same moment.
func oppositeMoves(ctx context.Context, st *stage) {
	back := []string{`"from": "berlin"`, `"from": "lyon"`, `"to": "lyon"`, `"to": "berlin"`}
	var moves []<-chan attempts
	for i := range environments {
		edits := []string{"3b9c7d51", fmt.Sprintf("%08d", i)}
		if i%2 > 0 {
			edits = append(edits, back...)
		}
		moves = append(moves, st.begin(ctx, st.once, st.edit(edits...), 0, nil))
	}
	for i, results := range moves {
		st.expect(fmt.Sprintf("move %d of %d in opposite directions", i+1, environments), <-results, ok)
	}
	st.effects("berlin lyon 40", "berlin lyon 40", "lyon berlin 40", "lyon berlin 40")
}
