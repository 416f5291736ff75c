package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/formsvc/toolkit/formsvc"
)

type filesCmd struct {
	Sweep  filesSweepCmd  `cmd:"" help:"Remove stored bytes that belong to no file and are older than a day, such as those of interrupted uploads. A server does this once a day."`
	Verify filesVerifyCmd `cmd:"" help:"Read every file and list those that are missing or damaged; exit status 1 if there are any."`
}

type filesSweepCmd struct {
	output
	DryRun bool `name:"dry-run" help:"Print what would be removed, and remove nothing."`
	Force  bool `help:"Remove even if most stored files are unknown to the database, as after restoring an old backup. Files of another database are never removed."`
}

type sweepRecord struct {
	Blobs     int   `json:"blobs"`
	Orphans   int   `json:"orphans"`
	Bytes     int64 `json:"bytes"`
	Removed   int   `json:"removed"`
	Leftovers int   `json:"leftovers"`
}

// Run sweeps.
func (c *filesSweepCmd) Run(ctx context.Context, g *global, std streams) error {
	return g.with(ctx, need{files: true}, func(svc *formsvc.Service) error {
		r, err := svc.Files.Sweep(ctx, &formsvc.SweepOptions{DryRun: c.DryRun, Force: c.Force})
		if errors.Is(err, formsvc.ErrManyOrphans) {
			return fmt.Errorf("nothing was removed: %d of %d stored files are not in the database.\n"+
				"If this is the right database, run the command again with --force", r.Orphans, r.Blobs)
		}
		return table[sweepRecord]{"STORED\tWITHOUT FILE\tBYTES\tREMOVED\tLEFTOVERS REMOVED", func(r sweepRecord) string {
			return cells(r.Blobs, r.Orphans, r.Bytes, r.Removed, r.Leftovers)
		}}.print(c.output, std, err, sweepRecord{r.Blobs, r.Orphans, r.Bytes, r.Removed, r.Leftover})
	})
}

type filesVerifyCmd struct{ output }

type damagedRecord struct {
	UUID         formsvc.ID `json:"uuid"`
	Account      formsvc.ID `json:"account"`
	CampaignUUID formsvc.ID `json:"campaignUuid"`
	ResponseUUID formsvc.ID `json:"responseUuid"`
	Name         string     `json:"name"`
	Size         int64      `json:"size"`
	CreatedAt    stamp      `json:"createdAt"`
	Problem      string     `json:"problem"`
}

// Run verifies all files, and prints each damaged one when it is found.
func (c *filesVerifyCmd) Run(ctx context.Context, g *global, std streams) error {
	return g.with(ctx, need{files: true}, func(svc *formsvc.Service) error {
		damaged := 0
		checked, err := svc.Files.Verify(ctx, func(f *formsvc.File, problem error) error {
			damaged++
			return c.print(std, f, problem)
		})
		if err != nil {
			return fmt.Errorf("%w (after %d files)", err, checked)
		}
		std.note("%d files checked, %d damaged", checked, damaged)
		if damaged > 0 {
			return errSilent
		}
		return nil
	})
}

func (c *filesVerifyCmd) print(std streams, f *formsvc.File, problem error) error {
	if c.JSON {
		return c.printJSON(std, nil, damagedRecord{
			f.ID, f.AccountID, f.CampaignID, f.ResponseID, f.Name, f.Size, stamp{f.CreatedAt}, problem.Error(),
		})
	}
	_, err := fmt.Fprintf(std.out, "%s  response %s  %q  %v\n", f.ID, f.ResponseID, f.Name, problem)
	return err
}
