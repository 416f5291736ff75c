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
	if err := checkSignature(&sig); err != nil {
		return formsvc.Signature{}, err
	}
	var row *response
	var signature *formsvc.Signature
	err := s.write(ctx, func() (change formsvc.Change, err error) {
		row, err = s.response(formsvc.ResponseKey{AccountID: sig.AccountID, CampaignID: sig.CampaignID, ID: sig.ResponseID})
		if err != nil {
			return change, err
		}
		given := sig
		change, err = decide(new(row.Response), &given)
		sig.DocumentSHA256 = given.DocumentSHA256
		return change, err
	}, func() error {
		signature = new(copySignature(&sig))
		if err := s.signed.add(sig.ID, signature); err != nil {
			return err
		}
		return row.signatures.add(sig.ID, signature)
	})
	if err != nil {
		return formsvc.Signature{}, err
	}
	return *signature, nil
}

// Signatures implements [formsvc.Store].
func (s *Store) Signatures(
	ctx context.Context, key formsvc.ResponseKey, q formsvc.PageQuery,
) (formsvc.Page[formsvc.Signature], error) {
	return read(ctx, s, s.response, key, func(r *response) formsvc.Page[formsvc.Signature] {
		return page(&r.signatures, q, false, nil, copySignature)
	})
}

// SignaturesBy implements [formsvc.Store].
func (s *Store) SignaturesBy(
	ctx context.Context, account formsvc.ID, email string, q formsvc.PageQuery,
) (formsvc.Page[formsvc.Signature], error) {
	if err := formsvc.CheckText(email); err != nil {
		return formsvc.Page[formsvc.Signature]{}, err
	}
	if err := s.enter(ctx); err != nil {
		return formsvc.Page[formsvc.Signature]{}, err
	}
	defer s.mu.Unlock()
	return page(&s.signed, q, true, func(sig *formsvc.Signature) bool {
		return sig.AccountID == account && formsvc.FoldEmail(sig.Signer.Email) == formsvc.FoldEmail(email)
	}, copySignature), nil
}

func checkSignature(sig *formsvc.Signature) error {
	if sig.FileID != "" && !sig.FileID.Valid() {
		return fmt.Errorf("memory: a file's identifier is not a canonical UUID: %w", formsvc.ErrInvalid)
	}
	return formsvc.CheckText(
		string(sig.ID), string(sig.AccountID), string(sig.CampaignID), string(sig.ResponseID),
		sig.Signer.Email, sig.Signer.FirstName, sig.Signer.LastName, sig.Provider,
	)
}

func copySignature(signature *formsvc.Signature) formsvc.Signature {
	sig := *signature
	sig.SignedAt, sig.CreatedAt = kept(sig.SignedAt), kept(sig.CreatedAt)
	return sig
}
