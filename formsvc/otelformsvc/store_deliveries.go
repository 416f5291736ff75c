package otelformsvc

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func (s *tracedStore) CreateWebhook(
	ctx context.Context, webhook formsvc.Webhook, limit int,
	decide func(stored *formsvc.Webhook, created bool) (formsvc.Change, error),
) (_ formsvc.Webhook, _ bool, err error) {
	defer s.span(&ctx, "CreateWebhook").end(&err)
	return s.Store.CreateWebhook(ctx, webhook, limit, decide)
}

func (s *tracedStore) UpdateWebhook(
	ctx context.Context, key formsvc.WebhookKey, decide func(*formsvc.Webhook) (formsvc.Change, error),
) (_ formsvc.Webhook, err error) {
	defer s.span(&ctx, "UpdateWebhook").end(&err)
	return s.Store.UpdateWebhook(ctx, key, decide)
}

func (s *tracedStore) Webhook(ctx context.Context, key formsvc.WebhookKey) (_ formsvc.Webhook, err error) {
	defer s.span(&ctx, "Webhook").end(&err)
	return s.Store.Webhook(ctx, key)
}

func (s *tracedStore) Webhooks(ctx context.Context, account formsvc.ID) (_ []formsvc.Webhook, err error) {
	defer s.span(&ctx, "Webhooks").end(&err)
	return s.Store.Webhooks(ctx, account)
}

func (s *tracedStore) DeleteWebhook(ctx context.Context, key formsvc.WebhookKey, change formsvc.Change) (err error) {
	defer s.span(&ctx, "DeleteWebhook").end(&err)
	return s.Store.DeleteWebhook(ctx, key, change)
}

func (s *tracedStore) Deliveries(
	ctx context.Context, q formsvc.DeliveryQuery,
) (_ formsvc.Page[formsvc.Delivery], err error) {
	defer s.span(&ctx, "Deliveries").end(&err)
	return s.Store.Deliveries(ctx, q)
}

func (s *tracedStore) Delivery(ctx context.Context, key formsvc.DeliveryKey) (_ formsvc.Delivery, err error) {
	defer s.span(&ctx, "Delivery").end(&err)
	return s.Store.Delivery(ctx, key)
}

func (s *tracedStore) Redeliver(
	ctx context.Context, key formsvc.DeliveryKey, at time.Time, decide func(*formsvc.Delivery) (formsvc.Change, error),
) (_ formsvc.Delivery, err error) {
	defer s.span(&ctx, "Redeliver").end(&err)
	return s.Store.Redeliver(ctx, key, at, decide)
}

func (s *tracedStore) RedeliverFailed(
	ctx context.Context, q formsvc.RedeliverQuery, decide func(n int) (formsvc.Change, error),
) (_ int, err error) {
	defer s.span(&ctx, "RedeliverFailed").end(&err)
	return s.Store.RedeliverFailed(ctx, q, decide)
}

func (s *tracedStore) CreateTest(
	ctx context.Context, key formsvc.WebhookKey, event formsvc.Event, decide func(*formsvc.Delivery) (formsvc.Change, error),
) (_ formsvc.Delivery, err error) {
	defer s.span(&ctx, "CreateTest").end(&err)
	return s.Store.CreateTest(ctx, key, event, decide)
}

func (s *tracedStore) CountPending(ctx context.Context, key formsvc.WebhookKey, limit int) (_ int64, err error) {
	defer s.span(&ctx, "CountPending").end(&err)
	return s.Store.CountPending(ctx, key, limit)
}

func (s *tracedStore) QueueStats(ctx context.Context, now time.Time) (_ formsvc.QueueStats, err error) {
	defer s.span(&ctx, "QueueStats").end(&err)
	return s.Store.QueueStats(ctx, now)
}

func (s *tracedStore) Events(ctx context.Context, q formsvc.EventQuery) (_ formsvc.EventPage, err error) {
	defer s.span(&ctx, "Events").end(&err)
	return s.Store.Events(ctx, q)
}

func (s *tracedStore) AllEvents(ctx context.Context, q formsvc.EventQuery) (_ formsvc.EventPage, err error) {
	defer s.span(&ctx, "AllEvents").end(&err)
	return s.Store.AllEvents(ctx, q)
}

func (s *tracedStore) Prune(ctx context.Context, before time.Time, limit int) (_ int, err error) {
	defer s.span(&ctx, "Prune").end(&err)
	return s.Store.Prune(ctx, before, limit)
}

func (s *tracedStore) Event(ctx context.Context, account, id formsvc.ID) (_ formsvc.Event, err error) {
	defer s.span(&ctx, "Event").end(&err)
	return s.Store.Event(ctx, account, id)
}

func (s *tracedStore) RecentEvents(ctx context.Context, q formsvc.RecentQuery) (_ []formsvc.Event, err error) {
	defer s.span(&ctx, "RecentEvents").end(&err)
	return s.Store.RecentEvents(ctx, q)
}

func (s *tracedStore) EventsAbout(ctx context.Context, key formsvc.ResponseKey, limit int) (_ []formsvc.Event, err error) {
	defer s.span(&ctx, "EventsAbout").end(&err)
	return s.Store.EventsAbout(ctx, key, limit)
}

