package memory_test

import (
	"context"
	"fmt"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
)

// Run a service in a test: everything works, and nothing is left afterwards.
func Example() {
	ctx := context.Background()
	store := memory.New()
	defer func() { _ = store.Close() }()
	svc, err := formsvc.New(store, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	account, err := svc.Accounts.Create(ctx, "default")
	if err != nil {
		fmt.Println(err)
		return
	}
	campaign, err := svc.Campaigns.Create(ctx, account.ID, formsvc.CampaignInput{Title: "Summer grant"})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := svc.Responses.Create(ctx, campaign.Key(), formsvc.ResponseInput{
		User: formsvc.User{Email: "ada@example.com"},
	})
	fmt.Println(r.Status, err)
	// Output: pending <nil>
}
