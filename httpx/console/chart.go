package console

import (
	"fmt"
	"slices"
)

// A chart has bars side by side, each a stack of parts. The server draws it as SVG.
type chart struct {
	Label string // the text for screen readers
	Bars  []bar
	Top   string // the value at full height
	Since string // how long ago the first bar is
	Empty bool   // whether all bars are zero
	Width int
}

// A bar is one bar of a chart.
type bar struct {
	X, Width int
	Parts    []part
	Text     string // for the tooltip and the table
}

// A part is one part of a bar. Parts are stacked from the bottom.
type part struct {
	Class     string // a class of the style sheet
	Y, Height int
}

// Sizes of charts in their own units.
const (
	chartHeight = 100
	barWidth    = 14
	barGap      = 4
)

// A value is the height of a part before the scale of the chart is known.
type value struct {
	class  string
	amount float64
}

// newChart draws bars. Any value above zero is visible.
func newChart(label string, top float64, rows [][]value, texts []string) chart {
	c := chart{Label: label, Since: "24 hours", Empty: true, Width: len(rows) * (barWidth + barGap)}
	for i, row := range rows {
		b := bar{X: i * (barWidth + barGap), Width: barWidth, Text: texts[i]}
		foot := chartHeight
		for _, v := range row {
			if v.amount <= 0 || top <= 0 {
				continue
			}
			height := min(max(int(v.amount/top*chartHeight+0.5), 2), foot)
			foot -= height
			b.Parts = append(b.Parts, part{Class: v.class, Y: foot, Height: height})
			c.Empty = false
		}
		c.Bars = append(c.Bars, b)
	}
	return c
}

// countChart draws how many there were at each time.
func countChart(what, since string, counts []int, at func(i int) string) chart {
	var rows [][]value
	var texts []string
	sum, most := 0, max(slices.Max(counts), 1)
	for i, n := range counts {
		sum += n
		rows = append(rows, []value{{"neutral", float64(n)}})
		texts = append(texts, at(i)+": "+thousands(int64(n)))
	}
	c := newChart(what+" in the last "+since+", "+thousands(int64(sum))+" in all", float64(most), rows, texts)
	c.Top, c.Since = thousands(int64(most)), since
	return c
}

// Bottom returns the y coordinate of the baseline.
func (chart) Bottom() int { return chartHeight }

// ViewBox returns the size of the drawing.
func (c chart) ViewBox() string { return fmt.Sprintf("0 -4 %d %d", max(c.Width, 1), chartHeight+6) }
