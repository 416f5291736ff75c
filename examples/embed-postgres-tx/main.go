// Command embed-postgres-tx submits a form response inside the host program's
// own transaction: the order and the response are both there afterwards, with
// the webhook on its way, or neither is.
//
//	DATABASE_URL=postgres://localhost/shop go run ./examples/embed-postgres-tx
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of the host's database
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres"
)

func main() {
	ctx := context.Background()
	conn, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	db := bun.NewDB(conn, pgdialect.New())
	forms, campaign, err := setUp(ctx, db)
	if err != nil {
		log.Fatal(err)
	}
	r, err := order(ctx, db, forms, campaign, "a bicycle")
	fmt.Println("order stored with response", r.Reference, err)
}

// setUp puts the service on the host's database, beside the host's tables.
func setUp(ctx context.Context, db *bun.DB) (*formsvc.Service, formsvc.Campaign, error) {
	_, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS orders (response uuid PRIMARY KEY, what text NOT NULL)")
	store := postgres.New(db, nil)
	forms, newErr := formsvc.New(store, nil)
	if err = errors.Join(err, store.Migrate(ctx), newErr); err != nil {
		return nil, formsvc.Campaign{}, err
	}
	account, err := forms.Accounts.Create(ctx, "shop")
	if errors.Is(err, formsvc.ErrConflict) {
		account, err = forms.Accounts.ByName(ctx, "shop")
	}
	if err != nil {
		return nil, formsvc.Campaign{}, err
	}
	campaign, err := forms.Campaigns.Create(ctx, account.ID, formsvc.CampaignInput{Title: "Orders"})
	return forms, campaign, err
}

// order writes the host's row and the response in one transaction.
func order(
	ctx context.Context, db *bun.DB, forms *formsvc.Service, c formsvc.Campaign, what string,
) (r formsvc.Response, err error) {
	err = db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		bound, err := postgres.Bind(tx, nil)
		if err != nil {
			return err
		}
		r, err = forms.With(bound).Responses.Create(ctx, c.AccountID, c.ID, formsvc.ResponseInput{
			User:    formsvc.User{Email: "customer@example.com"},
			Answers: []formsvc.Answer{{Name: "what", Value: []string{what}}},
		})
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO orders (response, what) VALUES (?, ?)", string(r.ID), what)
		return err
	})
	return r, err
}
