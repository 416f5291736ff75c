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
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	forms, err := formsvc.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	account, err := forms.Accounts.Create(ctx, "shop")
	if err != nil {
		t.Fatal(err)
	}
	c, err := forms.Campaigns.Create(ctx, account.ID, formsvc.CampaignInput{Title: "Orders"})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := orderWithPgx(ctx, pool, forms, c, "a lamp"); err == nil {
		t.Error("an order went without a table for it")
	}
	_, err = pool.Exec(ctx, "CREATE TABLE orders (response text, what text)")
	if err := errors.Join(err, orderWithPgx(ctx, pool, forms, c, "a lamp")); err != nil {
		t.Fatal(err)
	}
	list, err := forms.Responses.List(ctx, formsvc.ResponseQuery{AccountID: account.ID, CampaignID: c.ID})
	if err != nil || list.Total != 1 {
		t.Errorf("%d responses (%v), want that of the second order", list.Total, err)
	}
}
