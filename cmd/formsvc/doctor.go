package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage"
)

const (
	doctorPatience = 5 * time.Second  // for a database
	clockTolerance = 10 * time.Second // between this machine and the database
	lateAfter      = 5 * time.Minute  // a delivery overdue by this is a problem
	longOpen       = time.Minute      // a writing transaction that is open for longer holds up the feed
)

type doctorCmd struct {
	output
	MinFree byteSize `default:"1GB" placeholder:"SIZE" help:"Warn about a disk with less free space than this. Defaults to 1GB."`
}

// Help returns the detailed help.
func (*doctorCmd) Help() string {
	return `Checks what a server needs, and says what is wrong and how to fix it. Run it with the flags, the environment and the user of
the server. It changes nothing, except that it stores a small test file beside the uploaded ones and removes it.
The exit status is 1 if there is a problem, and 0 if there are only warnings. "formsvc health" asks a running server,
"formsvc webhooks test" sends an event, and "formsvc files verify" reads every uploaded file.`
}

// A finding is the result of a check.
type finding struct {
	Check  string `json:"check"`
	Level  string `json:"level"` // ok, warning or problem
	Detail string `json:"detail"`
	Advice string `json:"advice,omitempty"` // unless it is ok
}

// An examination runs the checks and collects their findings.
type examination struct {
	*doctorCmd
	*global

	store store
	blobs blobstore.Store // nil if they can't be used or don't exist yet
	svc   *formsvc.Service
	list  []finding
}

// warning is an error that a server can live with.
type warning struct{ error }

// add adds the result of a check: an error or a warning with advice, or the detail of a success.
func (e *examination) add(check, advice string, err error, detail string) {
	f := finding{check, "ok", detail, ""}
	if err != nil {
		f = finding{check, "problem", err.Error(), advice}
		if _, ok := errors.AsType[warning](err); ok {
			f.Level = "warning"
		}
	}
	e.list = append(e.list, f)
}

// Run runs all checks and prints the findings.
func (c *doctorCmd) Run(ctx context.Context, g *global, std streams, command *kong.Context) (err error) {
	scheme, _, schemeErr := g.scheme()
	dir, s3, blobsErr := g.blobURL()
	if err := errors.Join(schemeErr, blobsErr); err != nil {
		return err
	}
	e := &examination{doctorCmd: c, global: g}
	defer func() {
		if e.store != nil {
			err = errors.Join(err, e.store.Close())
		}
	}()
	e.add("environment", "Remove it, or find the right name with: formsvc serve --help", e.environment(command), "all variables FORMSVC_… are known")
	e.directory("data directory", g.Data)
	if s3 == nil {
		e.directory("files", dir)
	}
	if _, err := os.Stat(dir); err == nil || s3 != nil {
		e.add("files", "Make sure that this user, or the AWS credentials, can list, read, write and delete there, and that there is free space.",
			e.probe(ctx), "a test file was stored, read and removed")
	}
	if err := e.database(ctx); err != nil {
		e.add("database", "Start the server, which creates or migrates it, or set --data or --db to the right one.", err, "")
		return e.print(std)
	}
	e.add("database", "", nil, "it can be used, and its schema is up to date")
	if scheme != "sqlite" {
		e.add("server settings", "Change the settings, synchronize the clocks, or end the transactions (pg_stat_activity).",
			e.postgres(ctx), "fsync, clock and transactions were checked")
	}
	e.add("secrets", "Copy the file secret.keys from the node that created it, or from a backup, to "+g.keyPath()+
		" (only its owner may read it: chmod 600), or set FORMSVC_SECRET_KEYS.", e.store.CheckKeys(ctx), "all keys that the database needs are here; keep a copy of them elsewhere")
	if e.blobs != nil {
		e.add("files", "Set --blobs to the files of this database.", e.svc.Files.Claim(ctx, &formsvc.ClaimOptions{DryRun: true}), "they belong to this database")
	}
	e.add("deliveries", "Start a server, or check its log and metrics.", e.deliveries(ctx), "none is overdue")
	return e.print(std)
}

// print prints the findings and a summary.
func (e *examination) print(std streams) error {
	count := make(map[string]int)
	for _, f := range e.list {
		count[f.Level]++
		if e.JSON {
			continue
		}
		_, _ = fmt.Fprintf(std.out, "%-8s %s: %s\n", f.Level, f.Check, strings.ReplaceAll(f.Detail, "\n", " "))
		if f.Advice != "" {
			_, _ = fmt.Fprintf(std.out, "         -> %s\n", f.Advice)
		}
	}
	if e.JSON {
		if err := e.printJSON(std, nil, anys(e.list)...); err != nil {
			return err
		}
	} else {
		std.note("%d problems, %d warnings, %d checks ok", count["problem"], count["warning"], count["ok"])
	}
	if count["problem"] > 0 {
		return errSilent
	}
	return nil
}

