package torture_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/api"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/inbox"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/service"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

const (
	// memoryOfServer is how much memory a server may take, whatever one account does.
	memoryOfServer = 512 << 20
	// attackTime is how long each attack takes, and how long the victim works alone before it: by default, and with -rounds or -for.
	attackTime     = time.Second
	longAttackTime = 5 * time.Second
)

// An account with a key of every permission plays the worst cases, one after the other, while another account works. No request of
// the other account fails, all its events are delivered, and the memory of the server stays bounded. The log has the latencies, and which
// share of the events was delivered meanwhile, alone and beside each attack. A few attacks run by default, all of them with -rounds or
// -for.
func TestBadNeighbour(t *testing.T) {
	for name, dsn := range map[string]func(testing.TB) string{"sqlite": sqliteDSN, "postgres": func(t testing.TB) string { return postgrestest.DSN(t) }} {
		t.Run(name, func(t *testing.T) { newNeighbourhood(t, dsn(t)).endure(t) })
	}
}

// A neighbourhood is a server with two accounts.
type neighbourhood struct {
	server   *service.Process
	attacker *api.Client
	key      string // the attacker's
	victim   *api.Client
	list     string // addresses of the attacker's responses, of a large one, and of a file
	large    string
	file     string
	theirs   string // of the victim's responses
	one      string
	inbox    *inbox.Inbox // gets the victim's events
	silent   *inbox.Inbox // gets the attacker's, and doesn't respond
	created  int          // responses of the victim
}

func newNeighbourhood(t *testing.T, dsn string) *neighbourhood {
	s := &service.Setup{Program: program(t), DSN: dsn, Data: t.TempDir(), Flags: []string{"--quota", "0", "--webhook-allow", "127.0.0.0/8"}}
	n := &neighbourhood{server: service.Start(t, s), inbox: inbox.New(t), silent: inbox.New(t)}
	n.silent.Shut()
	n.key = n.server.FirstKey(t)
	service.Command(t, s, "accounts", "create", "victim")
	service.Command(t, s, "webhooks", "create", "--account", "victim", "--url", n.inbox.URL, "--events", "response.created",
		"--secret", inbox.Secret, "--webhook-allow", "127.0.0.0/8")
	theirs := strings.TrimSpace(service.Command(t, s, "keys", "create", "--account", "victim", "--name", "v", "--permissions", "all"))
	n.attacker, n.victim = api.New(n.key), api.New(theirs)
	t.Cleanup(n.attacker.Close)
	t.Cleanup(n.victim.Close)
	campaigns := n.server.URL + "/v1/campaigns"
	n.list = campaigns + "/" + n.made(t, n.attacker, campaigns, `{"title":"large"}`) + "/responses"
	n.theirs = campaigns + "/" + n.made(t, n.victim, campaigns, `{"title":"theirs"}`) + "/responses"
	n.one, n.created = n.theirs+"/"+n.made(t, n.victim, n.theirs, response("v@example.com", 10)), 1
	for i := range 40 {
		n.made(t, n.attacker, n.list, response(fmt.Sprintf("a%d@example.com", i), 500_000))
	}
	id := n.made(t, n.attacker, n.list, response("large@example.com", 3_900_000))
	n.large = n.list + "/" + id
	a, err := n.attacker.Do(t.Context(), api.Request{
		Method: http.MethodPost, URL: n.large + "/files", Body: bytes.Repeat([]byte("x"), 5<<20),
		Header: map[string]string{"Content-Disposition": "attachment; filename=a.json"},
	})
	if err != nil || a.Status != http.StatusCreated {
		t.Fatalf("upload: %v, %d %.200s", err, a.Status, a.Body)
	}
	n.file = n.server.URL + "/v1/files/" + a.Created()
	return n
}

func response(email string, size int) string {
	return `{"user":{"email":"` + email + `"},"responses":{"a":{"value":["` + strings.Repeat("x", size) + `"]}}}`
}

