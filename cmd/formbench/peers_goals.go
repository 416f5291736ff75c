package main

import (
	"fmt"
	"slices"
)

func roundOf(c *cell) int             { return c.Round }
func requestRate(c *cell) float64     { return c.PerSecond }
func requestP50(c *cell) float64      { return c.P50 }
func requestP99(c *cell) float64      { return c.P99 }
func requestMicros(c *cell) float64   { return c.ServerMicros }
func requestPeakMB(c *cell) float64   { return c.PeakMB }
func startReady(c *startCell) float64 { return c.Ready }

// peerRatios returns how ours compares with each peer, round by round: requests a
// second over theirs, or their time over ours on one connection, where requests are
// so slow that few are made, and at a rate that all are given.
func peerRatios(cells []cell) []ratio {
	r := newRows(cells)
	list := []ratio{}
	for _, mine := range r.keys {
		if mine.system != groupSystem && mine.system != offsetSystem {
			continue
		}
		for _, theirs := range r.keys {
			if theirs.subject != mine.subject || theirs.system == groupSystem || theirs.system == offsetSystem {
				continue
			}
			add := func(of string, s *spread) {
				if s != nil {
					list = append(list, ratio{subject: mine.subject, Of: of, spread: *s})
				}
			}
			switch mine.What {
			case dueWhat:
				add(theirs.system+"/"+mine.system+" p99", r.over(theirs, mine, roundOf, requestP99))
			case pageWhat:
				add(theirs.system+"/"+mine.system+" p50", r.over(theirs, mine, roundOf, requestP50))
			default:
				add(mine.system+"/"+theirs.system+" requests/s", r.over(mine, theirs, roundOf, requestRate))
				if theirs.system != insertSystem { // which has no server
					add(theirs.system+"/"+mine.system+" server CPU", r.over(theirs, mine, roundOf, requestMicros))
				}
			}
		}
	}
	return list
}

// A peerJudge collects the goals beside peers.
type peerJudge struct {
	o     *options
	r     *peerResult
	rows  rows
	goals []goal
}

// peerGoals compares the figures with what they should be. There are none unless
// these parts were to be measured.
func peerGoals(o *options, r *peerResult) []goal {
	j := peerJudge{o: o, r: r, rows: newRows(r.Requests)}
	for _, part := range []struct {
		name  string
		judge func()
	}{
		{peerCreatePart, j.create}, {peerReadPart, j.read}, {peerFilesPart, j.files}, {peerStartPart, j.start},
		{peerPostgresPart, j.postgres},
	} {
		if slices.Contains(o.Only, part.name) {
			part.judge()
		}
	}
	return j.goals
}

func (j *peerJudge) add(store string, g goal, value *spread) {
	g.Store = store
	j.goals = append(j.goals, g.met(value))
}

// times judges how often ours does what a peer does once.
func (j *peerJudge) times(least float64, text string, s subject, system, peer string) {
	value := j.rows.over(rowKey{s, system}, rowKey{s, peer}, roundOf, requestRate)
	if s.What == pageWhat {
		value = j.rows.over(rowKey{s, peer}, rowKey{s, system}, roundOf, requestP50)
	}
	j.add(s.Store, goal{Text: fmt.Sprintf("%s: ≥ %g × %s", text, least, peer), Bound: least, atLeast: true, decimals: 2}, value)
}

// manyConns is from how many connections on writes share commits so well that the
// goals for that count.
const manyConns = 32

func (j *peerJudge) create() {
	var most *spread
	for _, conns := range j.o.PeerConns {
		s := subject{createWhat, sqliteStore, conns, 0}
		mine := rowKey{s, groupSystem}
		if peak := j.rows.spread(mine, requestPeakMB); peak != nil && (most == nil || peak.Highest > most.Median) {
			highest := newSpread([]float64{peak.Highest})
			most = &highest
		}
		text := fmt.Sprintf("create, %d connections", conns)
		if conns == 1 {
			j.times(2, text, s, groupSystem, pocketSystem)
		}
		if conns < manyConns {
			continue
		}
		j.times(4, text, s, groupSystem, pocketSystem)
		j.times(6, text, s, groupSystem, fullSystem)
		j.times(15, text, s, groupSystem, batchSystem)
		j.times(0.55, text, s, groupSystem, ceilingSystem)
		j.add(sqliteStore, goal{Text: text + ": server CPU ≤ 50 µs", Bound: 50, unit: " µs"}, j.rows.spread(mine, requestMicros))
		if conns == 64 {
			j.add(sqliteStore, goal{Text: text + ": p99 ≤ 10 ms", Bound: 10, decimals: 2, unit: " ms"}, j.rows.spread(mine, requestP99))
		}
	}
	j.add(sqliteStore, goal{Text: "create: peak memory ≤ 41.9 MB (40 MiB)", Bound: 41.9, decimals: 1, unit: " MB"}, most)
}

func (j *peerJudge) read() {
	for _, conns := range []int{8, 32} {
		j.times(5, fmt.Sprintf("get one, %d connections", conns), subject{getWhat, sqliteStore, conns, j.o.PeerFill}, groupSystem, pocketSystem)
	}
	j.times(20, "list of 20 with total", subject{listWhat, sqliteStore, 8, j.o.PeerFill}, groupSystem, pocketSystem)
	for _, system := range []string{groupSystem, offsetSystem} {
		j.times(100, "far page, "+system, subject{pageWhat, sqliteStore, 1, j.o.PeerFill}, system, createdSystem)
	}
}

// mostUpload is by how much memory may grow for a file of any size, in MB.
const mostUpload = 31.9

func (j *peerJudge) files() {
	r := newFileRows(j.r.Files)
	theirs := fileKey{formWhat, diskPlace, pocketSystem}
	for _, what := range []string{uploadWhat, formWhat} {
		mine := fileKey{what, diskPlace, groupSystem}
		j.add(diskPlace, goal{Text: what + " of a large file: ≥ 3 × " + pocketSystem, Bound: 3, atLeast: true, decimals: 2},
			r.over(mine, theirs, func(c *fileCell) int { return c.Round }, megabytesPerSecond))
		j.add(diskPlace, goal{Text: what + " of a large file: memory grows by < 32 MB", Bound: mostUpload, decimals: 1, unit: " MB"},
			r.spread(mine, func(c *fileCell) float64 { return c.GrownUpMB }))
	}
}

func (j *peerJudge) start() {
	r := newStartRows(j.r.Starts)
	j.add(sqliteStore, goal{Text: "start: ready after ≤ 50 ms", Bound: 50, decimals: 1, unit: " ms"},
		r.spread(groupSystem, startReady))
}

func (j *peerJudge) postgres() {
	for _, conns := range j.o.PeerConns {
		if conns >= manyConns {
			j.times(1.7, fmt.Sprintf("create, %d connections", conns), subject{createWhat, postgresStore, conns, 0}, groupSystem, singleSystem)
		}
	}
}
