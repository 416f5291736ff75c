// Package goals compares the figures of a run with their goals.
package goals

import (
	"fmt"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
)

// A Goal is a figure to reach. The median decides. On a machine that does other work at the same time it says little.
type Goal struct {
	Text  string
	Store string
	Least bool // the value must be at least the bound; otherwise at most
	Bound float64
	Aim   float64        // better than the bound; 0 if there is none
	Value *result.Spread // nil if it was not measured
}

// Verdict returns a word for the outcome of a measured goal.
func (g *Goal) Verdict() string {
	within := func(bound float64) bool {
		if g.Least {
			return g.Value.Median >= bound
		}
		return g.Value.Median <= bound
	}
	switch {
	case g.Aim != 0 && within(g.Aim):
		return "aim reached"
	case within(g.Bound):
		return "reached"
	}
	return "**missed**"
}

// Table returns the measured goals as a table with its head, and the number of unmeasured ones.
func Table(list []Goal) (table [][]string, missing int) {
	table = [][]string{{"goal", "store", "", "median (range)"}}
	for i := range list {
		g := &list[i]
		if g.Value == nil {
			missing++
			continue
		}
		sign := "≤"
		if g.Least {
			sign = "≥"
		}
		text := fmt.Sprintf("%s %s %.4g", g.Text, sign, g.Bound)
		if g.Aim != 0 {
			text += fmt.Sprintf(", aim %.4g", g.Aim)
		}
		table = append(table, []string{text, g.Store, g.Verdict(), g.Value.String()})
	}
	return table, missing
}

// A judge collects the goals of one store.
type judge struct {
	o     *bench.Options
	cells result.Cells
	store string
	list  []Goal
}

func (j *judge) least(text string, bound, aim float64, value *result.Spread) {
	j.list = append(j.list, Goal{Text: text, Store: j.store, Least: true, Bound: bound, Aim: aim, Value: value})
}

func (j *judge) most(text string, bound, aim float64, value *result.Spread) {
	j.list = append(j.list, Goal{Text: text, Store: j.store, Bound: bound, Aim: aim, Value: value})
}

// key returns the key of an API measurement on the store.
func (j *judge) key(part, what string, conns, size int) result.Key {
	return result.Key{Part: part, What: what, Store: j.store, System: bench.APISystem, Conns: conns, Size: size}
}

// All returns the goals of the parts that a run should measure.
func All(o *bench.Options, cells result.Cells) (list []Goal) {
	both := []string{bench.SQLiteStore, bench.PostgresStore}
	for _, part := range []struct {
		name   string
		stores []string
		judge  func(*judge)
	}{
		{bench.CreatePart, both, (*judge).create}, {bench.ReadPart, both, (*judge).read}, {bench.ChecksPart, both, (*judge).checks},
		{bench.SteadyPart, both, (*judge).steady}, {bench.DrainPart, both, (*judge).drain}, {bench.LatencyPart, both, (*judge).latency},
		{bench.IsolationPart, both, (*judge).isolation}, {bench.BacklogPart, both, (*judge).backlog}, {bench.IdlePart, both, (*judge).idle},
		{bench.FilesPart, []string{bench.DiskPlace, bench.S3Place}, (*judge).files},
		{bench.OverloadPart, []string{bench.ProcessorPlace, bench.DatabasePlace}, (*judge).overload},
		{bench.PeerCreatePart, both[:1], (*judge).peerCreate}, {bench.PeerReadPart, both[:1], (*judge).peerRead},
		{bench.PeerFilesPart, []string{bench.DiskPlace}, (*judge).peerFiles}, {bench.PeerStartPart, both[:1], (*judge).peerStart},
		{bench.PeerPostgresPart, both[1:], (*judge).peerPostgres}, {bench.ScalePart, both, (*judge).scale},
	} {
		if !slices.Contains(o.Only, part.name) {
			continue
		}
		for _, store := range part.stores {
			j := &judge{o: o, cells: cells, store: store}
			part.judge(j)
			list = append(list, j.list...)
		}
	}
	return list
}

func (j *judge) create() {
	key := j.key(bench.CreatePart, bench.CreateWhat, 64, 0)
	j.ceiling(key, 0.5)
	j.most("create, 64 connections: p99-ms", 20, 0, j.cells.Spread(key, "p99-ms"))
	j.most("create, 64 connections: server-µs", 60, 0, j.cells.Spread(key, "server-µs"))
	key.Conns = 1
	j.least("create, 1 connection: requests/s over each", 1, 0, j.cells.Over(key, key.By(bench.EachSystem), "requests/s"))
	j.most("peak-MB of every server", 100, 0, j.cells.Most("peak-MB", func(c *result.Cell) bool {
		return c.Store == j.store && c.System != bench.CeilingSystem && slices.Contains(bench.RequestParts(), c.Part)
	}))
}

func (j *judge) ceiling(key result.Key, bound float64) {
	j.least(fmt.Sprintf("%s, %d connections: requests/s over the ceiling", key.What, key.Conns), bound, 0,
		j.cells.Over(key, key.By(bench.CeilingSystem), "requests/s"))
}

