package timeline

import (
	"fmt"
	"io"
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

	leased   = '░'
	minWidth = 40
	indent   = 3
	left     = indent + 12 // where the lanes begin, behind their names
	maxBelow = 8           // rows for the words of a lane
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
	s.figures(t.Figures)
	s.paragraph(0, t.Note, dim)
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
	axis := s.width - left
	axis -= min(l.Room, axis/3)
	x := func(percent float64) int { return left + int(percent/100*float64(axis)+0.5) }
	for _, lane := range l.Lanes {
		s.paragraph(indent, lane.Group, verdict(lane.Bad))
		top, edge := s.lane(), left
		s.put(top, indent, truncate(narrow(lane.Name), left-indent-1), plain)
		ends := make([][2]int, len(lane.Bars))
		for i, b := range lane.Bars {
			x0 := min(max(edge, x(b.X)), s.width-1)
			edge = max(x0+1, x(b.X+b.Width))
			ends[i] = [2]int{x0, edge}
			look := looks[b.Kind]
			body, last := utf8.DecodeRuneInString(look.bar)
			s.fill(top, x0, edge-1, body, look.style)
			s.put(top, edge-1, look.bar[last:], look.style)
			s.fill(top, edge, x(b.X+b.Width+b.Lease), leased, dim)
		}
		for i, b := range lane.Bars {
			s.words(b.Span, top, ends[i][0], ends[i][1])
		}
	}
	row := s.line()
	s.put(row, left-1, "└", dim)
	s.fill(row, left, x(100), '─', dim)
	s.put(row, left, "0 ", plain)
	for _, f := range l.Folds {
		x0, x1 := x(f.X), x(f.X+f.Width)
		s.fill(row, x0, x1, '≈', dim)
		words := truncate(narrow(f.Words), x1-x0-2)
		s.put(row, x0+(x1-x0-cells(words)-2)/2, " "+words+" ", plain)
	}
	if mark := x(l.Mark.X) - cells(l.Mark.Words) - 1; mark > left {
		s.put(row, mark, " "+l.Mark.Words+" ", plain)
	}
}

// lane adds a row to a lane.
func (s *screen) lane() int {
	row := s.line()
	s.put(row, left-1, "│", dim)
	return row
}

// words writes at a bar from x0 to x1: its label inside, what is left behind it
// or below. It leaves that out where it would take more than maxBelow rows.
func (s *screen) words(b Span, row, x0, x1 int) {
	text := narrow(b.Words())
	if label := narrow(b.Label); label != "" && cells(label)+4 <= x1-x0 {
		s.put(row, x0+1, " "+label+" ", plain)
		text = narrow(b.Result)
	}
	text = truncate(text, s.width-left-1)
	n := cells(text)
	if n == 0 {
		return
	}
	x := x1 + 1
	if !s.free(row, x1, x1+n+2) {
		x = max(left+1, min(x0, s.width-n))
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
	x = s.put(row, s.put(row, x-1, " ", plain), text, looks[b.Kind].style)
	s.put(row, x, " ", plain)
}

// free reports whether nothing but a lease is in the cells from x0 to x1. The
// last one may be outside.
func (s *screen) free(row, x0, x1 int) bool {
	return x0 >= left && x1 <= s.width+1 && !slices.ContainsFunc(s.rows[row][x0:min(x1, s.width)], func(g glyph) bool {
		return g.rune != ' ' && g.rune != leased
	})
}

// figures writes a line for each name.
func (s *screen) figures(f Figures) {
	s.paragraph(0, f.Title, bold)
	for n, name := range f.Names {
		row := s.line()
		x := s.put(row, indent, fmt.Sprintf("%-19s", narrow(name)), plain)
		for _, r := range f.Rows {
			x = s.put(row, x, truncate(fmt.Sprintf("%d %s", r.Counts[n], narrow(r.Name)), s.width-x), verdict(r.Counts[n] > 0)) + 3
		}
	}
	if len(f.Names) > 0 {
		s.line()
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
