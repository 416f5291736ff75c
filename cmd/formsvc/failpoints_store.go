//go:build failpoints

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// store returns a store with failpoints. It can do all that s can which the packages
// ask for beyond the contract.
func (f *failpoints) store(s backend) backend {
	failing := &failingStore{backend: s, f: f}
	if scrubber, ok := s.(formsvc.Scrubber); ok {
		return scrubbingStore{failing, scrubber}
	}
	return failing
}

// A failingStore is a store with failpoints around what it writes and leases.
type failingStore struct {
	backend

	f *failpoints
}

// A scrubbingStore is a failingStore that overwrites what was removed.
type scrubbingStore struct {
	*failingStore
	formsvc.Scrubber
}

func (s *failingStore) CreateAccount(ctx context.Context, account formsvc.Account, keys []formsvc.Key, change formsvc.Change) error {
	return s.f.do(unitAccountCreate, func() error { return s.backend.CreateAccount(ctx, account, keys, change) })
}

func (s *failingStore) UpdateAccount(ctx context.Context, id formsvc.ID, decide func(*formsvc.Account) error) (formsvc.Account, error) {
	return making(s.f, unitAccountUpdate, func() (formsvc.Account, error) { return s.backend.UpdateAccount(ctx, id, decide) })
}

func (s *failingStore) CreateKey(ctx context.Context, key formsvc.Key, change formsvc.Change) error {
	return s.f.do(unitKeyCreate, func() error { return s.backend.CreateKey(ctx, key, change) })
}

func (s *failingStore) RevokeKey(ctx context.Context, account, id formsvc.ID, at time.Time, change formsvc.Change) error {
	return s.f.do(unitKeyRevoke, func() error { return s.backend.RevokeKey(ctx, account, id, at, change) })
}

func (s *failingStore) UseKeys(ctx context.Context, uses []formsvc.KeyUse) error {
	return s.f.do(unitKeyUse, func() error { return s.backend.UseKeys(ctx, uses) })
}

func (s *failingStore) CreateCampaign(ctx context.Context, campaign formsvc.Campaign, change formsvc.Change) error {
	return s.f.do(unitCampaignCreate, func() error { return s.backend.CreateCampaign(ctx, campaign, change) })
}

func (s *failingStore) UpdateCampaign(
	ctx context.Context, key formsvc.CampaignKey, decide func(*formsvc.Campaign) error,
) (formsvc.Campaign, error) {
	return making(s.f, unitCampaignUpdate, func() (formsvc.Campaign, error) { return s.backend.UpdateCampaign(ctx, key, decide) })
}

func (s *failingStore) CreateResponse(ctx context.Context, r formsvc.Response, campaignVersion int64, change formsvc.Change) error {
	return s.f.do(unitResponseCreate, func() error { return s.backend.CreateResponse(ctx, r, campaignVersion, change) })
}

func (s *failingStore) UpdateResponse(
	ctx context.Context, key formsvc.ResponseKey, decide func(*formsvc.Response) (formsvc.Change, error),
) (formsvc.Response, error) {
	return making(s.f, unitResponseUpdate, func() (formsvc.Response, error) { return s.backend.UpdateResponse(ctx, key, decide) })
}

func (s *failingStore) CreateFile(
	ctx context.Context, file formsvc.File, decide func(*formsvc.Response) (formsvc.Change, error),
) error {
	return s.f.do(unitFileCreate, func() error { return s.backend.CreateFile(ctx, file, decide) })
}

func (s *failingStore) BarFiles(ctx context.Context, ids []formsvc.ID) ([]formsvc.ID, error) {
	return making(s.f, unitFileBar, func() ([]formsvc.ID, error) { return s.backend.BarFiles(ctx, ids) })
}

func (s *failingStore) CreateComment(ctx context.Context, c formsvc.Comment, change formsvc.Change) error {
	return s.f.do(unitCommentCreate, func() error { return s.backend.CreateComment(ctx, c, change) })
}

func (s *failingStore) CreateSignature(
	ctx context.Context, sig formsvc.Signature, decide func(*formsvc.Response, *formsvc.Signature) (formsvc.Change, error),
) (formsvc.Signature, error) {
	return making(s.f, unitSignatureCreate, func() (formsvc.Signature, error) { return s.backend.CreateSignature(ctx, sig, decide) })
}

func (s *failingStore) Erase(ctx context.Context, e formsvc.Erasing, change formsvc.Change) (formsvc.Erased, error) {
	return making(s.f, unitErase, func() (formsvc.Erased, error) { return s.backend.Erase(ctx, e, change) })
}

