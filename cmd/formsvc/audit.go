package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

type auditCmd struct {
	List auditListCmd `cmd:"" help:"List audit entries, newest first."`
}

type auditListCmd struct {
	inAccount
	output
	Action string `placeholder:"ACTION" help:"Only entries with this action, such as key.created, webhook.deleted or erasure.done."`
	Since  span   `placeholder:"DUR" help:"Only entries from this long ago until now, such as 30d or 12h."`
	Limit  int    `default:"100" help:"List at most this many entries; 0 lists all."`
}

type auditRecord struct {
	UUID      formsvc.ID          `json:"uuid"`
	CreatedAt stamp               `json:"createdAt"`
	Actor     *string             `json:"actor"`
	Action    formsvc.AuditAction `json:"action"`
	Target    *formsvc.ID         `json:"target"`
	Details   map[string]string   `json:"details"`
}

func newAuditRecord(e formsvc.AuditEntry) auditRecord {
	r := auditRecord{e.ID, stamp{e.CreatedAt}, orNull(e.Actor), e.Action, orNull(e.Target), e.Details}
	if r.Details == nil {
		r.Details = map[string]string{}
	}
	return r
}

// Run lists the audit trail.
func (c *auditListCmd) Run(ctx context.Context, g *global, std streams) error {
	if c.Limit < 0 {
		return usageError{errors.New("--limit: must not be negative")}
	}
	return c.with(ctx, g, func(svc *formsvc.Service, id formsvc.ID) error {
		q := formsvc.AuditQuery{AccountID: id, Action: formsvc.AuditAction(c.Action)}
		if c.Since > 0 {
			q.Since = time.Now().Add(-time.Duration(c.Since))
		}
		var list []auditRecord
		for {
			q.Page.Limit = formsvc.MaxLimit
			if c.Limit > 0 {
				q.Page.Limit = min(c.Limit-len(list), formsvc.MaxLimit)
			}
			page, err := svc.Audits.List(ctx, q)
			if err != nil {
				return err
			}
			list = append(list, mapped(page.Items, newAuditRecord)...)
			if !page.More || len(list) == c.Limit {
				return records(c.output, std.out, "WHEN\tWHO\tWHAT\tTARGET\tDETAILS", list, auditLine)
			}
			q.Page.After = page.Items[len(page.Items)-1].ID
		}
	})
}

func auditLine(r auditRecord) string {
	who, target := "-", "-"
	if r.Actor != nil {
		who = strconv.Quote(*r.Actor)
	}
	if r.Target != nil {
		target = string(*r.Target)
	}
	var details []string
	for _, name := range slices.Sorted(maps.Keys(r.Details)) {
		details = append(details, fmt.Sprintf("%s=%q", name, r.Details[name]))
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", r.CreatedAt, who, r.Action, target, strings.Join(details, " "))
}

// actor returns the actor in audit entries of commands: the user of the operating system, by name if there is one.
func actor() string {
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return "cli uid " + strconv.Itoa(os.Getuid())
	}
	return "cli " + u.Username
}

// serveActor is the actor in audit entries of a server's own actions.
const serveActor = "serve"
