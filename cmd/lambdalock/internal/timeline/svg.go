package timeline

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// maxLaneName is the widest name of a lane in cells.
const maxLaneName = 16

// SVG writes t as a self-contained picture, 960 pixels wide, that is readable
// on light and dark backgrounds and without telling colours apart.
func (t Timeline) SVG(w io.Writer) error {
	scenes, err := t.scenes()
	if err != nil {
		return err
	}
	names := make([]string, len(t.Lanes))
	left := float64(margin)
	for i, name := range t.Lanes {
		names[i] = truncate(clean(name), maxLaneName)
		left = max(left, margin+sansWidth(names[i], headSize, semibold)+14)
	}

	var body drawing
	y := float64(margin)
	note := t.summary()
	room := svgWidth - 3*margin - sansWidth(note, softSize, regular)
	body.text("title", margin, y+14, truncate(clean(t.Title), sansFit(room, titleSize, semibold)))
	body.printf(`<text class="soft" x="%d" y="%s" text-anchor="end">%s</text>`+"\n", svgWidth-margin, px(y+14), esc(note))
	y += 34
	for _, row := range newRows(scenes, left, svgWidth-margin-left) {
		body.row(row, names, y)
		y += row.height() + rowGap
	}
	height := body.legend(scenes, y) + margin

	var out drawing
	out.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%s" viewBox="0 0 %d %s" role="img" aria-labelledby="title desc">`+"\n",
		svgWidth, px(height), svgWidth, px(height))
	out.printf("<title id=\"title\">%s</title>\n", esc(clean(t.Title)))
	out.printf("<desc id=\"desc\">%s</desc>\n", esc(describe(scenes)))
	out.printf("<style>%s</style>\n%s", svgStyle, svgDefs)
	out.printf(`<rect class="card" x="0.5" y="0.5" width="%d" height="%s" rx="12"/>`+"\n", svgWidth-1, px(height-1))
	out.WriteString(body.String())
	out.WriteString("</svg>\n")
	_, err = io.WriteString(w, out.String())
	return err
}

// describe puts the picture into words.
func describe(scenes []scene) string {
	var b strings.Builder
	for _, sc := range scenes {
		if sc.number > 0 {
			fmt.Fprintf(&b, "%d. %s: ", sc.number, sc.title)
		}
		for i, s := range sc.spans {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(s.Kind.String())
			if c := s.caption(); c != "" {
				b.WriteString(" " + truncate(c, 60))
			}
		}
		b.WriteString(". ")
	}
	return strings.TrimSpace(b.String())
}

// drawing collects the elements of a picture.
type drawing struct{ strings.Builder }

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(d, format, args...) }

func (d *drawing) text(class string, x, y float64, s string) {
	d.printf(`<text class="%s" x="%s" y="%s">%s</text>`+"\n", class, px(x), px(y), esc(s))
}

func (d *drawing) centered(class string, x, y float64, s string) {
	d.printf(`<text class="%s" x="%s" y="%s" text-anchor="middle">%s</text>`+"\n", class, px(x), px(y), esc(s))
}

func (d *drawing) line(class string, x0, y0, x1, y1 float64) {
	d.printf(`<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`+"\n", class, px(x0), px(y0), px(x1), px(y1))
}

// row draws panels side by side, with the names of their lanes at the left.
func (d *drawing) row(r panelRow, names []string, y float64) {
	bottom := y + r.height() - axisHeight
	for _, p := range r.panels {
		d.panel(p, r, y, bottom)
	}
	top := y + r.head()
	for i, l := range r.lanes {
		end := r.panels[len(r.panels)-1]
		if i > 0 {
			d.line("lane", margin, top, end.x+end.w, top)
		}
		d.text("name", margin, top+lanePad+barHeight/2+4, names[l.lane-1])
		for _, p := range r.panels {
			d.lane(p, l, top)
		}
		top += l.height
	}
}

