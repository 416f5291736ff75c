package chart

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

// The measures of a chart, in pixels. A page shows it about as wide as it is.
const (
	chartWidth  = 960.0
	chartMargin = 20.0
	headHeight  = 58.0 // title
	lineHeight  = 16.0
	panelHead   = 30.0 // name of the figure and which way it is better
	panelGap    = 28.0
	groupHeight = 26.0
	barStep     = 20.0
	barHeight   = 13.0
	tickHeight  = 40.0
	mostLabel   = 330.0 // width of the labels
	capHeight   = 7.0   // of the ends of a range
)

// The colours, on a background of their own, so that a dark page changes nothing.
const (
	paperColour = "#ffffff"
	edgeColour  = "#d0d7de"
	gridColour  = "#e6e9ed"
	axisColour  = "#8b949e"
	inkColour   = "#1f2328"
	dimColour   = "#59636e"

	ourColour     = "#2f6fd6"
	variantColour = "#9dbff2"
	limitColour   = "#b3b9c1"
	peerColour    = "#e3924a"
)

// barColour tells who a bar belongs to: the service, the service in another way,
// something that does less and shows the limit, or anybody else.
func barColour(system string) string {
	switch system {
	case bench.APISystem:
		return ourColour
	case bench.EachSystem, bench.QuotaSystem, bench.KeyedSystem, bench.UnboundedSystem:
		return variantColour
	case bench.CeilingSystem, bench.ReferenceSystem, bench.CopySystem, bench.CarefulSystem:
		return limitColour
	}
	return peerColour
}

// An svg is a drawing.
type svg struct{ bytes.Buffer }

func (d *svg) add(format string, args ...any) { _, _ = fmt.Fprintf(d, format+"\n", args...) }

// px writes a length, as short as it can be.
func px(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) }

func (d *svg) rect(x, y, width, height float64, colour string) {
	d.add(`<rect x="%s" y="%s" width="%s" height="%s" fill="%s"/>`, px(x), px(y), px(width), px(height), colour)
}

func (d *svg) line(x1, y1, x2, y2 float64, colour string) {
	d.add(`<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s"/>`, px(x1), px(y1), px(x2), px(y2), colour)
}

// text writes a line; class is one of the style's.
func (d *svg) text(x, y float64, class, text string) {
	d.add(`<text x="%s" y="%s" class="%s">%s</text>`, px(x), px(y), class, html.EscapeString(text))
}

// textWidth is about the width of a text, in a font that nobody knows.
func textWidth(text string, size float64) float64 { return 0.62 * size * float64(len([]rune(text))) }

