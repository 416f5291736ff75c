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

// A bench is one run.
type bench struct {
	options
	self      string    // this program, which is also the server
	log       io.Writer // progress
	s3Program string    // "" when there is none
	result
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
	b := &bench{options: opts, log: std.err}
	b.result = result{Started: time.Now().UTC(), Machine: thisMachine(), Notes: []string{}, Cells: []cell{}}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	b.Options = b.options
	err := b.all(ctx)
	if err != nil {
		b.Error = err.Error()
	}
	b.checkNoise()
	b.Ratios = ratios(b.Cells)
	if b.requests() {
		b.Goals = goals(&b.options, b.Cells, b.Ratios)
	}
	b.Goals = append(b.Goals, deliverGoals(&b.options, b.Deliveries)...)
	b.Goals = append(b.Goals, fileGoals(&b.options, b.Files)...)
	b.Goals = append(b.Goals, overloadGoals(&b.options, b.Overloads)...)
	b.Goals = append(b.Goals, peerGoals(&b.options, &b.Peers)...)
	b.Goals = append(b.Goals, scaleGoals(&b.options, b.Scale)...)
	return errors.Join(err, b.report(std.out), b.writeJSON(), writeCharts(b.charts, b.sheets()))
}

// prepare finds out what can't be measured, or not well.
func (b *bench) prepare(ctx context.Context) (err error) {
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
	b.prepareFiles()
	if err := b.preparePeers(); err != nil {
		return err
	}
	if err := b.preparePostgres(ctx); err != nil {
		return err
	}
	return b.prepareRiver()
}

// prepareRiver finds out whether there is a peer to compare with.
func (b *bench) prepareRiver() (err error) {
	if b.River != "" {
		b.River, err = filepath.Abs(b.River)
		return err
	}
	if slices.ContainsFunc(b.Only, besideRiver) {
		b.warn("NOT MEASURED: River, since -river does not name the program of cmd/formbench/peers")
	}
	return nil
}

func (b *bench) preparePostgres(ctx context.Context) error {
	asked := b.requests() || b.delivers() || b.scales() || slices.Contains(b.Only, peerPostgresPart)
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

// warn notes what readers of the figures must know.
func (b *bench) warn(note string) {
	b.Notes = append(b.Notes, note)
	_, _ = fmt.Fprintln(b.log, "formbench:", note)
}

// checkNoise warns when others used the machine while nothing but a server and
// the generator should have.
func (b *bench) checkNoise() {
	const tolerable = 0.3 // cores
	counted, noisy, most := 0, 0, 0.0
	for _, cores := range b.otherCores() {
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
func (b *bench) otherCores() (list []float64) {
	for _, c := range slices.Concat(b.Cells, b.Peers.Requests) {
		if c.System == ceilingSystem || c.Store != postgresStore {
			list = append(list, c.OtherCores)
		}
	}
	for _, c := range b.Deliveries {
		if c.Store != postgresStore && (c.What == steadyPart || c.What == drainPart) {
			list = append(list, c.OtherCores)
		}
	}
	for _, c := range b.Files {
		if c.What == downloadWhat { // what is uploaded the kernel writes to the disk in its own time
			list = append(list, c.OtherCores)
		}
	}
	return list
}

// note adds a measured cell.
func (b *bench) note(c cell) {
	b.Cells = append(b.Cells, c)
	_, _ = fmt.Fprintf(b.log, "%s: %.0f/s\n", &c, c.PerSecond)
}

func (b *bench) writeJSON() error {
	if b.jsonFile == "" {
		return nil
	}
	text, err := json.MarshalIndent(b.result, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(b.jsonFile, append(text, '\n'), 0o600)
}
