//go:build long

package main_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// A safekeeping is a service under load that is backed up and restored.
type safekeeping struct {
	filing

	hook     *mutableReceiver
	campaign string

	mu       sync.Mutex
	promised []kept // the acknowledged responses, in order
}

// kept is a response with a file.
type kept struct {
	response, file string
	content        []byte
}

// mutableReceiver returns 503 until it is up, and records the events that it accepted.
type mutableReceiver struct {
	*httptest.Server

	up    atomic.Bool
	mu    sync.Mutex
	taken map[string]int // by event and response
}

func newMutableReceiver(t testing.TB) *mutableReceiver {
	r := &mutableReceiver{taken: make(map[string]int)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil || !r.up.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var e event
		if json.Unmarshal(body, &e) != nil || !signedBySpec(secret, body, req.Header) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		r.taken[e.Event+" "+e.Data.Response.UUID]++
		r.mu.Unlock()
	}))
	t.Cleanup(r.Close)
	return r
}

// has reports whether the receiver got the event of a response.
func (r *mutableReceiver) has(uuid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken["response.created "+uuid] > 0
}

// often are flags for retries that last as long as a test, and for short leases: the leases of the killed server are
// restored with its deliveries.
var often = []string{
	"--webhook-retries", strings.TrimSuffix(strings.Repeat("1s,", 200), ","), "--webhook-timeout", "1s", "--webhook-lease", "7s",
}

// keep creates responses with files until ctx ends.
func (s *safekeeping) keep(ctx context.Context, t testing.TB, c *client) {
	for ctx.Err() == nil {
		var r response
		content := []byte(rand.Text())
		a, err := c.do(context.WithoutCancel(ctx), http.MethodPost, responsesPath(s.campaign), submission("kept"))
		if err != nil || a.status != http.StatusCreated || json.Unmarshal(a.body, &r) != nil {
			t.Errorf("submit: %d, %v", a.status, err)
			return
		}
		w := filing{client: c, response: responsePath(s.campaign, r.UUID)}
		a, err = w.send(context.WithoutCancel(ctx), "f", bytes.NewReader(content), int64(len(content)))
		var f fileRecord
		if err != nil || a.status != http.StatusCreated || json.Unmarshal(a.body, &f) != nil {
			t.Errorf("upload: %d, %v", a.status, err)
			return
		}
		s.mu.Lock()
		s.promised = append(s.promised, kept{r.UUID, f.UUID, content})
		s.mu.Unlock()
	}
}

// acknowledged waits until at least this many responses were acknowledged, and returns them.
func (s *safekeeping) acknowledged(t testing.TB, least int) (list []kept) {
	t.Helper()
	eventually(t, "responses are made", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		list = slices.Clone(s.promised)
		return len(list) >= least
	})
	return list
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

// test backs up a server under load, kills it, restores the backup elsewhere and checks the result.
func (s *safekeeping) test(t *testing.T, save func(), bringBack func() (dsn string, flags []string)) {
	s.serve(t, often...)
	s.hook = newMutableReceiver(t)
	if r := s.manage(t, slices.Concat([]string{"webhooks", "create", "--url", s.hook.URL, "--events", "all", "--secret", secret}, allowLoopback)...); r.status != 0 {
		t.Fatal(r.err)
	}
	s.campaign = s.client.campaign(t, "kept")
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() { s.keep(ctx, t, s.client) })
	}
	defer load.Wait()
	defer stop()
	promised := s.acknowledged(t, 20)
	save()
	s.acknowledged(t, len(promised)+8) // these are lost
	stop()
	load.Wait()
	var place string // the cursor of a reader that has read everything
	eventually(t, "the feed shows all that happened", func() bool {
		const count = "SELECT count(*) FROM formsvc_events"
		seen, next := readFeed(t, s.client, "")
		place = next
		return len(seen) == query[int](t, s.dsn, count, count)[0]
	})
	s.kill()
	s.hook.up.Store(true)

	dsn, flags := bringBack()
	if _, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		if verdict := query[string](t, dsn, "PRAGMA integrity_check", ""); !slices.Equal(verdict, []string{"ok"}) {
			t.Errorf("integrity_check: %v", verdict)
		}
	}
	back := execute(t, dsn, s.env, slices.Concat(allowLoopback, unlimited, often, flags)...).started(t)
	c := newClient(t, back.url, s.key)
	s.check(t, c, promised)
	if r := (invocation{args: on(t, dsn, slices.Concat([]string{"files", "verify"}, flags)), env: s.env}).run(t); r.status != 0 || r.out != "" {
		t.Errorf("files verify: %+v", r)
	}
	// A reader that has read lost events misses no new ones.
	fresh := c.submit(t, s.campaign, "kept").UUID
	var news []string
	eventually(t, "the feed shows what is new", func() bool {
		news, _ = readFeed(t, c, place)
		return len(news) > 0
	})
	if !slices.Equal(news, []string{fresh}) {
		t.Errorf("the feed goes on with %v, want %s", news, fresh)
	}
}

