package httpx

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/httpx/internal/limits"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

// TrustedProxies returns a function for [Options.ClientAddress], and for logs. It finds the client's address behind proxies in the
// given ranges, and is safe for concurrent use:
//
//	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/28")}
//	httpx.New(svc, &httpx.Options{ClientAddress: httpx.TrustedProxies(proxies)})
//
// If RemoteAddr is in a range, the function reads X-Forwarded-For from its end, where the nearest proxy added the address that it
// saw. The first address in no range is the client, which may have written the entries before it. If an entry is no address, the
// result is the proxy that passed it on. The header Forwarded (RFC 7239) is ignored, since proxies that set one of the two pass
// the other on. A RemoteAddr without an address, as of a Unix socket, is returned unchanged.
func TrustedProxies(ranges []netip.Prefix) func(*http.Request) string {
	trusted := make([]netip.Prefix, 0, len(ranges))
	for _, p := range ranges {
		if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
		}
		trusted = append(trusted, p)
	}
	return func(r *http.Request) string {
		hop, ok := parseHop(r.RemoteAddr)
		if !ok {
			return limits.RemoteHost(r)
		}
		isTrusted := func(p netip.Prefix) bool { return p.Contains(hop) }
		for list := strings.Join(r.Header["X-Forwarded-For"], ","); list != "" && slices.ContainsFunc(trusted, isTrusted); {
			i := strings.LastIndexByte(list, ',')
			entry := strings.Trim(list[i+1:], " \t")
			if list = list[:max(i, 0)]; entry == "" { // RFC 9110 §5.6.1 allows empty elements
				continue
			}
			next, ok := parseHop(entry)
			if !ok {
				break
			}
			hop = next
		}
		return hop.String()
	}
}

// parseHop reads an address, with or without a port.
func parseHop(s string) (a netip.Addr, ok bool) {
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	if err != nil {
		withPort, _ := netip.ParseAddrPort(s) // the zero value if it is none
		a = withPort.Addr()
	}
	return a.Unmap().WithZone(""), a.IsValid()
}

// failed returns the problem for a request whose authentication failed. A request with a valid key always passes, so that failures from a
// shared address can't lock out the clients with keys. So the key is looked up even when failures are limited, but only a key whose checksum
// fits costs a query.
func (h *Handler) failed(c *call, err error) error {
	wait, ok := h.failures.Take(limits.Network(h.clientAddress(c.r)), h.svc.Now())
	if ok {
		return err
	}
	return &wire.Problem{
		Status: http.StatusTooManyRequests, Code: "too_many_failures", RetryAfter: seconds(wait), Cause: err,
		Detail: "Too many requests without a valid key came from this address. A valid key is always accepted.",
	}
}
