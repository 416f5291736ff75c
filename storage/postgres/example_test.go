package postgres_test

import (
	"context"
	"fmt"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres"
)

// A service on Postgres, as one of any number of nodes.
func Example() {
	r, err := submit(context.Background(), "postgres://forms@localhost/forms")
	fmt.Println(r.Status, err)
}

// submit opens the database, which makes its tables the first time, and takes a
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
	return svc.Responses.Create(ctx, account.ID, campaign.ID, formsvc.ResponseInput{
		User: formsvc.User{Email: "ada@example.com"},
	})
}
