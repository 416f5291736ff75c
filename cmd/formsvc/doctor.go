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
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/egress"
)

const (
	doctorPatience = 5 * time.Second  // for a name lookup
	clockTolerance = 10 * time.Second // between this machine and the database
	lateAfter      = 5 * time.Minute  // a delivery overdue by this is a problem
	longOpen       = time.Minute      // a writing transaction that is open for longer holds up the feed
)

type doctorCmd struct {
	output
	allowing
	Deep    bool     `help:"Also read the whole SQLite database and every uploaded file. This can take long."`
	MinFree byteSize `default:"1GB" placeholder:"SIZE" help:"Warn about a disk with less free space than this. Defaults to 1GB."`
}

// Help returns the detailed help.
func (*doctorCmd) Help() string {
	return `Checks what a server needs, and says what is wrong and how to fix it. Run it with the flags, the environment and the user of
the server. It changes nothing, except that it stores a small test file beside the uploaded ones and removes it.
The exit status is 1 if there is a problem, and 0 if there are only warnings. "formsvc health" asks a running server, and
"formsvc webhooks test" sends an event.`
}

// A finding is the result of a check.
type finding struct {
	Check  string `json:"check"`
	Level  string `json:"level"` // ok, warning or problem
	Detail string `json:"detail"`
	Advice string `json:"advice,omitempty"` // unless it is ok
}

// An examination collects findings.
type examination struct {
	*doctorCmd
	*global

	list []finding
}

func (e *examination) warn(check, advice, format string, args ...any) {
	e.list = append(e.list, finding{check, "warning", fmt.Sprintf(format, args...), advice})
}

// result adds a problem if there is an error, or else a check that is ok.
func (e *examination) result(check, advice string, err error, format string, args ...any) {
	if err != nil {
		e.list = append(e.list, finding{check, "problem", err.Error(), advice})
		return
	}
	e.list = append(e.list, finding{check, "ok", fmt.Sprintf(format, args...), ""})
}

// Run runs all checks and prints the findings.
func (c *doctorCmd) Run(ctx context.Context, g *global, std streams, command *kong.Context) error {
	policy, err := c.policy()
	if err != nil {
		return err
	}
	scheme, _, err := g.scheme()
	if err != nil {
		return err
	}
	if _, _, err := g.blobURL(); err != nil {
		return err
	}
	e := &examination{doctorCmd: c, global: g}
	e.environment(e.Env, command)
	e.directory("data directory", e.Data)
	if err := e.database(ctx, scheme, policy); err != nil {
		e.result("database", "Start the server, which creates or migrates it, or set --data or --db to the right one.", err, "")
		if b := e.files(ctx); b != nil {
			_ = b.Close()
		}
	}
	return e.print(std)
}

// print prints the findings and a summary.
func (e *examination) print(std streams) error {
	count := make(map[string]int)
	var b strings.Builder
	for _, f := range e.list {
		count[f.Level]++
		fmt.Fprintf(&b, "%-8s %s: %s\n", f.Level, f.Check, strings.ReplaceAll(f.Detail, "\n", " "))
		if f.Advice != "" {
			fmt.Fprintf(&b, "         -> %s\n", f.Advice)
		}
	}
	var err error
	if e.JSON {
		err = records(e.output, std.out, "", e.list, nil)
	} else {
		_, err = fmt.Fprint(std.out, b.String())
		_, _ = fmt.Fprintf(std.err, "%d problems, %d warnings, %d checks ok\n", count["problem"], count["warning"], count["ok"])
	}
	if err == nil && count["problem"] > 0 {
		return errSilent
	}
	return err
}

// environment looks for unknown variables, such as misspelled ones.
func (e *examination) environment(variables environment, command *kong.Context) {
	known := []string{"FORMSVC_KEY"} // the API key in the examples of the documentation
	_ = kong.Visit(command.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			known = append(known, flag.Envs...)
		}
		return next(nil)
	})
	unknown := 0
	for _, v := range variables {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "FORMSVC_") && !strings.HasPrefix(name, "FORMSVC_TEST_") && !slices.Contains(known, name) {
			e.warn("environment", "Remove it, or find the right name with: formsvc serve --help", "%s is not a variable of formsvc", name)
			unknown++
		}
	}
	if unknown == 0 {
		e.result("environment", "", nil, "all variables FORMSVC_… are known")
	}
}

