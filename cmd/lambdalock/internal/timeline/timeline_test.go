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
)

const ms = time.Millisecond

var update = flag.Bool("update", false, "write the golden files")

func span(env, start, end int, k Kind, object, remark string, fence int64) Span {
	s := Span{Env: env, Start: time.Duration(start) * ms, End: time.Duration(end) * ms, Kind: k, Object: object, Remark: remark, Fence: fence}
	if fence != 0 {
		s.LockStart, s.LockEnd = s.Start, s.End
	}
	return s
}

// demo is a recording like the ones the package is made for.
func demo() Timeline {
	killed := span(1, 0, 210, Killed, "fox.png", "killed", 2)
	killed.LockEnd = 5000 * ms
	return Timeline{
		Title: "One lock per picture",
		Note:  "Retries come 30 times sooner.",
		Verdicts: []Verdict{
			{"Without: 1 overlap.", "1 upload, handled twice.", true},
			{"With: 0 overlaps.", "4 uploads, handled once each.", false},
		},
		Panels: []Panel{
			{Title: "Without a lock", Caption: "runs twice", Bad: true, Spans: []Span{
				span(1, 0, 400, Ran, "cat.png", "", 0), span(2, 100, 500, Ran, "cat.png", "", 0),
			}},
			{Title: "With a lock", Caption: "runs once", Spans: []Span{
				span(1, 2, 400, Ran, "cat.png", "", 1), span(2, 3, 5, Refused, "cat.png", "held", 0),
				span(2, 2005, 2006, Skipped, "cat.png", "skipped", 0),
			}, Waits: []Wait{{5 * ms, 2005 * ms, "1 min as 2 s"}}},
			{Title: "The process dies", Caption: "taken over", Spans: []Span{
				killed, span(2, 2210, 2212, Refused, "fox.png", "held", 0), span(1, 6210, 6610, TookOver, "fox.png", "", 3),
			}, Waits: []Wait{{210 * ms, 2210 * ms, "1 min as 2 s"}}},
			{Title: "The handler fails", Caption: "the retry runs", Spans: []Span{
				span(1, 0, 400, Failed, "bee.png", "fails", 1), span(1, 2400, 2800, Ran, "bee.png", "", 2),
			}},
		},
	}
}

// crowded has spans that overlap in one environment, spans of no length, and
// more captions than there is room for.
func crowded() Timeline {
	p := Panel{Title: "A title that is much too long for one line of a terminal, whatever the width of the terminal may be", Caption: "all of it"}
	for i := range 9 {
		p.Spans = append(p.Spans, span(1, 25*i, 25*i+5, Kind(i%6), "key", fmt.Sprint("n", i), int64(i)))
	}
	p.Spans = append(p.Spans,
		span(2, 0, 150, Ran, "slow", "", 1), span(2, 50, 4800, Killed, "slow", "overlaps", 2), span(2, 4800, 4800, TookOver, "", "", 0),
		span(300, 10, 4700, Failed, "paused-holder-with-a-very-long-name", "lost its lock", 3),
		span(300, 4900, 5000, Skipped, strings.Repeat("a-name-so-long-that-no-lane-holds-it-", 5), "", 0))
	return Timeline{Title: "A crowd", Panels: []Panel{p, {Title: "Quiet", Caption: "nothing happened"}}}
}

