//go:build long

package main_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"database/sql"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// The steps of BACKUP.md for Postgres restore a service on another server, with lower transaction numbers, and take the dump
// while the service runs.
func TestDumpAndRestore(t *testing.T) {
	t.Parallel()
	postgrestest.DSN(t) // skips, or fails in CI, where there is none
	dsn := createDatabase(t, os.Getenv(postgrestest.Env))
	w := &filing{dsn: dsn, place: places()["disk"](t)}
	often := []string{"--webhook-retries", strings.TrimSuffix(strings.Repeat("1s,", 200), ",")}
	w.serve(t, often...)
	content := bytesOf(1, 100_000)
	file := w.upload(t, "kept", content)
	box := receiver(t)
	box.AnswerAlways(webhooktest.Reply{Status: http.StatusServiceUnavailable})
	hook(t, dsn, box.URL(), "response.created")
	campaign := w.campaign(t, "kept")
	kept := w.submit(t, campaign, "kept")
	dump, copied := filepath.Join(t.TempDir(), "formsvc.dump"), filepath.Join(t.TempDir(), "files")
	tool(t, "pg_dump", "--format=custom", "--file="+dump, dsn)
	tool(t, "sh", "-c", `mkdir -m 0700 "$2" && cp -a "$1"/* "$2"`, "sh", w.dir, copied)
	lost := w.submit(t, campaign, "lost")
	var seen []string
	var place string // the cursor of a reader that has read everything
	eventually(t, "the feed shows all that happened", func() bool {
		seen, place = readFeed(t, w.client, "")
		return slices.Contains(seen, lost.UUID)
	})
	w.kill()

	to := createDatabase(t, anotherServer(t))
	tool(t, "pg_restore", "--no-owner", "--exit-on-error", "--dbname="+to, dump)
	flags := []string{"--blobs", "file:" + copied, "--data", dataDir(t, dsn)} // with its keys
	if r := attempt(t, to, slices.Concat([]string{"restore", "--after-pg-restore"}, flags)...); r.status != 0 || !strings.Contains(r.err, "revoke them again") {
		t.Fatalf("restore: %+v", r)
	}
	manage(t, to, slices.Concat([]string{"files", "verify"}, flags)...)
	back := &filing{client: newClient(t, start(t, to, append(flags, often...)...).url, w.key)}
	back.has(t, file.UUID, content)
	if list := back.list(t, campaign); len(list) != 1 || list[0].UUID != kept.UUID {
		t.Errorf("restored: %+v", list)
	}
	// A reader that has read lost events misses no new ones, and pending deliveries are sent.
	fresh := back.submit(t, campaign, "fresh").UUID
	eventually(t, "the feed shows what is new", func() bool { seen, _ = readFeed(t, back.client, place); return len(seen) > 0 })
	if !slices.Equal(seen, []string{fresh}) {
		t.Errorf("the feed goes on with %v, want %s", seen, fresh)
	}
	box.AnswerAlways(webhooktest.Reply{})
	eventually(t, "the webhook is told of all", func() bool {
		told := ""
		for _, d := range box.Deliveries() {
			told += string(d.Delivery.Body)
		}
		return strings.Contains(told, kept.UUID) && strings.Contains(told, fresh)
	})
}

// readFeed reads the feed to its end and returns the cursor.
func readFeed(t testing.TB, c *client, cursor string) (responses []string, next string) {
	t.Helper()
	for more := true; more; cursor = next {
		var p struct {
			Items      []event
			NextCursor string
			More       bool
		}
		path := "/v1/events?limit=1000"
		if cursor != "" {
			path += "&cursor=" + url.QueryEscape(cursor)
		}
		c.want(t, http.StatusOK, http.MethodGet, path, nil, &p)
		for _, e := range p.Items {
			responses = append(responses, e.Data.Response.UUID)
		}
		next, more = p.NextCursor, p.More
	}
	return responses, next
}

// createDatabase creates a new database on a server.
func createDatabase(t testing.TB, server string) string {
	t.Helper()
	db, err := sql.Open("pgx", server)
	if err != nil {
		t.Fatal(err)
	}
	name := "kept_" + strings.ToLower(rand.Text())
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = db.ExecContext(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)") // the server may be gone
		_ = db.Close()
	})
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// anotherServer starts a second Postgres.
func anotherServer(t testing.TB) string {
	t.Helper()
	cmd := exec.Command("bash", "../../.ci/with-postgres", "bash", "-c", `echo "$FORMSVC_TEST_POSTGRES"; cat`)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, postgrestest.Env+"=") })
	cmd.WaitDelay = patience
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "postgres://") {
		t.Fatalf("a second Postgres: %q, %v", line, err)
	}
	return strings.TrimSpace(line)
}

// tool runs a program of the system; those of Postgres may be only in the server's directory.
func tool(t testing.TB, name string, args ...string) {
	t.Helper()
	beside, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name) // the pattern is right
	slices.Reverse(beside)
	path := lookFor(t, append([]string{name}, beside...)...)
	if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}