// directory checks a directory of data and its file system, if it exists.
func (e *examination) directory(check, path string) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		e.warn(check, "Start the server, which creates it, or set the flags to the right one.", "%s doesn't exist yet", path)
		return
	}
	if err != nil {
		e.result(check, "Make sure that this user has access to it.", err, "")
		return
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		e.warn(check, "Run: chmod 700 "+path, "%s is accessible to other users (mode %04o)", path, mode)
	}
	free, err := freeOf(path)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
	case err != nil:
		e.result(check, "Make sure that the disk is mounted.", err, "")
	case free < int64(e.MinFree):
		e.warn(check, "Free some space, or move it to a larger disk. When the disk is full, writes fail with 507.", "%s are free on its disk", inBytes(free))
	default:
		e.result(check, "", nil, "%s, %s free", path, inBytes(free))
	}
}

// database checks the database and everything that needs its rows. An error says why the rest can't be checked.
func (e *examination) database(ctx context.Context, scheme string, policy *egress.Policy) (err error) {
	ring, err := e.keys(false)
	if err != nil {
		e.result("secrets key", "Restore the file from a backup. Only its owner may read it (chmod 600).", err, "")
		return nil
	}
	reach, cancel := context.WithTimeout(ctx, doctorPatience) // a pooler can accept connections and never reply
	defer cancel()
	if err := errors.Join(e.refuseLeftBehind(reach), e.existing(reach)); err != nil {
		return err
	}
	s, err := e.openWith(reach, ring, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	steps, err := s.Migrations(ctx)
	if err != nil {
		return err
	}
	for _, step := range steps {
		if step.AppliedAt.IsZero() {
			return fmt.Errorf("migration %d (%s) of this release is not in the schema; see: formsvc migrate status", step.Version, step.Name)
		}
	}
	e.result("database", "", nil, "it can be used, and its schema is up to date")
	if scheme == "sqlite" && e.Deep {
		e.integrity(ctx)
	} else if scheme != "sqlite" {
		e.postgres(ctx)
	}
	missing, err := s.MissingKeys(ctx)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("secrets are encrypted with keys that are missing here: %s", strings.Join(missing, ", "))
	}
	e.result("secrets", "Copy the file secret.keys from the node that created it, or from a backup, to "+e.keyPath()+", or set FORMSVC_SECRET_KEYS.",
		err, "all keys that the database needs are here; keep a copy of them elsewhere")
	b := e.files(ctx)
	if b != nil {
		defer func() { err = errors.Join(err, b.Close()) }()
	}
	svc, err := formsvc.New(s, &formsvc.Options{Blobs: b})
	if err != nil {
		return err
	}
	if b != nil {
		e.result("files", "Set --blobs to the files of this database.", e.contents(ctx, svc), "they belong to this database")
	}
	return e.webhooks(ctx, svc, policy)
}

// integrity reads the whole SQLite database.
func (e *examination) integrity(ctx context.Context) {
	_, path, _ := e.scheme()
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: absolute(path)}).EscapedPath()+"?mode=ro")
	verdict := ""
	if err == nil {
		defer func() { _ = db.Close() }()
		err = db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict)
	}
	if err == nil && verdict != "ok" {
		err = errors.New(verdict)
	}
	e.result("integrity", "Stop the server, keep a copy of the file, and restore a backup (formsvc restore).", err, "every page is consistent")
}