func (j *judge) read() {
	for _, conns := range j.o.ReadConns {
		for _, what := range []string{bench.GetWhat, bench.ListWhat} {
			j.ceiling(j.key(bench.ReadPart, what, conns, j.o.Fill), 0.5)
		}
	}
}

// checks judges the cost of the quota and of idempotency keys at the highest load.
func (j *judge) checks() {
	key := j.key(bench.ChecksPart, bench.CreateWhat, slices.Max(j.o.Conns), 0)
	for _, system := range []string{bench.QuotaSystem, bench.KeyedSystem} {
		j.least(fmt.Sprintf("create, %d connections, %s: requests/s over without", key.Conns, system), 0.95, 0,
			j.cells.Over(key.By(system), key, "requests/s"))
	}
}

// by returns the first figure on SQLite and the second on Postgres.
func (j *judge) by(sqlite, postgres float64) float64 {
	if j.store == bench.PostgresStore {
		return postgres
	}
	return sqlite
}

// The parts that deliver have a bound and an aim. A sketch without retries, attempts, fairness and recovery reached the
// aims for speed. The bounds leave an engine with them about three quarters of that. Where there is a comparison, they
// are ratios to what the same round measures.
//
// Outpost and Convoy are not compared: they need RabbitMQ or Redis beside Postgres, and are too large for one command
// to set up. Measured once by hand, Outpost reached about half of River's rate, and Convoy a tenth of Outpost's.

func (j *judge) steady() {
	key := j.key(bench.SteadyPart, "", 0, 0)
	j.least("steady: deliveries/s over the reference's", j.by(0.30, 0.17), j.by(0.45, 0.23), j.cells.Spread(key, "of-reference"))
	j.least("steady: deliveries/s over River's", j.by(5, 1.5), j.by(8, 2.1), j.cells.Over(key, key.By(bench.RiverSystem), "deliveries/s"))
	j.most("steady: CPU-s/10k, all processes", j.by(1.4, 3.0), j.by(1.0, 2.3), j.cells.Spread(key, "CPU-s/10k"))
	j.most("steady: peak-MB of the process", mebibytes(40), mebibytes(30), j.cells.Spread(key, "peak-MB"))
}

func mebibytes(n float64) float64 { return n * (1 << 20) / 1e6 }

// drain compares both stores with River on Postgres, which drains far faster than on SQLite.
func (j *judge) drain() {
	key := j.key(bench.DrainPart, "", 0, 0)
	river := key.By(bench.RiverSystem)
	river.Store = bench.PostgresStore
	j.least("drain: deliveries/s over the reference's", j.by(0.55, 0.50), j.by(0.75, 0.65), j.cells.Spread(key, "of-reference"))
	j.least("drain: deliveries/s over River's on postgres", 1.8, 2.5, j.cells.Over(key, river, "deliveries/s"))
	j.most("drain: peak-MB of the process", mebibytes(40), mebibytes(30), j.cells.Spread(key, "peak-MB"))
}

func (j *judge) latency() {
	key := j.key(bench.LatencyPart, bench.WithinWhat, 0, 0)
	if j.store == bench.PostgresStore {
		key.What = bench.AcrossWhat
	}
	j.most("latency, "+key.What+": p50-ms", j.by(1.5, 3), j.by(1.0, 1.5), j.cells.Spread(key, "p50-ms"))
	j.most("latency, "+key.What+": p99-ms", j.by(5, 10), j.by(2.5, 5), j.cells.Spread(key, "p99-ms"))
}

func (j *judge) isolation() {
	for _, pair := range [][2]string{{bench.HangScene, bench.TenScene}, {bench.HostileScene, bench.TwentyScene}} {
		over := func(load, unit string) *result.Spread {
			bad, good := j.key(bench.IsolationPart, pair[0]+load, 0, 0), j.key(bench.IsolationPart, pair[1]+load, 0, 0)
			return j.cells.Over(bad, good, unit)
		}
		j.least(pair[0]+": rate kept", 0.95, 0, over(bench.ClosedLoop, "deliveries/s"))
		j.most(pair[0]+bench.OpenLoop+": p99-ms over that of "+pair[1], 2, 0, over(bench.OpenLoop, "p99-ms"))
	}
	j.most(bench.HostileScene+": peak-MB", 300, 0, j.cells.Most("peak-MB", func(c *result.Cell) bool {
		return c.Part == bench.IsolationPart && c.Store == j.store && strings.HasPrefix(c.What, bench.HostileScene)
	}))
}

// backlog: beside a backlog, each index may be a level deeper.
func (j *judge) backlog() {
	for _, what := range []string{bench.NeverWhat, bench.EmptyWhat} {
		key := j.key(bench.BacklogPart, what, 0, 0)
		j.most("claims beside a backlog, "+what+": time over that without", 1.3, 0, j.cells.Spread(key, "claim-ratio"))
		if j.store == bench.PostgresStore {
			j.most("claims beside a backlog, "+what+": blocks over those without", 1.5, 0, j.cells.Spread(key, "blocks-ratio"))
		}
	}
}

