package httpx

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/formsvc/toolkit/formsvc"
)

// How often authentication may fail for one address; for IPv6, for one /64 network. A request with a valid key always
// passes, so that failures from a shared address can't lock out the clients with keys. So the key is looked up even
// when failures are limited, but only a key whose checksum fits costs a query. At least the last 5,000 addresses with
// failures are remembered, and at most 10,000.
const (
	failureBurst = 120
	failureEvery = time.Second
)

func newFailures() *limiter { return newLimiter(rate.Every(failureEvery), failureBurst) }

// needs returns an error unless the principal has the permission; "" is no permission.
func (c *call) needs(permission formsvc.Permission) error {
	if permission == "" || c.who.May(permission) {
		return nil
	}
	return &problem{
		status: http.StatusForbidden, code: "permission_denied", permission: permission,
		detail: "The key lacks the permission " + string(permission) + ".",
	}
}

// principal returns whom the request acts for: the principal of the host application, or that of the key. Look-ups have slots of their
// own, shared by the accounts whose keys are known, and by the addresses of other keys: they wait for the store, and anyone can ask.
func (h *Handler) principal(c *call) (*formsvc.Principal, error) {
	key := bearer(c.r.Header)
	account, known := h.svc.Keys.Known(key)
	tenant := string(account)
	if !known {
		tenant = network(h.clientAddress(c.r))
	}
	slot, err := h.lookups.acquire(c.r.Context(), tenant)
	if err != nil {
		return nil, h.overloaded(c, err)
	}
	defer slot.release()
	if h.authenticate != nil {
		who, err := h.authenticate(c.r)
		if err == nil && who != nil || err != nil && !errors.Is(err, formsvc.ErrUnauthenticated) {
			return who, err
		}
	}
	return h.svc.Keys.Authenticate(c.ctx(), key)
}

// failed returns the problem for a request whose authentication failed.
func (h *Handler) failed(c *call, err error) error {
	wait, ok := h.failures.take(network(h.clientAddress(c.r)), h.now())
	if ok {
		return err
	}
	return &problem{
		status: http.StatusTooManyRequests, code: "too_many_failures", retryAfter: seconds(wait), cause: err,
		detail: "Too many requests without a valid key came from this address. A valid key is always accepted.",
	}
}

// remoteHost is the default of [Options.ClientAddress].
func remoteHost(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// network returns the key under which failures of an address are counted: the address, or its network where one client
// commonly has all of it.
func network(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return address[:min(len(address), 64)]
	}
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return a.String()
	}
	return netip.PrefixFrom(a, 64).Masked().String()
}

// bearer returns the API key in the only Authorization header, or "". Two headers are refused, since a proxy might read
// another one than we do.
func bearer(header http.Header) string {
	const scheme = "bearer "
	values := header["Authorization"]
	if len(values) != 1 || len(values[0]) <= len(scheme) || !strings.EqualFold(values[0][:len(scheme)], scheme) {
		return ""
	}
	return values[0][len(scheme):]
}
