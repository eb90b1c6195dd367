package integration_test

import (
	"fmt"
	"html/template"
	"io"
	"os"
	"slices"
	"time"
)

// reportPeers prints the table as Markdown.
func reportPeers(w io.Writer, peers []*peer, rounds, events int) {
	fmt.Fprintf(w, "\n### One event\n\nAcquire, an empty handler, complete or release; then the event comes again. "+
		"%d rounds of %d events\nfor each tool in turn.\n\n", rounds, events)
	fmt.Fprintln(w, "| tool | runtime | requests | ms | of its raw SDK | CPU ms | of its raw SDK | a duplicate: requests, ms |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|")
	for _, p := range peers {
		duplicate := "runs again"
		if p.remembers {
			duplicate = fmt.Sprintf("%s, %s", number(p.duplicates.perRun(blockRequests)), p.duplicates.spread(blockP50, 1e6, 1))
		}
		wall, cpu := "1", "1"
		if p.raw != p {
			wall, cpu = fmt.Sprintf("%.2f times", p.ratio(p.raw.contestant, blockP50)), fmt.Sprintf("%.2f times", p.ratio(p.raw.contestant, blockCPU))
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", p.tool.name, p.runtime, number(p.perRun(blockRequests)),
			p.spread(blockP50, 1e6, 1), wall, p.spread(blockCPU, 1e6, 2), cpu, duplicate)
	}
}

// spread is the median over all rounds, with the range.
func (c *contestant) spread(of func(block) float64, unit float64, digits int) string {
	v := make([]float64, len(c.blocks))
	for i, bl := range c.blocks {
		v[i] = of(bl) / unit
	}
	return spread(v, digits)
}

// spread is the median of the values, with the range.
func spread(v []float64, digits int) string {
	least, most := fmt.Sprintf("%.*f", digits, slices.Min(v)), fmt.Sprintf("%.*f", digits, slices.Max(v))
	if least == most {
		return least
	}
	return fmt.Sprintf("%.*f (%s to %s)", digits, median(v), least, most)
}

// chart is a bar for the time of each tool, with the number of its requests.
var chart = template.Must(template.New("").Parse(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {{.Height}}" role="img" aria-labelledby="title desc" font-family="sans-serif" font-size="14">
<title id="title">{{.Title}}</title>
<desc id="desc">{{range .Bars}}{{.Name}}: {{.Label}}. {{end}}</desc>
<style>
text { fill: #1f2328 } rect { fill: #8c959f } .raw { fill: #d0d7de } .ours { fill: #0969da }
@media (prefers-color-scheme: dark) { text { fill: #f0f6fc } .raw { fill: #3d444d } .ours { fill: #4493f8 } }
</style>
<text x="10" y="22" font-weight="bold">{{.Title}}</text>
{{range .Bars}}<text x="240" y="{{.Text}}" text-anchor="end">{{.Name}}</text><rect class="{{.Class}}" x="250" y="{{.Y}}" width="{{.Width}}" height="18"/><text x="{{.After}}" y="{{.Text}}">{{.Label}}</text>
{{end}}</svg>
`))

type bar struct {
	Name, Label, Class    string
	Y, Text, Width, After int
}

func drawPeers(file string, peers []*peer, title string) error {
	const top, step, left, longest = 36, 26, 250, 350
	var bars []bar
	slowest := slices.MaxFunc(peers, func(a, b *peer) int { return int(a.middle(blockP50) - b.middle(blockP50)) }).middle(blockP50)
	for i, p := range peers {
		b := bar{Name: p.tool.name, Y: top + i*step, Width: int(longest * p.middle(blockP50) / slowest)}
		b.Text, b.After = b.Y+14, left+b.Width+8
		b.Label = fmt.Sprintf("%.1f ms, %.0f requests", p.middle(blockP50)/float64(time.Millisecond), p.perRun(blockRequests))
		switch {
		case p.raw == p:
			b.Class = "raw"
		case p.tool.name == "lambdalock":
			b.Class = "ours"
		}
		bars = append(bars, b)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return chart.Execute(f, map[string]any{"Title": "One handled event at " + title, "Height": top + len(peers)*step + 6, "Bars": bars})
}
