package memory

import (
	"context"
	"fmt"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateSignature implements [formsvc.Store].
func (s *Store) CreateSignature(
	ctx context.Context, sig formsvc.Signature, decide func(*formsvc.Response, *formsvc.Signature) (formsvc.Change, error),
) (formsvc.Signature, error) {
	if sig.FileID != "" && !sig.FileID.Valid() {
		return formsvc.Signature{}, fmt.Errorf("memory: a file's identifier is not a canonical UUID: %w", formsvc.ErrInvalid)
	}
	sig, err := stored(&sig)
	if err != nil {
		return formsvc.Signature{}, err
	}
	err = s.write(ctx, func() (change formsvc.Change, err error) {
		row, err := s.response(formsvc.ResponseKey{AccountID: sig.AccountID, CampaignID: sig.CampaignID, ID: sig.ResponseID})
		if err != nil {
			return change, err
		}
		given := sig
		change, err = decide(new(row.Response), &given)
		sig.DocumentSHA256 = given.DocumentSHA256
		return change, err
	}, func() error { return s.signed.add(sig.ID, &sig) })
	return sig, err
}

// Signatures implements [formsvc.Store].
func (s *Store) Signatures(
	ctx context.Context, key formsvc.ResponseKey, q formsvc.PageQuery,
) (formsvc.Page[formsvc.Signature], error) {
	return read(ctx, s, s.response, key, func(r *response) formsvc.Page[formsvc.Signature] {
		return page(&s.signed, q, false, func(sig *formsvc.Signature) bool { return r.has(sig.CampaignID, sig.ResponseID) }, copyOf)
	})
}

// SignaturesBy implements [formsvc.Store].
func (s *Store) SignaturesBy(
	ctx context.Context, account formsvc.ID, email string, q formsvc.PageQuery,
) (formsvc.Page[formsvc.Signature], error) {
	if err := formsvc.CheckText(email); err != nil {
		return formsvc.Page[formsvc.Signature]{}, err
	}
	return locked(ctx, s, func() (formsvc.Page[formsvc.Signature], error) {
		return page(&s.signed, q, true, func(sig *formsvc.Signature) bool {
			return sig.AccountID == account && formsvc.FoldEmail(sig.Signer.Email) == formsvc.FoldEmail(email)
		}, copyOf), nil
	})
}
