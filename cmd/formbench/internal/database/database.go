// Package database creates the databases that are measured and dropped, on SQLite and on Postgres. It fills them, and
// builds the requests that read them and add to them.
package database

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"golang.org/x/sync/errgroup"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// registers the driver "pgx" with database/sql

// A Database is a temporary database of the service: an SQLite file or a Postgres database, created for a cell or a
// part of the run and dropped afterwards.
type Database struct {
	DSN  string
	Drop func() error
}

// New creates an empty database: one of its own on the server that [bench.PostgresEnv] names, so that the server's counters
// belong to one cell, or an SQLite file in a new directory below dir.
func New(ctx context.Context, store, dir string) (*Database, error) {
	if store == bench.PostgresStore {
		return newPostgres(ctx, os.Getenv(bench.PostgresEnv))
	}
	dir, err := os.MkdirTemp(dir, "formbench-")
	if err != nil {
		return nil, fmt.Errorf("make a database: %w", err)
	}
	return &Database{
		DSN:  "sqlite:" + filepath.Join(dir, "forms.db"),
		Drop: func() error { return os.RemoveAll(dir) },
	}, nil
}

func newPostgres(ctx context.Context, server string) (*Database, error) {
	dsn, err := url.Parse(server)
	if err != nil {
		return nil, errors.New(bench.PostgresEnv + " is not a URL") // the error may contain a password
	}
	name := "formbench_" + strings.ToLower(rand.Text())
	if err := OnServer(ctx, server, "CREATE DATABASE "+name); err != nil {
		return nil, err
	}
	dsn.Path = "/" + name
	return &Database{
		DSN: dsn.String(),
		Drop: func() error {
			return OnServer(context.WithoutCancel(ctx), server, "DROP DATABASE "+name+" WITH (FORCE)")
		},
	}, nil
}

// Use opens the database while do runs, without a store.
func (d *Database) Use(do func(*sql.DB) error) (err error) {
	driver, dsn := "pgx", d.DSN
	if path, ok := strings.CutPrefix(d.DSN, "sqlite:"); ok {
		driver, dsn = "sqlite", "file:"+path+"?_pragma=busy_timeout(5000)"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return do(db)
}

// OnServer runs one statement on a Postgres server.
func OnServer(ctx context.Context, dsn, statement string) error {
	return (&Database{DSN: dsn}).Use(func(db *sql.DB) error {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("postgres: %s: %w", statement, err)
		}
		return nil
	})
}

// ServerCount returns a number of the Postgres server.
func ServerCount(ctx context.Context, dsn, query string, args ...any) (n int64, err error) {
	err = (&Database{DSN: dsn}).Use(func(db *sql.DB) error { return db.QueryRowContext(ctx, query, args...).Scan(&n) })
	return n, err
}

// Store is the interface that a server and this program need of both stores.
type Store interface {
	formsvc.Store
	delivery.Queue
	Ping(ctx context.Context) error
	Close() error
}

// OpenStore opens the store of a database. At most groupLimit writes share a commit; 0 is the store's default.
func OpenStore(ctx context.Context, dsn string, groupLimit int) (Store, error) {
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		return sqlite.Open(ctx, path, &sqlite.Options{GroupLimit: groupLimit})
	}
	return postgres.Open(ctx, dsn, &postgres.Options{GroupLimit: groupLimit})
}

