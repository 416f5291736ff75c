package egress_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/webhook/egress"
)

func TestPorts(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, nil, "10.0.0.0/8", "fd00::/8")
	for port := range 1 << 16 {
		public := port == 80 || port == 443 || port >= 1024
		for addr, want := range map[string]bool{
			"8.8.8.8": public, "::ffff:8.8.8.8": public, "2606:4700::1111": public,
			"10.0.0.1": port > 0, "::ffff:10.0.0.1": port > 0, "fd00::1": port > 0,
		} {
			if err := p.CheckAddr(at(addr, port)); want != (err == nil) || err != nil && !strings.HasSuffix(err.Error(), byPort) {
				t.Errorf("%s port %d: %v, want allowed: %t", addr, port, err, want)
			}
		}
	}
}

func TestControl(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, nil)
	for _, c := range []struct{ network, address, rule string }{
		{"tcp4", "8.8.8.8:443", ""},
		{"tcp6", "[2606:4700::1111]:443", ""},
		{"tcp6", "[::ffff:8.8.8.8]:443", ""},
		{"tcp4", "127.0.0.1:443", byAddress},
		{"tcp6", "[::1]:443", byAddress},
		{"tcp6", "[fe80::1%eth0]:443", byZone},
		{"tcp6", "[2606:4700::1111%eth0]:443", byZone},
		{"tcp6", "[::ffff:8.8.8.8%eth0]:443", byZone},
		{"tcp4", "8.8.8.8:25", byPort},
		{"tcp4", "8.8.8.8:0", byPort},
		{"tcp", "8.8.8.8:443", byNetwork},
		{"TCP4", "8.8.8.8:443", byNetwork},
		{"udp4", "8.8.8.8:443", byNetwork},
		{"udp6", "[2606:4700::1111]:443", byNetwork},
		{"ip4:tcp", "8.8.8.8:443", byNetwork},
		{"unix", "/var/run/docker.sock", byNetwork},
		{"", "8.8.8.8:443", byNetwork},
		{"tcp4", "", byParse},
		{"tcp4", ":443", byParse},
		{"tcp4", "8.8.8.8", byParse},
		{"tcp4", "8.8.8.8:", byParse},
		{"tcp4", "8.8.8.8:https", byParse},
		{"tcp4", "8.8.8.8:65979", byParse},
		{"tcp4", "8.8.8.08:443", byParse},
		{"tcp4", "8.8.8.8%lo:443", byParse}, // as net writes [::ffff:8.8.8.8%lo]
		{"tcp6", "2606:4700::1111:443", byParse},
		{"tcp4", "receiver.example:443", byParse},
	} {
		err := p.Control(c.network, c.address, nil)
		if c.rule == "" && err != nil || c.rule != "" && !isRule(err, c.rule) {
			t.Errorf("%s %q: %v, want %q", c.network, c.address, err, c.rule)
		}
	}
}

func isRule(err error, rule string) bool {
	return errors.Is(err, egress.ErrRefused) && err.Error() == egress.ErrRefused.Error()+": "+rule
}

// A policy that wasn't created by New refuses everything, and an invalid address is refused.
func TestZeroValues(t *testing.T) {
	t.Parallel()
	var zero egress.Policy
	for _, p := range []*egress.Policy{nil, &zero} {
		for _, err := range []error{
			p.CheckAddr(at("8.8.8.8", 443)), p.Control("tcp4", "8.8.8.8:443", nil), p.CheckURL(t.Context(), "http://receiver.example/"),
		} {
			if !isRule(err, byNew) {
				t.Errorf("%v", err)
			}
		}
	}
	for _, p := range []*egress.Policy{newPolicy(t, nil), newPolicy(t, nil, "0.0.0.0/0", "::/0")} {
		for _, a := range []netip.AddrPort{{}, netip.AddrPortFrom(netip.Addr{}, 443)} {
			if err := p.CheckAddr(a); !isRule(err, byParse) {
				t.Errorf("%v: %v", a, err)
			}
		}
	}
}

func TestAllow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		allow, addr string
		want        bool
	}{
		{"192.168.7.0/24", "192.168.7.255", true},
		{"192.168.7.0/24", "192.168.8.0", false},
		{"192.168.7.0/24", "192.168.6.255", false},
		{"192.168.7.9/24", "192.168.7.1", true},
		{"127.0.0.1/32", "127.0.0.1", true},
		{"127.0.0.1/32", "::1", false},
		{"127.0.0.1/32", "0.0.0.0", false},
		{"::1/128", "::1", true},
		{"::1/128", "::", false},
		{"168.63.129.16/32", "168.63.129.16", true},
		{"0.0.0.0/0", "127.0.0.1", true},
		{"0.0.0.0/0", "::1", false},
		{"0.0.0.0/0", "64:ff9b::a00:1", false},
		{"0.0.0.0/0", "2002:a00:1::1", false},
		{"::/0", "fd00::1", true},
		{"::/0", "127.0.0.1", false},
		{"::/0", "::ffff:127.0.0.1", false},
		{"::ffff:0:0/96", "127.0.0.1", true},
		{"::ffff:127.0.0.1/128", "127.0.0.1", true},
		{"::ffff:127.0.0.1/128", "127.0.0.2", false},
		{"fe80::/10", "fe80::1", true},
		{"fe80::/10", "fe80::1%lo", false},
		// Behind NAT64, the contained address decides.
		{"64:ff9b::/96", "64:ff9b::808:808", true},
		{"64:ff9b::/96", "64:ff9b::7f00:1", false},
		{"64:ff9b::/96", "64:ff9b::a9fe:a9fe", false},
		{"::/0", "64:ff9b::7f00:1", false},
		{"64:ff9b:1::/48", "64:ff9b:1::1", true},
	} {
		if err := newPolicy(t, nil, c.allow).CheckAddr(at(c.addr, 8080)); c.want != (err == nil) {
			t.Errorf("Allow %s: %s: %v", c.allow, c.addr, err)
		}
	}
	both := newPolicy(t, nil, "64:ff9b::/96", "10.0.0.0/8")
	if err := errors.Join(both.CheckAddr(at("64:ff9b::a00:1", 22)), both.CheckAddr(at("64:ff9b::808:808", 443))); err != nil {
		t.Error(err)
	}
	if err := both.CheckAddr(at("64:ff9b::808:808", 22)); !isRule(err, byPort) {
		t.Errorf("public address through NAT64 on port 22: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, allow := range []netip.Prefix{
		{},
		netip.PrefixFrom(netip.MustParseAddr("10.0.0.0"), 33),
		netip.PrefixFrom(netip.MustParseAddr("::ffff:10.0.0.0"), 95), // would be half of all IPv6
	} {
		good := netip.MustParsePrefix("10.0.0.0/8")
		if p, err := egress.New(&egress.Options{Allow: []netip.Prefix{good, allow}}); err == nil || p != nil {
			t.Errorf("%v: %v", allow, err)
		}
	}
}
