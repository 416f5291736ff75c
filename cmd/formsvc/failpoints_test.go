//go:build failpoints && long

package main_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// buildMortal builds the program with failpoints, the first time it is called.
var buildMortal = sync.OnceValues(func() (string, error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "formsvc-failpoints")
	args := []string{"build", "-buildvcs=false", "-tags", "failpoints", "-o", path}
	if raceDetector {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// mortal returns the path of the program with failpoints.
func mortal(t testing.TB) string {
	t.Helper()
	path, err := buildMortal()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// failpointNames returns the names that the program prints.
func failpointNames(t testing.TB) []string {
	t.Helper()
	out, err := exec.Command(mortal(t), "failpoints").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// A life is a series of actions on one database until a process dies at a failpoint. It is a testing.TB whose Fatal ends
// the actions without failing the test.
type life struct {
	testing.TB

	point  string // NAME or NAME:N
	data   string
	server *server

	mu    sync.Mutex
	died  *os.ProcessState // of the process that was killed by a signal
	words string           // its log
	fault string           // why the actions ended early
}

func newLife(t testing.TB, point string) *life {
	t.Helper()
	return &life{TB: t, point: point, data: t.TempDir()}
}

// Fatal ends the actions.
func (l *life) Fatal(args ...any) { l.end(fmt.Sprint(args...)) }

// Fatalf ends the actions.
func (l *life) Fatalf(format string, args ...any) { l.end(fmt.Sprintf(format, args...)) }

func (l *life) end(fault string) {
	l.fault = fault
	runtime.Goexit()
}

// spend runs do until it fails, and then waits for the dying process.
func (l *life) spend(t testing.TB, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	<-done
	if l.fault != "" && !l.dead() {
		eventually(t, "a process dies, since "+l.fault, l.dead)
	}
}

// dead reports whether a process was killed by a signal.
func (l *life) dead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.died != nil
}

// ended records how a process ended.
func (l *life) ended(cmd *exec.Cmd, log string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		l.died, l.words = cmd.ProcessState, log
	}
}

// wantDead checks that a process was killed, and that it logged where.
func (l *life) wantDead(t testing.TB) {
	t.Helper()
	if !l.dead() {
		t.Fatalf("no process came to %s", l.point)
	}
	name, _, _ := strings.Cut(l.point, ":")
	last := tail(l.words, 1)
	if l.died.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL || !strings.Contains(last, "failpoint") ||
		!strings.Contains(last, name) {
		t.Errorf("%v; the last it logged is\n%s", l.died, last)
	}
}

func (l *life) dsn() string { return "sqlite:" + filepath.Join(l.data, "formsvc.db") }

// command returns a command with the failpoint. If it neither ends nor dies, it is killed after a timeout.
func (l *life) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(l.Context(), 2*patience)
	l.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, mortal(l.TB), append(args, "--data", l.data)...)
	cmd.Dir, cmd.Env = l.data, environment("FORMSVC_FAILPOINT="+l.point)
	return cmd
}

// manage runs a command to its end and returns its output.
func (l *life) manage(args ...string) string {
	cmd := l.command(args...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		l.ended(cmd, log.String())
		l.Fatalf("formsvc %s: %v\n%s", strings.Join(args, " "), err, log.String())
	}
	return out.String()
}

// serve starts a server and waits until it serves.
func (l *life) serve(flags ...string) {
	s := &server{done: make(chan struct{})}
	s.cmd = l.command(slices.Concat([]string{"serve", "--addr", "127.0.0.1:0", "--log-format", "json"}, allowLoopback, flags)...)
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.log
	if err := s.cmd.Start(); err != nil {
		l.Fatal(err)
	}
	go func() {
		defer close(s.done)
		_ = s.cmd.Wait() // the state says how it ended
		l.ended(s.cmd, s.log.String())
	}()
	l.Cleanup(s.kill)
	l.server = s.started(l)
}

