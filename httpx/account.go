package httpx

import (
	"errors"
	"net/http"

	"github.com/formsvc/toolkit/formsvc"
)

// getMe returns the account, permissions and quota of the key, so that a client can test its key without side effects.
// The request counts for the quota.
func (h *Handler) getMe(c *call) error {
	account, err := h.svc.Accounts.Get(c.ctx(), c.who.AccountID)
	if errors.Is(err, formsvc.ErrNotFound) {
		return formsvc.ErrUnauthenticated // a key without its account grants nothing
	}
	if err != nil {
		return err
	}
	b := append(c.out, `{"account":{"uuid":`...)
	b = appendString(b, string(account.ID))
	b = append(b, `,"name":`...)
	b = appendString(b, account.Name)
	b = append(b, `},"key":`...)
	if c.who.KeyID == "" { // authentication by the host application
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
