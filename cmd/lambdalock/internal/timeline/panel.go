package timeline

import (
	"math"
	"slices"
)

// Measures of the picture in pixels.
const (
	svgWidth   = 960
	margin     = 24 // inside the card
	panelGap   = 12
	panelPad   = 10 // left and right of the time axis
	titleSize  = 17
	headSize   = 12
	headLeft   = 34   // from a panel's edge to its title
	headHeight = 34   // number and title of a panel
	noHead     = 10   // instead, without phases
	softSize   = 10.5 // times, legend
	axisHeight = 24
	barHeight  = 22
	trackStep  = barHeight + 4
	lineStep   = 15 // from one line of captions to the next
	lanePad    = 7  // above and below a lane's bars
	minPanel   = 220
	minFold    = 44 // holds the time written under it
	iconBar    = 18 // narrowest bar with its icon inside
	iconStep   = 14 // icon and the space after it
	rowGap     = 20
)

// codeCell is the advance of the monospaced 11 px fonts in the style sheet.
const codeCell = 6.65

var svgMetrics = metrics{
	cell: codeCell, minBar: 6, gap: 2, inside: iconStep + 10, clear: 5, leader: 3,
	mark: func(bar float64, _ bool) float64 {
		if bar < iconBar {
			return iconStep
		}
		return 0
	},
	snap: func(x float64) float64 { return math.Round(x*10) / 10 },
}

// Average advances of the system fonts relative to their size, those of the
// widest one, because the reader's font is not known.
const (
	regular  = 0.52
	semibold = 0.6
)

// sansWidth estimates the width of s in a system font.
func sansWidth(s string, size, weight float64) float64 { return float64(cells(s)) * size * weight }

// sansFit is how many cells fit into the width.
func sansFit(width, size, weight float64) int { return int(width / (size * weight)) }

// panel is one scene in the picture.
type panel struct {
	scene
	x, w  float64
	axis  axis
	lanes map[int]lane
}

// panelRow is panels side by side, with the same lanes.
type panelRow struct {
	panels []panel
	lanes  []laneRow
}

// laneRow is one lane through all panels of a row.
type laneRow struct {
	lane   int
	height float64
	tracks int // most tracks in any panel, so that captions align
}

// need is the width in which sc is readable: its title fits, and on the
// busiest lane so do all captions side by side.
func (sc scene) need() float64 {
	w := max(minPanel, sansWidth(sc.title, headSize, semibold)+headLeft+6)
	for _, n := range usedLanes(sc) {
		sum := 2.0 * panelPad
		for _, s := range sc.lane(n) {
			sum += float64(cells(s.caption()))*codeCell + iconStep
		}
		w = max(w, sum)
	}
	for range newAxis(sc, w).folds() {
		w += minFold
	}
	return w
}

// newRows breaks the scenes into rows of panels that fit into the width.
func newRows(scenes []scene, left, width float64) []panelRow {
	needs := make([]float64, len(scenes))
	for i, sc := range scenes {
		needs[i] = min(sc.need(), width)
	}
	var rows []panelRow
	next := 0
	for _, n := range balance(needs, width) {
		rows = append(rows, newRow(scenes[next:next+n], needs[next:next+n], left, width))
		next += n
	}
	return rows
}

// balance returns how many panels go into each row: no more rows than
// necessary, and the fullest row as empty as possible.
func balance(needs []float64, width float64) []int {
	best := pack(needs, width)
	for w := width - 10; w >= slices.Max(needs); w -= 10 {
		counts := pack(needs, w)
		if len(counts) > len(best) {
			break
		}
		best = counts
	}
	return best
}

// pack fills rows of the given width one after the other.
func pack(needs []float64, width float64) []int {
	var counts []int
	room := 0.0
	for _, need := range needs {
		if len(counts) == 0 || need > room {
			counts = append(counts, 0)
			room = width + panelGap
		}
		counts[len(counts)-1]++
		room -= need + panelGap
	}
	return counts
}

// newRow shares the width among panels and lays out their lanes.
func newRow(scenes []scene, needs []float64, left, width float64) panelRow {
	spare := width - float64(len(scenes)-1)*panelGap
	total := 0.0
	for _, need := range needs {
		total += need
	}
	var row panelRow
	x := left
	for i, sc := range scenes {
		p := panel{scene: sc, x: x, w: math.Round(spare * needs[i] / total), lanes: map[int]lane{}}
		if i == len(scenes)-1 {
			p.w = left + width - x
		}
		p.axis = newAxis(sc, p.w-2*panelPad)
		for _, n := range usedLanes(sc) {
			p.lanes[n] = newLane(sc.lane(n), p.axis, svgMetrics)
		}
		row.panels = append(row.panels, p)
		x += p.w + panelGap
	}
	for _, n := range usedLanes(scenes...) {
		row.lanes = append(row.lanes, row.laneRow(n))
	}
	return row
}

// laneRow makes lane n as high as its fullest panel needs it.
func (r panelRow) laneRow(n int) laneRow {
	out := laneRow{lane: n, tracks: 1}
	for _, p := range r.panels {
		out.tracks = max(out.tracks, p.lanes[n].tracks)
	}
	for _, p := range r.panels {
		h := float64(out.tracks*trackStep - trackStep + barHeight + len(p.lanes[n].lines)*lineStep + 2*lanePad)
		if len(p.lanes[n].lines) > 0 {
			h += 2
		}
		out.height = max(out.height, h)
	}
	return out
}

// head is the height of the panels' headings.
func (r panelRow) head() float64 {
	if r.panels[0].number == 0 {
		return noHead
	}
	return headHeight
}

// height is that of the row's panels.
func (r panelRow) height() float64 {
	h := r.head() + axisHeight
	for _, l := range r.lanes {
		h += l.height
	}
	return h
}
