package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

type retentionCmd struct {
	Run retentionRunCmd `cmd:"" help:"Remove the responses of a campaign that are older than --older-than, with everything that belongs to them. Run it regularly, for example with cron."`
}

type retentionRunCmd struct {
	inAccount
	output
	OlderThan span   `required:"" placeholder:"DUR" help:"Minimum age of the responses to remove, such as 365d or 720h."`
	Campaign  string `required:"" placeholder:"UUID" help:"The campaign."`
}

// Run removes old responses and prints the receipt.
func (c *retentionRunCmd) Run(ctx context.Context, g *global, std streams) error {
	campaign, err := parseID(c.Campaign)
	if err != nil {
		return usageError{fmt.Errorf("--campaign: %w", err)}
	}
	return g.withFiles(ctx, func(svc *formsvc.Service) error {
		id, err := account(ctx, svc, c.Account)
		if err != nil {
			return err
		}
		key := formsvc.CampaignKey{AccountID: id, ID: campaign}
		receipt, err := svc.Erasure.Older(ctx, key, time.Duration(c.OlderThan))
		if errors.Is(err, formsvc.ErrNotFound) {
			return fmt.Errorf("account %q has no campaign %s", c.Account, campaign)
		}
		return c.printReceipt(std, &receipt, err)
	})
}
