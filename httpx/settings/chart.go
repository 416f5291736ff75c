package settings

import "fmt"

// A chart is bars side by side, each of parts that stand on each other, drawn by the
// server as SVG.
type chart struct {
	Label string // what it says, for who can't see it
	Bars  []bar
	Top   string // what the height stands for
	Empty bool   // whether no bar has a height
	Width int
}

// A bar is one of a chart.
type bar struct {
	X, Width int
	Parts    []part
	Text     string // for the tooltip and the table
}

// A part is what a bar consists of, from its foot.
type part struct {
	Class     string // of the style sheet
	Y, Height int
}

// Sizes of charts in their own units.
const (
	chartHeight = 100
	barWidth    = 14
	barGap      = 4
)

// A value is the height of a part before it is known how high the chart is.
type value struct {
	class  string
	amount float64
}

// newChart draws bars. What is more than nothing is to be seen.
func newChart(label string, top float64, rows [][]value, texts []string) chart {
	c := chart{Label: label, Empty: true, Width: len(rows) * (barWidth + barGap)}
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

// Bottom is where bars stand.
func (chart) Bottom() int { return chartHeight }

// ViewBox is the size of the drawing.
func (c chart) ViewBox() string { return fmt.Sprintf("0 -4 %d %d", max(c.Width, 1), chartHeight+6) }
