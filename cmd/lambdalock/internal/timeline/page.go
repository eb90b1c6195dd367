package timeline

import "strings"

// style is the parameter of an ANSI colour sequence; plain has none.
type style string

const (
	plain style = ""
	bold  style = "1"
	dim   style = "2"
)

// glyph is what stands in one cell: a character with its combining marks, or
// nothing at all right of a wide character.
type glyph struct {
	text  string
	style style
}

// page is a grid of cells. What would stand outside of it is dropped, so no
// line is ever wider than the page.
type page struct {
	width int
	color bool
	rows  [][]glyph
}

// line adds an empty row and returns its number.
func (p *page) line() int {
	row := make([]glyph, p.width)
	for i := range row {
		row[i].text = " "
	}
	p.rows = append(p.rows, row)
	return len(p.rows) - 1
}

// put writes s from the given cell on.
func (p *page) put(row, x int, s string, st style) {
	cells := p.rows[row]
	for _, r := range s {
		n := runeCells(r)
		if x < 0 || x+n > p.width {
			return
		}
		if n == 0 {
			if x > 0 {
				cells[x-1].text += string(r)
			}
			continue
		}
		cells[x] = glyph{string(r), st}
		if n == 2 {
			cells[x+1] = glyph{"", st}
		}
		x += n
	}
}

// blank reports whether nothing stands in the cell yet.
func (p *page) blank(row, x int) bool { return p.rows[row][x].text == " " }

// String returns the page without spaces at the ends of lines.
func (p *page) String() string {
	var b strings.Builder
	for _, row := range p.rows {
		end := len(row)
		for end > 0 && row[end-1].text == " " {
			end--
		}
		current := plain
		for _, g := range row[:end] {
			if p.color && g.style != current {
				if current != plain {
					b.WriteString("\x1b[0m")
				}
				if g.style != plain {
					b.WriteString("\x1b[" + string(g.style) + "m")
				}
				current = g.style
			}
			b.WriteString(g.text)
		}
		if current != plain {
			b.WriteString("\x1b[0m")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