// whole uses every feature of the program. The receiver at takes accepts everything, the one at refuses nothing.
func (l *life) whole(takes, refuses string) {
	l.serve("--webhook-retries", "10ms", "--smtp", "smtp://127.0.0.1:1?starttls=off", "--mail-from", "forms@example.com")
	c := newClient(l, l.server.url, l.server.firstKey(l))
	l.hook(c, takes)
	response := l.forms(c)
	l.deliveries(c, takes, refuses, response)
	l.pages()
	l.housekeeping()
	l.server.terminate(l) // writes the last use of keys, and returns the unused quota
	eventually(l, "formsvc ends", l.server.ended)
}

// hook creates a webhook and returns its path.
func (l *life) hook(c *client, target string) string {
	var v struct{ UUID string }
	in := map[string]any{"url": target, "events": []string{"response.created", "response.updated"}}
	c.want(l, http.StatusCreated, http.MethodPost, "/v1/webhooks", in, &v)
	return "/v1/webhooks/" + v.UUID
}

// forms uses every operation on campaigns and responses, and returns the path of the responses.
func (l *life) forms(c *client) string {
	for body, status := range map[string]int{`{"title":"Once"}`: http.StatusCreated, `{"title":""}`: http.StatusUnprocessableEntity} {
		if a, err := c.once(l.Context(), "/v1/campaigns", rand.Text(), []byte(body), nil); err != nil || a.status != status {
			l.Fatalf("%s with an Idempotency-Key: %d, %v\n%s", body, a.status, err, a.body)
		}
	}
	campaign := c.campaign(l, "All")
	c.want(l, http.StatusOK, http.MethodPut, "/v1/campaigns/"+campaign, map[string]string{"title": "All of it"}, nil)
	path := responsePath(campaign, c.submit(l, campaign, "a").UUID)
	c.want(l, http.StatusOK, http.MethodPatch, path, map[string]string{"status": "completed"}, nil)
	c.want(l, http.StatusCreated, http.MethodPost, path+"/comments", map[string]string{"body": "Thanks"}, nil)
	signer := map[string]string{"email": "ada@example.com", "firstName": "Ada", "lastName": "Lovelace"}
	c.want(l, http.StatusCreated, http.MethodPost, path+"/signatures", map[string]any{"signer": signer}, nil)
	w := &filing{client: c, response: path}
	w.upload(l, "a.txt", []byte("content"))
	return responsesPath(campaign)
}

// deliveries lets the deliveries of one webhook fail permanently, and sends everything again.
func (l *life) deliveries(c *client, takes, refuses, responses string) {
	path := l.hook(c, refuses)
	c.want(l, http.StatusCreated, http.MethodPost, responses, submission("b"), nil)
	var list struct {
		Items []struct{ UUID, State string }
	}
	eventually(l, "a delivery fails permanently", func() bool {
		c.want(l, http.StatusOK, http.MethodGet, path+"/deliveries", nil, &list)
		return len(list.Items) == 1 && list.Items[0].State == "failed"
	})
	eventually(l, "its digest is done", func() bool {
		return l.server.ended() || strings.Contains(l.server.log.String(), "account has no contact")
	})
	c.want(l, http.StatusOK, http.MethodPost, "/v1/deliveries/"+list.Items[0].UUID+"/redeliver", nil, nil)
	c.want(l, http.StatusOK, http.MethodPost, path+"/redeliver", map[string]string{"since": "2026-01-01T00:00:00Z"}, nil)
	c.want(l, http.StatusCreated, http.MethodPost, path+"/test", nil, nil)
	in := map[string]any{"url": takes, "events": []string{"response.created"}}
	c.want(l, http.StatusOK, http.MethodPut, path, in, nil)
	c.want(l, http.StatusNoContent, http.MethodDelete, path, nil, nil)
}

// pages signs in to the settings and out again, twice.
func (l *life) pages() {
	for _, everywhere := range []string{"", "on"} {
		v := newVisitor(l, l.server.url)
		if status := v.signIn(l.manage("settings-link")); status != http.StatusOK {
			l.Fatalf("sign in: %d\n%s", status, v.body)
		}
		if status := v.post("/sign-out", url.Values{"everywhere": {everywhere}}); status != http.StatusOK {
			l.Fatalf("sign out: %d\n%s", status, v.body)
		}
	}
}

