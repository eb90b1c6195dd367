package timeline

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode"
)

var hostile = map[string]string{
	"markup":    `</text><script>alert("x")</script>&amp;'`,
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

// hostileDemo is the demo with text put everywhere.
func hostileDemo(text string) Timeline {
	tl := demo()
	tl.Title = text
	tl.Lanes[0], tl.Lanes[2] = text, text
	for i := range tl.Phases {
		tl.Phases[i].Title = text
	}
	for i := range tl.Spans {
		if i%2 == 0 {
			tl.Spans[i].Object = text
		}
		if i%3 == 0 {
			tl.Spans[i].Label = text
		}
	}
	return tl
}

func TestHostileText(t *testing.T) {
	for name, text := range hostile {
		for _, width := range []int{-1, 0, 1, 60, 61, 80, 100, 200} {
			limit := max(width, minWidth)
			if width == 0 {
				limit = defaultWidth
			}
			out := draw(t, func(w io.Writer) error { return hostileDemo(text).Text(w, width, false) })
			for line := range strings.Lines(out) {
				line = strings.TrimSuffix(line, "\n")
				if got := cells(line); got > limit {
					t.Errorf("%s: %d cells, more than %d: %q", name, got, limit, line)
				}
				if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
					t.Errorf("%s: control character in %q", name, line)
				}
			}
		}
	}
}

func TestColorOnlyAddsEscapes(t *testing.T) {
	render := func(color bool) string {
		return draw(t, func(w io.Writer) error { return demo().Text(w, 80, color) })
	}
	var stripped strings.Builder
	for i, part := range strings.Split(render(true), "\x1b[") {
		if i > 0 {
			_, part, _ = strings.Cut(part, "m")
		}
		stripped.WriteString(part)
	}
	if stripped.String() != render(false) {
		t.Errorf("without its escape sequences the coloured text is\n%s", stripped.String())
	}
}

func TestHostileSVG(t *testing.T) {
	hostile["demo"] = "demo"
	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			out := draw(t, hostileDemo(text).SVG)
			checkXML(t, out)
			for _, r := range out {
				if r != '\n' && !unicode.IsPrint(r) {
					t.Errorf("control character %U", r)
				}
			}
		})
	}
}

// checkXML parses the picture and checks that it refers to nothing outside
// and runs nothing.
func checkXML(t *testing.T, out string) {
	t.Helper()
	allowed := map[string]bool{
		"svg": true, "title": true, "desc": true, "style": true, "defs": true, "pattern": true, "rect": true,
		"path": true, "line": true, "circle": true, "text": true, "tspan": true, "g": true,
	}
	d := xml.NewDecoder(strings.NewReader(out))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		start, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		if !allowed[start.Name.Local] {
			t.Errorf("unexpected element %s", start.Name.Local)
		}
		for _, a := range start.Attr {
			if a.Name.Local == "href" || strings.HasPrefix(a.Name.Local, "on") {
				t.Errorf("unexpected attribute %s of %s", a.Name.Local, start.Name.Local)
			}
		}
	}
}

func TestTruncate(t *testing.T) {
	for _, tc := range []struct {
		in   string
		n    int
		want string
	}{
		{"lock", 4, "lock"},
		{"lock", 3, "lo…"},
		{"lock", 1, "…"},
		{"lock", 0, ""},
		{"鍵鍵鍵", 6, "鍵鍵鍵"},
		{"鍵鍵鍵", 5, "鍵鍵…"},
		{"鍵鍵鍵", 4, "鍵…"},
		{"e\u0301e\u0301", 2, "e\u0301e\u0301"},
	} {
		if got := truncate(tc.in, tc.n); got != tc.want {
			t.Errorf("truncate(%q, %d) = %q, want %q", tc.in, tc.n, got, tc.want)
		}
	}
}
