package storagetest

import (
	"errors"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// none is a change without anything.
var none formsvc.Change

// accountCalls returns the calls about accounts, keys and campaigns.
func accountCalls() []call {
	return []call{
		{"CreateAccount", nil, false, func(c *caller) (any, error) {
			a := c.w.newAccount()
			return nil, c.s.CreateAccount(c.ctx, a, []formsvc.Key{c.w.newKey(a.ID)}, none)
		}},
		{"Accounts", nil, false, func(c *caller) (any, error) { return c.s.Accounts(c.ctx) }},
		{"Account", ofAccount, false, func(c *caller) (any, error) { return c.s.Account(c.ctx, c.at[accountPart]) }},
		{"AccountByName", nil, false, func(c *caller) (any, error) { return c.s.AccountByName(c.ctx, "account "+string(c.at[accountPart])) }},
		{"UpdateAccount", ofAccount, false, func(c *caller) (any, error) {
			return c.s.UpdateAccount(c.ctx, c.at[accountPart], func(a *formsvc.Account) error {
				a.Contact += "x"
				return nil
			})
		}},
		{"CreateKey", ofAccount, false, func(c *caller) (any, error) { return nil, c.s.CreateKey(c.ctx, c.w.newKey(c.at[accountPart]), none) }},
		{"KeyByHash", nil, false, func(c *caller) (any, error) { return c.s.KeyByHash(c.ctx, keyHash(c.at[keyPart])) }},
		{"Keys", ofAccount, true, func(c *caller) (any, error) { return c.s.Keys(c.ctx, c.at[accountPart]) }},
		{"RevokeKey", ofKey, false, func(c *caller) (any, error) {
			return nil, c.s.RevokeKey(c.ctx, c.at[accountPart], c.at[keyPart], nextDay(), none)
		}},
		{"UseKeys", nil, false, func(c *caller) (any, error) {
			return nil, c.s.UseKeys(c.ctx, []formsvc.KeyUse{{AccountID: c.at[accountPart], ID: c.at[keyPart], At: nextDay()}})
		}},
		{"CreateCampaign", ofAccount, false, func(c *caller) (any, error) {
			return nil, c.s.CreateCampaign(c.ctx, c.w.newCampaign(c.at[accountPart]), none)
		}},
		{"Campaign", ofCampaign, false, func(c *caller) (any, error) { return c.s.Campaign(c.ctx, c.at.campaignKey()) }},
		{"Campaigns", ofAccount, true, func(c *caller) (any, error) {
			return c.s.Campaigns(c.ctx, formsvc.CampaignQuery{AccountID: c.at[accountPart]})
		}},
		{"CreateLink", ofAccount, false, func(c *caller) (any, error) { return nil, c.s.CreateLink(c.ctx, c.w.newLink(c.at[accountPart]), none) }},
		{"RedeemLink", nil, false, func(c *caller) (any, error) {
			return c.s.RedeemLink(c.ctx, targetHash(c.at[accountPart]), func(link *formsvc.Link) (formsvc.Session, formsvc.Change, error) {
				return c.w.newSession(link.AccountID), none, nil
			})
		}},
		{"SessionByHash", nil, false, func(c *caller) (any, error) { return c.s.SessionByHash(c.ctx, targetHash(c.at[accountPart])) }},
		{"EndSession of one", nil, false, func(c *caller) (any, error) {
			return nil, endSession(c.ctx, c.s, c.at[accountPart], targetHash(c.at[accountPart]))
		}},
		{"EndSessions", ofAccount, false, func(c *caller) (any, error) {
			return nil, c.s.EndSessions(c.ctx, formsvc.SessionQuery{AccountID: c.at[accountPart]}, none)
		}},
	}
}

// responseCalls returns the calls about responses and their records.
func responseCalls() []call {
	return []call{
		{"CreateResponse", ofCampaign, false, func(c *caller) (any, error) {
			r := c.w.newResponse(&formsvc.Campaign{ID: c.at[campaignPart], AccountID: c.at[accountPart]})
			return nil, c.s.CreateResponse(c.ctx, r, 1, formsvc.Change{Events: []formsvc.Event{c.w.newEvent(&r)}})
		}},
		{"UpdateCampaign", ofCampaign, false, func(c *caller) (any, error) {
			return c.s.UpdateCampaign(c.ctx, c.at.campaignKey(), func(campaign *formsvc.Campaign) error {
				campaign.Version++
				return nil
			})
		}},
		{"UpdateResponse", ofResponse, false, func(c *caller) (any, error) {
			return c.s.UpdateResponse(c.ctx, c.at.responseKey(), func(r *formsvc.Response) (formsvc.Change, error) {
				r.Version++
				return formsvc.Change{Events: []formsvc.Event{c.w.newEvent(r)}}, nil
			})
		}},
		{"Response", ofResponse, false, func(c *caller) (any, error) { return c.s.Response(c.ctx, c.at.responseKey()) }},
		{"Responses", ofCampaign, false, func(c *caller) (any, error) {
			return c.s.Responses(c.ctx, formsvc.ResponseQuery{AccountID: c.at[accountPart], CampaignID: c.at[campaignPart]})
		}},
		{"CreateFile", ofResponse, false, func(c *caller) (any, error) {
			return nil, c.s.CreateFile(c.ctx, c.w.newFile(c.at.response()), deciding[*formsvc.Response](none))
		}},
		{"File", ofFile, false, func(c *caller) (any, error) { return c.s.File(c.ctx, c.at.fileKey()) }},
		{"Files", ofResponse, false, func(c *caller) (any, error) {
			k := c.at.responseKey()
			return c.s.Files(c.ctx, formsvc.FileQuery{AccountID: k.AccountID, CampaignID: k.CampaignID, ResponseID: k.ID})
		}},
		{"Files of all accounts", nil, false, func(c *caller) (any, error) { return c.s.Files(c.ctx, formsvc.FileQuery{AllAccounts: true}) }},
		{"UnknownFiles", nil, false, func(c *caller) (any, error) {
			return c.s.UnknownFiles(c.ctx, []formsvc.ID{c.at[filePart], c.w.nextID()})
		}},
		{"BarFiles", nil, false, func(c *caller) (any, error) { return c.s.BarFiles(c.ctx, []formsvc.ID{c.at[filePart], c.w.nextID()}) }},
		{"CreateComment", ofResponse, false, func(c *caller) (any, error) {
			return nil, c.s.CreateComment(c.ctx, c.w.newComment(c.at.response()), none)
		}},
		{"Comments", ofResponse, false, func(c *caller) (any, error) {
			k := c.at.responseKey()
			return c.s.Comments(c.ctx, formsvc.CommentQuery{AccountID: k.AccountID, CampaignID: k.CampaignID, ResponseID: k.ID})
		}},
		{"CreateSignature", ofResponse, false, func(c *caller) (any, error) {
			sig := c.w.newSignature(c.at.response())
			return c.s.CreateSignature(c.ctx, sig, func(*formsvc.Response, *formsvc.Signature) (formsvc.Change, error) { return none, nil })
		}},
		{"Signatures", ofResponse, false, func(c *caller) (any, error) {
			k := c.at.responseKey()
			return c.s.Signatures(c.ctx, formsvc.SignatureQuery{AccountID: k.AccountID, CampaignID: k.CampaignID, ResponseID: k.ID})
		}},
		{"Signatures, by signer", ofAccount, true, func(c *caller) (any, error) {
			return c.s.Signatures(c.ctx, formsvc.SignatureQuery{AccountID: c.at[accountPart], Email: "grace@example.com"})
		}},
	}
}

// webhookCalls returns the calls about webhooks and events.
func webhookCalls() []call {
	return []call{
		{"CreateWebhook", ofAccount, false, func(c *caller) (any, error) {
			_, _, err := c.s.CreateWebhook(c.ctx, c.w.newWebhook(c.at[accountPart]), formsvc.MaxWebhooks, nil)
			return nil, err
		}},
		{"UpdateWebhook", ofHook, false, func(c *caller) (any, error) {
			return c.s.UpdateWebhook(c.ctx, c.at.webhookKey(), func(hook *formsvc.Webhook) (formsvc.Change, error) {
				hook.Version++
				return none, nil
			})
		}},
		{"Webhook", ofHook, false, func(c *caller) (any, error) { return c.s.Webhook(c.ctx, c.at.webhookKey()) }},
		{"Webhooks", ofAccount, true, func(c *caller) (any, error) { return c.s.Webhooks(c.ctx, c.at[accountPart]) }},
		{"Events", ofAccount, true, func(c *caller) (any, error) {
			page, err := c.s.Events(c.ctx, formsvc.EventQuery{AccountID: c.at[accountPart]})
			return page.Items, err
		}},
		{"Events of all accounts", nil, false, func(c *caller) (any, error) {
			page, err := c.s.Events(c.ctx, formsvc.EventQuery{AllAccounts: true})
			return page.Items, err
		}},
		{"Event", ofEvent, false, func(c *caller) (any, error) { return c.s.Event(c.ctx, c.at[accountPart], c.at[eventPart]) }},
		{"RecentEvents", ofAccount, true, func(c *caller) (any, error) {
			return c.s.RecentEvents(c.ctx, formsvc.RecentQuery{AccountID: c.at[accountPart], Limit: 10})
		}},
		{"EventsAbout", ofResponse, false, func(c *caller) (any, error) { return c.s.EventsAbout(c.ctx, c.at.responseKey(), 10) }},
		{"Notices", ofAccount, true, func(c *caller) (any, error) {
			return c.s.Notices(c.ctx, formsvc.NoticeQuery{AccountID: c.at[accountPart]})
		}},
		{"ClaimDigests", nil, false, func(c *caller) (any, error) { return c.s.ClaimDigests(c.ctx, nextDay(), time.Hour, lease, 1) }},
		{"FinishDigest", nil, false, func(c *caller) (any, error) {
			d := formsvc.Digest{AccountID: c.at[accountPart], WebhookID: c.at[webhookPart], Failures: 1, Lease: 1 << 40}
			err := c.s.FinishDigest(c.ctx, d, nextDay())
			if errors.Is(err, formsvc.ErrStale) { // as nobody claimed it
				err = nil
			}
			return nil, err
		}},
	}
}

// queueCalls returns the calls about deliveries.
func queueCalls() []call {
	return []call{
		{"QueueStats", nil, false, func(c *caller) (any, error) {
			return c.s.QueueStats(c.ctx, formsvc.QueueQuery{Now: nextDay(), Limit: 100})
		}},
		{"QueueStats of one webhook", ofHook, true, func(c *caller) (any, error) {
			key := c.at.webhookKey()
			stats, err := c.s.QueueStats(c.ctx, formsvc.QueueQuery{Webhook: &key, Limit: 10})
			return stats.Pending, err
		}},
		{"Deliveries", ofHook, true, func(c *caller) (any, error) {
			return c.s.Deliveries(c.ctx, formsvc.DeliveryQuery{AccountID: c.at[accountPart], WebhookID: c.at[webhookPart]})
		}},
		{"Delivery", ofDelivery, false, func(c *caller) (any, error) { return c.s.Delivery(c.ctx, c.at.deliveryKey()) }},
		{"Redeliver", ofDelivery, false, func(c *caller) (any, error) { return c.s.Redeliver(c.ctx, c.at.deliveryKey(), nextDay(), nil) }},
		{"RedeliverFailed", ofHook, false, func(c *caller) (any, error) {
			return c.s.RedeliverFailed(c.ctx, formsvc.RedeliverQuery{
				Key: c.at.webhookKey(), Until: nextDay().Add(time.Hour), At: nextDay(), Limit: 10,
			}, nil)
		}},
		{"CreateTest", ofHook, false, func(c *caller) (any, error) {
			return c.s.CreateTest(c.ctx, c.at.webhookKey(), c.w.newTestEvent(c.at[accountPart]), nil)
		}},
		{"Ready", nil, false, func(c *caller) (any, error) { return c.s.Ready(c.ctx, nextDay()) }},
		{"Claim", nil, false, func(c *caller) (any, error) {
			return c.s.Claim(c.ctx, delivery.ClaimRequest{
				Now: nextDay(), Lease: lease, Shares: []delivery.Share{{Endpoint: string(c.at[webhookPart]), N: 10}},
			})
		}},
		{"Payloads", nil, false, func(c *caller) (any, error) { return c.s.Payloads(c.ctx, []string{string(c.w.nextID())}) }},
		{"Finish", nil, false, func(c *caller) (any, error) {
			return c.s.Finish(c.ctx, []delivery.Outcome{{
				ID: string(c.w.nextID()), Endpoint: string(c.at[webhookPart]), Lease: 1, Result: delivery.Delivered,
			}})
		}},
		{"Failures", nil, false, func(c *caller) (any, error) { return c.s.Failures(c.ctx, nextDay(), nextDay().Add(lease), 1) }},
		{"Noted", nil, false, func(c *caller) (any, error) { return nil, c.s.Noted(c.ctx, []string{string(c.w.nextID())}) }},
		{"Wait", nil, false, func(c *caller) (any, error) { return nil, c.s.Wait(c.ctx, time.Second) }},
	}
}

// otherCalls returns the calls about the journal, quotas and the store itself.
func otherCalls() []call {
	return []call{
		{"Note", ofAccount, false, func(c *caller) (any, error) { return nil, audit(c.ctx, c.s, c.w.newAudit(c.at[accountPart])) }},
		{"Note, remember", nil, false, func(c *caller) (any, error) {
			return nil, remember(c.ctx, c.s, c.w.fullRecord(c.at[accountPart], "key "+string(c.w.nextID())))
		}},
		{"Recall", ofAccount, false, func(c *caller) (any, error) { return c.s.Recall(c.ctx, c.at[accountPart], targetKey, start()) }},
		{"Audit", ofAccount, true, func(c *caller) (any, error) {
			return c.s.Audit(c.ctx, formsvc.AuditQuery{AccountID: c.at[accountPart]})
		}},
		{"AddQuota", nil, false, func(c *caller) (any, error) {
			return c.s.AddQuota(c.ctx, []formsvc.QuotaCount{{Subject: c.at[keyPart], Start: start(), N: 1}})
		}},
		{"QuotaUse", nil, false, func(c *caller) (any, error) { return c.s.QuotaUse(c.ctx, c.at[keyPart], time.Time{}) }},
		{"Prune", nil, false, func(c *caller) (any, error) {
			return c.s.Prune(c.ctx, formsvc.PruneEvents, start().Add(-time.Hour), 10)
		}},
		{"Prune, idempotency", nil, false, func(c *caller) (any, error) { return c.s.Prune(c.ctx, formsvc.PruneIdempotency, start(), 10) }},
		{"Prune, quota", nil, false, func(c *caller) (any, error) { return c.s.Prune(c.ctx, formsvc.PruneQuota, time.Unix(0, 0), 10) }},
		{"Prune, sessions", nil, false, func(c *caller) (any, error) { return c.s.Prune(c.ctx, formsvc.PruneSessions, start(), 10) }},
		{"Scrub", nil, false, func(c *caller) (any, error) { return nil, c.s.Scrub(c.ctx) }},
		{"Identity", nil, false, func(c *caller) (any, error) { return c.s.Identity(c.ctx) }},
	}
}

// deletions returns the calls that remove records, which come last.
func deletions() []call {
	return []call{
		{"Erase", ofEvent, true, func(c *caller) (any, error) {
			return c.s.Erase(c.ctx, formsvc.EraseQuery{AccountID: c.at[accountPart], Events: []formsvc.ID{c.at[eventPart]}})
		}},
		{"DeleteResponse", ofResponse, false, func(c *caller) (any, error) { return c.s.DeleteResponse(c.ctx, c.at.responseKey(), nil) }},
		{"DeleteWebhook", ofHook, false, func(c *caller) (any, error) { return nil, c.s.DeleteWebhook(c.ctx, c.at.webhookKey(), none) }},
	}
}
