package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// foldAfter is how long nothing may begin or end before that stretch is
	// folded. Handlers of a demo run for less, so only waiting is folded.
	foldAfter = 700 * time.Millisecond
	// foldShare is the part of the axis that a fold takes, foldsShare that of
	// many folds together: room for their words.
	foldShare, foldsShare = 0.3, 0.45
)

// layout is a panel whose times have become percents of its axis.
type layout struct {
	Panel
	Lanes []lane
	Folds []fold
	// Mark is the time at the first fold, or else at the end.
	Mark fold
	// Room is how many characters of results stand behind the axis.
	Room int
}

// fold is a stretch of time that is drawn short.
type fold struct {
	X, Width float64
	Words    string
}

type lane struct {
	Lane
	Bars []bar
}

// bar is a span in its place. Next is where the next one begins.
type bar struct {
	Span
	X, Width, Lease, Next float64
}

func newLayout(p Panel) *layout {
	l := &layout{Panel: p}
	at := l.axis()
	for _, in := range p.Lanes {
		out := lane{Lane: in}
		for i, s := range in.Spans {
			b := bar{Span: s, X: at(s.Start), Next: 100}
			b.Width, b.Lease = at(s.End)-b.X, max(0, at(s.Lease)-at(s.End))
			if i+1 < len(in.Spans) {
				b.Next = at(in.Spans[i+1].Start)
			} else if b.X+b.Width > 50 {
				l.Room = max(l.Room, 2+b.behind())
			}
			out.Bars = append(out.Bars, b)
		}
		l.Lanes = append(l.Lanes, out)
	}
	return l
}

// behind returns how many characters stand behind b: its result, and its label
// where that hardly fits into it.
func (b bar) behind() int {
	if b.Width < 10 {
		return cells(b.Words())
	}
	return cells(b.Result)
}

// axis folds the time in which nothing begins or ends, and returns the position
// of a time. Outside folds the scale is the same everywhere.
func (l *layout) axis() func(time.Duration) float64 {
	times := []time.Duration{0, time.Millisecond}
	for _, lane := range l.Panel.Lanes {
		for _, s := range lane.Spans {
			times = append(times, s.Start, s.End)
		}
	}
	slices.Sort(times)
	times = slices.Compact(times)
	var plain, folded time.Duration
	for i, t := range times[1:] {
		if d := t - times[i]; d > foldAfter {
			folded++
		} else {
			plain += d
		}
	}
	share := 100 * min(foldShare, foldsShare/float64(max(folded, 1)))
	scale := (100 - share*float64(folded)) / float64(plain)
	xs := []float64{0}
	for i, t := range times[1:] {
		width := float64(t-times[i]) * scale
		if t-times[i] > foldAfter {
			width = share
			l.Folds = append(l.Folds, fold{xs[i], share, l.waiting(times[i], t)})
			if len(l.Folds) == 1 && xs[i] > 12 { // else it would hide the zero
				l.Mark = fold{X: xs[i], Words: seconds(times[i])}
			}
		}
		xs = append(xs, xs[i]+width)
	}
	if len(l.Folds) == 0 {
		l.Mark = fold{X: 100, Words: seconds(times[len(times)-1])}
	}
	return func(t time.Duration) float64 {
		i, _ := slices.BinarySearch(times, t)
		switch {
		case i == 0:
			return 0
		case i == len(times): // such as a lease that outlasts the panel
			return 100
		}
		return xs[i-1] + (xs[i]-xs[i-1])*float64(t-times[i-1])/float64(times[i]-times[i-1])
	}
}

// waiting returns the words for a fold.
func (l *layout) waiting(from, to time.Duration) string {
	for _, w := range l.Waits {
		if middle := (from + to) / 2; w.From <= middle && middle <= w.To {
			return w.Words
		}
	}
	return "≈ " + seconds(to-from)
}

// Words returns all that is written at s.
func (s Span) Words() string { return strings.Join(strings.Fields(s.Label+" "+s.Result), " ") }

// Details returns what s shows on hover.
func (s Span) Details() string {
	return fmt.Sprintf("%s, from %.3f to %.3f s", s.Words(), s.Start.Seconds(), s.End.Seconds())
}

func seconds(d time.Duration) string {
	if d < 100*time.Millisecond {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
