package bunstore

import (
	"cmp"
	"context"
	"errors"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

type signatureRow struct {
	bun.BaseModel `bun:"table:formsvc_signatures,alias:g"`

	ID         ID `bun:",pk"`
	AccountID  ID
	CampaignID ID
	ResponseID ID
	Email      string
	Folded     string // see formsvc.FoldEmail
	FirstName  string
	LastName   string
	FileID     ID
	Provider   string
	SHA256     []byte `bun:"sha256"`
	SignedAt   int64
	CreatedAt  int64
}

// newSignatureRow checks a signature and returns its row.
func newSignatureRow(sig *formsvc.Signature) (*signatureRow, error) {
	u := &sig.Signer
	// The file is optional.
	if err := errors.Join(checkIDs(sig.ID, cmp.Or(sig.FileID, sig.ID)), formsvc.CheckText(u.Email, u.FirstName, u.LastName, sig.Provider)); err != nil {
		return nil, err
	}
	return &signatureRow{
		ID: ID(sig.ID), AccountID: ID(sig.AccountID), CampaignID: ID(sig.CampaignID),
		ResponseID: ID(sig.ResponseID), Email: u.Email, Folded: formsvc.FoldEmail(u.Email), FirstName: u.FirstName,
		LastName: u.LastName, FileID: ID(sig.FileID), Provider: sig.Provider, SHA256: sig.DocumentSHA256[:],
		SignedAt: micros(sig.SignedAt), CreatedAt: micros(sig.CreatedAt),
	}, nil
}

func (r *signatureRow) signature() formsvc.Signature {
	sig := formsvc.Signature{
		ID: formsvc.ID(r.ID), AccountID: formsvc.ID(r.AccountID), CampaignID: formsvc.ID(r.CampaignID),
		ResponseID: formsvc.ID(r.ResponseID),
		Signer:     formsvc.User{Email: r.Email, FirstName: r.FirstName, LastName: r.LastName},
		FileID:     formsvc.ID(r.FileID), Provider: r.Provider,
		SignedAt: fromMicros(r.SignedAt), CreatedAt: fromMicros(r.CreatedAt),
	}
	copy(sig.DocumentSHA256[:], r.SHA256)
	return sig
}

// CreateSignature implements formsvc.Store.
func (s *Store) CreateSignature(
	ctx context.Context, sig formsvc.Signature, decide func(*formsvc.Response, *formsvc.Signature) (formsvc.Change, error),
) (formsvc.Signature, error) {
	key := formsvc.ResponseKey{AccountID: sig.AccountID, CampaignID: sig.CampaignID, ID: sig.ResponseID}
	row, err := newSignatureRow(&sig)
	if err != nil {
		return formsvc.Signature{}, err
	}
	err = s.write(ctx, ids(key.AccountID, key.CampaignID, key.ID), nil, func(ctx context.Context, c *Tx) (err error) {
		// The lock keeps the answers from changing until the signature is written.
		r, err := s.touchedResponse(ctx, c, key)
		if err != nil {
			return err
		}
		given := sig
		// Apply the change first, as in CreateComment.
		err = decided(ctx, s, c, &r, func(r *formsvc.Response) (formsvc.Change, error) { return decide(r, &given) })
		if err == nil {
			row.SHA256 = given.DocumentSHA256[:]
			_, err = s.build.NewInsert().Conn(c).Model(row).Exec(ctx)
		}
		return err
	})
	if err != nil {
		return formsvc.Signature{}, err
	}
	return row.signature(), nil
}

// Signatures implements formsvc.Store.
func (s *Store) Signatures(
	ctx context.Context, key formsvc.ResponseKey, page formsvc.PageQuery,
) (formsvc.Page[formsvc.Signature], error) {
	return pageOfResponse(ctx, s, "g", key, page, (*signatureRow).signature, sizeless)
}

// SignaturesBy implements formsvc.Store.
func (s *Store) SignaturesBy(
	ctx context.Context, account formsvc.ID, email string, page formsvc.PageQuery,
) (formsvc.Page[formsvc.Signature], error) {
	if err := formsvc.CheckText(email); err != nil {
		return formsvc.Page[formsvc.Signature]{}, err
	}
	return pageOf(ctx, s, "g.id", page, true, func(sel *bun.SelectQuery) *bun.SelectQuery {
		return sel.Where("g.account_id = ? AND g.folded = ?", ID(account), formsvc.FoldEmail(email))
	}, sure((*signatureRow).signature), sizeless)
}
