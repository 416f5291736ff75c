// Command formbench measures "formsvc serve" as it is shipped, beside PocketBase and River, and prints the results in the
// format of Go benchmarks, for benchstat.
//
//	formbench [-binary [NAME=]PATH]... [-peers PATH] [flags]
//
// Each measurement gets a new process and an empty database. The systems take turns within a round, because the speed of
// a machine changes over minutes. ns/op is the elapsed time divided by the requests: the reciprocal of the throughput.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "formbench:", err)
		os.Exit(1)
	}
}

// The stores. River and formsvc run on both.
const (
	sqliteStore   = "sqlite"
	postgresStore = "postgres"
)

// postgresEnv names the server, as a postgres:// URL. It is set by .ci/with-postgres.
const postgresEnv = "FORMSVC_TEST_POSTGRES"

// A bench has the settings of a run.
type bench struct {
	builds   []build // of formsvc
	peers    string  // the program of the package peers; "" to measure formsvc alone
	dir      string  // for the data
	stores   []string
	only     []string // workloads
	conns    []int
	rounds   int
	length   time.Duration // of a measurement, after a warm-up
	fill     int           // responses that exist before requests are measured
	events   int           // the backlog
	fileSize int64         // bytes
	out      io.Writer
}

// A build is a binary of formsvc.
type build struct{ name, path string }

// run parses the command line and measures.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	b := &bench{out: out}
	flags := flag.NewFlagSet("formbench", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.Func("binary", "`[NAME=]PATH` of a formsvc binary; repeatable; default: built from this checkout", b.addBuild)
	flags.StringVar(&b.peers, "peers", "", "`PATH` of the program of cmd/formbench/peers, to measure PocketBase and River too")
	flags.StringVar(&b.dir, "dir", "", "existing `DIRECTORY` for the data, on a real disk; default: the one for temporary files")
	defaults := sqliteStore
	if os.Getenv(postgresEnv) != "" {
		defaults += "," + postgresStore
	}
	stores := flags.String("store", defaults, "`LIST` of stores; Postgres needs "+postgresEnv)
	only := flags.String("only", strings.Join(workloadNames(), ","), "`LIST` of workloads")
	conns := flags.String("conns", "64", "`LIST` of numbers of connections")
	flags.IntVar(&b.rounds, "rounds", 5, "number of rounds")
	flags.DurationVar(&b.length, "time", 5*time.Second, "length of each measurement")
	flags.IntVar(&b.fill, "fill", 10_000, "number of responses that exist before creates and reads are measured")
	flags.IntVar(&b.events, "events", 20_000, "number of events in the backlog")
	flags.Int64Var(&b.fileSize, "file", 100_000_000, "size of a file in bytes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || b.fill < 1 || b.events < 1 || b.fileSize < 1 || b.length <= 0 {
		return errors.New("numbers must be positive, and only flags are allowed")
	}
	if err := b.parseLists(*stores, *only, *conns); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(b.dir, "formbench-")
	if err != nil {
		return err
	}
	b.dir = dir
	if len(b.builds) == 0 {
		err = b.build(ctx)
	}
	if err == nil {
		err = b.measure(ctx)
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// addBuild parses a value of -binary.
func (b *bench) addBuild(value string) error {
	name, path, named := strings.Cut(value, "=")
	if !named {
		name, path = "formsvc", value
	}
	if name == "" || strings.ContainsAny(name, " /=") || slices.ContainsFunc(b.builds, func(o build) bool { return o.name == name }) {
		return fmt.Errorf("the name %q is empty, invalid or repeated", name)
	}
	b.builds = append(b.builds, build{name, path})
	return nil
}

// parseLists parses the flags with lists.
func (b *bench) parseLists(stores, only, conns string) error {
	b.stores, b.only = strings.Split(stores, ","), strings.Split(only, ",")
	for _, s := range b.stores {
		if s != sqliteStore && s != postgresStore {
			return fmt.Errorf("unknown store %q", s)
		}
	}
	if os.Getenv(postgresEnv) == "" && slices.Contains(b.stores, postgresStore) {
		return errors.New(postgresEnv + " is not set: run this with \"bash .ci/with-postgres --durable\"")
	}
	for _, name := range b.only {
		if !slices.Contains(workloadNames(), name) {
			return fmt.Errorf("unknown workload %q, want some of %s", name, strings.Join(workloadNames(), ", "))
		}
	}
	for text := range strings.SplitSeq(conns, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no number of connections", text)
		}
		b.conns = append(b.conns, n)
	}
	return nil
}

// build builds formsvc from the checkout that contains the current directory.
func (b *bench) build(ctx context.Context) error {
	path := filepath.Join(b.dir, "formsvc")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/formsvc/toolkit/cmd/formsvc")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build formsvc (run this in its checkout, or name a -binary): %w\n%s", err, out)
	}
	b.builds = []build{{"formsvc", path}}
	return nil
}

