package requests

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

// What the requests of a cell do.
const (
	CreateWhat = "create"
	GetWhat    = "get one"
	ListWhat   = "list of 20"
	FirstWhat  = "first page"
	DeepWhat   = "deep page"
	ChecksWhat = "checked create"
)

// A Cell is one figure of a table, measured once.
type Cell struct {
	What      string `json:"what"`
	Store     string `json:"store"`
	System    string `json:"system"`
	Conns     int    `json:"conns"`
	Responses int    `json:"responses"` // in the campaign at the start
	Round     int    `json:"round"`
	Figures
}

// Figures are what was measured.
type Figures struct {
	Requests        int     `json:"requests"` // answered in the time below
	Seconds         float64 `json:"seconds"`
	Errors          int     `json:"errors"`
	PerSecond       float64 `json:"requestsPerSecond"`
	P50             float64 `json:"p50Milliseconds"`
	P99             float64 `json:"p99Milliseconds"`
	P999            float64 `json:"p999Milliseconds"`
	Max             float64 `json:"maxMilliseconds"`
	ServerMicros    float64 `json:"serverMicrosecondsPerRequest"`
	GeneratorMicros float64 `json:"generatorMicrosecondsPerRequest"`
	OtherMicros     float64 `json:"otherMicrosecondsPerRequest"` // CPU of everything else on the machine
	OtherCores      float64 `json:"otherCores"`                  // the same, per second
	PeakMB          float64 `json:"peakMegabytes"`               // resident memory of the server
}

// String names the cell in progress lines.
func (c *Cell) String() string {
	return fmt.Sprintf("round %d, %s, %s, %s, connections %d, responses %d",
		c.Round, c.What, c.Store, c.System, c.Conns, c.Responses)
}

// Measure starts a server, loads it and notes the figures. It returns how many
// requests were answered, warm-up included.
func (r *Runner) Measure(
	ctx context.Context, c Cell, dsn string, prepare func(addr string) (loadgen.Workload, error),
) (answered int, err error) {
	cfg := server.Config{System: c.System, DSN: dsn, Responses: c.Responses}
	if r.Profiles != "" {
		cfg.Profile = filepath.Join(r.Profiles, c.profile())
	}
	srv, err := server.Start(ctx, r.Self, cfg, r.Log)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, srv.Stop()) }()
	work, err := prepare(srv.Addr)
	if err != nil {
		return 0, err
	}
	l := &loadgen.Load{Workload: work, Addr: srv.Addr, Conns: c.Conns}
	answered, err = c.Load(ctx, l, srv.PID, r.Warmup, r.Duration)
	if c.Seconds > 0 {
		r.Note(c)
	}
	return answered, err
}

// Load notes the figures of a load of the server and returns how many requests
// were answered, warm-up included.
func (f *Figures) Load(ctx context.Context, l *loadgen.Load, server int, warmup, d time.Duration) (answered int, err error) {
	l.Begin = time.Now().Add(warmup)
	l.End = l.Begin.Add(d)
	s, before, after, err := l.Watched(ctx, server)
	if err != nil {
		return 0, err
	}
	peak, err := proc.PeakMemory(server)
	if err != nil {
		return 0, err
	}
	*f = NewFigures(&s, before, after, d)
	f.PeakMB = float64(peak) / 1e6
	if s.Err != nil {
		return 0, fmt.Errorf("%d of the connections failed, first: %w", s.Errors, s.Err)
	}
	return s.Answered, nil
}

// profile names the file of the cell's CPU profile.
func (c *Cell) profile() string {
	what := map[string]string{GetWhat: "get", ListWhat: "list", FirstWhat: "first", DeepWhat: "deep", ChecksWhat: "checks"}[c.What]
	if what == "" {
		what = c.What
	}
	system := strings.ReplaceAll(c.System, ", ", "-")
	return fmt.Sprintf("%s-%s-%s-%d-%d-round%d.pprof", what, c.Store, system, c.Conns, c.Responses, c.Round)
}

// NewFigures turns a sample and the CPU times around it into figures. The times
// are read a little after the sample begins and ends, so each goes by its own
// clock.
func NewFigures(s *loadgen.Sample, before, after proc.Usage, d time.Duration) Figures {
	f := Figures{
		Requests: len(s.Latencies), Seconds: d.Seconds(), Errors: s.Errors,
		PerSecond: float64(len(s.Latencies)) / d.Seconds(),
		P50:       stats.Milliseconds(stats.Percentile(s.Latencies, 50)),
		P99:       stats.Milliseconds(stats.Percentile(s.Latencies, 99)),
		P999:      stats.Milliseconds(stats.Quantile(s.Latencies, 999, 1000)),
		Max:       stats.Milliseconds(stats.Percentile(s.Latencies, 100)),
	}
	elapsed := after.At.Sub(before.At).Seconds()
	if f.Requests == 0 || elapsed <= 0 {
		return f
	}
	server := (after.Server - before.Server).Seconds() / elapsed
	generator := (after.Self - before.Self).Seconds() / elapsed
	f.OtherCores = (after.Machine-before.Machine).Seconds()/elapsed - server - generator
	f.ServerMicros = server / f.PerSecond * 1e6
	f.GeneratorMicros = generator / f.PerSecond * 1e6
	f.OtherMicros = f.OtherCores / f.PerSecond * 1e6
	return f
}
