package timeline

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

const ms = time.Millisecond

var update = flag.Bool("update", false, "write the golden files")

func span(start, end int, k Kind, label, result string) Span {
	return Span{Start: time.Duration(start) * ms, End: time.Duration(end) * ms, Kind: k, Label: label, Result: result}
}

// demo is a recording like the ones the package is made for.
func demo() Timeline {
	killed := span(0, 210, Killed, "handler runs", "killed")
	killed.Lease = 5000 * ms
	return Timeline{
		Title: "Delivered twice, handled once",
		Note:  "Retries come 30 times sooner.",
		Figures: Figures{"5 deliveries of 3 uploads", []string{"handled twice", "overlaps"}, []Row{
			{"without", []int{1, 1}}, {"with the lock", []int{0, 0}},
		}},
		Panels: []Panel{
			{Title: "Twice", Caption: "runs once", Hero: true, Lanes: []Lane{
				{Group: "without", Bad: true, Name: "delivery 1", Spans: []Span{span(0, 400, Overlap, "handler runs", "handled")}},
				{Name: "delivery 2", Spans: []Span{span(100, 500, Overlap, "handler runs", "handled again")}},
				{Group: "with", Name: "delivery 1", Spans: []Span{span(2, 400, Ran, "handler runs", "completed")}},
				{Name: "delivery 2", Spans: []Span{span(100, 102, Refused, "", "held"), span(2102, 2106, Skipped, "", "skipped: completed")}},
			}, Waits: []Wait{{102 * ms, 2102 * ms, "1 min"}}},
			{Title: "Killed", Caption: "taken over", Hero: true, Lanes: []Lane{
				{Name: "delivery 1", Spans: []Span{killed}},
				{Name: "retry", Spans: []Span{span(2210, 2212, Refused, "", "held"), span(6210, 6610, TookOver, "takes over", "completed")}},
			}, Waits: []Wait{{210 * ms, 2210 * ms, "1 min"}}},
			{Title: "The handler fails", Caption: "twice", Bad: true, Lanes: []Lane{
				{Name: "delivery 1", Spans: []Span{span(0, 400, Failed, "handler runs", "fails"), span(2400, 2800, Failed, "handler runs", "fails")}},
			}},
		},
	}
}

// crowded has spans that overlap in one lane, spans of no length, and more
// words than there is room for.
func crowded() Timeline {
	var many []Span
	for i := range 9 {
		many = append(many, span(25*i, 25*i+5, Kind(i%6), "key", fmt.Sprint("n", i)))
	}
	return Timeline{Title: "A crowd", Panels: []Panel{{
		Title:   "A title that is much too long for one line of a terminal, whatever the width of the terminal may be",
		Caption: "all of it", Hero: true, Lanes: []Lane{
			{Name: "env 1", Spans: many},
			{Name: "env 2", Spans: []Span{span(0, 150, Ran, "slow", ""), span(50, 4800, Killed, "slow", "overlaps"), span(4800, 4800, TookOver, "", "")}},
			{Name: "a lane with a long name", Spans: []Span{
				span(10, 4700, Failed, "paused-holder-with-a-very-long-name", "lost its lock"),
				span(4900, 5000, Skipped, strings.Repeat("a-name-so-long-that-no-lane-holds-it-", 5), ""),
			}},
		},
	}, {Title: "Quiet", Caption: "nothing happened"}}}
}

func draw(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b strings.Builder
	expect.Must(t, write(&b))
	return b.String()
}

func (t Timeline) textOf(width int, color bool) func(io.Writer) error {
	return func(w io.Writer) error { return t.Text(w, width, color) }
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(io.Writer) error{
		"demo.html":    demo().HTML,
		"demo.txt":     demo().textOf(80, false),
		"demo-40.txt":  demo().textOf(40, false),
		"color.txt":    demo().textOf(80, true),
		"crowded.html": crowded().HTML,
		"crowded.txt":  crowded().textOf(72, false),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := draw(t, write)
			if strings.HasSuffix(name, ".html") { // without the style, which is that of page.html
				head, rest, _ := strings.Cut(got, "<style>\n:root {")
				_, rest, _ = strings.Cut(rest, "}\n \n#picture:target ~ * { display: none }\n</style>\n")
				got = head + rest
			}
			path := filepath.Join("testdata", name)
			if *update {
				expect.Must(t, os.WriteFile(path, []byte(got), 0o644))
			}
			want := expect.Value(os.ReadFile(path))(t)
			if got != string(want) {
				t.Errorf("differs from %s; run the test with -update and look at the change:\n%s", path, got)
			}
		})
	}
}

