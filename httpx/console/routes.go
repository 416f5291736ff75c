package console

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// routes returns the mux of all pages. Those of open need no session, and those of page the permissions that stand beside them. Templates
// show what leads to a page only to visitors with these ([page.May]).
func (h *Handler) routes() *http.ServeMux {
	mux := http.NewServeMux()
	handle := func(pattern string, enter, serve func(*visit) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			h.serve(w, r, func(v *visit) error {
				if err := enter(v); err != nil {
					return err
				}
				return serve(v)
			})
		})
	}
	open := func(pattern string, serve func(*visit) error) { handle(pattern, (*visit).readForm, serve) }
	page := func(pattern string, serve func(*visit) error, needs []formsvc.Permission) {
		h.needs[pattern] = needs
		handle(pattern, (*visit).enter, serve)
	}
	type all = []formsvc.Permission
	var (
		keys      = all{formsvc.KeysWrite}
		people    = all{formsvc.PeopleWrite}
		hooks     = all{formsvc.WebhooksRead}
		payloads  = all{formsvc.WebhooksRead, formsvc.ResponsesRead}
		resend    = all{formsvc.WebhooksRead, formsvc.WebhooksWrite}
		connect   = all{formsvc.WebhooksRead, formsvc.WebhooksWrite, formsvc.ResponsesRead, formsvc.CampaignsRead}
		campaigns = all{formsvc.CampaignsRead}
		mails     = all{formsvc.CampaignsRead, formsvc.WebhooksRead}
		edit      = all{formsvc.CampaignsRead, formsvc.CampaignsWrite}
		answers   = all{formsvc.CampaignsRead, formsvc.ResponsesRead}
		files     = all{formsvc.CampaignsRead, formsvc.ResponsesRead, formsvc.FilesRead}
		decide    = all{formsvc.CampaignsRead, formsvc.ResponsesRead, formsvc.ResponsesWrite}
		empty     = all{formsvc.CampaignsRead, formsvc.CampaignsWrite, formsvc.ResponsesRead, formsvc.ResponsesWrite}
	)
	open("GET /assets/{name}", (*visit).asset)
	open("POST /zone", (*visit).setZone)
	if h.opts.Authenticate == nil {
		open("GET /sign-in", (*visit).signInPage)
		open("GET /sign-in/{token}", (*visit).signInPage)
		open("POST /sign-in", (*visit).signIn)
		open("POST /sign-in/password", (*visit).signInByPassword)
		open("GET /sign-in/with/{provider}", withProvider((*visit).beginProvider))
		open("GET /sign-in/with/{provider}/callback", withProvider((*visit).finishProvider))
		open("GET /sign-in/with/{provider}/end", withProvider((*visit).endProvider))
		page("POST /sign-out", (*visit).signOut, nil)
		page("GET /you", (*visit).you, nil)
		page("POST /you", (*visit).changeYou, nil)
		page("POST /you/password", (*visit).setPassword, nil)
		page("POST /you/sessions", (*visit).endSession, nil)
		page("GET /people", (*visit).people, people)
		page("POST /people", (*visit).invite, people)
		page("POST /people/{person}", (*visit).changePerson, people)
		page("POST /people/{person}/invite", (*visit).inviteAgain, people)
		page("POST /people/{person}/remove", (*visit).removePerson, people)
	}
	if h.opts.SendLink != nil {
		open("POST /sign-in/mail", (*visit).mailLink)
	}

	page("GET /{$}", (*visit).overview, nil)
	page("GET /keys", (*visit).keys, keys)
	page("POST /keys", (*visit).createKey, keys)
	page("POST /keys/{key}/revoke", (*visit).revokeKey, keys)

	page("GET /webhooks", (*visit).webhooks, hooks)
	page("POST /webhooks", (*visit).createWebhook, connect)
	page("GET /webhooks/new", (*visit).newWebhook, connect)
	page("GET /webhooks/{webhook}", (*visit).webhook, hooks)
	page("POST /webhooks/{webhook}", (*visit).updateWebhook, connect)
	page("GET /webhooks/{webhook}/edit", (*visit).editWebhook, connect)
	page("POST /webhooks/{webhook}/test", (*visit).testWebhook, resend)
	page("POST /webhooks/{webhook}/state", (*visit).switchWebhook, connect)
	page("POST /webhooks/{webhook}/rotate", (*visit).rotateWebhook, resend)
	page("POST /webhooks/{webhook}/delete", (*visit).deleteWebhook, resend)
	page("POST /webhooks/{webhook}/redeliver", (*visit).redeliverFailed, resend)
	page("GET /webhooks/{webhook}/live", (*visit).liveWebhook, hooks)
	page("GET /deliveries/{delivery}", (*visit).delivery, hooks)
	page("GET /deliveries/{delivery}/body", (*visit).deliveryBody, payloads)
	page("POST /deliveries/{delivery}/redeliver", (*visit).redeliver, resend)
	page("GET /failures", (*visit).failures, hooks)
	page("POST /failures", (*visit).redeliverSelected, resend)

	page("GET /campaigns", (*visit).campaigns, campaigns)
	page("POST /campaigns", (*visit).saveCampaign, edit)
	page("GET /campaigns/new", (*visit).newCampaign, edit)
	page("POST /campaigns/new", (*visit).startCampaign, edit)
	page("POST /campaigns/sample", (*visit).sampleCampaign, edit)
	page("GET /campaigns/{campaign}", (*visit).responses, campaigns)
	page("GET /campaigns/{campaign}/live", (*visit).liveCampaign, answers)
	page("GET /campaigns/{campaign}/edit", (*visit).editCampaign, edit)
	page("GET /campaigns/{campaign}/form-file", (*visit).formFile, edit)
	page("POST /campaigns/{campaign}/edit", (*visit).saveCampaign, edit)
	page("GET /campaigns/{campaign}/summary", (*visit).summary, answers)
	page("POST /campaigns/{campaign}/summary", (*visit).countAgain, answers)
	page("GET /campaigns/{campaign}/share", (*visit).share, campaigns)
	page("POST /campaigns/{campaign}/share", (*visit).saveShare, edit)
	page(looksPattern, (*visit).saveLooks, edit)
	page("GET /campaigns/{campaign}/qr.svg", (*visit).qrCode, campaigns)
	page("GET /campaigns/{campaign}/mail", (*visit).mails, mails)
	page("POST /campaigns/{campaign}/mail", (*visit).saveMail, append(edit, mails...))
	page("POST /campaigns/{campaign}/mail/notices", (*visit).addNotice, connect)
	page("POST /campaigns/{campaign}/site", (*visit).allowSite, edit)
	page("POST /campaigns/{campaign}/rotate", (*visit).rotateForm, edit)
	page("POST /campaigns/{campaign}/state", (*visit).switchCampaign, edit)
	page("POST /campaigns/{campaign}/duplicate", (*visit).duplicateCampaign, edit)
	page("POST /campaigns/{campaign}/columns", (*visit).chooseColumns, answers)
	page("POST /campaigns/{campaign}/views", (*visit).saveView, decide)
	page("POST /campaigns/{campaign}/selected", (*visit).changeSelected, decide)
	page("GET /campaigns/{campaign}/delete", (*visit).askDelete, empty)
	page("POST /campaigns/{campaign}/delete", (*visit).deleteCampaign, empty)
	page("GET /campaigns/{campaign}/export/{file}", (*visit).export, answers)
	page("GET /campaigns/{campaign}/responses/{response}", (*visit).response, answers)
	page("POST /campaigns/{campaign}/responses/{response}/status", (*visit).changeStatus, decide)
	page("POST /campaigns/{campaign}/responses/{response}/comments", (*visit).comment, decide)
	page("POST /campaigns/{campaign}/responses/{response}/delete", (*visit).deleteResponse, decide)
	page("GET /files/{file}", (*visit).file, files)
	handle("/", func(*visit) error { return formsvc.ErrNotFound }, nil)
	return mux
}

// permits reports whether the visitor has the permission.
func (v *Visitor) permits(p formsvc.Permission) bool {
	return v.Permissions == nil || slices.Contains(v.Permissions, p)
}

// permitted returns an error unless the visitor has all permissions of the page with that pattern.
func (v *visit) permitted(pattern string) error {
	for _, p := range v.h.needs[pattern] {
		if !v.who.permits(p) {
			return lacking(p)
		}
	}
	return nil
}

// lacking returns the refusal of a page for which the visitor lacks a permission.
func lacking(p formsvc.Permission) error {
	return &refusal{http.StatusForbidden, "You may not do this", "You lack the permission " + string(p) + ". Nothing was changed."}
}

// May reports whether the visitor may use the page with that pattern of [Handler.routes]. There are no pages about people if the host
// application has them.
func (p *page) May(pattern string) (bool, error) {
	if p.visit.h.opts.Authenticate != nil && strings.HasSuffix(pattern, " /people") {
		return false, nil
	}
	if _, ok := p.visit.h.needs[pattern]; !ok {
		return false, errors.New("no page is " + pattern)
	}
	return p.visit.permitted(pattern) == nil, nil
}
