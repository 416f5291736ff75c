package result

import (
	"bytes"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// drawnUnits are the figures that charts show, from left to right.
func drawnUnits() []string {
	return []string{
		"requests/s", "responses/s", "deliveries/s", "MB/s", "ready-ms", "p99-ms", "CPU-µs", "CPU-s/10k", "CPU-s/GB", "peak-MB", "idle-MB",
	}
}

// chart draws the cells of a group into a directory, and returns the name of the file, or "" if there is nothing to
// draw. The same cells give the same bytes.
func (list Cells) chart(dir string) (name string, err error) {
	units := slices.DeleteFunc(drawnUnits(), func(unit string) bool { return !slices.Contains(list.units(), unit) })
	if len(units) == 0 {
		return "", nil
	}
	keys := list.Keys()
	slices.Reverse(keys) // the first one is at the top
	plots := [][]*plot.Plot{make([]*plot.Plot, len(units))}
	for i, unit := range units {
		if plots[0][i], err = list.panel(keys, unit, i == 0); err != nil {
			return "", err
		}
	}
	plots[0][0].Title.Text = list.Title() + ": " + plots[0][0].Title.Text
	width, height := vg.Length(250+180*len(units)), vg.Length(70+16*len(keys))
	canvas := vgsvg.New(width, height)
	tiles := draw.Tiles{Rows: 1, Cols: len(units), PadX: 8, PadTop: 6, PadBottom: 6, PadLeft: 6, PadRight: 14}
	for i, c := range plot.Align(plots, tiles, draw.New(canvas))[0] {
		plots[0][i].Draw(c)
	}
	name = strings.NewReplacer(", ", "-", " ", "-").Replace(list.Title()) + ".svg"
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return "", err
	}
	// Arial has the same width, if the font is not installed.
	text := bytes.ReplaceAll(svg.Bytes(), []byte("family:Liberation Sans;"), []byte("family:Liberation Sans,Arial,Helvetica,sans-serif;"))
	return name, os.WriteFile(filepath.Join(dir, name), text, 0o600)
}

// panel draws one figure of all keys, with its range.
func (list Cells) panel(keys []Key, unit string, first bool) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = unit + ", " + better(unit)
	p.X.Min = 0
	names := make([]string, len(keys))
	var ranges struct {
		plotter.XYs
		plotter.XErrors
	}
	var numbers plotter.XYLabels
	for i, key := range keys {
		if first {
			names[i] = key.label()
		}
		s := list.Spread(key, unit)
		if s == nil {
			continue
		}
		bar, err := plotter.NewBarChart(plotter.Values{s.Median}, vg.Points(10))
		if err != nil {
			return nil, err
		}
		bar.Horizontal, bar.XMin, bar.Color, bar.LineStyle.Width = true, float64(i), key.colour(), 0
		p.Add(bar)
		ranges.XYs = append(ranges.XYs, plotter.XY{X: s.Median, Y: float64(i)})
		ranges.XErrors = append(ranges.XErrors, struct{ Low, High float64 }{s.Lowest - s.Median, s.Highest - s.Median})
		numbers.XYs = append(numbers.XYs, plotter.XY{X: s.Highest, Y: float64(i)})
		numbers.Labels = append(numbers.Labels, Spell(s.Median))
	}
	if len(ranges.XYs) > 0 {
		bars, err := plotter.NewXErrorBars(ranges)
		if err != nil {
			return nil, err
		}
		labels, err := plotter.NewLabels(numbers)
		if err != nil {
			return nil, err
		}
		labels.Offset = vg.Point{X: 4, Y: -3}
		for i := range labels.TextStyle {
			labels.TextStyle[i].Font.Variant, labels.TextStyle[i].Font.Size = "Sans", 8
		}
		p.Add(bars, labels)
		p.X.Max *= 1.25 // room for the numbers
	}
	p.NominalY(names...)
	p.Y.Padding = 12 // other fonts are wider
	p.Y.Min, p.Y.Max = -0.6, float64(len(keys))-0.4
	p.Title.TextStyle.Font.Variant, p.Title.TextStyle.Font.Size = "Sans", 9
	p.X.Tick.Label.Font.Variant, p.X.Tick.Label.Font.Size = "Sans", 8
	p.Y.Tick.Label.Font.Variant, p.Y.Tick.Label.Font.Size = "Sans", 9
	return p, nil
}

// better says whether higher or lower figures are better.
func better(unit string) string {
	if strings.HasSuffix(unit, "/s") {
		return "more is better"
	}
	return "less is better"
}

// label returns the label of a bar.
func (k Key) label() string {
	words := []string{k.What, number(k.Conns), number(k.Size), k.System}
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" || s == k.Part }), ", ")
}

// colour distinguishes our systems from other systems, and from those that only show a limit.
func (k Key) colour() color.Color {
	switch system, _, _ := strings.Cut(k.System, ","); system {
	case "formsvc":
		return color.RGBA{0x2f, 0x6f, 0xd6, 0xff}
	case "ceiling", "reference", "copy":
		return color.RGBA{0xb3, 0xb9, 0xc1, 0xff}
	}
	return color.RGBA{0xe3, 0x92, 0x4a, 0xff}
}

// WriteCharts draws every group, and returns the names of the files in the order of [Cells.Group].
func (list Cells) WriteCharts(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("charts: %w", err)
	}
	var names []string
	for _, group := range list.Group() {
		name, err := group.chart(dir)
		if err != nil {
			return nil, fmt.Errorf("charts: %w", err)
		}
		names = append(names, name)
	}
	return names, nil
}
