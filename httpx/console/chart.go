package console

import "slices"

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
	Y, Height int
}

// Sizes of charts in the units of the drawing.
const (
	chartHeight = 100
	barStep     = 18 // from bar to bar
)

// A value is the height of a part before the scale of the chart is known.
type value struct {
	class  string
	amount float64
}

// newChart returns a chart without bars. The value most has full height.
func newChart(label, since, top string, most float64) chart {
	return chart{Label: label, Since: since, Top: top, Empty: true, most: most}
}

// add adds a bar. Any value above zero is visible.
func (c *chart) add(text string, values ...value) {
	b := bar{X: len(c.Bars) * barStep, Text: text}
	foot := chartHeight
	for _, v := range values {
		if v.amount <= 0 {
			continue
		}
		height := min(max(int(v.amount/c.most*chartHeight+0.5), 2), foot)
		foot -= height
		b.Parts = append(b.Parts, part{Class: v.class, Y: foot, Height: height})
		c.Empty = false
	}
	c.Bars = append(c.Bars, b)
}

// countChart draws how many there were at each time.
func countChart(what, since string, counts []int, at func(i int) string) chart {
	sum, most := 0, max(slices.Max(counts), 1)
	for _, n := range counts {
		sum += n
	}
	c := newChart(what+" in the last "+since+", "+thousands(int64(sum))+" in all", since, thousands(int64(most)), float64(most))
	for i, n := range counts {
		c.add(at(i)+": "+thousands(int64(n)), value{"neutral", float64(n)})
	}
	return c
}

// Width returns the width of the drawing.
func (c chart) Width() int { return len(c.Bars) * barStep }
