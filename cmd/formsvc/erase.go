package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	return g.withFiles(ctx, func(svc *formsvc.Service) error {
		id, err := account(ctx, svc, c.Account)
		if err != nil {
			return err
		}
		receipt, err := svc.Erasure.Person(ctx, id, c.Email)
		return c.printReceipt(std, &receipt, err)
	})
}

// receiptRecord lists what was removed, without the person's e-mail address.
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
	BlobsLeft    int         `json:"blobsLeft"`
	StartedAt    stamp       `json:"startedAt"`
	FinishedAt   stamp       `json:"finishedAt"`
}

func newReceiptRecord(r *formsvc.Receipt) receiptRecord {
	return receiptRecord{
		Receipt: r.ID, AccountUUID: r.AccountID, CampaignUUID: orNull(r.CampaignID), Before: stamp{r.Before},
		Complete: !r.FinishedAt.IsZero(), Responses: r.Responses, Files: r.Files, Signatures: r.Signatures, Events: r.Events,
		BlobsLeft: r.BlobsLeft, StartedAt: stamp{r.StartedAt}, FinishedAt: stamp{r.FinishedAt},
	}
}

// printReceipt prints what was removed, even if an error interrupted the erasure.
func (o output) printReceipt(std streams, r *formsvc.Receipt, err error) error {
	if err != nil && (r.ID == "" || r.IsZero()) {
		return err
	}
	if err != nil {
		err = fmt.Errorf("%w\nThe receipt shows what was removed so far; run the command again to continue", err)
	}
	if o.JSON {
		return errors.Join(err, records(o, std.out, "", []receiptRecord{newReceiptRecord(r)}, nil))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "receipt     %s\nresponses   %d removed\nfiles       %d removed\nsignatures  %d removed\nevents      %d removed\n",
		r.ID, r.Responses, r.Files, r.Signatures, r.Events)
	if !r.FinishedAt.IsZero() {
		fmt.Fprintf(&b, "finished    %s\n", stamp{r.FinishedAt})
	}
	if r.BlobsLeft > 0 {
		_, _ = fmt.Fprintf(std.err, "The contents of %d files could not be removed; \"formsvc files sweep\" removes them when they are a day old.\n", r.BlobsLeft)
	}
	_, printErr := fmt.Fprint(std.out, b.String())
	return errors.Join(err, printErr)
}
