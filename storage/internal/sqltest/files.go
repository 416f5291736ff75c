package sqltest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// upload creates a file in a store.
func upload(ctx context.Context, store formsvc.Store, f formsvc.File) error {
	return store.CreateFile(ctx, f, func(*formsvc.Response) (formsvc.Change, error) { return formsvc.Change{}, nil })
}

// addResponse adds a response, and returns its key and a file that isn't stored yet.
func (s *scene) addResponse(t testing.TB) (formsvc.ResponseKey, formsvc.File) {
	t.Helper()
	r, change := s.response("R" + string(s.id()))
	must(t, s.CreateResponse(t.Context(), r, 1, change))
	return formsvc.ResponseKey{AccountID: r.AccountID, CampaignID: r.CampaignID, ID: r.ID}, formsvc.File{
		ID: s.id(), AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Name: "a", CreatedAt: s.now,
	}
}

// boundFiles has calls about files fail and succeed in the caller's transaction.
func boundFiles(t *testing.T, d Database) {
	s := newScene(t, d)
	key, f := s.addResponse(t)
	gone, lost := s.addResponse(t)
	must(t, upload(t.Context(), s, lost))
	barred := f
	barred.ID = s.id()
	must(t, d.DB.RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
		bound, err := d.Bind(tx, nil)
		if err != nil {
			return err
		}
		if ids, err := bound.BarFiles(ctx, []formsvc.ID{lost.ID, barred.ID}); err != nil || !slices.Equal(ids, []formsvc.ID{barred.ID}) {
			t.Errorf("BarFiles: %v, %v; want %s", ids, err, barred.ID)
		}
		if err := upload(ctx, bound, barred); !errors.Is(err, formsvc.ErrConflict) {
			t.Errorf("CreateFile with a barred identifier: %v, want ErrConflict", err)
		}
		if ids, err := bound.DeleteResponse(ctx, gone, nil); err != nil || !slices.Equal(ids, []formsvc.ID{lost.ID}) {
			t.Errorf("DeleteResponse: %v, %v; want %s", ids, err, lost.ID)
		}
		return upload(ctx, bound, f)
	}))
	all, err := s.Files(t.Context(), formsvc.FileQuery{AllAccounts: true})
	must(t, err)
	if files := all.Items; len(files) != 1 || files[0].ID != f.ID || files[0].ResponseID != key.ID {
		t.Errorf("%d files, want the one that was made", len(files))
	}
	if err := upload(t.Context(), s, barred); !errors.Is(err, formsvc.ErrConflict) {
		t.Errorf("CreateFile with a barred identifier: %v, want ErrConflict", err)
	}
	page, err := s.Responses(t.Context(), formsvc.ResponseQuery{AccountID: s.account, CampaignID: s.campaign.ID})
	must(t, err)
	if page.Total != 1 || len(page.Items) != 1 {
		t.Errorf("%d responses, %d counted; want 1", len(page.Items), page.Total)
	}
}

// A fileCall is a call about a response or a file of it.
type fileCall func(context.Context, formsvc.Store, formsvc.ResponseKey, formsvc.File) ([]formsvc.ID, error)

func createFile(ctx context.Context, store formsvc.Store, _ formsvc.ResponseKey, f formsvc.File) ([]formsvc.ID, error) {
	return nil, upload(ctx, store, f)
}

func barFile(ctx context.Context, store formsvc.Store, _ formsvc.ResponseKey, f formsvc.File) ([]formsvc.ID, error) {
	return store.BarFiles(ctx, []formsvc.ID{f.ID})
}

func deleteResponse(
	ctx context.Context, store formsvc.Store, key formsvc.ResponseKey, _ formsvc.File,
) ([]formsvc.ID, error) {
	return store.DeleteResponse(ctx, key, nil)
}
