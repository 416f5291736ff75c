package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/formsvc/toolkit/formsvc"
)

type eraseCmd struct {
	inAccount
	output
	Email string `required:"" placeholder:"EMAIL" help:"E-mail address of the person whose data to remove, in upper or lower case."`
}

// Help returns the detailed help.
func (*eraseCmd) Help() string {
	return `Removes the person's responses with their files, comments, signatures, events and delivery logs, the person's signatures in
other responses, and events that name the person. There is no confirmation: "formsvc person export" shows before what it is.
What other people wrote stays, and so does what webhooks received before. Backups are not changed. Servers may keep running,
but responses that are submitted meanwhile may stay. If the command is interrupted, run it again.`
}

// Run erases a person's data and prints the receipt.
func (c *eraseCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, need{files: true}, func(svc *formsvc.Service, id formsvc.ID) error {
		receipt, err := svc.Accounts.ErasePerson(ctx, id, c.Email)
		return c.printReceipt(std, &receipt, err)
	})
}

// receiptRecord lists what was removed or exported, without the person's e-mail address.
type receiptRecord struct {
	Receipt      formsvc.ID  `json:"receipt"`
	AccountUUID  formsvc.ID  `json:"accountUuid"`
	CampaignUUID *formsvc.ID `json:"campaignUuid"`
	Before       stamp       `json:"before"`
	Complete     bool        `json:"complete"`
	Responses    int         `json:"responses"`
	Files        int         `json:"files"`
	Signatures   int         `json:"signatures"`
	Events       int         `json:"events"`
	BlobsLeft    int         `json:"blobsLeft"` // contents that could not be removed or exported
	StartedAt    stamp       `json:"startedAt"`
	FinishedAt   stamp       `json:"finishedAt"`
}

// printReceipt prints what was removed, even if an error interrupted the erasure.
func (o output) printReceipt(std streams, r *formsvc.Receipt, err error) error {
	if err != nil && (r.ID == "" || r.IsZero()) {
		return err
	}
	if err != nil {
		err = fmt.Errorf("%w\nThe receipt shows what was removed so far; run the command again to continue", err)
	}
	if r.BlobsLeft > 0 {
		std.note("The contents of %d files could not be removed; \"formsvc files sweep\" removes them when they are a day old.", r.BlobsLeft)
	}
	return errors.Join(err, o.printCounts(std, r))
}

// printCounts prints the numbers of a receipt.
func (o output) printCounts(std streams, r *formsvc.Receipt) error {
	if o.JSON {
		return o.printJSON(std, nil, receiptRecord{
			r.ID, r.AccountID, orNull(r.CampaignID), stamp{r.Before}, !r.FinishedAt.IsZero(),
			r.Responses, r.Files, r.Signatures, r.Events, r.BlobsLeft, stamp{r.StartedAt}, stamp{r.FinishedAt},
		})
	}
	_, err := fmt.Fprintf(std.out, "receipt     %s\nresponses   %d\nfiles       %d\nsignatures  %d\nevents      %d\nfinished    %s\n",
		r.ID, r.Responses, r.Files, r.Signatures, r.Events, stamp{r.FinishedAt})
	return err
}
