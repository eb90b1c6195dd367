package invoke

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/internal/local/localtable"
)

// report prints a row for each delivery, and in the end a summary.
type report struct {
	begun time.Time
	own   bool // the function's table is embedded in this command

	mu         sync.Mutex // guards what follows, and keeps rows whole
	out        io.Writer
	deliveries int
	counts     map[string]int
	fates      fates
	noun       string // of the records
	givenUp    int    // of them
	claimed    bool   // a request for a lock reached the embedded table
	events     []*event
	standings  map[*event]map[string]*standing // of the records, by id
	letters    []string                        // a line for each record that was given up
	picture
}

// standing is what the deliveries of a record have made of it.
type standing struct {
	completed bool // by one of them
	maybe     bool // that, but the log does not tell
	stale     bool // skipped, because a later one was completed
	givenUp   bool
}

// open reports whether a record should have been completed, and was not. A
// stale one needs no delivery, unless it failed for good.
func (s *standing) open() bool { return !s.completed && (s.givenUp || !s.stale) }

func newReport(out io.Writer, events []*event, own bool) *report {
	r := &report{begun: time.Now(), own: own, out: out, counts: map[string]int{}, events: events, standings: map[*event]map[string]*standing{}}
	for _, e := range events {
		r.standings[e] = map[string]*standing{}
		for _, id := range e.ids() {
			r.standings[e][id] = &standing{}
		}
	}
	fmt.Fprintln(out, "    at  env   took  outcome                     event")
	return r
}

// ending is a writer that ends the run if it cannot write.
type ending struct {
	io.Writer
	end context.CancelCauseFunc
}

// untilUnread returns the standard output, and a context that ends when nobody
// reads it any more. That must not end this process, as SIGPIPE would: the
// function would go on, and nobody would end it at its timeout.
func untilUnread(ctx context.Context) (io.Writer, context.Context) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, end := context.WithCancelCause(ctx)
	return ending{os.Stdout, end}, ctx
}

func (e ending) Write(text []byte) (int, error) {
	n, err := e.Writer.Write(text)
	if err != nil {
		e.end(err)
	}
	return n, err
}

// row is one delivery that ended.
type row struct {
	*delivery // nil: it was interrupted
	name      string
	outcome   outcome
	completed []*record
	perhaps   []*record // may have been completed
}

func (r *report) add(w row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(w)
	r.countRecords(w)
	r.delivered(r.begun, w)
	result := w.result
	text := oneLine(w.remark, longestAnswer)
	switch {
	case text != "":
	case result.Outcome == locallambda.Succeeded:
		text = oneLine(string(result.Payload), longestAnswer)
	default:
		text = oneLine(result.ErrorType+": "+result.ErrorMessage, longestError)
	}
	fmt.Fprintf(r.out, "%5.2fs  %3d  %4.2fs  %-26s  %s  %s\n", result.Started.Sub(r.begun).Seconds(), result.Environment,
		result.Ended.Sub(result.Started).Seconds(), w.outcome, w.name, text)
}

// interrupt adds a delivery that has not ended.
func (r *report) interrupt(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(row{outcome: outcome{word: interrupted}})
	fmt.Fprintf(r.out, "    -    -      -  %-26s  %s\n", interrupted, name)
}

// giveUp adds records that are not delivered again, if any, and says what
// becomes of them.
func (r *report) giveUp(records []*record, fate string) {
	if len(records) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.given(r.begun, time.Now(), records)
	for _, rec := range records {
		r.standing(rec).givenUp = true
		name := rec.event.name
		r.givenUp += rec.event.several
		if rec.event.batch != nil {
			r.givenUp++
			name = fmt.Sprintf("%s (%s %s)", name, rec.event.batch.noun(), oneLine(rec.id, longestAnswer))
		}
		r.letters = append(r.letters, name+", "+fate)
	}
}

// waited adds the time between two deliveries to the timeline; real is how long
// Lambda would wait.
func (r *report) waited(from, to time.Time, real time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.picture.waited(r.begun, from, to, real)
}

// longestSilence is how long nothing may be printed before the reason is told.
const longestSilence = 30 * time.Second

// idle says that nothing happens for so long, if that is long.
func (r *report) idle(d time.Duration) {
	if d <= longestSilence {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "    -    -      -  the next message is visible in %v; a larger --scale shortens visibility timeouts\n", d.Round(time.Second))
}

