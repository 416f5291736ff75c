// Package sqltest holds the SQL stores to what the conformance suite can't ask
// of a store in general: the caller's transaction, migrations, and a group
// commit that fails as a whole.
package sqltest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
	"github.com/formsvc/toolkit/storage/storagetest"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A Store is a store of either package.
type Store interface {
	storagetest.Store
	Migrate(ctx context.Context) error
	Migrations(ctx context.Context) ([]bunstore.Migration, error)
}

// A Database is an empty database to test on.
type Database struct {
	// DB is a connection of the caller to it.
	DB *bun.DB
	// Open opens a store on it, without migrating, and registers its cleanup.
	Open func(t testing.TB) Store
	// Bind is the package's Bind.
	Bind func(tx bun.IDB) (formsvc.Store, error)
	// Poison is the statement that makes inserting a response with the reference
	// POISON an error of the database.
	Poison string
}

// Run runs every test, each on a database of its own.
func Run(t *testing.T, make func(t testing.TB) Database) {
	for name, test := range map[string]func(*testing.T, Database){
		"bound/commits with the caller":              boundCommits,
		"bound/rolls back with the caller":           boundRollsBack,
		"bound/a failed unit spares the transaction": boundFailure,
		"bound/only a transaction":                   boundOnlyTx,
		"migrations/nodes that start together":       migrateTogether,
		"migrations/newer schema":                    migrateNewer,
		"migrations/one that fails leaves nothing":   migrateFailing,
		"group/one at fault fails alone":             poisonedGroup,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, make(t))
		})
	}
}

// scene is a store with an account, a campaign and a webhook.
type scene struct {
	Store
	account  formsvc.ID
	campaign formsvc.Campaign
	hook     formsvc.Webhook
	now      time.Time
	made     int
}

func newScene(t *testing.T, d Database) *scene {
	t.Helper()
	s := &scene{Store: d.Open(t), now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	must(t, s.Migrate(t.Context()))
	s.account = s.id()
	must(t, s.CreateAccount(t.Context(), formsvc.Account{ID: s.account, Name: "a", CreatedAt: s.now}, nil))
	s.campaign = formsvc.Campaign{ID: s.id(), AccountID: s.account, Version: 1, CreatedAt: s.now, UpdatedAt: s.now,
		CampaignInput: formsvc.CampaignInput{Title: "c", Status: formsvc.CampaignOpen}}
	must(t, s.CreateCampaign(t.Context(), s.campaign))
	s.hook = formsvc.Webhook{ID: s.id(), AccountID: s.account, URL: "https://example.com/", Secret: "secret",
		Events: webhook.EventTypes(), CreatedAt: s.now, UpdatedAt: s.now}
	must(t, s.CreateWebhook(t.Context(), s.hook, formsvc.MaxWebhooks))
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *scene) id() formsvc.ID {
	s.made++
	return formsvc.FloorID(s.now)[:24] + formsvc.ID(fmt.Sprintf("%012x", s.made))
}

// response returns a response and the change that goes with it.
func (s *scene) response(reference string) (formsvc.Response, formsvc.Change) {
	r := formsvc.Response{
		ID: s.id(), AccountID: s.account, CampaignID: s.campaign.ID, Reference: reference, Status: formsvc.StatusPending,
		User: formsvc.User{Email: "a@example.com"}, Version: 1, CreatedAt: s.now, UpdatedAt: s.now,
	}
	return r, formsvc.Change{Events: []formsvc.Event{{
		ID: s.id(), AccountID: s.account, CampaignID: s.campaign.ID, ResponseID: r.ID, Type: webhook.ResponseCreated,
		Payload: []byte("{}"), CreatedAt: s.now,
	}}}
}

// wantResponses checks how many responses and claimable deliveries there are.
func (s *scene) wantResponses(t *testing.T, want int) {
	t.Helper()
	page, err := s.Responses(t.Context(), formsvc.ResponseQuery{AccountID: s.account, CampaignID: s.campaign.ID})
	must(t, err)
	if page.Total != int64(want) || len(page.Items) != want {
		t.Errorf("%d responses, total %d, want %d", len(page.Items), page.Total, want)
	}
	claims, err := s.Claim(t.Context(), delivery.ClaimRequest{
		Now: s.now.Add(time.Hour), Lease: time.Minute, Limit: 1_000, PerEndpoint: 1_000,
	})
	must(t, err)
	if len(claims) != want {
		t.Errorf("%d deliveries, want %d", len(claims), want)
	}
}

func boundCommits(t *testing.T, d Database) {
	s := newScene(t, d)
	ctx := t.Context()
	_, err := d.DB.ExecContext(ctx, "CREATE TABLE host (response TEXT)")
	must(t, err)
	must(t, d.DB.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		bound, err := d.Bind(tx)
		if err != nil {
			return err
		}
		r, change := s.response("R1")
		if err := bound.CreateResponse(ctx, r, 1, change); err != nil {
			return err
		}
		key := formsvc.ResponseKey{AccountID: r.AccountID, CampaignID: r.CampaignID, ID: r.ID}
		if _, err := bound.UpdateResponse(ctx, key, func(r *formsvc.Response) (formsvc.Change, error) {
			r.Version++
			r.Status = "validated"
			return formsvc.Change{}, nil
		}); err != nil {
			return err
		}
		got, err := bound.Response(ctx, key)
		if err != nil || got.Status != "validated" {
			t.Errorf("inside the transaction: %+v, %v", got, err)
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO host VALUES (?)", string(r.ID))
		return err
	}))
	s.wantResponses(t, 1)
	n, err := d.DB.NewSelect().Table("host").Count(ctx)
	must(t, err)
	if n != 1 {
		t.Errorf("%d rows of the host, want 1", n)
	}
}

