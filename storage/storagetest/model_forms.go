package storagetest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// actions returns the steps of a history.
func (m *model) actions(extra func(*model)) map[string]func(*rapid.T) {
	all := make(map[string]func(*rapid.T))
	steps := map[string]func(){
		"account": m.updateAccount, "add key": m.addKey, "revoke key": m.revokeKey, "use keys": m.useKeys,
		"add campaign": m.addCampaign, "update campaign": m.updateCampaign, "delete campaign": m.deleteCampaign, "list campaigns": m.listCampaigns,
		"add response": m.addResponse, "add another response": m.addResponse, "update response": m.updateResponse,
		"list responses": m.listResponses, "list more responses": m.listResponses, "delete response": m.deleteResponse,
		"add file": m.addFile, "list files": m.listFiles, "bar files": m.barFiles,
		"add comment": m.addComment, "add signature": m.addSignature, "list reviews": m.listReviews,
		"add webhook": m.addWebhook, "update webhook": m.updateWebhook, "delete webhook": m.deleteWebhook,

		"claim": m.claimSome, "claim more": m.claimSome, "claim even more": m.claimSome,
		"finish": m.finish, "finish more": m.finish, "finish even more": m.finish, "wait": m.pause,
		"redeliver": m.redeliver, "redeliver failed": m.redeliverFailed, "test": m.addTest, "list deliveries": m.listDeliveries,
		"failures": func() { m.failures(m.number("limit", 0, 3)) }, "noted": m.noted, "list notices": m.listNotices,
		"digest": func() { m.digest(100, time.Hour) }, "finish digest": m.finishDigest,

		"feed": m.feed, "recent": m.recent, "about": m.about,
		"note": m.note, "recall": m.recall, "list audit": m.listAudit, "add quota": m.addQuota,
		"add link": m.addLink, "redeem": m.redeemSome, "end sessions": m.endSessions,
		"add member": m.addMember, "update member": m.updateMember, "list members": m.listMembers, "prune": m.prune, "erase": m.erase,
	}
	if extra != nil {
		steps["extra"] = func() { extra(m) }
	}
	for name, do := range steps {
		all[name] = func(t *rapid.T) {
			m.T = t
			do()
		}
	}
	return all
}

func (m *model) pause() { m.now = m.now.Add(oneOf(m, "pause", time.Minute, time.Second, 2*time.Hour)) }

func (m *model) updateAccount() {
	id, contact := m.owner(m.accounts[0]), oneOf(m, "contact", "", "ada@example.com")
	name := oneOf(m, "name", "name of ", "account ") + string(oneOf(m, "whose", m.accounts...))
	edit := decide(m, none, func(a *formsvc.Account) { a.Contact, a.Name = contact, name })
	m.do("UpdateAccount", func(s Store, _ int) (any, error) {
		return s.UpdateAccount(m.ctx, id, func(a *formsvc.Account) error {
			return errorOf(edit(a))
		})
	})
	m.do("AccountByName", func(s Store, _ int) (any, error) { return s.AccountByName(m.ctx, name) })
}

func (m *model) addKey() {
	k := m.newKey(m.owner(m.accounts[0]))
	if m.chance("expires", 2) {
		k.ExpiresAt = m.tick().Add(time.Minute)
	}
	if len(m.keys) > 0 && m.chance("taken", 10) {
		k.Hash, k.AccountID = one(m, "key", m.keys).Hash, m.accounts[0]
	}
	m.keys = append(m.keys, k)
	c := m.change(formsvc.ResponseKey{AccountID: k.AccountID, ID: m.nextID()})
	c.Limit = oneOf(m, "limit", 0, 1, 2, 3)
	m.do("CreateKey", func(s Store, _ int) (any, error) { return nil, s.CreateKey(m.ctx, k, c) })
}

func (m *model) revokeKey() {
	if len(m.keys) == 0 {
		return
	}
	k := one(m, "key", m.keys)
	account := m.owner(k.AccountID)
	c, at := m.change(formsvc.ResponseKey{AccountID: account, ID: k.ID}), m.tick()
	m.do("RevokeKey", func(s Store, _ int) (any, error) { return nil, s.RevokeKey(m.ctx, account, k.ID, at, c) })
}

func (m *model) useKeys() {
	var uses []formsvc.KeyUse
	for range m.number("uses", 0, min(len(m.keys), 3)) {
		k := one(m, "key", m.keys)
		at := m.tick().Add(oneOf(m, "when", 0, -time.Minute))
		uses = append(uses, formsvc.KeyUse{AccountID: m.owner(k.AccountID), ID: k.ID, At: at})
	}
	m.do("UseKeys", func(s Store, _ int) (any, error) { return nil, s.UseKeys(m.ctx, uses) })
}

