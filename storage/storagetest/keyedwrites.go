package storagetest

import (
	"context"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// fullRecord returns a record with all fields set.
func (w *world) fullRecord(account formsvc.ID, key string) formsvc.IdempotencyRecord {
	id, at := w.next()
	return formsvc.IdempotencyRecord{
		AccountID: account, Key: key, CreatedAt: at,
		Reply: formsvc.Reply{
			Request: keyHash(id), Status: 201, ETag: `"` + string(id) + `"`, Location: "/v1/" + string(id),
			Body: []byte("{\"of\":\"\x00\xff" + string(id) + "\"}"), ResponseID: id,
		},
	}
}

func (w *world) addRecord(account formsvc.ID, key string) formsvc.IdempotencyRecord {
	w.Helper()
	r := w.fullRecord(account, key)
	w.must("Remember", remember(w.ctx, w.store, r))
	return r
}

// wantRecord fails the test unless the record is there.
func (w *world) wantRecord(what string, want *formsvc.IdempotencyRecord) {
	w.Helper()
	got, err := w.store.Recall(w.ctx, want.AccountID, want.Key, want.CreatedAt)
	if err != nil {
		w.Errorf("%s: Recall: %v", what, err)
		return
	}
	w.same(what+": record", got, *want)
}

// noRecord fails the test if the key is taken.
func (w *world) noRecord(what string, account formsvc.ID, key string) {
	w.Helper()
	_, err := w.store.Recall(w.ctx, account, key, start())
	w.wantError(what+": Recall", err, formsvc.ErrNotFound)
}

// A keyed is a way to write with a record in the same transaction. It can be repeated.
type keyed struct {
	name string
	uses []part // the records that must exist
	do   func(w *world, at *target, change formsvc.Change) error
}

// keyedWrites returns the methods whose transactions may include a record, except Remember.
func keyedWrites() []keyed {
	account := []part{accountPart}
	campaign := []part{accountPart, campaignPart}
	response := []part{accountPart, campaignPart, responsePart}
	hook := []part{accountPart, webhookPart}
	return []keyed{
		{"CreateKey", account, func(w *world, at *target, change formsvc.Change) error {
			return w.store.CreateKey(w.ctx, w.newKey(at[accountPart]), change)
		}},
		{"CreateCampaign", account, func(w *world, at *target, change formsvc.Change) error {
			return w.store.CreateCampaign(w.ctx, w.newCampaign(at[accountPart]), change)
		}},
		{"CreateResponse", campaign, func(w *world, at *target, change formsvc.Change) error {
			r := w.newResponse(&formsvc.Campaign{ID: at[campaignPart], AccountID: at[accountPart]})
			change.Events = []formsvc.Event{w.newEvent(&r)}
			return w.store.CreateResponse(w.ctx, r, 1, change)
		}},
		{"UpdateResponse", response, func(w *world, at *target, change formsvc.Change) error {
			_, err := w.store.UpdateResponse(w.ctx, at.responseKey(), func(r *formsvc.Response) (formsvc.Change, error) {
				r.Version++
				return change, nil
			})
			return err
		}},
		{"CreateFile", response, func(w *world, at *target, change formsvc.Change) error {
			return w.store.CreateFile(w.ctx, w.newFile(at.response()), deciding[*formsvc.Response](change))
		}},
		{"CreateComment", response, func(w *world, at *target, change formsvc.Change) error {
			return w.store.CreateComment(w.ctx, w.newComment(at.response()), change)
		}},
		{"CreateSignature", response, func(w *world, at *target, change formsvc.Change) error {
			_, err := w.store.CreateSignature(w.ctx, w.newSignature(at.response()),
				func(*formsvc.Response, *formsvc.Signature) (formsvc.Change, error) { return change, nil })
			return err
		}},
		{"CreateWebhook", account, func(w *world, at *target, change formsvc.Change) error {
			return w.createWebhook(w.newWebhook(at[accountPart]), true, change)
		}},
		{"CreateWebhook of one that exists", hook, func(w *world, at *target, change formsvc.Change) error {
			hook, err := w.store.Webhook(w.ctx, at.webhookKey())
			if err != nil {
				return err
			}
			return w.createWebhook(w.twin(&hook), false, change)
		}},
		{"UpdateWebhook", hook, func(w *world, at *target, change formsvc.Change) error {
			return w.updateWebhook(at, 1, change)
		}},
		{"UpdateWebhook that changes nothing", hook, func(w *world, at *target, change formsvc.Change) error {
			return w.updateWebhook(at, 0, change)
		}},
		{"CreateTest", hook, func(w *world, at *target, change formsvc.Change) error {
			_, err := w.store.CreateTest(w.ctx, at.webhookKey(), w.newTestEvent(at[accountPart]), deciding[*formsvc.Delivery](change))
			return err
		}},
		{"Redeliver", []part{accountPart, deliveryPart}, func(w *world, at *target, change formsvc.Change) error {
			_, err := w.store.Redeliver(w.ctx, at.deliveryKey(), nextDay(), deciding[*formsvc.Delivery](change))
			return err
		}},
		{"RedeliverFailed", hook, func(w *world, at *target, change formsvc.Change) error {
			_, err := w.store.RedeliverFailed(w.ctx, formsvc.RedeliverQuery{
				Key: at.webhookKey(), Until: nextDay().Add(time.Hour), At: nextDay(), Limit: 10,
			}, deciding[int](change))
			return err
		}},
	}
}

func deciding[T any](change formsvc.Change) func(T) (formsvc.Change, error) {
	return func(T) (formsvc.Change, error) { return change, nil }
}

func (t *target) response() *formsvc.Response {
	return &formsvc.Response{ID: t[responsePart], AccountID: t[accountPart], CampaignID: t[campaignPart]}
}

func (w *world) createWebhook(hook formsvc.Webhook, want bool, change formsvc.Change) error {
	_, created, err := w.store.CreateWebhook(w.ctx, hook, 10_000, func(_ *formsvc.Webhook, created bool) (formsvc.Change, error) {
		if created != want {
			w.Errorf("CreateWebhook says created %t", created)
		}
		return change, nil
	})
	if err == nil && created != want {
		w.Errorf("CreateWebhook returned created %t", created)
	}
	return err
}

func (w *world) updateWebhook(at *target, by int64, change formsvc.Change) error {
	_, err := w.store.UpdateWebhook(w.ctx, at.webhookKey(), func(hook *formsvc.Webhook) (formsvc.Change, error) {
		hook.Version += by
		return change, nil
	})
	return err
}

// creating returns a call that creates a response of a campaign at version 1.
func (w *world) creating(r formsvc.Response, change formsvc.Change) func(context.Context) error {
	return func(ctx context.Context) error { return w.store.CreateResponse(ctx, r, 1, change) }
}
