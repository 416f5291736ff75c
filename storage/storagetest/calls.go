package storagetest

import (
	"context"
	"slices"

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
	parts
)

func (p part) String() string {
	return [...]string{"account", "key", "campaign", "response", "webhook", "delivery", "file", "event"}[p]
}

// A target names one record of each kind.
type target [parts]formsvc.ID

func (t *target) campaignKey() formsvc.CampaignKey {
	return formsvc.CampaignKey{AccountID: t[accountPart], ID: t[campaignPart]}
}

func (t *target) responseKey() formsvc.ResponseKey {
	return formsvc.ResponseKey{AccountID: t[accountPart], CampaignID: t[campaignPart], ID: t[responsePart]}
}

func (t *target) webhookKey() formsvc.WebhookKey {
	return formsvc.WebhookKey{AccountID: t[accountPart], ID: t[webhookPart]}
}

func (t *target) deliveryKey() formsvc.DeliveryKey {
	return formsvc.DeliveryKey{AccountID: t[accountPart], ID: t[deliveryPart]}
}

func (t *target) fileKey() formsvc.FileKey {
	return formsvc.FileKey{AccountID: t[accountPart], ID: t[filePart]}
}

// A call is one method of the contract. It succeeds with an existing target, a live context and an open store.
type call struct {
	name string
	uses []part // the records it looks up; for an unknown one it returns ErrNotFound
	none bool   // for an unknown one it returns nothing instead
	do   func(w *world, ctx context.Context, at *target) (items int, err error)
}

