package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// sheets returns what a run measured.
func (r *result) sheets() []sheet {
	list := slices.Concat(requestSheets(r.Cells), deliverSheets(r.Deliveries), fileSheets(r.Files), overloadSheets(r.Overloads),
		peerSheets(&r.Peers), scaleSheets(r.Scale))
	list = slices.DeleteFunc(list, func(s sheet) bool { return len(s.rows) == 0 })
	for i := range list {
		list[i].source = r.source()
	}
	return list
}

// source tells where figures are from.
func (r *result) source() string {
	m := &r.Machine
	return fmt.Sprintf("%s: %d CPUs (%s), Linux %s, %s", r.Started.Format("2 January 2006"), m.CPUs, m.Model, m.Kernel, m.Go)
}

// requestSheets returns one for each store of each part.
func requestSheets(cells []cell) (list []sheet) {
	for _, part := range requestParts() {
		for _, store := range []string{sqliteStore, postgresStore} {
			some := slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return partOf(c.What) != part || c.Store != store })
			s := sheet{name: part + "-" + store, title: requestTitle(part) + ", " + storeTitle(store)}
			s.note = requestNote(part, store)
			r := newRows(some)
			sizes := slices.ContainsFunc(some, func(c cell) bool { return c.Responses != some[0].Responses })
			addRows(&s, &r.grouping, func(key rowKey) (sheetRow, bool) { return key.row(part, sizes), true }, requestMeasures()...)
			list = append(list, s)
		}
	}
	return list
}

func requestMeasures() []measure[cell] {
	return []measure[cell]{
		{sheetColumn{"requests/s", 0, moreIsBetter}, func(c *cell) float64 { return c.PerSecond }},
		{sheetColumn{"p50 ms", 2, notDrawn}, func(c *cell) float64 { return c.P50 }},
		{sheetColumn{"p99 ms", 2, lessIsBetter}, func(c *cell) float64 { return c.P99 }},
		{sheetColumn{"CPU µs/request", 0, lessIsBetter}, cpuMicros},
		{sheetColumn{"peak MB", 0, notDrawn}, func(c *cell) float64 { return c.PeakMB }},
	}
}

// cpuMicros is the CPU time of what answers: of the server, and of Postgres where
// that stores.
func cpuMicros(c *cell) float64 {
	if c.Store == postgresStore && c.System != ceilingSystem {
		return c.ServerMicros + c.OtherMicros
	}
	return c.ServerMicros
}

// row places a row; the number of responses is told where it differs.
func (key rowKey) row(part string, sizes bool) sheetRow {
	r := sheetRow{group: counted(key.Conns, "connection"), label: key.system, system: key.system}
	if key.What != part {
		r.group = key.What + ", " + r.group
	}
	if sizes {
		r.label += ", " + counted(key.Responses, "response")
	}
	return r
}

func requestTitle(part string) string {
	switch part {
	case createPart:
		return "Creating responses"
	case readPart:
		return "Reading responses"
	case depthPart:
		return "Pages of small and large campaigns"
	case checksPart:
		return "Creating responses with a quota and idempotency keys"
	}
	return part
}

// requestNote tells who is who.
func requestNote(part, store string) string {
	note := "ceiling: decodes and encodes the same JSON, stores nothing"
	switch part {
	case createPart:
		note += "; each: one transaction per request"
	case depthPart, checksPart:
		note = ""
	}
	cpu := "CPU: of the server's process"
	if store == postgresStore {
		cpu += " and of Postgres"
	}
	return strings.TrimPrefix(note+"; "+cpu, "; ")
}

func storeTitle(store string) string {
	switch store {
	case sqliteStore:
		return "SQLite"
	case postgresStore:
		return "Postgres"
	}
	return store
}

// counted returns a number with its noun, which gets an s unless it is one.
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return thousands(strconv.Itoa(n)) + " " + noun
}

