package egress

import (
	"context"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The characters of names, without the dot. Go doesn't resolve other names.
const (
	digits    = "0123456789"
	nameChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_" + digits
)

// resolveTimeout limits name resolution in CheckURL.
const resolveTimeout = 3 * time.Second

// The rules of URLs.
const (
	ruleURL      = "the URL cannot be parsed"
	ruleScheme   = "the scheme is not http or https"
	ruleUser     = "the URL has a user name or a password"
	ruleFragment = "the URL has a fragment"
	ruleNoHost   = "the URL has no host"
	ruleASCII    = "the host is not in ASCII: write it in its xn-- form"
	ruleHost     = "the host is neither a name nor an IP address"
	ruleNumber   = "the host ends in a number, but is not four decimal numbers without leading zeros"
)

// CheckURL returns nil if a webhook with this URL may be saved, otherwise an error that wraps
// [ErrRefused].
//
// The URL must be absolute, with the scheme http or https, without user name,
// password and fragment. Its host is an IP address that [Policy.CheckAddr]
// accepts with the port, or a name in ASCII. IPv4 addresses are four decimal
// numbers: the decimal, octal, hexadecimal and shortened forms, and full-width
// digits, are refused, since programs disagree on what they mean.
//
// A name is refused if any of its addresses is. A name that doesn't resolve within 3 seconds, or
// before ctx ends, is accepted: [Policy.Control] decides at the connection.
func (p *Policy) CheckURL(ctx context.Context, rawURL string) error {
	if p == nil || p.guard == nil {
		return refuse(ruleNew)
	}
	host, port, err := splitURL(rawURL)
	if err != nil {
		return err
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return p.CheckAddr(netip.AddrPortFrom(addr, port))
	}
	if rule := checkName(host); rule != "" {
		return refuse(rule)
	}
	// No result of the name resolution could make these valid.
	if port == 0 || len(p.allow) == 0 && !isPublicPort(port) {
		return refuse(rulePort)
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	bare, loopback := loopbackName(host)
	if loopback {
		host = bare // the file of hosts has it without the dot
	}
	addrs, err := p.resolver.LookupNetIP(ctx, "ip", host)
	if loopback && (err != nil || len(addrs) == 0) {
		addrs, err = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
	}
	if err != nil {
		return nil // Control decides at the connection
	}
	for _, addr := range addrs {
		if err := p.CheckAddr(netip.AddrPortFrom(addr, port)); err != nil {
			return err
		}
	}
	return nil
}

// loopbackName reports whether a name stands for the machine itself, whatever a name server says (RFC 6761 §6.3), and returns it without
// its final dot.
func loopbackName(host string) (bare string, ok bool) {
	bare = strings.TrimSuffix(host, ".")
	switch name := strings.ToLower(bare); name {
	case "localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback":
		return bare, true
	default:
		return bare, strings.HasSuffix(name, ".localhost")
	}
}

// splitURL returns the host and port that net/http would connect to, or an error.
func splitURL(rawURL string) (host string, port uint16, err error) {
	u, err := url.Parse(rawURL)
	switch {
	// The parser's error contains the URL, which may contain a token.
	case err != nil:
		return "", 0, refuse(ruleURL)
	case u.Scheme != "http" && u.Scheme != "https":
		return "", 0, refuse(ruleScheme)
	case u.User != nil:
		return "", 0, refuse(ruleUser)
	case strings.Contains(rawURL, "#"): // u.Fragment is "" both for an empty fragment and for none
		return "", 0, refuse(ruleFragment)
	case u.Hostname() == "":
		return "", 0, refuse(ruleNoHost)
	case u.Port() != "":
		n, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil {
			return "", 0, refuse(rulePort)
		}
		return u.Hostname(), uint16(n), nil
	case u.Scheme == "http":
		return u.Hostname(), 80, nil
	}
	return u.Hostname(), 443, nil
}

// checkName returns the rule that a host name breaks, or "". host must not be an IP address.
func checkName(host string) string {
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	for _, label := range labels {
		switch {
		// net/http maps it to ASCII, and full-width digits to an address.
		case strings.ContainsFunc(label, func(r rune) bool { return r > '~' }):
			return ruleASCII
		case label == "" || !consistsOf(label, nameChars):
			return ruleHost
		}
	}
	// Browsers' URL standard, inet_aton and many resolvers treat this as an IPv4 address; no
	// Internet name ends like that.
	last := strings.ToLower(labels[len(labels)-1])
	hex, isHex := strings.CutPrefix(last, "0x")
	if consistsOf(last, digits) || isHex && consistsOf(hex, digits+"abcdef") {
		return ruleNumber
	}
	return ""
}

// consistsOf reports whether all characters of s are among chars.
func consistsOf(s, chars string) bool { return strings.Trim(s, chars) == "" }
