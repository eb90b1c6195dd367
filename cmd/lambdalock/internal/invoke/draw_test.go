package invoke

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

func TestWidth(t *testing.T) {
	for name, c := range map[string]struct {
		flag    int
		columns string
		want    int
	}{
		"flag":                    {70, "90", 70},
		"COLUMNS":                 {0, "90", 90},
		"COLUMNS makes no sense":  {0, "-1", 80},
		"no terminal, no COLUMNS": {0, "", 80},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("COLUMNS", c.columns)
			out := expect.Value(os.Create(filepath.Join(t.TempDir(), "out")))(t)
			defer func() { _ = out.Close() }()
			if got := (drawing{Width: c.flag}).width(out); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

// TestUnreadTimeline: the page is written though nobody reads the terminal's
// text to its end, as with head.
func TestUnreadTimeline(t *testing.T) {
	t.Parallel()
	reader, out, err := os.Pipe()
	expect.Must(t, err)
	defer func() { _ = out.Close() }()
	expect.Must(t, reader.Close())
	r := newReport(io.Discard, []*event{messages("a")}, false)
	r.drawn = 1
	var page strings.Builder
	if err := r.draw(out, &page, &Command{HTML: "page.html"}); err == nil {
		t.Error("the text was written")
	}
	if !strings.Contains(page.String(), "</html>") {
		t.Errorf("the page has %q", page.String())
	}
}
