package main

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

// The systems that are compared.
const (
	ceilingSystem = "ceiling" // decodes and encodes, stores nothing
	groupSystem   = "formsvc" // the API, concurrent writes share commits
	eachSystem    = "each"    // the API, one transaction per request
)

// The stores that the API is measured on.
const (
	sqliteStore   = "sqlite"
	postgresStore = "postgres"
)

// The parts of a run.
const (
	createPart = "create"
	readPart   = "read"
	depthPart  = "depth"
)

// options are the flags.
type options struct {
	Rounds    int           `json:"rounds"`
	Duration  time.Duration `json:"durationNanoseconds"`
	Warmup    time.Duration `json:"warmupNanoseconds"`
	Conns     []int         `json:"conns"`
	ReadConns []int         `json:"readConns"`
	Stores    []string      `json:"stores"`
	Systems   []string      `json:"systems"`
	Only      []string      `json:"only"`
	Fill      int           `json:"fill"`
	Large     int           `json:"large"`

	dir      string
	jsonFile string
	profiles string
}

func parseOptions(args []string, usage io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("formbench", flag.ContinueOnError)
	fs.SetOutput(usage)
	fs.IntVar(&o.Rounds, "rounds", 3, "how often every cell is measured")
	fs.DurationVar(&o.Duration, "duration", 3*time.Second, "how long a cell is measured")
	fs.DurationVar(&o.Warmup, "warmup", time.Second, "how long a cell runs before")
	conns := fs.String("conns", "1,8,32,64", "connections of the create cells")
	readConns := fs.String("read-conns", "8,64", "connections of the read cells")
	stores := fs.String("stores", sqliteStore+","+postgresStore, "where to store; postgres needs "+postgresEnv)
	systems := fs.String("systems", strings.Join(allSystems(), ","), "what to measure")
	only := fs.String("only", strings.Join(allParts(), ","), "parts of the run")
	fs.IntVar(&o.Fill, "fill", 20_000, "responses in the campaign of the read cells")
	fs.IntVar(&o.Large, "large", 1_000_000, "responses in the large campaign of the depth cells")
	fs.StringVar(&o.dir, "dir", "", "`directory` for SQLite files, on a real disk (default the system's for temporary files)")
	fs.StringVar(&o.jsonFile, "json", "", "write everything to this `file` too")
	fs.StringVar(&o.profiles, "cpuprofile", "", "write a CPU profile of every server into this `directory`")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	var errs [5]error
	o.Conns, errs[0] = counts("conns", *conns)
	o.ReadConns, errs[1] = counts("read-conns", *readConns)
	o.Stores, errs[2] = choice("stores", *stores, []string{sqliteStore, postgresStore})
	o.Systems, errs[3] = choice("systems", *systems, allSystems())
	o.Only, errs[4] = choice("only", *only, allParts())
	return o, errors.Join(append(errs[:], o.check())...)
}

func allSystems() []string { return []string{ceilingSystem, groupSystem, eachSystem} }

func allParts() []string { return []string{createPart, readPart, depthPart} }

// minFill is enough for the pages that are read.
const minFill = 2 * pageSize

func (o *options) check() error {
	switch {
	case o.Rounds < 1:
		return errors.New("-rounds must be at least 1")
	case o.Duration <= 0 || o.Warmup < 0:
		return errors.New("-duration must be positive, -warmup not negative")
	case o.Fill < minFill:
		return fmt.Errorf("-fill must be at least %d", minFill)
	case o.Large <= smallCampaign:
		return fmt.Errorf("-large must be more than %d, the size of the small campaign", smallCampaign)
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
