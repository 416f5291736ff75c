package egress_test

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/formsvc/toolkit/webhook/egress"
)

// TestRebinding saves a webhook while its name has a public address, and sends when the name has
// other addresses. A real server resolves the names.
func TestRebinding(t *testing.T) {
	t.Parallel()
	c := newCanary(t)
	const public4, public6 = "93.184.216.34", "2606:4700::1111"
	for _, s := range []struct {
		title string
		send  []netip.Addr
		pass  []string // what Control may allow
	}{
		{"A loopback", addrs("127.0.0.1"), nil},
		{"AAAA loopback", addrs("::1"), nil},
		{"both loopback", addrs("127.0.0.1", "::1"), nil},
		{"unspecified", addrs("0.0.0.0", "::"), nil},
		{"metadata", addrs("169.254.169.254", "fd00:ec2::254"), nil},
		{"AAAA mapped", addrs("::ffff:127.0.0.1"), nil},
		{"AAAA NAT64", addrs("64:ff9b::7f00:1"), nil},
		{"many", addrs("10.0.0.1", "192.168.0.1", "127.0.0.1", "127.0.0.2"), nil},
		{"A public, A loopback", addrs(public4, "127.0.0.1"), []string{public4}},
		{"A loopback, A public", addrs("127.0.0.1", public4), []string{public4}},
		{"A public, AAAA loopback", addrs(public4, "::1"), []string{public4}},
		{"A loopback, AAAA public", addrs("127.0.0.1", public6), []string{public6}},
		{"all of them", addrs(public4, public6, "127.0.0.1", "::1"), []string{public4, public6}},
	} {
		t.Run(s.title, func(t *testing.T) {
			names := newNameServer(t, addrs(public4, public6)...)
			p := newPolicy(t, names.resolver())
			sender := newSender(c, names.resolver(), p.Control)
			url := "http://receiver.example:" + c.port + "/hook"
			if err := p.CheckURL(t.Context(), url); err != nil {
				t.Fatalf("when saved: %v", err)
			}
			names.set(s.send...)
			passed, err := sender.send(url)
			if err == nil || c.has6 && len(s.pass) == 0 && !errors.Is(err, egress.ErrRefused) {
				t.Errorf("request: %v", err)
			}
			for _, address := range passed {
				if !slices.Contains(s.pass, netip.MustParseAddrPort(address).Addr().String()) {
					t.Errorf("connected to %s", address)
				}
			}
			if c.has6 && len(passed) != len(s.pass) {
				t.Errorf("connected to %v, want all of %v: each address is judged by itself", passed, s.pass)
			}
			// With these answers CheckURL would have refused it.
			if err := p.CheckURL(t.Context(), url); !refused(err) {
				t.Errorf("when saved again: %v", err)
			}
		})
	}
	if n := c.connections(); n != 0 {
		t.Errorf("%d connections to the canary", n)
	}
}