func (s *tracedStore) Notices(ctx context.Context, q formsvc.NoticeQuery) (_ formsvc.Page[formsvc.Notice], err error) {
	defer s.span(&ctx, "Notices").end(&err)
	return s.Store.Notices(ctx, q)
}

func (s *tracedStore) ClaimDigests(
	ctx context.Context, now time.Time, every, lease time.Duration, limit int,
) (_ []formsvc.Digest, err error) {
	defer s.span(&ctx, "ClaimDigests").end(&err)
	return s.Store.ClaimDigests(ctx, now, every, lease, limit)
}

func (s *tracedStore) FinishDigest(ctx context.Context, d formsvc.Digest, at time.Time) (err error) {
	defer s.span(&ctx, "FinishDigest").end(&err)
	return s.Store.FinishDigest(ctx, d, at)
}

func (s *tracedStore) Remember(ctx context.Context, record formsvc.IdempotencyRecord) (err error) {
	defer s.span(&ctx, "Remember").end(&err)
	return s.Store.Remember(ctx, record)
}

func (s *tracedStore) Recall(
	ctx context.Context, account formsvc.ID, key string, since time.Time,
) (_ formsvc.IdempotencyRecord, err error) {
	defer s.span(&ctx, "Recall").end(&err)
	return s.Store.Recall(ctx, account, key, since)
}

func (s *tracedStore) Forget(ctx context.Context, before time.Time, limit int) (_ int, err error) {
	defer s.span(&ctx, "Forget").end(&err)
	return s.Store.Forget(ctx, before, limit)
}

func (s *tracedStore) TakeQuota(ctx context.Context, q formsvc.QuotaQuery) (_ formsvc.QuotaGrant, err error) {
	defer s.span(&ctx, "TakeQuota").end(&err)
	return s.Store.TakeQuota(ctx, q)
}

func (s *tracedStore) ReturnQuota(ctx context.Context, list []formsvc.QuotaReturn) (err error) {
	defer s.span(&ctx, "ReturnQuota").end(&err)
	return s.Store.ReturnQuota(ctx, list)
}

func (s *tracedStore) QuotaUse(ctx context.Context, subject formsvc.ID, since time.Time) (_ []formsvc.QuotaUse, err error) {
	defer s.span(&ctx, "QuotaUse").end(&err)
	return s.Store.QuotaUse(ctx, subject, since)
}

func (s *tracedStore) PruneQuota(ctx context.Context, before time.Time, limit int) (_ int, err error) {
	defer s.span(&ctx, "PruneQuota").end(&err)
	return s.Store.PruneQuota(ctx, before, limit)
}

func (s *tracedStore) AppendAudit(ctx context.Context, entry formsvc.AuditEntry) (err error) {
	defer s.span(&ctx, "AppendAudit").end(&err)
	return s.Store.AppendAudit(ctx, entry)
}

func (s *tracedStore) Audit(ctx context.Context, q formsvc.AuditQuery) (_ formsvc.Page[formsvc.AuditEntry], err error) {
	defer s.span(&ctx, "Audit").end(&err)
	return s.Store.Audit(ctx, q)
}

func (s *tracedStore) CreateLink(ctx context.Context, link formsvc.Link, change formsvc.Change) (err error) {
	defer s.span(&ctx, "CreateLink").end(&err)
	return s.Store.CreateLink(ctx, link, change)
}

func (s *tracedStore) RedeemLink(
	ctx context.Context, hash [sha256.Size]byte, decide func(*formsvc.Link) (formsvc.Session, formsvc.Change, error),
) (_ formsvc.Session, err error) {
	defer s.span(&ctx, "RedeemLink").end(&err)
	return s.Store.RedeemLink(ctx, hash, decide)
}

func (s *tracedStore) SessionByHash(ctx context.Context, hash [sha256.Size]byte) (_ formsvc.Session, err error) {
	defer s.span(&ctx, "SessionByHash").end(&err)
	return s.Store.SessionByHash(ctx, hash)
}

func (s *tracedStore) EndSession(
	ctx context.Context, hash [sha256.Size]byte, decide func(*formsvc.Session) (formsvc.Change, error),
) (err error) {
	defer s.span(&ctx, "EndSession").end(&err)
	return s.Store.EndSession(ctx, hash, decide)
}

func (s *tracedStore) EndSessions(ctx context.Context, account formsvc.ID, change formsvc.Change) (err error) {
	defer s.span(&ctx, "EndSessions").end(&err)
	return s.Store.EndSessions(ctx, account, change)
}

func (s *tracedStore) PruneSessions(ctx context.Context, before time.Time, limit int) (_ int, err error) {
	defer s.span(&ctx, "PruneSessions").end(&err)
	return s.Store.PruneSessions(ctx, before, limit)
}

func (s *tracedStore) Identity(ctx context.Context) (_ formsvc.ID, err error) {
	defer s.span(&ctx, "Identity").end(&err)
	return s.Store.Identity(ctx)
}
