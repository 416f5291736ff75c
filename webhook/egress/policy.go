package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"code.dny.dev/ssrf"
)

// ErrRefused is wrapped by every error of a [Policy]. The text after it names the rule, never an
// address or a part of the URL, so it may be shown. All addresses are refused with the same text:
// it reveals that a name has an address that isn't public, but not which one.
var ErrRefused = errors.New("egress: destination refused")

// The rules. Those of URLs are in url.go.
const (
	ruleNew     = "the policy was not made by New"
	ruleNetwork = "the network is not tcp4 or tcp6"
	ruleParse   = "the address cannot be parsed"
	ruleZone    = "the address has a zone"
	rulePort    = "the port is not 80, 443 or at least 1024"
	ruleAddress = "the address is not public"
)

func refuse(rule string) error { return fmt.Errorf("%w: %s", ErrRefused, rule) }

// A Resolver finds the addresses of a name, as [net.Resolver] does. It must respect ctx and be safe
// for concurrent use. The network is "ip".
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options are the optional settings of a [Policy]. nil means all defaults; the zero value of a
// field means its default.
type Options struct {
	// Allow are ranges that are allowed although they aren't public, on any port except 0. A range
	// of IPv4 addresses also covers their IPv4-mapped form, but no other IPv6 address. For the name
	// localhost, which often has two addresses, allow 127.0.0.0/8 and ::1/128.
	//
	// Allow 64:ff9b::/96 on hosts that reach IPv4 through NAT64. An address in it is then treated
	// as the IPv4 address that it contains. Defaults to none.
	Allow []netip.Prefix

	// Resolver finds the addresses of names for [Policy.CheckURL].
	// Defaults to [net.DefaultResolver].
	Resolver Resolver
}

// A Policy decides which addresses requests may go to. It is safe for concurrent use. Create it
// with [New]: the zero Policy and a nil one refuse everything.
type Policy struct {
	guard    *ssrf.Guardian // knows which addresses are public
	own      own            // knows those of this machine
	allow    []netip.Prefix // none of them IPv4-mapped
	resolver Resolver
}

// New returns a policy. It fails if a range of [Options.Allow] is invalid, or if it is IPv4-mapped
// and covers more than mapped addresses.
func New(opts *Options) (*Policy, error) {
	if opts == nil {
		opts = &Options{}
	}
	p := &Policy{
		// This package checks networks and ports itself, since ports depend on Allow.
		guard: ssrf.New(ssrf.WithAnyNetwork(), ssrf.WithAnyPort(),
			ssrf.WithDeniedV4Prefixes(netip.MustParsePrefix("168.63.129.16/32"))), // Azure
		resolver: opts.Resolver,
	}
	p.own.list = net.InterfaceAddrs
	if p.resolver == nil {
		p.resolver = net.DefaultResolver
	}
	for _, prefix := range opts.Allow {
		if !prefix.IsValid() {
			return nil, fmt.Errorf("egress: Allow: %v", prefix)
		}
		if addr := prefix.Addr(); addr.Is4In6() {
			if prefix.Bits() < 96 {
				return nil, fmt.Errorf("egress: Allow: %v covers more than IPv4", prefix)
			}
			prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-96)
		}
		p.allow = append(p.allow, prefix)
	}
	return p, nil
}

// Control is a [net.Dialer.Control], which is called with each address right before the connection,
// after name resolution. It never blocks and doesn't use the connection. Every error wraps
// [ErrRefused].
func (p *Policy) Control(network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return refuse(ruleNetwork)
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return refuse(ruleParse)
	}
	return p.CheckAddr(to)
}

// CheckAddr returns nil if requests may go to an address, otherwise an error that wraps
// [ErrRefused].
func (p *Policy) CheckAddr(to netip.AddrPort) error {
	// Connections to a mapped address use IPv4.
	ip, port := to.Addr().Unmap(), to.Port()
	switch {
	case p == nil || p.guard == nil:
		return refuse(ruleNew)
	case !ip.IsValid(): // the guard would treat it as a public IPv4 address
		return refuse(ruleParse)
	case to.Addr().Zone() != "": // check the given address: Unmap drops the zone
		return refuse(ruleZone)
	case port == 0:
		return refuse(rulePort)
	case p.allows(ip):
		if ssrf.IPv6NAT64Prefix.Contains(ip) {
			b := ip.As16()
			return p.CheckAddr(netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[12:])), port))
		}
		return nil
	// Before the address, so that the error for a port reveals nothing about the address.
	case !isPublicPort(port):
		return refuse(rulePort)
	case p.guard.SafeAddr(ip) != nil || isISATAP(ip) || p.own.has(ip):
		return refuse(ruleAddress)
	}
	return nil
}

// allows reports whether ip is in a range of Allow.
func (p *Policy) allows(ip netip.Addr) bool {
	return slices.ContainsFunc(p.allow, func(r netip.Prefix) bool { return r.Contains(ip) })
}

// isPublicPort reports whether public addresses may be reached on a port. Ports below 1024 are for
// mail, remote shells and the like.
func isPublicPort(port uint16) bool { return port == 80 || port == 443 || port >= 1024 }

// isISATAP reports whether the lower half of ip is an interface identifier of RFC 5214, section
// 6.1. A host with an ISATAP interface sends to the IPv4 address in it, whatever the upper half is.
func isISATAP(ip netip.Addr) bool {
	b := ip.As16()
	return ip.Is6() && b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
