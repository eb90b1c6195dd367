package timeline

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	defaultWidth = 100
	minWidth     = 60
	indent       = 3 // of everything under a scenario's title
)

// textLook is how a kind is drawn on a terminal. The last rune stays when a
// bar is a single cell wide, so it is the one that tells kinds apart.
type textLook struct {
	body, last rune
	ansi       string
}

var textLooks = [...]textLook{
	Ran:      {'█', '█', "32"},
	Skipped:  {'·', '·', "90"},
	Refused:  {'▒', '▒', "33"},
	Failed:   {'█', '!', "31"},
	Killed:   {'█', '×', "35"},
	TookOver: {'█', '»', "36"},
}

var textMetrics = metrics{
	cell: 1, minBar: 1, gap: 1, inside: 6, clear: 1, leader: 1,
	mark: func(_ float64, below bool) float64 {
		if below {
			return 2 // the elbow and a space
		}
		return 0
	},
	snap: math.Round,
}

// Text writes t as plain text, one block per scenario, at most width cells
// wide: 0 means 100, and less than 60 means 60. With color it uses ANSI
// colours; the bars can be told apart without them.
func (t Timeline) Text(w io.Writer, width int, color bool) error {
	scenes, err := t.scenes()
	if err != nil {
		return err
	}
	if width == 0 {
		width = defaultWidth
	}
	p := &page{width: max(width, minWidth), color: color}
	p.heading(clean(t.Title), t.summary())
	p.line()
	names := make([]string, len(t.Lanes))
	for i, name := range t.Lanes {
		names[i] = truncate(clean(name), p.width/5)
	}
	for _, sc := range scenes {
		p.scene(sc, names)
	}
	p.legend(scenes)
	_, err = io.WriteString(w, p.String())
	return err
}

// heading writes a title with a note at the right end of its line.
func (p *page) heading(title, note string) {
	row := p.line()
	p.put(row, 0, truncate(title, p.width-cells(note)-2), bold)
	p.put(row, p.width-cells(note), note, dim)
}

// scene writes one block: title, lanes, time axis and the list of spans.
func (p *page) scene(sc scene, names []string) {
	title := ""
	if sc.number > 0 {
		title = strconv.Itoa(sc.number) + "  " + sc.title
	}
	p.heading(title, clock(sc.start)+" – "+clock(sc.end))
	if len(sc.spans) == 0 {
		p.put(p.line(), indent, "nothing happened", dim)
		p.line()
		return
	}

	used := usedLanes(sc)
	gutter := 0
	for _, n := range used {
		gutter = max(gutter, cells(names[n-1]))
	}
	left := indent + gutter + 2 // the lane's name, a space and the rule
	a := newAxis(sc, float64(p.width-left))
	for _, n := range used {
		p.lane(newLane(sc.lane(n), a, textMetrics), a, names[n-1], left)
	}
	p.axis(sc, a, left)
	p.list(sc, names, gutter)
	p.line()
}

// lane writes the bars of one lane and the captions that stand under them.
func (p *page) lane(l lane, a axis, name string, left int) {
	top := len(p.rows)
	for range l.tracks + len(l.lines) {
		p.put(p.line(), left-1, "│", dim)
	}
	p.put(top, indent, name, plain)
	for _, b := range l.bars {
		p.bar(b, a, top, left)
		if b.spot == below {
			p.caption(b, top+l.tracks, left)
		}
	}
}

// bar draws b, with its caption when that stands in the bar's own row.
func (p *page) bar(b bar, a axis, top, left int) {
	row, x0, x1 := top+b.track, left+int(b.x0), left+int(b.x1)
	look, paint := textLooks[b.Kind], style(textLooks[b.Kind].ansi)
	for x := x0; x < x1-1; x++ {
		p.put(row, x, string(look.body), paint)
	}
	for _, f := range a.folds() {
		for x := max(x0+1, left+int(f.x0)+1); x < min(x1-1, left+int(f.x1)); x++ {
			p.put(row, x, "≈", paint)
		}
	}
	p.put(row, x1-1, string(look.last), paint)
	switch b.spot {
	case inside:
		p.put(row, x0+1+(x1-x0-cells(b.caption)-4)/2, " "+b.caption+" ", plain)
	case beside:
		p.put(row, left+int(b.textX), b.caption, plain)
	}
}

