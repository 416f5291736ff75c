package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/deliver"
	"github.com/formsvc/toolkit/cmd/formbench/internal/files"
	"github.com/formsvc/toolkit/cmd/formbench/internal/peers"
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
	"github.com/formsvc/toolkit/cmd/formbench/internal/scale"
)

// runBench measures and reports. If a measurement fails, it reports the cells measured so far.
func runBench(ctx context.Context, b *bench.Bench, out io.Writer) (err error) {
	if err := prepare(ctx, b); err != nil {
		return err
	}
	from := append([]string{"date", time.Now().UTC().Format("2 January 2006")}, proc.Machine()...)
	from = append(from, "rounds", fmt.Sprintf("%d of %v", b.Rounds, b.Duration))
	if b.OutFile != "" {
		file, err := os.Create(b.OutFile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		b.Out = result.NewWriter(file, from...)
	}
	err = measure(ctx, b)
	checkNoise(b)
	var source []string
	for i := 1; i < len(from); i += 2 {
		source = append(source, from[i])
	}
	return errors.Join(err, report(b, strings.Join(source, ", "), out))
}

// measure runs the parts of the run.
func measure(ctx context.Context, b *bench.Bench) error {
	for _, part := range []struct {
		name string
		when bool
		run  func(context.Context, *bench.Bench) error
	}{
		{"requests", true, requests.Run},
		{"deliveries", b.Asks(bench.DeliverParts()...), deliver.Run},
		{"files", b.Asks(bench.FilesPart), files.Run},
		{"scale", b.Asks(bench.ScalePart), scale.Run},
		{"peers", true, peers.Run},
	} {
		if !part.when {
			continue
		}
		if err := part.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// prepare finds out which parts can't be measured, or not well.
func prepare(ctx context.Context, b *bench.Bench) (err error) {
	if b.Self, err = os.Executable(); err != nil {
		return err
	}
	if _, err := proc.ReadTimes(); err != nil {
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
	asked := b.Asks(append(bench.DeliverParts(), bench.CreatePart, bench.ReadPart, bench.ChecksPart, bench.ScalePart, bench.PeerPostgresPart)...)
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
	syncs, err := database.ServerCount(ctx, os.Getenv(bench.PostgresEnv), "SELECT (current_setting('fsync') = 'on')::int")
	if err == nil && syncs == 0 {
		b.Warn("this Postgres does not sync to disk (fsync is off): start it with --durable")
	}
	return err
}

// checkNoise warns when other processes used the machine during the measurements. It leaves uploads out, because the
// kernel delays their writes to the disk.
func checkNoise(b *bench.Bench) {
	const tolerable = 0.3 // cores
	counted, noisy, most := 0, 0, 0.0
	for i := range b.Cells {
		c := &b.Cells[i]
		cores, ok := c.Get("other-cores")
		quiet := c.Store != bench.PostgresStore || c.System == bench.CeilingSystem
		if !ok || !quiet || (c.Part == bench.FilesPart && c.What != bench.DownloadWhat) || c.Part == bench.PeerFilesPart || c.Part == bench.LatencyPart {
			continue
		}
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
