package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/benchtest"
	"github.com/formsvc/toolkit/cmd/formbench/internal/peers"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
	"github.com/formsvc/toolkit/cmd/formbench/internal/scale"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// requestKeys are the measurements of the parts that send requests.
func requestKeys(store string, createConns []int) []result.Key {
	return slices.Concat(
		every(bench.CreatePart, store, []string{bench.CreateWhat}, createConns, []int{0}, bench.AllSystems()...),
		every(bench.ReadPart, store, []string{bench.GetWhat, bench.ListWhat}, []int{4}, []int{300}, bench.CeilingSystem, bench.APISystem),
	)
}

func TestRequests(t *testing.T) {
	t.Parallel()
	report, cells := benchmark(t, "-stores", "sqlite", "-rounds", "2", "-conns", "1,64", "-read-conns", "4",
		"-only", "create,read,checks")
	want := append(requestKeys(bench.SQLiteStore, []int{1, 64}),
		every(bench.ChecksPart, bench.SQLiteStore, []string{bench.CreateWhat}, []int{1, 64}, []int{0}, bench.APISystem, bench.QuotaSystem, bench.KeyedSystem)...)
	holds(t, cells, want...)
	if len(cells) != 2*len(want) {
		t.Errorf("got %d cells, want %d", len(cells), 2*len(want))
	}
	if strings.Count(report, " reached")+strings.Count(report, "**missed**") < 9 {
		t.Errorf("goals are missing in\n%s", report)
	}
}

func TestRequestsPostgres(t *testing.T) {
	postgrestest.DSN(t) // skips without Postgres
	_, cells := benchmark(t, "-stores", "postgres", "-rounds", "1", "-conns", "8", "-read-conns", "4", "-only", "create,read")
	holds(t, cells, requestKeys(bench.PostgresStore, []int{8})...)
}

// TestOverload measures every cell on the server with and without a limit on requests; every acknowledged response is
// in the database.
func TestOverload(t *testing.T) {
	t.Parallel()
	_, cells := benchmark(t, "-stores", "sqlite", "-rounds", "1", "-only", "overload", "-over-conns", "80", "-duration", "500ms")
	var want []result.Key
	for _, place := range []string{bench.ProcessorPlace, bench.DatabasePlace} {
		systems := []string{bench.APISystem, bench.UnboundedSystem}
		want = append(want, every(bench.OverloadPart, place, []string{bench.PeakWhat}, []int{64}, []int{0}, systems...)...)
		want = append(want, every(bench.OverloadPart, place, []string{bench.EagerWhat, bench.PoliteWhat, bench.OpenWhat}, []int{80}, []int{0}, systems...)...)
	}
	holds(t, cells, want...)
	made := 0.0
	for i := range cells {
		c := &cells[i]
		goodput, _ := c.Get("responses/s")
		sent, _ := c.Get("sent/s")
		offered, _ := c.Get("offered/s")
		broken, _ := c.Get("broken")
		if made += goodput; sent < goodput || offered < sent || broken != 0 {
			t.Errorf("implausible cell %+v", c)
		}
	}
	if made == 0 {
		t.Error("no response was made")
	}
}

// deliverSmall makes every part that delivers short.
var deliverSmall = []string{"-rounds", "1", "-n", "400", "-callers", "8", "-latency", "400ms", "-idle", "300ms", "-backlog", "3000"}

func deliverKeys(store string, parts map[string][]string) (keys []result.Key) {
	for part, whats := range parts {
		keys = append(keys, every(part, store, whats, []int{0}, []int{0}, bench.APISystem)...)
	}
	return keys
}

