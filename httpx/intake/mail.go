package intake

import (
	"context"
	"errors"
	"net/http"

	"github.com/formsvc/toolkit/formsvc"
)

// mail shows the page behind a link in a mail to an owner, on which its recipient agrees to get notices, or ends them. Only a
// POST changes anything: programs that read mails follow links. Mail programs post as RFC 8058 says, without reading the page.
func (v *visit) mail(token string) error {
	return v.lookUp(func(ctx context.Context) error { return v.agree(ctx, token) })
}

func (v *visit) agree(ctx context.Context, token string) error {
	webhooks := v.h.svc.Webhooks
	hook, confirm, err := webhooks.ByMailToken(ctx, token)
	if err != nil {
		return err
	}
	title, err := v.subject(ctx, &hook)
	if err != nil {
		return err
	}
	ask, button, done, change := "mailStop", "mailEnd", "mailEnded", webhooks.Unsubscribe
	if confirm {
		ask, button, done, change = "mailAsk", "mailAgree", "mailAgreed", webhooks.Confirm
	}
	if v.r.Method != http.MethodPost {
		return v.show(http.StatusOK, &page{Title: v.t["mailTitle"], About: v.t.format(ask, title), Button: v.t[button]})
	}
	if _, err := change(ctx, token); err != nil {
		return err
	}
	return v.show(http.StatusOK, &page{Title: v.t["mailTitle"], About: v.t.format(done, title)})
}

// subject returns the title of the form that the mails are about, or the name of the account for all of its forms.
func (v *visit) subject(ctx context.Context, hook *formsvc.Webhook) (string, error) {
	if hook.CampaignID != "" {
		c, err := v.h.svc.Campaigns.Get(ctx, formsvc.CampaignKey{AccountID: hook.AccountID, ID: hook.CampaignID})
		if err == nil || !errors.Is(err, formsvc.ErrNotFound) {
			return c.Title, err
		}
	}
	account, err := v.h.svc.Accounts.Get(ctx, hook.AccountID)
	return account.Name, err
}
