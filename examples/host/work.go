package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/webhook"
)

func (p *product) migrate(ctx context.Context) error {
	_, err := p.pool.Exec(ctx, `
		CREATE TABLE IF NOT EXISTS plans (account_id text PRIMARY KEY, plan text NOT NULL);
		CREATE TABLE IF NOT EXISTS boats (response_id text PRIMARY KEY, boat text NOT NULL);
		CREATE TABLE IF NOT EXISTS mailed (one boolean PRIMARY KEY DEFAULT true, position text NOT NULL)`)
	return err
}

// newForm creates the form that asks for a membership.
func (p *product) newForm(ctx context.Context, account formsvc.ID) (c formsvc.Campaign, err error) {
	modules, err := formsvc.ModulesOf[membership]()
	if err != nil {
		return c, err
	}
	return p.forms.Campaigns.Create(ctx, account, formsvc.CampaignInput{
		Title: "Membership", Modules: modules, Workflow: "membership", Form: formsvc.Form{Enabled: true},
	})
}

// join stores a membership and reserves the boat in one transaction. The rule runs here, too.
func (p *product) join(ctx context.Context, c formsvc.CampaignKey, who formsvc.User, m membership) error {
	answers, err := formsvc.Encode(m)
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		bound, err := postgres.BindPgx(tx, nil)
		if err != nil {
			return err
		}
		r, err := p.forms.With(bound).Responses.Create(ctx, c, formsvc.ResponseInput{User: who, Answers: answers})
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "INSERT INTO boats VALUES ($1, $2)", string(r.ID), m.Boat)
		return err
	})
	p.forms.Notify()
	return err
}

// importOld adds the members of the old system, one per line: number, day, address, weight, IBAN. It can run again.
func (p *product) importOld(ctx context.Context, c formsvc.CampaignKey, lines iter.Seq[string]) (formsvc.ImportReport, error) {
	return p.forms.Responses.Import(ctx, c, func(yield func(formsvc.ImportRow, error) bool) {
		for line := range lines {
			var m membership
			var row formsvc.ImportRow
			var day string
			_, err := fmt.Sscanf(strings.ReplaceAll(line, ",", " "), "%s %s %s %d %s", &row.Reference, &day, &row.User.Email, &m.Weight, &m.IBAN)
			m.Boat, row.Status = "single", "accepted"
			answers, err2 := formsvc.Encode(m)
			at, err3 := time.Parse(time.DateOnly, day)
			row.Answers, row.CreatedAt = answers, at
			if !yield(row, errors.Join(err, err2, err3)) {
				return
			}
		}
	}, nil)
}

// mailAbout sends a mail for each new response, again after a crash between the mail and the position.
func (p *product) mailAbout(ctx context.Context) error {
	var position string
	if err := ignoreMissing(p.pool.QueryRow(ctx, "SELECT position FROM mailed").Scan(&position)); err != nil {
		return err
	}
	q := formsvc.EventQuery{After: formsvc.Cursor(position), Types: []formsvc.EventType{webhook.ResponseCreated}}
	q.OnError = func(_ context.Context, e formsvc.Event, err error) error {
		log.Println("no mail about", e.ResponseID, err)
		return nil // the next event
	}
	return p.forms.Events.FollowAll(ctx, q, func(ctx context.Context, events []formsvc.Event, next formsvc.Cursor) error {
		for _, e := range events {
			account, err := p.forms.Accounts.Get(ctx, e.AccountID)
			if err == nil {
				err = p.mail(ctx, account.Name+"@clubs.example", "There is a new response.")
			}
			if err != nil {
				return err
			}
		}
		_, err := p.pool.Exec(ctx, "INSERT INTO mailed (position) VALUES ($1) ON CONFLICT (one) DO UPDATE SET position = $1", string(next))
		return err
	})
}

// dashboard counts the tenant's boats by SQL on the views that the toolkit promises.
func (p *product) dashboard(w http.ResponseWriter, r *http.Request) {
	_, account, err := p.signedIn(r)
	if err != nil {
		http.Error(w, "sign in first", http.StatusUnauthorized)
		return
	}
	boats := map[string]int{}
	rows, _ := p.pool.Query(r.Context(), "SELECT value, count(*) FROM formsvc_v1_answers WHERE account_id = $1 AND module = 'boat' GROUP BY value", string(account))
	var boat string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&boat, &n}, func() error { boats[boat] = n; return nil })
	if err != nil {
		http.Error(w, "no dashboard now", http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(boats)
}
