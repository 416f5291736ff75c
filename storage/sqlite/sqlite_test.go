package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/storage/storagetest"
)

// handle is a store with the location of its data, to open it again.
type handle struct {
	*sqlite.Store
	path string
}

func open(t testing.TB, path string, opts *sqlite.Options) handle {
	t.Helper()
	s := must(sqlite.Open(t.Context(), path, opts))
	t.Cleanup(func() { _ = s.Close() })
	return handle{s, path}
}

// newService returns a service on the store, with a campaign.
func newService(t testing.TB, s formsvc.Store) (*formsvc.Service, formsvc.Campaign) {
	t.Helper()
	svc := must(formsvc.New(s, nil))
	account := must(svc.Accounts.Create(t.Context(), "a"))
	campaign := must(svc.Campaigns.Create(t.Context(), account.ID, formsvc.CampaignInput{Title: "c"}))
	return svc, campaign
}

func conformance(t *testing.T, open func(t testing.TB, path string) handle, only ...storagetest.Category) {
	storagetest.Run(t,
		func(t testing.TB) storagetest.Store { return open(t, filepath.Join(t.TempDir(), "forms ?#%.db")) },
		storagetest.Options{Only: only, Reopen: func(t testing.TB, s storagetest.Store) storagetest.Store {
			h, ok := s.(handle)
			if !ok {
				t.Fatalf("got a %T", s)
			}
			return open(t, h.path)
		}})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance(t, func(t testing.TB, path string) handle { return open(t, path, nil) })
}

// must returns the result of a call that can't fail here.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

// noError ends the test unless err is nil.
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