// deliverSheets returns one for each part that delivers.
func deliverSheets(cells []deliverCell) (list []sheet) {
	r := newDeliverRows(cells)
	for _, part := range deliverParts() {
		s := sheet{name: part, title: deliverHeading(part)}
		if part == steadyPart || part == drainPart {
			s.note = "reference: signs and posts the same payloads from memory; CPU: of all processes, Postgres and the receiver too"
			if part == steadyPart {
				s.note += "; p99: from commit to arrival"
			}
			s.rows = referenceRows(&r, part)
		}
		addRows(&s, &r.grouping, func(key deliverKey) (sheetRow, bool) {
			row := sheetRow{group: storeTitle(key.store), label: key.system, system: key.system}
			if key.how != "" {
				row.label = key.how
			}
			return row, key.what == part
		}, deliverMeasures(part)...)
		if len(s.rows) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// referenceRows are what the reference did around the cells of a part.
func referenceRows(r *deliverRows, part string) (list []sheetRow) {
	for _, key := range r.keys {
		if key.what == part && key.system == groupSystem {
			value := r.spread(key, func(c *deliverCell) float64 { return c.Reference })
			list = append(list, sheetRow{
				group: storeTitle(key.store), label: referenceRole, system: referenceRole, values: []*spread{value},
			})
		}
	}
	return list
}

func deliverHeading(part string) string {
	switch part {
	case steadyPart:
		return "Accepting events one by one and delivering them"
	case drainPart:
		return "Delivering what was queued before"
	case latencyPart:
		return "From commit to arrival, at 50 events a second"
	case isolationPart:
		return "Healthy endpoints among others"
	case backlogPart:
		return "Claiming beside a backlog of another endpoint"
	case idlePart:
		return "At rest"
	}
	return part
}

// deliverMeasures are the columns of the text's table, of which some are drawn.
func deliverMeasures(part string) (list []measure[deliverCell]) {
	drawn := map[string]direction{"deliveries/s": moreIsBetter, "p99 ms": lessIsBetter, "CPU s/10k": lessIsBetter}
	switch part {
	case latencyPart:
		drawn["p50 ms"] = lessIsBetter
	case steadyPart, drainPart:
		drawn["peak MB"] = lessIsBetter
	}
	for _, c := range deliverColumns(part) {
		switch c.title {
		case "reference/s": // which is a row here
			continue
		case "of it":
			c.title = "of the reference"
		}
		list = append(list, measure[deliverCell]{sheetColumn{c.title, c.decimals, drawn[c.title]}, c.figure})
	}
	return list
}

// fileSheets returns one of speed and one of memory.
func fileSheets(cells []fileCell) []sheet {
	r := newFileRows(cells)
	memory := func(key fileKey) bool { return key.what == largeWhat || key.what == burstWhat }
	place := func(want bool) func(fileKey) (sheetRow, bool) {
		return func(key fileKey) (sheetRow, bool) {
			return sheetRow{group: key.what + ", " + key.place, label: key.system, system: key.system}, memory(key) == want
		}
	}
	speed := sheet{name: filesPart, title: "Files", note: "CPU: of the server and of S3"}
	addRows(&speed, &r.grouping, place(false),
		measure[fileCell]{sheetColumn{"MB/s", 0, moreIsBetter}, megabytesPerSecond},
		measure[fileCell]{sheetColumn{"CPU s/GB", 2, lessIsBetter}, func(c *fileCell) float64 { return c.ServerCPU + c.S3CPU }},
		measure[fileCell]{sheetColumn{"peak MB", 0, lessIsBetter}, serverPeak},
	)
	grown := sheet{name: filesPart + "-memory", title: "By how much files make the server grow"}
	addRows(&grown, &r.grouping, place(true),
		measure[fileCell]{sheetColumn{"MB", 1, lessIsBetter}, func(c *fileCell) float64 { return c.GrownMB }})
	return []sheet{speed, grown}
}

// serverPeak is the memory of the server, where there is one.
func serverPeak(c *fileCell) float64 {
	if c.System == minioSystem {
		return math.NaN()
	}
	return c.PeakMB
}

// overloadSheets returns one of what is left of the goodput for each place.
func overloadSheets(cells []overloadCell) (list []sheet) {
	r := newOverloadRows(cells)
	for _, place := range []string{processorPlace, databasePlace} {
		s := sheet{
			name:  overloadPart + "-" + strings.ReplaceAll(place, " ", "-"),
			title: "Creating responses under overload, SQLite, " + place,
			note:  unboundedSystem + ": no bound on requests in progress; p99: of what was served",
		}
		addRows(&s, &r.grouping, func(key overloadKey) (sheetRow, bool) {
			group := key.what + ", " + counted(key.conns, "connection")
			return sheetRow{group: group, label: key.system, system: key.system}, key.place == place
		},
			measure[overloadCell]{sheetColumn{"responses/s", 0, moreIsBetter}, func(c *overloadCell) float64 { return c.Goodput }},
			measure[overloadCell]{sheetColumn{"of peak", 2, notDrawn}, ofPeak},
			measure[overloadCell]{sheetColumn{"refused", 2, notDrawn}, func(c *overloadCell) float64 { return c.Refused }},
			measure[overloadCell]{sheetColumn{"p99 ms", 0, lessIsBetter}, func(c *overloadCell) float64 { return c.P99 }},
		)
		list = append(list, s)
	}
	return list
}
