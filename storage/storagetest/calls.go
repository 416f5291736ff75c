package storagetest

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A part is one kind of identifier in a call.
type part int

const (
	accountPart part = iota
	keyPart
	campaignPart
	responsePart
	webhookPart
	deliveryPart
	filePart
	eventPart
	memberPart
	parts
)

func (p part) String() string {
	return [...]string{"account", "key", "campaign", "response", "webhook", "delivery", "file", "event", "member"}[p]
}

// A target names one record of each kind. The account also has a record with the key targetKey, and a session and a link
// with the hash keyHash(account).
type target [parts]formsvc.ID

const targetKey = "target"

func (t *target) campaign() formsvc.CampaignKey {
	return formsvc.CampaignKey{AccountID: t[accountPart], ID: t[campaignPart]}
}

func (t *target) response() formsvc.ResponseKey {
	return formsvc.ResponseKey{AccountID: t[accountPart], CampaignID: t[campaignPart], ID: t[responsePart]}
}

func (t *target) record() *formsvc.Response { return recordOf(t.response()) }

func (t *target) hook() formsvc.WebhookKey {
	return formsvc.WebhookKey{AccountID: t[accountPart], ID: t[webhookPart]}
}

// A caller makes calls about a target, which is of an account.
type caller struct {
	*world

	s   Store
	ctx context.Context
	at  *target
	of  formsvc.ID
}

// A call is one method of the contract. It succeeds with an existing target, a live context and an open store.
type call struct {
	name string
	uses []part // the records it looks up; for an unknown one it returns ErrNotFound
	none bool   // for an unknown one it returns nothing instead
	make func(c *caller) (any, error)
}

// do makes the call, and returns the number of items of its result.
func (c *call) do(ctx context.Context, w *world, at *target) (items int, err error) {
	result, err := c.make(w.caller(ctx, at))
	return count(reflect.ValueOf(result)), err
}

// count counts what a result has: elements, and numbers.
func count(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.Slice:
		return v.Len()
	case reflect.Int, reflect.Int64:
		return int(v.Int())
	case reflect.Struct:
		for i := range v.NumField() {
			n += count(v.Field(i))
		}
	}
	return n
}

// calls returns all methods of the contract, those that remove records last.
func calls() []call {
	var list []call
	for i, x := range (&caller{world: new(world), at: new(target)}).writes() {
		list = append(list, call{x.name, x.uses, false, func(c *caller) (any, error) {
			x := c.writes()[i]
			return nil, x.write(x.build())
		}})
	}
	return slices.Concat(list, accountCalls(), responseCalls(), webhookCalls(), queueCalls(), otherCalls())
}

// addTarget adds one record of each kind: a failed delivery with its notice and digest, a due one, and events to read.
// The file belongs to the response.
func (w *world) addTarget() *target {
	w.Helper()
	sc := w.addScene()
	account := sc.account.ID
	_, old := w.addResponse(&sc.campaign)
	w.attend(&sc.hook, nextDay(), delivery.Failed)
	r, e := w.addResponse(&sc.campaign)
	w.feed(formsvc.EventQuery{AccountID: account}, e.ID)
	key, f, entry, record := w.newKey(account), w.newFile(&r), w.newAudit(account), w.newRecord(account, targetKey)
	link, session := w.newLink(account), w.newSession(account)
	link.Hash, session.Hash = keyHash(account), keyHash(account)
	w.must("CreateKey", w.store.CreateKey(w.ctx, key, none))
	w.must("CreateFile", w.createFile(w.ctx, f))
	w.must("CreateComment", w.store.CreateComment(w.ctx, w.newComment(&r), none))
	w.must("CreateSignature", w.createSignature(w.ctx, w.newSignature(&r)))
	w.must("Commit", w.store.Commit(w.ctx, formsvc.Change{Audit: &entry, Idempotency: &record}))
	w.must("CreateLink", w.store.CreateLink(w.ctx, link, none))
	w.must("RedeemLink", w.redeem(w.store, &link, session))
	link.ID = w.nextID()
	w.must("CreateLink", w.store.CreateLink(w.ctx, link, none))
	m := w.addMember(account)
	return &target{
		accountPart: account, keyPart: key.ID, campaignPart: sc.campaign.ID, responsePart: r.ID, webhookPart: sc.hook.ID,
		deliveryPart: formsvc.DeliveryID(e.ID, sc.hook.ID), filePart: f.ID, eventPart: old.ID, memberPart: m.ID,
	}
}

