package report

import (
	"math"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

// A Goal is a figure to reach. The median decides; on a machine that does other
// work at the same time it says little.
type Goal struct {
	Text     string        `json:"goal"`
	Store    string        `json:"store"`
	Bound    float64       `json:"bound"`
	Aim      float64       `json:"aim,omitempty"` // better than the bound; 0 when there is none
	Measured bool          `json:"measured"`
	Reached  bool          `json:"reached"`
	Aimed    bool          `json:"aimReached,omitempty"`
	Value    *stats.Spread `json:"value"` // nil when it was not measured

	AtLeast  bool   `json:"-"` // the value must not be below the bound; otherwise not above it
	Decimals int    `json:"-"` // to compare and show with
	Unit     string `json:"-"`
}

// Met compares the goal with its value, if there is one.
func (g Goal) Met(value *stats.Spread) Goal {
	if value == nil {
		return g
	}
	g.Measured, g.Value = true, value
	// As precise as it is shown, so that the verdict never contradicts the number.
	unit := math.Pow10(g.Decimals)
	shown := math.Round(value.Median*unit) / unit
	within := func(bound float64) bool {
		if g.AtLeast {
			return shown >= bound
		}
		return shown <= bound
	}
	g.Reached = within(g.Bound)
	g.Aimed = g.Aim != 0 && within(g.Aim)
	return g
}

// Verdict says in a word what became of a goal that was measured.
func (g *Goal) Verdict() string {
	switch {
	case g.Aimed && g.Aim != g.Bound:
		return "aim reached"
	case g.Reached:
		return "reached"
	}
	return "MISSED"
}

// Goals writes the goals that were measured, and how many were not.
func Goals(w *Writer, list []Goal) {
	w.Printf("\ngoals\n")
	var table [][]string
	for _, g := range list {
		if g.Measured {
			table = append(table, []string{g.Verdict(), g.Text, g.Store, g.Value.Text(g.Decimals) + g.Unit})
		}
	}
	w.Table(3, table)
	if missing := len(list) - len(table); missing > 0 {
		w.Printf("  (%d goals were not measured)\n", missing)
	}
}

// MarkdownGoals writes the goals that were measured.
func MarkdownGoals(w *Writer, list []Goal) {
	table := [][]string{{"goal", "store", "", "median (range)"}}
	for _, g := range list {
		if !g.Measured {
			continue
		}
		verdict := g.Verdict()
		if !g.Reached {
			verdict = "**missed**"
		}
		table = append(table, []string{g.Text, bench.StoreTitle(g.Store), verdict, g.Value.Spelled(stats.Significant(g.Value.Median))})
	}
	if len(table) > 1 {
		w.Printf("\n### Goals\n\n")
		w.MarkdownTable(3, table)
	}
}
