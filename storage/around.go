package storage

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A Func is called in place of a store's method. It calls next once, perhaps with another
// context, and returns next's error or its own. method is the name of the method, such as
// CreateResponse. n is the number of records returned: 1 for methods that don't return a
// list, and undefined after an error. A Func must be safe for concurrent use, as the
// store is.
type Func func(ctx context.Context, method string, next func(context.Context) (n int, err error)) error

// Around returns a store that calls around in place of each method of next: to trace it,
// to measure it, or to inject failures. Notify can't fail and is forwarded directly.
func Around(next formsvc.Store, around Func) formsvc.Store { return &aroundStore{next, around} }

// AroundQueue does the same as [Around] for a queue.
func AroundQueue(next delivery.Queue, around Func) delivery.Queue { return &aroundQueue{next, around} }

// Every method is written out: a method added to the contract has to be added here.
type aroundStore struct {
	next   formsvc.Store
	around Func
}

type aroundQueue struct {
	next   delivery.Queue
	around Func
}

// returning calls a method that returns a value; n counts the records in it.
func returning[T any](
	ctx context.Context, around Func, method string, n func(T) int, call func(context.Context) (T, error),
) (value T, err error) {
	err = around(ctx, method, func(ctx context.Context) (int, error) {
		var err error
		value, err = call(ctx)
		return n(value), err
	})
	return value, err
}

func single[T any](ctx context.Context, around Func, method string, call func(context.Context) (T, error)) (T, error) {
	return returning(ctx, around, method, func(T) int { return 1 }, call)
}

func count(ctx context.Context, around Func, method string, call func(context.Context) (int, error)) (int, error) {
	return returning(ctx, around, method, func(n int) int { return n }, call)
}

func many[T any](ctx context.Context, around Func, method string, call func(context.Context) ([]T, error)) ([]T, error) {
	return returning(ctx, around, method, func(list []T) int { return len(list) }, call)
}

func page[T any](
	ctx context.Context, around Func, method string, call func(context.Context) (formsvc.Page[T], error),
) (formsvc.Page[T], error) {
	return returning(ctx, around, method, func(p formsvc.Page[T]) int { return len(p.Items) }, call)
}

func (s *aroundStore) CreateAccount(ctx context.Context, account formsvc.Account, keys []formsvc.Key, change formsvc.Change) error {
	return s.around(ctx, "CreateAccount", func(ctx context.Context) (int, error) {
		return 1, s.next.CreateAccount(ctx, account, keys, change)
	})
}

func (s *aroundStore) UpdateAccount(ctx context.Context, id formsvc.ID, decide func(*formsvc.Account) error) (formsvc.Account, error) {
	return single(ctx, s.around, "UpdateAccount", func(ctx context.Context) (formsvc.Account, error) {
		return s.next.UpdateAccount(ctx, id, decide)
	})
}

func (s *aroundStore) Account(ctx context.Context, id formsvc.ID) (formsvc.Account, error) {
	return single(ctx, s.around, "Account", func(ctx context.Context) (formsvc.Account, error) { return s.next.Account(ctx, id) })
}

func (s *aroundStore) AccountByName(ctx context.Context, name string) (formsvc.Account, error) {
	return single(ctx, s.around, "AccountByName", func(ctx context.Context) (formsvc.Account, error) {
		return s.next.AccountByName(ctx, name)
	})
}

func (s *aroundStore) Accounts(ctx context.Context) ([]formsvc.Account, error) {
	return many(ctx, s.around, "Accounts", func(ctx context.Context) ([]formsvc.Account, error) { return s.next.Accounts(ctx) })
}

func (s *aroundStore) CreateKey(ctx context.Context, key formsvc.Key, change formsvc.Change) error {
	return s.around(ctx, "CreateKey", func(ctx context.Context) (int, error) { return 1, s.next.CreateKey(ctx, key, change) })
}

func (s *aroundStore) KeyByHash(ctx context.Context, hash [sha256.Size]byte) (formsvc.Key, error) {
	return single(ctx, s.around, "KeyByHash", func(ctx context.Context) (formsvc.Key, error) { return s.next.KeyByHash(ctx, hash) })
}

func (s *aroundStore) Keys(ctx context.Context, account formsvc.ID) ([]formsvc.Key, error) {
	return many(ctx, s.around, "Keys", func(ctx context.Context) ([]formsvc.Key, error) { return s.next.Keys(ctx, account) })
}