func (s *failingStore) CreateWebhook(
	ctx context.Context, webhook formsvc.Webhook, limit int,
	decide func(stored *formsvc.Webhook, created bool) (formsvc.Change, error),
) (stored formsvc.Webhook, created bool, err error) {
	err = s.f.do(unitWebhookCreate, func() error {
		stored, created, err = s.backend.CreateWebhook(ctx, webhook, limit, decide)
		return err
	})
	return stored, created, err
}

func (s *failingStore) UpdateWebhook(
	ctx context.Context, key formsvc.WebhookKey, decide func(*formsvc.Webhook) (formsvc.Change, error),
) (formsvc.Webhook, error) {
	return making(s.f, unitWebhookUpdate, func() (formsvc.Webhook, error) { return s.backend.UpdateWebhook(ctx, key, decide) })
}

func (s *failingStore) DeleteWebhook(ctx context.Context, key formsvc.WebhookKey, change formsvc.Change) error {
	return s.f.do(unitWebhookDelete, func() error { return s.backend.DeleteWebhook(ctx, key, change) })
}

func (s *failingStore) CreateTest(
	ctx context.Context, key formsvc.WebhookKey, event formsvc.Event, decide func(*formsvc.Delivery) (formsvc.Change, error),
) (formsvc.Delivery, error) {
	return making(s.f, unitWebhookTest, func() (formsvc.Delivery, error) { return s.backend.CreateTest(ctx, key, event, decide) })
}

func (s *failingStore) Redeliver(
	ctx context.Context, key formsvc.DeliveryKey, at time.Time, decide func(*formsvc.Delivery) (formsvc.Change, error),
) (formsvc.Delivery, error) {
	return making(s.f, unitRedeliver, func() (formsvc.Delivery, error) { return s.backend.Redeliver(ctx, key, at, decide) })
}

func (s *failingStore) RedeliverFailed(
	ctx context.Context, q formsvc.RedeliverQuery, decide func(n int) (formsvc.Change, error),
) (int, error) {
	return making(s.f, unitRedeliverFailed, func() (int, error) { return s.backend.RedeliverFailed(ctx, q, decide) })
}

func (s *failingStore) Prune(ctx context.Context, before time.Time, limit int) (int, error) {
	return making(s.f, unitPrune, func() (int, error) { return s.backend.Prune(ctx, before, limit) })
}

func (s *failingStore) ClaimDigests(
	ctx context.Context, now time.Time, every, lease time.Duration, limit int,
) ([]formsvc.Digest, error) {
	return taking(s.f, unitDigestClaim, func() ([]formsvc.Digest, error) { return s.backend.ClaimDigests(ctx, now, every, lease, limit) })
}

func (s *failingStore) FinishDigest(ctx context.Context, d formsvc.Digest, at time.Time) error {
	return s.f.do(unitDigestFinish, func() error { return s.backend.FinishDigest(ctx, d, at) })
}

func (s *failingStore) Remember(ctx context.Context, record formsvc.IdempotencyRecord) error {
	return s.f.do(unitRemember, func() error { return s.backend.Remember(ctx, record) })
}

func (s *failingStore) Forget(ctx context.Context, before time.Time, limit int) (int, error) {
	return making(s.f, unitForget, func() (int, error) { return s.backend.Forget(ctx, before, limit) })
}

func (s *failingStore) TakeQuota(ctx context.Context, q formsvc.QuotaQuery) (formsvc.QuotaGrant, error) {
	return making(s.f, unitQuotaTake, func() (formsvc.QuotaGrant, error) { return s.backend.TakeQuota(ctx, q) })
}

func (s *failingStore) ReturnQuota(ctx context.Context, list []formsvc.QuotaReturn) error {
	return s.f.do(unitQuotaReturn, func() error { return s.backend.ReturnQuota(ctx, list) })
}

func (s *failingStore) PruneQuota(ctx context.Context, before time.Time, limit int) (int, error) {
	return making(s.f, unitQuotaPrune, func() (int, error) { return s.backend.PruneQuota(ctx, before, limit) })
}

func (s *failingStore) AppendAudit(ctx context.Context, entry formsvc.AuditEntry) error {
	return s.f.do(unitAuditAppend, func() error { return s.backend.AppendAudit(ctx, entry) })
}

func (s *failingStore) CreateLink(ctx context.Context, link formsvc.Link, change formsvc.Change) error {
	return s.f.do(unitLinkCreate, func() error { return s.backend.CreateLink(ctx, link, change) })
}

