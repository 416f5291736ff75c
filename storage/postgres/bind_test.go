package postgres_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage"
	"github.com/formsvc/toolkit/storage/postgres"
)

// Bind and BindPgx work in transactions of a pool of pgx, in every query execution mode, and pgx works beside
// it on the same connection.
func TestBindWithPgx(t *testing.T) {
	t.Parallel()
	modes := []string{"", "cache_describe", "describe_exec", "exec", "simple_protocol"}
	for i, mode := range slices.Concat(modes, modes) {
		pgxOwn := i < len(modes)
		t.Run(fmt.Sprintf("mode %s, a transaction of pgx: %t", mode, pgxOwn), func(t *testing.T) {
			t.Parallel()
			f := newFeed(t)
			f.withFiles()
			f.exec("CREATE TABLE orders (response text, quantity integer)")
			dsn := f.store.dsn
			if mode != "" {
				dsn += "&default_query_exec_mode=" + mode
			}
			pool := must(pgxpool.New(t.Context(), dsn))
			t.Cleanup(pool.Close)
			noError(t, orderForm(t.Context(), pool, f.svc, f.account, f.campaign))
			list, err := f.svc.Responses.List(t.Context(), formsvc.ResponseQuery{AccountID: f.account, CampaignID: f.campaign})
			var orders int
			err2 := pool.QueryRow(t.Context(), "SELECT count(*) FROM orders WHERE quantity = 3").Scan(&orders)
			if err := errors.Join(err, err2); err != nil || list.Total != 1 || orders != 1 {
				t.Errorf("%d responses and %d orders (%v), want one of each", list.Total, orders, err)
			}
			if pgxOwn {
				tx := must(pool.Begin(t.Context()))
				defer func() { _ = tx.Rollback(context.Background()) }()
				bound := must(postgres.BindPgx(tx, nil))
				f.doEverything(bound, func() error { return tx.Commit(t.Context()) })
				if _, err := bound.Account(t.Context(), f.account); !errors.Is(err, pgx.ErrTxClosed) {
					t.Errorf("after the commit: %v, want ErrTxClosed", err)
				}
				return
			}
			db := stdlib.OpenDBFromPool(pool)
			defer func() { _ = db.Close() }()
			tx := must(db.BeginTx(t.Context(), nil))
			defer func() { _ = tx.Rollback() }()
			bound := must(postgres.Bind(tx, nil))
			f.doEverything(bound, tx.Commit)
		})
	}
}

// BindPgx leaves no goroutine, for which the bubble would fail.
func TestBindPgxEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		must(postgres.BindPgx(struct{ pgx.Tx }{}, nil))
	})
}

// doEverything makes calls with every type of column in a transaction, and compares what
// it reads there with what it reads after the commit.
func (f *feed) doEverything(bound formsvc.Store, commit func() error) {
	f.Helper()
	ctx, must := f.Context(), func(err error) {
		f.Helper()
		noError(f, err)
	}
	svc := f.svc.With(bound)
	_, _, err := svc.Webhooks.Create(ctx, f.account, formsvc.WebhookInput{URL: "https://example.com/", Events: []formsvc.EventType{"response.created"}})
	must(err)
	made, err := svc.Keys.Create(ctx, f.account, formsvc.KeyInput{Name: "k", Permissions: formsvc.AllPermissions()})
	must(err)
	key := f.key(f.add(svc))
	odd := `it's "odd" \ ünï; $1 ? {a,b} NULL`
	_, err = svc.Responses.Update(ctx, key, formsvc.ResponsePatch{FirstName: &odd})
	must(err)
	must(f.sign(svc, key))
	must(f.upload(svc, key))
	_, err = svc.Comments.Create(ctx, key, formsvc.CommentInput{Body: odd, Author: "host"})
	must(err)
	must(f.move(svc, key, "completed"))
	must(svc.Refuse(ctx, f.account, &formsvc.Idempotency{Key: "again"}, []byte("\x00\xff{}")))
	gone := f.key(f.add(svc))
	must(svc.Responses.Delete(ctx, gone, nil))
	read := func(svc *formsvc.Service) []any {
		r, err := svc.Responses.Get(ctx, key)
		must(err)
		list, err := svc.Responses.List(ctx, formsvc.ResponseQuery{AccountID: f.account, CampaignID: f.campaign})
		must(err)
		files, err := svc.Files.List(ctx, key, formsvc.PageQuery{})
		must(err)
		signatures, err := svc.Signatures.List(ctx, key, formsvc.PageQuery{})
		must(err)
		comments, err := svc.Comments.List(ctx, key, formsvc.PageQuery{})
		must(err)
		about, err := svc.Events.About(ctx, key, 100)
		must(err)
		hooks, err := svc.Webhooks.List(ctx, f.account)
		must(err)
		earlier, _ := errors.AsType[*formsvc.RefusedError](svc.Refuse(ctx, f.account, &formsvc.Idempotency{Key: "again"}, []byte("{}")))
		campaign, err := svc.Campaigns.Get(ctx, formsvc.CampaignKey{AccountID: f.account, ID: f.campaign})
		must(err)
		if r.User.FirstName != odd || len(about) != 6 || len(files.Items) != 1 || earlier == nil || !bytes.Equal(earlier.Refusal, []byte("\x00\xff{}")) {
			f.Errorf("read %+v, %d events, %d files, %q", r, len(about), len(files.Items), earlier)
		}
		return []any{r, list, files, signatures, comments, about, hooks, earlier, campaign}
	}
	inside := read(svc)
	must(commit())
	for i, after := range read(f.svc) {
		if !reflect.DeepEqual(inside[i], after) {
			f.Errorf("in the transaction there was %+v, after it %+v", inside[i], after)
		}
	}
	if p, err := f.svc.Keys.Authenticate(ctx, made.Value); err != nil || p.KeyID != made.ID {
		f.Errorf("the key is of %+v (%v)", p, err)
	}
}

// A preparedTx prepares every query first, like a transaction of gorm with PrepareStmt.
type preparedTx struct{ *sql.Tx }

func (p preparedTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s, err := p.PrepareContext(ctx, query) //nolint:sqlclosecheck // the end of the transaction closes it
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, args...)
}

func (p preparedTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := p.PrepareContext(ctx, query) //nolint:sqlclosecheck // the end of the transaction closes it
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

func (p preparedTx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	s, err := p.PrepareContext(ctx, query) //nolint:sqlclosecheck // the end of the transaction closes it
	if err != nil {
		return p.Tx.QueryRowContext(ctx, query, args...)
	}
	return s.QueryRowContext(ctx, args...)
}

func TestBindAcceptsWrappedTransactions(t *testing.T) {
	t.Parallel()
	f := newFeed(t)
	db, err := sql.Open("pgx", f.store.dsn) // prepares statements, as hosts' pools do
	noError(t, err)
	defer func() { _ = db.Close() }()
	tx := must(db.BeginTx(t.Context(), nil))
	var pool storage.Tx = preparedTx{tx}
	bound := must(postgres.Bind(pool, nil))
	id := f.add(f.svc.With(bound))
	noError(t, errors.Join(f.move(f.svc.With(bound), f.key(id), "seen"), tx.Commit()))
	if r, err := f.svc.Responses.Get(t.Context(), f.key(id)); err != nil || r.Status != "seen" {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := postgres.Bind(nil, nil); err == nil {
		t.Error("a store is bound to no transaction")
	}
	for _, none := range []any{db, f.db} {
		if _, ok := none.(storage.Tx); ok {
			t.Errorf("a %T can be taken for a transaction", none)
		}
	}
}
