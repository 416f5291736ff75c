package torture_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/formsvc/toolkit/blobstore/s3blob/s3test"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// The only node is killed at any moment, on either database.
func TestKill(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { killing(t, newWorld(t, 1, setup{dsn: sqliteDSN(t)})) })
	t.Run("postgres", func(t *testing.T) { killing(t, newWorld(t, 1, setup{dsn: postgrestest.DSN(t)})) })
}

// One of three nodes, which share a Postgres and a bucket, is killed at any moment.
func TestKillOneOfThree(t *testing.T) {
	server := s3test.Start(t)
	killing(t, newWorld(t, 3, bucket(server, server.Endpoint, postgrestest.DSN(t))))
}

// killing kills a node each round, at a random moment under load, and restarts it. In every fourth round it is also killed
// while it starts.
func killing(t *testing.T, w *world) {
	t.Helper()
	w.startAll()
	w.load.start(600)
	for n := range rounds(8) {
		w.more(40)
		time.Sleep(100*time.Millisecond + rand.N(time.Second))
		i := rand.IntN(len(w.nodes))
		w.kill(i)
		if len(w.nodes) > 1 {
			time.Sleep(rand.N(200 * time.Millisecond)) // the others do without it
		}
		if n%4 == 3 {
			p := w.launch(t)
			time.Sleep(rand.N(60 * time.Millisecond))
			p.kill()
		}
		w.start(i)
	}
	w.check()
}

// A link is a network link to a server.
type link struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
}

// newLink creates a link to the host of a URL, and returns the URL of its near end.
func newLink(t testing.TB, target string) (l *link, near string) {
	t.Helper()
	u := must(url.Parse(target))
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l = &link{t: t, proxy: toxiproxy.NewProxy(server, "link", "127.0.0.1:0", u.Host)}
	l.up()
	t.Cleanup(l.proxy.Stop)
	u.Host = l.proxy.Listen
	return l, u.String()
}

// up accepts connections, at the port where it did before if that is still free.
func (l *link) up() {
	l.t.Helper()
	waitFor(l.t, "the link is up", func() bool { return l.proxy.Start() == nil })
}

// toxics are the ways in which a link fails: toxics of toxiproxy with an attribute, a random number up to the last.
var toxics = []struct {
	kind, stream, attribute string
	most                    int
}{
	{kind: "down"}, // connections are cut, and refused
	{"limit_data", "downstream", "bytes", 1 << 12}, // cut within the replies
	{"limit_data", "upstream", "bytes", 1 << 16},
	{"timeout", "downstream", "timeout", 1},    // hangs: requests arrive, replies don't
	{"reset_peer", "upstream", "timeout", 100}, // milliseconds
	{"timeout", "upstream", "timeout", 0},
	{"reset_peer", "downstream", "timeout", 100},
	{"latency", "downstream", "latency", 600},
	{"bandwidth", "upstream", "rate", 200}, // KB a second
}

// disturb makes a link fail in the n-th way for a time.
func (l *link) disturb(n int, d time.Duration) {
	l.t.Helper()
	x := toxics[n%len(toxics)]
	if x.kind == "down" {
		l.proxy.Stop()
		time.Sleep(d)
		l.up()
		return
	}
	value := 0
	if x.most > 0 {
		value = 1 + rand.IntN(x.most)
	}
	text := fmt.Sprintf(`{"name":"fault","type":%q,"stream":%q,"attributes":{%q:%d}}`, x.kind, x.stream, x.attribute, value)
	if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
		l.t.Fatalf("%s: %v", text, err)
	}
	time.Sleep(d)
	noError(l.t, l.proxy.Toxics.RemoveToxic(context.Background(), "fault"))
}

// disturbing makes a link fail in every way under load, each for a fraction of a second, and every tenth time for longer
// than a request may take.
func disturbing(t *testing.T, w *world, l *link, perSecond float64) {
	t.Helper()
	w.startAll()
	w.load.start(perSecond)
	for n := range rounds(9) {
		w.more(20)
		time.Sleep(rand.N(200 * time.Millisecond))
		d := 100*time.Millisecond + rand.N(400*time.Millisecond)
		if n%10 == 3 {
			d = 5 * time.Second
		}
		l.disturb(n, d)
	}
	w.check()
}