// wrapped breaks a text into lines that fit into the chart.
func wrapped(text string, size float64) (lines []string) {
	for word := range strings.FieldsSeq(text) {
		last := len(lines) - 1
		if last >= 0 && textWidth(lines[last]+" "+word, size) <= chartWidth-2*chartMargin {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// A layout is where things are.
type layout struct {
	*Sheet
	rows   []Row
	notes  []string
	foot   []string
	bars   float64      // left end of the first panel
	width  float64      // of a panel
	head   float64      // top of the panels
	tops   []float64    // of the rows
	groups [][2]float64 // top and bottom
	bottom float64      // of the last row
	height float64
}

func (s *Sheet) layout(panels int) *layout {
	l := &layout{Sheet: s, rows: s.gathered(), notes: wrapped(s.Note, labelSize)}
	l.foot = wrapped("Bars are medians of the rounds, lines reach from the lowest to the highest round. "+s.Source, valueSize)
	l.head = headHeight + lineHeight*float64(len(l.notes))
	y := l.head + panelHead
	widest := 0.0
	for i, row := range l.rows {
		if l.begins(i) {
			y += groupHeight
			l.groups = append(l.groups, [2]float64{y, y})
		}
		l.tops = append(l.tops, y)
		y += barStep
		l.groups[len(l.groups)-1][1] = y
		widest = max(widest, textWidth(row.Label, labelSize))
	}
	l.bars = chartMargin + min(widest, mostLabel) + 10
	l.width = (chartWidth - chartMargin - l.bars - panelGap*float64(panels-1)) / float64(panels)
	l.bottom = y
	l.height = l.bottom + tickHeight + lineHeight*float64(len(l.foot))
	return l
}

// begins reports whether a row is the first one of its group.
func (l *layout) begins(row int) bool { return row == 0 || l.rows[row].Group != l.rows[row-1].Group }

// The sizes of text, in the style too.
const (
	labelSize = 12.0
	valueSize = 11.0
)

// style has fonts of every system. Numbers have a rim of paper, so that lines that
// cross them disturb less.
const style = `<style>
text { font-family: system-ui, -apple-system, "Segoe UI", "Noto Sans", "Liberation Sans", Helvetica, Arial, sans-serif; fill: ` + inkColour + ` }
.title { font-size: 17px; font-weight: 600 }
.note { font-size: 12px; fill: ` + dimColour + ` }
.panel { font-size: 13px; font-weight: 600 }
.group { font-size: 12px; font-weight: 600 }
.label { font-size: 12px; text-anchor: end }
.value { font-size: 11px; paint-order: stroke; stroke: ` + paperColour + `; stroke-width: 3px; stroke-linejoin: round }
.tick { font-size: 10px; fill: ` + dimColour + `; text-anchor: middle }
.hint { font-size: 11px; fill: ` + dimColour + ` }
</style>`

// chart draws the sheet: a panel for each drawn column, side by side, with a bar
// for each row. The same sheet gives the same bytes.
func (s *Sheet) chart() []byte {
	panels := s.Drawn()
	l := s.layout(len(panels))
	d := &svg{}
	d.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-labelledby="title">`,
		px(chartWidth), px(l.height), px(chartWidth), px(l.height))
	d.add(`<title id="title">%s</title>`, html.EscapeString(s.Title))
	d.add("%s", style)
	d.add(`<rect x="0.5" y="0.5" width="%s" height="%s" rx="6" fill="%s" stroke="%s"/>`,
		px(chartWidth-1), px(l.height-1), paperColour, edgeColour)
	d.text(chartMargin, 34, "title", s.Title)
	for i, line := range l.notes {
		d.text(chartMargin, headHeight+lineHeight*float64(i), "note", line)
	}
	l.labels(d)
	for i, column := range panels {
		l.panel(d, column, l.bars+float64(i)*(l.width+panelGap))
	}
	for i, line := range l.foot {
		d.text(chartMargin, l.bottom+tickHeight+lineHeight*float64(i), "hint", line)
	}
	d.add("</svg>")
	return d.Bytes()
}

// labels writes what the rows are.
func (l *layout) labels(d *svg) {
	for i, row := range l.rows {
		if l.begins(i) {
			d.text(chartMargin, l.tops[i]-7, "group", row.Group)
		}
		d.text(l.bars-8, l.tops[i]+barHeight-2, "label", row.Label)
	}
}

// panel draws a column from x on.
func (l *layout) panel(d *svg, column int, x float64) {
	c := l.columns[column]
	highest, room := 0.0, 0.0
	for _, row := range l.rows {
		if v := row.value(column); v != nil {
			highest = max(highest, v.Highest)
			room = max(room, textWidth(stats.Decimal(v.Median, c.decimals), valueSize))
		}
	}
	scale := 0.0
	if highest > 0 {
		scale = (l.width - room - 8) / highest
	}
	d.text(x, l.head+10, "panel", c.title)
	d.text(x, l.head+26, "hint", string(c.drawn))
	l.grid(d, x, scale, highest)
	for i, row := range l.rows {
		if v := row.value(column); v != nil {
			bar(d, x, l.tops[i], scale, v, row.colour(), stats.Decimal(v.Median, c.decimals))
		}
	}
}

func (r *Row) colour() string {
	if r.System == "" {
		return barColour(r.Label)
	}
	return barColour(r.System)
}

// grid draws lines at round numbers, along the bars of each group.
func (l *layout) grid(d *svg, x, scale, highest float64) {
	step := roundStep(highest / 4)
	if step == 0 {
		return
	}
	for i := 0; float64(i)*step*scale <= l.width; i++ {
		at, colour := x+float64(i)*step*scale, gridColour
		if i == 0 {
			colour = axisColour
		}
		for _, group := range l.groups {
			d.line(at, group[0]-4, at, group[1]-3, colour)
		}
		d.text(at, l.bottom+12, "tick", tickText(float64(i)*step))
	}
}

// roundStep returns the smallest of 1, 2 and 5 times a power of ten that is not
// below x, or 0.
func roundStep(x float64) float64 {
	if x <= 0 {
		return 0
	}
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, n := range []float64{1, 2, 5} {
		if n*power >= x {
			return n * power
		}
	}
	return 10 * power
}

func tickText(x float64) string {
	if x >= 1_000 {
		return strconv.FormatFloat(x/1_000, 'g', 4, 64) + "k"
	}
	return strings.TrimPrefix(strconv.FormatFloat(x, 'g', 4, 64), "+")
}

// bar draws a median with its range and its number.
func bar(d *svg, x, y, scale float64, v *stats.Spread, colour, number string) {
	d.rect(x, y, max(v.Median*scale, 0), barHeight, colour)
	end := v.Median
	if len(v.Rounds) > 1 {
		low, high, middle := x+v.Lowest*scale, x+v.Highest*scale, y+barHeight/2
		d.line(low, middle, high, middle, inkColour)
		for _, at := range []float64{low, high} {
			d.line(at, middle-capHeight/2, at, middle+capHeight/2, inkColour)
		}
		end = max(end, v.Highest)
	}
	d.text(x+max(end*scale, 0)+5, y+barHeight-2, "value", number)
}
