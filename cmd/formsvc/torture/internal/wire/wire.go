// Package wire gives tests a proxy in front of PostgreSQL which cuts connections
// exactly where it hurts: before a commit reaches the server, after it has and
// before the client knows, and in the middle of the answer. It also delays,
// stalls and refuses connections.
//
// The links are those of toxiproxy, with its toxics; where they meet the
// connections, this package follows the protocol (version 3) from the first byte,
// so that connections which exist when a cut is armed are cut too.
//
// Requests for encryption are refused in place of the server, as nothing could be
// read otherwise. Streaming replication is not understood.
package wire

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
)

// A Proxy passes connections on to a PostgreSQL server. It is safe for concurrent
// use; methods which take a test end it when they fail, and must be called on its
// goroutine.
type Proxy struct {
	addr, upstream string
	api            *toxiproxy.ApiServer
	toxics         *toxiproxy.ToxicCollection
	running        sync.WaitGroup // that accept or connect
	stalled        atomic.Bool
	cuts           atomic.Int64

	opening  sync.Mutex // held while a link starts or a toxic changes; before mu
	mu       sync.Mutex
	listener net.Listener // nil while connections are refused
	sessions map[*session]bool
	number   int // of sessions so far
	armed    *cut
	closed   bool
}

// New starts a proxy in front of the server at upstream, as host:port. It ends
// with the test, and fails it when a cut is armed then which nothing matched; see
// [Proxy.Disarm].
func New(t testing.TB, upstream string) *Proxy {
	t.Helper()
	p := &Proxy{
		upstream: upstream,
		api:      &toxiproxy.ApiServer{Metrics: toxiproxy.NewMetricsContainer(nil)},
		toxics:   toxiproxy.NewToxicCollection(&toxiproxy.Proxy{Name: "postgres"}),
		sessions: map[*session]bool{},
	}
	var err error
	for range 20 {
		// Below the ports from which outgoing connections take theirs: nobody takes it while connections are refused.
		p.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(15000+rand.IntN(17000))) // nobody gains by guessing it
		if err = p.listen(); err == nil {
			t.Cleanup(func() {
				p.close()
				if p.Disarm() {
					t.Error("a cut was armed, but nothing matched")
				}
			})
			return p
		}
	}
	t.Fatalf("listen: %v", err)
	return nil
}

// Addr returns where the proxy listens, as host:port.
func (p *Proxy) Addr() string { return p.addr }

// DSN returns a data source name, which must be a URL with one host, for
// connections through the proxy.
func (p *Proxy) DSN(t testing.TB, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil || u.Host == "" || strings.Contains(u.Host, ",") || u.Query().Has("host") {
		t.Fatal("the data source name is not a URL with one host")
	}
	u.Host = p.addr
	return u.String()
}

// CutAll resets all connections, at both ends, and returns how many there were.
func (p *Proxy) CutAll() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.sessions {
		s.reset()
	}
	return len(p.sessions)
}

// Refuse says whether new connections are refused. Those that exist go on.
func (p *Proxy) Refuse(t testing.TB, refuse bool) {
	t.Helper()
	if !refuse {
		if err := p.listen(); err != nil {
			t.Fatal(err)
		}
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close() // an error would mean that it is closed
		p.listener = nil
	}
}

// Latency delays what passes, in each direction, by so much; 0 ends that.
func (p *Proxy) Latency(t testing.TB, d time.Duration) {
	t.Helper()
	p.opening.Lock()
	defer p.opening.Unlock()
	p.remove(t, "latency")
	if d > 0 {
		p.add(t, "latency", fmt.Sprintf(`{"latency": %d}`, d.Milliseconds()))
	}
}

// Stall says whether connections, also new ones, are accepted and then carry
// nothing in either direction, not even the news that the other side has closed
// them. What was sent meanwhile is lost; therefore the end of a stall resets all
// connections.
func (p *Proxy) Stall(t testing.TB, stall bool) {
	t.Helper()
	p.opening.Lock()
	defer p.opening.Unlock()
	switch {
	case stall == p.stalled.Load():
	case stall:
		p.stalled.Store(true)
		p.add(t, "timeout", `{"timeout": 0}`)
	default:
		// Links that have ended before the toxic is removed are none that lost a part of what they carried.
		p.end()
		p.remove(t, "timeout")
		p.stalled.Store(false)
	}
}

// add adds a toxic in both directions.
func (p *Proxy) add(t testing.TB, kind, attributes string) {
	t.Helper()
	for _, direction := range []stream.Direction{stream.Upstream, stream.Downstream} {
		toxic := fmt.Sprintf(`{"name": %q, "type": %q, "stream": %q, "attributes": %s}`,
			kind+direction.String(), kind, direction, attributes)
		if _, err := p.toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			t.Fatal(err)
		}
	}
}

// remove removes a toxic that add added, if it did.
func (p *Proxy) remove(t testing.TB, kind string) {
	t.Helper()
	for _, direction := range []stream.Direction{stream.Upstream, stream.Downstream} {
		err := p.toxics.RemoveToxic(context.Background(), kind+direction.String())
		if err != nil && !errors.Is(err, toxiproxy.ErrToxicNotFound) {
			t.Fatal(err)
		}
	}
}

// listen accepts connections from now on.
func (p *Proxy) listen() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil || p.closed {
		return nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", p.addr)
	if err != nil {
		return err
	}
	p.listener = listener
	p.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.connect(client) })
		}
	})
	return nil
}

// connect joins a client to the server.
func (p *Proxy) connect(client net.Conn) {
	var dialer net.Dialer
	server, err := dialer.DialContext(context.Background(), "tcp", p.upstream)
	if err != nil {
		_ = client.Close() // it finds out that there is no server
		return
	}
	p.opening.Lock()
	defer p.opening.Unlock()
	s := newSession(p, client, server)
	p.mu.Lock()
	p.number++
	name := strconv.Itoa(p.number)
	p.sessions[s] = true
	if p.closed {
		s.reset()
	}
	p.mu.Unlock()
	p.toxics.StartLink(p.api, name+"up", &source{client, s}, &frontend{session: s}, stream.Upstream)
	p.toxics.StartLink(p.api, name+"down", &source{server, s}, &backend{session: s}, stream.Downstream)
}

// end resets all connections and waits until their links have ended.
func (p *Proxy) end() {
	for p.CutAll() > 0 {
		time.Sleep(time.Millisecond)
	}
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	if p.listener != nil {
		_ = p.listener.Close() // an error would mean that it is closed
	}
	p.mu.Unlock()
	p.running.Wait()
	p.end()
}
