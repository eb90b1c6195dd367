package timeline

// metrics is what placing bars and captions needs to know about an output;
// all lengths are in its own unit, cells or pixels.
type metrics struct {
	cell   float64 // width of one narrow character of a caption
	minBar float64 // width of the shortest bar
	gap    float64 // space between neighbouring bars
	inside float64 // what a bar needs beyond its caption to hold it
	clear  float64 // space around a caption outside its bar
	leader float64 // width of the line from a bar to a caption further down
	// mark is the extra width of a caption outside a bar of the given width,
	// for a symbol or an elbow.
	mark func(bar float64, below bool) float64
	// snap moves a position onto the output's grid.
	snap func(float64) float64
}

// spot is where a caption stands.
type spot int

const (
	inside spot = iota // in the bar
	beside             // right of the bar, in the same track
	below              // in a line under all bars of the lane
)

// bar is one placed span.
type bar struct {
	Span
	x0, x1  float64
	track   int // spans that overlap in time are stacked in tracks
	caption string
	spot    spot
	textX   float64 // left end of the caption with its mark; not for inside
	line    int     // only for below
	leader  float64 // only for below: left end of the line down to the caption
}

// lane is one environment in one scene.
type lane struct {
	bars   []bar
	tracks int
	lines  []line
}

// interval is a taken part of a line.
type interval struct{ x0, x1 float64 }

// line is one row of captions under the bars.
type line []interval

func (l line) free(x0, x1 float64) bool {
	for _, v := range l {
		if x0 < v.x1 && v.x0 < x1 {
			return false
		}
	}
	return true
}

// newLane places spans, which are sorted by start, along a.
func newLane(spans []Span, a axis, m metrics) lane {
	var l lane
	l.placeBars(spans, a, m)
	for i := range l.bars {
		b := &l.bars[i]
		text := float64(cells(b.caption)) * m.cell
		switch {
		case text+m.inside <= b.x1-b.x0:
			b.spot = inside
		case b.x1+m.clear+text+m.mark(b.x1-b.x0, false)+m.clear <= l.room(b, a.width+m.clear):
			b.spot = beside
			b.textX = b.x1 + m.clear
		default:
			b.spot = below
		}
	}
	l.placeBelow(a.width, m)
	return l
}

// placeBars gives every span its extent and the first track where it is free.
func (l *lane) placeBars(spans []Span, a axis, m metrics) {
	var next []float64 // where each track is free again
	for _, s := range spans {
		b := bar{Span: s, caption: s.caption()}
		b.x0 = min(m.snap(a.at(s.Start)), a.width-m.minBar)
		end := max(m.snap(a.at(s.End)), b.x0+m.minBar+m.gap)
		b.x1 = end - m.gap
		for b.track < len(next) && next[b.track] > b.x0 {
			b.track++
		}
		if b.track == len(next) {
			next = append(next, 0)
		}
		next[b.track] = end
		l.bars = append(l.bars, b)
	}
	l.tracks = len(next)
}

// room is how far to the right b's track is free, at most to limit.
func (l *lane) room(b *bar, limit float64) float64 {
	for _, other := range l.bars {
		if other.track == b.track && other.x0 > b.x0 {
			return other.x0
		}
	}
	return limit
}

// placeBelow places the captions that stand under the bars. Those that begin
// under their bar go from right to left, and then those that would leave the
// panel, and so end under their bar, from left to right: the line to a caption
// further down then passes beside the captions already there.
func (l *lane) placeBelow(width float64, m metrics) {
	var ending []*bar
	for i := len(l.bars) - 1; i >= 0; i-- {
		b := &l.bars[i]
		if b.spot != below {
			continue
		}
		mark := m.mark(b.x1-b.x0, true)
		b.caption = truncate(b.caption, int((width-mark)/m.cell))
		w := float64(cells(b.caption))*m.cell + mark
		if b.x0+w > width {
			ending = append(ending, b)
			continue
		}
		l.hang(b, b.x0, w, b.x0, m)
	}
	for i := len(ending) - 1; i >= 0; i-- {
		b := ending[i]
		w := float64(cells(b.caption))*m.cell + m.mark(b.x1-b.x0, true)
		if b.x1-w < 0 {
			l.hang(b, width-w, w, b.x0, m) // too long for either
			continue
		}
		l.hang(b, b.x1-w, w, b.x1-m.leader, m)
	}
}

// hang puts b's caption, w wide from x on, into the first line where neither
// it nor the line leading to it touches another caption.
func (l *lane) hang(b *bar, x, w, leader float64, m metrics) {
	n := 0
	for n < len(l.lines) && !(l.reachable(n, leader, m.leader) && l.lines[n].free(x, x+w)) {
		n++
	}
	if n == len(l.lines) {
		l.lines = append(l.lines, nil)
	}
	for i := range n {
		l.lines[i] = append(l.lines[i], interval{leader, leader + m.leader})
	}
	l.lines[n] = append(l.lines[n], interval{x - m.clear, x + w + m.clear})
	b.line, b.textX, b.leader = n, x, leader
}

// reachable reports whether a line down to caption line n is free at x.
func (l *lane) reachable(n int, x, w float64) bool {
	for _, above := range l.lines[:n] {
		if !above.free(x, x+w) {
			return false
		}
	}
	return true
}