// housekeeping runs the commands for tasks that the API doesn't have.
func (l *life) housekeeping() {
	l.manage("accounts", "contact", "default", "ops@example.com")
	value := strings.TrimSpace(l.manage("keys", "create", "--name", "second", "--permissions", "all"))
	keys := decoded[struct{ UUID, Name, Prefix string }](l, l.manage("keys", "list", "--json"))
	for _, key := range keys {
		if strings.HasPrefix(value, key.Prefix) && key.Name == "second" {
			l.manage("keys", "revoke", key.UUID)
		}
	}
	orphan := filepath.Join(l.data, "files", "ab", "01900000-0000-7000-8000-0000000000ab")
	if err := errors.Join(os.MkdirAll(filepath.Dir(orphan), 0o700), os.WriteFile(orphan, nil, 0o600)); err != nil {
		l.Fatal(err)
	}
	age(l, orphan)
	l.manage("files", "sweep")
	l.manage("erase", "--email", "ada@example.com")
	for name, content := range contents(l, l.dsn()) {
		if bytes.Contains(content, []byte("ada@example.com")) {
			l.Errorf("what was erased is in %s", name) // the store did not overwrite it
		}
	}
}

// The program reaches every failpoint, and dies there.
func TestFailpoints(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(receiver.Close)
	for _, name := range failpointNames(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t, name)
			l.spend(t, func() { l.whole(receiver.URL+"/", receiver.URL+"/refuse") })
			l.wantDead(t)
		})
	}
}

// If no failpoint is reached, everything works.
func TestUnreachedFailpointDoesNothing(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(receiver.Close)
	l := newLife(t, "account.create.before:1000000")
	l.spend(t, func() { l.whole(receiver.URL+"/", receiver.URL+"/refuse") })
	if l.dead() {
		t.Error(l.words)
	}
}

// Before a unit, nothing of it is stored; after it, everything is. The number counts the times.
func TestFailpointNumber(t *testing.T) {
	t.Parallel()
	for point, want := range map[string]int{"response.create.before:3": 2, "response.create.after:3": 3} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			l := newLife(t, point)
			var campaign, key string
			acknowledged := 0
			l.spend(t, func() {
				l.serve()
				key = l.server.firstKey(l)
				c := newClient(l, l.server.url, key)
				for campaign = c.campaign(l, "Numbers"); ; acknowledged++ {
					c.submit(l, campaign, "a")
				}
			})
			l.wantDead(t)
			s := start(t, l.dsn(), "--data", l.data)
			if got := len(newClient(t, s.url, key).list(t, campaign)); got != want || acknowledged != 2 {
				t.Errorf("%d responses are stored and %d acknowledged, want %d and 2", got, acknowledged, want)
			}
		})
	}
}

// An unknown name fails the start before anything is created, and lists the known names.
func TestFailpointUnknown(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"campaign.create", "campaign.create.before:0", "campaign.create.before:x", ":1"} {
		l := newLife(t, point)
		out, err := l.command("serve", "--addr", "127.0.0.1:0").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "FORMSVC_FAILPOINT") {
			t.Errorf("%s: %v\n%s", point, err, out)
		}
		for _, name := range failpointNames(t) {
			if !strings.Contains(point, ".before:") && !strings.Contains(string(out), "  "+name+"\n") {
				t.Errorf("%s: %s is not among those that there are:\n%s", point, name, out)
			}
		}
		if files, err := os.ReadDir(l.data); err != nil || len(files) > 0 {
			t.Errorf("%s: something was made: %v, %v", point, files, err)
		}
	}
}

// The normal build contains no failpoints.
func TestNormalBuildHasNoFailpoints(t *testing.T) {
	t.Parallel()
	content := map[bool][]byte{}
	for has, path := range map[bool]string{false: program(t), true: mortal(t)} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		content[has] = b
	}
	for _, name := range []string{"FORMSVC_FAILPOINT", "account.update", "quota.take", "queue.payloads", "file.bar"} {
		for has, b := range content {
			if bytes.Contains(b, []byte(name)) != has {
				t.Errorf("%q is in the program: %v, want %v", name, !has, has)
			}
		}
	}
	if r := (invocation{args: []string{"failpoints"}}).run(t); r.status != 2 || r.out != "" {
		t.Errorf("formsvc failpoints: %+v", r)
	}
}