// Connections to Postgres are cut or hang at any moment: before a commit arrives, after it, and within its reply.
func TestPostgresLink(t *testing.T) {
	l, dsn := newLink(t, postgrestest.DSN(t))
	disturbing(t, newWorld(t, 2, setup{dsn: dsn}), l, 400)
}

// The S3 server is down, slow, hangs or cuts connections during uploads and downloads. A file is stored completely or not at
// all.
func TestS3Link(t *testing.T) {
	server := s3test.Start(t)
	l, endpoint := newLink(t, server.Endpoint)
	w := newWorld(t, 2, bucket(server, endpoint, postgrestest.DSN(t)))
	w.files = true
	disturbing(t, w, l, 200)
}

// A node that starts before its database waits for it.
func TestStartBeforeDatabase(t *testing.T) {
	l, dsn := newLink(t, postgrestest.DSN(t))
	l.proxy.Stop()
	p := (&setup{dsn: dsn, data: t.TempDir()}).launch(t)
	waitFor(t, "the node says that it waits", func() bool { return p.logged(waitingPattern) != "" || p.ended() })
	l.up()
	if !p.await() {
		t.Fatalf("the node does not serve:\n%s", p.tail())
	}
}

// bucket returns how to use a bucket of an S3 server at an endpoint.
func bucket(s *s3test.Server, endpoint, dsn string) setup {
	return setup{
		dsn: dsn, blobs: []string{"--blobs", fmt.Sprintf("s3://%s?endpoint=%s&region=%s", s.Bucket, endpoint, s.Region)},
		env: []string{"AWS_ACCESS_KEY_ID=" + s.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s.SecretKey},
	}
}

// The node is killed just before a system call that writes. So nodes start from every state of the files between two calls.
func TestKillAtSystemCall(t *testing.T) {
	failing(t, "signal=KILL", []string{"fsync", "linkat", "pwrite64", "unlinkat", "write", "ftruncate", "mkdirat"})
}

// A write or flush fails once, at any moment. Everything acknowledged is stored, even after a crash.
func TestDiskErrors(t *testing.T) {
	t.Run("EIO", func(t *testing.T) { failing(t, "error=EIO", []string{"fsync", "pwrite64", "linkat", "unlinkat"}) })
	t.Run("ENOSPC", func(t *testing.T) { failing(t, "error=ENOSPC", []string{"pwrite64", "write", "linkat"}) })
}

// failing runs a node each round for a second, or until it ends. In the n-th of one system call, a fault happens.
func failing(t *testing.T, fault string, calls []string) {
	t.Helper()
	if out, err := exec.Command("strace", "-f", "-qq", "-o", os.DevNull, "/bin/true").CombinedOutput(); err != nil {
		missing(t, "strace may not trace here: %v, %s", err, bytes.TrimSpace(out))
	}
	w := newWorld(t, 1, setup{dsn: sqliteDSN(t)})
	w.files = true
	w.load.start(400)
	reached := 0
	for n := range rounds(len(calls)) {
		call := calls[n%len(calls)]
		nth := 1 + rand.IntN(3)
		if call == "fsync" || strings.Contains(call, "write") { // frequent ones fail at a random time, rare ones at once
			nth += rand.IntN(1 << rand.IntN(7))
		}
		log := filepath.Join(t.TempDir(), "strace")
		w.under = []string{"strace", "-f", "-qq", "-e", "signal=none", "-o", log, "-e", "trace=" + call, "-e", fmt.Sprintf("inject=%s:%s:when=%d", call, fault, nth)}
		if fault != "signal=KILL" {
			w.under = append(w.under, "--seccomp-bpf") // much faster; strace 6.1 then sends signals at the first call only
		}
		p := w.launch(t)
		if p.await() {
			w.put(0, p)
		}
		select {
		case <-p.done: // killed, or exited because it must not continue after a failed write
		case <-time.After(time.Second): // the load is too small for that many calls
		}
		if trace, err := os.ReadFile(log); err == nil && bytes.Contains(trace, []byte("(INJECTED)")) || p.ended() {
			reached++
		}
		p.kill()
		w.put(0, nil)
	}
	w.under = nil
	w.check()
	if reached == 0 {
		t.Error("INVALID: no system call was reached")
	}
}