func (s *aroundStore) RevokeKey(ctx context.Context, account, id formsvc.ID, at time.Time, change formsvc.Change) error {
	return s.around(ctx, "RevokeKey", func(ctx context.Context) (int, error) { return 1, s.next.RevokeKey(ctx, account, id, at, change) })
}

func (s *aroundStore) UseKeys(ctx context.Context, uses []formsvc.KeyUse) error {
	return s.around(ctx, "UseKeys", func(ctx context.Context) (int, error) { return 1, s.next.UseKeys(ctx, uses) })
}

func (s *aroundStore) CreateCampaign(ctx context.Context, campaign formsvc.Campaign, change formsvc.Change) error {
	return s.around(ctx, "CreateCampaign", func(ctx context.Context) (int, error) {
		return 1, s.next.CreateCampaign(ctx, campaign, change)
	})
}

func (s *aroundStore) UpdateCampaign(
	ctx context.Context, key formsvc.CampaignKey, decide func(*formsvc.Campaign) error,
) (formsvc.Campaign, error) {
	return single(ctx, s.around, "UpdateCampaign", func(ctx context.Context) (formsvc.Campaign, error) {
		return s.next.UpdateCampaign(ctx, key, decide)
	})
}

func (s *aroundStore) Campaign(ctx context.Context, key formsvc.CampaignKey) (formsvc.Campaign, error) {
	return single(ctx, s.around, "Campaign", func(ctx context.Context) (formsvc.Campaign, error) { return s.next.Campaign(ctx, key) })
}

func (s *aroundStore) Campaigns(ctx context.Context, q formsvc.CampaignQuery) (formsvc.Page[formsvc.Campaign], error) {
	return page(ctx, s.around, "Campaigns", func(ctx context.Context) (formsvc.Page[formsvc.Campaign], error) {
		return s.next.Campaigns(ctx, q)
	})
}

func (s *aroundStore) CreateResponse(ctx context.Context, r formsvc.Response, campaignVersion int64, change formsvc.Change) error {
	return s.around(ctx, "CreateResponse", func(ctx context.Context) (int, error) {
		return 1, s.next.CreateResponse(ctx, r, campaignVersion, change)
	})
}

func (s *aroundStore) UpdateResponse(
	ctx context.Context, key formsvc.ResponseKey, decide func(*formsvc.Response) (formsvc.Change, error),
) (formsvc.Response, error) {
	return single(ctx, s.around, "UpdateResponse", func(ctx context.Context) (formsvc.Response, error) {
		return s.next.UpdateResponse(ctx, key, decide)
	})
}

func (s *aroundStore) Response(ctx context.Context, key formsvc.ResponseKey) (formsvc.Response, error) {
	return single(ctx, s.around, "Response", func(ctx context.Context) (formsvc.Response, error) { return s.next.Response(ctx, key) })
}

func (s *aroundStore) Responses(ctx context.Context, q formsvc.ResponseQuery) (formsvc.Page[formsvc.Response], error) {
	return page(ctx, s.around, "Responses", func(ctx context.Context) (formsvc.Page[formsvc.Response], error) {
		return s.next.Responses(ctx, q)
	})
}

func (s *aroundStore) DeleteResponse(
	ctx context.Context, key formsvc.ResponseKey, decide func(*formsvc.Response) (formsvc.Change, error),
) ([]formsvc.ID, error) {
	return many(ctx, s.around, "DeleteResponse", func(ctx context.Context) ([]formsvc.ID, error) {
		return s.next.DeleteResponse(ctx, key, decide)
	})
}

func (s *aroundStore) CreateComment(ctx context.Context, c formsvc.Comment, change formsvc.Change) error {
	return s.around(ctx, "CreateComment", func(ctx context.Context) (int, error) { return 1, s.next.CreateComment(ctx, c, change) })
}

func (s *aroundStore) Comments(ctx context.Context, q formsvc.CommentQuery) (formsvc.Page[formsvc.Comment], error) {
	return page(ctx, s.around, "Comments", func(ctx context.Context) (formsvc.Page[formsvc.Comment], error) {
		return s.next.Comments(ctx, q)
	})
}

func (s *aroundStore) CreateSignature(
	ctx context.Context, sig formsvc.Signature, decide func(*formsvc.Response, *formsvc.Signature) (formsvc.Change, error),
) (formsvc.Signature, error) {
	return single(ctx, s.around, "CreateSignature", func(ctx context.Context) (formsvc.Signature, error) {
		return s.next.CreateSignature(ctx, sig, decide)
	})
}