// A workload is something to measure, on each store.
type workload struct {
	name   string
	run    func(ctx context.Context, c *cell) error
	each   bool                // with each number of connections, not just the largest
	stores map[string][]string // with the peers that it is compared with
}

func workloads() []workload {
	pocketbase := map[string][]string{sqliteStore: {pocketSystem}, postgresStore: nil} // PocketBase has no Postgres
	river := map[string][]string{sqliteStore: {riverSystem}, postgresStore: {riverSystem}}
	return []workload{
		{"create", create, true, map[string][]string{sqliteStore: {pocketSystem, pocketFullSystem}, postgresStore: nil}},
		{"keyed", keyed, true, map[string][]string{sqliteStore: nil, postgresStore: nil}},
		{"form", form, true, map[string][]string{sqliteStore: nil, postgresStore: nil}},
		{"get", get, true, pocketbase},
		{"list", list, true, pocketbase},
		{"deliver", deliver, true, river},
		{"drain", drain, false, river},
		{"files", transfer, false, map[string][]string{sqliteStore: {pocketSystem}}}, // they aren't in the database
	}
}

func workloadNames() (names []string) {
	for _, w := range workloads() {
		names = append(names, w.name)
	}
	return names
}

// measure runs the rounds. Compared measurements follow each other, beginning with another system in each round.
func (b *bench) measure(ctx context.Context) error {
	if _, err := fmt.Fprintf(b.out, "goos: linux\npkg: github.com/formsvc/toolkit/cmd/formbench\ncpu: %s\n", processor()); err != nil {
		return err
	}
	for round := range b.rounds {
		for _, store := range b.stores {
			for _, w := range workloads() {
				peers, ok := w.stores[store]
				if !ok || !slices.Contains(b.only, w.name) {
					continue
				}
				conns := b.conns
				if !w.each {
					conns = []int{slices.Max(b.conns)}
				}
				for _, n := range conns {
					if err := b.compare(ctx, &w, cell{bench: b, store: store, conns: n}, peers, round); err != nil {
						return fmt.Errorf("%s on %s with %d connections: %w", w.name, store, n, err)
					}
				}
			}
		}
	}
	return nil
}

// compare measures all systems once.
func (b *bench) compare(ctx context.Context, w *workload, c cell, peers []string, round int) error {
	var systems []string
	for _, build := range b.builds {
		systems = append(systems, build.name)
	}
	if b.peers != "" {
		systems = append(systems, peers...)
	}
	for i := range systems {
		c.system = systems[(i+round)%len(systems)]
		if err := w.run(ctx, &c); err != nil {
			return fmt.Errorf("%s: %w", c.system, err)
		}
	}
	return nil
}

// A cell is a measurement of one system.
type cell struct {
	*bench
	system, store string
	conns         int
}

// A sample is the result of a measurement.
type sample struct {
	n             int // operations
	elapsed       time.Duration
	latencies     []time.Duration // ascending; nil for none
	before, after usage
}

// report prints a result. detail names settings, such as "/fill=10". With a size in bytes, each operation is of that size.
// On Postgres, everything else on the machine counts as the database.
func (c *cell) report(name, detail string, size int64, s *sample) error {
	if s.n == 0 {
		return errors.New("nothing was answered in time: choose a longer -time")
	}
	line := fmt.Sprintf("Benchmark%s/sys=%s/store=%s%s\t%d", name, c.system, c.store, detail, s.n)
	add := func(v float64, unit string) { line += fmt.Sprintf("\t%.1f %s", v, unit) }
	add(float64(s.elapsed)/float64(s.n), "ns/op")
	if size > 0 {
		add(float64(size)*float64(s.n)/1e6/s.elapsed.Seconds(), "MB/s")
	}
	if s.latencies != nil {
		add(percentile(s.latencies, 50), "p50-ns")
		add(percentile(s.latencies, 99), "p99-ns")
	}
	each := float64(s.n) / 1e9
	server := s.after.server - s.before.server
	add(server/each, "server-cpu-ns/op")
	if c.store == postgresStore {
		add(max(0, s.after.machine-s.before.machine-(s.after.self-s.before.self)-server)/each, "database-cpu-ns/op")
	}
	add(float64(s.after.peak), "rss-bytes")
	_, err := fmt.Fprintln(c.out, line)
	return err
}

// percentile returns a percentile of ascending latencies (nearest rank) in nanoseconds.
func percentile(sorted []time.Duration, percent int) float64 {
	return float64(sorted[max((len(sorted)*percent+99)/100-1, 0)])
}
