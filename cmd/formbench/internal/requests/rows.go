package requests

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/report"
	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

// A Subject is what the cells of all rounds have in common.
type Subject struct {
	What      string `json:"what"`
	Store     string `json:"store"`
	Conns     int    `json:"conns"`
	Responses int    `json:"responses"`
}

func (c *Cell) subject() Subject {
	return Subject{What: c.What, Store: c.Store, Conns: c.Conns, Responses: c.Responses}
}

// Rows are the cells of requests.
type Rows struct{ stats.Grouping[RowKey, Cell] }

// A RowKey is what the cells of a row have in common.
type RowKey struct {
	Subject
	System string
}

// NewRows groups cells.
func NewRows(cells []Cell) Rows {
	return Rows{stats.Group(cells, func(c *Cell) RowKey { return RowKey{c.subject(), c.System} })}
}

// What ratios are of.
const (
	ofCeiling = "formsvc/ceiling requests/s"
	ofEach    = "formsvc/each requests/s"
	ofDepth   = "large/small p50"
	ofQuota   = "quota/formsvc requests/s"
	ofKeyed   = "quota and key/formsvc requests/s"
)

// A Ratio compares two rows round by round.
type Ratio struct {
	Subject
	Of string `json:"of"`
	stats.Spread
}

// Ratios returns every ratio that the cells give.
func Ratios(cells []Cell) []Ratio {
	r := NewRows(cells)
	list := []Ratio{}
	for _, key := range r.Keys {
		if key.System != bench.APISystem {
			continue
		}
		mine := r.Cells[key]
		for _, other := range []struct{ of, system string }{{ofCeiling, bench.CeilingSystem}, {ofEach, bench.EachSystem}} {
			theirs := r.Cells[RowKey{key.Subject, other.system}]
			list = appendRatio(list, key.Subject, other.of, mine, theirs, func(c *Cell) float64 { return c.PerSecond })
		}
		for _, other := range []struct{ of, system string }{{ofQuota, bench.QuotaSystem}, {ofKeyed, bench.KeyedSystem}} {
			theirs := r.Cells[RowKey{key.Subject, other.system}]
			list = appendRatio(list, key.Subject, other.of, theirs, mine, func(c *Cell) float64 { return c.PerSecond })
		}
		if (key.What == FirstWhat || key.What == DeepWhat) && key.Responses != bench.SmallCampaign {
			small := key
			small.Responses = bench.SmallCampaign
			list = appendRatio(list, key.Subject, ofDepth, mine, r.Cells[small], func(c *Cell) float64 { return c.P50 })
		}
	}
	return list
}

// appendRatio compares the rounds that both have.
func appendRatio(list []Ratio, s Subject, of string, a, b []Cell, figure func(*Cell) float64) []Ratio {
	var rounds []float64
	for i := range min(len(a), len(b)) {
		if below := figure(&b[i]); below > 0 {
			rounds = append(rounds, figure(&a[i])/below)
		}
	}
	if len(rounds) == 0 {
		return list
	}
	return append(list, Ratio{Subject: s, Of: of, Spread: stats.NewSpread(rounds)})
}

// ReportRatios writes a table of ratios, if there are any.
func ReportRatios(w *report.Writer, list []Ratio) {
	if len(list) == 0 {
		return
	}
	w.Printf("\nratios within a round\n")
	table := [][]string{{"", "", "", "responses", "connections", "rounds", "median (range)"}}
	for _, r := range list {
		rounds := make([]string, len(r.Rounds))
		for i, x := range r.Rounds {
			rounds[i] = fmt.Sprintf("%.2f", x)
		}
		table = append(table, []string{
			r.Of, r.What, r.Store, strconv.Itoa(r.Responses), strconv.Itoa(r.Conns), strings.Join(rounds, " "), r.Text(2),
		})
	}
	w.Table(3, table)
}

// MarkdownRatios writes the ratios within a round.
func MarkdownRatios(w *report.Writer, list []Ratio) {
	if len(list) == 0 {
		return
	}
	w.Printf("\n### Ratios within a round\n\n")
	table := [][]string{{"", "", "", "responses", "connections", "median (range)"}}
	for _, r := range list {
		table = append(table, []string{
			r.Of, r.What, bench.StoreTitle(r.Store), stats.Decimal(float64(r.Responses), 0), strconv.Itoa(r.Conns), r.Spelled(2),
		})
	}
	w.MarkdownTable(3, table)
}
