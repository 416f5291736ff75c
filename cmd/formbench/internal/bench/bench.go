// Package bench is shared by the parts of a run: it has the flags, the names of systems, stores and parts, and collects
// figures and warnings.
package bench

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
)

// A Bench is the state that all parts of a run share.
type Bench struct {
	Options
	Self      string         // this program, which is also the server
	Log       io.Writer      // progress
	Out       *result.Writer // nil for none
	S3Program string         // "" when there is none
	Notes     []string       // what readers of the figures must know
	Cells     result.Cells   // what was measured so far
}

// Warn notes a fact that readers of the figures must know.
func (b *Bench) Warn(note string) {
	b.Notes = append(b.Notes, note)
	_, _ = fmt.Fprintln(b.Log, "formbench:", note)
}

// Note keeps a measured cell.
func (b *Bench) Note(c *result.Cell) error {
	b.Cells = append(b.Cells, *c)
	figures := make([]string, min(len(c.Figures), 6))
	for i := range figures {
		figures[i] = result.Spell(c.Figures[i].Value) + " " + c.Figures[i].Unit
	}
	_, _ = fmt.Fprintf(b.Log, "%s: %s\n", c, strings.Join(figures, ", "))
	if b.Out == nil {
		return nil
	}
	return b.Out.Write(c)
}

// Profile returns the file of the cell's CPU profile, or "" for none.
func (b *Bench) Profile(c *result.Cell) string {
	if b.Profiles == "" {
		return ""
	}
	return filepath.Join(b.Profiles, c.File(".pprof"))
}

// Rotated returns the list with another beginning in each round, so that no system always follows the same one.
func Rotated[T any](list []T, round int) []T {
	at := round % max(len(list), 1)
	return slices.Concat(list[at:], list[:at])
}

// The compared systems. Only one part knows further systems.
const (
	CeilingSystem = "ceiling" // decodes and encodes, stores nothing
	APISystem     = "formsvc" // the API, concurrent writes share commits
	EachSystem    = "each"    // the API, one transaction per request

	QuotaSystem = "quota"      // the API with a quota
	KeyedSystem = "quota, key" // … and an Idempotency-Key with each request

	UnboundedSystem = "unbounded" // the API without a limit on concurrent requests

	CopySystem    = "copy"             // io.Copy between the request and a file
	CarefulSystem = "copy, hash, sync" // the same with a hash, durable when it responds

	SingleSystem = "single" // a handler with one statement per request

	MinioSystem = "minio-go" // no server between the generator and S3

	RiverSystem = "River" // a job queue, with a worker that signs and posts
)

// PocketBase with its defaults unless the name says otherwise: synchronous NORMAL, and anyone may use its collections.
const (
	PocketSystem  = "PocketBase"
	TokenSystem   = "PocketBase, token"               //nolint:gosec // a name: only a superuser may
	FullSystem    = "PocketBase FULL"                 // acknowledged writes are on the disk
	BatchSystem   = "PocketBase FULL, batch of three" // response, event and delivery in one transaction
	CreatedSystem = "PocketBase, by created"          // sorted by a field instead of @rowid, which has an index

	OffsetSystem = "formsvc, offset" // pages by number instead of by cursor
)

// The operations in the cells of several parts.
const (
	CreateWhat = "create"
	GetWhat    = "get one"
	ListWhat   = "list of 20"
	DueWhat    = "create, open loop"
	PageWhat   = "far page" // half-way through the campaign

	UploadWhat   = "upload"
	FormWhat     = "upload as a form" // multipart/form-data
	DownloadWhat = "download"
	LargeWhat    = "large file" // uploaded and downloaded
	BurstWhat    = "burst"      // uploads at once

	PeakWhat   = "peak"   // as many connections as give the best rate
	EagerWhat  = "eager"  // a refused client retries at once
	PoliteWhat = "polite" // a refused client waits for Retry-After
	OpenWhat   = "open"   // requests come at ten times the peak rate, in an open loop
)

// The settings in which deliveries are measured.
const (
	WithinWhat = "engine in the same process"
	AcrossWhat = "engine in another process"

	TenScene     = "ten healthy"
	HangScene    = "nine beside a hanging one"
	TwentyScene  = "twenty healthy"
	HostileScene = "ten beside ten hostile"
	ClosedLoop   = ", as fast as possible"
	OpenLoop     = ", 500 events/s"

	NeverWhat = "never analyzed"
	EmptyWhat = "analyzed when empty"
)

// The stores that the API is measured on.
const (
	SQLiteStore   = "sqlite"
	PostgresStore = "postgres"

	DiskPlace = "disk" // of files
	S3Place   = "S3"

	ProcessorPlace = "one processor" // limits the capacity of the server
	DatabasePlace  = "slow database"
)