// hostile are names that a stranger might give to an object.
var hostile = map[string]string{
	"markup":    `</text><script>alert("x")</script>&amp;'`,
	"attribute": `" onmouseover="alert(1)" x="`,
	"style":     `red;}</style><style>*{display:none`,
	"template":  "{{.Title}}",
	"escape":    "\x1b[31mred\x1b]0;title\x07",
	"newline":   "one\ntwo\r\nthree\ttab\vback\b",
	"long":      strings.Repeat("long ", 200),
	"unbroken":  strings.Repeat("x", 1000),
	"wide":      strings.Repeat("鍵を取る🔒", 40),
	"combining": "\u0301e" + strings.Repeat("\u0301\u0302", 60),
	"bidi":      "a\u202eb\u2066c\u200d\ufeff",
	"selector":  "\u26a0\ufe0f warn",
	"invalid":   "bad\xff\xfe\x00\ufffe\U0010ffff",
	"spaces":    "   ",
	"empty":     "",
}

// hostileDemo is the demo with text everywhere.
func hostileDemo(text string) Timeline {
	tl := demo()
	tl.Title, tl.Note, tl.Figures.Title = text, text, text
	tl.Figures.Names[0], tl.Figures.Rows[0].Name = text, text
	for i := range tl.Panels {
		p := &tl.Panels[i]
		p.Title, p.Caption = text, text
		for n := range p.Waits {
			p.Waits[n].Words = text
		}
		for n := range p.Lanes {
			l := &p.Lanes[n]
			l.Group, l.Name, l.Spans[0].Result = text, text, text
			if n%2 == 0 {
				l.Spans[0].Label = text
			}
		}
	}
	return tl
}

// TestWidth: no line is longer than the terminal is wide, whatever the names,
// and nothing moves the cursor.
func TestWidth(t *testing.T) {
	t.Parallel()
	all := map[string]Timeline{"demo": demo(), "crowded": crowded()}
	for name, text := range hostile {
		all["hostile: "+name] = hostileDemo(text)
	}
	for name, tl := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, width := range []int{-1, 0, 1, 40, 41} {
				checkText(t, draw(t, tl.textOf(width, false)), max(width, minWidth))
			}
			for width := 60; width <= 200; width++ {
				checkText(t, draw(t, tl.textOf(width, false)), width)
			}
		})
	}
}

func checkText(t *testing.T, out string, width int) {
	t.Helper()
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		// Every character is one cell wide: see TestNarrow.
		if n := utf8.RuneCountInString(line); n > width {
			t.Errorf("%d cells, more than %d: %q", n, width, line)
		}
		if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) || unicode.IsMark(r) }); i >= 0 {
			t.Errorf("not printable: %q", line)
		}
	}
}

