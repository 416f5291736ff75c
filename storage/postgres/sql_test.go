package postgres_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage"
	"github.com/formsvc/toolkit/storage/internal/sqltest"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

func TestSQL(t *testing.T) {
	t.Parallel()
	sqltest.Run(t, func(t testing.TB) sqltest.Database {
		dsn := postgrestest.DSN(t) + "&application_name=" + rand.Text() // tells this database's connections from other tests'
		db, bindPgx := withPgx(t, dsn)
		return sqltest.Database{
			DB: db,
			Open: func(t testing.TB) sqltest.Store {
				return open(t, dsn, &postgres.Options{SkipMigrations: true, MaxConns: 4})
			},
			OpenWith: func(t testing.TB, ring *keyring.Keyring) (sqltest.Store, error) {
				s, err := postgres.Open(t.Context(), dsn, &postgres.Options{Keyring: ring, MaxConns: 4})
				if err == nil {
					t.Cleanup(func() { _ = s.Close() })
				}
				return s, err
			},
			Bind: func(tx storage.Tx, ring *keyring.Keyring) (formsvc.Store, error) {
				return postgres.Bind(tx, &postgres.Options{Keyring: ring})
			},
			BindPgx: bindPgx,
			Waiting: func(t testing.TB) (waiting bool) {
				noError(t, db.QueryRowContext(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
					WHERE application_name = current_setting('application_name') AND wait_event_type = 'Lock')`).Scan(&waiting))
				return waiting
			},
			Poison: `CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS $$
				BEGIN IF NEW.reference = 'POISON' THEN RAISE EXCEPTION 'poison'; END IF; RETURN NEW; END $$;
				CREATE TRIGGER poison BEFORE INSERT ON formsvc_responses FOR EACH ROW EXECUTE FUNCTION poison()`,
		}
	})
}

// withPgx opens a database, and returns how to bind to the transaction of pgx inside one of database/sql.
func withPgx(t testing.TB, dsn string) (*bun.DB, func(storage.Tx, *keyring.Keyring) (formsvc.Store, error)) {
	t.Helper()
	config := must(pgx.ParseConfig(dsn + rawOptions))
	var conns sync.Map // by process of the server
	db := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(func(_ context.Context, c *pgx.Conn) error {
		conns.Store(c.PgConn().PID(), c)
		return nil
	}))
	t.Cleanup(func() { _ = db.Close() })
	return bun.NewDB(db, pgdialect.New()), func(tx storage.Tx, ring *keyring.Keyring) (formsvc.Store, error) {
		if tx == nil {
			return postgres.BindPgx(nil, nil)
		}
		var pid uint32
		if err := tx.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			return nil, err
		}
		c, _ := conns.Load(pid)
		// The server only warns that there is a transaction, so this is the same one.
		same, err := c.(*pgx.Conn).Begin(t.Context())
		if err != nil {
			return nil, err
		}
		return postgres.BindPgx(same, &postgres.Options{Keyring: ring})
	}
}

const rawOptions = "&default_query_exec_mode=exec&standard_conforming_strings=on"

func raw(t testing.TB, dsn string) *bun.DB {
	t.Helper()
	db := must(sql.Open("pgx", dsn+rawOptions))
	t.Cleanup(func() { _ = db.Close() })
	return bun.NewDB(db, pgdialect.New())
}

// A response is submitted inside a host's transaction that stays open: others can still
// submit to the same campaign.
func TestLongTransactionOfHostDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.DSN(t)
	ctx := t.Context()
	svc, campaign := newService(t, open(t, dsn, nil))
	tx := must(raw(t, dsn).BeginTx(ctx, nil))
	bound := must(postgres.Bind(tx, nil))
	in := formsvc.ResponseInput{User: formsvc.User{Email: "a@example.com"}}
	must(svc.With(bound).Responses.Create(ctx, campaign.Key(), in))
	for range 20 { // would wait for the host's transaction until the test times out
		must(svc.Responses.Create(ctx, campaign.Key(), in))
	}
	noError(t, tx.Commit())
	wantShards(t, raw(t, dsn), 1, 20)
	got, err := svc.Campaigns.Get(ctx, campaign.Key())
	if err != nil || got.ResponseCount != 21 {
		t.Errorf("%d responses counted, want 21 (%v)", got.ResponseCount, err)
	}
}

// A limit counts responses that were begun before it: setting it waits for them, or they for it.
func TestLimitCountsWhatBegan(t *testing.T) {
	t.Parallel()
	in := formsvc.ResponseInput{User: formsvc.User{Email: "a@example.com"}}
	limit := func(svc *formsvc.Service, c formsvc.Campaign, _ formsvc.ResponseKey) error {
		c.Form.OncePerEmail = true
		return errorOf(svc.Campaigns.Replace(t.Context(), c.Key(), c.CampaignInput))
	}
	inOrder(t, func(svc *formsvc.Service, c formsvc.Campaign, _ formsvc.ResponseKey) error {
		return errorOf(svc.Responses.Create(t.Context(), c.Key(), in))
	}, limit)
	inOrder(t, limit, func(svc *formsvc.Service, _ formsvc.Campaign, key formsvc.ResponseKey) error {
		return errorOf(svc.Responses.Update(t.Context(), key, formsvc.ResponsePatch{Email: &in.User.Email}))
	})
}

func errorOf[T any](_ T, err error) error { return err }

// inOrder makes one call in a host's transaction, which ends when a second call waits for it. Then an address has answered.
func inOrder(t *testing.T, first, second func(*formsvc.Service, formsvc.Campaign, formsvc.ResponseKey) error) {
	t.Helper()
	dsn, ctx := postgrestest.DSN(t)+"&application_name="+rand.Text(), t.Context()
	svc, campaign := newService(t, open(t, dsn, nil))
	db := raw(t, dsn)
	r := must(svc.Responses.Create(ctx, campaign.Key(), formsvc.ResponseInput{User: formsvc.User{Email: "b@example.com"}}))
	must(db.ExecContext(ctx, "INSERT INTO formsvc_counters SELECT id, generate_series(0, 15), 0 FROM formsvc_campaigns ON CONFLICT DO NOTHING")) // whose foreign key would wait, too
	tx := must(db.BeginTx(ctx, nil))
	noError(t, first(svc.With(must(postgres.Bind(tx, nil))), campaign, r.Key()))
	done := make(chan error, 1)
	go func() { done <- second(svc, campaign, r.Key()) }()
	for waiting := false; !waiting && len(done) == 0; {
		noError(t, db.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE application_name = current_setting('application_name') AND wait_event_type = 'Lock')`).Scan(&waiting))
	}
	noError(t, tx.Commit())
	noError(t, <-done)
	if _, err := svc.Responses.Create(ctx, campaign.Key(), formsvc.ResponseInput{User: formsvc.User{Email: "a@example.com"}}); !errors.Is(err, formsvc.ErrAlreadyAnswered) {
		t.Errorf("a second response: %v", err)
	}
}

// wantShards checks that hosts and stores count in separate rows. Each picks its row at
// random, so a test of locks alone could miss that two share one.
func wantShards(t *testing.T, db *bun.DB, hosts, stores int) {
	t.Helper()
	var byHosts, byStores int
	noError(t, db.NewSelect().Table("formsvc_counters").
		ColumnExpr("coalesce(sum(responses) FILTER (WHERE shard >= 8), 0)").
		ColumnExpr("coalesce(sum(responses) FILTER (WHERE shard < 8), 0)").Scan(t.Context(), &byHosts, &byStores))
	if byHosts != hosts || byStores != stores {
		t.Errorf("%d counted in the rows of hosts and %d in those of stores, want %d and %d", byHosts, byStores, hosts, stores)
	}
}

func TestOpenErrorsKeepThePassword(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://user:hunter2@127.0.0.1:1/db?connect_timeout=1", "postgres://user:hunter2@[broken/db", "password=hunter2 host=",
	} {
		if _, err := postgres.Open(t.Context(), dsn, nil); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error %v, want one without the password", err)
		}
	}
}
