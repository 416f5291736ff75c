package egress

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// The public addresses of this machine's interfaces are refused like those of its network, until they move.
func TestOwnAddressesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const v4, v6, later, other = "8.8.4.4:443", "[2606:4700::1111]:443", "1.0.0.1:443", "9.9.9.9:443"
		var failure error
		addrs := []net.Addr{
			&net.IPNet{IP: net.ParseIP("8.8.4.4"), Mask: net.CIDRMask(24, 32)},
			&net.IPNet{IP: net.ParseIP("2606:4700::1111"), Mask: net.CIDRMask(64, 128)},
		}
		p, err := New(&Options{Allow: []netip.Prefix{netip.MustParsePrefix("8.8.4.0/30")}})
		if err != nil {
			t.Fatal(err)
		}
		listed := 0
		p.own.list = func() ([]net.Addr, error) { listed++; return addrs, failure }
		want := func(refused ...string) {
			t.Helper()
			for _, address := range []string{v4, v6, later, other} {
				want := false
				for _, r := range refused {
					want = want || r == address
				}
				if err := p.Control("tcp4", address, nil); errors.Is(err, ErrRefused) != want {
					t.Errorf("%s: %v, want refused: %v", address, err, want)
				}
			}
		}
		want(v4, v6)
		if listed != 1 {
			t.Errorf("listed %d times", listed)
		}
		addrs[0] = &net.IPNet{IP: net.ParseIP("1.0.0.1"), Mask: net.CIDRMask(24, 32)}
		want(v4, v6)
		time.Sleep(ownFor + time.Second)
		want(later, v6)
		failure = errors.New("no interfaces")
		time.Sleep(ownFor + time.Second)
		want(later, v6)
		if err := p.CheckAddr(netip.MustParseAddrPort("8.8.4.1:443")); err != nil {
			t.Errorf("a neighbour: %v", err)
		}
	})
}

// The range of an own address can be allowed.
func TestOwnAddressIsAllowed(t *testing.T) {
	p, err := New(&Options{Allow: []netip.Prefix{netip.MustParsePrefix("8.8.4.4/32")}})
	if err != nil {
		t.Fatal(err)
	}
	p.own.list = func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.ParseIP("8.8.4.4"), Mask: net.CIDRMask(24, 32)}}, nil
	}
	if err := p.Control("tcp4", "8.8.4.4:22", nil); err != nil {
		t.Error(err)
	}
}

// The interfaces of the machine that runs the test are known.
func TestInterfacesAreListed(t *testing.T) {
	p, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	if !p.own.has(netip.MustParseAddr("127.0.0.1")) && !p.own.has(netip.MustParseAddr("::1")) {
		t.Errorf("neither loopback address is known: %v", p.own.addrs)
	}
}
