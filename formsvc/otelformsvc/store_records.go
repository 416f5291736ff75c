package otelformsvc

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func (s *tracedStore) CreateAccount(
	ctx context.Context, account formsvc.Account, keys []formsvc.Key, change formsvc.Change,
) (err error) {
	defer s.span(&ctx, "CreateAccount").end(&err)
	return s.Store.CreateAccount(ctx, account, keys, change)
}

func (s *tracedStore) UpdateAccount(
	ctx context.Context, id formsvc.ID, decide func(*formsvc.Account) error,
) (_ formsvc.Account, err error) {
	defer s.span(&ctx, "UpdateAccount").end(&err)
	return s.Store.UpdateAccount(ctx, id, decide)
}

func (s *tracedStore) Account(ctx context.Context, id formsvc.ID) (_ formsvc.Account, err error) {
	defer s.span(&ctx, "Account").end(&err)
	return s.Store.Account(ctx, id)
}

func (s *tracedStore) AccountByName(ctx context.Context, name string) (_ formsvc.Account, err error) {
	defer s.span(&ctx, "AccountByName").end(&err)
	return s.Store.AccountByName(ctx, name)
}

func (s *tracedStore) Accounts(ctx context.Context) (_ []formsvc.Account, err error) {
	defer s.span(&ctx, "Accounts").end(&err)
	return s.Store.Accounts(ctx)
}

func (s *tracedStore) CreateKey(ctx context.Context, key formsvc.Key, change formsvc.Change) (err error) {
	defer s.span(&ctx, "CreateKey").end(&err)
	return s.Store.CreateKey(ctx, key, change)
}

func (s *tracedStore) KeyByHash(ctx context.Context, hash [sha256.Size]byte) (_ formsvc.Key, err error) {
	defer s.span(&ctx, "KeyByHash").end(&err)
	return s.Store.KeyByHash(ctx, hash)
}

func (s *tracedStore) Keys(ctx context.Context, account formsvc.ID) (_ []formsvc.Key, err error) {
	defer s.span(&ctx, "Keys").end(&err)
	return s.Store.Keys(ctx, account)
}

func (s *tracedStore) RevokeKey(
	ctx context.Context, account, id formsvc.ID, at time.Time, change formsvc.Change,
) (err error) {
	defer s.span(&ctx, "RevokeKey").end(&err)
	return s.Store.RevokeKey(ctx, account, id, at, change)
}

func (s *tracedStore) UseKeys(ctx context.Context, uses []formsvc.KeyUse) (err error) {
	defer s.span(&ctx, "UseKeys").end(&err)
	return s.Store.UseKeys(ctx, uses)
}

func (s *tracedStore) CreateCampaign(ctx context.Context, campaign formsvc.Campaign, change formsvc.Change) (err error) {
	defer s.span(&ctx, "CreateCampaign").end(&err)
	return s.Store.CreateCampaign(ctx, campaign, change)
}

func (s *tracedStore) UpdateCampaign(
	ctx context.Context, key formsvc.CampaignKey, decide func(*formsvc.Campaign) error,
) (_ formsvc.Campaign, err error) {
	defer s.span(&ctx, "UpdateCampaign").end(&err)
	return s.Store.UpdateCampaign(ctx, key, decide)
}

func (s *tracedStore) Campaign(ctx context.Context, key formsvc.CampaignKey) (_ formsvc.Campaign, err error) {
	defer s.span(&ctx, "Campaign").end(&err)
	return s.Store.Campaign(ctx, key)
}

func (s *tracedStore) Campaigns(ctx context.Context, q formsvc.CampaignQuery) (_ formsvc.Page[formsvc.Campaign], err error) {
	defer s.span(&ctx, "Campaigns").end(&err)
	return s.Store.Campaigns(ctx, q)
}

func (s *tracedStore) CreateResponse(
	ctx context.Context, r formsvc.Response, campaignVersion int64, change formsvc.Change,
) (err error) {
	defer s.span(&ctx, "CreateResponse").end(&err)
	return s.Store.CreateResponse(ctx, r, campaignVersion, change)
}

func (s *tracedStore) UpdateResponse(
	ctx context.Context, key formsvc.ResponseKey, decide func(*formsvc.Response) (formsvc.Change, error),
) (_ formsvc.Response, err error) {
	defer s.span(&ctx, "UpdateResponse").end(&err)
	return s.Store.UpdateResponse(ctx, key, decide)
}