// environment looks for unknown variables, such as misspelled ones.
func (e *examination) environment(command *kong.Context) error {
	known := []string{"FORMSVC_KEY"} // the API key in the examples of the documentation
	_ = kong.Visit(command.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			known = append(known, flag.Envs...)
		}
		return next(nil)
	})
	for _, v := range e.Env {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "FORMSVC_") && !strings.HasPrefix(name, "FORMSVC_TEST_") && !slices.Contains(known, name) {
			return warning{fmt.Errorf("%s is not a variable of formsvc", name)}
		}
	}
	return nil
}

// directory checks a directory of data and its file system, if it exists.
func (e *examination) directory(check, path string) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		e.add(check, "Start the server, which creates it, or set the flags to the right one.", warning{fmt.Errorf("%s doesn't exist yet", path)}, "")
		return
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = warning{fmt.Errorf("%s is accessible to other users (mode %04o)", path, info.Mode().Perm())}
	}
	e.add(check, "Make sure that this user has access to it, and no other. Run: chmod 700 "+path, err, path+" is private")
	free, err := freeOf(path)
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	if err == nil && free < int64(e.MinFree) {
		err = warning{fmt.Errorf("%s are free on the disk of %s", inBytes(free), path)}
	}
	e.add(check, "Free some space, or move it to a larger disk. When the disk is full, writes fail with 507.", err, inBytes(free)+" are free")
}

// database opens the database.
func (e *examination) database(ctx context.Context) error {
	ring, err := e.keys(false)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, doctorPatience) // a pooler can accept connections and never reply
	defer cancel()
	if err := errors.Join(e.refuseLeftBehind(ctx), e.existing(ctx)); err != nil {
		return err
	}
	if e.store, err = e.openWith(ctx, ring, false); err != nil {
		return err
	}
	steps, err := e.store.Migrations(ctx)
	if slices.ContainsFunc(steps, func(m storage.Migration) bool { return m.AppliedAt.IsZero() }) {
		err = errors.New("migrations of this release are not in the schema; see: formsvc migrate status")
	}
	if err == nil {
		e.svc, err = formsvc.New(e.store, &formsvc.Options{Blobs: e.blobs})
	}
	return err
}

// postgres checks the settings, the clock and the open transactions of a Postgres server.
func (e *examination) postgres(ctx context.Context) error {
	const query = `SELECT current_setting('fsync') || current_setting('full_page_writes'), clock_timestamp(),
		(SELECT count(*) FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND xact_start < clock_timestamp() - $1::float8 * interval '1 second')`
	db, err := sql.Open("pgx", e.DB)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	var settings string
	var theirs time.Time
	var open int
	if err := db.QueryRowContext(ctx, query, longOpen.Seconds()).Scan(&settings, &theirs, &open); err != nil {
		return err
	}
	switch apart := time.Until(theirs); {
	case settings != "onon":
		return errors.New("fsync or full_page_writes is off: set both on, or acknowledged writes are lost when the machine loses its power")
	case apart.Abs() > clockTolerance:
		return fmt.Errorf("the clock of the database is %v ahead of the one here", apart.Round(time.Second))
	case open > 0:
		return fmt.Errorf("%d writing transactions are open for longer than %v: GET /v1/events shows nothing newer", open, longOpen)
	}
	return nil
}

// probe opens the blob store, stores a few bytes under an unused key, reads them back and removes them.
func (e *examination) probe(ctx context.Context) (err error) {
	b, err := e.openBlobs()
	if err != nil {
		return err
	}
	e.blobs = b
	key, content := "doctor-"+strings.ToLower(rand.Text()), []byte("test file of formsvc doctor; can be removed\n")
	if _, err := b.Put(ctx, key, bytes.NewReader(content)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Delete(context.WithoutCancel(ctx), key)) }()
	r, _, err := b.Open(ctx, key, 0, -1)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	got, err := io.ReadAll(r)
	if err == nil && !bytes.Equal(got, content) {
		err = errors.New("the bytes read differ from those written")
	}
	return err
}

// deliveries checks that a server sends deliveries.
func (e *examination) deliveries(ctx context.Context) error {
	stats, err := e.svc.Deliveries.Stats(ctx)
	if late := time.Since(stats.OldestDue); err == nil && !stats.OldestDue.IsZero() && late > lateAfter {
		err = fmt.Errorf("%d are pending, the oldest overdue by %v: no server sends them, or the servers can't keep up", stats.Pending, late.Round(time.Second))
	}
	return err
}
