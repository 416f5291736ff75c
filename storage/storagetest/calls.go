package storagetest

import (
	"context"
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
	return &target{
		accountPart: account, keyPart: key.ID, campaignPart: sc.campaign.ID, responsePart: r.ID, webhookPart: sc.hook.ID,
		deliveryPart: formsvc.DeliveryID(e.ID, sc.hook.ID), filePart: f.ID, eventPart: old.ID,
	}
}
