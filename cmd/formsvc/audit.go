package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
		names, namesErr := personNames(ctx, svc, id)
		return table[auditRecord]{"WHEN\tWHO\tWHAT\tTARGET\tDETAILS", func(r auditRecord) string {
			details, _ := json.Marshal(r.Details) // can't fail
			if r.Actor != nil {
				r.Actor = orNull(cmp.Or(names[*r.Actor], *r.Actor))
			}
			return cells(r.CreatedAt, quoted(r.Actor), r.Action, r.Target, string(details))
		}}.print(c.output, std, cmp.Or(err, namesErr), mapped(page.Items, newAuditRecord)...)
	})
}

// personNames returns the names of an account's people, of removed ones too, by the actor in audit entries.
func personNames(ctx context.Context, svc *formsvc.Service, id formsvc.ID) (map[string]string, error) {
	list, err := svc.Members.List(ctx, id)
	removed, removedErr := svc.Members.Removed(ctx, id)
	names := map[string]string{}
	for _, m := range append(list, removed...) {
		names["person "+string(m.ID)] = m.Name
	}
	return names, errors.Join(err, removedErr)
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
