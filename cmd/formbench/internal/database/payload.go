package database

import (
	"context"
	"errors"

	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
)

// SamplePayload returns what the service sends for a response.
func SamplePayload(ctx context.Context) ([]byte, error) {
	svc, err := formsvc.New(memory.New(), nil)
	if err != nil {
		return nil, err
	}
	account, err := svc.Accounts.Create(ctx, "bench")
	if err != nil {
		return nil, err
	}
	campaign, err := svc.Campaigns.Create(ctx, account.ID, CampaignInput())
	if err != nil {
		return nil, err
	}
	user, answers := fixture.Submission(0)
	in := formsvc.ResponseInput{User: user, Answers: answers}
	if _, err := svc.Responses.Create(ctx, account.ID, campaign.ID, in); err != nil {
		return nil, err
	}
	page, err := svc.Events.List(ctx, formsvc.EventQuery{AccountID: account.ID})
	if err != nil {
		return nil, err
	}
	if len(page.Items) != 1 {
		return nil, errors.New("a response made no event")
	}
	return page.Items[0].Payload, nil
}
