package httpx

import (
	"errors"
	"net/http"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/limits"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

type meReply struct {
	Account     named                `json:"account"`
	Key         *named               `json:"key"` // nil if the host application authenticated the request
	Permissions []formsvc.Permission `json:"permissions"`
	Quota       *quotaReply          `json:"quota"` // nil: none
}

type named struct {
	ID   formsvc.ID `json:"uuid"`
	Name string     `json:"name"`
}

type quotaReply struct {
	Limit         int `json:"limit"`
	Remaining     int `json:"remaining"`
	ResetSeconds  int `json:"resetSeconds"`
	WindowSeconds int `json:"windowSeconds"`
}

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
	me := meReply{Account: named{account.ID, account.Name}, Permissions: c.who.Permissions}
	if c.who.KeyID != "" {
		me.Key = &named{c.who.KeyID, c.who.KeyName}
	}
	if q := c.quota; q.Limit > 0 {
		me.Quota = &quotaReply{q.Limit, q.Left, limits.Seconds(q.Reset, 0), int(q.Window / time.Second)}
	}
	c.out = wire.AppendReply(c.out, me)
	return c.send(http.StatusOK, noStore)
}
