package main

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

const anyID = "018f0000-0000-7000-8000-000000000000"

// onData returns the commands that need an existing database, with their required arguments.
func onData() map[string]string {
	return map[string]string{
		"accounts list": "", "accounts contact": "default ops@example.com", "accounts delete": "default --yes", "keys list": "", "keys revoke": anyID,
		"keys create":  "--name k --permissions all",
		"console-link": "", "webhooks list": "", "webhooks create": "--url https://example.com/ --events all",
		"webhooks get": anyID, "webhooks disable": anyID, "webhooks enable": anyID, "webhooks delete": anyID, "webhooks test": anyID, "webhooks deliveries": anyID,
		"webhooks redeliver": anyID + " --since 2026-11-23T00:00:00Z", "webhooks rotate": anyID,
		"files sweep": "", "files verify": "", "export": "--campaign " + anyID, "erase": "--email ada@example.com", "person export": "--email ada@example.com --out person.zip",
		"retention run": "--older-than 30d --campaign " + anyID, "audit list": "", "backup": "--to copy", "doctor": "",
		"secrets rotate-key": "", "migrate status": "",
		"people add": "--email ada@example.com --role admin", "people list": "", "people role": "--email ada@example.com --role admin",
		"people remove": "--email ada@example.com", "people link": "--email ada@example.com",
	}
}

// A command in the wrong directory says where it looked, and creates nothing there.
func TestCommandsMakeNoDatabase(t *testing.T) {
	var commands cli
	parser := must(newParser(&commands))
	notOnData := map[string]string{
		"serve": "makes the database", "accounts create": "makes the database", "migrate up": "makes the database", "restore": "makes the database",
		"sign": "has none", "verify": "has none", "health": "has none",
		"copy": "has two, which its own flags name, see TestCopyMistakes",
	}
	for _, leaf := range parser.Model.Leaves(false) {
		name := strings.TrimPrefix(commandName(leaf), "formsvc ")
		args, ok := onData()[name]
		if !ok {
			if notOnData[name] == "" {
				t.Errorf("%s: in neither list of this test", name)
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			line := strings.Fields(name + " " + args)
			said := refused(t, line)
			if want := filepath.Join(dir, "formsvc-data"); !strings.Contains(said, want) {
				t.Errorf("it does not say that it looked in %s: %s", want, said)
			}
			if said = refused(t, append(line, "--db", "sqlite:other.db")); !strings.Contains(said, "other.db") {
				t.Errorf("it does not say that it looked for other.db: %s", said)
			}
			if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
				t.Errorf("it made %v (%v)", made, err)
			}
			if name == "doctor" { // only a warning, tested elsewhere
				return
			}
			dsn := postgrestest.DSN(t)
			if said = refused(t, append(line, "--db", dsn)); !strings.Contains(said, "pg_dump") && !strings.Contains(said, "no tables of formsvc") {
				t.Errorf("it does not say that the database is empty: %s", said)
			}
			lacks(t, "the message", said, dsn)
			db, err := sql.Open("pgx", dsn)
			noError(t, err)
			defer func() { _ = db.Close() }()
			var tables int
			err = db.QueryRowContext(t.Context(), "SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema()").Scan(&tables)
			if made, dirErr := os.ReadDir(dir); err != nil || dirErr != nil || tables > 0 || len(made) > 0 {
				t.Errorf("it made %d tables and %v (%v, %v)", tables, made, err, dirErr)
			}
		})
	}
}

// refused runs a command that must fail, and returns its output.
func refused(t *testing.T, line []string) string {
	t.Helper()
	var out, said bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if status := run(ctx, line, nil, strings.NewReader(""), &out, &said); status != 1 {
		t.Errorf("%v: status %d, want 1: %s%s", line, status, &said, &out)
	}
	return out.String() + said.String()
}

// A missing directory of files is not created if the database is elsewhere.
func TestCommandsMakeNoDirectoryOfFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	accept := func(line ...string) {
		t.Helper()
		var said bytes.Buffer
		if status := run(t.Context(), line, nil, strings.NewReader(""), &said, &said); status != 0 {
			t.Fatalf("%v: %d %s", line, status, &said)
		}
	}
	accept("accounts", "create", "default", "--db", "sqlite:forms.db")
	for _, line := range [][]string{
		{"files", "verify"}, {"files", "sweep"}, {"erase", "--email", "ada@example.com"}, {"person", "export", "--email", "ada@example.com", "--out", "person.zip"}, {"backup", "--to", "copy"},
	} {
		contains(t, "the refusal", refused(t, append(line, "--db", "sqlite:forms.db")), filepath.Join(dir, "formsvc-data", "files"))
	}
	if _, err := os.Stat("formsvc-data"); err == nil {
		t.Error("a directory was made")
	}
	accept("backup", "--to", "copy", "--without-files", "--db", "sqlite:forms.db")
	accept("files", "verify", "--db", "sqlite:forms.db", "--blobs", "file:"+t.TempDir())
}

// commandName returns the name of a command without its arguments.
func commandName(node *kong.Node) string {
	if node.Parent == nil {
		return node.Name
	}
	return commandName(node.Parent) + " " + node.Name
}

// A command that writes waits for another process that writes, and then names the database. Others don't wait.
func TestLockedDatabase(t *testing.T) {
	g := &global{Data: t.TempDir(), patience: time.Millisecond}
	list := func(svc *formsvc.Service) error { _, err := svc.Accounts.List(t.Context()); return err }
	write := func(svc *formsvc.Service) error { _, err := svc.Accounts.Create(t.Context(), "a"); return err }
	noError(t, g.with(t.Context(), need{create: true}, list))
	db := must(sql.Open("sqlite", filepath.Join(g.Data, "formsvc.db")+"?_txlock=immediate"))
	defer func() { _ = db.Close() }()
	tx := must(db.BeginTx(t.Context(), nil))
	noError(t, g.with(t.Context(), need{}, list))
	if err := g.explainBusy(g.with(t.Context(), need{}, write)); err == nil || !strings.Contains(err.Error(), "formsvc.db is locked: another process is writing") {
		t.Errorf("got %v", err)
	}
	noError(t, tx.Rollback())
	noError(t, g.with(t.Context(), need{}, write))
}
