package formsvc

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Verify reads the contents of all files of all accounts. For each file that is missing or differs
// from what was uploaded, it calls damaged with an error that is [ErrCorrupt]. It stops if damaged
// returns an error, or if the store or the blob store fails. It returns the number of checked
// files.
func (s Files) Verify(ctx context.Context, damaged func(*File, error) error) (int, error) {
	if s.s.blobs == nil {
		return 0, fmt.Errorf("formsvc: verify: %w", errors.ErrUnsupported)
	}
	checked := 0
	q := FileQuery{AllAccounts: true, Page: PageQuery{Limit: verifyBatch, Ascending: true}}
	for {
		page, err := s.s.store.Files(ctx, q)
		if err != nil {
			return checked, fmt.Errorf("formsvc: verify: %w", err)
		}
		for i := range page.Items {
			f := &page.Items[i]
			err := s.verify(ctx, f)
			if errors.Is(err, ErrCorrupt) {
				err = damaged(f, err)
			}
			if err != nil {
				return checked, fmt.Errorf("formsvc: verify: %w", err)
			}
			checked++
		}
		if !page.More || len(page.Items) == 0 {
			return checked, nil
		}
		q.Page.After = page.Items[len(page.Items)-1].ID
	}
}

// verify returns an error that is ErrCorrupt if a file's content is damaged. A file that was
// deleted meanwhile isn't damaged.
func (s Files) verify(ctx context.Context, f *File) error {
	err := s.readAll(ctx, f)
	if errors.Is(err, ErrCorrupt) {
		if _, gone := s.s.store.File(ctx, FileKey{AccountID: f.AccountID, ID: f.ID}); errors.Is(gone, ErrNotFound) {
			return nil
		}
	}
	return err
}

func (s Files) readAll(ctx context.Context, f *File) error {
	c, err := s.open(ctx, f, 0, -1, true)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, c)
	return errors.Join(err, c.Close())
}