func (s *failingStore) RedeemLink(
	ctx context.Context, hash [sha256.Size]byte, decide func(*formsvc.Link) (formsvc.Session, formsvc.Change, error),
) (formsvc.Session, error) {
	return making(s.f, unitLinkRedeem, func() (formsvc.Session, error) { return s.backend.RedeemLink(ctx, hash, decide) })
}

func (s *failingStore) EndSession(
	ctx context.Context, hash [sha256.Size]byte, decide func(*formsvc.Session) (formsvc.Change, error),
) error {
	return s.f.do(unitSessionEnd, func() error { return s.backend.EndSession(ctx, hash, decide) })
}

func (s *failingStore) EndSessions(ctx context.Context, account formsvc.ID, change formsvc.Change) error {
	return s.f.do(unitSessionEndAll, func() error { return s.backend.EndSessions(ctx, account, change) })
}

func (s *failingStore) PruneSessions(ctx context.Context, before time.Time, limit int) (int, error) {
	return making(s.f, unitSessionPrune, func() (int, error) { return s.backend.PruneSessions(ctx, before, limit) })
}

func (s *failingStore) Ready(ctx context.Context, now time.Time) ([]delivery.Endpoint, error) {
	return taking(s.f, unitQueueReady, func() ([]delivery.Endpoint, error) { return s.backend.Ready(ctx, now) })
}

func (s *failingStore) Claim(ctx context.Context, req delivery.ClaimRequest) ([]delivery.Claim, error) {
	return taking(s.f, unitQueueClaim, func() ([]delivery.Claim, error) { return s.backend.Claim(ctx, req) })
}

func (s *failingStore) Payloads(ctx context.Context, events []string) (map[string]delivery.Payload, error) {
	return making(s.f, unitQueuePayloads, func() (map[string]delivery.Payload, error) { return s.backend.Payloads(ctx, events) })
}

func (s *failingStore) Finish(ctx context.Context, outcomes []delivery.Outcome) ([]bool, error) {
	return making(s.f, unitQueueFinish, func() ([]bool, error) { return s.backend.Finish(ctx, outcomes) })
}

func (s *failingStore) Failures(ctx context.Context, now, until time.Time, limit int) ([]delivery.Failure, error) {
	return taking(s.f, unitNoticeClaim, func() ([]delivery.Failure, error) { return s.backend.Failures(ctx, now, until, limit) })
}

func (s *failingStore) Noted(ctx context.Context, deliveries []string) error {
	return s.f.do(unitNoticeFinish, func() error { return s.backend.Noted(ctx, deliveries) })
}

// blobs returns a blob store with failpoints, which is a Cleaner if b is one. Without
// a blob store there is none afterwards.
func (f *failpoints) blobs(b blobstore.Store) blobstore.Store {
	if b == nil {
		return nil
	}
	failing := &failingBlobs{Store: b, f: f}
	if cleaner, ok := b.(blobstore.Cleaner); ok {
		return cleaningBlobs{failing, cleaner}
	}
	return failing
}

// failingBlobs are a blob store with failpoints around what it writes.
type failingBlobs struct {
	blobstore.Store

	f *failpoints
}

// Put also has a point at which all was read that the blob will have, unless it claims
// the blob store.
func (b *failingBlobs) Put(ctx context.Context, key string, r io.Reader) (int64, error) {
	if key == formsvc.MarkerKey {
		return making(b.f, unitBlobClaim, func() (int64, error) { return b.Store.Put(ctx, key, r) })
	}
	r = &failingReader{r: r, f: b.f}
	return making(b.f, unitBlobPut, func() (int64, error) { return b.Store.Put(ctx, key, r) })
}

func (b *failingBlobs) Delete(ctx context.Context, key string) error {
	return b.f.do(unitBlobDelete, func() error { return b.Store.Delete(ctx, key) })
}

// cleaningBlobs are failingBlobs of which what uploads left behind can be removed.
type cleaningBlobs struct {
	*failingBlobs

	cleaner blobstore.Cleaner
}

func (b cleaningBlobs) Clean(ctx context.Context, before time.Time) (int, error) {
	return making(b.f, unitBlobClean, func() (int, error) { return b.cleaner.Clean(ctx, before) })
}

// A failingReader reaches a point when it was read to its end, once.
type failingReader struct {
	r     io.Reader
	f     *failpoints
	ended bool
}

func (r *failingReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if errors.Is(err, io.EOF) && !r.ended {
		r.ended = true
		r.f.reach(unitBlobPut, middle)
	}
	return n, err
}