// panel draws everything of a scene that stands behind the bars.
func (d *drawing) panel(p panel, r panelRow, y, bottom float64) {
	d.printf(`<rect class="panel" x="%s" y="%s" width="%s" height="%s" rx="6"/>`+"\n", px(p.x), px(y), px(p.w), px(r.height()))
	if p.number > 0 {
		d.line("rule", p.x, y+4, p.x, bottom+axisHeight-4)
		d.printf(`<circle class="badge" cx="%s" cy="%s" r="9"/>`+"\n", px(p.x+18), px(y+17))
		d.centered("number", p.x+18, y+21, strconv.Itoa(p.number))
		d.text("head", p.x+headLeft, y+21.5, truncate(p.title, sansFit(p.w-headLeft-6, headSize, semibold)))
	}
	if len(p.spans) == 0 {
		d.text("soft", p.x+panelPad, bottom+axisHeight-10, "nothing happened")
		return
	}
	d.axis(p, y+r.head(), bottom)
}

// axis draws the folds and the ticks of a panel's time, from top to bottom,
// and writes their times below.
func (d *drawing) axis(p panel, top, bottom float64) {
	left := p.x + panelPad
	var taken line
	write := func(x float64, s string) bool {
		w := sansWidth(s, softSize, regular)
		if !taken.free(x-w/2, x+w/2) || x-w/2 < p.x || x+w/2 > p.x+p.w {
			return false
		}
		taken = append(taken, interval{x - w/2 - 6, x + w/2 + 6})
		d.centered("soft", x, bottom+16, s)
		return true
	}
	for _, f := range p.axis.folds() {
		d.printf(`<rect class="fold" x="%s" y="%s" width="%s" height="%s"/>`+"\n",
			px(left+f.x0), px(top), px(f.x1-f.x0), px(bottom-top))
		for _, x := range []float64{left + f.x0, left + f.x1} {
			d.line("wave", x, top, x, bottom+3)
		}
		write(left+(f.x0+f.x1)/2, f.foldText())
	}
	for _, t := range p.axis.ticks(52) {
		x := left + t.x
		if write(x, t.text) {
			d.line("grid", x, top, x, bottom)
			d.line("tick", x, bottom, x, bottom+4)
		}
	}
	d.line("tick", left, bottom, left+p.axis.width, bottom)
}

// lane draws the bars of one lane in one panel.
func (d *drawing) lane(p panel, r laneRow, y float64) {
	l := p.lanes[r.lane]
	top := y + lanePad
	under := top + float64(r.tracks*trackStep-trackStep+barHeight)
	// All leaders come first, so that none is drawn over a caption.
	for _, b := range l.bars {
		if b.spot == below && b.line > 0 {
			x := p.x + panelPad + b.leader + svgMetrics.leader/2
			d.line("leader", x, top+float64(b.track*trackStep+barHeight), x, under+float64(b.line*lineStep+4))
		}
	}
	for _, b := range l.bars {
		d.bar(b, p, top+float64(b.track*trackStep), under)
	}
}

// bar draws one span at the height y; under is where the captions begin.
func (d *drawing) bar(b bar, p panel, y, under float64) {
	look := svgLooks[b.Kind]
	left := p.x + panelPad
	x, w := left+b.x0, b.x1-b.x0
	d.printf(`<g class="%s"><title>%s</title>`+"\n", look.class, esc(tooltip(b.Span)))
	d.shape(b.Kind, x, y, w, barHeight)
	for _, f := range p.axis.folds() {
		if mid := (f.x0 + f.x1) / 2; mid > b.x0 && mid < b.x1 {
			d.notches(left+mid, y)
		}
	}
	mid := y + barHeight/2
	if w >= iconBar {
		d.icon(b.Kind, "in icon", x+min(5, (w-12)/2), mid-6)
	}
	switch b.spot {
	case inside:
		d.caption(b.Span, b.caption, "in code", x+5+iconStep, mid+4)
	case beside:
		d.outside(b, left+b.textX, mid)
	case below:
		d.outside(b, left+b.textX, under+float64(b.line*lineStep)+10)
	}
	d.WriteString("</g>\n")
}