func TestDeliver(t *testing.T) {
	t.Parallel()
	report, cells := benchmark(t, append(slices.Clone(deliverSmall), "-stores", "sqlite", "-only", bench.DeliverPart)...)
	var scenes []string
	for _, scene := range []string{bench.TenScene, bench.HangScene, bench.TwentyScene, bench.HostileScene} {
		scenes = append(scenes, scene+bench.ClosedLoop, scene+bench.OpenLoop)
	}
	holds(t, cells, deliverKeys(bench.SQLiteStore, map[string][]string{
		bench.SteadyPart: {""}, bench.DrainPart: {""}, bench.LatencyPart: {bench.WithinWhat}, bench.IsolationPart: scenes,
		bench.BacklogPart: {bench.NeverWhat, bench.EmptyWhat}, bench.IdlePart: {""},
	})...)
	for i := range cells {
		if waiting, ok := cells[i].Get("backlog"); ok && waiting != 3000 {
			t.Errorf("the backlog of %s is %v", &cells[i], waiting)
		}
	}
	if !strings.Contains(report, "NOT MEASURED: River") {
		t.Errorf("nobody learns that River is missing in\n%s", report)
	}
	if strings.Count(report, " reached")+strings.Count(report, "**missed**") < 12 {
		t.Errorf("goals are missing in\n%s", report)
	}
}

func TestDeliverPostgres(t *testing.T) {
	postgrestest.DSN(t) // skips without Postgres
	_, cells := benchmark(t, append(slices.Clone(deliverSmall), "-stores", "postgres", "-only", "steady,latency,backlog,idle")...)
	holds(t, cells, deliverKeys(bench.PostgresStore, map[string][]string{
		bench.SteadyPart: {""}, bench.LatencyPart: {bench.WithinWhat, bench.AcrossWhat}, bench.BacklogPart: {bench.NeverWhat, bench.EmptyWhat}, bench.IdlePart: {""},
	})...)
	for _, unit := range []string{"blocks", "blocks-ratio", "queries/s"} {
		if !slices.ContainsFunc(cells, func(c result.Cell) bool { _, ok := c.Get(unit); return ok }) {
			t.Errorf("no cell has %s", unit)
		}
	}
}

// TestDeliverBesideRiver checks that the peer takes turns with the service.
func TestDeliverBesideRiver(t *testing.T) {
	t.Parallel()
	_, cells := benchmark(t, append(slices.Clone(deliverSmall), "-stores", "sqlite", "-only", "drain", "-river", benchtest.Peers(t))...)
	holds(t, cells, every(bench.DrainPart, bench.SQLiteStore, []string{""}, []int{0}, []int{0}, bench.APISystem, bench.RiverSystem)...)
}

// filesSmall makes the part with files short. The sizes are multiples of no buffer size.
var filesSmall = []string{"-rounds", "1", "-only", bench.FilesPart, "-file-size", "70001", "-file-count", "2",
	"-file-large", "2100007", "-file-burst", "3"}

func fileKeys(place string, peers ...string) []result.Key {
	none := []int{0}
	return slices.Concat(
		every(bench.FilesPart, place, []string{bench.UploadWhat}, none, none, append(peers, bench.APISystem)...),
		every(bench.FilesPart, place, []string{bench.DownloadWhat}, none, none, peers[0], bench.APISystem),
		every(bench.FilesPart, place, []string{bench.FormWhat, bench.LargeWhat, bench.BurstWhat}, none, none, bench.APISystem),
	)
}