// calls returns all methods of the contract.
func calls() []call {
	account := []part{accountPart}
	key := []part{accountPart, keyPart}
	campaign := []part{accountPart, campaignPart}
	response := []part{accountPart, campaignPart, responsePart}
	hook := []part{accountPart, webhookPart}
	one := []part{accountPart, deliveryPart}
	file := []part{accountPart, filePart}
	return slices.Concat(quotaCalls(), idempotencyCalls(), sessionCalls(), []call{
		{name: "CreateAccount", do: (*world).callCreateAccount},
		{name: "Accounts", do: (*world).callAccounts},
		{name: "Account", uses: account, do: (*world).callAccount},
		{name: "AccountByName", do: (*world).callAccountByName},
		{name: "UpdateAccount", uses: account, do: (*world).callUpdateAccount},
		{name: "CreateKey", uses: account, do: (*world).callCreateKey},
		{name: "KeyByHash", do: (*world).callKeyByHash},
		{name: "Keys", uses: account, none: true, do: (*world).callKeys},
		{name: "RevokeKey", uses: key, do: (*world).callRevokeKey},
		{name: "UseKeys", do: (*world).callUseKeys},
		{name: "CreateCampaign", uses: account, do: (*world).callCreateCampaign},
		{name: "Campaign", uses: campaign, do: (*world).callCampaign},
		{name: "Campaigns", uses: account, none: true, do: (*world).callCampaigns},
		{name: "CreateResponse", uses: campaign, do: (*world).callCreateResponse},
		{name: "UpdateCampaign", uses: campaign, do: (*world).callUpdateCampaign},
		{name: "UpdateResponse", uses: response, do: (*world).callUpdateResponse},
		{name: "Response", uses: response, do: (*world).callResponse},
		{name: "Responses", uses: campaign, do: (*world).callResponses},
		{name: "CreateFile", uses: response, do: (*world).callCreateFile},
		{name: "File", uses: file, do: (*world).callFile},
		{name: "Files", uses: response, do: (*world).callFiles},
		{name: "Files of all accounts", do: (*world).callAllFiles},
		{name: "UnknownFiles", do: (*world).callUnknownFiles},
		{name: "BarFiles", do: (*world).callBarFiles},
		{name: "CreateComment", uses: response, do: (*world).callCreateComment},
		{name: "Comments", uses: response, do: (*world).callComments},
		{name: "CreateSignature", uses: response, do: (*world).callCreateSignature},
		{name: "Signatures", uses: response, do: (*world).callSignatures},
		{name: "Signatures, by signer", uses: account, none: true, do: (*world).callSignaturesBy},
		{name: "CreateWebhook", uses: account, do: (*world).callCreateWebhook},
		{name: "UpdateWebhook", uses: hook, do: (*world).callUpdateWebhook},
		{name: "Webhook", uses: hook, do: (*world).callWebhook},
		{name: "Webhooks", uses: account, none: true, do: (*world).callWebhooks},
		{name: "Events", uses: account, none: true, do: (*world).callEvents},
		{name: "Events of all accounts", do: (*world).callAllEvents},
		{name: "Event", uses: []part{accountPart, eventPart}, do: (*world).callEvent},
		{name: "RecentEvents", uses: account, none: true, do: (*world).callRecentEvents},
		{name: "EventsAbout", uses: response, do: (*world).callEventsAbout},
		{name: "Notices", uses: account, none: true, do: (*world).callNotices},
		{name: "ClaimDigests", do: (*world).callClaimDigests},
		{name: "FinishDigest", do: (*world).callFinishDigest},
		{name: "QueueStats", do: (*world).callQueueStats},
		{name: "QueueStats of one webhook", uses: hook, none: true, do: (*world).callCountPending},
		{name: "Deliveries", uses: hook, none: true, do: (*world).callDeliveries},
		{name: "Delivery", uses: one, do: (*world).callDelivery},
		{name: "Redeliver", uses: one, do: (*world).callRedeliver},
		{name: "RedeliverFailed", uses: hook, do: (*world).callRedeliverFailed},
		{name: "CreateTest", uses: hook, do: (*world).callCreateTest},
		{name: "Ready", do: (*world).callReady},
		{name: "Claim", do: (*world).callClaim},
		{name: "Payloads", do: (*world).callPayloads},
		{name: "Finish", do: (*world).callFinish},
		{name: "Failures", do: (*world).callFailures},
		{name: "Noted", do: (*world).callNoted},
		{name: "Wait", do: (*world).callWait},
		{name: "Prune", do: (*world).callPrune},
		{name: "Note", uses: account, do: (*world).callAppendAudit},
		{name: "Audit", uses: account, none: true, do: (*world).callAudit},
		{name: "Erase, dry run", uses: response, none: true, do: (*world).callCountErasure},
		{name: "Erase", uses: []part{accountPart, eventPart}, none: true, do: (*world).callErase},
		{name: "DeleteResponse", uses: response, do: (*world).callDeleteResponse},
		{name: "DeleteWebhook", uses: hook, do: (*world).callDeleteWebhook},
		{name: "Scrub", do: (*world).callScrub},
		{name: "Identity", do: (*world).callIdentity},
	})
}

// addTarget adds one record of each kind: a failed delivery with its notice and digest, a due one, and events to read.
// The file belongs to the response.
func (w *world) addTarget() *target {
	w.Helper()
	sc := w.addScene()
	key := w.addKey(sc.account.ID)
	_, old := w.addResponse(&sc.campaign)
	w.attend(&sc.hook, nextDay(), delivery.Failed)
	r, e := w.addResponse(&sc.campaign)
	w.feed(formsvc.EventQuery{AccountID: sc.account.ID}, &e)
	f := w.addFile(&r)
	w.addComment(&r)
	w.addSignature(&r)
	w.addAudit(sc.account.ID)
	w.addRecord(sc.account.ID, targetKey)
	w.addTargetSession(sc.account.ID)
	return &target{
		accountPart: sc.account.ID, keyPart: key.ID, campaignPart: sc.campaign.ID, responsePart: r.ID, webhookPart: sc.hook.ID,
		deliveryPart: formsvc.DeliveryID(e.ID, sc.hook.ID), filePart: f.ID,
		eventPart: old.ID,
	}
}

func (w *world) callCreateAccount(ctx context.Context, _ *target) (int, error) {
	a := w.newAccount()
	return 0, w.store.CreateAccount(ctx, a, []formsvc.Key{w.newKey(a.ID)}, formsvc.Change{})
}

