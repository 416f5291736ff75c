package sqltest

import (
	"context"
	"testing"

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
