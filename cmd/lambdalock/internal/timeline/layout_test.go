package timeline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// crowded has overlapping spans, spans of no length, a long one across a fold
// and more captions than there is room for.
func crowded() Timeline {
	tl := Timeline{
		Title:  "A crowd",
		Lanes:  []string{"one", "two", "three, with a long name"},
		Phases: []Phase{{0, "A title that is much too long for the panel in which it has to stand, whatever the width of the page may be, so it is cut"}},
		Length: 5 * time.Second,
	}
	for i := range 9 {
		from := time.Duration(i) * 25 * ms
		tl.Spans = append(tl.Spans, Span{1, from, from + 5*ms, Kind(i % 6), "key", fmt.Sprint("n", i), int64(i)})
	}
	return Timeline{tl.Title, tl.Lanes, append(tl.Spans,
		Span{2, 0, 150 * ms, Ran, "slow", "", 1},
		Span{2, 50 * ms, 4800 * ms, Killed, "slow", "overlaps", 2},
		Span{2, 4800 * ms, 4800 * ms, TookOver, "", "", 0},
		Span{3, 10 * ms, 4700 * ms, Failed, "paused-holder-with-a-very-long-name", "lost its lock", 3},
		Span{3, 4900 * ms, 5000 * ms, Skipped, "a-name-so-long-that-no-panel-of-any-width-could-ever-hold-it-in-one-line-of-text-" +
			"however-small-the-letters-are-and-however-wide-the-page", "", 0},
	), tl.Phases, tl.Length}
}

func TestAxis(t *testing.T) {
	span := func(from, to int) Span {
		return Span{Lane: 1, Start: time.Duration(from) * ms, End: time.Duration(to) * ms}
	}
	for name, tc := range map[string]struct {
		spans []Span
		end   int
		folds int
		at    map[int]float64
	}{
		"linear":       {[]Span{span(0, 400)}, 1000, 0, map[int]float64{0: 0, 400: 40, 1000: 100}},
		"idle folded":  {[]Span{span(0, 300), span(6300, 6600)}, 6600, 1, map[int]float64{300: 100 * 3 / 7., 3300: 50, 6300: 100 * 4 / 7.}},
		"only waiting": {[]Span{span(0, 2000)}, 4000, 0, map[int]float64{2000: 50}},
		"no time":      {[]Span{span(0, 0)}, 1, 0, map[int]float64{0: 0, 1: 100}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAxis(scene{end: time.Duration(tc.end) * ms, spans: tc.spans}, 100)
			if got := len(a.folds()); got != tc.folds {
				t.Errorf("%d folds, want %d", got, tc.folds)
			}
			for at, want := range tc.at {
				if got := a.at(time.Duration(at) * ms); math.Abs(got-want) > 1e-6 {
					t.Errorf("%d ms is at %v, want %v", at, got, want)
				}
			}
		})
	}
}

func TestTicks(t *testing.T) {
	for name, tc := range map[string]struct {
		length time.Duration
		want   string
	}{
		"milliseconds": {9 * ms, "[0.000 s 0.002 s 0.004 s 0.006 s 0.008 s]"},
		"hundredths":   {90 * ms, "[0.00 s 0.02 s 0.04 s 0.06 s 0.08 s]"},
		"tenths":       {650 * ms, "[0.0 s 0.2 s 0.4 s 0.6 s]"},
		"seconds":      {4500 * ms, "[0 s 1 s 2 s 3 s 4 s]"},
		"minutes":      {2 * time.Minute, "[0 s 50 s 100 s]"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, tick := range newAxis(scene{end: tc.length}, 100).ticks(20) {
				got = append(got, tick.text)
			}
			if fmt.Sprint(got) != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestNoOverlap draws random lanes and checks that nothing covers anything.
func TestNoOverlap(t *testing.T) {
	for name, m := range map[string]metrics{"text": textMetrics, "svg": svgMetrics} {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(1, 2))
			for range 500 {
				tl := Timeline{Lanes: []string{"a"}}
				for range rnd.IntN(12) {
					from := time.Duration(rnd.IntN(3000)) * ms
					tl.Spans = append(tl.Spans, Span{
						Lane: 1, Start: from, End: from + time.Duration(rnd.IntN(600))*ms,
						Object: "lock.png"[:rnd.IntN(9)], Label: "a longer label"[:rnd.IntN(14)], Fence: rnd.Int64N(9),
					})
				}
				scenes, err := tl.scenes()
				if err != nil {
					t.Fatal(err)
				}
				a := newAxis(scenes[0], math.Round((50+rnd.Float64()*100)*m.cell))
				checkLane(t, newLane(scenes[0].spans, a, m), a, m)
			}
		})
	}
}

func checkLane(t *testing.T, l lane, a axis, m metrics) {
	t.Helper()
	rows := map[string]line{}
	claim := func(row string, x0, x1 float64, what string) {
		if x0 < -1e-6 || x1 > a.width+1e-6 {
			t.Errorf("%s of %+v is outside the axis", what, l)
		}
		if !rows[row].free(x0+1e-6, x1-1e-6) {
			t.Errorf("%s at %v overlaps in %s of %+v", what, x0, row, l)
		}
		rows[row] = append(rows[row], interval{x0, x1})
	}
	for _, b := range l.bars {
		track := fmt.Sprint("track ", b.track)
		claim(track, b.x0, b.x1, "bar")
		w := float64(cells(b.caption)) * m.cell
		switch b.spot {
		case inside:
			if w+m.inside > b.x1-b.x0 {
				t.Errorf("caption %q is wider than its bar", b.caption)
			}
		case beside:
			claim(track, b.textX, b.textX+w+m.mark(b.x1-b.x0, false), "caption")
		case below:
			claim(fmt.Sprint("line ", b.line), b.textX, b.textX+w+m.mark(b.x1-b.x0, true), "caption")
		}
	}
}

func TestBalance(t *testing.T) {
	for _, tc := range []struct {
		needs []float64
		want  string
	}{
		{[]float64{300}, "[1]"},
		{[]float64{900}, "[1]"},
		{[]float64{280, 280, 280, 280}, "[2 2]"},
		{[]float64{280, 280, 280, 280, 280, 280, 280}, "[3 3 1]"},
		{[]float64{280, 280, 280, 280, 280, 320, 320}, "[3 2 2]"},
	} {
		if got := fmt.Sprint(balance(tc.needs, 900)); got != tc.want {
			t.Errorf("balance(%v) = %s, want %s", tc.needs, got, tc.want)
		}
	}
}
