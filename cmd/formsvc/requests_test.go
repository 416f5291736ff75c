//go:build long

package main_test

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Without --log-requests, no requests are logged.
func TestRequestsAreNotLogged(t *testing.T) {
	t.Parallel()
	s := start(t, databases()[0].dsn(t))
	newClient(t, s.url, s.firstKey(t)).campaign(t, "Quiet")
	s.terminate(t)
	s.stopped(t)
	if list := s.requests(t); len(list) > 0 {
		t.Errorf("the log has %+v", list)
	}
}

// "formsvc health" works over HTTP and HTTPS, as a container's health check.
func TestHealth(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 2)
	_, port, _ := net.SplitHostPort(addrs[0])
	s := start(t, databases()[0].dsn(t), "--addr", "0.0.0.0:"+port, "--drain-delay", "1h")
	ask := func(args ...string) result { return invocation{args: append([]string{"health"}, args...)}.run(t) }
	for _, addr := range []string{":" + port, "0.0.0.0:" + port, addrs[0]} {
		if r := ask("--addr", addr); r.status != 0 || r.out != "ready\n" {
			t.Errorf("%s: status %d, %q %q", addr, r.status, r.out, r.err)
		}
	}
	if r := ask("--addr", addrs[0], "--tls-cert", "x"); r.status != 1 {
		t.Errorf("over HTTPS without a certificate: status %d", r.status)
	}
	if r := ask("--addr", addrs[1]); r.status != 1 || !strings.Contains(r.err, addrs[1]) {
		t.Errorf("where nobody listens: status %d, %q", r.status, r.err)
	}
	if r := ask("--addr", "nowhere"); r.status != 2 || !strings.Contains(r.err, "--addr") {
		t.Errorf("no address: status %d, %q", r.status, r.err)
	}
	secure := startTLS(t)
	r := invocation{args: []string{"health", "--addr", secure.addr}, env: []string{"FORMSVC_TLS_CERT=" + secure.cert}}.run(t)
	if r.status != 0 {
		t.Errorf("over HTTPS: status %d, %q", r.status, r.err)
	}
	s.terminate(t)
	eventually(t, "a server that leaves is not ready", func() bool {
		r := ask("--addr", addrs[0])
		return r.status == 1 && strings.Contains(r.err, "503")
	})
}

// A process manager with NOTIFY_SOCKET is notified when the server serves and when it stops.
func TestManagerIsNotified(t *testing.T) {
	t.Parallel()
	for _, name := range []string{filepath.Join(t.TempDir(), "notify"), fmt.Sprintf("@formsvc-%s", freeAddrs(t, 1)[0])} {
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		told := make(chan string, 10)
		go func() {
			buf := make([]byte, 100)
			for {
				n, err := conn.Read(buf)
				if err != nil {
					close(told)
					return
				}
				told <- string(buf[:n])
			}
		}()
		next := func() string {
			select {
			case state := <-told:
				return state
			case <-time.After(patience):
				return "nothing"
			}
		}
		s := execute(t, databases()[0].dsn(t), []string{"NOTIFY_SOCKET=" + name})
		if got := next(); got != "READY=1" {
			t.Errorf("told %q first", got)
		}
		s.started(t) // the log may come after the notification
		newClient(t, s.url, s.firstKey(t)).want(t, http.StatusOK, http.MethodGet, "/readyz", nil, nil)
		s.terminate(t)
		if got := next(); got != "STOPPING=1" {
			t.Errorf("told %q when it stopped", got)
		}
		s.stopped(t)
	}
}
