package timeline

import (
	"cmp"
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
	foldShare, foldsShare = 0.36, 0.56
)

// layout is a panel whose times have become positions from 0 to 1.
type layout struct {
	Panel
	End   string
	Folds []fold
	Lanes []lane
}

// extent is a part of the axis.
type extent struct{ X0, X1 float64 }

// fold is a stretch of time that is drawn short.
type fold struct {
	extent
	Words string
}

// lane is one environment. It has several where its spans overlap, or one
// begins while the lock of a dead one is held.
type lane struct {
	Name string
	Bars []bar
}

// bar is a span in its place.
type bar struct {
	Span
	extent
	Lock     extent
	Overlaps []extent
}

func newLayout(p Panel) *layout {
	l := &layout{Panel: p}
	at := l.axis()
	place := func(from, to time.Duration) extent { return extent{at(from), at(to)} }
	spans := slices.SortedStableFunc(slices.Values(p.Spans), func(a, b Span) int {
		return cmp.Or(cmp.Compare(uint(a.Env-1), uint(b.Env-1)), cmp.Compare(a.Start, b.Start)) // 0 comes last
	})
	for i, s := range spans {
		b := bar{Span: s, extent: place(s.Start, s.End), Lock: place(s.LockStart, s.LockEnd)}
		for j, o := range spans {
			from, to := max(o.Start, s.Start), min(o.End, s.End)
			if i != j && o.Object == s.Object && s.Object != "" && o.Kind.ran() && s.Kind.ran() && from < to {
				b.Overlaps = append(b.Overlaps, place(from, to))
			}
		}
		name := "dead"
		if s.Env > 0 {
			name = fmt.Sprintf("env %d", s.Env)
		}
		n := slices.IndexFunc(l.Lanes, func(l lane) bool {
			last := l.Bars[len(l.Bars)-1]
			if last.Env == s.Env {
				name = "" // the first lane has it
			}
			return last.Env == s.Env && max(last.End, last.LockEnd) <= s.Start
		})
		if n < 0 {
			n, l.Lanes = len(l.Lanes), append(l.Lanes, lane{Name: name})
		}
		l.Lanes[n].Bars = append(l.Lanes[n].Bars, b)
	}
	return l
}

// axis folds the time in which nothing begins or ends, and returns the position
// of a time. Outside folds the scale is the same everywhere.
func (l *layout) axis() func(time.Duration) float64 {
	times := []time.Duration{0, time.Millisecond}
	for _, s := range l.Spans {
		times = append(times, s.Start, s.End)
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
	share := min(foldShare, foldsShare/float64(max(folded, 1)))
	scale := (1 - share*float64(folded)) / float64(plain)
	xs := []float64{0}
	for i, t := range times[1:] {
		x0 := xs[i]
		x1 := x0 + float64(t-times[i])*scale
		if t-times[i] > foldAfter {
			x1 = x0 + share
			l.Folds = append(l.Folds, fold{extent{x0, x1}, l.waiting(times[i], t)})
		}
		xs = append(xs, x1)
	}
	l.End = seconds(times[len(times)-1], 2)
	return func(t time.Duration) float64 {
		i, _ := slices.BinarySearch(times, t)
		switch {
		case i == 0:
			return 0
		case i == len(times): // such as a lock that outlasts the panel
			return 1
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
	return "≈ " + seconds(to-from, 1)
}

// Caption returns what to write at b. In a panel about one object, only the
// bars of handlers name it.
func (l *layout) Caption(b bar) string {
	parts := make([]string, 0, 4)
	if len(b.Overlaps) == 0 {
		parts = append(parts, looks[b.Kind].Symbol)
	}
	if b.Kind.ran() || slices.ContainsFunc(l.Spans, func(o Span) bool { return o.Object != b.Object }) {
		parts = append(parts, b.Object)
	}
	parts = append(parts, b.Remark)
	if b.Fence != 0 {
		parts = append(parts, fmt.Sprintf("#%d", b.Fence))
	}
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

func seconds(d time.Duration, places int) string {
	return fmt.Sprintf("%.*f s", places, d.Seconds())
}
