package sqltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/uptrace/bun/dialect"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// deletedAccount deletes an account while others write to it. Afterwards no table has a row of it, and the other account is
// as before.
func deletedAccount(t *testing.T, d Database) {
	s := newScene(t, d)
	r, change := s.response("kept")
	must(t, s.CreateResponse(t.Context(), r, 1, change))
	svc, err := formsvc.New(s, &formsvc.Options{CheckURL: func(context.Context, string) error { return nil }})
	must(t, err)
	_, err = svc.Keys.Create(t.Context(), s.account, formsvc.KeyInput{Name: "k", Permissions: []formsvc.Permission{formsvc.CampaignsRead}})
	must(t, err)
	before := d.rows(t, "")
	for round := range 3 {
		a, err := svc.Accounts.Create(t.Context(), "tenant")
		must(t, err)
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				for n := range 5 {
					for _, err := range settle(t.Context(), svc, a.ID, fmt.Sprintf("%d-%d", i, n)) {
						if err != nil && (round == 0 || !errors.Is(err, formsvc.ErrNotFound)) {
							t.Errorf("a write: %v", err)
						}
					}
				}
			})
		}
		if round == 0 { // the deletion of what is complete
			all.Wait()
		}
		receipt, err := svc.Accounts.Delete(t.Context(), a.ID)
		if err != nil || receipt.FinishedAt.IsZero() || round == 0 && (receipt.Responses != 15 || receipt.Events != 60) {
			t.Errorf("%+v, %v", receipt, err)
		}
		all.Wait()
		for table, n := range d.rows(t, a.ID) {
			if n != 0 && n != before[table] {
				t.Errorf("%s has %d rows, and had %d", table, n, before[table])
			}
		}
		_, err = svc.Accounts.Delete(t.Context(), a.ID)
		if !errors.Is(err, formsvc.ErrNotFound) {
			t.Errorf("again: %v", err)
		}
	}
	if _, err := d.DB.ExecContext(t.Context(), "DELETE FROM formsvc_audit"); err == nil {
		t.Error("the audit trail of the other account can be deleted")
	}
	s.wantResponses(t, 1)
}

// settle adds a record of each kind to an account.
func settle(ctx context.Context, svc *formsvc.Service, account formsvc.ID, key string) []error {
	c, campaignErr := svc.Campaigns.Create(ctx, account, formsvc.CampaignInput{Title: "c", Status: formsvc.CampaignOpen})
	user := formsvc.User{Email: "eve@example.com"}
	hook, _, hookErr := svc.Webhooks.Create(ctx, account, formsvc.WebhookInput{URL: "https://example.com/" + key[:1], Events: webhook.EventTypes()})
	once := svc.Once(&formsvc.Idempotency{Key: key})
	r, err := once.Responses.Create(ctx, c.Key(), formsvc.ResponseInput{User: user})
	if err == nil {
		_, err = svc.Responses.Update(ctx, r.Key(), formsvc.ResponsePatch{Status: new("confirmed")})
	}
	_, commentErr := svc.Comments.Create(ctx, r.Key(), formsvc.CommentInput{Body: "b"})
	_, signErr := svc.Signatures.Create(ctx, r.Key(), formsvc.SignatureInput{Signer: user})
	_, testErr := svc.Webhooks.Test(ctx, formsvc.WebhookKey{AccountID: account, ID: hook.ID})
	_, keyErr := svc.Keys.Create(ctx, account, formsvc.KeyInput{Name: "k", Permissions: []formsvc.Permission{formsvc.CampaignsRead}})
	_, _, linkErr := svc.Sessions.NewLink(ctx, account)
	return []error{campaignErr, err, hookErr, commentErr, signErr, testErr, keyErr, linkErr}
}

// rows returns how many rows each table has; one with accounts, how many of that account.
func (d *Database) rows(t *testing.T, account formsvc.ID) map[string]int {
	t.Helper()
	query := "SELECT t.relname, (SELECT count(*) FROM pg_attribute AS a WHERE a.attrelid = t.oid AND a.attname = 'account_id') " +
		"FROM pg_class AS t WHERE t.relnamespace = current_schema::regnamespace AND t.relkind = 'r' AND starts_with(t.relname, 'formsvc_')"
	id := "'" + string(account) + "'"
	if d.DB.Dialect().Name() == dialect.SQLite {
		query = "SELECT t.name, (SELECT count(*) FROM pragma_table_info(t.name) AS c WHERE c.name = 'account_id') " +
			"FROM sqlite_schema AS t WHERE t.type = 'table' AND t.name LIKE 'formsvc_%'"
		id = "X'" + strings.ReplaceAll(string(account), "-", "") + "'"
	}
	var tables []struct {
		Name string
		Has  int
	}
	rows, err := d.DB.QueryContext(t.Context(), query)
	must(t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		tables = append(tables, struct {
			Name string
			Has  int
		}{})
		last := &tables[len(tables)-1]
		must(t, rows.Scan(&last.Name, &last.Has))
	}
	must(t, rows.Err())
	counts := make(map[string]int)
	for _, table := range tables {
		count := "SELECT count(*) FROM " + table.Name
		if table.Has > 0 && account != "" {
			count += " WHERE account_id = " + id
		}
		var n int
		must(t, d.DB.QueryRowContext(t.Context(), count).Scan(&n))
		counts[table.Name] = n
	}
	return counts
}
