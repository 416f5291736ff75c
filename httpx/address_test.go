package httpx_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/httpx"
)

func ranges(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// The client's address, by RemoteAddr and headers.
func TestTrustedProxies(t *testing.T) {
	t.Parallel()
	clientOf := httpx.TrustedProxies(ranges("10.0.0.0/8", "::ffff:192.168.0.0/120", "fd00::/8"))
	const proxy = "10.0.0.9:4711"
	hundred := strings.TrimSuffix(strings.Repeat("10.1.1.1, ", 100), ", ")
	for _, x := range []struct {
		name, peer string
		headers    []string
		want       string
	}{
		{"one proxy", proxy, []string{"203.0.113.7"}, "203.0.113.7"},
		{"two proxies", proxy, []string{"203.0.113.7, 10.0.0.3"}, "203.0.113.7"},
		{"forged header", proxy, []string{"1.1.1.1, 10.0.0.1", "203.0.113.7", "10.0.0.3"}, "203.0.113.7"},
		{"direct client", "203.0.113.7:1", []string{"10.0.0.1, 1.1.1.1"}, "203.0.113.7"},
		{"client with a proxy's address", proxy, []string{"10.6.6.6"}, "10.6.6.6"},
		{"all are proxies", proxy, []string{hundred}, "10.1.1.1"},
		{"behind a hundred", proxy, []string{"203.0.113.7, " + hundred}, "203.0.113.7"},
		{"not an address", proxy, []string{"203.0.113.7, unknown, 10.0.0.3"}, "10.0.0.3"},
		{"empty elements", proxy, []string{" , 203.0.113.7 ,\t, 10.0.0.3 , "}, "203.0.113.7"},
		{"a port", proxy, []string{"203.0.113.7:65535"}, "203.0.113.7"},
		{"IPv6", proxy, []string{"2001:db8::7"}, "2001:db8::7"},
		{"IPv6 with a port", proxy, []string{"[2001:db8::7]:443"}, "2001:db8::7"},
		{"IPv6 with a zone", proxy, []string{"fe80::1%eth0"}, "fe80::1"},
		{"an IPv6 proxy", "[fd00::1]:80", []string{"2001:db8::7, fd00::2"}, "2001:db8::7"},
		{"IPv4 in IPv6", "[::ffff:10.0.0.9]:80", []string{"::ffff:203.0.113.7, ::ffff:10.1.1.1"}, "203.0.113.7"},
		{"a range of IPv4 in IPv6", "192.168.1.1:80", []string{"203.0.113.7"}, "192.168.1.1"},
		{"Unix socket", "@", []string{"203.0.113.7"}, "@"},
	} {
		r := &http.Request{RemoteAddr: x.peer, Header: http.Header{"X-Forwarded-For": x.headers, "Forwarded": {"for=1.2.3.4"}}}
		equal(t, clientOf(r), x.want, "%s: %q", x.name)
	}
	if got := httpx.TrustedProxies(nil)(&http.Request{RemoteAddr: proxy, Header: http.Header{"X-Forwarded-For": {"203.0.113.7"}}}); got != "10.0.0.9" {
		t.Errorf("without ranges: %q", got)
	}
}

// Behind a proxy that appends the address it sees, clients can't choose their address.
func FuzzTrustedProxies(f *testing.F) {
	for _, s := range []string{"", ",", "10.0.0.1", "1.1.1.1, 10.0.0.1", "[::1", "]:,", "fe80::1%25", strings.Repeat(",", 1000)} {
		f.Add(s, s)
	}
	clientOf := httpx.TrustedProxies(ranges("10.0.0.0/8"))
	f.Fuzz(func(t *testing.T, first, second string) {
		for _, headers := range [][]string{{first + ", 203.0.113.7"}, {first, "203.0.113.7"}, {first, second + ",203.0.113.7,10.0.0.3"}} {
			r := &http.Request{RemoteAddr: "10.0.0.9:1", Header: http.Header{"X-Forwarded-For": headers}}
			equal(t, clientOf(r), "203.0.113.7", "%q: %q", headers)
		}
		r := &http.Request{RemoteAddr: "198.51.100.1:1", Header: http.Header{"X-Forwarded-For": {first, second}}}
		equal(t, clientOf(r), "198.51.100.1", "not through a proxy: %q")
		r.RemoteAddr = "10.0.0.9:1"
		if _, err := netip.ParseAddr(clientOf(r)); err != nil {
			t.Errorf("%q, %q: %v", first, second, err)
		}
	})
}

// Behind a proxy, a client that guesses keys is limited, and others behind it are not.
func TestFailuresAreLimitedBehindProxies(t *testing.T) {
	w := newWorld(t, nil)
	w.serve(&httpx.Options{ClientAddress: httpx.TrustedProxies(ranges("127.0.0.0/8", "192.0.2.1/32"))})
	try := func(from string) *answer {
		return w.do("GET", "/v1/me", "", header("Authorization", "Bearer x"), header("X-Forwarded-For", from))
	}
	for i := range httpx.FailureBurst {
		try(fmt.Sprintf("198.51.100.%d, 203.0.113.7", i)).is(401, "unauthenticated")
	}
	try("10.9.9.9, 203.0.113.7").is(429, "too_many_failures")
	try("203.0.113.8").is(401, "unauthenticated")
}
