package main

import (
	"context"
	"encoding/json"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

type auditCmd struct {
	List auditListCmd `cmd:"" help:"List audit entries, newest first."`
}

type auditListCmd struct {
	inAccount
	output
	Action string `placeholder:"ACTION" help:"Only entries with this action, such as key.created, webhook.deleted or erasure.done."`
	Since  moment `placeholder:"T" help:"Only entries since then: a time such as 2026-11-21T08:30:00Z, or how long ago, such as 30d."`
	Limit  int    `default:"100" help:"List at most this many entries, 1 to 1000."`
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
	if err := checkLimit(c.Limit); err != nil {
		return err
	}
	return c.with(ctx, g, need{}, func(svc *formsvc.Service, id formsvc.ID) error {
		page, err := svc.Audits.List(ctx, formsvc.AuditQuery{
			AccountID: id, Action: formsvc.AuditAction(c.Action), Since: time.Time(c.Since), Page: formsvc.PageQuery{Limit: c.Limit},
		})
		return table[auditRecord]{"WHEN\tWHO\tWHAT\tTARGET\tDETAILS", func(r auditRecord) string {
			details, _ := json.Marshal(r.Details) // can't fail
			return cells(r.CreatedAt, quoted(r.Actor), r.Action, r.Target, string(details))
		}}.print(c.output, std, err, mapped(page.Items, newAuditRecord)...)
	})
}

// quoted quotes a text that may control a terminal.
func quoted(s *string) string {
	if s == nil {
		return ""
	}
	return strconv.Quote(*s)
}

// actor returns the actor in audit entries of commands: the user of the operating system, by name if there is one.
func actor() formsvc.Actor {
	return formsvc.Actor{Type: webhook.ActorSystem, Name: cliUser()}
}

func cliUser() string {
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return "cli uid " + strconv.Itoa(os.Getuid())
	}
	return "cli " + u.Username
}

// serveActor is the actor in audit entries of a server's own actions.
const serveActor = "serve"
