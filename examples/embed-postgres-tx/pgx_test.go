package main

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// orderWithPgx does the same on a pool of pgx, as sqlc uses it: order begins the transaction on a
// connection of the pool.
func orderWithPgx(ctx context.Context, pool *pgxpool.Pool, forms *formsvc.Service, c formsvc.Campaign, what string) error {
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }() // the pool stays open
	_, err := order(ctx, db, forms, c, what)
	return err
}

func TestOrderWithPgx(t *testing.T) {
	ctx, dsn := t.Context(), postgrestest.DSN(t)
	store, err := postgres.Open(ctx, dsn, nil)
	noError(t, err)
	defer func() { _ = store.Close() }()
	forms := must(formsvc.New(store, nil))
	account := must(forms.Accounts.Create(ctx, "shop"))
	c := must(forms.Campaigns.Create(ctx, account.ID, formsvc.CampaignInput{Title: "Orders"}))
	pool := must(pgxpool.New(ctx, dsn))
	defer pool.Close()
	if err := orderWithPgx(ctx, pool, forms, c, "a lamp"); err == nil {
		t.Error("an order went without a table for it")
	}
	_, err = pool.Exec(ctx, "CREATE TABLE orders (response text, what text)")
	noError(t, errors.Join(err, orderWithPgx(ctx, pool, forms, c, "a lamp")))
	list, err := forms.Responses.List(ctx, formsvc.ResponseQuery{AccountID: account.ID, CampaignID: c.ID})
	if err != nil || list.Total != 1 {
		t.Errorf("%d responses (%v), want that of the second order", list.Total, err)
	}
}