func TestFiles(t *testing.T) {
	benchtest.NeedS3(t)
	t.Parallel()
	dir := t.TempDir()
	_, cells := benchmark(t, append(slices.Clone(filesSmall), "-dir", dir, "-stores", "postgres")...)
	holds(t, cells, append(fileKeys(bench.DiskPlace, bench.CopySystem, bench.CarefulSystem), fileKeys(bench.S3Place, bench.MinioSystem)...)...)
	for i := range cells {
		c := &cells[i]
		_, peak := c.Get("peak-MB")
		_, grown := c.Get("grown-MB")
		_, ofCopy := c.Get("of-copy")
		_, ofMinio := c.Get("of-minio-go")
		memory := c.What == bench.LargeWhat || c.What == bench.BurstWhat
		reference := memory || c.System == bench.CopySystem || c.System == bench.MinioSystem
		if peak != (c.System != bench.MinioSystem) || grown != memory || (ofCopy || ofMinio) == reference {
			t.Errorf("implausible cell %+v", c)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestFilesWithoutS3(t *testing.T) {
	t.Setenv(bench.S3Env, "")
	report, cells := benchmark(t, filesSmall...)
	holds(t, cells, fileKeys(bench.DiskPlace, bench.CopySystem, bench.CarefulSystem)...)
	if !strings.Contains(report, "NOT MEASURED: files on S3") {
		t.Errorf("the gap is not loud:\n%s", report)
	}
}

// peersSmall makes every part beside peers short.
var peersSmall = []string{"-rounds", "1", "-peer-fill", "400", "-peer-conns", "1,32", "-file-size", "100000", "-file-large", "3000000"}

func TestPeers(t *testing.T) {
	t.Parallel()
	_, cells := benchmark(t, append([]string{"-stores", "sqlite", "-only", "peers", "-peers", benchtest.Peers(t)}, peersSmall...)...)
	none, both := []int{0}, []string{bench.APISystem, bench.PocketSystem}
	want := slices.Concat(
		every(bench.PeerCreatePart, bench.SQLiteStore, []string{bench.CreateWhat}, []int{1, 32}, none,
			bench.CeilingSystem, bench.APISystem, bench.PocketSystem, bench.TokenSystem, bench.FullSystem, bench.BatchSystem),
		every(bench.PeerCreatePart, bench.SQLiteStore, []string{bench.DueWhat}, []int{32}, none, both...),
		every(bench.PeerStartPart, bench.SQLiteStore, []string{""}, none, []int{400}, both...),
		every(bench.PeerFilesPart, bench.DiskPlace, []string{bench.UploadWhat}, none, none, bench.APISystem),
		every(bench.PeerFilesPart, bench.DiskPlace, []string{bench.FormWhat}, none, none, both...),
	)
	for _, plan := range peers.ReadPlans() {
		want = append(want, every(bench.PeerReadPart, bench.SQLiteStore, []string{plan.What}, []int{plan.Conns}, []int{400}, plan.Systems...)...)
	}
	holds(t, cells, want...)
}

func TestPeersPostgres(t *testing.T) {
	postgrestest.DSN(t) // skips without Postgres
	report, cells := benchmark(t, append([]string{"-stores", "postgres", "-only", "peers"}, peersSmall...)...)
	holds(t, cells, every(bench.PeerPostgresPart, bench.PostgresStore, []string{bench.CreateWhat}, []int{32}, []int{0},
		bench.APISystem, bench.SingleSystem)...)
	if !strings.Contains(report, "NOT MEASURED: PocketBase") {
		t.Errorf("nobody says that PocketBase is missing in\n%s", report)
	}
}

// scaleArgs measure the smallest possible installations.
func scaleArgs(store string) []string {
	return []string{
		"-only", "scale", "-stores", store, "-rounds", "1", "-duration", "200ms", "-warmup", "20ms",
		"-scale-small", "5000", "-scale-postgres", "5500", "-scale-sqlite", "5500", "-scale-due", "5000",
	}
}

func TestScale(t *testing.T) {
	t.Parallel()
	checkScale(t, bench.SQLiteStore)
}

func TestScalePostgres(t *testing.T) {
	postgrestest.DSN(t) // skips without Postgres
	checkScale(t, bench.PostgresStore)
}

func checkScale(t *testing.T, store string) {
	t.Helper()
	_, cells := benchmark(t, scaleArgs(store)...)
	whats := append(scale.Reads(), scale.ClaimWhat, scale.PayloadsWhat, scale.OutcomesWhat)
	sizes := []int{5000, 5500}
	holds(t, cells.Of(bench.ScalePart), append(every(bench.ScalePart, store, whats, []int{1}, sizes, bench.APISystem),
		every(bench.ScalePart, store, []string{bench.CreateWhat}, scale.Conns(), sizes, bench.APISystem)...)...)
	tables := make(map[string]int)
	for _, key := range cells.Of(bench.SizesPart).Keys() {
		table, _, _ := strings.Cut(key.What, ",")
		tables[table]++
	}
	if len(tables) != 4 || tables["formsvc_responses"] < 3 {
		t.Errorf("sizes are missing: %v", tables)
	}
}
