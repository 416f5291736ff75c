package egress_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/quick"

	"github.com/formsvc/toolkit/webhook/egress"
)

// ranges are refused from first to last. before and after are the neighbours
// that are public, "" where there is none.
var ranges = []struct{ before, first, last, after string }{
	{"", "0.0.0.0", "0.255.255.255", "1.0.0.0"},
	{"9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"},
	{"100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"},
	{"126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"},
	{"169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"},
	{"172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"},
	{"191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"},
	{"192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"},
	{"192.31.195.255", "192.31.196.0", "192.31.196.255", "192.31.197.0"},
	{"192.52.192.255", "192.52.193.0", "192.52.193.255", "192.52.194.0"},
	{"192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"},
	{"192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"},
	{"192.175.47.255", "192.175.48.0", "192.175.48.255", "192.175.49.0"},
	{"198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"},
	{"198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"},
	{"203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"},
	{"223.255.255.255", "224.0.0.0", "239.255.255.255", ""},
	{"", "240.0.0.0", "255.255.255.255", ""},
	{"168.63.129.15", "168.63.129.16", "168.63.129.16", "168.63.129.17"},
	{"", "100.100.100.200", "100.100.100.200", ""},
	{"", "192.0.0.192", "192.0.0.192", ""},

	{"", "::", "::fffe:ffff:ffff", ""}, // ::ffff:0:0/96 follows: IPv4-mapped
	{"", "::1", "::1", ""},
	{"", "::1:0:0:0", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2000::"},
	{"", "::ffff:0:0:0", "::ffff:0:ffff:ffff", ""},
	{"", "::5efe:0:0", "::5efe:ffff:ffff", ""},
	{"", "64:ff9b::", "64:ff9b::ffff:ffff", ""},
	{"", "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", ""},
	{"", "100::", "100::ffff:ffff:ffff:ffff", ""},
	{"2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:200::"},
	{"", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", "2001:3f:ffff:ffff:ffff:ffff:ffff:ffff", ""},
	{"2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::"},
	{"2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2003::"},
	{"2620:4f:7fff:ffff:ffff:ffff:ffff:ffff", "2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff", "2620:4f:8001::"},
	{"3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::"},
	{"3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "4000::", "5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""},
	{"", "5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""},
	{"", "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""},
	{"", "fd00:ec2::254", "fd00:ec2::254", ""},
	{"", "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""},
	{"", "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""},
	{"", "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""},

	{"2606:4700::5efd:ffff:ffff", "2606:4700::5efe:0:0", "2606:4700::5efe:ffff:ffff", "2606:4700::5eff:0:0"},
	{"2606:4700::200:5efd:ffff:ffff", "2606:4700::200:5efe:0:0", "2606:4700::200:5efe:ffff:ffff", "2606:4700::200:5eff:0:0"},
	{"2606:4700::100:5efe:0:0", "2606:4700::200:5efe:0:0", "2606:4700::200:5efe:0:0", "2606:4700::300:5efe:0:0"},
}

// refused reports whether err is a refusal by the rule for addresses.
func refused(err error) bool { return isRule(err, byAddress) }

func TestRanges(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, nil)
	for _, r := range ranges {
		for _, port := range []int{80, 443, 8443} {
			for _, s := range []string{r.first, r.last} {
				if err := p.CheckAddr(at(s, port)); !refused(err) {
					t.Errorf("%s port %d: %v, want refused", s, port, err)
				}
			}
			for _, s := range []string{r.before, r.after} {
				if s == "" {
					continue
				}
				if err := p.CheckAddr(at(s, port)); err != nil {
					t.Errorf("%s port %d: %v, want allowed", s, port, err)
				}
			}
		}
	}
}

// random returns the address of the n-th IPv4 range that seed points to.
func random(n int, seed uint32) netip.Addr {
	var v4 []struct{ first, last uint32 }
	for _, r := range ranges {
		if first, last := netip.MustParseAddr(r.first), netip.MustParseAddr(r.last); first.Is4() {
			v4 = append(v4, struct{ first, last uint32 }{number(first), number(last)})
		}
	}
	r := v4[n%len(v4)]
	return fromNumber(r.first + uint32(uint64(seed)%(uint64(r.last-r.first)+1)))
}

func number(a netip.Addr) uint32 { return binary.BigEndian.Uint32(a.AsSlice()) }

func fromNumber(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, n)))
}

// embedded returns the IPv6 addresses that contain an IPv4 address, except the mapped one.
func embedded(v4 netip.Addr, prefix uint64) []netip.Addr {
	n := number(v4)
	hi, lo := n>>16, n&0xffff
	global := 0x2000_0000_0000_0000 | prefix>>3
	var list []netip.Addr
	for _, s := range []string{
		fmt.Sprintf("::%s", v4),
		fmt.Sprintf("::ffff:0:%s", v4),
		fmt.Sprintf("64:ff9b::%s", v4),
		fmt.Sprintf("64:ff9b:1::%s", v4),
		fmt.Sprintf("64:ff9b:1:%x:%x:%x:%x:%x", hi, lo>>8, lo&0xff<<8, prefix>>48, prefix&0xffff),
		fmt.Sprintf("2002:%x:%x::%x", hi, lo, prefix&0xffff),
		fmt.Sprintf("2001:0:%x:%x:0:ffff:%x:%x", prefix>>48, prefix&0xffff, ^hi&0xffff, ^lo&0xffff), // client of Teredo
		fmt.Sprintf("2001:0:%x:%x::%x", hi, lo, prefix&0xffff),                                      // its server
		fmt.Sprintf("fe80::5efe:%s", v4),
		fmt.Sprintf("fe80::200:5efe:%s", v4),
		fmt.Sprintf("%x:%x:%x:%x:0:5efe:%x:%x", global>>48, global>>32&0xffff, global>>16&0xffff, global&0xffff, hi, lo),
		fmt.Sprintf("%x:%x:%x:%x:200:5efe:%x:%x", global>>48, global>>32&0xffff, global>>16&0xffff, global&0xffff, hi, lo),
	} {
		list = append(list, netip.MustParseAddr(s))
	}
	return list
}

// texts returns host names that some program parses as the IPv4 address.
func texts(v4 netip.Addr) []string {
	b, n := v4.As4(), number(v4)
	return []string{
		v4.String(), v4.String() + ".", fmt.Sprint(n), fmt.Sprintf("%#x", n), fmt.Sprintf("%#o", n),
		fmt.Sprintf("%#o.%#o.%#o.%#o", b[0], b[1], b[2], b[3]),
		fmt.Sprintf("%#x.%#x.%#x.%#x", b[0], b[1], b[2], b[3]),
		fmt.Sprintf("%03d.%03d.%03d.%03d.", b[0], b[1], b[2], b[3]),
		fmt.Sprintf("%d.%d", b[0], n&0xffffff), fmt.Sprintf("%d.%d.%d", b[0], b[1], n&0xffff),
		fmt.Sprintf("%d.%d.%d.%#X", b[0], b[1], b[2], b[3]),
		fmt.Sprintf("[::ffff:%s]", v4), fmt.Sprintf("[::FFFF:%X:%X]", n>>16, n&0xffff),
		fmt.Sprintf("%d。%d。%d。%d", b[0], b[1], b[2], b[3]),
	}
}

// TestEncodings checks that every notation of a denied IPv4 address is denied, and every IPv4
// address within an IPv6 address, except the mapped form.
func TestEncodings(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, fixed{err: errors.New("no answer")})
	property := func(n uint8, seed uint32, prefix uint64, port uint16) bool {
		denied, port := random(int(n), seed), max(port, 1024)
		for _, a := range append(embedded(denied, prefix), denied, netip.AddrFrom16(denied.As16())) {
			if err := p.CheckAddr(netip.AddrPortFrom(a, port)); !refused(err) {
				t.Errorf("%v in %v: %v", denied, a, err)
			}
			address := netip.AddrPortFrom(a, port).String()
			if err := p.Control("tcp6", address, nil); !refused(err) {
				t.Errorf("Control: %v in %v: %v", denied, a, err)
			}
		}
		for _, a := range embedded(fromNumber(seed), prefix) {
			if err := p.CheckAddr(netip.AddrPortFrom(a, port)); !refused(err) {
				t.Errorf("%v in %v: %v", fromNumber(seed), a, err)
			}
		}
		for _, host := range texts(denied) {
			if err := p.CheckURL(t.Context(), "http://"+host+"/"); !errors.Is(err, egress.ErrRefused) {
				t.Errorf("%v as %s: %v", denied, host, err)
			}
		}
		return !t.Failed()
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 2000}); err != nil {
		t.Error(err)
	}
}

// TestAllowedEncodings checks that a range of Allow allows its addresses and their mapped form on
// any port, and nothing else.
func TestAllowedEncodings(t *testing.T) {
	t.Parallel()
	for _, allow := range []string{"10.0.0.0/8", "10.1.2.3/8", "::ffff:10.0.0.0/104", "::ffff:10.9.8.7/104"} {
		p := newPolicy(t, fixed{err: errors.New("no answer")}, allow)
		property := func(n uint8, seed uint32, prefix uint64, port uint16) bool {
			allowed, port := fromNumber(10<<24|seed>>8), max(port, 1)
			for _, a := range []netip.Addr{allowed, netip.AddrFrom16(allowed.As16())} {
				if err := p.CheckAddr(netip.AddrPortFrom(a, port)); err != nil {
					t.Errorf("%s: %v: %v", allow, a, err)
				}
			}
			for _, a := range embedded(allowed, prefix) {
				if err := p.CheckAddr(netip.AddrPortFrom(a, max(port, 1024))); !refused(err) {
					t.Errorf("%s: %v in %v: %v", allow, allowed, a, err)
				}
			}
			if other := random(int(n), seed); other.As4()[0] != 10 && !refused(p.CheckAddr(netip.AddrPortFrom(other, 80))) {
				t.Errorf("%s: %v is allowed", allow, other)
			}
			for i, host := range texts(allowed) {
				canonical := i == 0 || host[0] == '['
				if err := p.CheckURL(t.Context(), fmt.Sprintf("http://%s:%d/", host, port)); canonical != (err == nil) {
					t.Errorf("%s: %v as %s: %v", allow, allowed, host, err)
				}
			}
			return !t.Failed()
		}
		if err := quick.Check(property, &quick.Config{MaxCount: 500}); err != nil {
			t.Error(err)
		}
	}
}
