package postgres_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres"
)

// hostsQueries is like what sqlc generates for pgx: it works on a pool and in a
// transaction.
type hostsQueries struct {
	db interface {
		Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error)
		QueryRow(ctx context.Context, query string, args ...any) pgx.Row
	}
}

func (q hostsQueries) insertOrder(ctx context.Context, response formsvc.ID) error {
	_, err := q.db.Exec(ctx, "INSERT INTO orders (response, quantity) VALUES ($1, $2)", string(response), 3)
	return err
}

func (q hostsQueries) countOrders(ctx context.Context) (n int, err error) {
	return n, q.db.QueryRow(ctx, "SELECT count(*) FROM orders WHERE quantity = $1", 3).Scan(&n)
}

// BindPgx works in transactions of pools and connections in every query execution mode of
// pgx.
func TestBindPgx(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run("mode "+mode, func(t *testing.T) {
			t.Parallel()
			f := newFeed(t)
			f.withFiles()
			f.exec("CREATE TABLE orders (response text, quantity integer)")
			dsn := f.store.dsn
			if mode != "" {
				dsn += "&default_query_exec_mode=" + mode
			}
			pool, err := pgxpool.New(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			f.hostOrders(pool)
			conn, err := pgx.Connect(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close(context.Background()) }()
			tx, err := conn.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			f.doEverything(tx)
		})
	}
}

func (f *feed) bindPgx(tx pgx.Tx) *formsvc.Service {
	f.Helper()
	bound, err := postgres.BindPgx(tx, nil)
	if err != nil {
		f.Fatal(err)
	}
	return f.svc.With(bound)
}

// hostOrders writes a host's row and a response together: both exist after a commit, and
// neither after a rollback. A write that fails leaves the transaction usable.
func (f *feed) hostOrders(pool *pgxpool.Pool) {
	f.Helper()
	ctx := f.Context()
	for _, commits := range []bool{false, true} {
		tx, err := pool.Begin(ctx)
		if err != nil {
			f.Fatal(err)
		}
		svc := f.bindPgx(tx)
		id := f.add(svc)
		if _, err := svc.Accounts.Create(ctx, "a"); !errors.Is(err, formsvc.ErrConflict) {
			f.Errorf("a taken name: %v, want ErrConflict", err)
		}
		if err := (hostsQueries{tx}).insertOrder(ctx, id); err != nil {
			f.Fatal(err)
		}
		if !commits {
			if err := tx.Rollback(ctx); err != nil {
				f.Fatal(err)
			}
			continue
		}
		if err := tx.Commit(ctx); err != nil {
			f.Fatal(err)
		}
		f.svc.Notify()
	}
	if err := orderForm(ctx, pool, f.svc, f.account, f.campaign); err != nil {
		f.Error(err)
	}
	list, err := f.svc.Responses.List(ctx, formsvc.ResponseQuery{AccountID: f.account, CampaignID: f.campaign})
	orders, err2 := hostsQueries{pool}.countOrders(ctx)
	if err := errors.Join(err, err2); err != nil || list.Total != 2 || orders != 2 {
		f.Errorf("%d responses and %d orders (%v), want two of each", list.Total, orders, err)
	}
}

// doEverything makes calls with every type of column in a transaction, and compares what
// it reads there with what it reads after the commit.
func (f *feed) doEverything(tx pgx.Tx) {
	f.Helper()
	ctx, must := f.Context(), func(err error) {
		f.Helper()
		if err != nil {
			f.Fatal(err)
		}
	}
	svc := f.bindPgx(tx)
	_, _, err := svc.Webhooks.Create(ctx, f.account, formsvc.WebhookInput{URL: "https://example.com/", Events: []formsvc.EventType{"response.created"}})
	must(err)
	made, value, err := svc.Keys.Create(ctx, f.account, formsvc.KeyInput{Name: "k", Permissions: formsvc.AllPermissions()})
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
	must(svc.Remember(ctx, f.account, "again", formsvc.Reply{Status: 201, Body: []byte("\x00\xff{}")}))
	gone := f.key(f.add(svc))
	must(svc.Responses.Delete(ctx, gone, 0))
	read := func(svc *formsvc.Service) []any {
		r, err := svc.Responses.Get(ctx, key)
		must(err)
		list, err := svc.Responses.List(ctx, formsvc.ResponseQuery{AccountID: f.account, CampaignID: f.campaign})
		must(err)
		files, err := svc.Files.List(ctx, formsvc.FileQuery{AccountID: f.account, CampaignID: f.campaign, ResponseID: key.ID})
		must(err)
		signatures, err := svc.Signatures.List(ctx, formsvc.SignatureQuery{AccountID: f.account, CampaignID: f.campaign, ResponseID: key.ID})
		must(err)
		comments, err := svc.Comments.List(ctx, formsvc.CommentQuery{AccountID: f.account, CampaignID: f.campaign, ResponseID: key.ID})
		must(err)
		about, err := svc.Events.About(ctx, key, 100)
		must(err)
		hooks, err := svc.Webhooks.List(ctx, f.account)
		must(err)
		reply, err := svc.Recall(ctx, f.account, "again")
		must(err)
		campaign, err := svc.Campaigns.Get(ctx, formsvc.CampaignKey{AccountID: f.account, ID: f.campaign})
		must(err)
		if r.User.FirstName != odd || len(about) != 6 || len(files.Items) != 1 || !bytes.Equal(reply.Body, []byte("\x00\xff{}")) {
			f.Errorf("read %+v, %d events, %d files, %q", r, len(about), len(files.Items), reply.Body)
		}
		return []any{r, list, files, signatures, comments, about, hooks, reply, campaign}
	}
	inside := read(svc)
	must(tx.Commit(ctx))
	for i, after := range read(f.svc) {
		if !reflect.DeepEqual(inside[i], after) {
			f.Errorf("in the transaction there was %+v, after it %+v", inside[i], after)
		}
	}
	if p, err := f.svc.Keys.Authenticate(ctx, value); err != nil || p.KeyID != made.ID {
		f.Errorf("the key is of %+v (%v)", p, err)
	}
}

// BindPgx refuses what isn't a transaction, and settings that would change stored values.
func TestBindPgxRefuses(t *testing.T) {
	t.Parallel()
	if _, err := postgres.BindPgx(nil, nil); err == nil {
		t.Error("nil was taken for a transaction")
	}
	f := newFeed(t)
	conn, err := pgx.Connect(t.Context(), f.store.dsn+"&standard_conforming_strings=off")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.BindPgx(tx, nil); err == nil || !strings.Contains(err.Error(), "standard_conforming_strings") {
		t.Errorf("error %v, want one that names the setting", err)
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
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var pool postgres.Tx = preparedTx{tx}
	bound, err := postgres.Bind(pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := f.add(f.svc.With(bound))
	if err := errors.Join(f.move(f.svc.With(bound), f.key(id), "seen"), tx.Commit()); err != nil {
		t.Fatal(err)
	}
	if r, err := f.svc.Responses.Get(t.Context(), f.key(id)); err != nil || r.Status != "seen" {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := postgres.Bind(nil, nil); err == nil {
		t.Error("a store is bound to no transaction")
	}
	for _, none := range []any{db, f.db} {
		if _, ok := none.(postgres.Tx); ok {
			t.Errorf("a %T can be taken for a transaction", none)
		}
	}
}