func (n *neighbourhood) made(t *testing.T, c *api.Client, address, body string) string {
	t.Helper()
	a, err := c.Do(t.Context(), api.Request{Method: http.MethodPost, URL: address, Body: []byte(body)})
	if err != nil || a.Status != http.StatusCreated {
		t.Fatalf("POST %s: %v, %d %.200s", address, err, a.Status, a.Body)
	}
	return a.Created()
}

// An attack goes on over some connections at once until the context ends, at most 400 of them by default.
type attack struct {
	name  string
	conns int
	run   func(ctx context.Context)
	few   bool // whether it runs by default
}

func (n *neighbourhood) attacks() []attack {
	unread := func(address string) func(context.Context) {
		return func(ctx context.Context) { n.raw(ctx, "GET", address, nil, 0) }
	}
	again := func(r api.Request) func(context.Context) {
		return func(ctx context.Context) {
			for ctx.Err() == nil {
				n.attacker.Discard(ctx, r)
			}
		}
	}
	get := func(address string) func(context.Context) {
		return again(api.Request{Method: http.MethodGet, URL: address})
	}
	post := func(body string, header map[string]string) func(context.Context) {
		return again(api.Request{Method: http.MethodPost, URL: n.list, Body: []byte(body), Header: header})
	}
	nobody := api.New("formsvc_" + strings.Repeat("x", 49))
	large, part := []byte(response("s@example.com", 3_900_000)), bytes.Repeat([]byte("x"), 700_000)
	return []attack{
		{"unread lists", 2000, unread(n.list + "?limit=1000"), true},
		{"unread large responses", 2000, unread(n.large), true},
		{"unread events", 2000, unread(n.server.URL + "/v1/events?limit=1000"), false},
		{"unread exports", 2000, unread(n.list + ".ndjson"), false},
		{"unread downloads", 2000, unread(n.file), true},
		{"uploads that stop", 2000, func(ctx context.Context) { n.raw(ctx, "POST", n.large+"/files", part, 50<<20) }, false},
		{"bodies that stop", 2000, func(ctx context.Context) { n.raw(ctx, "POST", n.list, large, 4_000_000) }, true},
		{"lists of large responses", 64, get(n.list + "?limit=1000"), true},
		{"large responses", 64, get(n.large), true},
		{"large creates", 32, post(response("c@example.com", 3_000_000), nil), false},
		{"search by e-mail", 32, get(n.list + "?email=none@example.com"), false},
		{"deep pages", 32, get(n.list + "?offset=1000000"), false},
		{"creates", 128, post(response("c@example.com", 10), nil), true},
		{"replays", 64, post(response("r@example.com", 10), map[string]string{"Idempotency-Key": "again"}), false},
		{"large changes", 16, again(api.Request{Method: http.MethodPatch, URL: n.large, Body: []byte(`{"status":"open"}`)}), false},
		{"unknown keys", 64, func(ctx context.Context) {
			for ctx.Err() == nil {
				nobody.Discard(ctx, api.Request{Method: http.MethodGet, URL: n.list})
			}
		}, false},
		{"readiness", 64, get(n.server.URL + "/readyz"), false},
		{"deliveries without a response", 16, func(ctx context.Context) {
			n.attacker.Discard(ctx, api.Request{Method: http.MethodPost, URL: n.server.URL + "/v1/webhooks", Body: fmt.Appendf(nil,
				`{"url":"%s/%d","secret":%q,"events":["response.created"]}`, n.silent.URL, rand.Int(), inbox.Secret)})
			post(response("c@example.com", 10), nil)(ctx)
		}, false},
	}
}

