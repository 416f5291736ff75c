//go:build long

package main_test

import (
	"bytes"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook/webhooktest"
)

var copyKills = flag.Int("copykills", 4, "how often a copy is killed: go test ./cmd/formsvc -run CopyKilled -copykills 50 -v")

// moreRows returns how many rows to add to a database so that a copy takes a while.
func moreRows() int { return 5_000 * max(*copyKills, 4) }

// addRows adds responses directly to the database.
func addRows(t *testing.T, dsn string) {
	t.Helper()
	driver, numbers, uuid := "pgx", "generate_series(1, $1::bigint) AS n(n)", "('01a00000-0000-7000-8000-' || lpad(to_hex(n.n), 12, '0'))::uuid"
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		driver, dsn, uuid = "sqlite", path, "printf('01a00000-0000-7000-8000-%012x', n.n)"
		numbers = "(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ?1) SELECT n FROM c) AS n"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, statement := range []string{
		"INSERT INTO formsvc_responses (id, account_id, campaign_id, reference, status, email, first_name, last_name, answers, version, " +
			"created_at, updated_at, completed_at, events) SELECT " + uuid + ", c.account_id, c.id, 'R' || n.n, 'pending', " +
			"'a@example.com', '', '', '{\"q\":{\"value\":[\"1\"]}}', 1, n.n, n.n, -62135596800000000, '' FROM formsvc_campaigns AS c, " + numbers,
		"INSERT INTO formsvc_comments (id, account_id, campaign_id, response_id, body, author, created_at) SELECT " + uuid +
			", c.account_id, c.id, " + uuid + ", 'said', 'who', n.n FROM formsvc_campaigns AS c, " + numbers,
	} {
		if _, err := db.ExecContext(t.Context(), statement, moreRows()); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if _, err := db.ExecContext(t.Context(),
		fmt.Sprintf("UPDATE formsvc_counters SET responses = responses + %d WHERE shard = (SELECT min(shard) FROM formsvc_counters)", moreRows())); err != nil {
		t.Fatal(err)
	}
}

// copying returns the arguments of a copy, with the encryption keys of the source.
func copying(t *testing.T, from, to string, more ...string) []string {
	t.Helper()
	return slices.Concat([]string{"copy", "--from", from, "--to", to, "--data", dataDir(t, from)}, more)
}

// A copy that is killed at any moment starts over when it is run again. In the end the new database has everything that was
// acknowledged, and only its server sends the pending deliveries.
func TestCopyKilled(t *testing.T) {
	t.Parallel()
	for _, way := range [][2]int{{0, 1}, {1, 0}} {
		dbs := databases()
		t.Run(dbs[way[0]].name+" to "+dbs[way[1]].name, func(t *testing.T) {
			t.Parallel()
			from, to := dbs[way[0]].dsn(t), dbs[way[1]].dsn(t)
			s := start(t, from, "--webhook-retries", "3s")
			key := s.firstKey(t)
			c := newClient(t, s.url, key)
			r := webhooktest.NewReceiver(t, []string{secret}, nil)
			campaign := c.campaign(t, "Copy")
			hook(t, from, r.URL(), "response.created")
			r.Answer(webhooktest.Reply{Status: 500})
			first := c.submit(t, campaign, "copied")
			arrivals(t, r, 1)
			again, err := c.once(t.Context(), responsePath(campaign, first.UUID)+"/comments", "once", []byte(`{"body":"said"}`), nil)
			if err != nil || again.status != http.StatusCreated {
				t.Fatalf("a comment: %d, %v", again.status, err)
			}
			s.terminate(t)
			s.stopped(t)
			addRows(t, from)

			killed := 0
			for killed < *copyKills {
				cmd := exec.CommandContext(t.Context(), program(t), copying(t, from, to)...)
				cmd.Env, cmd.Stdout, cmd.Stderr = environment(), io.Discard, io.Discard
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(rand.N(time.Second))
				_ = cmd.Process.Kill()
				if cmd.Wait() == nil {
					break
				}
				killed++
			}
			t.Logf("killed %d times", killed)
			if path, ok := strings.CutPrefix(to, "sqlite:"); ok && strings.Contains((invocation{args: copying(t, from, to)}).run(t).err, "remove the file") {
				if err := errors.Join(os.Remove(path), os.RemoveAll(path+"-wal"), os.RemoveAll(path+"-shm")); err != nil {
					t.Fatal(err)
				}
			}
			if last := (invocation{args: copying(t, from, to)}).run(t); last.status != 0 && !strings.Contains(last.err, "its data is in") {
				t.Fatalf("the last copy: status %d\n%s", last.status, last.err)
			}
			if v := (invocation{args: copying(t, from, to, "--verify")}).run(t); v.status != 0 {
				t.Fatalf("verify: status %d\n%s", v.status, v.err)
			}
			if old := attempt(t, from, "serve", "--addr", "127.0.0.1:0"); old.status != 1 || !strings.Contains(old.err, "its data is in") {
				t.Errorf("a server on the old database: status %d\n%s", old.status, old.err)
			}
			fresh := start(t, to, "--data", dataDir(t, from))
			c = newClient(t, fresh.url, key)
			var got response
			c.want(t, http.StatusOK, http.MethodGet, responsePath(campaign, first.UUID), nil, &got)
			var page struct{ Total int }
			c.want(t, http.StatusOK, http.MethodGet, "/v1/campaigns/"+campaign+"/responses?limit=1", nil, &page)
			if page.Total != moreRows()+1 {
				t.Errorf("%d responses, want %d", page.Total, moreRows()+1)
			}
			replay, err := c.once(t.Context(), responsePath(campaign, first.UUID)+"/comments", "once", []byte(`{"body":"said"}`), nil)
			if err != nil || replay.status != again.status || !bytes.Equal(replay.body, again.body) {
				t.Errorf("a call that is repeated on the new server: %d %s, %v; was %s", replay.status, replay.body, err, again.body)
			}
			arrivals(t, r, 2) // the old server's attempt, and the retry
			after := c.submit(t, campaign, "after")
			all := arrivals(t, r, 3)
			for i, want := range []string{first.UUID, first.UUID, after.UUID} {
				if got := parsed(t, all[i].Delivery.Body).Data.Response.UUID; got != want {
					t.Errorf("request %d is about %s, want %s", i, got, want)
				}
			}
		})
	}
}

// A server that still runs on the old database rejects writes, and the new one sends pending deliveries.
func TestCopyBesideServer(t *testing.T) {
	t.Parallel()
	for _, way := range [][2]int{{0, 1}, {1, 0}} {
		dbs := databases()
		t.Run(dbs[way[0]].name+" to "+dbs[way[1]].name, func(t *testing.T) {
			t.Parallel()
			from, to := dbs[way[0]].dsn(t), dbs[way[1]].dsn(t)
			s := start(t, from, "--webhook-retries", "1s")
			key := s.firstKey(t)
			c := newClient(t, s.url, key)
			r := webhooktest.NewReceiver(t, []string{secret}, nil)
			campaign := c.campaign(t, "Copy")
			c.submit(t, campaign, "nobody listens")
			if done := (invocation{args: copying(t, from, to)}).run(t); done.status != 0 {
				t.Fatalf("copy: status %d\n%s", done.status, done.err)
			}
			c.want(t, http.StatusServiceUnavailable, http.MethodPost, "/v1/campaigns/"+campaign+"/responses",
				map[string]any{"user": map[string]any{"email": "a@example.com"}, "responses": map[string]any{}}, nil)
			eventually(t, "the old server isn't ready", func() bool {
				a, err := c.do(t.Context(), http.MethodGet, "/readyz", nil)
				return err == nil && a.status == http.StatusServiceUnavailable
			})
			fresh := start(t, to, "--data", dataDir(t, from))
			hook(t, to, r.URL(), "response.created", "--data", dataDir(t, from))
			newClient(t, fresh.url, key).submit(t, campaign, "after")
			arrivals(t, r, 1)
		})
	}
}

// Impossible copies are rejected with a clear error that doesn't show the password.
func TestCopyRefused(t *testing.T) {
	t.Parallel()
	dbs := databases()
	from := dbs[0].dsn(t)
	s := start(t, from)
	s.firstKey(t)
	hook(t, from, "https://example.com/", "all") // a secret that needs a key
	s.terminate(t)
	s.stopped(t)
	empty := "sqlite:" + t.TempDir() + "/new.db"
	for _, refused := range []struct {
		status int
		says   string
		args   []string
	}{
		{2, "--to", []string{"--from", from}},
		{2, "set both", []string{"--from", from, "--to", empty, "--to-blobs", "file:x"}},
		{2, "--from: unknown scheme", []string{"--from", "mysql://x", "--to", empty}},
		{1, "no such database", []string{"--from", "sqlite:missing.db", "--to", empty}},
		{1, "unknown key", []string{"--from", from, "--to", empty, "--data", t.TempDir()}},
		{1, "the same data", []string{"--from", from, "--to", strings.Replace(from, "sqlite:/", "sqlite:/./", 1)}},
		{1, "connect", []string{"--from", from, "--to", "postgres://me:hunter2@127.0.0.1:1/none"}},
	} {
		args := append([]string{"copy"}, refused.args...)
		if !slices.Contains(args, "--data") {
			args = append(args, "--data", dataDir(t, from))
		}
		r := invocation{args: args}.run(t)
		if r.status != refused.status || !strings.Contains(r.err, refused.says) {
			t.Errorf("%v: status %d, want %d and %q:\n%s", args, r.status, refused.status, refused.says, r.err)
		}
		if strings.Contains(r.err+r.out, "hunter2") {
			t.Errorf("%v: the password is shown:\n%s", args, r.err)
		}
	}
	start(t, from) // as before
}

// Files are copied from a directory to a bucket, and back, together with their rows.
func TestCopyFiles(t *testing.T) {
	t.Parallel()
	dbs := databases()
	disk, bucket := places()["disk"](t), places()["s3"](t)
	w := &filing{dsn: dbs[0].dsn(t), place: disk}
	w.serve(t)
	content := bytes.Repeat([]byte("a flat roof\n"), 40_000)
	f := w.upload(t, "plan.txt", content)
	source := w.dsn
	w.terminate(t)
	w.stopped(t)
	data := dataDir(t, source)

	move := func(to string, from, there *place, more ...string) result {
		t.Helper()
		return invocation{env: bucket.env, args: slices.Concat(
			[]string{"copy", "--from", w.dsn, "--to", to, "--data", data, "--from-blobs", from.flags[1], "--to-blobs", there.flags[1]}, more)}.run(t)
	}
	to := dbs[1].dsn(t)
	if r := move(to, disk, bucket); r.status != 0 || !strings.Contains(r.err, "1 files") {
		t.Fatalf("to the bucket: status %d\n%s", r.status, r.err)
	}
	if r := move(to, disk, bucket, "--verify"); r.status != 0 {
		t.Fatalf("verify: status %d\n%s", r.status, r.err)
	}
	w.dsn, w.place = to, bucket
	w.serve(t, "--data", data)
	w.has(t, f.UUID, content)
	second := w.upload(t, "second.txt", []byte("in the bucket"))
	w.terminate(t)
	w.stopped(t)

	back, other := "sqlite:"+t.TempDir()+"/back.db", places()["disk"](t)
	if r := move(back, bucket, other); r.status != 0 || !strings.Contains(r.err, "2 files") {
		t.Fatalf("to another directory: status %d\n%s", r.status, r.err)
	}
	w.dsn, w.place = back, other
	w.serve(t, "--data", data)
	w.has(t, f.UUID, content)
	w.has(t, second.UUID, []byte("in the bucket"))
}