// check checks that all promised responses are complete, and that the webhook gets all their events.
func (s *safekeeping) check(t *testing.T, c *client, promised []kept) {
	t.Helper()
	stored := make(map[string]bool)
	for _, r := range c.list(t, s.campaign) {
		if marker, err := r.marker(); err != nil || marker != "kept" {
			t.Errorf("response %s is not as it was sent: %v", r.UUID, err)
		}
		stored[r.UUID] = true
		eventually(t, "the webhook is told of "+r.UUID, func() bool { return s.hook.has(r.UUID) })
	}
	w := filing{client: c}
	for _, k := range promised {
		if !stored[k.response] {
			t.Errorf("lost: response %s was acknowledged before the backup began", k.response)
			continue
		}
		w.has(t, k.file, k.content)
	}
	all := s.acknowledged(t, 0)
	for _, k := range all { // responses whose file was acknowledged later have that file or none
		if !stored[k.response] {
			continue
		}
		w.response = responsePath(s.campaign, k.response)
		for _, f := range w.listed(t) {
			w.has(t, f.UUID, k.content)
		}
	}
	t.Logf("%d were promised, %d are back of %d", len(promised), len(stored), len(all))
}

// The steps of BACKUP.md for Postgres restore a service in another database, and on another server with lower transaction
// numbers.
func TestDumpAndRestore(t *testing.T) {
	t.Parallel()
	postgrestest.DSN(t) // skips, or fails in CI, where there is none
	server := os.Getenv(postgrestest.Env)
	for name, other := range map[string]func(t testing.TB) string{
		"another database": func(testing.TB) string { return server },
		"another server":   anotherServer,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := createDatabase(t, server)
			s := &safekeeping{filing: filing{dsn: dsn, place: places()["disk"](t)}}
			dump := filepath.Join(t.TempDir(), "formsvc.dump")
			copied := filepath.Join(t.TempDir(), "files")
			s.test(t, func() {
				tool(t, "pg_dump", "--format=custom", "--file="+dump, dsn)
				tool(t, "sh", "-c", `mkdir -m 0700 "$2" && cp -a "$1"/* "$2"`, "sh", s.dir, copied)
			}, func() (string, []string) {
				to := createDatabase(t, other(t))
				tool(t, "pg_restore", "--no-owner", "--exit-on-error", "--dbname="+to, dump)
				flags := []string{"--blobs", "file:" + copied, "--data", dataDir(t, dsn)} // with its keys
				r := invocation{args: on(t, to, slices.Concat([]string{"restore", "--after-pg-restore"}, flags))}.run(t)
				if r.status != 0 || !strings.Contains(r.err, "revoke them again") {
					t.Fatalf("restore: %+v", r)
				}
				return to, flags
			})
		})
	}
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
	if err == nil && strings.TrimSpace(line) == "" {
		missing(t, "there is no PostgreSQL 14 or later here to start a second server with")
	}
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
