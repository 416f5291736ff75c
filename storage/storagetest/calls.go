package storagetest

import (
	"context"
	"crypto/sha256"
	"reflect"
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

// A caller makes calls about a target.
type caller struct {
	w   *world
	s   Store
	ctx context.Context
	at  *target
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
	result, err := c.make(&caller{w, w.store, ctx, at})
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
)

// targetKey is the key of an idempotency record of each target's account.
const targetKey = "target"

// targetHash returns the hash of a link and a session of each target's account.
func targetHash(account formsvc.ID) [sha256.Size]byte { return keyHash("target of " + account) }

// calls returns all methods of the contract.
func calls() []call {
	return slices.Concat(accountCalls(), responseCalls(), webhookCalls(), queueCalls(), otherCalls(), deletions())
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

// addTargetSession adds the session of a target, and another link with the hash of the link that it came from.
func (w *world) addTargetSession(account formsvc.ID) {
	w.Helper()
	link, session := w.newLink(account), w.newSession(account)
	link.Hash, session.Hash = targetHash(account), targetHash(account)
	w.must("CreateLink", w.store.CreateLink(w.ctx, link, formsvc.Change{}))
	_, err := w.redeem(&link, session)
	w.must("RedeemLink", err)
	link.ID = w.nextID()
	w.must("CreateLink", w.store.CreateLink(w.ctx, link, formsvc.Change{}))
}
