package egress_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// FuzzCheckURL checks every URL that CheckURL accepts while no name resolves: net/http would
// connect to the checked host and port, CheckAddr allows an address, and inet_aton doesn't parse a
// name as an address.
func FuzzCheckURL(f *testing.F) {
	for _, s := range spellings {
		for _, u := range s.urls {
			f.Add(strings.ReplaceAll(u, "CANARY", "8080"))
		}
	}
	f.Add("https://receiver.example:8443/hook?a=b")
	f.Add("http://[2606:4700::1111]:8080/")
	f.Add("http://8.8.8.8/")
	p := newPolicy(f, fixed{err: errors.New("no answer")})
	f.Fuzz(func(t *testing.T, raw string) {
		if p.CheckURL(t.Context(), raw) != nil {
			return
		}
		u, err := url.Parse(raw)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.Contains(raw, "#") {
			t.Fatalf("%q was accepted: %v", raw, err)
		}
		host, port := dialled(t, raw)
		if host != u.Hostname() {
			t.Fatalf("%q: net/http connects to %q", raw, host)
		}
		if addr, err := netip.ParseAddr(host); err == nil {
			if err := p.CheckAddr(netip.AddrPortFrom(addr, port)); err != nil {
				t.Fatalf("%q was accepted, but: %v", raw, err)
			}
		} else if addr, ok := aton(host); ok {
			t.Fatalf("%q was accepted, and is %v elsewhere", raw, addr)
		}
		if port != 80 && port != 443 && port < 1024 {
			t.Fatalf("%q was accepted with port %d", raw, port)
		}
	})
}

// dialled returns the host and port that net/http would connect to for a URL.
func dialled(t *testing.T, raw string) (host string, port uint16) {
	stop := errors.New("stop")
	tr := &http.Transport{DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
		h, p, err := net.SplitHostPort(address)
		if err != nil {
			t.Errorf("%q: %v", raw, err)
		}
		n, err := net.LookupPort(network, p)
		if err != nil || n < 0 || n > 1<<16-1 {
			t.Errorf("%q: port %q: %d, %v", raw, p, n, err)
		}
		host, port = h, uint16(n)
		return nil, stop
	}}
	req, err := http.NewRequest(http.MethodPost, raw, nil)
	if err != nil {
		t.Fatalf("%q was accepted, but: %v", raw, err)
	}
	if _, err := tr.RoundTrip(req); !errors.Is(err, stop) {
		t.Fatalf("%q was accepted, but: %v", raw, err)
	}
	return host, port
}

// aton parses a host like inet_aton of C libraries: one to four numbers in decimal, octal or
// hexadecimal, the last of which fills the rest. It ignores a dot at the end, like browsers.
func aton(host string) (netip.Addr, bool) {
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, part := range parts {
		if strings.Contains(part, "_") || strings.HasPrefix(strings.ToLower(part), "0b") || strings.HasPrefix(strings.ToLower(part), "0o") {
			return netip.Addr{}, false
		}
		n, err := strconv.ParseUint(part, 0, 32)
		if err != nil {
			return netip.Addr{}, false
		}
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		if n>>bits != 0 {
			return netip.Addr{}, false
		}
		value = value<<bits | n
	}
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(value)))), true
}