// With opens the database while do runs.
func (d *Database) With(ctx context.Context, do func(Store, *formsvc.Service) error) (err error) {
	s, err := OpenStore(ctx, d.DSN, writers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	svc, err := formsvc.New(s, nil)
	if err != nil {
		return err
	}
	return do(s, svc)
}

// NewAccount creates the schema and an account with a key.
func (d *Database) NewAccount(ctx context.Context) (w World, err error) {
	err = d.With(ctx, func(_ Store, svc *formsvc.Service) error {
		account, value, err := svc.Accounts.CreateWithKey(ctx, "bench", formsvc.KeyInput{
			Name: "bench", Permissions: formsvc.AllPermissions(),
		})
		w.Key, w.Campaign.AccountID = value, account.ID
		return err
	})
	return w, err
}

// WithWebhook returns the account with a campaign and a webhook.
func (d *Database) WithWebhook(ctx context.Context, w World) (World, error) {
	err := d.With(ctx, func(_ Store, svc *formsvc.Service) (err error) {
		w.Campaign, err = svc.Campaigns.Create(ctx, w.Campaign.AccountID, CampaignInput())
		if err != nil {
			return err
		}
		w.webhook, _, err = svc.Webhooks.Create(ctx, w.Campaign.AccountID, formsvc.WebhookInput{
			URL: "https://hooks.example.com/forms", Events: []formsvc.EventType{webhook.ResponseCreated},
		})
		return err
	})
	return w, err
}

// CampaignInput is the input of every campaign.
func CampaignInput() formsvc.CampaignInput {
	return formsvc.CampaignInput{Title: "Registration for the autumn meeting", Modules: fixture.Modules()}
}

// writers is the number of goroutines that fill a campaign.
const writers = 512

// WithResponses returns the account with a campaign that has n responses. They are written to the store directly,
// without events.
func (d *Database) WithResponses(ctx context.Context, w World, n int) (World, error) {
	err := d.With(ctx, func(s Store, svc *formsvc.Service) (err error) {
		if w.Campaign, err = svc.Campaigns.Create(ctx, w.Campaign.AccountID, CampaignInput()); err != nil {
			return err
		}
		if err := storeResponses(ctx, s, &w.Campaign, n); err != nil {
			return err
		}
		w.Campaign, err = svc.Campaigns.Get(ctx, formsvc.CampaignKey{AccountID: w.Campaign.AccountID, ID: w.Campaign.ID})
		if err == nil && w.Campaign.ResponseCount != int64(n) {
			err = fmt.Errorf("the campaign has %d responses, want %d", w.Campaign.ResponseCount, n)
		}
		return err
	})
	if err != nil {
		return w, fmt.Errorf("store %d responses: %w", n, err)
	}
	return w, nil
}

func storeResponses(ctx context.Context, s Store, campaign *formsvc.Campaign, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := 0; i < n && ctx.Err() == nil; i++ {
		group.Go(func() error {
			return s.CreateResponse(ctx, fixture.StoredResponse(i, campaign), campaign.Version, formsvc.Change{})
		})
	}
	return group.Wait()
}

// Settle runs now the maintenance that the database would soon do by itself, in the middle of a measurement.
func (d *Database) Settle(ctx context.Context) error {
	if strings.HasPrefix(d.DSN, "sqlite:") {
		return nil // closing it has moved the log into the file
	}
	return OnServer(ctx, d.DSN, "VACUUM (ANALYZE) formsvc_responses")
}

// Holds fails unless the database has exactly the acknowledged responses, each with a delivery. Of unsure responses it
// may have any number.
func (d *Database) Holds(ctx context.Context, w World, sure, unsure int) error {
	return d.With(ctx, func(_ Store, svc *formsvc.Service) error {
		account := w.Campaign.AccountID
		c, err := svc.Campaigns.Get(ctx, formsvc.CampaignKey{AccountID: account, ID: w.Campaign.ID})
		if err != nil {
			return err
		}
		deliveries, err := svc.Deliveries.List(ctx, formsvc.DeliveryQuery{AccountID: account, WebhookID: w.webhook.ID})
		if err != nil {
			return err
		}
		if n := int(c.ResponseCount); n < sure || n > sure+unsure || deliveries.Total != c.ResponseCount {
			return fmt.Errorf("%d responses were acknowledged and %d may have been made; the database has %d, and %d deliveries",
				sure, unsure, n, deliveries.Total)
		}
		return nil
	})
}

// Claimed is the number of deliveries in a measured claim.
const Claimed = 64

// Claim finds due deliveries and claims those of the endpoints, in equal shares.
func Claim(ctx context.Context, q delivery.Queue, endpoints []string) ([]delivery.Claim, time.Duration, error) {
	now := time.Now()
	req := delivery.ClaimRequest{Now: now, Lease: time.Minute}
	for i, id := range endpoints {
		n := Claimed*(i+1)/len(endpoints) - Claimed*i/len(endpoints)
		req.Shares = append(req.Shares, delivery.Share{Endpoint: id, N: n})
	}
	ready, err := q.Ready(ctx, now)
	if err != nil {
		return nil, 0, err
	}
	claims, err := q.Claim(ctx, req)
	took := time.Since(now)
	if err == nil && (len(claims) != Claimed || len(ready) < len(endpoints)) {
		err = fmt.Errorf("%d of %d deliveries were claimed, %d endpoints were ready", len(claims), Claimed, len(ready))
	}
	return claims, took, err
}

// SamplePayload returns the payload that the service sends for a response.
func SamplePayload(ctx context.Context) ([]byte, error) {
	svc, err := formsvc.New(memory.New(), nil)
	if err != nil {
		return nil, err
	}
	account, err := svc.Accounts.Create(ctx, "bench")
	if err != nil {
		return nil, err
	}
	campaign, err := svc.Campaigns.Create(ctx, account.ID, CampaignInput())
	if err != nil {
		return nil, err
	}
	user, answers := fixture.Submission(0)
	in := formsvc.ResponseInput{User: user, Answers: answers}
	if _, err := svc.Responses.Create(ctx, campaign.Key(), in); err != nil {
		return nil, err
	}
	page, err := svc.Events.List(ctx, formsvc.EventQuery{AccountID: account.ID})
	if err != nil {
		return nil, err
	}
	if len(page.Items) != 1 {
		return nil, errors.New("a response made no event")
	}
	return page.Items[0].Payload, nil
}
