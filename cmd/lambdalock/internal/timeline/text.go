package timeline

import (
	"io"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// style is the parameter of an ANSI colour sequence; plain has none.
type style string

const (
	plain style = ""
	bold  style = "1"
	dim   style = "2"

	lockHeld = '░'
	minWidth = 40
	indent   = 3
	left     = indent + 8 // where the lanes begin, behind their names
	maxBelow = 8          // rows for the captions of a lane
)

func verdict(bad bool) style { return map[bool]style{true: "1;31", false: "1;32"}[bad] }

// glyph is what is in one cell.
type glyph struct {
	rune
	style
}

// screen is a grid of cells. It drops what would be outside of it, so no line
// is ever wider than the screen.
type screen struct {
	width int
	rows  [][]glyph
}

// Text writes t for a terminal of the given width; less than 40 counts as 40.
// With color it uses ANSI colours; everything can be told apart without them.
func (t Timeline) Text(w io.Writer, width int, color bool) error {
	s := &screen{width: max(width, minWidth)}
	s.paragraph(0, t.Title, bold)
	for _, p := range t.Panels {
		s.line()
		s.paragraph(0, p.Title, bold)
		s.paragraph(indent, "→ "+p.Caption, verdict(p.Bad))
		s.panel(newLayout(p))
	}
	s.line()
	s.legend(t.legend())
	s.paragraph(0, t.Note, dim)
	s.line()
	for _, v := range t.Verdicts {
		s.paragraph(0, v.Result, verdict(v.Bad))
		s.paragraph(indent, v.Figures, plain)
	}
	_, err := io.WriteString(w, s.text(color))
	return err
}

// line adds an empty row and returns its number.
func (s *screen) line() int {
	s.rows = append(s.rows, slices.Repeat([]glyph{{' ', plain}}, s.width))
	return len(s.rows) - 1
}

// put writes text from the given cell on, and returns the cell behind it.
func (s *screen) put(row, x int, text string, st style) int {
	for _, r := range text {
		if x >= 0 && x < s.width {
			s.rows[row][x] = glyph{r, st}
		}
		x++
	}
	return x
}

func (s *screen) fill(row, x0, x1 int, r rune, st style) {
	s.put(row, x0, strings.Repeat(string(r), max(0, x1-x0)), st)
}

// paragraph writes text in as many lines as it takes.
func (s *screen) paragraph(indent int, text string, st style) {
	row, x := -1, indent
	for word := range strings.FieldsSeq(narrow(text)) {
		if row < 0 || x > indent && x+cells(word) > s.width {
			row, x = s.line(), indent
		}
		x = s.put(row, x, word, st) + 1
	}
}

// panel draws the lanes, and the axis under them.
func (s *screen) panel(l *layout) {
	for _, lane := range l.Lanes {
		top, edge := s.lane(), left
		s.put(top, indent, lane.Name, plain)
		ends := make([][2]int, len(lane.Bars))
		for i, b := range lane.Bars {
			ends[i][0], ends[i][1] = s.bar(b, top, edge)
			edge = ends[i][1]
		}
		for i, b := range lane.Bars {
			s.caption(truncate(narrow(l.Caption(b)), s.width-left-1), top, ends[i][0], ends[i][1])
		}
	}
	row, end := s.line(), s.width-cells(l.End)-1
	s.put(row, left-1, "└", dim)
	s.fill(row, left, s.width, '─', dim)
	s.put(row, left, "0 ", plain)
	for _, f := range l.Folds {
		x0, x1 := s.x(f.X0), min(s.x(f.X1), end)
		s.fill(row, x0, x1, '≈', dim)
		s.put(row, x0, " "+truncate(narrow(f.Words), x1-x0-2)+" ", plain)
	}
	s.put(row, end, " "+l.End, plain)
}

// lane adds a row to a lane.
func (s *screen) lane() int {
	row := s.line()
	s.put(row, left-1, "│", dim)
	return row
}

// x returns the cell of a position on the axis.
func (s *screen) x(at float64) int { return left + int(math.Round(at*float64(s.width-left))) }

// bar draws b at or behind the cell edge, with brackets around it while it
// holds the lock, and returns its ends.
func (s *screen) bar(b bar, row, edge int) (x0, x1 int) {
	x0 = min(max(edge, s.x(b.X0)), s.width-1)
	x1 = max(x0+1, s.x(b.X1))
	if l0, l1 := max(edge, s.x(b.Lock.X0)), s.x(b.Lock.X1); l1-l0 > 2 {
		s.put(row, l0, "["+strings.Repeat(string(lockHeld), l1-l0-2)+"]", dim)
		x0 = max(x0, l0+1)
		x1 = max(x0+1, min(x1, l1-1))
	}
	body, last := utf8.DecodeRuneInString(looks[b.Kind].bar)
	s.fill(row, x0, x1-1, body, looks[b.Kind].style)
	s.put(row, x1-1, looks[b.Kind].bar[last:], looks[b.Kind].style)
	for _, o := range b.Overlaps {
		s.fill(row, max(x0, s.x(o.X0)), min(x1, s.x(o.X1)), '╳', looks[overlap].style)
	}
	return x0, x1
}

// caption writes text into the bar from x0 to x1, or beside it, or below. It
// leaves it out where that would take more than maxBelow rows.
func (s *screen) caption(text string, row, x0, x1 int) {
	n := cells(text)
	x := max(left+1, min(x0, s.width-n))
	switch {
	case n+2 <= x1-x0:
		x = x0 + (x1-x0-n)/2
	case s.free(row, x1, x1+n+2):
		x = x1 + 1
	case s.free(row, x0-n-2, x0):
		x = x0 - n - 1
	default:
		top := row
		for row++; row < len(s.rows) && !s.free(row, x-1, x+n+1); {
			row++
		}
		if row > top+maxBelow {
			return
		}
		if row == len(s.rows) {
			s.lane()
		}
	}
	s.put(row, x-1, " "+text+" ", plain)
}

// free reports whether nothing but a held lock is in the cells from x0 to x1.
// The last one may be outside.
func (s *screen) free(row, x0, x1 int) bool {
	return x0 >= left && x1 <= s.width+1 && !slices.ContainsFunc(s.rows[row][x0:min(x1, s.width)], func(g glyph) bool {
		return g.rune != ' ' && g.rune != lockHeld
	})
}

// legend explains what is drawn.
func (s *screen) legend(all []look) {
	row, x := s.line(), 0
	for _, l := range all {
		if x > 0 && x+3+cells(l.Words) > s.width {
			row, x = s.line(), 0
		}
		x = s.put(row, s.put(row, x, l.bar, l.style)+1, l.Words, plain) + 3
	}
}

// text returns the screen without spaces at the ends of lines.
func (s *screen) text(color bool) string {
	var all strings.Builder
	for _, row := range s.rows {
		var line strings.Builder
		current := plain
		for _, g := range row {
			if color && g.style != current {
				line.WriteString("\x1b[0;" + string(g.style) + "m")
				current = g.style
			}
			line.WriteRune(g.rune)
		}
		if current != plain {
			line.WriteString("\x1b[0m")
		}
		all.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return all.String()
}

// narrow replaces what might not fill exactly one cell of a terminal, or might
// move its cursor: other scripts than European ones, combining and control
// characters.
func narrow(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case strings.ContainsRune("→≈✓↻✕", r), r < 0x590 && unicode.IsPrint(r) && !unicode.IsMark(r):
			return r
		}
		return '?'
	}, s)
}

func cells(s string) int { return utf8.RuneCountInString(s) }

// truncate shortens s to at most n cells, with an ellipsis where it was cut.
func truncate(s string, n int) string {
	if cells(s) <= n {
		return s
	}
	return string([]rune(s)[:max(0, n-1)]) + "…"
}