func (j *judge) idle() {
	key := j.key(bench.IdlePart, "", 0, 0)
	j.most("idle: % of a core", 1, 0, j.cells.Spread(key, "core-%"))
	if j.store == bench.PostgresStore {
		j.most("idle: queries/s", 1, 0, j.cells.Spread(key, "queries/s"))
	}
}

// scale compares the median with the median on few responses.
func (j *judge) scale() {
	for _, key := range j.cells.Of(bench.ScalePart).Keys() {
		if key.Store != j.store || key.Size == j.o.ScaleSmall {
			continue
		}
		small := key
		small.Size = j.o.ScaleSmall
		j.most(fmt.Sprintf("scale, %s, %d connections: p50-ms at %d responses over that at %d", key.What, key.Conns, key.Size, small.Size), 1.3, 0,
			j.cells.Over(key, small, "p50-ms"))
	}
}

func (j *judge) files() {
	peer, bound, grown := bench.CopySystem, 0.6, 32.0
	whats := []string{bench.UploadWhat, bench.FormWhat, bench.DownloadWhat}
	if j.store == bench.S3Place {
		peer, bound, grown, whats = bench.MinioSystem, 0.7, 64, []string{bench.UploadWhat, bench.DownloadWhat}
	}
	for _, what := range whats {
		j.least(what+": MB/s over "+peer, bound, 0, j.cells.Spread(j.key(bench.FilesPart, what, 0, 0), "of-"+peer))
	}
	j.most(bench.LargeWhat+": grown-MB", grown, 0, j.cells.Spread(j.key(bench.FilesPart, bench.LargeWhat, 0, 0), "grown-MB"))
}

func (j *judge) overload() {
	for _, key := range j.cells.Of(bench.OverloadPart).Keys() {
		if key.Store == j.store && key.System == bench.APISystem && key.What != bench.PeakWhat {
			j.least(fmt.Sprintf("overload, %s, %d connections: responses/s over the peak's", key.What, key.Conns), 0.8, 0,
				j.cells.Spread(key, "of-peak"))
		}
	}
}

// manyConns is the number of connections from which on writes share commits so well that the goals for it apply.
const manyConns = 32

func (j *judge) times(key result.Key, bound float64, peer string) {
	j.least(fmt.Sprintf("%s, %s, %d connections: requests/s over %s", key.What, key.System, key.Conns, peer), bound, 0,
		j.cells.Over(key, key.By(peer), "requests/s"))
}

func (j *judge) peerCreate() {
	for _, conns := range j.o.PeerConns {
		key := j.key(bench.PeerCreatePart, bench.CreateWhat, conns, 0)
		if conns == 1 {
			j.times(key, 2, bench.PocketSystem)
		}
		if conns < manyConns {
			continue
		}
		j.times(key, 4, bench.PocketSystem)
		j.times(key, 6, bench.FullSystem)
		j.times(key, 15, bench.BatchSystem)
		j.times(key, 0.55, bench.CeilingSystem)
		j.most(fmt.Sprintf("create, %d connections: server-µs", conns), 50, 0, j.cells.Spread(key, "server-µs"))
		if conns == 64 {
			j.most("create, 64 connections: p99-ms", 10, 0, j.cells.Spread(key, "p99-ms"))
		}
	}
	j.most("create: peak-MB (40 MiB)", 41.9, 0, j.cells.Most("peak-MB", func(c *result.Cell) bool {
		return c.Part == bench.PeerCreatePart && c.What == bench.CreateWhat && c.System == bench.APISystem
	}))
}

func (j *judge) peerRead() {
	for _, conns := range []int{8, 32} {
		j.times(j.key(bench.PeerReadPart, bench.GetWhat, conns, j.o.PeerFill), 5, bench.PocketSystem)
	}
	j.times(j.key(bench.PeerReadPart, bench.ListWhat, 8, j.o.PeerFill), 20, bench.PocketSystem)
	for _, system := range []string{bench.APISystem, bench.OffsetSystem} {
		key := j.key(bench.PeerReadPart, bench.PageWhat, 1, j.o.PeerFill)
		j.least("far page, "+system+": p50-ms of "+bench.CreatedSystem+" over it", 100, 0, j.cells.Over(key.By(bench.CreatedSystem), key.By(system), "p50-ms"))
	}
}

func (j *judge) peerFiles() {
	for _, what := range []string{bench.UploadWhat, bench.FormWhat} {
		key := j.key(bench.PeerFilesPart, what, 0, 0)
		j.least(what+" of a large file: MB/s over "+bench.PocketSystem, 3, 0, j.cells.Spread(key, "of-"+bench.PocketSystem))
		j.most(what+" of a large file: grown-MB", 32, 0, j.cells.Spread(key, "grown-MB"))
	}
}

func (j *judge) peerStart() {
	j.most("start: ready-ms", 50, 0, j.cells.Spread(j.key(bench.PeerStartPart, "", 0, j.o.PeerFill), "ready-ms"))
}

func (j *judge) peerPostgres() {
	for _, conns := range j.o.PeerConns {
		if conns >= manyConns {
			j.times(j.key(bench.PeerPostgresPart, bench.CreateWhat, conns, 0), 1.7, bench.SingleSystem)
		}
	}
}
