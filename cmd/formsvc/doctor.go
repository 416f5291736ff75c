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
	Deep            bool          `help:"Also read the whole SQLite database and every uploaded file. This can take long."`
	Connect         bool          `help:"Also connect to webhook receivers, with TLS for https URLs, and disconnect without sending anything."`
	BaseURL         string        `name:"base-url" placeholder:"URL" help:"Public address of the API: also check that the server there is ready. Defaults to no such check."`
	Nodes           int           `default:"1" placeholder:"N" help:"Number of servers that use the database. Defaults to 1."`
	MinFree         byteSize      `default:"1GB" placeholder:"SIZE" help:"Warn about a disk with less free space than this. Defaults to 1GB."`
	LongTransaction time.Duration `default:"1m" help:"Warn about Postgres transactions that have been open for longer than this. Defaults to a minute."`
}

// Help returns the detailed help.
func (*doctorCmd) Help() string {
	return `Checks everything that a server needs, and says what is wrong and how to fix it. Run it with the flags, the environment and
the user of the server. It changes nothing, except that it stores a small test file beside the uploaded ones and removes it.
The exit status is 1 if there is a problem, and 0 if there are only warnings.`
}

// An examination collects findings.
type examination struct {
	*doctorCmd
	*global

	list []finding.Finding
}

func (e *examination) found(list ...finding.Finding) { e.list = append(e.list, list...) }

// Run runs all checks and prints the findings.
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
	m := std.meter(c.output, "checking", inPieces("checks"))
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

// print prints the findings and a summary.
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

// environment looks for unknown variables, such as misspelled ones.
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
		advice := "Remove it, or find the right name with: formsvc serve --help"
		if near := nearest(name, known); near != "" {
			advice = "Did you mean " + near + "?"
		}
		e.found(finding.Warn("environment", advice, "%s is not a variable of formsvc", name))
	}
	if !slices.ContainsFunc(e.list, func(f finding.Finding) bool { return f.Check == "environment" }) {
		e.found(finding.Good("environment", "all variables FORMSVC_… are known (%d)", read))
	}
}

// nearest returns the closest name with a distance of at most three letters, or "".
func nearest(name string, list []string) string {
	best, least := "", 4
	for _, known := range list {
		if d := distance(name, known); d < least {
			best, least = known, d
		}
	}
	return best
}

// distance returns the Levenshtein distance: the number of letters to change, add or remove.
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

// dataDir checks the directory of --data, if anything is stored there.
func (e *examination) dataDir() {
	if e.DB != "" && e.Blobs != "" && e.SecretKeys != "" {
		return
	}
	info, err := os.Stat(e.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.found(finding.Warn("data directory", "Start the server, which creates it, or set --data to the right one.", "%s doesn't exist yet", e.Data))
		return
	case err != nil:
		e.found(finding.Bad("data directory", "Make sure that this user has access to it.", "%v", err))
		return
	case !info.IsDir():
		e.found(finding.Bad("data directory", "Set --data to a directory.", "%s is not a directory", e.Data))
		return
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		e.found(finding.Warn("data directory", "Run: chmod 700 "+e.Data, "%s is accessible to other users (mode %04o)", e.Data, mode))
	} else {
		e.found(finding.Good("data directory", "%s, mode %04o", e.Data, mode))
	}
	e.disk("data directory", e.Data)
}

// disk checks the file system of a path.
func (e *examination) disk(check, path string) {
	d, err := diskOf(path)
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	if err != nil {
		e.found(finding.Bad(check, "Make sure that the disk is mounted.", "%v", err))
		return
	}
	if d.free < int64(e.MinFree) {
		e.found(finding.Warn(check, "Free some space, or move it to a larger disk. When the disk is full, writes fail with 507.", "%s are free on its disk", inBytes(d.free)))
	} else {
		e.found(finding.Good(check, "%s are free on its disk", inBytes(d.free)))
	}
	switch d.kind {
	case diskNetwork:
		e.found(finding.Bad(check, "Move it to a local disk: SQLite and the key file need its file locks.", "it is on a network file system (%s)", d.name))
	case diskMemory:
		e.found(finding.Warn(check, "Move it to a disk, unless you can lose it.", "it is in memory (%s) and lost when the machine restarts", d.name))
	case diskLayer:
		e.found(finding.Warn(check, "Mount a volume there, unless you can lose it.", "it is in the container's own layer (%s) and lost with the container", d.name))
	}
}

// database checks the database and reports whether it is usable.
func (e *examination) database(ctx context.Context) (usable bool) {
	scheme, path, _ := e.scheme()
	var list []finding.Finding
	if _, err := os.Stat(path); scheme == "sqlite" && errors.Is(err, fs.ErrNotExist) && refuseUnfinished(path) == nil {
		e.found(finding.Bad("database", "Start the server, which creates it, or set --data or --db to the right one.", "there is no database at %s", absolute(path)))
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
		// A server or pooler that accepts connections but never replies counts as unreachable.
		ctx, cancel := context.WithTimeout(ctx, 3*doctorPatience)
		defer cancel()
		list = postgres.Diagnose(ctx, e.DB, &postgres.DiagnoseOptions{Nodes: e.Nodes, LongTransaction: e.LongTransaction})
	}
	e.found(list...)
	if slices.ContainsFunc(list, func(f finding.Finding) bool { return f.Check == "schema" }) { // it can be read
		if err := e.refuseLeftBehind(ctx); err != nil {
			e.found(finding.Bad("database", "A server would refuse to start. Move the data, or set another --data.", "%v", err))
		}
	}
	return slices.ContainsFunc(list, func(f finding.Finding) bool { return f.Check == "schema" && f.Level == finding.OK }) &&
		// Opening it like a server would change the journal mode.
		!slices.ContainsFunc(list, func(f finding.Finding) bool { return f.Check == "journal" && f.Level != finding.OK })
}

// withStore runs the checks that need rows, if the database is usable, and the checks of files.
func (e *examination) withStore(ctx context.Context, usable bool, do func(store, *formsvc.Service)) (err error) {
	ring, err := e.keyFile()
	if err != nil || !usable {
		e.files(ctx, nil, nil)
		return nil
	}
	s, err := e.openWith(ctx, ring, false)
	if err != nil {
		e.found(finding.Bad("database", "See the findings above.", "a server can't use it: %v", err))
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
