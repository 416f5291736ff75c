package main

import (
	"slices"
	"strings"
)

// peerSheets returns one for each part that compares with peers.
func peerSheets(r *peerResult) []sheet {
	return []sheet{
		peerRequestSheet(r.Requests, peerCreatePart, "Creating responses beside PocketBase", sqliteStore, createWhat, dueWhat),
		peerRequestSheet(r.Requests, peerReadPart, "Reading responses beside PocketBase", sqliteStore, getWhat, listWhat, pageWhat),
		peerFileSheet(r.Files),
		peerStartSheet(r.Starts),
		peerRequestSheet(r.Requests, peerPostgresPart, "Creating responses beside one statement each", postgresStore, createWhat),
	}
}

func peerRequestSheet(cells []cell, name, title, store string, whats ...string) sheet {
	some := slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return c.Store != store || !slices.Contains(whats, c.What) })
	s := sheet{name: name, title: title + ", " + storeTitle(store)}
	r := newRows(some)
	addRows(&s, &r.grouping, func(key rowKey) (sheetRow, bool) { return key.row(createWhat, false), true }, requestMeasures()...)
	return s
}

func peerFileSheet(cells []fileCell) sheet {
	s := sheet{name: peerFilesPart, title: "Uploading a large file beside PocketBase", note: "CPU: of the server"}
	r := newFileRows(cells)
	addRows(&s, &r.grouping, func(key fileKey) (sheetRow, bool) {
		return sheetRow{group: key.what, label: key.system, system: key.system}, true
	},
		measure[fileCell]{sheetColumn{"MB/s", 0, moreIsBetter}, megabytesPerSecond},
		measure[fileCell]{sheetColumn{"CPU s/GB", 2, lessIsBetter}, func(c *fileCell) float64 { return c.ServerCPU }},
		measure[fileCell]{sheetColumn{"peak MB", 0, lessIsBetter}, serverPeak},
	)
	return s
}

func peerStartSheet(cells []startCell) sheet {
	s := sheet{name: peerStartPart, title: "Starting beside PocketBase"}
	r := newStartRows(cells)
	addRows(&s, &r.grouping, func(system string) (sheetRow, bool) { return sheetRow{label: system, system: system}, true },
		measure[startCell]{sheetColumn{"ms until ready", 1, lessIsBetter}, startReady},
		measure[startCell]{sheetColumn{"MB at rest", 1, lessIsBetter}, func(c *startCell) float64 { return c.IdleMB }},
	)
	return s
}

// scaleSheets returns one for each store.
func scaleSheets(cells []cell) (list []sheet) {
	for _, store := range []string{sqliteStore, postgresStore} {
		some := slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return c.Store != store })
		s := sheet{name: scalePart + "-" + store, title: "Few responses and many, " + storeTitle(store)}
		r := newRows(some)
		slices.SortStableFunc(r.keys, func(a, b rowKey) int { return strings.Compare(a.What, b.What) })
		addRows(&s, &r.grouping, func(key rowKey) (sheetRow, bool) {
			return sheetRow{
				group: key.What + ", " + counted(key.Conns, "connection"), label: counted(key.Responses, "response"), system: groupSystem,
			}, true
		},
			measure[cell]{sheetColumn{"p50 ms", 3, notDrawn}, func(c *cell) float64 { return c.P50 }},
			measure[cell]{sheetColumn{"p99 ms", 2, notDrawn}, func(c *cell) float64 { return c.P99 }},
		)
		list = append(list, s)
	}
	return list
}
