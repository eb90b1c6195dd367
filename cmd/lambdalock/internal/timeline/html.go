package timeline

import (
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed page.html
var source string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"layout": newLayout,
	"legend": Timeline.legend,
}).Parse(source))

// HTML writes t as a page that needs no other file and runs no script. The
// browser lays it out; it gets the times in percent of the axis.
func (t Timeline) HTML(w io.Writer) error { return page.Execute(w, t) }

// Left returns where e begins, in percent.
func (e extent) Left() string { return fmt.Sprintf("%.2f", 100*e.X0) }

// Width returns how wide e is, in percent.
func (e extent) Width() string { return fmt.Sprintf("%.2f", 100*(e.X1-e.X0)) }

// Class returns the class of b in the style sheet.
func (b bar) Class() string {
	if len(b.Overlaps) > 0 {
		return "fail"
	}
	return looks[b.Kind].Class
}

// Details returns what b shows on hover.
func (b bar) Details() string {
	text := fmt.Sprintf("%s\nenvironment %d, from %s to %s: %s",
		strings.TrimSpace(b.Object+" "+b.Remark), b.Env, seconds(b.Start, 3), seconds(b.End, 3), looks[b.Kind].Words)
	if b.LockStart < b.LockEnd {
		text += fmt.Sprintf("\nlock held from %s to %s, fence %d", seconds(b.LockStart, 3), seconds(b.LockEnd, 3), b.Fence)
	}
	return text
}

// short reports whether b has little room for its caption.
func (b bar) short() bool { return b.X1-b.X0 < 0.25 }

// Short reports whether the nth bar has less room for its caption than there is
// beside it.
func (l lane) Short(n int) bool {
	b, beside := l.Bars[n], l.Beside(n)
	return b.short() && beside.X1-beside.X0 > b.X1-b.X0
}

// Beside returns the room for the caption of the nth bar, left or right of it.
// Two short bars share the room between them.
func (l lane) Beside(n int) (e extent) {
	b := l.Bars[n]
	before, after := extent{0, b.X0}, extent{b.X1, 1}
	if n > 0 {
		if before.X0 = l.Bars[n-1].X1; l.Bars[n-1].short() {
			before.X0 = (before.X0 + before.X1) / 2
		}
	}
	if n+1 < len(l.Bars) {
		if after.X1 = l.Bars[n+1].X0; l.Bars[n+1].short() {
			after.X1 = (after.X0 + after.X1) / 2
		}
	}
	if after.X1-after.X0 >= before.X1-before.X0 {
		return after
	}
	return before
}
