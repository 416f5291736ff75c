package main

import (
	"slices"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
)

// peerSheets returns one for each part that compares with peers.
func peerSheets(r *peerResult) []sheet {
	return []sheet{
		peerRequestSheet(r.Requests, bench.PeerCreatePart, "Creating responses beside PocketBase", bench.SQLiteStore, createWhat, dueWhat),
		peerRequestSheet(r.Requests, bench.PeerReadPart, "Reading responses beside PocketBase", bench.SQLiteStore, getWhat, listWhat, pageWhat),
		peerFileSheet(r.Files),
		peerStartSheet(r.Starts),
		peerRequestSheet(r.Requests, bench.PeerPostgresPart, "Creating responses beside one statement each", bench.PostgresStore, createWhat),
	}
}

func peerRequestSheet(cells []cell, name, title, store string, whats ...string) sheet {
	some := slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return c.Store != store || !slices.Contains(whats, c.What) })
	s := sheet{name: name, title: title + ", " + bench.StoreTitle(store)}
	r := newRows(some)
	addRows(&s, &r.Grouping, func(key rowKey) (sheetRow, bool) { return key.row(createWhat, false), true }, requestMeasures()...)
	return s
}

func peerFileSheet(cells []fileCell) sheet {
	s := sheet{name: bench.PeerFilesPart, title: "Uploading a large file beside PocketBase", note: "CPU: of the server"}
	r := newFileRows(cells)
	addRows(&s, &r.Grouping, func(key fileKey) (sheetRow, bool) {
		return sheetRow{group: key.what, label: key.system, system: key.system}, true
	},
		newMeasure("MB/s", 0, moreIsBetter, megabytesPerSecond),
		newMeasure("CPU s/GB", 2, lessIsBetter, func(c *fileCell) float64 { return c.ServerCPU }),
		newMeasure("peak MB", 0, lessIsBetter, serverPeak),
	)
	return s
}

func peerStartSheet(cells []startCell) sheet {
	s := sheet{name: bench.PeerStartPart, title: "Starting beside PocketBase"}
	r := newStartRows(cells)
	addRows(&s, &r.Grouping, func(system string) (sheetRow, bool) { return sheetRow{label: system, system: system}, true },
		newMeasure("ms until ready", 1, lessIsBetter, startReady),
		newMeasure("MB at rest", 1, lessIsBetter, func(c *startCell) float64 { return c.IdleMB }),
	)
	return s
}
