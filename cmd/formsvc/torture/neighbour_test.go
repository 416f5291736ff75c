package torture_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// memoryOfServer is how much memory a server may take, whatever one account does, in bytes.
const memoryOfServer = 512 << 20

// A neighbourhood is a server with two accounts.
type neighbourhood struct {
	server           *process
	attacker, victim *client
	list, theirs     string    // addresses of the attacker's responses, some of them large, and of the victim's
	receiver         *receiver // of the victim's events
	created          int       // responses of the victim
}

func newNeighbourhood(t *testing.T) *neighbourhood {
	s := &setup{dsn: sqliteDSN(t), data: t.TempDir(), flags: nodeFlags}
	n := &neighbourhood{server: s.start(t), receiver: newReceiver(t)}
	s.command(t, "accounts", "create", "victim")
	s.command(t, "webhooks", "create", "--account", "victim", "--url", n.receiver.url, "--events", "response.created",
		"--secret", secret, "--webhook-allow", "127.0.0.0/8")
	key := strings.TrimSpace(s.command(t, "keys", "create", "--account", "victim", "--name", "v", "--permissions", "all"))
	n.attacker, n.victim = newClient(t, n.server.firstKey(t)), newClient(t, key)
	campaigns := n.server.url + "/v1/campaigns"
	n.list = campaigns + "/" + n.attacker.made(t, campaigns, `{"title":"large"}`) + "/responses"
	n.theirs = campaigns + "/" + n.victim.made(t, campaigns, `{"title":"theirs"}`) + "/responses"
	for range 40 {
		n.attacker.made(t, n.list, submission(500_000))
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connects, and never responds
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	n.attacker.made(t, n.server.url+"/v1/webhooks", fmt.Sprintf(`{"url":"http://%s","secret":%q,"events":["response.created"]}`, silent.Addr(), secret))
	n.attacker.discard = true
	return n
}

func submission(size int) string {
	return `{"user":{"email":"v@example.com"},"responses":{"a":{"value":["` + strings.Repeat("x", size) + `"]}}}`
}

// One account attacks the server over many connections, while another works. No request of the other fails, all its events are
// delivered, and the memory of the server stays bounded.
func TestBadNeighbour(t *testing.T) {
	n, part := newNeighbourhood(t), submission(3_900_000)
	for _, a := range []struct {
		name  string
		conns int
		run   func(ctx context.Context)
	}{
		{"unread lists", 400, func(ctx context.Context) { n.raw(ctx, "GET "+n.list+"?limit=1000", "", 0) }},
		{"bodies that stop", 400, func(ctx context.Context) { n.raw(ctx, "POST "+n.list, part, 4_000_000) }},
		{"lists of large responses", 64, func(ctx context.Context) { _, _ = n.attacker.do(ctx, http.MethodGet, n.list+"?limit=1000", nil, nil) }},
		{"unanswered deliveries", 128, func(ctx context.Context) {
			_, _ = n.attacker.do(ctx, http.MethodPost, n.list, []byte(submission(10)), nil)
		}},
	} {
		t.Run(a.name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			var group sync.WaitGroup
			for range a.conns {
				group.Go(func() {
					for ctx.Err() == nil {
						a.run(ctx)
					}
				})
			}
			n.work(t)
			stop()
			group.Wait()
			waitFor(t, "all events of the victim are delivered", func() bool {
				events, _ := n.receiver.counts()
				return events == n.created
			})
			peak := n.peak(t)
			t.Logf("%d responses of the victim; peak of memory %d MiB", n.created, peak>>20)
			if peak > memoryOfServer {
				t.Errorf("the server took %d MiB, at most %d may be", peak>>20, memoryOfServer>>20)
			}
		})
	}
}

// work creates responses of the victim for two seconds, none of which may fail.
func (n *neighbourhood) work(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); n.created++ {
		n.victim.made(t, n.theirs, submission(100))
	}
}

// raw sends a request with a part of its body, and reads nothing.
func (n *neighbourhood) raw(ctx context.Context, request, part string, length int) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(n.server.url, "http://"))
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	_, _ = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		request, n.attacker.key, length)
	_, _ = io.WriteString(conn, part)
	<-ctx.Done()
}

// peak returns the most memory that the server has taken since its start, in bytes.
func (n *neighbourhood) peak(t *testing.T) (kb int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.server.cmd.Process.Pid))
	if err != nil {
		missing(t, "needs /proc: %v", err)
	}
	_, value, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(value, &kb); err != nil {
		t.Fatal(err)
	}
	return kb << 10
}
