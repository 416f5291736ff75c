package httpx

import (
	"net/http"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// admit finds out who the request speaks for and whether he may.
func (h *Handler) admit(c *call) error {
	who, err := h.authenticate(c.r)
	if err != nil {
		return err
	}
	if who == nil {
		return formsvc.ErrUnauthenticated
	}
	c.who = who
	if permission := c.route.Permission; permission != "" && !who.May(permission) {
		return &problem{
			status: http.StatusForbidden, code: "permission_denied", permission: permission,
			detail: "The key lacks the permission " + string(permission) + ".",
		}
	}
	return nil
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
