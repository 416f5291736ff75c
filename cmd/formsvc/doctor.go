package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/finding"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/sqlite"
)

type doctorCmd struct {
	output
	allowing
	Deep            bool          `help:"Also read the whole SQLite database and every file, which takes as long as the disk needs."`
	Connect         bool          `help:"Also connect to the receivers of webhooks, with TLS where they have it, and hang up without sending anything."`
	BaseURL         string        `name:"base-url" placeholder:"URL" help:"The public address of the API: ask it whether the server is ready. Defaults to not asking."`
	Nodes           int           `default:"1" placeholder:"N" help:"How many servers use the database. Defaults to 1."`
	MinFree         byteSize      `default:"1GB" placeholder:"SIZE" help:"How much room a disk should have left. Defaults to 1GB."`
	LongTransaction time.Duration `default:"1m" help:"After how long an open transaction of Postgres is worth a warning. Defaults to a minute."`
}

// Help says what it does.
func (*doctorCmd) Help() string {
	return `Looks at everything that a server needs, and says what is wrong and what to do about it. Use the flags, the environment
and the user of the server. It changes nothing but a file of a few bytes that it stores with the uploaded ones, and removes.
Exit status 1 if there is a problem; warnings alone are 0.`
}

// An examination collects findings.
type examination struct {
	*doctorCmd
	*global

	list []finding.Finding
}

func (e *examination) found(list ...finding.Finding) { e.list = append(e.list, list...) }

// Run examines and prints what was found.
func (c *doctorCmd) Run(ctx context.Context, g *global, std streams, command *kong.Context) error {
	policy, err := c.policy()
	if err != nil {
		return err
	}
	if _, _, err := g.scheme(); err != nil {
		return err
	}
	if _, _, err := g.blobURL(); err != nil {
		return err
	}
	m := std.meter(c.output, "looking", inPieces("checks"))
	defer m.end()
	e := &examination{doctorCmd: c, global: g}
	e.environment(os.Environ(), command)
	e.dataDir()
	usable := e.database(ctx)
	m.set(int64(len(e.list)))
	if err := e.withStore(ctx, usable, func(s store, svc *formsvc.Service) {
		m.set(int64(len(e.list)))
		e.secrets(ctx, s)
		e.webhooks(ctx, svc, policy)
	}); err != nil {
		return err
	}
	e.server(ctx)
	m.end()
	return e.print(std)
}

// print prints the findings and says how it ended.
func (e *examination) print(std streams) error {
	if e.JSON {
		if err := records(e.output, std.out, "", e.list, nil); err != nil {
			return err
		}
	} else {
		var b strings.Builder
		for _, f := range e.list {
			fmt.Fprintf(&b, "%-8s %s: %s\n", f.Level, f.Check, strings.ReplaceAll(f.Detail, "\n", " "))
			if f.Advice != "" {
				fmt.Fprintf(&b, "         -> %s\n", f.Advice)
			}
		}
		if _, err := fmt.Fprint(std.out, b.String()); err != nil {
			return err
		}
	}
	count := make(map[finding.Level]int)
	for _, f := range e.list {
		count[f.Level]++
	}
	if !e.JSON {
		_, _ = fmt.Fprintf(std.err, "%d problems, %d warnings, %d checks ok\n", count[finding.Problem], count[finding.Warning], count[finding.OK])
	}
	if count[finding.Problem] > 0 {
		return errSilent
	}
	return nil
}

// environment looks for variables that nobody reads, such as misspelt ones.
func (e *examination) environment(variables []string, command *kong.Context) {
	known := []string{"FORMSVC_KEY"} // the API key in the examples of the documentation
	_ = kong.Visit(command.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			known = append(known, flag.Envs...)
		}
		return next(nil)
	})
	read := 0
	for _, v := range variables {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "FORMSVC_") || strings.HasPrefix(name, "FORMSVC_TEST_") {
			continue
		}
		if slices.Contains(known, name) {
			read++
			continue
		}
		advice := "Remove it, or see the names in: formsvc serve --help"
		if near := nearest(name, known); near != "" {
			advice = "Did you mean " + near + "?"
		}
		e.found(finding.Warn("environment", advice, "nobody reads %s", name))
	}
	if !slices.ContainsFunc(e.list, func(f finding.Finding) bool { return f.Check == "environment" }) {
		e.found(finding.Good("environment", "every variable FORMSVC_… is known (%d)", read))
	}
}

// nearest returns the name that is at most three letters away, or "".
func nearest(name string, list []string) string {
	best, least := "", 4
	for _, known := range list {
		if d := distance(name, known); d < least {
			best, least = known, d
		}
	}
	return best
}