func (m *model) input() formsvc.CampaignInput {
	in := formsvc.CampaignInput{
		Title: oneOf(m, "title", "Town hall", "ÉTÉ 100%", "été_2", `a\b`), Status: oneOf(m, "status", formsvc.CampaignOpen, formsvc.CampaignClosed),
		Description: strings.Repeat("d", oneOf(m, "size", 0, 900)), EmailOptional: m.chance("optional", 2), RequireName: m.chance("name", 3), Workflow: oneOf(m, "workflow", "", "grants"),
	}
	if m.chance("full", 3) {
		full := m.newCampaign("")
		in.OpensAt, in.ClosesAt, in.Metadata, in.Modules, in.Form = full.CreatedAt, full.ClosesAt, full.Metadata, full.Modules, full.Form
	}
	return in
}

func (m *model) addCampaign() {
	c := m.newCampaign(m.owner(m.accounts[0]))
	c.CampaignInput = m.input()
	if m.chance("taken", 20) {
		taken := one(m, "campaign", m.campaigns)
		c.ID, c.AccountID = taken.ID, taken.AccountID
	}
	if m.chance("other token", 3) {
		c.FormToken = m.token()
	}
	change := m.change(formsvc.ResponseKey{AccountID: c.AccountID, CampaignID: c.ID, ID: m.nextID()})
	change.Limit = oneOf(m, "limit", 0, 0, 2, 3)
	m.campaigns = append(m.campaigns, c.Key())
	m.do("CreateCampaign", func(s Store, _ int) (any, error) { return nil, s.CreateCampaign(m.ctx, c, change) })
}

// token returns a form token that may be taken, or none.
func (m *model) token() string {
	return oneOf(m, "token", "", tokenOf(one(m, "campaign", m.campaigns).ID))
}

func (m *model) updateCampaign() {
	key := one(m, "campaign", m.campaigns)
	key.AccountID = m.owner(key.AccountID)
	in, at, by, token := m.input(), m.tick(), int64(oneOf(m, "version", 1, 0)), m.token()
	change := m.change(formsvc.ResponseKey{AccountID: key.AccountID, CampaignID: key.ID, ID: m.nextID()})
	edit := decide(m, change, func(c *formsvc.Campaign) {
		c.CampaignInput, c.UpdatedAt, c.FormToken = in, at, token
		c.Views = append(c.Views, formsvc.View{Name: "at", Query: at.String()})[len(c.Views)/2:]
		c.Version += by
	})
	m.do("UpdateCampaign", func(s Store, _ int) (any, error) { return s.UpdateCampaign(m.ctx, key, edit) })
	m.do("Campaign", func(s Store, _ int) (any, error) { return s.Campaign(m.ctx, key) })
}

func (m *model) deleteCampaign() {
	key := one(m, "campaign", m.campaigns)
	key.AccountID = m.owner(key.AccountID)
	edit := decide[*formsvc.Campaign](m, m.change(formsvc.ResponseKey{AccountID: key.AccountID, CampaignID: key.ID, ID: m.nextID()}), nil)
	m.do("DeleteCampaign", func(s Store, _ int) (any, error) { return nil, s.DeleteCampaign(m.ctx, key, edit) })
	m.do("Campaign", func(s Store, _ int) (any, error) { return s.Campaign(m.ctx, key) })
}

func (m *model) listCampaigns() {
	q := formsvc.CampaignQuery{AccountID: m.owner(m.accounts[0]), Page: m.page(mapped(m.campaigns, campaignID)...)}
	q.Search = oneOf(m, "search", "", "hall", "été", "%", "_", `\`, "É")
	token := m.token()
	m.do("CampaignByForm", func(s Store, _ int) (any, error) { return s.CampaignByForm(m.ctx, token) })
	m.do("Campaigns", func(s Store, _ int) (any, error) { return s.Campaigns(m.ctx, q) })
}

func addresses() []string {
	return []string{"ada@example.com", "ADA@example.com", "éve@example.com", "ÉVE@Example.com"}
}

func (m *model) user() formsvc.User {
	return formsvc.User{Email: oneOf(m, "email", append(addresses(), "")...), FirstName: "Ada", LastName: oneOf(m, "name", "", "L'ö")}
}

// metadata returns none, or up to two names that a query could take for more than text.
func (m *model) metadata() formsvc.Metadata {
	values := make(map[string]string)
	for range m.number("names", 0, 2) {
		values[oneOf(m, "name", "a.b", `a"b`, "$", "0")] = oneOf(m, "value", "", "it's")
	}
	return formsvc.NewMetadata(values)
}