func (r *report) count(w row) {
	r.deliveries++
	r.counts[w.outcome.word]++
	for _, rec := range w.perhaps {
		r.standing(rec).maybe = true
	}
	var first []*standing // not completed before
	for _, rec := range w.completed {
		if s := r.standing(rec); !s.completed {
			first = append(first, s)
		}
	}
	for _, s := range first {
		if w.stale == 0 {
			s.completed = true
			continue
		}
		s.stale = true
		s.maybe = s.maybe || w.outcome.word != skipped || w.stale < len(first)
	}
}

// standing returns that of a record. The caller holds r.mu.
func (r *report) standing(rec *record) *standing { return r.standings[rec.event][rec.id] }

func (r *report) countRecords(w row) {
	r.claimed = r.claimed || w.claims != localtable.Claims{}
	r.fates.add(w.fates)
	if w.fates.delivered == 0 {
		return
	}
	noun := "record"
	if b := w.records[0].event.batch; b != nil {
		noun = b.noun()
	}
	if r.noun == "" || r.noun == noun {
		r.noun = noun
	} else {
		r.noun = "record" // of a queue and of something else
	}
}

// words are the outcomes in the order of the summary. It has ran, skipped and
// failed even if there are none.
var words = []string{ran, skipped, succeeded, held, refused, ignored, timedOut, killed, crashed, interrupted, partly, failed}

// elsewhere is what to say if the function asked another store, or none.
const elsewhere = `No lock was claimed in the table that this command gives the function: it has another store, which this command does
not know, or took no lock. What another store remembers outlives this command, and makes the same event a duplicate.`

// summary prints what was given up, how many deliveries had each outcome, and
// what became of the records of batches. Its error names the events that were
// not completed.
func (r *report) summary() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, line := range r.letters {
		if i == longestList {
			fmt.Fprintf(r.out, "given up: and %d more\n", len(r.letters)-i)
			break
		}
		fmt.Fprintln(r.out, "given up:", line)
	}
	if known := r.counts[ran] + r.counts[skipped] + r.counts[succeeded] + r.counts[held]; r.own && !r.claimed && known > 0 {
		fmt.Fprintln(r.out, elsewhere)
	}
	fmt.Fprintf(r.out, "deliveries %d", r.deliveries)
	for _, word := range words {
		// In a delivery that failed in part, handlers ran. In one that succeeded, that
		// is unknown.
		always := word == failed || r.counts[succeeded] == 0 && (word == skipped || word == ran && r.counts[partly] == 0)
		if n := r.counts[word]; n > 0 || always {
			fmt.Fprintf(r.out, "   %s %d", word, n)
		}
	}
	missing := r.missing()
	fmt.Fprintf(r.out, "   events %d   not completed %d\n", len(r.events), len(missing))
	r.fates.print(r.out, r.noun, r.givenUp)
	switch {
	case len(missing) > 0:
		return fmt.Errorf("not completed: %s", strings.Join(missing, ", "))
	case len(r.letters) > 0:
		return fmt.Errorf("given up, although another delivery completed it: %s", r.letters[0])
	}
	return nil
}

// longestList is how many lines tell what was given up.
const longestList = 20

// missing names the events that are not completed. The caller holds r.mu.
func (r *report) missing() []string {
	var names []string
	for _, e := range r.events {
		open := slices.DeleteFunc(e.ids(), func(id string) bool { return !r.standings[e][id].open() })
		if len(open) > 0 {
			maybe := slices.ContainsFunc(open, func(id string) bool { return r.standings[e][id].maybe })
			names = append(names, e.missing(open, maybe))
		}
	}
	return names
}

// missing names an event, and those of its records that are not completed, or
// of which it is unknown whether they are.
func (e *event) missing(ids []string, unknown bool) string {
	if e.batch == nil {
		return e.name
	}
	upTo, note := "", ""
	if unknown {
		upTo, note = "up to ", ", "+untold
	}
	return fmt.Sprintf("%s (%s%s%s: %s)", e.name, upTo, e.batch.share(len(ids), len(e.batch.records)), note, oneLine(strings.Join(ids, " "), longestError))
}

// ids returns what tells the records of an event apart.
func (e *event) ids() []string {
	if e.batch == nil {
		return []string{""}
	}
	return ids(e.batch.records)
}

// The characters shown of an answer, and of an error, whose cause is at its
// end.
const (
	longestAnswer = 120
	longestError  = 400
)

// oneLine shortens a text from a function and replaces its control characters,
// so that it is safe to print and stays on one line.
func oneLine(s string, longest int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if runes := []rune(s); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return s
}