// The parts of a run.
const (
	CreatePart = "create"
	ReadPart   = "read"
	ChecksPart = "checks"

	SteadyPart    = "steady"
	DrainPart     = "drain"
	LatencyPart   = "latency"
	IsolationPart = "isolation"
	BacklogPart   = "backlog"
	IdlePart      = "idle"

	DeliverPart = "deliver" // stands for all parts that deliver

	FilesPart    = "files"
	OverloadPart = "overload"

	peersPart        = "peers" // stands for all of these
	PeerCreatePart   = "peers-create"
	PeerReadPart     = "peers-read"
	PeerFilesPart    = "peers-files"
	PeerStartPart    = "peers-start"
	PeerPostgresPart = "peers-postgres"

	ScalePart = "scale" // takes long and is measured only when named
	SizesPart = "sizes" // the sizes of the installations of scale
)

// The environment variables that name a server or program which some parts need.
const (
	PostgresEnv = "FORMSVC_TEST_POSTGRES"  // the URL of a Postgres server
	S3Env       = "FORMSVC_TEST_VERSITYGW" // the path of the program versitygw, an S3 server that keeps every object as a plain file
)

// The sizes of the data that are read.
const (
	PageSize = 20
	MinFill  = 2 * PageSize // enough for the pages that are read
)

// Options are the flags.
type Options struct {
	Rounds        int
	Duration      time.Duration
	Warmup        time.Duration
	Conns         []int
	ReadConns     []int
	Stores        []string
	Systems       []string
	Only          []string
	Fill          int
	Events        int
	Callers       int
	Latency       time.Duration
	Idle          time.Duration
	Backlog       int
	River         string
	FileCount     int
	FileSize      int64
	FileLarge     int64
	FileBurst     int
	OverConns     []int
	ScalePostgres int
	ScaleSQLite   int
	ScaleSmall    int
	ScaleDue      int
	PeerProgram   string
	PeerConns     []int
	PeerFill      int
	Dir           string
	OutFile       string
	Charts        string
	Render        string
	Profiles      string
}

// ParseOptions parses the flags, and writes a usage text if they are invalid. The error is [flag.ErrHelp] if the flags
// ask for help.
func ParseOptions(args []string, usage io.Writer) (Options, error) {
	var o Options
	fs := flag.NewFlagSet("formbench", flag.ContinueOnError)
	fs.SetOutput(usage)
	fs.IntVar(&o.Rounds, "rounds", 3, "how often every cell is measured")
	fs.DurationVar(&o.Duration, "duration", 3*time.Second, "how long a cell is measured")
	fs.DurationVar(&o.Warmup, "warmup", time.Second, "how long a cell runs before")
	counts := func(to *[]int, name, usage string, initial ...int) {
		*to = initial
		fs.Func(name, fmt.Sprintf("%s (default %d)", usage, initial), func(s string) (err error) {
			*to, err = numbers(s)
			return err
		})
	}
	words := func(to *[]string, name, usage string, initial []string, more ...string) {
		*to = initial
		fs.Func(name, fmt.Sprintf("%s (default %s)", usage, strings.Join(initial, ",")), func(s string) (err error) {
			*to, err = choice(s, append(initial, more...))
			return err
		})
	}
	counts(&o.Conns, "conns", "connections of the create cells", 1, 8, 32, 64)
	counts(&o.ReadConns, "read-conns", "connections of the read cells", 8, 64)
	counts(&o.OverConns, "over-conns", "connections of the overload cells", 640, 2000)
	counts(&o.PeerConns, "peer-conns", "connections of the create cells of "+peersPart, 1, 32, 64)
	words(&o.Stores, "stores", "where to store; postgres needs "+PostgresEnv, []string{SQLiteStore, PostgresStore})
	words(&o.Systems, "systems", "what to measure", AllSystems())
	words(&o.Only, "only", "parts of the run, or "+ScalePart+"; "+DeliverPart+" stands for the six before "+FilesPart+", "+
		peersPart+" for those of that name", AllParts(), ScalePart)
	fs.IntVar(&o.Fill, "fill", 20_000, "responses in the campaign of the read cells")
	fs.IntVar(&o.Events, "n", 20_000, "events of a steady, drain or isolation cell")
	fs.IntVar(&o.Callers, "callers", 32, "how many callers submit responses at once while they are delivered")
	fs.DurationVar(&o.Latency, "latency", 30*time.Second, "how long a latency cell takes")
	fs.DurationVar(&o.Idle, "idle", 20*time.Second, "how long an idle cell takes")
	fs.IntVar(&o.Backlog, "backlog", 1_000_000, "deliveries of one endpoint in the backlog cells")
	fs.StringVar(&o.River, "river", "", "`program` built from cmd/formbench/peers, to compare with")
	fs.IntVar(&o.FileCount, "file-count", 6, "how many files go one after the other")
	fs.Int64Var(&o.FileSize, "file-size", 100_000_000, "`bytes` of each of them; those that go at once have a fifth")
	fs.Int64Var(&o.FileLarge, "file-large", 1<<30, "`bytes` of the file with which memory is measured")
	fs.IntVar(&o.FileBurst, "file-burst", 50, "how many files go at once")
	fs.StringVar(&o.PeerProgram, "peers", "", "`program` built from cmd/formbench/peers, to compare with as PocketBase")
	fs.IntVar(&o.PeerFill, "peer-fill", 200_000, "responses in the campaign of the read and start cells of "+peersPart)
	fs.StringVar(&o.Dir, "dir", "", "`directory` for SQLite and other files, on a real disk (default the system's for temporary files)")
	fs.StringVar(&o.OutFile, "out", "", "write every cell to this `file` too, in the format of Go benchmarks, which benchstat reads")
	fs.StringVar(&o.Charts, "chart", "", "write SVG charts into this `directory`, one for each table")
	fs.StringVar(&o.Render, "render", "", "measure nothing: write charts, tables and goals of these `files` of -out, separated by commas")
	fs.StringVar(&o.Profiles, "cpuprofile", "", "write a CPU profile of every server into this `directory`")
	fs.IntVar(&o.ScalePostgres, "scale-postgres", 10_000_000, "responses in the large installation of the scale part on Postgres")
	fs.IntVar(&o.ScaleSQLite, "scale-sqlite", 2_000_000, "the same on SQLite")
	fs.IntVar(&o.ScaleSmall, "scale-small", 10_000, "responses in the small one")
	fs.IntVar(&o.ScaleDue, "scale-due", 1_000_000, "deliveries that are due in the large one, if it has as many responses")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return o, o.check()
}

