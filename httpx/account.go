package httpx

import (
	"errors"
	"net/http"

	"github.com/formsvc/toolkit/formsvc"
)

// getMe tells whose key it is, what it may do and how often, so that a client can
// try its key without touching anything. It is itself counted.
func (h *Handler) getMe(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	account, err := h.svc.Accounts.Get(c.r.Context(), c.who.AccountID)
	if errors.Is(err, formsvc.ErrNotFound) {
		return formsvc.ErrUnauthenticated // a key without its account opens nothing
	}
	if err != nil {
		return err
	}
	b := append(c.out, `{"account":{"uuid":`...)
	b = appendString(b, string(account.ID))
	b = append(b, `,"name":`...)
	b = appendString(b, account.Name)
	b = append(b, `},"key":`...)
	if c.who.KeyID == "" { // an embedder's own authentication
		b = append(b, `null`...)
	} else {
		b = append(b, `{"uuid":`...)
		b = appendString(b, string(c.who.KeyID))
		b = append(b, `,"name":`...)
		b = appendString(b, c.who.KeyName)
		b = append(b, '}')
	}
	b = append(b, `,"permissions":[`...)
	for i, p := range c.who.Permissions {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, string(p))
	}
	b = appendQuota(append(b, `],"quota":`...), c.quota)
	c.out = append(b, '}')
	return c.send(http.StatusOK, noStore)
}
