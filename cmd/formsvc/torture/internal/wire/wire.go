// Package wire gives tests a proxy in front of PostgreSQL that cuts connections at critical positions: before a commit
// reaches the server, after the commit but before the client knows, and in the middle of the reply. It also delays, stalls
// and refuses connections.
//
// The links and their toxics are toxiproxy's. At both ends of a link, this package follows the protocol (version 3) from
// the first byte, so it can also cut connections that existed before a cut was armed.
//
// The proxy refuses requests for encryption in place of the server, since it couldn't read the rest. It doesn't understand
// streaming replication.
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

// A Proxy passes connections on to a PostgreSQL server. It is safe for concurrent use.
// Methods that take a test end it when they fail; call them on its goroutine.
type Proxy struct {
	addr, upstream string
	api            *toxiproxy.ApiServer
	toxics         *toxiproxy.ToxicCollection
	running        sync.WaitGroup // goroutines that accept or connect
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

// New starts a proxy in front of the server at upstream, as host:port. The proxy ends
// with the test, and fails it if a cut is still armed then; see [Proxy.Disarm].
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
		// The port lies below the range of outgoing connections, so nobody takes it while connections are refused.
		p.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(15000+rand.IntN(17000))) // guessing it gains nothing
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

// Addr returns the proxy's address as host:port.
func (p *Proxy) Addr() string { return p.addr }

// DSN returns a data source name, which must be a URL with one host, for connections
// through the proxy.
func (p *Proxy) DSN(t testing.TB, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil || u.Host == "" || strings.Contains(u.Host, ",") || u.Query().Has("host") {
		t.Fatal("the data source name is not a URL with one host")
	}
	u.Host = p.addr
	return u.String()
}

// CutAll resets all connections at both ends and returns their number.
func (p *Proxy) CutAll() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.sessions {
		s.reset()
	}
	return len(p.sessions)
}

// Refuse sets whether new connections are refused. Existing ones go on.
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
		_ = p.listener.Close() // it fails only if it is closed already
		p.listener = nil
	}
}

// Latency delays data by this much in each direction; 0 ends the delay.
func (p *Proxy) Latency(t testing.TB, d time.Duration) {
	t.Helper()
	p.opening.Lock()
	defer p.opening.Unlock()
	p.remove(t, "latency")
	if d > 0 {
		p.add(t, "latency", fmt.Sprintf(`{"latency": %d}`, d.Milliseconds()))
	}
}

// Stall sets whether connections, also new ones, are accepted but carry nothing in either direction, not even a close. Data
// sent meanwhile is lost, so the end of a stall resets all connections.
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
		// Links that end before the toxic is removed can't lose a part of their data.
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

// remove removes a toxic, if add added it.
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

// connect connects a client to the server.
func (p *Proxy) connect(client net.Conn) {
	var dialer net.Dialer
	server, err := dialer.DialContext(context.Background(), "tcp", p.upstream)
	if err != nil {
		_ = client.Close() // the client sees that there is no server
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
		_ = p.listener.Close() // it fails only if it is closed already
	}
	p.mu.Unlock()
	p.running.Wait()
	p.end()
}