func (s *tracedStore) Response(ctx context.Context, key formsvc.ResponseKey) (_ formsvc.Response, err error) {
	defer s.span(&ctx, "Response").end(&err)
	return s.Store.Response(ctx, key)
}

func (s *tracedStore) Responses(ctx context.Context, q formsvc.ResponseQuery) (_ formsvc.Page[formsvc.Response], err error) {
	defer s.span(&ctx, "Responses").end(&err)
	return s.Store.Responses(ctx, q)
}

func (s *tracedStore) DeleteResponse(ctx context.Context, key formsvc.ResponseKey) (_ []formsvc.ID, err error) {
	defer s.span(&ctx, "DeleteResponse").end(&err)
	return s.Store.DeleteResponse(ctx, key)
}

func (s *tracedStore) CreateFile(
	ctx context.Context, f formsvc.File, decide func(*formsvc.Response) (formsvc.Change, error),
) (err error) {
	defer s.span(&ctx, "CreateFile").end(&err)
	return s.Store.CreateFile(ctx, f, decide)
}

func (s *tracedStore) File(ctx context.Context, key formsvc.FileKey) (_ formsvc.File, err error) {
	defer s.span(&ctx, "File").end(&err)
	return s.Store.File(ctx, key)
}

func (s *tracedStore) Files(ctx context.Context, q formsvc.FileQuery) (_ formsvc.Page[formsvc.File], err error) {
	defer s.span(&ctx, "Files").end(&err)
	return s.Store.Files(ctx, q)
}

func (s *tracedStore) AllFiles(ctx context.Context, after formsvc.ID, limit int) (_ []formsvc.File, err error) {
	defer s.span(&ctx, "AllFiles").end(&err)
	return s.Store.AllFiles(ctx, after, limit)
}

func (s *tracedStore) UnknownFiles(ctx context.Context, ids []formsvc.ID) (_ []formsvc.ID, err error) {
	defer s.span(&ctx, "UnknownFiles").end(&err)
	return s.Store.UnknownFiles(ctx, ids)
}

func (s *tracedStore) BarFiles(ctx context.Context, ids []formsvc.ID) (_ []formsvc.ID, err error) {
	defer s.span(&ctx, "BarFiles").end(&err)
	return s.Store.BarFiles(ctx, ids)
}

func (s *tracedStore) CreateComment(ctx context.Context, c formsvc.Comment, change formsvc.Change) (err error) {
	defer s.span(&ctx, "CreateComment").end(&err)
	return s.Store.CreateComment(ctx, c, change)
}

func (s *tracedStore) Comments(ctx context.Context, q formsvc.CommentQuery) (_ formsvc.Page[formsvc.Comment], err error) {
	defer s.span(&ctx, "Comments").end(&err)
	return s.Store.Comments(ctx, q)
}

func (s *tracedStore) CreateSignature(
	ctx context.Context, sig formsvc.Signature, decide func(*formsvc.Response, *formsvc.Signature) (formsvc.Change, error),
) (_ formsvc.Signature, err error) {
	defer s.span(&ctx, "CreateSignature").end(&err)
	return s.Store.CreateSignature(ctx, sig, decide)
}

func (s *tracedStore) Signatures(
	ctx context.Context, q formsvc.SignatureQuery,
) (_ formsvc.Page[formsvc.Signature], err error) {
	defer s.span(&ctx, "Signatures").end(&err)
	return s.Store.Signatures(ctx, q)
}

func (s *tracedStore) SignaturesBy(
	ctx context.Context, account formsvc.ID, email string, after formsvc.ID, limit int,
) (_ []formsvc.Signature, err error) {
	defer s.span(&ctx, "SignaturesBy").end(&err)
	return s.Store.SignaturesBy(ctx, account, email, after, limit)
}

func (s *tracedStore) Erase(ctx context.Context, e formsvc.Erasing, change formsvc.Change) (_ formsvc.Erased, err error) {
	defer s.span(&ctx, "Erase").end(&err)
	return s.Store.Erase(ctx, e, change)
}

func (s *tracedStore) CountErasure(ctx context.Context, e formsvc.Erasing) (_ formsvc.Erased, err error) {
	defer s.span(&ctx, "CountErasure").end(&err)
	return s.Store.CountErasure(ctx, e)
}
