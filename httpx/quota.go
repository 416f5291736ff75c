package httpx

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/limits"
	"github.com/formsvc/toolkit/httpx/internal/people"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

// countedBy names what is counted for the principal.
func (c *call) countedBy() string {
	switch {
	case c.quota.PerAccount:
	case c.who.KeyID != "":
		return `"key"`
	case c.who.UserID != "" || c.who.KeyName != "":
		return `"user"`
	}
	return `"account"`
}

// count counts the request, or returns the problem if it is beyond the rate or the quota.
func (h *Handler) count(c *call) error {
	if h.rates != nil && people.Of(c.r.Context()) == nil {
		if wait, ok := h.rates.Take(string(c.who.Subject()), h.svc.Now()); !ok {
			return &wire.Problem{
				Status: http.StatusTooManyRequests, Code: "rate_limited", RetryAfter: seconds(wait),
				Detail: "The key sends requests too fast. Its limit is " +
					strconv.FormatFloat(float64(h.rates.Rate), 'f', -1, 64) + " a second, and " +
					strconv.Itoa(h.rates.Burst) + " at once.",
			}
		}
	}
	state, err := h.svc.Quotas.Take(c.ctx(), c.who)
	c.quota, c.counted = state, err == nil && state.Limit > 0
	if errors.Is(err, formsvc.ErrQuota) {
		return quotaExceeded(&state, err)
	}
	return err
}

// uncount takes the count of a request back.
func (h *Handler) uncount(c *call) {
	if c.counted {
		c.quota, c.counted = h.svc.Quotas.Give(c.quota), false
	}
}

// showQuota sets the headers with the remaining quota, also those of draft-ietf-httpapi-ratelimit-headers-10.
func (c *call) showQuota() {
	state := &c.quota
	if state.Limit == 0 {
		return
	}
	counted := c.countedBy()
	limit, left, reset := strconv.Itoa(state.Limit), strconv.Itoa(state.Left), strconv.Itoa(limits.Seconds(state.Reset, 0))
	c.setHeader("X-Ratelimit-Limit", limit)
	c.setHeader("Ratelimit-Policy", counted+";q="+limit+";w="+seconds(state.Window))
	c.setHeader("Ratelimit", counted+";r="+left+";t="+reset)
	c.setHeader("X-Ratelimit-Remaining", left)
	c.setHeader("X-Ratelimit-Reset", reset)
}

func quotaExceeded(over *formsvc.QuotaState, cause error) *wire.Problem {
	wait := seconds(over.Reset)
	return &wire.Problem{
		Status: http.StatusTooManyRequests, Code: "quota_exceeded", RetryAfter: wait, Cause: cause,
		Detail: "The quota of " + strconv.Itoa(over.Limit) + " requests in " + strconv.Itoa(limits.Seconds(over.Window, 1)) +
			" seconds is used up. There are more in " + wait + " seconds.",
	}
}

// checkRate returns the limiter for [Options.Rate], or nil if there is no limit.
func (o *Options) checkRate() (*limits.Limiter, error) {
	switch {
	case !(o.Rate <= MaxRate): // true for NaN too
		return nil, errors.New("httpx: options: Rate must be at most " + strconv.Itoa(MaxRate))
	case o.Rate <= 0:
		return nil, nil //nolint:nilnil // no limit
	}
	return limits.NewLimiter(rate.Limit(o.Rate), limits.Seconds(time.Duration(o.Rate*float64(time.Second)), 1)), nil
}

// seconds returns a wait for Retry-After: in whole seconds, rounded up, and at least one.
func seconds(wait time.Duration) string { return strconv.Itoa(limits.Seconds(wait, 1)) }

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
