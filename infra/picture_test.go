package infra_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	html "html/template"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/infra"
)

// picture draws the widgets of a dashboard where CloudWatch does, with their
// titles and legends, but without values.
var picture = html.Must(html.New("").Funcs(html.FuncMap{
	"wide": func(units int) int { return 40 * units },
	"high": func(units int) int { return 26 * units },
	"line": func(i int) int { return 52 + 18*i },
}).Parse(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 968 {{high 27}}" role="img" aria-labelledby="title" font-family="sans-serif" font-size="13">
<title id="title">Dashboard of a lock table: {{range .Widgets}}{{.Properties.Title}}. {{end}}</title>
<style>
text { fill: #1f2328 } rect { fill: none; stroke: #d0d7de } path { fill: none; stroke: #8c959f } .legend { fill: #59636e }
@media (prefers-color-scheme: dark) { text { fill: #f0f6fc } rect { stroke: #3d444d } path { stroke: #656c76 } .legend { fill: #9198a1 } }
</style>
{{range .Widgets}}<g transform="translate({{wide .X}} {{high .Y}})"><svg width="{{wide .Width}}" height="{{high .Height}}"><rect x="4" y="4" width="98%" height="95%" rx="6"/><text x="20" y="30" font-weight="bold">{{.Properties.Title}}</text>
{{if .Properties.Metrics}}<path d="M20 40v100h440"/>{{end}}
{{range $i, $legend := .Legends}}<text class="legend" x="36" y="{{line $i}}">{{$legend}}</text>
{{end}}</svg></g>
{{end}}</svg>
`))

// widget is one of a dashboard's body:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
type widget struct {
	X, Y, Width, Height int
	Properties          struct {
		Title   string
		Metrics [][]any
		Alarms  []string
	}
}

// Legends returns what the widget shows: metrics with their statistics, or
// alarms.
func (w widget) Legends() (all []string) {
	for _, m := range w.Properties.Metrics {
		options := m[len(m)-1].(object)
		switch {
		case options["visible"] == false:
		case options["label"] != nil:
			all = append(all, fmt.Sprint(options["label"]))
		default:
			all = append(all, fmt.Sprint(m[1], " (", options["stat"], ")"))
		}
	}
	return append(all, w.Properties.Alarms...)
}

// TestDashboardPicture: the picture in README shows what the dashboard has.
func TestDashboardPicture(t *testing.T) {
	stack, emf := newStack(), true
	locks := infra.NewLockTable(stack, s("Locks"), &infra.LockTableProps{EMF: &emf})
	locks.Connect(newFunction(stack, "Fn", nil), nil)
	locks.AddAlarms(nil)
	locks.AddDashboard(nil)
	var body strings.Builder
	for _, part := range at(only(t, stack, "AWS::CloudWatch::Dashboard"), "DashboardBody", "Fn::Join").([]any)[1].([]any) {
		switch part := part.(type) {
		case string:
			body.WriteString(part)
		case object: // a reference: that of an alarm, for example to LocksThrottles8FA2F786
			if attribute, ok := part["Fn::GetAtt"].([]any); ok {
				id := strings.TrimPrefix(attribute[0].(string), "Locks")
				body.WriteString(id[:len(id)-len("8FA2F786")])
			}
		}
	}
	var dashboard struct{ Widgets []widget }
	if err := json.Unmarshal([]byte(body.String()), &dashboard); err != nil {
		t.Fatal(err)
	}
	var drawn bytes.Buffer
	if err := picture.Execute(&drawn, dashboard); err != nil {
		t.Fatal(err)
	}
	wantFile(t, "dashboard.svg", drawn.Bytes())
}
