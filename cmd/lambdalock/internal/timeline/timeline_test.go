package timeline

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

// demo is a recording like the ones the package is made for.
func demo() Timeline {
	span := func(lane, start, length int, k Kind, object, label string, fence int64) Span {
		from := time.Duration(start) * ms
		return Span{lane, from, from + time.Duration(length)*ms, k, object, label, fence}
	}
	return Timeline{
		Title:  "One lock per picture: what four Lambda environments did",
		Lanes:  []string{"env 1", "env 2", "env 3", "env 4"},
		Length: 17200 * ms,
		Phases: []Phase{
			{0, "Four uploads, four environments"},
			{1000 * ms, "Two events for the same picture"},
			{2600 * ms, "The same event is delivered twice"},
			{4000 * ms, "An older event arrives late"},
			{5200 * ms, "The handler fails and is retried"},
			{7000 * ms, "A holder dies, another takes over"},
			{15400 * ms, "Everything at once"},
		},
		Spans: []Span{
			span(1, 20, 420, Ran, "cat.png", "v1", 1),
			span(2, 45, 510, Ran, "dog.png", "v1", 1),
			span(3, 60, 380, Ran, "owl.png", "v1", 1),
			span(4, 90, 600, Ran, "fox.png", "v1", 1),
			span(1, 1030, 560, Ran, "cat.png", "v2", 2),
			span(2, 1080, 45, Refused, "cat.png", "v3", 0),
			span(2, 1380, 40, Refused, "cat.png", "v3", 0),
			span(3, 1750, 480, Ran, "cat.png", "v3", 3),
			span(2, 2650, 400, Ran, "dog.png", "v2", 2),
			span(4, 3200, 60, Skipped, "dog.png", "duplicate", 0),
			span(1, 3330, 40, Skipped, "dog.png", "duplicate", 0),
			span(3, 4050, 380, Ran, "owl.png", "v3", 2),
			span(1, 4600, 70, Skipped, "owl.png", "v2 is stale", 0),
			span(4, 5230, 210, Failed, "fox.png", "v2 disk full", 2),
			span(4, 5900, 420, Ran, "fox.png", "v2 retry", 3),
			span(1, 7040, 330, Killed, "cat.png", "v4", 4),
			span(2, 7700, 42, Refused, "cat.png", "v4", 0),
			span(3, 9650, 40, Refused, "cat.png", "v4", 0),
			span(2, 13700, 480, TookOver, "cat.png", "v4", 5),
			span(1, 15430, 300, Ran, "cat.png", "v5", 6),
			span(2, 15440, 52, Refused, "cat.png", "v6", 0),
			span(2, 15520, 340, Ran, "dog.png", "v3", 3),
			span(3, 15450, 48, Skipped, "owl.png", "duplicate", 0),
			span(3, 15530, 41, Skipped, "fox.png", "duplicate", 0),
			span(3, 15600, 200, Failed, "owl.png", "v4", 3),
			span(4, 15760, 410, Ran, "cat.png", "v6", 7),
		},
	}
}

var update = flag.Bool("update", false, "write the golden files")

func draw(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b strings.Builder
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	bare := demo()
	bare.Phases, bare.Spans, bare.Length = nil, bare.Spans[4:8], 2300*ms
	text := func(tl Timeline, width int, color bool) func(io.Writer) error {
		return func(w io.Writer) error { return tl.Text(w, width, color) }
	}
	for name, write := range map[string]func(io.Writer) error{
		"demo.svg":       demo().SVG,
		"demo.txt":       text(demo(), 0, false),
		"demo-60.txt":    text(demo(), 60, false),
		"bare-color.txt": text(bare, 80, true),
		"bare.svg":       bare.SVG,
		"crowded.svg":    crowded().SVG,
		"crowded.txt":    text(crowded(), 72, false),
		"empty.svg":      Timeline{Phases: []Phase{{0, "Quiet"}}}.SVG,
		"empty.txt":      text(Timeline{Title: "Empty"}, 60, false),
	} {
		t.Run(name, func(t *testing.T) {
			got := draw(t, write)
			if again := draw(t, write); again != got {
				t.Error("a second drawing of the same timeline differs")
			}
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

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		span Span
		want string
	}{
		"lane zero":       {Span{}, "lane 0 of 2"},
		"lane too high":   {Span{Lane: 3}, "lane 3 of 2"},
		"end before":      {Span{Lane: 1, Start: 2 * ms, End: ms}, "before its start"},
		"unknown kind":    {Span{Lane: 1, Kind: TookOver + 1}, "unknown kind 6"},
		"impossible kind": {Span{Lane: 1, Kind: -1}, "unknown kind -1"},
	} {
		t.Run(name, func(t *testing.T) {
			tl := Timeline{Lanes: []string{"a", "b"}, Spans: []Span{tc.span}}
			for _, err := range []error{tl.Text(io.Discard, 0, false), tl.SVG(io.Discard)} {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got error %v, want one with %q", err, tc.want)
				}
			}
		})
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteError(t *testing.T) {
	if err := demo().Text(brokenWriter{}, 0, false); !errors.Is(err, errBroken) {
		t.Errorf("Text returned %v", err)
	}
	if err := demo().SVG(brokenWriter{}); !errors.Is(err, errBroken) {
		t.Errorf("SVG returned %v", err)
	}
}

func TestKindString(t *testing.T) {
	if got := TookOver.String(); got != "took over" {
		t.Errorf("got %q", got)
	}
	if got := Kind(9).String(); got != "Kind(9)" {
		t.Errorf("got %q", got)
	}
}

func TestSummary(t *testing.T) {
	for want, tl := range map[string]Timeline{
		"1 environment, 2.5 s":   {Lanes: make([]string, 1), Length: 2500 * ms},
		"12 environments, 0.0 s": {Lanes: make([]string, 12)},
	} {
		if got := tl.summary(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestScenes(t *testing.T) {
	tl := Timeline{
		Lanes:  []string{"a"},
		Length: 900 * ms,
		Phases: []Phase{{600 * ms, "last"}, {100 * ms, "first"}, {500 * ms, "middle"}},
		Spans: []Span{
			{Lane: 1, Start: 550 * ms, End: 640 * ms},
			{Lane: 1, Start: 50 * ms, End: 80 * ms},
			{Lane: 1, Start: 500 * ms, End: 520 * ms},
		},
	}
	scenes, err := tl.scenes()
	if err != nil {
		t.Fatal(err)
	}
	want := []scene{
		{1, "first", 50 * ms, 80 * ms, []Span{tl.Spans[1]}},
		{2, "middle", 500 * ms, 640 * ms, []Span{tl.Spans[2], tl.Spans[0]}},
		{3, "last", 600 * ms, 900 * ms, nil},
	}
	if !reflect.DeepEqual(scenes, want) {
		t.Errorf("got  %v\nwant %v", scenes, want)
	}
	if tl.Phases[0].Title != "last" || tl.Spans[0].Start != 550*ms {
		t.Error("the caller's slices were reordered")
	}
}