func draw(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b strings.Builder
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func (t Timeline) textOf(width int, color bool) func(io.Writer) error {
	return func(w io.Writer) error { return t.Text(w, width, color) }
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(io.Writer) error{
		"demo.html":    demo().HTML,
		"demo.txt":     demo().textOf(100, false),
		"demo-60.txt":  demo().textOf(60, false),
		"color.txt":    demo().textOf(80, true),
		"crowded.html": crowded().HTML,
		"crowded.txt":  crowded().textOf(72, false),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := draw(t, write)
			path := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
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
	tl.Title, tl.Note = text, text
	for i := range tl.Verdicts {
		tl.Verdicts[i].Result, tl.Verdicts[i].Figures = text, text
	}
	for i := range tl.Panels {
		p := &tl.Panels[i]
		p.Title, p.Caption = text, text
		for n := range p.Waits {
			p.Waits[n].Words = text
		}
		for n := range p.Spans {
			if n%2 == 0 {
				p.Spans[n].Object = text
			}
			p.Spans[n].Remark = text
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

func TestAxis(t *testing.T) {
	t.Parallel()
	ran := func(from, to int) Span { return span(1, from, to, Ran, "", "", 0) }
	for name, c := range map[string]struct {
		spans []Span
		waits []Wait
		folds string
		end   string
		at    map[int]float64
	}{
		"from zero":    {[]Span{ran(100, 400)}, nil, "", "0.40 s", map[int]float64{0: 0, 100: .25, 400: 1, 900: 1}},
		"idle folded":  {[]Span{ran(0, 300), ran(6300, 6600)}, nil, "≈ 6.0 s", "6.60 s", map[int]float64{300: .32, 3300: .5, 6300: .68}},
		"with words":   {[]Span{ran(0, 300), ran(2300, 2600)}, []Wait{{305 * ms, 2299 * ms, "soon"}}, "soon", "2.60 s", nil},
		"two folds":    {[]Span{ran(0, 220), ran(2220, 2440), ran(4440, 4660)}, nil, "≈ 2.0 s ≈ 2.0 s", "4.66 s", map[int]float64{2220: .22/1.5 + .28}},
		"only waiting": {[]Span{ran(2000, 2000)}, nil, "≈ 2.0 s", "2.00 s", map[int]float64{2000: 1}},
		"no time":      {[]Span{ran(0, 0)}, nil, "", "0.00 s", map[int]float64{0: 0, 1: 1}},
		"nothing":      {nil, nil, "", "0.00 s", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := layout{Panel: Panel{Spans: c.spans, Waits: c.waits}}
			at := l.axis()
			var words []string
			for _, f := range l.Folds {
				words = append(words, f.Words)
			}
			if got := strings.Join(words, " "); got != c.folds || l.End != c.end {
				t.Errorf("folds %q to %s, want %q to %s", got, l.End, c.folds, c.end)
			}
			for t0, want := range c.at {
				if got := at(time.Duration(t0) * ms); math.Abs(got-want) > 2e-3 {
					t.Errorf("%d ms is at %v, want %v", t0, got, want)
				}
			}
		})
	}
}

// TestNothingIsCovered draws random panels and checks that every caption is
// there, and no bar or caption covers another.
func TestNothingIsCovered(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var p Panel
		for i := range rnd.IntN(8) {
			from := rnd.IntN(3000)
			p.Spans = append(p.Spans, span(1+rnd.IntN(3), from, from+rnd.IntN(600), Kind(rnd.IntN(6)), "k", fmt.Sprint("caption", i), rnd.Int64N(9)))
		}
		out := draw(t, Timeline{Panels: []Panel{p}}.textOf(60+rnd.IntN(100), false))
		l := newLayout(p)
		for _, lane := range l.Lanes {
			for n, b := range lane.Bars {
				if !strings.Contains(out, l.Caption(b)) {
					t.Errorf("no caption %q in\n%s", l.Caption(b), out)
				}
				if n > 0 && lane.Bars[n-1].X1 > b.X0 {
					t.Errorf("bars overlap: %+v", lane)
				}
				if beside := lane.Beside(n); n > 0 && (beside.X0 < lane.Bars[n-1].X1 || lane.Bars[n-1].short() && b.short() && beside.X0 < lane.Beside(n-1).X1) {
					t.Errorf("captions overlap: %+v", lane)
				}
			}
		}
	}
}

// TestLanes: nothing covers the lock of a dead holder, and an environment that
// handles two events at once has two lanes.
func TestLanes(t *testing.T) {
	t.Parallel()
	dead := span(2, 0, 200, Killed, "a", "", 1)
	dead.LockEnd = 5000 * ms
	var got []string
	for _, lane := range newLayout(Panel{Spans: []Span{
		span(2, 6000, 6400, TookOver, "a", "", 2), span(3, 0, 400, Ran, "b", "", 1), dead, span(3, 200, 600, Ran, "c", "", 1),
		span(3, 600, 700, Ran, "d", "", 1), span(2, 2000, 2001, Refused, "a", "", 0),
	}}).Lanes {
		name := lane.Name + ":"
		for _, b := range lane.Bars {
			name += fmt.Sprintf(" %s at %v", b.Object, b.Start)
		}
		got = append(got, name)
	}
	if want := "env 2: a at 0s a at 6s|: a at 2s|env 3: b at 0s d at 600ms|: c at 200ms"; strings.Join(got, "|") != want {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "|"), want)
	}
}

func TestOverlaps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		second Span
		want   bool
	}{
		"same object":    {span(2, 300, 500, Ran, "a", "", 0), true},
		"killed":         {span(2, 300, 500, Killed, "a", "", 0), true},
		"another object": {span(2, 300, 500, Ran, "b", "", 0), false},
		"afterwards":     {span(2, 400, 500, Ran, "a", "", 0), false},
		"did not run":    {span(2, 300, 500, Refused, "a", "", 0), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, lane := range newLayout(Panel{Spans: []Span{span(1, 0, 400, Ran, "a", "", 0), c.second}}).Lanes {
				if got := len(lane.Bars[0].Overlaps) == 1; got != c.want {
					t.Errorf("%s: %v", lane.Name, lane.Bars[0].Overlaps)
				}
			}
		})
	}
}
