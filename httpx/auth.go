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

// How often authentication may fail from one address, an IPv6 network of 64 bits
// being one. A request with a good key is not refused for that, however many
// others failed from where it comes: who guesses keys must not lock out who has
// one. So whether a key is good is looked up even when failures are refused; only
// one whose checksum fits costs a query. Of addresses the last 5,000 with a failure
// are remembered at least, and 10,000 at most.
const (
	failureBurst = 120
	failureEvery = time.Second
)

func newFailures() *limiter { return newLimiter(rate.Every(failureEvery), failureBurst) }

// admit finds out who the request speaks for and whether he may. From where its key
// is found to be good every request is counted, whatever becomes of it.
func (h *Handler) admit(c *call) error {
	who, err := h.authenticated(c.r)
	if errors.Is(err, formsvc.ErrUnauthenticated) {
		return h.failed(c, err)
	}
	if err != nil {
		return err
	}
	c.who = who
	if err := h.count(c); err != nil {
		return err
	}
	if permission := c.route.Permission; permission != "" && !who.May(permission) {
		return &problem{
			status: http.StatusForbidden, code: "permission_denied", permission: permission,
			detail: "The key lacks the permission " + string(permission) + ".",
		}
	}
	return nil
}

// authenticated returns who the request speaks for: who the embedding program says, or
// the key.
func (h *Handler) authenticated(r *http.Request) (*formsvc.Principal, error) {
	if h.authenticate != nil {
		who, err := h.authenticate(r)
		if err == nil && who != nil || err != nil && !errors.Is(err, formsvc.ErrUnauthenticated) {
			return who, err
		}
	}
	return h.bearer(r)
}

// failed returns how a request is answered whose authentication failed.
func (h *Handler) failed(c *call, err error) error {
	wait, ok := h.failures.take(network(h.clientAddress(c.r)), h.now())
	if ok {
		return err
	}
	return &problem{
		status: http.StatusTooManyRequests, code: "too_many_failures", retryAfter: seconds(wait), cause: err,
		detail: "Too many requests without a valid key came from this address. A valid key is accepted all the time.",
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

// network returns whom an address counts for: itself, or its network where a client
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

// bearer authenticates by the API key in the one Authorization header. Two
// headers could mean two things to us and to a proxy, so they are refused.
func (h *Handler) bearer(r *http.Request) (*formsvc.Principal, error) {
	const scheme = "bearer "
	values := r.Header["Authorization"]
	if len(values) != 1 || len(values[0]) <= len(scheme) || !strings.EqualFold(values[0][:len(scheme)], scheme) {
		return nil, formsvc.ErrUnauthenticated
	}
	return h.svc.Keys.Authenticate(r.Context(), values[0][len(scheme):])
}