// AllSystems are the systems that -systems chooses from.
func AllSystems() []string { return []string{CeilingSystem, APISystem, EachSystem} }

// AllParts are the parts of a run that names none, in the order of the report.
func AllParts() []string {
	return slices.Concat(RequestParts(), DeliverParts(), []string{FilesPart, OverloadPart}, PeerParts())
}

// RequestParts are the parts that send requests to the API.
func RequestParts() []string { return []string{CreatePart, ReadPart, ChecksPart} }

// DeliverParts are the parts that deliver.
func DeliverParts() []string {
	return []string{SteadyPart, DrainPart, LatencyPart, IsolationPart, BacklogPart, IdlePart}
}

// Asks reports whether any of these parts should be measured.
func (o *Options) Asks(parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return slices.Contains(o.Only, part) })
}

// minEvents is enough for every endpoint of a scene.
const minEvents = 200

// maxFileSize is the maximum size of a file that is sent, because it is held in memory.
const maxFileSize = 1 << 30

// LeastScale is enough for the deliveries that a round claims.
const LeastScale = 5_000

func (o *Options) check() error {
	switch {
	case o.Rounds < 1:
		return errors.New("-rounds must be at least 1")
	case o.Duration <= 0 || o.Warmup < 0:
		return errors.New("-duration must be positive, -warmup not negative")
	case o.Fill < MinFill || o.PeerFill < MinFill:
		return fmt.Errorf("-fill and -peer-fill must be at least %d", MinFill)
	case o.Events < minEvents || o.Callers < 1 || o.Backlog < 1:
		return fmt.Errorf("-n must be at least %d, -callers and -backlog at least 1", minEvents)
	case o.Latency <= 0 || o.Idle <= 0:
		return errors.New("-latency and -idle must be positive")
	case o.FileCount < 1 || o.FileSize < 1 || o.FileSize > maxFileSize || o.FileLarge < 1 || o.FileBurst < 1:
		return fmt.Errorf("-file-count, -file-size, -file-large and -file-burst must be at least 1, -file-size at most %d",
			int64(maxFileSize))
	case o.ScaleSmall < LeastScale || o.ScaleDue < LeastScale || o.ScalePostgres <= o.ScaleSmall || o.ScaleSQLite <= o.ScaleSmall:
		return fmt.Errorf("-scale-small and -scale-due must be at least %d, -scale-postgres and -scale-sqlite more than -scale-small", LeastScale)
	}
	return nil
}

// numbers parses positive numbers separated by commas.
func numbers(list string) (out []int, err error) {
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 || n > 10_000 {
			return nil, fmt.Errorf("%q is not a number from 1 to 10000", s)
		}
		out = append(out, n)
	}
	return out, nil
}

// choice parses words separated by commas, some of which stand for several. It returns them in the order of known.
func choice(list string, known []string) ([]string, error) {
	list = strings.NewReplacer(" ", "", DeliverPart, strings.Join(DeliverParts(), ","), peersPart+"-", peersPart+"-",
		peersPart, strings.Join(PeerParts(), ",")).Replace(list)
	chosen := strings.Split(list, ",")
	for _, s := range chosen {
		if !slices.Contains(known, s) {
			return nil, fmt.Errorf("%q is none of %s", s, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(known), func(s string) bool { return !slices.Contains(chosen, s) }), nil
}

// PeerParts are the parts that compare with PocketBase, and with a plain handler on Postgres.
func PeerParts() []string {
	return []string{PeerCreatePart, PeerReadPart, PeerFilesPart, PeerStartPart, PeerPostgresPart}
}
