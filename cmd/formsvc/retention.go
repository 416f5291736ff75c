package main

import (
	"context"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

type retentionCmd struct {
	Run retentionRunCmd `cmd:"" help:"Remove the responses of a campaign that are older than --older-than, with everything that belongs to them. Run it regularly, for example with cron."`
}

type retentionRunCmd struct {
	inAccount
	output
	OlderThan span     `required:"" placeholder:"DUR" help:"Minimum age of the responses to remove, such as 365d or 720h."`
	Campaign  recordID `required:"" placeholder:"UUID" help:"The campaign."`
}

// Run removes old responses and prints the receipt.
func (c *retentionRunCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, need{files: true}, func(svc *formsvc.Service, id formsvc.ID) error {
		key := formsvc.CampaignKey{AccountID: id, ID: formsvc.ID(c.Campaign)}
		receipt, err := svc.Campaigns.EraseOlder(ctx, key, time.Duration(c.OlderThan))
		return c.missing(c.printReceipt(std, &receipt, err), "campaign", c.Campaign)
	})
}
