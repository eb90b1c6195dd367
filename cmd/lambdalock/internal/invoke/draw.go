package invoke

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/timeline"
)

// drawing says how to draw a timeline on a terminal.
type drawing struct {
	Width int `placeholder:"N" help:"How many columns to draw the timeline on; by default those of the terminal, or 80."`
}

// text draws on out, in colours if that is a terminal.
func (d drawing) text(out *os.File, t timeline.Timeline) error {
	color := term.IsTerminal(int(out.Fd())) && os.Getenv("NO_COLOR") == ""
	return t.Text(out, d.width(out), color)
}

// width is how many columns there are to draw on.
func (d drawing) width(out *os.File) int {
	if d.Width > 0 {
		return d.Width
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		return columns
	}
	if columns, _, err := term.GetSize(int(out.Fd())); err == nil && columns > 0 {
		return columns
	}
	return 80
}

// maxDrawn is how many deliveries a timeline shows; a person cannot tell more
// apart.
const maxDrawn = 2000

// kinds says how an outcome is drawn.
var kinds = map[string]timeline.Kind{
	ran: timeline.Ran, succeeded: timeline.Succeeded, skipped: timeline.Skipped, refused: timeline.Declined, ignored: timeline.Ignored,
	held: timeline.Refused, partly: timeline.Failed, failed: timeline.Failed,
	timedOut: timeline.Killed, killed: timeline.Killed, crashed: timeline.Killed,
}

// unclear are the outcomes whose word does not say what they mean.
var unclear = []struct{ word, means string }{
	{ignored, "acknowledged without being handled"},
	{refused, "the event was refused by the function"},
	{succeeded, "whether the handler ran is unknown"},
}

// picture collects what a timeline shows.
type picture struct {
	spans map[int][]timeline.Span // by environment; 0: given up
	drawn int
	waits []timeline.Wait
	left  int // deliveries beyond maxDrawn
}

func (p *picture) add(env int, s timeline.Span) {
	if p.spans == nil {
		p.spans = map[int][]timeline.Span{}
	}
	p.spans[env] = append(p.spans[env], s)
	p.drawn++
}

// lanes returns a lane for each environment, and more for one that handles
// several deliveries at the same time.
func (p *picture) lanes() (all []timeline.Lane) {
	for _, env := range slices.SortedFunc(maps.Keys(p.spans), func(a, b int) int { return cmp.Compare(uint(a-1), uint(b-1)) }) { // 0 comes last
		slices.SortStableFunc(p.spans[env], func(a, b timeline.Span) int { return cmp.Compare(a.Start, b.Start) })
		first, name := len(all), "given up"
		if env > 0 {
			name = fmt.Sprintf("env %d", env)
		}
		for _, s := range p.spans[env] {
			n := slices.IndexFunc(all[first:], func(l timeline.Lane) bool { return l.Spans[len(l.Spans)-1].End <= s.Start })
			if n < 0 {
				n, all, name = len(all)-first, append(all, timeline.Lane{Name: name}), ""
			}
			all[first+n].Spans = append(all[first+n].Spans, s)
		}
	}
	return all
}

// delivered adds a delivery. Its span is that of the invocation, because the
// command does not know when the handler was running.
func (p *picture) delivered(begun time.Time, w row) {
	if p.drawn >= maxDrawn {
		p.left++
		return
	}
	kind, result := kinds[w.outcome.word], w.outcome.String()
	switch {
	case slices.Contains(w.outcome.notes, takenOver):
		kind = timeline.TookOver
	case w.outcome.word == ran && len(w.outcome.notes) == 0:
		result = ""
	}
	p.add(w.result.Environment, timeline.Span{
		Start: w.result.Started.Sub(begun), End: w.result.Ended.Sub(begun), Kind: kind,
		Label: label(w.records) + receives(w.records), Result: result,
	})
}

// label names what is delivered in few characters.
func label(records []*record) string {
	b := records[0].event.batch
	switch {
	case b == nil:
		return filepath.Base(records[0].event.name)
	case len(records) == 1:
		return records[0].id
	}
	return fmt.Sprintf("%d %ss", len(records), b.noun())
}

// receives says that records were delivered before.
func receives(records []*record) string {
	most := 0
	for _, r := range records {
		most = max(most, r.received)
	}
	if most == 0 {
		return ""
	}
	return fmt.Sprintf(" (no. %d)", most+1)
}

// given adds records that were given up.
func (p *picture) given(begun, at time.Time, records []*record) {
	if p.drawn >= maxDrawn {
		return
	}
	since := at.Sub(begun)
	p.add(0, timeline.Span{Start: since, End: since, Kind: timeline.GivenUp, Label: label(records)})
}

// waited adds the time between two deliveries, which Lambda would make longer.
func (p *picture) waited(begun, from, to time.Time, real time.Duration) {
	if len(p.waits) < maxDrawn {
		p.waits = append(p.waits, timeline.Wait{
			From: from.Sub(begun), To: to.Sub(begun),
			Words: fmt.Sprintf("%v as %v", real.Round(100*time.Millisecond), to.Sub(from).Round(100*time.Millisecond)),
		})
	}
}

// draw writes the timeline of the run to a page, if there is one, and to a
// terminal. The page comes first, as the terminal's text may end in head.
func (r *report) draw(out *os.File, page io.Writer, c *Command) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.drawn == 0 {
		return nil
	}
	t := r.timeline(c)
	if c.HTML != "" {
		if err := t.HTML(page); err != nil {
			return err
		}
	}
	fmt.Fprintln(out)
	if err := c.text(out, t); err != nil || c.HTML == "" {
		return err
	}
	_, err := fmt.Fprintf(out, "The same as a page for a browser: %s\n\n", c.HTML)
	return err
}

// timeline returns what to draw. The caller holds r.mu.
func (r *report) timeline(c *Command) timeline.Timeline {
	panel := timeline.Panel{
		Title:   fmt.Sprintf("%s of %s", plural(r.deliveries, "delivery"), plural(len(r.events), "event")),
		Caption: "every event was completed", Hero: true, Lanes: r.lanes(), Waits: r.waits,
	}
	if n := r.counts[succeeded]; n > 0 {
		panel.Caption = fmt.Sprintf("no event failed; of %s it is unknown whether the handler ran", plural(n, "delivery"))
	}
	open := len(r.missing())
	if panel.Bad = open > 0 || len(r.letters) > 0; panel.Bad {
		panel.Caption = fmt.Sprintf("not completed: %s; given up: %d", plural(open, "event"), len(r.letters))
	}
	if r.left > 0 {
		panel.Title += fmt.Sprintf(", the first %d drawn", maxDrawn)
	}
	t := timeline.Timeline{Title: filepath.Base(c.Bootstrap), Panels: []timeline.Panel{panel}}
	if c.Source != asTheEventSays {
		t.Title += " behind --source " + c.Source
	}
	for _, e := range unclear {
		if r.counts[e.word] > 0 {
			t.Note += e.word + ": " + e.means + ". "
		}
	}
	if len(r.waits) > 0 {
		t.Note += fmt.Sprintf("Waits before a redelivery are %g times shorter than Lambda's. Handlers and leases take their real time.", c.Scale)
	}
	return t
}

func plural(n int, noun string) string {
	switch stem, isY := strings.CutSuffix(noun, "y"); {
	case n == 1:
		return "1 " + noun
	case isY:
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
