// Command embed-postgres-tx submits a form response inside the host application's own
// transaction: the order, the response, its event and its webhooks commit together, or
// none of them does.
//
//	DATABASE_URL=postgres://localhost/shop go run ./examples/embed-postgres-tx
package main

import (
	"context"
	"database/sql"
	"log"
	"os"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver of the host application's database
)

func main() {
	ctx := context.Background()
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	forms, campaign, err := setUp(ctx, db)
	if err != nil {
		log.Fatal(err)
	}
	r, err := order(ctx, db, forms, campaign, "a bicycle")
	if err != nil {
		log.Fatal(err)
	}
	log.Println("order stored with response", r.Reference)
}

// setUp creates the service on the host application's database, beside its tables.
func setUp(ctx context.Context, db *sql.DB) (forms *formsvc.Service, c formsvc.Campaign, err error) {
	if _, err = db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS orders (response uuid PRIMARY KEY, what text NOT NULL)"); err != nil {
		return nil, c, err
	}
	store, err := postgres.OpenDB(ctx, db, nil)
	if err != nil {
		return nil, c, err
	}
	if forms, err = formsvc.New(store, nil); err != nil {
		return nil, c, err
	}
	account, err := forms.Accounts.Ensure(ctx, "shop")
	if err != nil {
		return nil, c, err
	}
	c, err = forms.Campaigns.Create(ctx, account, formsvc.CampaignInput{Title: "Orders"})
	return forms, c, err
}

// order writes the host application's row and the response in one transaction.
func order(ctx context.Context, db *sql.DB, forms *formsvc.Service, c formsvc.Campaign, what string) (r formsvc.Response, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return r, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	bound, err := postgres.Bind(tx, nil) // a bun.Tx works too
	if err != nil {
		return r, err
	}
	r, err = forms.With(bound).Responses.Create(ctx, c.Key(), formsvc.ResponseInput{
		User: formsvc.User{Email: "customer@example.com"}, Answers: []formsvc.Answer{{Name: "what", Value: []string{what}}},
	})
	if err != nil {
		return r, err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (response, what) VALUES ($1, $2)", string(r.ID), what); err != nil {
		return r, err
	}
	err = tx.Commit()
	forms.Notify() // wakes the engine and followers of events, which would wait for their next poll
	return r, err
}