// unless returns err, or nil if it is that expected error.
func unless(expected, err error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// none is a change without anything.
var none formsvc.Change

// The records that calls look up.
var (
	ofAccount  = []part{accountPart}
	ofKey      = []part{accountPart, keyPart}
	ofCampaign = []part{accountPart, campaignPart}
	ofResponse = []part{accountPart, campaignPart, responsePart}
	ofHook     = []part{accountPart, webhookPart}
	ofDelivery = []part{accountPart, deliveryPart}
	ofFile     = []part{accountPart, filePart}
	ofEvent    = []part{accountPart, eventPart}
	ofMember   = []part{accountPart, memberPart}
)

func accountCalls() []call {
	return []call{
		{"Accounts", nil, false, func(c *caller) (any, error) { return c.s.Accounts(c.ctx) }},
		{"Account", ofAccount, false, func(c *caller) (any, error) { return c.s.Account(c.ctx, c.of) }},
		{"AccountByName", nil, false, func(c *caller) (any, error) { return c.s.AccountByName(c.ctx, "account "+string(c.of)) }},
		{"UpdateAccount", ofAccount, false, func(c *caller) (any, error) {
			return c.s.UpdateAccount(c.ctx, c.of, func(a *formsvc.Account) error { a.Contact += "x"; return nil })
		}},
		{"KeyByHash", nil, false, func(c *caller) (any, error) { return c.s.KeyByHash(c.ctx, keyHash(c.at[keyPart])) }},
		{"Keys", ofAccount, true, func(c *caller) (any, error) { return c.s.Keys(c.ctx, c.of) }},
		{"RevokeKey", ofKey, false, func(c *caller) (any, error) { return nil, c.s.RevokeKey(c.ctx, c.of, c.at[keyPart], nextDay(), none) }},
		{"UseKeys", nil, false, func(c *caller) (any, error) {
			return nil, c.s.UseKeys(c.ctx, []formsvc.KeyUse{{AccountID: c.of, ID: c.at[keyPart], At: nextDay()}})
		}},
		{"Campaign", ofCampaign, false, func(c *caller) (any, error) { return c.s.Campaign(c.ctx, c.at.campaign()) }},
		{"CampaignByForm", nil, false, func(c *caller) (any, error) { return c.s.CampaignByForm(c.ctx, tokenOf(c.at[campaignPart])) }},
		{"Campaigns", ofAccount, true, func(c *caller) (any, error) { return c.s.Campaigns(c.ctx, formsvc.CampaignQuery{AccountID: c.of}) }},
		{"Members", ofMember, true, func(c *caller) (any, error) { // "" would mean any
			return c.s.Members(c.ctx, formsvc.MemberQuery{AccountID: cmp.Or(c.of, "none"), ID: cmp.Or(c.at[memberPart], "none")})
		}},
		{"CreateLink", ofAccount, false, func(c *caller) (any, error) { return nil, c.s.CreateLink(c.ctx, c.newLink(c.of), none) }},
		{"RedeemLink", nil, false, func(c *caller) (any, error) {
			return c.s.RedeemLink(c.ctx, keyHash(c.of), func(link *formsvc.Link) (formsvc.Session, formsvc.Change, error) {
				return c.newSession(link.AccountID), none, nil
			})
		}},
		{"Sessions", ofMember, true, func(c *caller) (any, error) {
			return c.s.Sessions(c.ctx, formsvc.MemberKey{AccountID: c.of, ID: c.at[memberPart]})
		}},
		{"UseSession", nil, false, func(c *caller) (any, error) { return nil, c.s.UseSession(c.ctx, keyHash(c.of), nextDay(), nextDay()) }},
		{"SessionByHash", nil, false, func(c *caller) (any, error) { return c.s.SessionByHash(c.ctx, keyHash(c.of)) }},
		{"EndSession", nil, false, func(c *caller) (any, error) { return nil, c.s.EndSession(c.ctx, c.of, keyHash(c.of), none) }},
		{"EndAllSessions", ofAccount, false, func(c *caller) (any, error) { return nil, c.s.EndAllSessions(c.ctx, c.of, none) }},
	}
}

func responseCalls() []call {
	return []call{
		{"ImportResponses", ofCampaign, false, func(c *caller) (any, error) {
			r := c.newResponse(&formsvc.Campaign{AccountID: c.of, ID: c.at[campaignPart]})
			n, err := c.s.ImportResponses(c.ctx, c.at.campaign(), 1, []formsvc.NewResponse{{Response: r}}, 0)
			return n, unless(formsvc.ErrStale, err) // the campaign was updated
		}},
		{"Response", ofResponse, false, func(c *caller) (any, error) { return c.s.Response(c.ctx, c.at.response()) }},
		{"ResponseCounts", ofCampaign, false, func(c *caller) (any, error) { return c.s.ResponseCounts(c.ctx, c.at.campaign()) }},
		{"Taken", ofCampaign, false, func(c *caller) (any, error) { return c.s.Taken(c.ctx, c.at.campaign(), []string{""}) }},
		{"Responses", ofCampaign, false, func(c *caller) (any, error) {
			return c.s.Responses(c.ctx, formsvc.ResponseQuery{AccountID: c.of, CampaignID: c.at[campaignPart]})
		}},
		{"File", ofFile, false, func(c *caller) (any, error) {
			return c.s.File(c.ctx, formsvc.FileKey{AccountID: c.of, ID: c.at[filePart]})
		}},
		{"Files", ofResponse, false, func(c *caller) (any, error) { return c.s.Files(c.ctx, c.at.response(), formsvc.PageQuery{}) }},
		{"AllFiles", nil, false, func(c *caller) (any, error) { return c.s.AllFiles(c.ctx, formsvc.PageQuery{}) }},
		{"UnknownFiles", nil, false, func(c *caller) (any, error) { return c.s.UnknownFiles(c.ctx, []formsvc.ID{c.at[filePart], c.nextID()}) }},
		{"BarFiles", nil, false, func(c *caller) (any, error) { return c.s.BarFiles(c.ctx, []formsvc.ID{c.at[filePart], c.nextID()}) }},
		{"Comments", ofResponse, false, func(c *caller) (any, error) { return c.s.Comments(c.ctx, c.at.response(), formsvc.PageQuery{}) }},
		{"Signatures", ofResponse, false, func(c *caller) (any, error) { return c.s.Signatures(c.ctx, c.at.response(), formsvc.PageQuery{}) }},
		{"SignaturesBy", ofAccount, true, func(c *caller) (any, error) {
			return c.s.SignaturesBy(c.ctx, c.of, "grace@example.com", formsvc.PageQuery{})
		}},
	}
}

func webhookCalls() []call {
	return []call{
		{"Webhook", ofHook, false, func(c *caller) (any, error) { return c.s.Webhook(c.ctx, c.at.hook()) }},
		{"DueSummaries", nil, false, func(c *caller) (any, error) { return c.s.DueSummaries(c.ctx, nextDay(), 10) }},
		{"Webhooks", ofAccount, true, func(c *caller) (any, error) { return c.s.Webhooks(c.ctx, c.of) }},
		{"Events", ofAccount, true, func(c *caller) (any, error) {
			page, err := c.s.Events(c.ctx, formsvc.EventQuery{AccountID: c.of})
			return page.Items, err
		}},
		{"AllEvents", nil, false, func(c *caller) (any, error) {
			page, err := c.s.AllEvents(c.ctx, formsvc.EventQuery{})
			return page.Items, err
		}},
		{"Event", ofEvent, false, func(c *caller) (any, error) { return c.s.Event(c.ctx, c.of, c.at[eventPart]) }},
		{"RecentEvents", ofAccount, true, func(c *caller) (any, error) {
			return c.s.RecentEvents(c.ctx, formsvc.RecentQuery{AccountID: c.of, Limit: 10})
		}},
		{"EventsAbout", ofResponse, false, func(c *caller) (any, error) { return c.s.EventsAbout(c.ctx, c.at.response(), 10) }},
		{"Notices", ofAccount, true, func(c *caller) (any, error) { return c.s.Notices(c.ctx, formsvc.NoticeQuery{AccountID: c.of}) }},
		{"ClaimDigests", nil, false, func(c *caller) (any, error) { return c.s.ClaimDigests(c.ctx, nextDay(), time.Hour, lease, 1) }},
		{"FinishDigest", nil, false, func(c *caller) (any, error) {
			d := formsvc.Digest{AccountID: c.of, WebhookID: c.at[webhookPart], Failures: 1, Lease: 1 << 40}
			return nil, unless(formsvc.ErrStale, c.s.FinishDigest(c.ctx, d, nextDay())) // nobody claimed it
		}},
	}
}

func queueCalls() []call {
	return []call{
		{"QueueStats", nil, false, func(c *caller) (any, error) { return c.s.QueueStats(c.ctx, nextDay(), 100) }},
		{"Waiting", ofHook, true, func(c *caller) (any, error) { return c.s.Waiting(c.ctx, c.at.hook(), 10) }},
		{"Deliveries", ofHook, true, func(c *caller) (any, error) {
			return c.s.Deliveries(c.ctx, formsvc.DeliveryQuery{AccountID: c.of, WebhookID: c.at[webhookPart]})
		}},
		{"Delivery", ofDelivery, false, func(c *caller) (any, error) {
			return c.s.Delivery(c.ctx, formsvc.DeliveryKey{AccountID: c.of, ID: c.at[deliveryPart]})
		}},
		{"Redeliver", ofDelivery, false, func(c *caller) (any, error) {
			return c.s.Redeliver(c.ctx, formsvc.DeliveryKey{AccountID: c.of, ID: c.at[deliveryPart]}, nextDay(), nil)
		}},
		{"RedeliverFailed", ofHook, false, func(c *caller) (any, error) {
			q := formsvc.RedeliverQuery{Key: c.at.hook(), Until: nextDay().Add(time.Hour), At: nextDay(), Limit: 10}
			return c.s.RedeliverFailed(c.ctx, q, nil)
		}},
		{"Ready", nil, false, func(c *caller) (any, error) { return c.s.Ready(c.ctx, nextDay()) }},
		{"Claim", nil, false, func(c *caller) (any, error) {
			shares := []delivery.Share{{Endpoint: string(c.at[webhookPart]), N: 10}}
			return c.s.Claim(c.ctx, delivery.ClaimRequest{Now: nextDay(), Lease: lease, Shares: shares})
		}},
		{"Payloads", nil, false, func(c *caller) (any, error) { return c.s.Payloads(c.ctx, []string{string(c.nextID())}) }},
		{"Finish", nil, false, func(c *caller) (any, error) {
			o := delivery.Outcome{ID: string(c.nextID()), Endpoint: string(c.at[webhookPart]), Lease: 1, Result: delivery.Delivered}
			return c.s.Finish(c.ctx, []delivery.Outcome{o})
		}},
		{"Failures", nil, false, func(c *caller) (any, error) { return c.s.Failures(c.ctx, nextDay(), nextDay().Add(lease), 1) }},
		{"Noted", nil, false, func(c *caller) (any, error) { return nil, c.s.Noted(c.ctx, []string{string(c.nextID())}) }},
		{"Wait", nil, false, func(c *caller) (any, error) { return nil, c.s.Wait(c.ctx, time.Second) }},
	}
}

// otherCalls returns the calls about the journal, quotas and the store itself, and last those that remove records.
func otherCalls() []call {
	return []call{
		{"Recall", ofAccount, false, func(c *caller) (any, error) { return c.s.Recall(c.ctx, c.of, targetKey, start()) }},
		{"Audit", ofAccount, true, func(c *caller) (any, error) { return c.s.Audit(c.ctx, formsvc.AuditQuery{AccountID: c.of}) }},
		{"AddQuota", nil, false, func(c *caller) (any, error) {
			return c.s.AddQuota(c.ctx, []formsvc.QuotaCount{{Subject: c.at[keyPart], Start: start(), N: 1}})
		}},
		{"QuotaUse", nil, false, func(c *caller) (any, error) { return c.s.QuotaUse(c.ctx, c.at[keyPart], time.Time{}) }},
		{"PruneEvents", nil, false, func(c *caller) (any, error) { return c.s.PruneEvents(c.ctx, start().Add(-time.Hour), 10) }},
		{"PruneIdempotency", nil, false, func(c *caller) (any, error) { return c.s.PruneIdempotency(c.ctx, start().Add(-time.Hour), 10) }},
		{"PruneQuota", nil, false, func(c *caller) (any, error) { return c.s.PruneQuota(c.ctx, start().Add(-time.Hour), 10) }},
		{"PruneSessions", nil, false, func(c *caller) (any, error) { return c.s.PruneSessions(c.ctx, start().Add(-time.Hour), 10) }},
		{"Scrub", nil, false, func(c *caller) (any, error) { return nil, c.s.Scrub(c.ctx) }},
		{"Identity", nil, false, func(c *caller) (any, error) { return c.s.Identity(c.ctx) }},
		{"Erase", ofEvent, true, func(c *caller) (any, error) {
			return c.s.Erase(c.ctx, formsvc.EraseQuery{AccountID: c.of, Events: []formsvc.ID{c.at[eventPart]}})
		}},
		{"DeleteCampaign", ofCampaign, false, func(c *caller) (any, error) {
			return nil, unless(formsvc.ErrCampaignNotEmpty, c.s.DeleteCampaign(c.ctx, c.at.campaign(), nil))
		}},
		{"DeleteResponse", ofResponse, false, func(c *caller) (any, error) { return c.s.DeleteResponse(c.ctx, c.at.response(), nil) }},
		{"DeleteWebhook", ofHook, false, func(c *caller) (any, error) { return nil, c.s.DeleteWebhook(c.ctx, c.at.hook(), none) }},
		{"DeleteAccount", ofAccount, false, func(c *caller) (any, error) { return c.s.DeleteAccount(c.ctx, c.of, 10) }},
	}
}
