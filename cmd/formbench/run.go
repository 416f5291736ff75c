package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/chart"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/deliver"
	"github.com/formsvc/toolkit/cmd/formbench/internal/files"
	"github.com/formsvc/toolkit/cmd/formbench/internal/overload"
	"github.com/formsvc/toolkit/cmd/formbench/internal/peers"
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
	"github.com/formsvc/toolkit/cmd/formbench/internal/report"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/scale"
)

// A result is everything a run found out.
type result struct {
	Started time.Time       `json:"startedAt"`
	Machine proc.Machine    `json:"machine"`
	Options bench.Options   `json:"options"`
	Notes   []string        `json:"notes"`
	Cells   []requests.Cell `json:"cells"`

	Deliveries []deliver.Cell `json:"deliveries"`

	Files []files.Cell `json:"files"`

	Overloads []overload.Cell `json:"overloads"`

	Peers peers.Result    `json:"peers"`
	Scale []requests.Cell `json:"scale"`
	Sizes []scale.Size    `json:"sizes"`

	Ratios []requests.Ratio `json:"ratios"`
	Goals  []report.Goal    `json:"goals"`
	Error  string           `json:"error,omitempty"`
}

// runBench measures, and reports also what it has when a measurement fails.
func runBench(ctx context.Context, opts bench.Options, std streams) error {
	b := &bench.Bench{Options: opts, Log: std.err, Notes: []string{}}
	r := &result{Started: time.Now().UTC(), Machine: proc.ThisMachine(), Cells: []requests.Cell{}}
	if err := prepare(ctx, b); err != nil {
		return err
	}
	r.Options = b.Options
	err := r.measure(ctx, b)
	if err != nil {
		r.Error = err.Error()
	}
	checkNoise(b, r)
	r.Notes = b.Notes
	r.judge(&b.Options)
	return errors.Join(err, r.report(std.out), r.write(b.JSONFile), chart.WriteFiles(b.Charts, r.sheets()))
}

// measure runs the parts of the run. What they found out until one fails is kept.
func (r *result) measure(ctx context.Context, b *bench.Bench) (err error) {
	if r.Cells, err = requests.Run(ctx, b); err != nil {
		return err
	}
	if b.Delivers() {
		if r.Deliveries, err = deliver.Run(ctx, b); err != nil {
			return err
		}
	}
	if slices.Contains(b.Only, bench.FilesPart) {
		if r.Files, err = files.Run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", bench.FilesPart, err)
		}
	}
	if slices.Contains(b.Only, bench.OverloadPart) {
		if r.Overloads, err = overload.Run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", bench.OverloadPart, err)
		}
	}
	if slices.Contains(b.Only, bench.ScalePart) {
		if r.Scale, r.Sizes, err = scale.Run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", bench.ScalePart, err)
		}
	}
	r.Peers, err = peers.Run(ctx, b)
	return err
}

// judge compares what was measured with what it should be.
func (r *result) judge(o *bench.Options) {
	r.Ratios = requests.Ratios(r.Cells)
	if o.SendsRequests() {
		r.Goals = requests.Goals(o, r.Cells, r.Ratios)
	}
	r.Goals = append(r.Goals, deliver.Goals(o, r.Deliveries)...)
	r.Goals = append(r.Goals, files.Goals(o, r.Files)...)
	r.Goals = append(r.Goals, overload.Goals(o, r.Overloads)...)
	r.Goals = append(r.Goals, peers.Goals(o, &r.Peers)...)
	r.Goals = append(r.Goals, scale.Goals(o, r.Scale)...)
}

// prepare finds out what can't be measured, or not well.
func prepare(ctx context.Context, b *bench.Bench) (err error) {
	if b.Self, err = os.Executable(); err != nil {
		return err
	}
	if _, err := proc.ReadUsage(os.Getpid()); err != nil {
		return fmt.Errorf("CPU times can be read on Linux only: %w", err)
	}
	if b.Dir == "" {
		b.Dir = os.TempDir()
	}
	if b.Dir, err = filepath.Abs(b.Dir); err != nil {
		return err
	}
	if b.Profiles != "" {
		if err := os.MkdirAll(b.Profiles, 0o750); err != nil {
			return err
		}
		b.Warn("CPU profiles were taken, which slows the servers down")
	}
	if proc.InMemory(b.Dir) {
		b.Warn("SQLite and other files are in memory, where syncing costs nothing: name a directory on a disk with -dir")
	}
	files.Prepare(b)
	if err := peers.Prepare(b); err != nil {
		return err
	}
	if err := preparePostgres(ctx, b); err != nil {
		return err
	}
	return prepareRiver(b)
}

// prepareRiver finds out whether there is a peer to compare with.
func prepareRiver(b *bench.Bench) (err error) {
	if b.River != "" {
		b.River, err = filepath.Abs(b.River)
		return err
	}
	if slices.ContainsFunc(b.Only, deliver.BesideRiver) {
		b.Warn("NOT MEASURED: River, since -river does not name the program of cmd/formbench/peers")
	}
	return nil
}

func preparePostgres(ctx context.Context, b *bench.Bench) error {
	asked := b.SendsRequests() || b.Delivers() || slices.Contains(b.Only, bench.ScalePart) || slices.Contains(b.Only, bench.PeerPostgresPart)
	if !slices.Contains(b.Stores, bench.PostgresStore) || !asked {
		return nil
	}
	if os.Getenv(bench.PostgresEnv) == "" {
		missing := bench.PostgresEnv + " is not set; run this with \"bash .ci/with-postgres --durable\""
		if os.Getenv("CI") == "true" || len(b.Stores) == 1 {
			return errors.New(missing)
		}
		b.Warn("SKIPPED: Postgres was not measured: " + missing)
		b.Stores = slices.DeleteFunc(b.Stores, func(s string) bool { return s == bench.PostgresStore })
		return nil
	}
	syncs, err := database.PostgresSyncs(ctx)
	if err == nil && !syncs {
		b.Warn("this Postgres does not sync to disk (fsync is off): start it with --durable")
	}
	return err
}

// checkNoise warns when others used the machine while nothing but a server and
// the generator should have.
func checkNoise(b *bench.Bench, r *result) {
	const tolerable = 0.3 // cores
	counted, noisy, most := 0, 0, 0.0
	for _, cores := range r.otherCores() {
		counted++
		most = max(most, cores)
		if cores > tolerable {
			noisy++
		}
	}
	if noisy > 0 {
		b.Warn(fmt.Sprintf("other work took more than %.1f cores, up to %.1f, in %d of the %d cells without Postgres: "+
			"these figures say little", tolerable, most, noisy, counted))
	}
}

// otherCores returns what others used in each cell in which they should use nothing.
func (r *result) otherCores() (list []float64) {
	for _, c := range slices.Concat(r.Cells, r.Peers.Requests) {
		if c.System == bench.CeilingSystem || c.Store != bench.PostgresStore {
			list = append(list, c.OtherCores)
		}
	}
	for _, c := range r.Deliveries {
		if c.Store != bench.PostgresStore && (c.What == bench.SteadyPart || c.What == bench.DrainPart) {
			list = append(list, c.OtherCores)
		}
	}
	for _, c := range r.Files {
		if c.What == files.DownloadWhat { // what is uploaded the kernel writes to the disk in its own time
			list = append(list, c.OtherCores)
		}
	}
	return list
}

// write writes the result as JSON to a file, unless its name is "".
func (r *result) write(file string) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o600) //nolint:gosec // the user names the file
}
