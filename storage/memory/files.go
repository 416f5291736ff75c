package memory

import (
	"bytes"
	"context"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateFile implements [formsvc.FileStore].
func (s *Store) CreateFile(
	ctx context.Context, f formsvc.File, decide func(*formsvc.Response) (formsvc.Change, error),
) error {
	if err := checkFile(&f); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	row, err := s.response(formsvc.ResponseKey{AccountID: f.AccountID, CampaignID: f.CampaignID, ID: f.ResponseID})
	if err != nil {
		return err
	}
	r := row.Response
	change, err := decide(&r)
	if err != nil {
		return err
	}
	if err := s.admit(&change); err != nil {
		return err
	}
	if s.barred[f.ID] {
		return formsvc.ErrConflict
	}
	file := new(copyFile(&f))
	if err := s.files.add(f.ID, file); err != nil {
		return err
	}
	if err := row.files.add(f.ID, file); err != nil {
		return err
	}
	s.apply(&change)
	return nil
}

// File implements [formsvc.FileStore].
func (s *Store) File(ctx context.Context, key formsvc.FileKey) (formsvc.File, error) {
	if err := s.enter(ctx); err != nil {
		return formsvc.File{}, err
	}
	defer s.mu.Unlock()
	f, ok := s.files.get(key.ID)
	if !ok || f.AccountID != key.AccountID {
		return formsvc.File{}, formsvc.ErrNotFound
	}
	return copyFile(f), nil
}

// Files implements [formsvc.FileStore].
func (s *Store) Files(
	ctx context.Context, key formsvc.ResponseKey, q formsvc.PageQuery,
) (formsvc.Page[formsvc.File], error) {
	if err := s.enter(ctx); err != nil {
		return formsvc.Page[formsvc.File]{}, err
	}
	defer s.mu.Unlock()
	r, err := s.response(key)
	if err != nil {
		return formsvc.Page[formsvc.File]{}, err
	}
	return page(&r.files, q, false, nil, func(row *formsvc.File) formsvc.File {
		f := *row
		f.Blocks = nil
		return f
	}), nil
}

// AllFiles implements [formsvc.FileStore].
func (s *Store) AllFiles(ctx context.Context, q formsvc.PageQuery) (formsvc.Page[formsvc.File], error) {
	if err := s.enter(ctx); err != nil {
		return formsvc.Page[formsvc.File]{}, err
	}
	defer s.mu.Unlock()
	return page(&s.files, q, true, nil, copyFile), nil
}

// UnknownFiles implements [formsvc.FileStore].
func (s *Store) UnknownFiles(ctx context.Context, ids []formsvc.ID) ([]formsvc.ID, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return s.unknown(ids), nil
}

// BarFiles implements [formsvc.FileStore].
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
		if _, ok := s.files.get(id); !ok {
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
