package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// The tests of commands call run in this process. Each has a data directory of its own, and most use SQLite: only commands
// with code for Postgres are tested on it too.

// testSecret signs the deliveries of the tests' webhooks.
const testSecret = "a secret of the tests, äöü"

// A shell runs commands on one database and one data directory.
type shell struct {
	data string
	db   string // "" for the default, SQLite below data
	env  environment
}

func newShell(t testing.TB) *shell {
	t.Helper()
	return &shell{data: filepath.Join(t.TempDir(), "data")}
}

// onPostgres returns a shell on an empty Postgres database.
func onPostgres(t testing.TB) *shell {
	t.Helper()
	s := newShell(t)
	s.db = postgrestest.DSN(t)
	return s
}

// A result is the result of a command.
type result struct {
	status   int
	out, err string
}

// args adds the flags for the data.
func (s *shell) args(line []string) []string {
	line = slices.Clone(line)
	if !slices.Contains(line, "--data") {
		line = append(line, "--data", s.data)
	}
	if s.db != "" && !slices.Contains(line, "--db") {
		line = append(line, "--db", s.db)
	}
	return line
}

// try runs a command to its end, whatever its status.
func (s *shell) try(t testing.TB, line ...string) result {
	t.Helper()
	return s.pipe(t, "", s.args(line)...)
}

// pipe runs a command with only these arguments on a text.
func (s *shell) pipe(t testing.TB, stdin string, line ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), line, s.env, strings.NewReader(stdin), &stdout, &stderr)
	return result{status, stdout.String(), stderr.String()}
}

// do runs a command that must succeed, and returns its standard output.
func (s *shell) do(t testing.TB, line ...string) string {
	t.Helper()
	r := s.try(t, line...)
	if r.status != 0 {
		t.Fatalf("formsvc %s: status %d\n%s", strings.Join(line, " "), r.status, r.err)
	}
	return r.out
}

// record runs a command that must succeed and print one JSON record.
func (s *shell) record(t testing.TB, line ...string) map[string]any {
	t.Helper()
	list := s.list(t, line...)
	if len(list) != 1 {
		t.Fatalf("formsvc %s --json: %d records", strings.Join(line, " "), len(list))
	}
	return list[0]
}

// list runs a command that must succeed and print JSON records.
func (s *shell) list(t testing.TB, line ...string) []map[string]any {
	t.Helper()
	return objects(t, s.do(t, append(line, "--json")...))
}

// objects parses JSON objects, one a line.
func objects(t testing.TB, text string) (list []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		list = append(list, v)
	}
	return list
}

// A mistake is a command line that fails with a status and a text, and prints nothing to standard output.
type mistake struct {
	line   string
	status int
	want   string
}

func (s *shell) refuses(t testing.TB, list []mistake) {
	t.Helper()
	for _, m := range list {
		r := s.try(t, strings.Fields(m.line)...)
		if r.status != m.status || !strings.Contains(r.err, m.want) || r.out != "" {
			t.Errorf("%s: status %d, %q, %q; want %d and %q", m.line, r.status, r.out, r.err, m.status, m.want)
		}
	}
}

// hook creates a webhook for a receiver on this machine and returns its UUID.
func (s *shell) hook(t testing.TB, url, events string, flags ...string) string {
	t.Helper()
	line := []string{"webhooks", "create", "--url", url, "--events", events, "--secret", testSecret, "--webhook-allow", "127.0.0.0/8"}
	return s.record(t, append(line, flags...)...)["uuid"].(string)
}

// A transcript is what a running command prints. It is safe for concurrent use.
type transcript struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	more chan struct{} // closed after the next write
}

func (x *transcript) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.more != nil {
		close(x.more)
		x.more = nil
	}
	return x.buf.Write(p)
}

func (x *transcript) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.buf.String()
}

// wait waits until the pattern matches, and returns the match with its groups, or nil if ctx ends before.
func (x *transcript) wait(ctx context.Context, pattern string) []string {
	re := regexp.MustCompile(pattern)
	for {
		x.mu.Lock()
		match := re.FindStringSubmatch(x.buf.String())
		if x.more == nil {
			x.more = make(chan struct{})
		}
		more := x.more
		x.mu.Unlock()
		if match != nil {
			return match
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil
		}
	}
}

// A process is a command that runs until it is stopped.
type process struct {
	out, log transcript
	ctx      context.Context // ends when the command has ended
	cancel   func()          // asks it to end
	cmd      *exec.Cmd       // nil if it runs in this process
	status   int
}

// background runs a command until the test ends.
func (s *shell) background(t testing.TB, line ...string) *process {
	t.Helper()
	p := new(process)
	running, cancel := context.WithCancel(context.Background())
	ended, end := context.WithCancel(context.Background())
	p.ctx, p.cancel = ended, cancel
	go func() {
		defer end()
		p.status = run(running, s.args(line), s.env, strings.NewReader(""), &p.out, &p.log)
	}()
	p.endsWith(t, func() { p.stop() })
	return p
}

// endsWith ends the command when the test ends.
func (p *process) endsWith(t testing.TB, end func()) {
	t.Cleanup(func() {
		if end(); t.Failed() {
			t.Logf("formsvc %.200q:\n%s", &p.out, &p.log)
		}
		lacks(t, "the log", p.log.String(), `"msg":"panic"`)
	})
}