// caption writes b's caption in its line below the bars, with an elbow on the
// side where the line from the bar arrives.
func (p *page) caption(b bar, top, left int) {
	for n := range b.line {
		if p.blank(top+n, left+int(b.leader)) {
			p.put(top+n, left+int(b.leader), "│", dim)
		}
	}
	row, x := top+b.line, left+int(b.textX)
	if b.leader > b.textX+float64(cells(b.caption))/2 {
		p.put(row, x, b.caption, plain)
		p.put(row, x+cells(b.caption)+1, "┘", dim)
		return
	}
	p.put(row, x, "└", dim)
	p.put(row, x+2, b.caption, plain)
}

// axis draws the ruler with its folds, and under it the times.
func (p *page) axis(sc scene, a axis, left int) {
	ruler := p.line()
	p.put(ruler, left-1, "└"+strings.Repeat("─", p.width-left), dim)
	row := p.line()
	var taken line
	write := func(x int, text string) bool {
		x0, x1 := float64(x), float64(x+cells(text))
		if x < left || x+cells(text) > p.width || !taken.free(x0, x1) {
			return false
		}
		taken = append(taken, interval{x0 - 1, x1 + 1})
		p.put(row, x, text, dim)
		return true
	}
	first, last := seconds(sc.start, 2), seconds(sc.end, 2)
	write(left, first)
	write(p.width-cells(last), last)
	for _, f := range a.folds() {
		x0, x1 := left+int(math.Round(f.x0)), left+int(math.Round(f.x1))
		p.put(ruler, x0, strings.Repeat("≈", x1-x0), dim)
		text := f.foldText()
		write((x0+x1-cells(text))/2, text)
	}
	for _, t := range a.ticks(12) {
		x := left + int(math.Round(t.x))
		if write(x-cells(t.text)/2, t.text) {
			p.put(ruler, x, "┴", dim)
		}
	}
}

// list writes one line per span with its exact times.
func (p *page) list(sc scene, names []string, gutter int) {
	object := 0
	for _, s := range sc.spans {
		object = max(object, cells(clean(s.Object)))
	}
	for _, s := range sc.spans {
		row, x := p.line(), indent
		column := func(text string, width int, st style) {
			p.put(row, x, truncate(text, width), st)
			x += width + 2
		}
		column(clock(s.Start), cells(clock(sc.end)), plain)
		column(fmt.Sprintf("%5d ms", (s.End-s.Start).Milliseconds()), 8, dim)
		column(names[s.Lane-1], gutter, plain)
		column(s.Kind.String(), 9, style(textLooks[s.Kind].ansi))
		column(clean(s.Object), min(object, (p.width-x)*2/3), plain)
		rest := s
		rest.Object = ""
		column(rest.caption(), p.width-x, plain)
	}
}

// legend explains the bars that occur in scenes.
func (p *page) legend(scenes []scene) {
	kinds := usedKinds(scenes)
	if len(kinds) == 0 {
		return
	}
	row, x := p.line(), 0
	for _, k := range kinds {
		look := textLooks[k]
		sample := strings.Repeat(string(look.body), 2) + string(look.last)
		text := sample + " " + k.String()
		if x+cells(text) > p.width {
			row, x = p.line(), 0
		}
		p.put(row, x, sample, style(look.ansi))
		p.put(row, x+4, k.String(), plain)
		x += cells(text) + 3
	}
}

// clock writes t as an exact time since the timeline's zero.
func clock(t time.Duration) string { return fmt.Sprintf("%+.3fs", t.Seconds()) }
