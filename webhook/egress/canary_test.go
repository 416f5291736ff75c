package egress_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/formsvc/toolkit/webhook/egress"
)

// A canary listens on 127.0.0.1 and, with IPv6, on ::1 at the same port, and counts connections.
type canary struct {
	t       *testing.T
	port    string
	has6    bool
	conns   atomic.Int32
	servers []*httptest.Server
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	c := &canary{t: t}
	var l4, l6 net.Listener
	for {
		var err error
		if l4, err = net.Listen("tcp4", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		_, c.port, _ = net.SplitHostPort(l4.Addr().String())
		if l6, err = net.Listen("tcp6", "[::1]:"+c.port); !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
		_ = l4.Close()
	}
	c.serve(l4)
	if c.has6 = l6 != nil; c.has6 {
		c.serve(l6)
	}
	return c
}

func (c *canary) serve(l net.Listener) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "canary")
	}))
	_ = s.Listener.Close()
	s.Listener = l
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			c.conns.Add(1)
		}
	}
	s.Start()
	c.t.Cleanup(s.Close)
	c.servers = append(c.servers, s)
}

// connections returns the number of connections since the last call. It makes a connection to each
// listener itself: connections are accepted in order, so all earlier ones are counted by then.
func (c *canary) connections() int {
	c.t.Helper()
	for _, s := range c.servers {
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(s.URL)
		if err != nil {
			c.t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	return int(c.conns.Swap(0)) - len(c.servers)
}

// A sender sends real requests through net/http. Nothing leaves the machine: addresses that its
// Control allows are recorded, and all connections go to the canary.
type sender struct {
	client *http.Client
	mu     sync.Mutex
	passed []string
}

var errNotCanary = errors.New("test: not the canary")

func newSender(c *canary, resolver *net.Resolver, control func(string, string, syscall.RawConn) error) *sender {
	s := &sender{}
	dialer := &net.Dialer{Resolver: resolver, Control: func(network, address string, raw syscall.RawConn) error {
		if err := control(network, address, raw); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.passed = append(s.passed, address)
		host, port, _ := net.SplitHostPort(address)
		host, _, _ = strings.Cut(host, "%") // net writes a zone even to an IPv4 address
		ip, _ := netip.ParseAddr(host)
		if port != c.port || ip.IsValid() && !ip.IsLoopback() && !ip.IsUnspecified() {
			return errNotCanary
		}
		return nil
	}}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
	c.t.Cleanup(transport.CloseIdleConnections)
	s.client = &http.Client{Transport: transport}
	return s
}

// send makes a request and returns what Control let through.
func (s *sender) send(url string) ([]string, error) {
	resp, err := s.client.Post(url, "application/json", strings.NewReader("{}"))
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	passed := s.passed
	s.passed = nil
	return passed, err
}

// A nameServer answers DNS queries over UDP on loopback. A test can change its answers at any time.
type nameServer struct {
	mu     sync.Mutex
	answer func(name string) []netip.Addr
	addr   string
}

// newNameServer starts a server that answers with addrs for every name.
func newNameServer(t *testing.T, addrs ...netip.Addr) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameServer{addr: conn.LocalAddr().String()}
	s.set(addrs...)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for buf := make([]byte, 1500); ; {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(s.reply(buf[:n]), from)
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return s
}

func (s *nameServer) set(addrs ...netip.Addr) {
	s.setFunc(func(string) []netip.Addr { return addrs })
}

func (s *nameServer) setFunc(answer func(name string) []netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", s.addr)
	}}
}

// reply answers one query (RFC 1035, section 4), with a time to live of 0.
func (s *nameServer) reply(query []byte) []byte {
	const typeA, typeAAAA = 1, 28
	var labels []string
	end := 12
	for query[end] != 0 {
		n := int(query[end])
		labels = append(labels, string(query[end+1:end+1+n]))
		end += 1 + n
	}
	kind := binary.BigEndian.Uint16(query[end+1:])
	s.mu.Lock()
	defer s.mu.Unlock()
	var answers []byte
	var count uint16
	for _, addr := range s.answer(strings.Join(labels, ".")) {
		if addr.Is4() != (kind == typeA) || addr.Is6() != (kind == typeAAAA) {
			continue
		}
		count++
		answers = append(answers, 0xc0, 12) // the name of the question
		answers = binary.BigEndian.AppendUint16(answers, kind)
		answers = append(answers, 0, 1, 0, 0, 0, 0, 0, byte(len(addr.AsSlice())))
		answers = append(answers, addr.AsSlice()...)
	}
	reply := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1}, byte(count>>8), byte(count), 0, 0, 0, 0)
	reply = append(reply, query[12:end+5]...)
	return append(reply, answers...)
}

// A fixed resolver gives every name the same answer. It is for tests of what follows the name
// resolution.
type fixed struct {
	addrs []netip.Addr
	err   error
}

func (f fixed) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return f.addrs, f.err
}

func newPolicy(t testing.TB, resolver egress.Resolver, allow ...string) *egress.Policy {
	t.Helper()
	opts := &egress.Options{Resolver: resolver}
	for _, s := range allow {
		opts.Allow = append(opts.Allow, netip.MustParsePrefix(s))
	}
	p, err := egress.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func addrs(ss ...string) []netip.Addr {
	var list []netip.Addr
	for _, s := range ss {
		list = append(list, netip.MustParseAddr(s))
	}
	return list
}

func at(addr string, port int) netip.AddrPort {
	return netip.MustParseAddrPort(net.JoinHostPort(addr, strconv.Itoa(port)))
}