// distance is how many letters must be changed, added or removed (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// dataDir looks at the directory of --data, if anything is kept there.
func (e *examination) dataDir() {
	if e.DB != "" && e.Blobs != "" && e.SecretKeys != "" {
		return
	}
	info, err := os.Stat(e.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.found(finding.Warn("data directory", "Start the server, which makes it; or name the right one with --data.", "there is no %s yet", e.Data))
		return
	case err != nil:
		e.found(finding.Bad("data directory", "See that this user may use it.", "%v", err))
		return
	case !info.IsDir():
		e.found(finding.Bad("data directory", "Name a directory with --data.", "%s is not a directory", e.Data))
		return
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		e.found(finding.Warn("data directory", "Run: chmod 700 "+e.Data, "others than its owner may enter %s (mode %04o)", e.Data, mode))
	} else {
		e.found(finding.Good("data directory", "%s, mode %04o", e.Data, mode))
	}
	e.disk("data directory", e.Data)
}

// disk looks at the file system that a path is on.
func (e *examination) disk(check, path string) {
	d, err := diskOf(path)
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	if err != nil {
		e.found(finding.Bad(check, "See that the disk is there.", "%v", err))
		return
	}
	if d.free < int64(e.MinFree) {
		e.found(finding.Warn(check, "Make room, or move it to a larger disk: writes are refused with 507 when it is full.", "%s of its disk are free", inBytes(d.free)))
	} else {
		e.found(finding.Good(check, "%s of its disk are free", inBytes(d.free)))
	}
	switch d.kind {
	case diskNetwork:
		e.found(finding.Bad(check, "Move it to a local disk: SQLite and keys need the locks of one.", "it is on a network file system (%s)", d.name))
	case diskMemory:
		e.found(finding.Warn(check, "Move it to a disk, unless it may be lost.", "it is in memory (%s) and gone after a restart of the machine", d.name))
	case diskLayer:
		e.found(finding.Warn(check, "Mount a volume there, unless it may be lost.", "it is in the layer of a container (%s) and gone with it", d.name))
	}
}

// database looks at the database and reports whether it can be used.
func (e *examination) database(ctx context.Context) (usable bool) {
	scheme, path, _ := e.scheme()
	var list []finding.Finding
	if _, err := os.Stat(path); scheme == "sqlite" && errors.Is(err, fs.ErrNotExist) && refuseUnfinished(path) == nil {
		e.found(finding.Bad("database", "Start the server, which makes it; or name another place with --data or --db.", "there is no database at %s", absolute(path)))
		return false
	}
	if scheme == "sqlite" {
		list = sqlite.Diagnose(ctx, path, &sqlite.DiagnoseOptions{Deep: e.Deep})
		if dir := filepath.Dir(path); filepath.Clean(dir) != filepath.Clean(e.Data) {
			if _, err := os.Stat(dir); err == nil {
				e.disk("database disk", dir)
			}
		}
		if err := refuseUnfinished(path); err != nil {
			list = append(list, finding.Bad("database", "Run formsvc restore again.", "%v", err))
		}
	} else {
		// A server, or a pooler, that takes connections and says nothing is one that is not there.
		ctx, cancel := context.WithTimeout(ctx, 3*doctorPatience)
		defer cancel()
		list = postgres.Diagnose(ctx, e.DB, &postgres.DiagnoseOptions{Nodes: e.Nodes, LongTransaction: e.LongTransaction})
	}
	e.found(list...)
	if slices.ContainsFunc(list, func(f finding.Finding) bool { return f.Check == "schema" }) { // it can be read
		if err := e.refuseLeftBehind(ctx); err != nil {
			e.found(finding.Bad("database", "A server refuses to start. Move the data, or name another --data.", "%v", err))
		}
	}
	return slices.ContainsFunc(list, func(f finding.Finding) bool { return f.Check == "schema" && f.Level == finding.OK }) &&
		// Opening it as a server does would change that.
		!slices.ContainsFunc(list, func(f finding.Finding) bool { return f.Check == "journal" && f.Level != finding.OK })
}

// withStore runs the checks that need the rows, if they can be had, and those of files.
func (e *examination) withStore(ctx context.Context, usable bool, do func(store, *formsvc.Service)) (err error) {
	ring, err := e.keyFile()
	if err != nil || !usable {
		e.files(ctx, nil, nil)
		return nil
	}
	s, err := e.openWith(ctx, ring, false)
	if err != nil {
		e.found(finding.Bad("database", "See what is said of it above.", "a server could not use it: %v", err))
		e.files(ctx, nil, nil)
		return nil
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	b := e.blobStore()
	if b != nil {
		defer func() { err = errors.Join(err, b.Close()) }()
	}
	svc, err := formsvc.New(s, &formsvc.Options{Blobs: b})
	if err != nil {
		return err
	}
	do(s, svc)
	e.files(ctx, s, svc)
	return nil
}
