package egress_test

import (
	"testing"
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