func TestNarrow(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"cat.png v1": "cat.png v1", "Käse, Ψ, ж": "Käse, Ψ, ж", "✓ ↻ ✕ → ≈": "✓ ↻ ✕ → ≈",
		"鍵": "?", "🔒": "?", "e\u0301": "e?", "\x1b[m": "?[m", "a\nb\tc": "a b c", "\u202e": "?", "\u00ad": "?", "\xff": "?",
	} {
		if got := narrow(in); got != want {
			t.Errorf("narrow(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{{"lock", 4, "lock"}, {"lock", 3, "lo…"}, {"lock", 1, "…"}, {"käse", 3, "kä…"}} {
		if got := truncate(c.in, c.n); got != c.want {
			t.Errorf("truncate(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

// TestHostileHTML: a name adds no element, no attribute and nothing to the
// style.
func TestHostileHTML(t *testing.T) {
	t.Parallel()
	tags := func(page string) []string {
		var all []string
		for _, part := range strings.Split(page, "<")[1:] {
			tag, _, _ := strings.Cut(part, ">")
			// What quotes hold is text.
			for i, piece := range strings.Split(tag, `"`) {
				if i%2 == 0 {
					all = append(all, piece)
				}
			}
		}
		return all
	}
	styleOf := func(page string) string {
		_, style, _ := strings.Cut(page, "<style>")
		style, _, _ = strings.Cut(style, "</style>")
		return style
	}
	harmless := draw(t, hostileDemo("demo").HTML)
	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page := draw(t, hostileDemo(text).HTML)
			if got, want := strings.Join(tags(page), "\n"), strings.Join(tags(harmless), "\n"); got != want {
				t.Errorf("the elements are\n%s\nwant\n%s", got, want)
			}
			if styleOf(page) != styleOf(harmless) || strings.Contains(page, "ZgotmplZ") {
				t.Error("the style differs")
			}
		})
	}
}

// TestPageStandsAlone: it loads nothing and runs nothing.
func TestPageStandsAlone(t *testing.T) {
	t.Parallel()
	page := draw(t, demo().HTML)
	for _, no := range []string{"http:", "https:", "//", "<script", "<link", "@import", "url(", "src=", "href="} {
		if strings.Contains(page, no) {
			t.Errorf("there is %s", no)
		}
	}
	if !strings.Contains(page, "@media (prefers-color-scheme: dark)") {
		t.Error("no dark colours")
	}
}

func TestColorOnlyAddsEscapes(t *testing.T) {
	t.Parallel()
	var stripped strings.Builder
	for i, part := range strings.Split(draw(t, demo().textOf(80, true)), "\x1b[") {
		if i > 0 {
			_, part, _ = strings.Cut(part, "m")
		}
		stripped.WriteString(part)
	}
	if want := draw(t, demo().textOf(80, false)); stripped.String() != want {
		t.Errorf("without its escape sequences the coloured text is\n%s", stripped.String())
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteError(t *testing.T) {
	t.Parallel()
	if err := demo().Text(brokenWriter{}, 0, false); !errors.Is(err, errBroken) {
		t.Errorf("Text returned %v", err)
	}
	if err := demo().HTML(brokenWriter{}); !errors.Is(err, errBroken) {
		t.Errorf("HTML returned %v", err)
	}
}

// TestFigures are described to those who do not see them.
func TestFigures(t *testing.T) {
	t.Parallel()
	page := draw(t, demo().HTML)
	for _, want := range []string{
		`role="img"`,
		`aria-label="without delivery 1: handler runs handled, from 0.000 to 0.400 s;  delivery 2: handler runs handled again, from 0.100 to 0.500 s; with delivery 1:`,
		`<th scope="col">overlaps</th>`, `<th scope="row">without</th><td class="bad">1</td>`, `<td class="good">0</td>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("there is no %s in\n%s", want, page)
		}
	}
}

func TestAxis(t *testing.T) {
	t.Parallel()
	ran := func(from, to int) Span { return span(from, to, Ran, "", "") }
	for name, c := range map[string]struct {
		spans []Span
		waits []Wait
		folds string
		mark  string
		at    map[int]float64
	}{
		"from zero":    {[]Span{ran(100, 400)}, nil, "", "0.4 s at 100", map[int]float64{0: 0, 100: 25, 400: 100, 900: 100}},
		"idle folded":  {[]Span{ran(0, 300), ran(6300, 6600)}, nil, "≈ 6.0 s", "0.3 s at 35", map[int]float64{300: 35, 3300: 50, 6300: 65}},
		"with words":   {[]Span{ran(0, 300), ran(2300, 2600)}, []Wait{{305 * ms, 2299 * ms, "soon"}}, "soon", "0.3 s at 35", nil},
		"two folds":    {[]Span{ran(0, 220), ran(2220, 2440), ran(4440, 4660)}, nil, "≈ 2.0 s ≈ 2.0 s", "0.2 s at 18", map[int]float64{2220: 55./3 + 22.5}},
		"only waiting": {[]Span{ran(2000, 2000)}, nil, "≈ 2.0 s", "1 ms at 70", map[int]float64{2000: 100}},
		"short first":  {[]Span{ran(0, 9), ran(2009, 2309)}, nil, "≈ 2.0 s", " at 0", nil},
		"milliseconds": {[]Span{ran(0, 60)}, nil, "", "60 ms at 100", nil},
		"no time":      {[]Span{ran(0, 0)}, nil, "", "1 ms at 100", map[int]float64{0: 0, 1: 100}},
		"nothing":      {nil, nil, "", "1 ms at 100", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := layout{Panel: Panel{Lanes: []Lane{{Spans: c.spans}}, Waits: c.waits}}
			at := l.axis()
			var words []string
			for _, f := range l.Folds {
				words = append(words, f.Words)
			}
			mark := fmt.Sprintf("%s at %.0f", l.Mark.Words, l.Mark.X)
			if got := strings.Join(words, " "); got != c.folds || mark != c.mark {
				t.Errorf("folds %q, mark %q, want %q, %q", got, mark, c.folds, c.mark)
			}
			for t0, want := range c.at {
				if got := at(time.Duration(t0) * ms); math.Abs(got-want) > 0.2 {
					t.Errorf("%d ms is at %v, want %v", t0, got, want)
				}
			}
		})
	}
}

// TestRoom: there is room behind the axis for what is written at its end.
func TestRoom(t *testing.T) {
	t.Parallel()
	l := newLayout(Panel{Lanes: []Lane{
		{Spans: []Span{span(0, 100, Killed, "", "long, but at the beginning")}},
		{Spans: []Span{span(0, 100, Ran, "", "not the last"), span(500, 600, Ran, "", "the end")}},
	}})
	short := newLayout(Panel{Lanes: []Lane{{Spans: []Span{span(0, 500, Ran, "a label in its bar", ""), span(600, 610, Ran, "a label", "and more")}}}})
	if l.Room != len(" the end ") || short.Room != len(" a label and more ") {
		t.Errorf("%d and %d characters", l.Room, short.Room)
	}
}

// TestLease: that of a dead holder is drawn to its end, or to that of the axis.
func TestLease(t *testing.T) {
	t.Parallel()
	dead := span(0, 100, Killed, "", "")
	for lease, want := range map[int]float64{0: 0, 300: 50, 900: 75} {
		dead.Lease = time.Duration(lease) * ms
		bar := newLayout(Panel{Lanes: []Lane{{Spans: []Span{dead}}, {Spans: []Span{span(300, 400, TookOver, "", "")}}}}).Lanes[0].Bars[0]
		if bar.Width != 25 || bar.Lease != want {
			t.Errorf("until %d ms: %+v", lease, bar)
		}
	}
}

// TestNothingIsCovered draws random panels and checks that all words are there,
// none over others.
func TestNothingIsCovered(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		lanes := make([]Lane, 1+rnd.IntN(3))
		for i := range rnd.IntN(8) {
			lane := &lanes[rnd.IntN(len(lanes))]
			from := rnd.IntN(1000)
			if n := len(lane.Spans); n > 0 {
				from += int(lane.Spans[n-1].End / ms)
			}
			lane.Spans = append(lane.Spans, span(from, from+rnd.IntN(600), Kind(rnd.IntN(7)), fmt.Sprint("label", i), fmt.Sprint("result", i)))
		}
		out := draw(t, Timeline{Panels: []Panel{{Lanes: lanes}}}.textOf(60+rnd.IntN(100), false))
		for _, lane := range lanes {
			for _, s := range lane.Spans {
				if !strings.Contains(out, " "+s.Label+" ") || !strings.Contains(out, " "+s.Result) {
					t.Errorf("no %q in\n%s", s.Words(), out)
				}
			}
		}
	}
}
