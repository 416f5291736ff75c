package postgres_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage"
	"github.com/formsvc/toolkit/storage/postgres"
)

// Run a service on Postgres, as one of any number of nodes.
func Example() {
	r, err := submit(context.Background(), "postgres://forms@localhost/forms")
	fmt.Println(r.Status, err)
}

// submit opens the database, which creates its tables the first time, and submits a
// response.
func submit(ctx context.Context, dsn string) (formsvc.Response, error) {
	store, err := postgres.Open(ctx, dsn, nil)
	if err != nil {
		return formsvc.Response{}, err
	}
	defer func() { _ = store.Close() }()
	svc, err := formsvc.New(store, nil)
	if err != nil {
		return formsvc.Response{}, err
	}
	account, err := svc.Accounts.Create(ctx, "default")
	if err != nil {
		return formsvc.Response{}, err
	}
	campaign, err := svc.Campaigns.Create(ctx, account.ID, formsvc.CampaignInput{Title: "Summer grant"})
	if err != nil {
		return formsvc.Response{}, err
	}
	return svc.Responses.Create(ctx, campaign.Key(), formsvc.ResponseInput{
		User: formsvc.User{Email: "ada@example.com"},
	})
}

// orderForm writes the host's own row and a response in one transaction of the host's pool.
// Queries that sqlc generates take the same transaction.
func orderForm(ctx context.Context, pool *pgxpool.Pool, svc *formsvc.Service, account, campaign formsvc.ID) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // does nothing after the commit
	bound, err := postgres.BindPgx(tx, nil)
	if err != nil {
		return err
	}
	r, err := svc.With(bound).Responses.Create(ctx, formsvc.CampaignKey{AccountID: account, ID: campaign}, formsvc.ResponseInput{
		User: formsvc.User{Email: "ada@example.com"},
	})
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "INSERT INTO orders (response, quantity) VALUES ($1, $2)", string(r.ID), 3); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	svc.Notify() // webhooks and followers don't wait for their next poll
	return nil
}

// Commit a row of the host and a response together, with pgx or sqlc.
func ExampleBindPgx() {
	var (
		ctx               = context.Background()
		pool              *pgxpool.Pool
		svc               *formsvc.Service
		account, campaign formsvc.ID
	)
	fmt.Println(orderForm(ctx, pool, svc, account, campaign))
}

// With gorm, with or without PrepareStmt:
//
//	db.Transaction(func(tx *gorm.DB) error {
//		err := order(ctx, tx.Statement.ConnPool.(storage.Tx), svc)
//		…
//
// Its ConnPool has the methods of a *sql.Tx.
func ExampleBind() {
	order := func(ctx context.Context, tx storage.Tx, svc *formsvc.Service, account, campaign formsvc.ID) error {
		bound, err := postgres.Bind(tx, nil)
		if err != nil {
			return err
		}
		_, err = svc.With(bound).Responses.Create(ctx, formsvc.CampaignKey{AccountID: account, ID: campaign}, formsvc.ResponseInput{
			User: formsvc.User{Email: "ada@example.com"},
		})
		return err
	}
	_ = order
}