func (s *aroundStore) Signatures(ctx context.Context, q formsvc.SignatureQuery) (formsvc.Page[formsvc.Signature], error) {
	return page(ctx, s.around, "Signatures", func(ctx context.Context) (formsvc.Page[formsvc.Signature], error) {
		return s.next.Signatures(ctx, q)
	})
}

func (s *aroundStore) CreateFile(ctx context.Context, f formsvc.File, decide func(*formsvc.Response) (formsvc.Change, error)) error {
	return s.around(ctx, "CreateFile", func(ctx context.Context) (int, error) { return 1, s.next.CreateFile(ctx, f, decide) })
}

func (s *aroundStore) File(ctx context.Context, key formsvc.FileKey) (formsvc.File, error) {
	return single(ctx, s.around, "File", func(ctx context.Context) (formsvc.File, error) { return s.next.File(ctx, key) })
}

func (s *aroundStore) Files(ctx context.Context, q formsvc.FileQuery) (formsvc.Page[formsvc.File], error) {
	return page(ctx, s.around, "Files", func(ctx context.Context) (formsvc.Page[formsvc.File], error) { return s.next.Files(ctx, q) })
}

func (s *aroundStore) UnknownFiles(ctx context.Context, ids []formsvc.ID) ([]formsvc.ID, error) {
	return many(ctx, s.around, "UnknownFiles", func(ctx context.Context) ([]formsvc.ID, error) { return s.next.UnknownFiles(ctx, ids) })
}

func (s *aroundStore) BarFiles(ctx context.Context, ids []formsvc.ID) ([]formsvc.ID, error) {
	return many(ctx, s.around, "BarFiles", func(ctx context.Context) ([]formsvc.ID, error) { return s.next.BarFiles(ctx, ids) })
}

func (s *aroundStore) CreateWebhook(
	ctx context.Context, webhook formsvc.Webhook, limit int, decide func(stored *formsvc.Webhook, created bool) (formsvc.Change, error),
) (stored formsvc.Webhook, created bool, err error) {
	err = s.around(ctx, "CreateWebhook", func(ctx context.Context) (int, error) {
		stored, created, err = s.next.CreateWebhook(ctx, webhook, limit, decide)
		return 1, err
	})
	return stored, created, err
}

func (s *aroundStore) UpdateWebhook(
	ctx context.Context, key formsvc.WebhookKey, decide func(*formsvc.Webhook) (formsvc.Change, error),
) (formsvc.Webhook, error) {
	return single(ctx, s.around, "UpdateWebhook", func(ctx context.Context) (formsvc.Webhook, error) {
		return s.next.UpdateWebhook(ctx, key, decide)
	})
}

func (s *aroundStore) Webhook(ctx context.Context, key formsvc.WebhookKey) (formsvc.Webhook, error) {
	return single(ctx, s.around, "Webhook", func(ctx context.Context) (formsvc.Webhook, error) { return s.next.Webhook(ctx, key) })
}

func (s *aroundStore) Webhooks(ctx context.Context, account formsvc.ID) ([]formsvc.Webhook, error) {
	return many(ctx, s.around, "Webhooks", func(ctx context.Context) ([]formsvc.Webhook, error) { return s.next.Webhooks(ctx, account) })
}

func (s *aroundStore) DeleteWebhook(ctx context.Context, key formsvc.WebhookKey, change formsvc.Change) error {
	return s.around(ctx, "DeleteWebhook", func(ctx context.Context) (int, error) { return 1, s.next.DeleteWebhook(ctx, key, change) })
}

func (s *aroundStore) Deliveries(ctx context.Context, q formsvc.DeliveryQuery) (formsvc.Page[formsvc.Delivery], error) {
	return page(ctx, s.around, "Deliveries", func(ctx context.Context) (formsvc.Page[formsvc.Delivery], error) {
		return s.next.Deliveries(ctx, q)
	})
}

func (s *aroundStore) Delivery(ctx context.Context, key formsvc.DeliveryKey) (formsvc.Delivery, error) {
	return single(ctx, s.around, "Delivery", func(ctx context.Context) (formsvc.Delivery, error) { return s.next.Delivery(ctx, key) })
}

func (s *aroundStore) Redeliver(
	ctx context.Context, key formsvc.DeliveryKey, at time.Time, decide func(*formsvc.Delivery) (formsvc.Change, error),
) (formsvc.Delivery, error) {
	return single(ctx, s.around, "Redeliver", func(ctx context.Context) (formsvc.Delivery, error) {
		return s.next.Redeliver(ctx, key, at, decide)
	})
}

