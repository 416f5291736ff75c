// Package sqltest tests the SQL stores beyond the conformance suite, which suits any
// store: the caller's transactions, migrations, and a group commit that fails as a whole.
package sqltest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/storage/storagetest"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A Store is a store of either package.
type Store interface {
	storagetest.Store
	Migrate(ctx context.Context) error
	Ping(ctx context.Context) error
	Migrations(ctx context.Context) ([]storage.Migration, error)
	CheckKeys(ctx context.Context) error
	RotateSecrets(ctx context.Context) (int, error)
}

// A Database is an empty database to test on.
type Database struct {
	// DB is a connection of the caller to it.
	DB *bun.DB
	// Open opens a store on it without migrating, and registers its cleanup.
	Open func(t testing.TB) Store
	// OpenWith opens a store on it with a keyring, as programs do, and registers its
	// cleanup.
	OpenWith func(t testing.TB, ring *keyring.Keyring) (Store, error)
	// Bind is the package's Bind.
	Bind func(tx storage.Tx, ring *keyring.Keyring) (formsvc.Store, error)
	// BindPgx is like Bind, but binds to the transaction as pgx has it. Nil skips its tests.
	BindPgx func(tx storage.Tx, ring *keyring.Keyring) (formsvc.Store, error)
	// Waiting reports whether a connection waits for a lock. If it is nil, a call that has to
	// wait is watched for a while.
	Waiting func(t testing.TB) bool
	// Poison is a statement that makes the database refuse a response with the reference
	// POISON.
	Poison string
}

// Run runs every test, each on its own database.
func Run(t *testing.T, make func(t testing.TB) Database) {
	for name, test := range map[string]func(*testing.T, Database){
		"bound/writes commit and roll back with the host": boundWrites,
		"bound/calls beside a host's transaction":         besideHost,
		"audit/entries cannot be changed":                 auditOnlyGrows,
		"account/deleted beside creations":                deletedAccount,
		"account/deleted in small writes":                 deletedInParts,
		"migrations/nodes that start together":            migrateTogether,
		"migrations/newer schema":                         migrateNewer,
		"migrations/one that fails leaves nothing":        migrateFailing,
		"group/a faulty unit fails alone":                 poisonedGroup,
		"secrets/stored sealed":                           secretsSealed,
		"secrets/moved values do not open":                secretsMoved,
		"secrets/unopenable values":                       secretsUnread,
		"secrets/missing keys":                            secretsMissing,
		"secrets/rotation":                                secretsRotated,
		"secrets/rotation beside changes":                 secretsRotatedMeanwhile,
		"secrets/rotation beside a bound store":           secretsRotatedBesideBound,
		"prune/deleted webhooks":                          pruneDeleted,
		"views/values as in the API":                      viewsAsTheAPI,
		"views/indexes":                                   viewsByIndex,
		"views/queries of the guide":                      viewsInTheGuide,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, make(t))
		})
		if !strings.HasPrefix(name, "bound/") {
			continue
		}
		for _, pgx := range []bool{false, true} {
			if pgx && make(t).BindPgx == nil {
				continue // the driver isn't pgx
			}
			t.Run(fmt.Sprintf("%s, with database/sql: %t", name, !pgx), func(t *testing.T) {
				t.Parallel()
				d := make(t)
				if pgx {
					d.Bind = d.BindPgx
				} else {
					d.Bind = d.bindSQL
				}
				test(t, d)
			})
		}
	}
}

// bindSQL binds to the *sql.Tx of a bun.Tx.
func (d Database) bindSQL(tx storage.Tx, ring *keyring.Keyring) (formsvc.Store, error) {
	if t, ok := tx.(bun.Tx); ok {
		tx = t.Tx
	}
	return d.Bind(tx, ring)
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

// newScene returns a scene on a store with the keys of these names.
func newScene(t *testing.T, d Database, names ...string) *scene {
	t.Helper()
	s := &scene{Store: d.open(t, names...), now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	s.fill(t)
	return s
}

// fill creates the records of the scene.
func (s *scene) fill(t *testing.T) {
	t.Helper()
	s.account = s.id()
	noError(t, s.CreateAccount(t.Context(), formsvc.Account{ID: s.account, Name: "a", CreatedAt: s.now}, nil, formsvc.Change{}))
	s.campaign = formsvc.Campaign{ID: s.id(), AccountID: s.account, Version: 1, CreatedAt: s.now, UpdatedAt: s.now,
		CampaignInput: formsvc.CampaignInput{Title: "c", Status: formsvc.CampaignOpen}}
	noError(t, s.CreateCampaign(t.Context(), s.campaign, formsvc.Change{}))
	s.hook = s.addWebhook(t)
}

// addWebhook adds a webhook with a value in every secret field.
func (s *scene) addWebhook(t testing.TB) formsvc.Webhook {
	t.Helper()
	id := s.id()
	hook, created, err := s.CreateWebhook(t.Context(), formsvc.Webhook{
		ID: id, AccountID: s.account, URL: "https://example.com/" + string(id), Events: webhook.EventTypes(),
		Secret: "secret of " + string(id), Previous: "previous of " + string(id), PreviousUntil: s.now.Add(time.Hour),
		Headers: []formsvc.Header{{Name: "X-Token", Value: "token of " + string(id)}},
		Version: 1, CreatedAt: s.now, UpdatedAt: s.now,
	}, formsvc.MaxWebhooks, nil)
	noError(t, err)
	if !created {
		t.Fatal("there is such a webhook already")
	}
	return hook
}

func (s *scene) key() formsvc.WebhookKey {
	return formsvc.WebhookKey{AccountID: s.account, ID: s.hook.ID}
}

// must returns the result of a call that can't fail here.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

func noError(t testing.TB, err error) {
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

// wantResponses checks the number of responses and of claimable deliveries.
func (s *scene) wantResponses(t *testing.T, want int) {
	t.Helper()
	page := must(s.Responses(t.Context(), formsvc.ResponseQuery{AccountID: s.account, CampaignID: s.campaign.ID}))
	if page.Total != int64(want) || len(page.Items) != want {
		t.Errorf("%d responses, total %d, want %d", len(page.Items), page.Total, want)
	}
	if claims := s.claim(t, s.now.Add(time.Hour)); len(claims) != want {
		t.Errorf("%d deliveries, want %d", len(claims), want)
	}
}

// claim claims the due deliveries of the scene's webhook.
func (s *scene) claim(t testing.TB, now time.Time) []delivery.Claim {
	t.Helper()
	claims, err := s.Claim(t.Context(), delivery.ClaimRequest{
		Now: now, Lease: time.Minute, Shares: []delivery.Share{{Endpoint: string(s.hook.ID), N: 1_000}},
	})
	noError(t, err)
	return claims
}

// update changes a response.
func (s *scene) update(ctx context.Context, on formsvc.Store, key formsvc.ResponseKey, decide func()) error {
	_, err := on.UpdateResponse(ctx, key, func(r *formsvc.Response) (formsvc.Change, error) {
		r.Version++
		decide()
		return formsvc.Change{}, nil
	})
	return err
}
