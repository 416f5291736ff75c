package postgres_test

import (
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
	"github.com/formsvc/toolkit/storage/storagetest"
)

// handle is a store with the location of its data, to open it again.
type handle struct {
	*postgres.Store
	dsn string
}

func open(t testing.TB, dsn string, opts *postgres.Options) handle {
	t.Helper()
	s := must(postgres.Open(t.Context(), dsn, opts))
	t.Cleanup(func() { _ = s.Close() })
	return handle{s, dsn}
}

// newService returns a service on the store, with a campaign.
func newService(t testing.TB, s formsvc.Store) (*formsvc.Service, formsvc.Campaign) {
	t.Helper()
	svc := must(formsvc.New(s, nil))
	account := must(svc.Accounts.Create(t.Context(), "a"))
	campaign := must(svc.Campaigns.Create(t.Context(), account.ID, formsvc.CampaignInput{Title: "c"}))
	return svc, campaign
}

func conformance(t *testing.T, opts *postgres.Options, only ...storagetest.Category) {
	schemas := &pool{t: t}
	schemas.idle = append(schemas.idle, schemas.take(t)) // without a server, that skips t before a part of it can
	storagetest.Run(t,
		func(t testing.TB) storagetest.Store { return open(t, schemas.dsn(t), opts) },
		storagetest.Options{Only: only, Reopen: func(t testing.TB, s storagetest.Store) storagetest.Store {
			h, ok := s.(handle)
			if !ok {
				t.Fatalf("got a %T", s)
			}
			return open(t, h.dsn, opts)
		}})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance(t, &postgres.Options{MaxConns: 4})
}

// As behind a pooler that can't keep prepared statements: all arguments are texts then. The long tests have more histories.
func TestUnprepared(t *testing.T) {
	t.Parallel()
	schemas := &pool{t: t}
	schemas.idle = append(schemas.idle, schemas.take(t))
	storagetest.Run(t,
		func(t testing.TB) storagetest.Store {
			return open(t, schemas.dsn(t), &postgres.Options{MaxConns: 4, Unprepared: true})
		},
		storagetest.Options{Only: []storagetest.Category{storagetest.Model}, Checks: 5})
}

// The example needs a server: a test runs it, where there is one.
func TestExample(t *testing.T) {
	t.Parallel()
	if r, err := submit(t.Context(), postgrestest.DSN(t)); err != nil || r.Status != formsvc.StatusPending {
		t.Errorf("got %+v, %v", r, err)
	}
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
