package peers

import (
	"fmt"
	"slices"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/files"
	"github.com/formsvc/toolkit/cmd/formbench/internal/report"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

func roundOf(c *requests.Cell) int           { return c.Round }
func requestRate(c *requests.Cell) float64   { return c.PerSecond }
func requestP50(c *requests.Cell) float64    { return c.P50 }
func requestP99(c *requests.Cell) float64    { return c.P99 }
func requestMicros(c *requests.Cell) float64 { return c.ServerMicros }
func requestPeakMB(c *requests.Cell) float64 { return c.PeakMB }
func startReady(c *StartCell) float64        { return c.Ready }

// ratios returns how ours compares with each peer, round by round: requests a
// second over theirs, or their time over ours on one connection, where requests are
// so slow that few are made, and at a rate that all are given.
func ratios(cells []requests.Cell) []requests.Ratio {
	r := requests.NewRows(cells)
	list := []requests.Ratio{}
	for _, mine := range r.Keys {
		if mine.System != bench.APISystem && mine.System != offsetSystem {
			continue
		}
		for _, theirs := range r.Keys {
			if theirs.Subject != mine.Subject || theirs.System == bench.APISystem || theirs.System == offsetSystem {
				continue
			}
			add := func(of string, s *stats.Spread) {
				if s != nil {
					list = append(list, requests.Ratio{Subject: mine.Subject, Of: of, Spread: *s})
				}
			}
			switch mine.What {
			case dueWhat:
				add(theirs.System+"/"+mine.System+" p99", r.Over(theirs, mine, roundOf, requestP99))
			case pageWhat:
				add(theirs.System+"/"+mine.System+" p50", r.Over(theirs, mine, roundOf, requestP50))
			default:
				add(mine.System+"/"+theirs.System+" requests/s", r.Over(mine, theirs, roundOf, requestRate))
				if theirs.System != InsertSystem { // which has no server
					add(theirs.System+"/"+mine.System+" server CPU", r.Over(theirs, mine, roundOf, requestMicros))
				}
			}
		}
	}
	return list
}

// A judge collects the goals beside peers.
type judge struct {
	o     *bench.Options
	r     *Result
	rows  requests.Rows
	goals []report.Goal
}

// Goals compares the figures with what they should be. There are none unless
// these parts were to be measured.
func Goals(o *bench.Options, r *Result) []report.Goal {
	j := judge{o: o, r: r, rows: requests.NewRows(r.Requests)}
	for _, part := range []struct {
		name  string
		judge func()
	}{
		{bench.PeerCreatePart, j.create}, {bench.PeerReadPart, j.read}, {bench.PeerFilesPart, j.files}, {bench.PeerStartPart, j.start},
		{bench.PeerPostgresPart, j.postgres},
	} {
		if slices.Contains(o.Only, part.name) {
			part.judge()
		}
	}
	return j.goals
}

func (j *judge) add(store string, g report.Goal, value *stats.Spread) {
	g.Store = store
	j.goals = append(j.goals, g.Met(value))
}

// times judges how often ours does what a peer does once.
func (j *judge) times(least float64, text string, s requests.Subject, system, peer string) {
	value := j.rows.Over(requests.RowKey{Subject: s, System: system}, requests.RowKey{Subject: s, System: peer}, roundOf, requestRate)
	if s.What == pageWhat {
		value = j.rows.Over(requests.RowKey{Subject: s, System: peer}, requests.RowKey{Subject: s, System: system}, roundOf, requestP50)
	}
	j.add(s.Store, report.Goal{Text: fmt.Sprintf("%s: ≥ %g × %s", text, least, peer), Bound: least, AtLeast: true, Decimals: 2}, value)
}

// manyConns is from how many connections on writes share commits so well that the
// goals for that count.
const manyConns = 32

func (j *judge) create() {
	var most *stats.Spread
	for _, conns := range j.o.PeerConns {
		s := requests.Subject{What: requests.CreateWhat, Store: bench.SQLiteStore, Conns: conns, Responses: 0}
		mine := requests.RowKey{Subject: s, System: bench.APISystem}
		if peak := j.rows.Spread(mine, requestPeakMB); peak != nil && (most == nil || peak.Highest > most.Median) {
			highest := stats.NewSpread([]float64{peak.Highest})
			most = &highest
		}
		text := fmt.Sprintf("create, %d connections", conns)
		if conns == 1 {
			j.times(2, text, s, bench.APISystem, PocketSystem)
		}
		if conns < manyConns {
			continue
		}
		j.times(4, text, s, bench.APISystem, PocketSystem)
		j.times(6, text, s, bench.APISystem, FullSystem)
		j.times(15, text, s, bench.APISystem, BatchSystem)
		j.times(0.55, text, s, bench.APISystem, bench.CeilingSystem)
		j.add(bench.SQLiteStore, report.Goal{Text: text + ": server CPU ≤ 50 µs", Bound: 50, Unit: " µs"}, j.rows.Spread(mine, requestMicros))
		if conns == 64 {
			j.add(bench.SQLiteStore, report.Goal{Text: text + ": p99 ≤ 10 ms", Bound: 10, Decimals: 2, Unit: " ms"}, j.rows.Spread(mine, requestP99))
		}
	}
	j.add(bench.SQLiteStore, report.Goal{Text: "create: peak memory ≤ 41.9 MB (40 MiB)", Bound: 41.9, Decimals: 1, Unit: " MB"}, most)
}

func (j *judge) read() {
	for _, conns := range []int{8, 32} {
		j.times(5, fmt.Sprintf("get one, %d connections", conns), requests.Subject{What: requests.GetWhat, Store: bench.SQLiteStore, Conns: conns, Responses: j.o.PeerFill}, bench.APISystem, PocketSystem)
	}
	j.times(20, "list of 20 with total", requests.Subject{What: requests.ListWhat, Store: bench.SQLiteStore, Conns: 8, Responses: j.o.PeerFill}, bench.APISystem, PocketSystem)
	for _, system := range []string{bench.APISystem, offsetSystem} {
		j.times(100, "far page, "+system, requests.Subject{What: pageWhat, Store: bench.SQLiteStore, Conns: 1, Responses: j.o.PeerFill}, system, createdSystem)
	}
}

// mostUpload is by how much memory may grow for a file of any size, in MB.
const mostUpload = 31.9

func (j *judge) files() {
	r := files.NewRows(j.r.Files)
	theirs := files.RowKey{What: files.FormWhat, Place: files.DiskPlace, System: PocketSystem}
	for _, what := range []string{files.UploadWhat, files.FormWhat} {
		mine := files.RowKey{What: what, Place: files.DiskPlace, System: bench.APISystem}
		j.add(files.DiskPlace, report.Goal{Text: what + " of a large file: ≥ 3 × " + PocketSystem, Bound: 3, AtLeast: true, Decimals: 2},
			r.Over(mine, theirs, func(c *files.Cell) int { return c.Round }, files.MegabytesPerSecond))
		j.add(files.DiskPlace, report.Goal{Text: what + " of a large file: memory grows by < 32 MB", Bound: mostUpload, Decimals: 1, Unit: " MB"},
			r.Spread(mine, func(c *files.Cell) float64 { return c.GrownUpMB }))
	}
}

func (j *judge) start() {
	r := newStartRows(j.r.Starts)
	j.add(bench.SQLiteStore, report.Goal{Text: "start: ready after ≤ 50 ms", Bound: 50, Decimals: 1, Unit: " ms"},
		r.Spread(bench.APISystem, startReady))
}

func (j *judge) postgres() {
	for _, conns := range j.o.PeerConns {
		if conns >= manyConns {
			j.times(1.7, fmt.Sprintf("create, %d connections", conns), requests.Subject{What: requests.CreateWhat, Store: bench.PostgresStore, Conns: conns, Responses: 0}, bench.APISystem, bench.SingleSystem)
		}
	}
}