func (m *model) addResponse() {
	c := m.oneCampaign()
	c.AccountID = m.owner(c.AccountID)
	r := m.newResponse(&formsvc.Campaign{ID: c.ID, AccountID: c.AccountID})
	r.Status, r.Held, r.User = oneOf(m, "status", "pending", "done"), oneOf(m, "held", formsvc.NotHeld, formsvc.NotHeld, formsvc.HeldTrap), m.user()
	r.Answers = formsvc.NewAnswers(formsvc.Answer{Name: "q", Value: []string{strings.Repeat("y", oneOf(m, "size", 1, 900))}})
	r.Metadata = m.metadata()
	if m.chance("taken", 12) {
		r.Reference = one(m, "reference", m.references)
	}
	if taken := one(m, "response", m.responses); m.chance("taken ID", 8) && taken.CampaignID == c.ID && !m.gone[taken.ID] {
		r.ID, r.CreatedAt = taken.ID, m.start
	}
	key := r.Key()
	version := int64(1)
	if now, err := m.stores[oracle].Campaign(m.ctx, c); err == nil {
		version = now.Version
	}
	version += int64(oneOf(m, "version", 0, 0, 0, 0, 0, 0, 1, -1))
	change := m.change(key)
	if change.Idempotency != nil {
		change.Idempotency = m.newReply(&r, change.Idempotency.Key)
	}
	change.Limit = oneOf(m, "limit", 0, 0, 0, 3)
	m.responses, m.references = append(m.responses, key), append(m.references, r.Reference)
	m.do("CreateResponse", func(s Store, _ int) (any, error) { return nil, s.CreateResponse(m.ctx, r, version, change) })
}

func (m *model) updateResponse() {
	key := m.response()
	user, status, at, by := m.user(), oneOf(m, "status", "done", "pending"), m.tick(), int64(oneOf(m, "version", 1, 1, 0))
	held, metadata := oneOf(m, "held", formsvc.HeldJudged, formsvc.NotHeld), m.metadata()
	edit := decide(m, m.change(key), func(r *formsvc.Response) {
		r.User, r.Status, r.Held, r.UpdatedAt, r.CompletedAt = user, status, held, at, time.Time{}
		r.Version += by
		if status == "done" {
			r.CompletedAt, r.Answers, r.Metadata = at, formsvc.NewAnswers(), metadata
		}
	})
	m.do("UpdateResponse", func(s Store, _ int) (any, error) { return s.UpdateResponse(m.ctx, key, edit) })
	changed := formsvc.ResponseQuery{AccountID: key.AccountID, CampaignID: key.CampaignID}
	changed.Filter.UpdatedAfter = at.Add(-time.Microsecond)
	m.do("Responses", func(s Store, _ int) (any, error) { return s.Responses(m.ctx, changed) })
	m.do("ResponseCounts", func(s Store, _ int) (any, error) {
		return s.ResponseCounts(m.ctx, formsvc.CampaignKey{AccountID: key.AccountID, ID: key.CampaignID})
	})
}

func (m *model) listResponses() {
	c := m.oneCampaign()
	page := m.page(mapped(m.responses, responseID)...)
	q := formsvc.ResponseQuery{AccountID: m.owner(c.AccountID), CampaignID: c.ID, Page: page, NoTotal: m.chance("no total", 2)}
	f := &q.Filter
	for range m.number("filters", 0, 2) {
		switch m.number("filter", 0, 8) {
		case 0:
			f.Status = oneOf(m, "status", []string{"done"}, []string{"pending", "done"}, []string{"none", "done"}, []string{"none"})
		case 1, 2:
			f.Email, f.AnyCase = oneOf(m, "email", addresses()...), m.chance("any case", 2)
		case 3:
			f.Reference = one(m, "reference", m.references)
		case 4:
			f.CreatedAfter = m.past()
		case 5:
			f.CreatedBefore = m.past()
		case 6:
			f.UpdatedAfter = m.past()
		case 7:
			f.NotStatus = oneOf(m, "not status", "pending", "done", "none")
		case 8:
			f.Metadata = m.metadata().Map()
		}
	}
	m.do("Responses", func(s Store, _ int) (any, error) { return s.Responses(m.ctx, q) })
}

