package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A bench is what all parts of a run share.
type bench struct {
	options
	self      string    // this program, which is also the server
	log       io.Writer // progress
	s3Program string    // "" when there is none
	notes     []string  // what readers of the figures must know
}

// warn notes what readers of the figures must know.
func (b *bench) warn(note string) {
	b.notes = append(b.notes, note)
	_, _ = fmt.Fprintln(b.log, "formbench:", note)
}

// A result is everything a run found out.
type result struct {
	Started time.Time `json:"startedAt"`
	Machine machine   `json:"machine"`
	Options options   `json:"options"`
	Notes   []string  `json:"notes"`
	Cells   []cell    `json:"cells"`

	Deliveries []deliverCell `json:"deliveries"`

	Files []fileCell `json:"files"`

	Overloads []overloadCell `json:"overloads"`

	Peers peerResult  `json:"peers"`
	Scale []cell      `json:"scale"`
	Sizes []scaleSize `json:"sizes"`

	Ratios []ratio `json:"ratios"`
	Goals  []goal  `json:"goals"`
	Error  string  `json:"error,omitempty"`
}

// runBench measures, and reports also what it has when a measurement fails.
func runBench(ctx context.Context, opts options, std streams) error {
	b := &bench{options: opts, log: std.err, notes: []string{}}
	r := &result{Started: time.Now().UTC(), Machine: thisMachine(), Cells: []cell{}}
	if err := prepare(ctx, b); err != nil {
		return err
	}
	r.Options = b.options
	err := r.measure(ctx, b)
	if err != nil {
		r.Error = err.Error()
	}
	checkNoise(b, r)
	r.Notes = b.notes
	r.judge(&b.options)
	return errors.Join(err, r.report(std.out), r.write(b.jsonFile), writeCharts(b.charts, r.sheets()))
}

// measure runs the parts of the run. What they found out until one fails is kept.
func (r *result) measure(ctx context.Context, b *bench) (err error) {
	if r.Cells, err = requestCells(ctx, b); err != nil {
		return err
	}
	if b.delivers() {
		if r.Deliveries, err = deliverCells(ctx, b); err != nil {
			return err
		}
	}
	if slices.Contains(b.Only, filesPart) {
		if r.Files, err = fileCells(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", filesPart, err)
		}
	}
	if slices.Contains(b.Only, overloadPart) {
		if r.Overloads, err = overloadCells(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", overloadPart, err)
		}
	}
	if slices.Contains(b.Only, scalePart) {
		if r.Scale, r.Sizes, err = scaleCells(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", scalePart, err)
		}
	}
	r.Peers, err = peerCells(ctx, b)
	return err
}

// judge compares what was measured with what it should be.
func (r *result) judge(o *options) {
	r.Ratios = ratios(r.Cells)
	if o.requests() {
		r.Goals = goals(o, r.Cells, r.Ratios)
	}
	r.Goals = append(r.Goals, deliverGoals(o, r.Deliveries)...)
	r.Goals = append(r.Goals, fileGoals(o, r.Files)...)
	r.Goals = append(r.Goals, overloadGoals(o, r.Overloads)...)
	r.Goals = append(r.Goals, peerGoals(o, &r.Peers)...)
	r.Goals = append(r.Goals, scaleGoals(o, r.Scale)...)
}

// prepare finds out what can't be measured, or not well.
func prepare(ctx context.Context, b *bench) (err error) {
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if _, err := readUsage(os.Getpid()); err != nil {
		return fmt.Errorf("CPU times can be read on Linux only: %w", err)
	}
	if b.dir == "" {
		b.dir = os.TempDir()
	}
	if b.dir, err = filepath.Abs(b.dir); err != nil {
		return err
	}
	if b.profiles != "" {
		if err := os.MkdirAll(b.profiles, 0o750); err != nil {
			return err
		}
		b.warn("CPU profiles were taken, which slows the servers down")
	}
	if inMemory(b.dir) {
		b.warn("SQLite and other files are in memory, where syncing costs nothing: name a directory on a disk with -dir")
	}
	prepareFiles(b)
	if err := preparePeers(b); err != nil {
		return err
	}
	if err := preparePostgres(ctx, b); err != nil {
		return err
	}
	return prepareRiver(b)
}

// prepareRiver finds out whether there is a peer to compare with.
func prepareRiver(b *bench) (err error) {
	if b.River != "" {
		b.River, err = filepath.Abs(b.River)
		return err
	}
	if slices.ContainsFunc(b.Only, besideRiver) {
		b.warn("NOT MEASURED: River, since -river does not name the program of cmd/formbench/peers")
	}
	return nil
}

func preparePostgres(ctx context.Context, b *bench) error {
	asked := b.requests() || b.delivers() || slices.Contains(b.Only, scalePart) || slices.Contains(b.Only, peerPostgresPart)
	if !slices.Contains(b.Stores, postgresStore) || !asked {
		return nil
	}
	if os.Getenv(postgresEnv) == "" {
		missing := postgresEnv + " is not set; run this with \"bash .ci/with-postgres --durable\""
		if os.Getenv("CI") == "true" || len(b.Stores) == 1 {
			return errors.New(missing)
		}
		b.warn("SKIPPED: Postgres was not measured: " + missing)
		b.Stores = slices.DeleteFunc(b.Stores, func(s string) bool { return s == postgresStore })
		return nil
	}
	syncs, err := postgresSyncs(ctx)
	if err == nil && !syncs {
		b.warn("this Postgres does not sync to disk (fsync is off): start it with --durable")
	}
	return err
}

// checkNoise warns when others used the machine while nothing but a server and
// the generator should have.
func checkNoise(b *bench, r *result) {
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
		b.warn(fmt.Sprintf("other work took more than %.1f cores, up to %.1f, in %d of the %d cells without Postgres: "+
			"these figures say little", tolerable, most, noisy, counted))
	}
}

// otherCores returns what others used in each cell in which they should use nothing.
func (r *result) otherCores() (list []float64) {
	for _, c := range slices.Concat(r.Cells, r.Peers.Requests) {
		if c.System == ceilingSystem || c.Store != postgresStore {
			list = append(list, c.OtherCores)
		}
	}
	for _, c := range r.Deliveries {
		if c.Store != postgresStore && (c.What == steadyPart || c.What == drainPart) {
			list = append(list, c.OtherCores)
		}
	}
	for _, c := range r.Files {
		if c.What == downloadWhat { // what is uploaded the kernel writes to the disk in its own time
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
	return os.WriteFile(file, append(text, '\n'), 0o600)
}
