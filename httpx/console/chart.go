package console

import (
	"math"
	"slices"
)

// A chart has bars side by side, each a stack of parts. The server draws it as SVG.
type chart struct {
	Label string // the text for screen readers
	Bars  []bar
	Top   string // the value at full height
	Since string // how long ago the first bar is
	Empty bool   // whether all bars are zero
	most  float64
}

// A bar is one bar of a chart.
type bar struct {
	X     int
	Parts []part
	Text  string // for the tooltip and the table
}

// A part is one part of a bar. Parts are stacked from the bottom.
type part struct {
	Class     string // a class of the style sheet
	Height, Y float64
}

// barStep is the distance from bar to bar in the units of the drawing, in which a chart is 100 high.
const barStep = 18

// newChart returns a chart without bars. The value most has full height.
func newChart(label, since, top string, most float64) chart {
	return chart{Label: label, Since: since, Top: top, Empty: true, most: most}
}

// add adds a bar of parts whose heights are values. Any value above zero is visible.
func (c *chart) add(text string, parts ...part) {
	foot := 100.0
	for i := range parts {
		p := &parts[i]
		if p.Height > 0 {
			p.Height, c.Empty = min(max(math.Round(p.Height/c.most*100), 2), foot), false
		}
		foot -= p.Height
		p.Y = foot
	}
	c.Bars = append(c.Bars, bar{len(c.Bars) * barStep, parts, text})
}

// countChart draws how many there were at each time.
func countChart(what, since string, counts []int, at func(i int) string) chart {
	sum, most := 0, max(slices.Max(counts), 1)
	for _, n := range counts {
		sum += n
	}
	c := newChart(what+" in the last "+since+", "+thousands(int64(sum))+" in all", since, thousands(int64(most)), float64(most))
	for i, n := range counts {
		c.add(at(i)+": "+thousands(int64(n)), part{Class: "neutral", Height: float64(n)})
	}
	return c
}

// Width returns the width of the drawing.
func (c chart) Width() int { return len(c.Bars) * barStep }