// past returns a time of the history: often that of an event.
func (m *model) past() time.Time {
	if len(m.events) > 0 && m.chance("of an event", 2) {
		return one(m, "event", m.events).CreatedAt.Truncate(time.Microsecond)
	}
	return m.start.Add(time.Duration(m.number("part", 0, 10)) * m.now.Sub(m.start) / 10)
}

func (m *model) deleteResponse() {
	key := m.response()
	edit := decide[*formsvc.Response](m, m.change(key), nil)
	if m.chance("nil", 3) {
		edit = nil
	}
	m.do("DeleteResponse", func(s Store, _ int) (any, error) { return s.DeleteResponse(m.ctx, key, edit) })
	m.gone[key.ID] = m.gone[key.ID] || m.err == nil
}

func (m *model) addFile() {
	r := m.response()
	f := m.newFile(recordOf(r))
	if len(m.files) > 0 && m.chance("taken", 8) {
		f.ID = one(m, "file", m.files).ID
	}
	m.files = append(m.files, formsvc.FileKey{AccountID: f.AccountID, ID: f.ID})
	change := m.change(r)
	change.Limit = oneOf(m, "limit", 0, 0, 4, 5, 10)
	edit := decide(m, change, func(r *formsvc.Response) { r.Status, r.Version = "spoiled", 99 })
	m.do("CreateFile", func(s Store, _ int) (any, error) { return nil, s.CreateFile(m.ctx, f, edit) })
	key := formsvc.FileKey{AccountID: m.owner(f.AccountID), ID: f.ID}
	m.do("File", func(s Store, _ int) (any, error) { return s.File(m.ctx, key) })
}

func (m *model) fileIDs() []formsvc.ID {
	return append([]formsvc.ID{"", "nope", formsvc.FloorID(m.start)}, mapped(m.files, fileID)...)
}

func (m *model) listFiles() {
	r, ids := m.response(), m.fileIDs()
	page := m.page(ids[2:]...)
	page.MaxBytes = 0
	m.do("Files", func(s Store, _ int) (any, error) { return s.Files(m.ctx, r, page) })
	every := formsvc.PageQuery{Limit: page.Limit, Ascending: true, After: formsvc.FloorID(m.start)}
	m.do("AllFiles", func(s Store, _ int) (any, error) { return s.AllFiles(m.ctx, every) })
	m.do("UnknownFiles", func(s Store, _ int) (any, error) { return s.UnknownFiles(m.ctx, ids) })
}

func (m *model) barFiles() {
	ids := []formsvc.ID{one(m, "file", m.fileIDs()), m.nextID(), m.nextID()}
	m.files = append(m.files, formsvc.FileKey{AccountID: m.accounts[0], ID: ids[1]})
	m.do("BarFiles", func(s Store, _ int) (any, error) { return s.BarFiles(m.ctx, ids) })
}

func (m *model) addComment() {
	r := m.response()
	c := m.newComment(recordOf(r))
	c.Body = strings.Repeat("b", oneOf(m, "size", 1, 900))
	if len(m.comments) > 0 && m.chance("taken", 12) {
		c.ID = one(m, "comment", m.comments)
	}
	m.comments = append(m.comments, c.ID)
	change := m.change(r)
	m.do("CreateComment", func(s Store, _ int) (any, error) { return nil, s.CreateComment(m.ctx, c, change) })
}

func (m *model) addSignature() {
	r := m.response()
	sig := m.newSignature(recordOf(r))
	if sig.Signer = m.user(); m.chance("of a file", 3) {
		sig.FileID = m.nextID()
	}
	if len(m.signatures) > 0 && m.chance("taken", 12) {
		sig.ID = one(m, "signature", m.signatures)
	}
	m.signatures = append(m.signatures, sig.ID)
	edit := decide(m, m.change(r), func(r *formsvc.Response) { r.Status, r.Version = "spoiled", 99 })
	m.do("CreateSignature", func(s Store, _ int) (any, error) {
		return s.CreateSignature(m.ctx, sig, func(r *formsvc.Response, sig *formsvc.Signature) (formsvc.Change, error) {
			sig.DocumentSHA256, sig.Provider = sha256.Sum256([]byte(fmt.Sprint(r.Version, r.Status))), "spoiled"
			return edit(r)
		})
	})
}

