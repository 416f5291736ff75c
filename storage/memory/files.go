package memory

import (
	"bytes"
	"context"
	"fmt"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateFile implements [formsvc.Store].
func (s *Store) CreateFile(
	ctx context.Context, f formsvc.File, decide func(*formsvc.Response) (formsvc.Change, error),
) error {
	if err := checkFile(&f); err != nil {
		return err
	}
	var row *response
	var a *account
	return s.write(ctx, func() (change formsvc.Change, err error) {
		row, err = s.response(formsvc.ResponseKey{AccountID: f.AccountID, CampaignID: f.CampaignID, ID: f.ResponseID})
		if err != nil {
			return change, err
		}
		if change, err = decide(new(row.Response)); err != nil {
			return change, err
		}
		if a, err = s.account(f.AccountID); err == nil && change.Limit > 0 && a.fileBytes+f.Size > int64(change.Limit) {
			err = formsvc.ErrLimit
		}
		return change, err
	}, func() error {
		if s.barred[f.ID] {
			return formsvc.ErrConflict
		}
		file := new(copyFile(&f))
		if err := s.files.add(f.ID, file); err != nil {
			return err
		}
		a.fileBytes += f.Size
		return row.files.add(f.ID, file)
	})
}

// File implements [formsvc.Store].
func (s *Store) File(ctx context.Context, key formsvc.FileKey) (formsvc.File, error) {
	return read(ctx, s, func(key formsvc.FileKey) (*formsvc.File, error) {
		f, err := s.files.get(key.ID)
		if err == nil && f.AccountID != key.AccountID {
			err = formsvc.ErrNotFound
		}
		return f, err
	}, key, copyFile)
}

// Files implements [formsvc.Store].
func (s *Store) Files(
	ctx context.Context, key formsvc.ResponseKey, q formsvc.PageQuery,
) (formsvc.Page[formsvc.File], error) {
	return read(ctx, s, s.response, key, func(r *response) formsvc.Page[formsvc.File] {
		return page(&r.files, q, false, nil, func(row *formsvc.File) formsvc.File {
			f := *row
			f.Blocks = nil
			return f
		})
	})
}

// AllFiles implements [formsvc.Store].
func (s *Store) AllFiles(ctx context.Context, q formsvc.PageQuery) (formsvc.Page[formsvc.File], error) {
	if err := s.enter(ctx); err != nil {
		return formsvc.Page[formsvc.File]{}, err
	}
	defer s.mu.Unlock()
	return page(&s.files, q, true, nil, copyFile), nil
}

// UnknownFiles implements [formsvc.Store].
func (s *Store) UnknownFiles(ctx context.Context, ids []formsvc.ID) ([]formsvc.ID, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return s.unknown(ids), nil
}

// BarFiles implements [formsvc.Store].
func (s *Store) BarFiles(ctx context.Context, ids []formsvc.ID) ([]formsvc.ID, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	unknown := s.unknown(ids)
	for _, id := range unknown {
		s.barred[id] = true
	}
	return unknown, nil
}

// unknown returns the identifiers that no file has. The caller holds s.mu.
func (s *Store) unknown(ids []formsvc.ID) []formsvc.ID {
	var unknown []formsvc.ID
	for _, id := range ids {
		if _, err := s.files.get(id); err != nil {
			unknown = append(unknown, id)
		}
	}
	return unknown
}

func checkFile(f *formsvc.File) error {
	return formsvc.CheckText(
		string(f.ID), string(f.AccountID), string(f.CampaignID), string(f.ResponseID), f.Name, f.ContentType, f.Module)
}

func copyFile(file *formsvc.File) formsvc.File {
	f := *file
	f.Blocks = bytes.Clone(f.Blocks)
	f.CreatedAt = kept(f.CreatedAt)
	return f
}

// CreateComment implements [formsvc.Store].
func (s *Store) CreateComment(ctx context.Context, c formsvc.Comment, change formsvc.Change) error {
	if err := formsvc.CheckText(
		string(c.ID), string(c.AccountID), string(c.CampaignID), string(c.ResponseID), c.Body, c.Author); err != nil {
		return err
	}
	var row *response
	return s.write(ctx, func() (_ formsvc.Change, err error) {
		row, err = s.response(formsvc.ResponseKey{AccountID: c.AccountID, CampaignID: c.CampaignID, ID: c.ResponseID})
		return change, err
	}, func() error {
		comment := new(copyComment(&c))
		if err := s.comments.add(c.ID, comment); err != nil {
			return err
		}
		return row.comments.add(c.ID, comment)
	})
}

// Comments implements [formsvc.Store].
func (s *Store) Comments(
	ctx context.Context, key formsvc.ResponseKey, q formsvc.PageQuery,
) (formsvc.Page[formsvc.Comment], error) {
	return read(ctx, s, s.response, key, func(r *response) formsvc.Page[formsvc.Comment] {
		return cutAt(page(&r.comments, q, false, nil, copyComment), q, (*formsvc.Comment).Size)
	})
}

func copyComment(comment *formsvc.Comment) formsvc.Comment {
	c := *comment
	c.CreatedAt = kept(c.CreatedAt)
	return c
}

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