// outside writes b's caption next to or under its bar, after the icon if
// that does not fit into the bar.
func (d *drawing) outside(b bar, x, mid float64) {
	if b.x1-b.x0 < iconBar {
		d.icon(b.Kind, "icon", x, mid-6)
		x += iconStep
	}
	d.caption(b.Span, b.caption, "halo code", x, mid+4)
}

// caption writes a caption with the lock's name emphasised.
func (d *drawing) caption(s Span, caption, class string, x, y float64) {
	lock := strings.Join(strings.Fields(clean(s.Object)), " ")
	rest, whole := strings.CutPrefix(caption, lock)
	if !whole { // cut within the lock's name
		lock, rest = caption, ""
	}
	d.printf(`<text class="%s" x="%s" y="%s"><tspan class="lock">%s</tspan>%s</text>`+"\n",
		class, px(x), px(y), esc(lock), esc(rest))
}

// shape draws a bar's outline: ragged at the end if the process died there,
// with a thick edge where a dead holder's lock was taken over.
func (d *drawing) shape(k Kind, x, y, w, h float64) {
	if k == Killed {
		tooth := min(5, w/2)
		d.printf(`<path class="bar" d="M%s %sH%sL%s %sL%s %sL%s %sL%s %sH%sZ"/>`+"\n", px(x), px(y),
			px(x+w), px(x+w-tooth), px(y+h/4), px(x+w), px(y+h/2), px(x+w-tooth), px(y+3*h/4), px(x+w), px(y+h), px(x))
		return
	}
	d.printf(`<rect class="bar" x="%s" y="%s" width="%s" height="%s" rx="%s"/>`+"\n", px(x), px(y), px(w), px(h), px(min(4, w/3)))
	if k == TookOver {
		d.printf(`<rect class="edge" x="%s" y="%s" width="4" height="%s" rx="1.5"/>`+"\n", px(x), px(y), px(h))
	}
}

// notches marks, at a bar's edges, that time is folded behind it.
func (d *drawing) notches(x, y float64) {
	d.printf(`<path class="notch" d="M%s %sh8l-4 5zM%s %sh8l-4 -5z"/>`+"\n",
		px(x-4), px(y-1), px(x-4), px(y+barHeight+1))
}

func (d *drawing) icon(k Kind, class string, x, y float64) {
	d.printf(`<path class="%s" transform="translate(%s %s)" d="%s"/>`+"\n", class, px(x), px(y), svgLooks[k].icon)
}

// legend explains what occurs in the scenes and returns where it ends.
func (d *drawing) legend(scenes []scene, y float64) float64 {
	x := float64(margin)
	item := func(text string, sample func(x, y float64)) {
		w := 34 + sansWidth(text, softSize, regular)
		if x > margin && x+w > svgWidth-margin {
			x, y = margin, y+24
		}
		sample(x, y)
		d.text("soft", x+34, y+13, text)
		x += w + 16
	}
	kinds := usedKinds(scenes)
	if len(kinds) == 0 {
		return y - rowGap
	}
	for _, k := range kinds {
		item(svgLooks[k].meaning, func(x, y float64) {
			d.printf(`<g class="%s">`+"\n", svgLooks[k].class)
			d.shape(k, x, y, 28, 18)
			d.icon(k, "in icon", x+8, y+3)
			d.WriteString("</g>\n")
		})
	}
	for _, sc := range scenes {
		if len(newAxis(sc, svgWidth).folds()) > 0 {
			item("≈ long wait, folded", func(x, y float64) {
				d.printf(`<rect class="fold" x="%s" y="%s" width="28" height="18"/>`+"\n", px(x), px(y))
				d.line("wave", x, y, x, y+18)
				d.line("wave", x+28, y, x+28, y+18)
			})
			break
		}
	}
	return y + 18
}

// tooltip says everything about a span.
func tooltip(s Span) string {
	text := fmt.Sprintf("%s: %s to %s", s.Kind, clock(s.Start), clock(s.End))
	if c := s.caption(); c != "" {
		text = truncate(c, 120) + " — " + text
	}
	return text
}

// px writes a coordinate to a tenth of a pixel.
func px(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

// esc escapes a cleaned text for XML.
func esc(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder never fails
	return b.String()
}
