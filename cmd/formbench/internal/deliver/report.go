package deliver

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/process"
	"github.com/formsvc/toolkit/cmd/formbench/internal/report"
)

// A column is a figure of a table.
type column struct {
	title    string
	decimals int
	figure   func(*Cell) float64
}

// columnsOf are those of a part.
func columnsOf(part string) []column {
	reference := []column{
		{"deliveries/s", 0, perSecond},
		{"accepted/s", 0, func(c *Cell) float64 { return c.AcceptPerSecond }},
		{"reference/s", 0, func(c *Cell) float64 { return c.Reference }},
		{"of it", 2, ofReference},
	}
	latency := []column{{"p50 ms", 2, p50}, {"p99 ms", 2, p99}}
	cpu := []column{
		{"CPU s/10k", 2, cpuSeconds},
		{"sender", 2, func(c *Cell) float64 { return c.SenderCPU }},
		{"receiver", 2, func(c *Cell) float64 { return c.ReceiverCPU }},
		{"other", 2, func(c *Cell) float64 { return c.OtherCPU }},
	}
	peak := []column{{"peak MB", 0, func(c *Cell) float64 { return c.PeakMB }}}
	switch part {
	case bench.LatencyPart:
		return slices.Concat(latency, []column{
			{"p50 of call", 2, func(c *Cell) float64 { return c.CallP50 }},
			{"p99 of call", 2, func(c *Cell) float64 { return c.CallP99 }},
		}, reference[2:3])
	case bench.IsolationPart:
		return slices.Concat(reference, latency, peak)
	case bench.BacklogPart:
		return []column{
			{"backlog", 0, func(c *Cell) float64 { return float64(c.Events) }},
			{"claim µs", 0, func(c *Cell) float64 { return c.Claim }},
			{"without", 0, func(c *Cell) float64 { return c.ClaimAlone }},
			{"blocks", 0, func(c *Cell) float64 { return c.Blocks }},
			{"without", 0, func(c *Cell) float64 { return c.BlocksAlone }},
		}
	case bench.IdlePart:
		return []column{
			{"% of a core", 2, func(c *Cell) float64 { return 100 * c.Cores }},
			{"queries/s", 2, func(c *Cell) float64 { return c.Queries }},
		}
	}
	return slices.Concat(reference, latency, cpu, peak)
}

// Report writes a table for each part that delivers.
func Report(w *report.Writer, o *bench.Options, cells []Cell) {
	rows := newRows(cells)
	for _, part := range bench.DeliverParts() {
		columns := columnsOf(part)
		title := []string{"", "", ""}
		for _, c := range columns {
			title = append(title, c.title)
		}
		table := [][]string{title}
		for _, key := range rows.Keys {
			if key.what == part {
				table = append(table, rows.line(key, columns))
			}
		}
		if len(table) == 1 {
			continue
		}
		for _, store := range o.Stores {
			if o.River == "" && BesideRiver(part) {
				table = append(table, slices.Concat([]string{store, RiverSystem, "", "not measured"}, make([]string, len(columns)-1)))
			}
		}
		w.Printf("\n%s\n", tableTitle(o, part))
		w.Table(3, table)
	}
}

func (r *cellRows) line(key rowKey, columns []column) []string {
	line := []string{key.store, key.system, key.how}
	for _, c := range columns {
		line = append(line, r.Spread(key, c.figure).Text(c.decimals))
	}
	return line
}

// tableTitle says what a table shows.
func tableTitle(o *bench.Options, part string) string {
	switch part {
	case bench.SteadyPart:
		return fmt.Sprintf("steady: %d events accepted by %d callers while they are delivered; latency is from commit to arrival",
			o.Events, o.Callers)
	case bench.DrainPart:
		return fmt.Sprintf("drain: %d deliveries queued before; accepted/s without delivering", o.Events)
	case bench.LatencyPart:
		return fmt.Sprintf("latency: %d events/s for %v, from commit to arrival, and from just before the call",
			int(1/latencyEvery.Seconds()), o.Latency)
	case bench.IsolationPart:
		return "isolation: what the healthy ones get (nine of ten, ten of twenty)"
	case bench.BacklogPart:
		return "backlog: finding and claiming " + strconv.Itoa(process.Claimed) + " deliveries of nine other endpoints, median"
	}
	return fmt.Sprintf("idle: a process with store and engine at rest for %v", o.Idle)
}
