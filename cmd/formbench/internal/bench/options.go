package bench

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Options are the flags.
type Options struct {
	Rounds    int
	Duration  time.Duration
	Warmup    time.Duration
	Conns     []int
	ReadConns []int
	Stores    []string
	Systems   []string
	Only      []string
	Fill      int
	Events    int
	Callers   int
	Latency   time.Duration
	Idle      time.Duration
	Backlog   int
	River     string
	FileCount int
	FileSize  int64
	FileLarge int64
	FileBurst int
	OverConns []int

	ScalePostgres int
	ScaleSQLite   int
	ScaleSmall    int
	ScaleDue      int

	PeerProgram string
	PeerConns   []int
	PeerFill    int

	Dir      string
	OutFile  string
	Charts   string
	Render   string
	Profiles string
}

// ParseOptions reads the flags, of which it writes a usage text when they are not
// understood. The error is [flag.ErrHelp] when that is what was asked for.
func ParseOptions(args []string, usage io.Writer) (Options, error) {
	var o Options
	fs := flag.NewFlagSet("formbench", flag.ContinueOnError)
	fs.SetOutput(usage)
	fs.IntVar(&o.Rounds, "rounds", 3, "how often every cell is measured")
	fs.DurationVar(&o.Duration, "duration", 3*time.Second, "how long a cell is measured")
	fs.DurationVar(&o.Warmup, "warmup", time.Second, "how long a cell runs before")
	conns := fs.String("conns", "1,8,32,64", "connections of the create cells")
	readConns := fs.String("read-conns", "8,64", "connections of the read cells")
	stores := fs.String("stores", SQLiteStore+","+PostgresStore, "where to store; postgres needs "+PostgresEnv)
	systems := fs.String("systems", strings.Join(AllSystems(), ","), "what to measure")
	only := fs.String("only", strings.Join(AllParts(), ","), "parts of the run, or "+ScalePart+"; "+DeliverPart+
		" stands for the six before "+FilesPart+", "+peersPart+" for those of that name")
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
	overConns := fs.String("over-conns", "640,2000", "connections of the overload cells")
	fs.StringVar(&o.PeerProgram, "peers", "", "`program` built from cmd/formbench/peers, to compare with as PocketBase")
	peerConns := fs.String("peer-conns", "1,32,64", "connections of the create cells of "+peersPart)
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
	var errs [7]error
	o.Conns, errs[0] = counts("conns", *conns)
	o.ReadConns, errs[1] = counts("read-conns", *readConns)
	o.Stores, errs[2] = choice("stores", *stores, []string{SQLiteStore, PostgresStore})
	o.Systems, errs[3] = choice("systems", *systems, AllSystems())
	o.Only, errs[4] = choice("only", expand(*only), append(AllParts(), ScalePart))
	o.OverConns, errs[5] = counts("over-conns", *overConns)
	o.PeerConns, errs[6] = counts("peer-conns", *peerConns)
	return o, errors.Join(append(errs[:], o.check())...)
}

// AllSystems are those that -systems chooses from.
func AllSystems() []string { return []string{CeilingSystem, APISystem, EachSystem} }

// AllParts are those of a run that names none, in the order of the report.
func AllParts() []string {
	return slices.Concat(RequestParts(), DeliverParts(), []string{FilesPart, OverloadPart}, PeerParts())
}

// RequestParts are those that send requests to the API.
func RequestParts() []string { return []string{CreatePart, ReadPart, ChecksPart} }

// DeliverParts are those that deliver.
func DeliverParts() []string {
	return []string{SteadyPart, DrainPart, LatencyPart, IsolationPart, BacklogPart, IdlePart}
}

// expand replaces the words that stand for several parts.
func expand(parts string) string {
	list := strings.Split(parts, ",")
	for i, part := range list {
		switch strings.TrimSpace(part) {
		case DeliverPart:
			list[i] = strings.Join(DeliverParts(), ",")
		case peersPart:
			list[i] = strings.Join(PeerParts(), ",")
		}
	}
	return strings.Join(list, ",")
}

// SendsRequests reports whether any part that sends requests to the API is to be
// measured.
func (o *Options) SendsRequests() bool {
	return slices.ContainsFunc(o.Only, func(part string) bool { return slices.Contains(RequestParts(), part) })
}

// Delivers reports whether any part that delivers is to be measured.
func (o *Options) Delivers() bool {
	return slices.ContainsFunc(DeliverParts(), func(part string) bool { return slices.Contains(o.Only, part) })
}

// minEvents is enough for every endpoint of a scene.
const minEvents = 200

// maxFileSize is what is held in memory to be sent.
const maxFileSize = 1 << 30

// LeastScale is enough for the deliveries that are claimed in a round.
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

// counts reads positive numbers separated by commas.
func counts(name, list string) ([]int, error) {
	var out []int
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 || n > 10_000 {
			return nil, fmt.Errorf("-%s: %q is not a number from 1 to 10000", name, s)
		}
		out = append(out, n)
	}
	return out, nil
}

// choice reads words separated by commas; their order becomes that of known.
func choice(name, list string, known []string) ([]string, error) {
	chosen := strings.Split(strings.ReplaceAll(list, " ", ""), ",")
	for _, s := range chosen {
		if !slices.Contains(known, s) {
			return nil, fmt.Errorf("-%s: %q is none of %s", name, s, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(known), func(s string) bool { return !slices.Contains(chosen, s) }), nil
}

// PeerParts are those that compare with PocketBase, and with Postgres used plainly.
func PeerParts() []string {
	return []string{PeerCreatePart, PeerReadPart, PeerFilesPart, PeerStartPart, PeerPostgresPart}
}
