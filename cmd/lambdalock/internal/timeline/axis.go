package timeline

import (
	"fmt"
	"slices"
	"time"
)

// foldAfter is how long nothing may begin or end before that stretch of time
// is folded. Handlers of a demo run for less, so only waiting is folded.
const foldAfter = 700 * time.Millisecond

// axis maps the time of one scene to positions from 0 to width. Between two
// folds it is linear, and every linear piece has the same scale.
type axis struct {
	pieces []piece
	width  float64
	scale  float64 // positions per nanosecond outside folds
}

// piece is the time between two neighbouring events.
type piece struct {
	from, to time.Duration
	x0, x1   float64
	folded   bool
}

// newAxis spreads sc over the width. A folded piece is drawn as if it lasted
// a sixth of all the time that is not folded: enough to be noticed, never
// enough to squeeze the bars.
func newAxis(sc scene, width float64) axis {
	a := axis{width: width}
	times := []time.Duration{sc.start, sc.end}
	for _, s := range sc.spans {
		times = append(times, s.Start, s.End)
	}
	slices.Sort(times)
	times = slices.Compact(times)

	var plain time.Duration
	for i := 1; i < len(times); i++ {
		if d := times[i] - times[i-1]; d <= foldAfter {
			plain += d
		}
	}
	folded := max(plain/6, 100*time.Millisecond)
	var drawn time.Duration
	for i := 1; i < len(times); i++ {
		p := piece{from: times[i-1], to: times[i]}
		// When all there is lasts long, folding it would show nothing else.
		p.folded = plain > 0 && p.to-p.from > foldAfter
		a.pieces = append(a.pieces, p)
		if p.folded {
			drawn += folded
		} else {
			drawn += p.to - p.from
		}
	}
	a.scale = width / float64(drawn)
	x := 0.0
	for i := range a.pieces {
		p := &a.pieces[i]
		d := p.to - p.from
		if p.folded {
			d = folded
		}
		p.x0, p.x1 = x, x+float64(d)*a.scale
		x = p.x1
	}
	return a
}

// at is the position of t, which lies in the scene.
func (a axis) at(t time.Duration) float64 {
	for _, p := range a.pieces {
		if t < p.to {
			return p.x0 + (p.x1-p.x0)*float64(t-p.from)/float64(p.to-p.from)
		}
	}
	return a.width
}

// folds returns the folded pieces.
func (a axis) folds() []piece {
	var out []piece
	for _, p := range a.pieces {
		if p.folded {
			out = append(out, p)
		}
	}
	return out
}

// tick is one written position of an axis.
type tick struct {
	x    float64
	text string
}

// ticks returns round times outside folds, about apart positions or more
// from each other.
func (a axis) ticks(apart float64) []tick {
	step := a.step(apart)
	var out []tick
	for _, p := range a.pieces {
		if p.folded {
			continue
		}
		first := (p.from + step - 1) / step * step
		for t := first; t < p.to; t += step {
			out = append(out, tick{x: a.at(t), text: seconds(t, decimals(step))})
		}
	}
	return out
}

// step is the smallest of 1, 2, 5, 10, 20, 50 … milliseconds that covers the
// distance apart.
func (a axis) step(apart float64) time.Duration {
	for unit := time.Millisecond; ; unit *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if float64(unit*n)*a.scale >= apart {
				return unit * n
			}
		}
	}
}

// decimals is how many places a multiple of step needs in seconds.
func decimals(step time.Duration) int {
	switch {
	case step >= time.Second:
		return 0
	case step >= 100*time.Millisecond:
		return 1
	case step >= 10*time.Millisecond:
		return 2
	}
	return 3
}

// seconds writes d with the given number of decimal places.
func seconds(d time.Duration, places int) string {
	return fmt.Sprintf("%.*f s", places, d.Seconds())
}

// foldText says how much time a fold stands for.
func (p piece) foldText() string { return "≈ " + seconds(p.to-p.from, 1) }