func (s *aroundStore) RedeliverFailed(
	ctx context.Context, q formsvc.RedeliverQuery, decide func(n int) (formsvc.Change, error),
) (int, error) {
	return count(ctx, s.around, "RedeliverFailed", func(ctx context.Context) (int, error) { return s.next.RedeliverFailed(ctx, q, decide) })
}

func (s *aroundStore) CreateTest(
	ctx context.Context, key formsvc.WebhookKey, event formsvc.Event, decide func(*formsvc.Delivery) (formsvc.Change, error),
) (formsvc.Delivery, error) {
	return single(ctx, s.around, "CreateTest", func(ctx context.Context) (formsvc.Delivery, error) {
		return s.next.CreateTest(ctx, key, event, decide)
	})
}

func (s *aroundStore) QueueStats(ctx context.Context, q formsvc.QueueQuery) (formsvc.QueueStats, error) {
	return single(ctx, s.around, "QueueStats", func(ctx context.Context) (formsvc.QueueStats, error) { return s.next.QueueStats(ctx, q) })
}

func (s *aroundStore) Events(ctx context.Context, q formsvc.EventQuery) (formsvc.EventPage, error) {
	return single(ctx, s.around, "Events", func(ctx context.Context) (formsvc.EventPage, error) { return s.next.Events(ctx, q) })
}

func (s *aroundStore) Event(ctx context.Context, account, id formsvc.ID) (formsvc.Event, error) {
	return single(ctx, s.around, "Event", func(ctx context.Context) (formsvc.Event, error) { return s.next.Event(ctx, account, id) })
}

func (s *aroundStore) RecentEvents(ctx context.Context, q formsvc.RecentQuery) ([]formsvc.Event, error) {
	return many(ctx, s.around, "RecentEvents", func(ctx context.Context) ([]formsvc.Event, error) { return s.next.RecentEvents(ctx, q) })
}

func (s *aroundStore) EventsAbout(ctx context.Context, key formsvc.ResponseKey, limit int) ([]formsvc.Event, error) {
	return many(ctx, s.around, "EventsAbout", func(ctx context.Context) ([]formsvc.Event, error) {
		return s.next.EventsAbout(ctx, key, limit)
	})
}

func (s *aroundStore) Notices(ctx context.Context, q formsvc.NoticeQuery) (formsvc.Page[formsvc.Notice], error) {
	return page(ctx, s.around, "Notices", func(ctx context.Context) (formsvc.Page[formsvc.Notice], error) { return s.next.Notices(ctx, q) })
}

func (s *aroundStore) ClaimDigests(ctx context.Context, now time.Time, every, lease time.Duration, limit int) ([]formsvc.Digest, error) {
	return many(ctx, s.around, "ClaimDigests", func(ctx context.Context) ([]formsvc.Digest, error) {
		return s.next.ClaimDigests(ctx, now, every, lease, limit)
	})
}

func (s *aroundStore) FinishDigest(ctx context.Context, d formsvc.Digest, at time.Time) error {
	return s.around(ctx, "FinishDigest", func(ctx context.Context) (int, error) { return 1, s.next.FinishDigest(ctx, d, at) })
}

func (s *aroundStore) Note(ctx context.Context, change formsvc.Change) error {
	return s.around(ctx, "Note", func(ctx context.Context) (int, error) { return 1, s.next.Note(ctx, change) })
}

func (s *aroundStore) Recall(ctx context.Context, account formsvc.ID, key string, since time.Time) (formsvc.IdempotencyRecord, error) {
	return single(ctx, s.around, "Recall", func(ctx context.Context) (formsvc.IdempotencyRecord, error) {
		return s.next.Recall(ctx, account, key, since)
	})
}

func (s *aroundStore) Audit(ctx context.Context, q formsvc.AuditQuery) (formsvc.Page[formsvc.AuditEntry], error) {
	return page(ctx, s.around, "Audit", func(ctx context.Context) (formsvc.Page[formsvc.AuditEntry], error) { return s.next.Audit(ctx, q) })
}

func (s *aroundStore) TakeQuota(ctx context.Context, q formsvc.QuotaQuery) (formsvc.QuotaGrant, error) {
	return single(ctx, s.around, "TakeQuota", func(ctx context.Context) (formsvc.QuotaGrant, error) { return s.next.TakeQuota(ctx, q) })
}

func (s *aroundStore) ReturnQuota(ctx context.Context, list []formsvc.QuotaReturn) error {
	return s.around(ctx, "ReturnQuota", func(ctx context.Context) (int, error) { return 1, s.next.ReturnQuota(ctx, list) })
}

