package storagetest

import (
	"context"
	"errors"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// Calls about webhooks and deliveries.

func (w *world) callCreateWebhook(ctx context.Context, at *target) (int, error) {
	_, _, err := w.store.CreateWebhook(ctx, w.newWebhook(at[accountPart]), formsvc.MaxWebhooks, nil)
	return 0, err
}

func (w *world) callUpdateWebhook(ctx context.Context, at *target) (int, error) {
	_, err := w.store.UpdateWebhook(ctx, at.webhookKey(), func(hook *formsvc.Webhook) (formsvc.Change, error) {
		hook.Secret += "x"
		hook.Version++
		return formsvc.Change{}, nil
	})
	return 0, err
}

func (w *world) callWebhook(ctx context.Context, at *target) (int, error) {
	_, err := w.store.Webhook(ctx, at.webhookKey())
	return 0, err
}

func (w *world) callWebhooks(ctx context.Context, at *target) (int, error) {
	list, err := w.store.Webhooks(ctx, at[accountPart])
	return len(list), err
}

func (w *world) callDeleteWebhook(ctx context.Context, at *target) (int, error) {
	return 0, w.store.DeleteWebhook(ctx, at.webhookKey(), formsvc.Change{})
}

func (w *world) callDeliveries(ctx context.Context, at *target) (int, error) {
	page, err := w.store.Deliveries(ctx, formsvc.DeliveryQuery{AccountID: at[accountPart], WebhookID: at[webhookPart]})
	return len(page.Items) + int(page.Total), err
}

func (w *world) callDelivery(ctx context.Context, at *target) (int, error) {
	_, err := w.store.Delivery(ctx, at.deliveryKey())
	return 0, err
}

func (w *world) callRedeliver(ctx context.Context, at *target) (int, error) {
	_, err := w.store.Redeliver(ctx, at.deliveryKey(), nextDay(), nil)
	return 0, err
}

func (w *world) callRedeliverFailed(ctx context.Context, at *target) (int, error) {
	return w.store.RedeliverFailed(ctx, formsvc.RedeliverQuery{
		Key: at.webhookKey(), Until: nextDay().Add(time.Hour), At: nextDay(), Limit: 10,
	}, nil)
}

func (w *world) callCreateTest(ctx context.Context, at *target) (int, error) {
	e := w.newTestEvent(at[accountPart])
	_, err := w.store.CreateTest(ctx, at.webhookKey(), e, nil)
	return 0, err
}

func (w *world) callCountPending(ctx context.Context, at *target) (int, error) {
	n, err := countPending(ctx, w.store, at.webhookKey(), 10)
	return int(n), err
}

func (w *world) callQueueStats(ctx context.Context, _ *target) (int, error) {
	_, err := w.store.QueueStats(ctx, formsvc.QueueQuery{Now: nextDay(), Limit: 100})
	return 0, err
}

func (w *world) callEvents(ctx context.Context, at *target) (int, error) {
	page, err := w.store.Events(ctx, formsvc.EventQuery{AccountID: at[accountPart]})
	return len(page.Items), err
}

func (w *world) callAllEvents(ctx context.Context, _ *target) (int, error) {
	page, err := allEvents(ctx, w.store, formsvc.EventQuery{})
	return len(page.Items), err
}

func (w *world) callEvent(ctx context.Context, at *target) (int, error) {
	_, err := w.store.Event(ctx, at[accountPart], at[eventPart])
	return 0, err
}

func (w *world) callRecentEvents(ctx context.Context, at *target) (int, error) {
	events, err := w.store.RecentEvents(ctx, formsvc.RecentQuery{AccountID: at[accountPart], Limit: 10})
	return len(events), err
}

func (w *world) callEventsAbout(ctx context.Context, at *target) (int, error) {
	events, err := w.store.EventsAbout(ctx, at.responseKey(), 10)
	return len(events), err
}

func (w *world) callPrune(ctx context.Context, _ *target) (int, error) {
	return w.store.Prune(ctx, formsvc.PruneEvents, start().Add(-time.Hour), 10)
}

func (w *world) callNotices(ctx context.Context, at *target) (int, error) {
	page, err := w.store.Notices(ctx, formsvc.NoticeQuery{AccountID: at[accountPart]})
	return len(page.Items) + int(page.Total), err
}

func (w *world) callClaimDigests(ctx context.Context, _ *target) (int, error) {
	digests, err := w.store.ClaimDigests(ctx, nextDay(), time.Hour, lease, 1)
	return len(digests), err
}

// callFinishDigest finishes a digest that nobody claimed.
func (w *world) callFinishDigest(ctx context.Context, at *target) (int, error) {
	d := formsvc.Digest{AccountID: at[accountPart], WebhookID: at[webhookPart], Failures: 1, Lease: 1 << 40}
	err := w.store.FinishDigest(ctx, d, nextDay())
	if errors.Is(err, formsvc.ErrStale) {
		err = nil
	}
	return 0, err
}

func (w *world) callReady(ctx context.Context, _ *target) (int, error) {
	endpoints, err := w.store.Ready(ctx, nextDay())
	return len(endpoints), err
}

func (w *world) callClaim(ctx context.Context, at *target) (int, error) {
	claims, err := w.store.Claim(ctx, delivery.ClaimRequest{
		Now: nextDay(), Lease: lease, Shares: []delivery.Share{{Endpoint: string(at[webhookPart]), N: 10}},
	})
	return len(claims), err
}

func (w *world) callPayloads(ctx context.Context, _ *target) (int, error) {
	payloads, err := w.store.Payloads(ctx, []string{string(w.nextID())})
	return len(payloads), err
}

func (w *world) callFinish(ctx context.Context, at *target) (int, error) {
	accepted, err := w.store.Finish(ctx, []delivery.Outcome{{
		ID: string(w.nextID()), Endpoint: string(at[webhookPart]), Lease: 1, Result: delivery.Delivered,
	}})
	return len(accepted), err
}

func (w *world) callFailures(ctx context.Context, _ *target) (int, error) {
	failures, err := w.store.Failures(ctx, nextDay(), nextDay().Add(lease), 1)
	return len(failures), err
}

func (w *world) callNoted(ctx context.Context, _ *target) (int, error) {
	return 0, w.store.Noted(ctx, []string{string(w.nextID())})
}

func (w *world) callWait(ctx context.Context, _ *target) (int, error) {
	return 0, w.store.Wait(ctx, time.Second)
}

func (w *world) callScrub(ctx context.Context, _ *target) (int, error) { return 0, w.store.Scrub(ctx) }
