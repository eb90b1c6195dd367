package timeline

import (
	_ "embed" // the page
	"html/template"
	"io"
)

//go:embed page.html
var source string

var page = template.Must(template.New("page").Funcs(template.FuncMap{"layout": newLayout}).Parse(source))

// HTML writes t as a page that needs no other file and runs no script. The
// browser lays it out; it gets the times in percent of the axis.
func (t Timeline) HTML(w io.Writer) error { return page.Execute(w, t) }

// Class returns the class of k in the style sheet.
func (k Kind) Class() string { return looks[k].class }
