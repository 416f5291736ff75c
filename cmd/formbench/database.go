package main

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
	"sync"
	"sync/atomic"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// registers the driver "pgx" with database/sql

// A database is one of ours: a file or a schema, made for a cell or a part of
// the run and dropped afterwards.
type database struct {
	dsn  string
	drop func() error
}

func newDatabase(ctx context.Context, store, dir string) (*database, error) {
	if store == bench.PostgresStore {
		return newSchema(ctx, os.Getenv(bench.PostgresEnv))
	}
	dir, err := os.MkdirTemp(dir, "formbench-")
	if err != nil {
		return nil, fmt.Errorf("make a database: %w", err)
	}
	return &database{
		dsn:  "sqlite:" + filepath.Join(dir, "forms.db"),
		drop: func() error { return os.RemoveAll(dir) },
	}, nil
}

// newSchema makes an empty schema on a Postgres server.
func newSchema(ctx context.Context, server string) (*database, error) {
	dsn, err := url.Parse(server)
	if err != nil {
		return nil, errors.New(bench.PostgresEnv + " is not a URL") // it may have a password
	}
	schema := "formbench_" + strings.ToLower(rand.Text())
	if err := onServer(ctx, server, "CREATE SCHEMA "+schema); err != nil {
		return nil, err
	}
	q := dsn.Query()
	q.Set("search_path", schema)
	dsn.RawQuery = q.Encode()
	return &database{
		dsn: dsn.String(),
		drop: func() error {
			return onServer(context.WithoutCancel(ctx), server, "DROP SCHEMA "+schema+" CASCADE")
		},
	}, nil
}

// onServer runs one statement on a Postgres server.
func onServer(ctx context.Context, dsn, statement string) (err error) {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("postgres: %s: %w", statement, err)
	}
	return nil
}

// postgresSyncs reports whether the server waits for its disk at all.
func postgresSyncs(ctx context.Context) (_ bool, err error) {
	db, err := sql.Open("pgx", os.Getenv(bench.PostgresEnv))
	if err != nil {
		return false, fmt.Errorf("postgres: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var setting string
	if err := db.QueryRowContext(ctx, "SHOW fsync").Scan(&setting); err != nil {
		return false, fmt.Errorf("postgres: %w", err)
	}
	return setting == "on", nil
}

// store is what a server and this program need of either store.
type store interface {
	formsvc.Store
	delivery.Queue
	Ping(ctx context.Context) error
	Close() error
}

func openStore(ctx context.Context, dsn string, groupLimit int) (store, error) {
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		return sqlite.Open(ctx, path, &sqlite.Options{GroupLimit: groupLimit})
	}
	return postgres.Open(ctx, dsn, &postgres.Options{GroupLimit: groupLimit})
}

// with opens the database for as long as do runs.
func (d *database) with(ctx context.Context, do func(store, *formsvc.Service) error) (err error) {
	s, err := openStore(ctx, d.dsn, writers)
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

// account makes the schema and an account with a key.
func (d *database) account(ctx context.Context) (w world, err error) {
	err = d.with(ctx, func(_ store, svc *formsvc.Service) error {
		_, key, value, err := svc.Accounts.CreateWithKey(ctx, "bench", formsvc.KeyInput{
			Name: "bench", Permissions: formsvc.AllPermissions(),
		})
		w.key, w.campaign.AccountID = value, key.AccountID
		return err
	})
	return w, err
}

// withWebhook returns the account with a campaign and a webhook.
func (d *database) withWebhook(ctx context.Context, w world) (world, error) {
	err := d.with(ctx, func(_ store, svc *formsvc.Service) (err error) {
		w.campaign, err = svc.Campaigns.Create(ctx, w.campaign.AccountID, campaignInput())
		if err != nil {
			return err
		}
		w.webhook, _, err = svc.Webhooks.Create(ctx, w.campaign.AccountID, formsvc.WebhookInput{
			URL: "https://hooks.example.com/forms", Events: []formsvc.EventType{webhook.ResponseCreated},
		})
		return err
	})
	return w, err
}

func campaignInput() formsvc.CampaignInput {
	return formsvc.CampaignInput{Title: "Registration for the autumn meeting", Modules: fixture.Modules()}
}

// writers is how many responses are stored at once when a campaign is filled.
const writers = 512

// withResponses returns the account with a campaign that has the responses from
// first on, n of them. They go straight to the store, without events.
func (d *database) withResponses(ctx context.Context, w world, first, n int) (world, error) {
	err := d.with(ctx, func(s store, svc *formsvc.Service) (err error) {
		if w.campaign, err = svc.Campaigns.Create(ctx, w.campaign.AccountID, campaignInput()); err != nil {
			return err
		}
		if err := storeResponses(ctx, s, &w.campaign, first, n); err != nil {
			return err
		}
		w.campaign, err = svc.Campaigns.Get(ctx, formsvc.CampaignKey{AccountID: w.campaign.AccountID, ID: w.campaign.ID})
		if err == nil && w.campaign.ResponseCount != int64(n) {
			err = fmt.Errorf("the campaign has %d responses, want %d", w.campaign.ResponseCount, n)
		}
		return err
	})
	if err != nil {
		return w, fmt.Errorf("store %d responses: %w", n, err)
	}
	return w, nil
}

func storeResponses(ctx context.Context, s store, campaign *formsvc.Campaign, first, n int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(writers, n) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				r := fixture.StoredResponse(first+i, campaign)
				if err := s.CreateResponse(ctx, r, campaign.Version, formsvc.Change{}); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// settle does now what the database would do by itself soon, in the middle of a
// measurement.
func (d *database) settle(ctx context.Context) error {
	if strings.HasPrefix(d.dsn, "sqlite:") {
		return nil // closing it has moved the log into the file
	}
	return onServer(ctx, d.dsn, "VACUUM (ANALYZE) formsvc_responses")
}

// holds fails unless the database has as many responses as were acknowledged,
// and a delivery of each.
func (d *database) holds(ctx context.Context, w world, answered int) error {
	return d.with(ctx, func(_ store, svc *formsvc.Service) error {
		account := w.campaign.AccountID
		c, err := svc.Campaigns.Get(ctx, formsvc.CampaignKey{AccountID: account, ID: w.campaign.ID})
		if err != nil {
			return err
		}
		deliveries, err := svc.Deliveries.List(ctx, formsvc.DeliveryQuery{AccountID: account, WebhookID: w.webhook.ID})
		if err != nil {
			return err
		}
		if want := int64(answered); c.ResponseCount != want || deliveries.Total != want {
			return fmt.Errorf("%d responses were acknowledged; the database has %d, and %d deliveries",
				answered, c.ResponseCount, deliveries.Total)
		}
		return nil
	})
}