func (m *model) listReviews() {
	r := m.response()
	page := m.page(m.comments...)
	m.do("Comments", func(s Store, _ int) (any, error) { return s.Comments(m.ctx, r, page) })
	page = m.page(m.signatures...)
	m.do("Signatures", func(s Store, _ int) (any, error) { return s.Signatures(m.ctx, r, page) })
	email := oneOf(m, "email", addresses()...)
	m.do("SignaturesBy", func(s Store, _ int) (any, error) { return s.SignaturesBy(m.ctx, r.AccountID, email, page) })
}

func (m *model) webhook(w *formsvc.Webhook) {
	w.URL = oneOf(m, "url", "https://example.com/a", "http://user:pass@[::1]:8080/b?c#d")
	types := webhook.EventTypes()
	w.Events = oneOf(m, "events", types, types[:1], types[1:2], types[:2])
	w.CampaignID = ""
	if m.chance("of a campaign", 3) {
		w.CampaignID = one(m, "campaign", m.campaigns).ID
	}
	w.Secret, w.UpdatedAt = "secret of "+string(w.ID), m.tick()
	if m.chance("mail", 3) {
		w.URL, w.Mail.ConfirmedAt, w.Mail.ReplyTo = "mailto:ada@example.com", oneOf(m, "confirmed", m.now, time.Time{}), m.chance("reply to", 2)
		w.Mail.Daily, w.Mail.NextAt = m.chance("daily", 2), oneOf(m, "next", m.now, m.now.Add(time.Hour), time.Time{})
	}
	if w.ToSubmitters() {
		w.URL, w.Events = "mailto:", types[:1]
	}
	if m.chance("full", 3) {
		w.Previous, w.PreviousUntil = "previous", m.now.Add(time.Hour)
		w.Headers = []formsvc.Header{{Name: "X-B", Value: "1"}, {Name: "X-A", Value: "2"}, {Name: "X-A", Value: "3"}}
	}
}

func (m *model) addWebhook() {
	w := m.newWebhook(m.owner(m.accounts[0]))
	once := formsvc.WebhookKey{AccountID: w.AccountID, ID: w.AccountID}
	if slices.Contains(m.accounts, w.AccountID) && !slices.Contains(m.hooks, once) && m.chance("to submitters", 4) {
		w.ID = w.AccountID
	}
	m.webhook(&w)
	limit := oneOf(m, "limit", 10, 10, 2)
	change := m.change(formsvc.ResponseKey{AccountID: w.AccountID, CampaignID: w.CampaignID, ID: m.nextID()})
	m.hooks = append(m.hooks, formsvc.WebhookKey{AccountID: w.AccountID, ID: w.ID})
	type result struct {
		Decided, Stored   formsvc.Webhook
		DecidedBy, Really bool
	}
	edit := decide[*result](m, change, nil)
	m.do("CreateWebhook", func(s Store, _ int) (any, error) {
		var r result
		var err error
		r.Stored, r.Really, err = s.CreateWebhook(m.ctx, w, limit, func(stored *formsvc.Webhook, created bool) (formsvc.Change, error) {
			r.Decided, r.DecidedBy = *stored, created
			return edit(&r)
		})
		return r, err
	})
}

func (m *model) updateWebhook() {
	key := m.hook()
	as, by := formsvc.Webhook{ID: key.ID, AccountID: key.AccountID, Disabled: m.chance("disabled", 4)}, int64(oneOf(m, "version", 1, 1, 0))
	m.webhook(&as)
	change := m.change(formsvc.ResponseKey{AccountID: key.AccountID, ID: m.nextID()})
	edit := decide(m, change, func(w *formsvc.Webhook) {
		as.AccountID, as.CreatedAt, as.Version = w.AccountID, w.CreatedAt, w.Version+by
		*w = as
	})
	m.do("UpdateWebhook", func(s Store, _ int) (any, error) { return s.UpdateWebhook(m.ctx, key, edit) })
	m.do("Webhook", func(s Store, _ int) (any, error) { return s.Webhook(m.ctx, key) })
	limit := m.number("limit", 0, 2)
	m.do("DueSummaries", func(s Store, _ int) (any, error) { return s.DueSummaries(m.ctx, m.now, limit) })
}

func (m *model) deleteWebhook() {
	key := m.hook()
	change := m.change(formsvc.ResponseKey{AccountID: key.AccountID, ID: key.ID})
	m.do("DeleteWebhook", func(s Store, _ int) (any, error) { return nil, s.DeleteWebhook(m.ctx, key, change) })
	if m.err == nil { // whether what is under way can be finished isn't specified
		m.claims = slices.DeleteFunc(m.claims, func(c held[delivery.Claim]) bool { return c.of.Endpoint == string(key.ID) })
	}
}