// stop ends the command as a signal does, and returns its status.
func (p *process) stop() int {
	p.cancel()
	<-p.ctx.Done()
	return p.status
}

// A service is a running server.
type service struct {
	*shell
	*process

	url, key string
	client   *http.Client // nil for the default one
}

// allowLocal are flags of a server for tests: receivers on this machine, and any number of requests.
var allowLocal = []string{"--webhook-allow", "127.0.0.0/8", "--quota", "0"}

// serveLine returns the command line of a server for tests.
func serveLine(flags []string) []string {
	line := slices.Concat([]string{"serve", "--log-format", "json"}, allowLocal, flags)
	if !slices.Contains(line, "--addr") {
		line = append(line, "--addr", "127.0.0.1:0")
	}
	return line
}

// serve starts a server and waits until it serves.
func (s *shell) serve(t testing.TB, flags ...string) *service {
	t.Helper()
	return s.await(t, s.background(t, serveLine(flags)...))
}

const servingPattern = `"msg":"serving","addr":"([^"]+)"`

// await waits until a server serves.
func (s *shell) await(t testing.TB, p *process) *service {
	t.Helper()
	match := p.log.wait(p.ctx, servingPattern)
	if match == nil {
		t.Fatalf("the server ended with status %d\n%s", p.status, p.log.String())
	}
	key := regexp.MustCompile(`\bformsvc_[0-9A-Za-z]{49}\b`).FindString(p.out.String())
	return &service{shell: s, process: p, url: "http://" + match[1], key: key}
}

// An answer is a complete response of the API.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask makes a request with further header fields, as "Name: value", and reads the whole response.
func (s *service) ask(ctx context.Context, method, path string, body any, header ...string) (a answer, err error) {
	content, isFile := body.([]byte)
	if body != nil && !isFile {
		if content, err = json.Marshal(body); err != nil {
			return a, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(content))
	if err != nil {
		return a, err
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	if isFile {
		req.Header.Set("Content-Type", "application/octet-stream")
		req.Header.Set("Content-Disposition", `attachment; filename="plan.pdf"`)
	} else if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, field := range header {
		name, value, _ := strings.Cut(field, ": ")
		req.Header.Set(name, value)
	}
	resp, err := cmp.Or(s.client, http.DefaultClient).Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(text)}, err
}

// get reads a page, whatever its status.
func (s *service) get(t testing.TB, path string, header ...string) answer {
	t.Helper()
	return must(s.ask(t.Context(), http.MethodGet, path, nil, header...))
}

// call makes a request that must return the status, and returns the body.
func (s *service) call(t testing.TB, status int, method, path string, body any) string {
	t.Helper()
	a, err := s.ask(t.Context(), method, path, body)
	if err != nil || a.status != status {
		t.Fatalf("%s %s: status %d, want %d: %s (%v)", method, path, a.status, status, a.body, err)
	}
	return a.body
}

// made creates something and returns its UUID.
func (s *service) made(t testing.TB, path string, body any) string {
	t.Helper()
	var v struct{ UUID string }
	noError(t, json.Unmarshal([]byte(s.call(t, http.StatusCreated, http.MethodPost, path, body)), &v))
	return v.UUID
}

func (s *service) campaign(t testing.TB) string {
	t.Helper()
	return s.made(t, "/v1/campaigns", map[string]string{"title": "Survey"})
}

func responses(campaign string) string { return "/v1/campaigns/" + campaign + "/responses" }

// submission is a response of a person.
func submission(email, answer string) map[string]any {
	return map[string]any{
		"user":      map[string]string{"email": email, "firstName": "Ada"},
		"responses": map[string]any{"q": map[string]any{"value": []string{answer}}},
	}
}

func (s *service) submit(t testing.TB, campaign string) string {
	t.Helper()
	return s.made(t, responses(campaign), submission("ada@example.com", "yes"))
}

// receive starts a receiver of deliveries that are signed with testSecret.
func receive(t testing.TB) *webhooktest.Receiver {
	t.Helper()
	return webhooktest.NewReceiver(t, []string{testSecret}, nil)
}

// arrived waits until the receiver got n deliveries.
func arrived(t testing.TB, r *webhooktest.Receiver, n int) []webhooktest.Received {
	t.Helper()
	got := must(r.Wait(t.Context(), n))
	for _, bad := range r.Rejected() {
		t.Errorf("a request did not verify: %v", bad.Err)
	}
	return got
}

// until polls done until it returns true.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 6_000 { // what doesn't happen within a minute is missing
		if done() {
			return
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal(what)
		}
	}
	t.Fatal("gave up waiting: ", what)
}

// contains checks that a text has all the parts.
func contains(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s has no %q:\n%.3000s", what, part, text)
		}
	}
}

// lacks checks that a text has none of the parts.
func lacks(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s has %q:\n%.3000s", what, part, text)
		}
	}
}

// content returns n bytes that differ by seed.
func content(seed, n int) []byte {
	return []byte(strings.Repeat(fmt.Sprintf("%08d", seed), n/8+1)[:n])
}

// must returns the result of a call that can't fail here.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

// noError ends the test unless err is nil.
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// equal fails the test unless got is want. The format has a verb for each argument, and the last one for got.
func equal[T comparable](t testing.TB, got, want T, format string, args ...any) {
	t.Helper()
	if got != want {
		t.Errorf(format+", want %v", append(slices.Clone(args), got, want)...)
	}
}