// postgres checks the settings, the clock and the open transactions of a Postgres server.
func (e *examination) postgres(ctx context.Context) {
	const query = `SELECT current_setting('fsync') || current_setting('full_page_writes'), clock_timestamp(),
		(SELECT count(*) FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND xact_start < clock_timestamp() - $1::float8 * interval '1 second')`
	var settings string
	var theirs time.Time
	var open int
	db, err := sql.Open("pgx", e.DB)
	if err == nil {
		defer func() { _ = db.Close() }()
		err = db.QueryRowContext(ctx, query, longOpen.Seconds()).Scan(&settings, &theirs, &open)
	}
	if err == nil && settings != "onon" {
		err = errors.New("fsync or full_page_writes is off: set both on, or acknowledged writes are lost when the machine loses its power")
	} else if apart := time.Until(theirs); err == nil && apart.Abs() > clockTolerance {
		err = fmt.Errorf("the clock of the database is %v ahead of the one here", apart.Round(time.Second))
	} else if err == nil && open > 0 {
		err = fmt.Errorf("%d writing transactions are open for longer than %v: GET /v1/events shows nothing newer", open, longOpen)
	}
	e.result("server settings", "Change the settings, synchronize the clocks, or end the transactions (pg_stat_activity).", err, "fsync, clock and transactions were checked")
}

// files checks the blob store and returns it, or nil if it can't be used or doesn't exist yet.
func (e *examination) files(ctx context.Context) blobs {
	if dir, s3, err := e.blobURL(); err == nil && s3 == nil {
		e.directory("files", dir)
		if _, err := os.Stat(dir); err != nil {
			return nil
		}
	}
	b, err := e.openBlobs()
	if err == nil {
		err = probe(ctx, b)
	}
	e.result("files", "Make sure that this user, or the AWS credentials, can list, read, write and delete there, and that there is free space.",
		err, "a test file was stored, read and removed")
	return b
}

// probe stores a few bytes under an unused key, reads them back and removes them.
func probe(ctx context.Context, b blobstore.Store) (err error) {
	key := "doctor-" + strings.ToLower(rand.Text())
	content := []byte("test file of formsvc doctor; can be removed\n")
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

// contents checks that the files belong to the database, and with --deep reads them all.
func (e *examination) contents(ctx context.Context, svc *formsvc.Service) error {
	if err := svc.Files.Claim(ctx, &formsvc.ClaimOptions{DryRun: true}); err != nil || !e.Deep {
		return err
	}
	damaged := 0
	checked, err := svc.Files.Verify(ctx, func(*formsvc.File, error) error { damaged++; return nil })
	if err == nil && damaged > 0 {
		err = fmt.Errorf("%d of %d are missing or damaged; formsvc files verify lists them", damaged, checked)
	}
	return err
}

// webhooks checks the webhooks that are in use, and whether deliveries are sent.
func (e *examination) webhooks(ctx context.Context, svc *formsvc.Service, policy *egress.Policy) error {
	accounts, err := svc.Accounts.List(ctx)
	if err != nil {
		return err
	}
	total := 0
	for i := range accounts {
		hooks, err := svc.Webhooks.List(ctx, accounts[i].ID)
		if err != nil {
			return err
		}
		for j := range hooks {
			if total++; !hooks[j].Disabled {
				e.webhook(ctx, policy, &hooks[j])
			}
		}
	}
	stats, err := svc.Deliveries.Stats(ctx)
	if err != nil {
		return err
	}
	if late := time.Since(stats.OldestDue); !stats.OldestDue.IsZero() && late > lateAfter {
		err = fmt.Errorf("%d are pending, the oldest overdue by %v: no server sends them, or the servers can't keep up", stats.Pending, late.Round(time.Second))
	}
	e.result("deliveries", "Start a server, or check its log and metrics.", err, "%d webhooks, %d pending deliveries, none overdue", total, stats.Pending)
	return nil
}

// webhook checks that requests can be sent to a webhook. It shows only the host of the URL, which may contain a token.
func (e *examination) webhook(ctx context.Context, policy *egress.Policy, hook *formsvc.Webhook) {
	name := "webhook " + string(hook.ID)
	if hook.Secret == "" {
		e.result(name, "Give it a new secret: formsvc webhooks rotate "+string(hook.ID), errors.New("its secret can't be decrypted, so nothing is sent to it"), "")
	}
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	if err := policy.CheckURL(ctx, hook.URL); err != nil {
		e.result(name, "Change its URL, or allow the range if it is yours: --webhook-allow, here and for the server.", err, "")
	}
}
