package egress_test

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/webhook/egress"
)

// send makes a request through net/http whose names have the addresses of resolver, as a [net.Dialer] would: it asks Control about
// each address until one is allowed. It connects to none, and returns the allowed one or the error.
func send(p *egress.Policy, resolver fixed, url string) (allowed netip.Addr, err error) {
	transport := &http.Transport{DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
		host, port, _ := net.SplitHostPort(address)
		list := resolver.addrs
		if ip, err := netip.ParseAddr(host); err == nil {
			list = []netip.Addr{ip}
		}
		var last error = &net.DNSError{IsNotFound: true}
		for _, ip := range list {
			network := "tcp6"
			if ip.Is4() {
				network = "tcp4"
			}
			if last = p.Control(network, net.JoinHostPort(ip.String(), port), nil); last == nil {
				allowed = ip
				break
			}
		}
		if last == nil {
			last = net.ErrClosed
		}
		return nil, last
	}}
	answer, err := (&http.Client{Transport: transport}).Post(url, "application/json", strings.NewReader("{}"))
	if err == nil {
		_ = answer.Body.Close()
	}
	return allowed, err
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
