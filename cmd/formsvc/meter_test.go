//go:build long

package main_test

import (
	"database/sql"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// A screen is the terminal of a command.
type screen struct {
	shown output
	cmd   *exec.Cmd
	done  chan error
}

// onTerminal starts a command with a terminal as its standard error, and as its standard output unless out is given.
func onTerminal(t testing.TB, out io.Writer, env []string, args ...string) *screen {
	t.Helper()
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{cmd: exec.CommandContext(t.Context(), program(t), args...), done: make(chan error, 1)}
	s.cmd.Dir, s.cmd.Env, s.cmd.WaitDelay = t.TempDir(), environment(slices.Concat([]string{"TERM=xterm"}, env)...), patience
	s.cmd.Stdout, s.cmd.Stderr = out, theirs
	if out == nil {
		s.cmd.Stdout = theirs
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close() // so that reading ends with the command
	go func() {
		_, _ = io.Copy(&s.shown, ours) // on Linux it ends with an error
		_ = ours.Close()
		s.done <- s.cmd.Wait()
	}()
	return s
}

// ends waits until the command has succeeded, and returns what it left on the screen.
func (s *screen) ends(t testing.TB) string {
	t.Helper()
	if err := <-s.done; err != nil {
		t.Fatalf("%v: %v\n%q", s.cmd.Args, err, s.shown.String())
	}
	parts := strings.Split(s.shown.String(), "\r\x1b[K")
	for _, line := range parts {
		if len(line) > 79 && strings.Contains(line, "%") {
			t.Errorf("%d characters in a line: %q", len(line), line)
		}
	}
	return parts[len(parts)-1]
}

// Long commands show their progress on a terminal, and clear it at the end. Each command is held up until its meter shows.
func TestMeters(t *testing.T) {
	t.Parallel()
	w := &filing{dsn: databases()[0].dsn(t), place: places()["s3"](t)}
	w.serve(t)
	hookID := hook(t, w.dsn, "http://127.0.0.1:1/", "all")
	campaign := w.campaign(t, "c")
	w.submit(t, campaign, "m")
	w.upload(t, "f", bytesOf(1, 1000))
	run := func(args ...string) *screen {
		return onTerminal(t, nil, w.env, on(t, w.dsn, slices.Concat(args, w.flags))...)
	}
	seen := func(s *screen, name, pattern string) {
		t.Helper()
		shown := regexp.MustCompile(pattern)
		eventually(t, name+" shows how far it is", func() bool { return shown.MatchString(s.shown.String()) })
	}

	saved := filepath.Join(t.TempDir(), "backup")
	for _, c := range []struct{ name, args, want, left string }{
		{"verify", "files verify", `reading +\[-+\]   0%  0 B of 1.0 kB`, "1 files checked, 0 damaged"},
		{"sweep", "files sweep", `checking +0 files  \d+:\d\d`, "WITHOUT FILE"},
		{"backup", "backup --to " + saved, `database +\[#+\] 100%  \d+ kB of \d+ kB|checking +0 B  \d+:\d\d`, saved},
	} {
		w.place.server.Suspend()
		s := run(strings.Fields(c.args)...)
		seen(s, c.name, c.want)
		w.place.server.Resume()
		if left := s.ends(t); !strings.Contains(left, c.left) || strings.Contains(left, "%") {
			t.Errorf("%s leaves %q", c.name, left)
		}
	}

	// The database of the backup comes through a pipe that is filled when the meter shows.
	copied := filepath.Join(saved, "formsvc.db")
	content, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(copied), syscall.Mkfifo(copied, 0o600)); err != nil {
		t.Fatal(err)
	}
	s := onTerminal(t, nil, nil, "restore", "--from", saved, "--data", filepath.Join(t.TempDir(), "data"))
	seen(s, "restore", `checking +0 B  \d+:\d\d`)
	if err := os.WriteFile(copied, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if left := s.ends(t); !strings.Contains(left, "the database and 1 files") {
		t.Errorf("restore leaves %q", left)
	}

	db, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(w.dsn, "sqlite:")+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, c := range []struct{ name, args, want, left string }{
		{"erase", "erase --email eve@example.com", `erasing +0 records  \d+:\d\d`, "0 removed"},
		{"retention", "retention run --older-than 1d --campaign " + campaign, `erasing +0 records  \d+:\d\d`, "0 removed"},
		{"redeliver", "webhooks redeliver --since 1h " + hookID, `redeliver +0 deliveries  \d+:\d\d`, "sent again"},
	} {
		manage(t, w.dsn, "migrate", "up") // so that nothing is to do while the lock is held
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		s := run(strings.Fields(c.args)...)
		seen(s, c.name, c.want)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if left := s.ends(t); !strings.Contains(left, c.left) || regexp.MustCompile(c.want).MatchString(left) {
			t.Errorf("%s leaves %q", c.name, left)
		}
	}
}

// An export goes to a pipe while its meter is on the terminal.
func TestExportShowsMeter(t *testing.T) {
	t.Parallel()
	dsn := databases()[0].dsn(t)
	s := start(t, dsn)
	c := newClient(t, s.url, s.firstKey(t))
	campaign := c.campaign(t, "many")
	text := strings.Repeat("many words. ", 2000)
	for range 40 { // more than a pipe holds
		c.submit(t, campaign, text)
	}
	for _, format := range []string{"csv", "ndjson"} {
		in, out := io.Pipe()
		e := onTerminal(t, out, nil, on(t, dsn, []string{"export", "--campaign", campaign, "--format", format})...)
		shown := regexp.MustCompile(`export +\[#*-*\] +\d+%  \d+ of 40 responses  \d+:\d\d`)
		eventually(t, "the export shows how far it is", func() bool { return shown.MatchString(e.shown.String()) })
		var exported output
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = io.Copy(&exported, in)
		}()
		if left := e.ends(t); left != "" {
			t.Errorf("it leaves %q", left)
		}
		_ = out.Close()
		<-read
		if want := string(c.want(t, 200, "GET", responsesPath(campaign)+"."+format+"?order=asc", nil, nil).body); exported.String() != want {
			t.Errorf("%s: %d bytes, the API gives out %d", format, len(exported.String()), len(want))
		}
	}
}

// Output for programs has no meter, nor has a terminal that can't move its cursor.
func TestNoMeterWithoutTerminal(t *testing.T) {
	t.Parallel()
	w := &filing{dsn: databases()[0].dsn(t), place: places()["s3"](t)}
	w.serve(t)
	w.upload(t, "f", bytesOf(1, 1000))
	run := func(env []string, args ...string) *screen {
		return onTerminal(t, nil, slices.Concat(w.env, env), on(t, w.dsn, slices.Concat(args, w.flags))...)
	}
	w.place.server.Suspend()
	done := make(chan result)
	go func() { done <- w.manage(t, "files", "verify") }()
	inJSON := run(nil, "files", "verify", "--json")
	dumb := run([]string{"TERM=dumb"}, "files", "verify")
	// These show no meter although they take as long as one that does.
	other := run(nil, "files", "verify")
	eventually(t, "a meter is shown beside", func() bool { return strings.Contains(other.shown.String(), "%") })
	w.place.server.Resume()
	if r := <-done; r.status != 0 || strings.Contains(r.err, "%") || strings.Contains(r.err, "\x1b") {
		t.Errorf("in a pipe: %+v", r)
	}
	other.ends(t)
	for name, s := range map[string]*screen{"with --json": inJSON, "with TERM=dumb": dumb} {
		if s.ends(t); strings.Contains(s.shown.String(), "\x1b") || strings.Contains(s.shown.String(), "%") {
			t.Errorf("%s: %q", name, s.shown.String())
		}
	}
}