// raw sends a request, as far as it has a body, and reads nothing.
func (n *neighbourhood) raw(ctx context.Context, method, address string, body []byte, length int) {
	host, path, _ := strings.Cut(strings.TrimPrefix(address, "http://"), "/")
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", host)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4096)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	head := method + " /" + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + n.key + "\r\n"
	if length > 0 {
		head += "Content-Type: application/json\r\nContent-Disposition: attachment; filename=a.json\r\nContent-Length: " + strconv.Itoa(length) + "\r\n"
	}
	if _, err := io.WriteString(conn, head+"\r\n"); err == nil {
		_, _ = conn.Write(body)
	}
	<-ctx.Done()
}

// endure runs the attacks, each as a test of its own.
func (n *neighbourhood) endure(t *testing.T) {
	all, d := *roundsFlag > 0 || *forFlag > 0, attackTime
	if all {
		d = longAttackTime
	}
	for _, a := range n.attacks() {
		if a.few || all {
			t.Run(a.name, func(t *testing.T) { n.suffer(t, a, d) })
		}
	}
}

func (n *neighbourhood) suffer(t *testing.T, a attack, d time.Duration) {
	alone, before := n.work(t, "alone", d)
	n.forgetPeak(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var group sync.WaitGroup
	conns := a.conns
	if d < longAttackTime {
		conns = min(conns, 400)
	}
	for range conns {
		group.Go(func() { a.run(ctx) })
	}
	beside, during := n.work(t, "beside it", d)
	stop()
	group.Wait()
	n.deliver(t)
	peak := n.peak(t)
	t.Logf("p50 %v, p99 %v, longest %v of %d, delivered %d %% (alone %v, %v, %v of %d, %d %%); peak of memory %d MiB",
		quantile(beside, 0.5), quantile(beside, 0.99), quantile(beside, 1), len(beside), during,
		quantile(alone, 0.5), quantile(alone, 0.99), quantile(alone, 1), len(alone), before, peak>>20)
	if peak > memoryOfServer {
		t.Errorf("the server took %d MiB, at most %d may be", peak>>20, memoryOfServer>>20)
	}
}

// work creates and reads responses of the victim, none of which may fail. It returns how long each request took, and how much of the
// events was delivered meanwhile, in percent.
func (n *neighbourhood) work(t *testing.T, when string, d time.Duration) (took []time.Duration, delivered int) {
	t.Helper()
	created, before := n.created, n.delivered()
	for end := time.Now().Add(d); time.Now().Before(end) || len(took) < 20; {
		for _, r := range []api.Request{
			{Method: http.MethodPost, URL: n.theirs, Body: []byte(response("v@example.com", 100))}, {Method: http.MethodGet, URL: n.one},
		} {
			began := time.Now()
			a, err := n.victim.Do(t.Context(), r)
			took = append(took, time.Since(began))
			if err != nil || a.Status/100 != 2 {
				t.Fatalf("%s: %s: %v, %d %.200s", when, r.Method, err, a.Status, a.Body)
			}
		}
		n.created++
	}
	return took, 100 * (n.delivered() - before) / (n.created - created)
}

func (n *neighbourhood) delivered() int {
	taken, repeated := n.inbox.Count()
	return taken - repeated
}

// deliver waits until all events of the victim are delivered.
func (n *neighbourhood) deliver(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(time.Minute); n.delivered() < n.created; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d events are delivered; faults: %v", n.delivered(), n.created, n.inbox.Faults())
		}
	}
}

func quantile(list []time.Duration, q float64) time.Duration {
	list = slices.Sorted(slices.Values(list))
	return list[int(float64(len(list)-1)*q)].Round(100 * time.Microsecond)
}

// forgetPeak sets the peak to what the server takes now.
func (n *neighbourhood) forgetPeak(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", n.server.PID()), []byte("5"), 0); err != nil {
		t.Logf("the peak of memory is that of all attacks so far: %v", err)
	}
}

// peak returns the most memory that the server has taken since then, in bytes.
func (n *neighbourhood) peak(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.server.PID()))
	if err != nil {
		t.Skipf("SKIPPED: needs /proc: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}