func (s *aroundStore) QuotaUse(ctx context.Context, subject formsvc.ID, since time.Time) ([]formsvc.QuotaUse, error) {
	return many(ctx, s.around, "QuotaUse", func(ctx context.Context) ([]formsvc.QuotaUse, error) {
		return s.next.QuotaUse(ctx, subject, since)
	})
}

func (s *aroundStore) CreateLink(ctx context.Context, link formsvc.Link, change formsvc.Change) error {
	return s.around(ctx, "CreateLink", func(ctx context.Context) (int, error) { return 1, s.next.CreateLink(ctx, link, change) })
}

func (s *aroundStore) RedeemLink(
	ctx context.Context, hash [sha256.Size]byte, decide func(*formsvc.Link) (formsvc.Session, formsvc.Change, error),
) (formsvc.Session, error) {
	return single(ctx, s.around, "RedeemLink", func(ctx context.Context) (formsvc.Session, error) {
		return s.next.RedeemLink(ctx, hash, decide)
	})
}

func (s *aroundStore) SessionByHash(ctx context.Context, hash [sha256.Size]byte) (formsvc.Session, error) {
	return single(ctx, s.around, "SessionByHash", func(ctx context.Context) (formsvc.Session, error) {
		return s.next.SessionByHash(ctx, hash)
	})
}

func (s *aroundStore) EndSessions(ctx context.Context, q formsvc.SessionQuery, change formsvc.Change) error {
	return s.around(ctx, "EndSessions", func(ctx context.Context) (int, error) { return 1, s.next.EndSessions(ctx, q, change) })
}

func (s *aroundStore) Prune(ctx context.Context, what formsvc.Prunable, before time.Time, limit int) (int, error) {
	return count(ctx, s.around, "Prune", func(ctx context.Context) (int, error) { return s.next.Prune(ctx, what, before, limit) })
}

func (s *aroundStore) Erase(ctx context.Context, e formsvc.Erasing, change formsvc.Change) (formsvc.Erased, error) {
	return single(ctx, s.around, "Erase", func(ctx context.Context) (formsvc.Erased, error) { return s.next.Erase(ctx, e, change) })
}

func (s *aroundStore) Scrub(ctx context.Context) error {
	return s.around(ctx, "Scrub", func(ctx context.Context) (int, error) { return 1, s.next.Scrub(ctx) })
}

func (s *aroundStore) Identity(ctx context.Context) (formsvc.ID, error) {
	return single(ctx, s.around, "Identity", func(ctx context.Context) (formsvc.ID, error) { return s.next.Identity(ctx) })
}

func (s *aroundStore) Notify() { s.next.Notify() }

func (s *aroundQueue) Ready(ctx context.Context, now time.Time) ([]delivery.Endpoint, error) {
	return many(ctx, s.around, "Ready", func(ctx context.Context) ([]delivery.Endpoint, error) { return s.next.Ready(ctx, now) })
}

func (s *aroundQueue) Claim(ctx context.Context, req delivery.ClaimRequest) ([]delivery.Claim, error) {
	return many(ctx, s.around, "Claim", func(ctx context.Context) ([]delivery.Claim, error) { return s.next.Claim(ctx, req) })
}

func (s *aroundQueue) Payloads(ctx context.Context, events []string) (map[string]delivery.Payload, error) {
	return single(ctx, s.around, "Payloads", func(ctx context.Context) (map[string]delivery.Payload, error) {
		return s.next.Payloads(ctx, events)
	})
}

func (s *aroundQueue) Finish(ctx context.Context, outcomes []delivery.Outcome) ([]bool, error) {
	return many(ctx, s.around, "Finish", func(ctx context.Context) ([]bool, error) { return s.next.Finish(ctx, outcomes) })
}

func (s *aroundQueue) Wait(ctx context.Context, d time.Duration) error {
	return s.around(ctx, "Wait", func(ctx context.Context) (int, error) { return 1, s.next.Wait(ctx, d) })
}

func (s *aroundQueue) Failures(ctx context.Context, now, until time.Time, limit int) ([]delivery.Failure, error) {
	return many(ctx, s.around, "Failures", func(ctx context.Context) ([]delivery.Failure, error) {
		return s.next.Failures(ctx, now, until, limit)
	})
}

func (s *aroundQueue) Noted(ctx context.Context, deliveries []string) error {
	return s.around(ctx, "Noted", func(ctx context.Context) (int, error) { return 1, s.next.Noted(ctx, deliveries) })
}
