package integration_test

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// summary collects the tables that are printed after all benchmarks.
var summary struct {
	mu    sync.Mutex
	parts []*figures
}

// figures is one table: a title, a header and rows.
type figures struct {
	title string
	rows  [][]string
}

// newFigures replaces the table of that title, because the framework may run a
// benchmark more than once.
func newFigures(title string, header ...string) *figures {
	summary.mu.Lock()
	defer summary.mu.Unlock()
	f := &figures{title: title, rows: [][]string{header}}
	for i, old := range summary.parts {
		if old.title == title {
			summary.parts[i] = f
			return f
		}
	}
	summary.parts = append(summary.parts, f)
	return f
}

func (f *figures) add(cells ...string) { f.rows = append(f.rows, cells) }

func printSummary(w io.Writer) {
	for _, f := range summary.parts {
		fmt.Fprintf(w, "\n%s\n", f.title)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, row := range f.rows {
			fmt.Fprintln(t, "  "+strings.Join(row, "\t"))
		}
		t.Flush()
	}
}

func ms(d time.Duration) string { return fmt.Sprintf("%.3f", float64(d)/1e6) }
func number(v float64) string   { return fmt.Sprintf("%.1f", v) }
func whole(v float64) string    { return fmt.Sprintf("%.0f", v) }
func times(v float64) string    { return fmt.Sprintf("%.3f", v) }