func boundRollsBack(t *testing.T, d Database) {
	s := newScene(t, d)
	stop := errors.New("the host changed its mind")
	err := d.DB.RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
		bound, err := d.Bind(tx)
		if err != nil {
			return err
		}
		r, change := s.response("R1")
		return errors.Join(bound.CreateResponse(ctx, r, 1, change), stop)
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	s.wantResponses(t, 0)
}

// boundFailure has a unit fail after it wrote: what it wrote is undone and the
// transaction goes on.
func boundFailure(t *testing.T, d Database) {
	s := newScene(t, d)
	must(t, d.DB.RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
		bound, err := d.Bind(tx)
		if err != nil {
			return err
		}
		r, change := s.response("R1")
		if err := bound.CreateResponse(ctx, r, 1, change); err != nil {
			return err
		}
		again, change := s.response("R1")
		if err := bound.CreateResponse(ctx, again, 1, change); !errors.Is(err, formsvc.ErrConflict) {
			t.Errorf("taken reference: %v, want ErrConflict", err)
		}
		account := formsvc.Account{ID: s.id(), Name: "b", CreatedAt: s.now}
		key := formsvc.Key{ID: s.id(), AccountID: account.ID, Hash: sha256.Sum256(nil), CreatedAt: s.now}
		twin := key
		twin.ID = s.id()
		if err := bound.CreateAccount(ctx, account, []formsvc.Key{key, twin}); !errors.Is(err, formsvc.ErrConflict) {
			t.Errorf("twin keys: %v, want ErrConflict", err)
		}
		if _, err := bound.Account(ctx, account.ID); !errors.Is(err, formsvc.ErrNotFound) {
			t.Errorf("half of a failed unit is there: %v", err)
		}
		return nil
	}))
	s.wantResponses(t, 1)
}

func boundOnlyTx(t *testing.T, d Database) {
	if _, err := d.Bind(d.DB); err == nil {
		t.Error("a *bun.DB was taken for a transaction")
	}
}

func migrateTogether(t *testing.T, d Database) {
	var wg sync.WaitGroup
	for range 4 {
		s := d.Open(t)
		wg.Go(func() {
			if err := s.Migrate(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	list, err := d.Open(t).Migrations(t.Context())
	must(t, err)
	for _, m := range list {
		if m.AppliedAt.IsZero() {
			t.Errorf("migration %d is not applied", m.Version)
		}
	}
}

func migrateNewer(t *testing.T, d Database) {
	s := d.Open(t)
	must(t, s.Migrate(t.Context()))
	list, err := s.Migrations(t.Context())
	must(t, err)
	_, err = d.DB.ExecContext(t.Context(), "INSERT INTO formsvc_schema (version, applied_at) VALUES (?, 0)", len(list)+1)
	must(t, err)
	if err := s.Migrate(t.Context()); !errors.Is(err, bunstore.ErrSchemaNewer) {
		t.Errorf("a newer schema: %v, want ErrSchemaNewer", err)
	}
}

// migrateFailing runs a migration that is cut off half way, then the mended one.
func migrateFailing(t *testing.T, d Database) {
	inTx := func(ctx context.Context, do func(context.Context, bun.IConn) error) error {
		return d.DB.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error { return do(ctx, tx.Tx) })
	}
	steps := func(second string) error {
		list, err := bunstore.Migrations(fstest.MapFS{
			"0001_one.sql": {Data: []byte("CREATE TABLE one (a TEXT)")},
			"0002_two.sql": {Data: []byte(second)},
		})
		must(t, err)
		return bunstore.Steps(t.Context(), list, inTx)
	}
	if err := steps("CREATE TABLE two (a TEXT); INSERT INTO nowhere VALUES (1)"); err == nil {
		t.Fatal("a migration that fails was no error")
	}
	must(t, steps("CREATE TABLE two (a TEXT)"))
	must(t, steps("CREATE TABLE two (a TEXT)"))
}

// poisonedGroup has one response of a group make the database itself refuse the
// whole group.
func poisonedGroup(t *testing.T, d Database) {
	s := newScene(t, d)
	_, err := d.DB.ExecContext(t.Context(), d.Poison)
	must(t, err)
	const n = 40
	type made struct {
		r      formsvc.Response
		change formsvc.Change
	}
	all := make([]made, n)
	for i := range all {
		reference := fmt.Sprintf("R%d", i)
		if i%10 == 5 {
			reference = "POISON"
		}
		all[i].r, all[i].change = s.response(reference)
	}
	var wg sync.WaitGroup
	for _, m := range all {
		wg.Go(func() {
			err := s.CreateResponse(t.Context(), m.r, 1, m.change)
			if poisoned := m.r.Reference == "POISON"; (err != nil) != poisoned {
				t.Errorf("%s: error %v", m.r.Reference, err)
			}
		})
	}
	wg.Wait()
	s.wantResponses(t, n-4)
}