func (w *world) callAccounts(ctx context.Context, _ *target) (int, error) {
	list, err := w.store.Accounts(ctx)
	return len(list), err
}

func (w *world) callAccount(ctx context.Context, at *target) (int, error) {
	_, err := w.store.Account(ctx, at[accountPart])
	return 0, err
}

func (w *world) callAccountByName(ctx context.Context, at *target) (int, error) {
	_, err := w.store.AccountByName(ctx, "account "+string(at[accountPart]))
	return 0, err
}

func (w *world) callUpdateAccount(ctx context.Context, at *target) (int, error) {
	_, err := w.store.UpdateAccount(ctx, at[accountPart], func(a *formsvc.Account) error {
		a.Contact += "x"
		return nil
	})
	return 0, err
}

func (w *world) callCreateKey(ctx context.Context, at *target) (int, error) {
	return 0, w.store.CreateKey(ctx, w.newKey(at[accountPart]), formsvc.Change{})
}

func (w *world) callKeyByHash(ctx context.Context, at *target) (int, error) {
	_, err := w.store.KeyByHash(ctx, keyHash(at[keyPart]))
	return 0, err
}

func (w *world) callKeys(ctx context.Context, at *target) (int, error) {
	list, err := w.store.Keys(ctx, at[accountPart])
	return len(list), err
}

func (w *world) callRevokeKey(ctx context.Context, at *target) (int, error) {
	return 0, w.store.RevokeKey(ctx, at[accountPart], at[keyPart], nextDay(), formsvc.Change{})
}

func (w *world) callUseKeys(ctx context.Context, at *target) (int, error) {
	return 0, w.store.UseKeys(ctx, []formsvc.KeyUse{{AccountID: at[accountPart], ID: at[keyPart], At: nextDay()}})
}

func (w *world) callCreateCampaign(ctx context.Context, at *target) (int, error) {
	return 0, w.store.CreateCampaign(ctx, w.newCampaign(at[accountPart]), formsvc.Change{})
}

func (w *world) callUpdateCampaign(ctx context.Context, at *target) (int, error) {
	_, err := w.store.UpdateCampaign(ctx, at.campaignKey(), func(c *formsvc.Campaign) error {
		c.Title = "Changed"
		c.Version++
		return nil
	})
	return 0, err
}

func (w *world) callCampaign(ctx context.Context, at *target) (int, error) {
	_, err := w.store.Campaign(ctx, at.campaignKey())
	return 0, err
}

func (w *world) callCampaigns(ctx context.Context, at *target) (int, error) {
	page, err := w.store.Campaigns(ctx, formsvc.CampaignQuery{AccountID: at[accountPart]})
	return len(page.Items) + int(page.Total), err
}

func (w *world) callCreateResponse(ctx context.Context, at *target) (int, error) {
	r := w.newResponse(&formsvc.Campaign{ID: at[campaignPart], AccountID: at[accountPart]})
	return 0, w.store.CreateResponse(ctx, r, 1, formsvc.Change{Events: []formsvc.Event{w.newEvent(&r)}})
}

func (w *world) callUpdateResponse(ctx context.Context, at *target) (int, error) {
	_, err := w.store.UpdateResponse(ctx, at.responseKey(), func(r *formsvc.Response) (formsvc.Change, error) {
		r.Status = "changed"
		r.Version++
		return formsvc.Change{Events: []formsvc.Event{w.newEvent(r)}}, nil
	})
	return 0, err
}

func (w *world) callResponse(ctx context.Context, at *target) (int, error) {
	_, err := w.store.Response(ctx, at.responseKey())
	return 0, err
}

func (w *world) callResponses(ctx context.Context, at *target) (int, error) {
	page, err := w.store.Responses(ctx, formsvc.ResponseQuery{AccountID: at[accountPart], CampaignID: at[campaignPart]})
	return len(page.Items) + int(page.Total), err
}
