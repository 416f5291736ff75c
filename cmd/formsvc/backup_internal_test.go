//go:build long

package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
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
	from := onPostgres(t)
	from.db = createDatabase(t, os.Getenv(postgrestest.Env))
	often := []string{"--webhook-retries", strings.TrimSuffix(strings.Repeat("1s,", 200), ",")}
	s := from.serve(t, often...)
	box := receive(t)
	box.AnswerAlways(webhooktest.Reply{Status: http.StatusServiceUnavailable})
	k := stock{key: s.key, campaign: s.campaign(t), webhook: s.hook(t, box.URL(), "response.created")}
	k.response = s.submit(t, k.campaign)
	k.file = s.made(t, responses(k.campaign)+"/"+k.response+"/files", content(1, 5000))
	dump, to := filepath.Join(t.TempDir(), "formsvc.dump"), newShell(t)
	tool(t, "", "pg_dump", "--format=custom", "--file="+dump, from.db)
	tool(t, "", "cp", "-a", from.data, to.data) // the files and the keys
	lost := s.submit(t, k.campaign)
	var seen []string
	var place string // the cursor of a reader that has read everything
	until(t, "the feed shows all that happened", func() bool {
		seen, place = s.feed(t, "")
		return slices.Contains(seen, lost)
	})
	s.stop()

	to.db = createDatabase(t, anotherServer(t))
	tool(t, "", "pg_restore", "--no-owner", "--exit-on-error", "--dbname="+to.db, dump)
	if r := to.try(t, "restore", "--after-pg-restore"); r.status != 0 || !strings.Contains(r.err, "revoke them again") {
		t.Fatalf("restore: %+v", r)
	}
	to.do(t, "files", "verify")
	k.has(t, to)
	back := to.serve(t, often...)
	back.key = s.key
	back.call(t, http.StatusNotFound, http.MethodGet, responses(k.campaign)+"/"+lost, nil)
	// A reader that has read lost events misses no new ones, and pending deliveries are sent.
	fresh := back.submit(t, k.campaign)
	until(t, "the feed shows what is new", func() bool { seen, _ = back.feed(t, place); return len(seen) > 0 })
	if !slices.Equal(seen, []string{fresh}) {
		t.Errorf("the feed goes on with %v, want %s", seen, fresh)
	}
	box.AnswerAlways(webhooktest.Reply{})
	until(t, "the webhook is told of all", func() bool {
		told := ""
		for _, d := range box.Deliveries() {
			told += string(d.Delivery.Body)
		}
		return strings.Contains(told, k.response) && strings.Contains(told, fresh)
	})
}

// feed reads a page of the feed, and returns its responses and the cursor.
func (s *service) feed(t testing.TB, cursor string) (responses []string, next string) {
	t.Helper()
	var p struct {
		Items []struct {
			Data struct{ Response struct{ UUID string } }
		}
		NextCursor string
	}
	text := s.call(t, http.StatusOK, http.MethodGet, "/v1/events?limit=1000&cursor="+url.QueryEscape(cursor), nil)
	noError(t, json.Unmarshal([]byte(text), &p))
	for _, e := range p.Items {
		responses = append(responses, e.Data.Response.UUID)
	}
	return responses, p.NextCursor
}

// createDatabase creates a new database on a server.
func createDatabase(t testing.TB, server string) string {
	t.Helper()
	db := must(sql.Open("pgx", server))
	name := "kept_" + strings.ToLower(rand.Text())
	must(db.ExecContext(t.Context(), "CREATE DATABASE "+name))
	t.Cleanup(func() {
		_, _ = db.ExecContext(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)") // the server may be gone
		_ = db.Close()
	})
	u := must(url.Parse(server))
	u.Path = "/" + name
	return u.String()
}

// anotherServer starts a second Postgres.
func anotherServer(t testing.TB) string {
	t.Helper()
	cmd := exec.Command("bash", "../../.ci/with-postgres", "bash", "-c", `echo "$FORMSVC_TEST_POSTGRES"; cat`)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, postgrestest.Env+"=") })
	in := must(cmd.StdinPipe())
	out := must(cmd.StdoutPipe())
	noError(t, cmd.Start())
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
