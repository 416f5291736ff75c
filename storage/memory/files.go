package memory

import (
	"context"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateFile implements [formsvc.Store].
func (s *Store) CreateFile(
	ctx context.Context, f formsvc.File, decide func(*formsvc.Response) (formsvc.Change, error),
) error {
	f, err := stored(&f)
	if err != nil {
		return err
	}
	var a *account
	return s.write(ctx, func() (change formsvc.Change, err error) {
		row, err := s.response(formsvc.ResponseKey{AccountID: f.AccountID, CampaignID: f.CampaignID, ID: f.ResponseID})
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
		err := s.files.add(f.ID, &f)
		if err == nil {
			a.fileBytes += f.Size
		}
		return err
	})
}

// File implements [formsvc.Store].
func (s *Store) File(ctx context.Context, key formsvc.FileKey) (formsvc.File, error) {
	return read(ctx, s, s.files.first, func(f *formsvc.File) bool { return f.ID == key.ID && f.AccountID == key.AccountID }, copyOf)
}

// Files implements [formsvc.Store].
func (s *Store) Files(
	ctx context.Context, key formsvc.ResponseKey, q formsvc.PageQuery,
) (formsvc.Page[formsvc.File], error) {
	return read(ctx, s, s.response, key, func(r *response) formsvc.Page[formsvc.File] {
		return s.filesOf(r, q)
	})
}

// filesOf returns a page of the files of a response. The caller holds s.mu.
func (s *Store) filesOf(r *response, q formsvc.PageQuery) formsvc.Page[formsvc.File] {
	return page(&s.files, q, false, func(f *formsvc.File) bool { return r.has(f.CampaignID, f.ResponseID) }, bare)
}

// bare returns a file without its Blocks.
func bare(row *formsvc.File) formsvc.File {
	f := *row
	f.Blocks = nil
	return f
}

// AllFiles implements [formsvc.Store].
func (s *Store) AllFiles(ctx context.Context, q formsvc.PageQuery) (formsvc.Page[formsvc.File], error) {
	return locked(ctx, s, func() (formsvc.Page[formsvc.File], error) {
		return page(&s.files, q, true, nil, copyOf), nil
	})
}

// UnknownFiles implements [formsvc.Store].
func (s *Store) UnknownFiles(ctx context.Context, ids []formsvc.ID) ([]formsvc.ID, error) {
	return locked(ctx, s, func() ([]formsvc.ID, error) {
		return s.unknown(ids), nil
	})
}

// BarFiles implements [formsvc.Store].
func (s *Store) BarFiles(ctx context.Context, ids []formsvc.ID) ([]formsvc.ID, error) {
	return locked(ctx, s, func() ([]formsvc.ID, error) {
		unknown := s.unknown(ids)
		for _, id := range unknown {
			s.barred[id] = true
		}
		return unknown, nil
	})
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
