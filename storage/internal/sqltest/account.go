package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/uptrace/bun/dialect"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
	"github.com/formsvc/toolkit/webhook"
)

// deletedAccount deletes an account while others write to it. Afterwards the tables have as many rows as
// before it was created.
func deletedAccount(t *testing.T, d Database) {
	s := newScene(t, d)
	r, change := s.response("kept")
	noError(t, s.CreateResponse(t.Context(), r, 1, change))
	svc := must(formsvc.New(s, &formsvc.Options{CheckURL: func(context.Context, string) error { return nil }}))
	must(svc.Keys.Create(t.Context(), s.account, formsvc.KeyInput{Name: "k", Permissions: formsvc.AllPermissions()}))
	before := d.rows(t)
	for round := range 2 {
		a := must(svc.Accounts.Create(t.Context(), "tenant"))
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
			keys := must(svc.Keys.List(t.Context(), a.ID))
			must(svc.Quotas.Take(t.Context(), &formsvc.Principal{AccountID: a.ID, KeyID: keys[0].ID}))
		}
		receipt, err := svc.Accounts.Delete(t.Context(), a.ID)
		if err != nil || receipt.FinishedAt.IsZero() || round == 0 && (receipt.Responses != 15 || receipt.Events != 60) {
			t.Errorf("%+v, %v", receipt, err)
		}
		all.Wait()
		if after := d.rows(t); !maps.Equal(after, before) {
			t.Errorf("the tables have %v rows, and had %v", after, before)
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

// deletedInParts checks that no write of a deletion removes more idempotency records than it may.
func deletedInParts(t *testing.T, d Database) {
	s := newScene(t, d)
	before, id := d.rows(t), s.id()
	noError(t, s.CreateAccount(t.Context(), formsvc.Account{ID: id, Name: "tenant", CreatedAt: s.now}, nil, formsvc.Change{}))
	for i := range 5 {
		r := formsvc.IdempotencyRecord{AccountID: id, Key: fmt.Sprint(i), Result: []byte("{}"), CreatedAt: s.now}
		noError(t, s.Commit(t.Context(), formsvc.Change{Idempotency: &r}))
	}
	const limit = 2
	for left, deleted := 5, false; !deleted; {
		out := must(s.DeleteAccount(t.Context(), id, limit))
		n := d.rows(t)["formsvc_idempotency"]
		if left-n > limit || out.Account && n > 0 {
			t.Fatalf("a write left %d of %d records (%+v)", n, left, out)
		}
		left, deleted = n, out.Account
	}
	if after := d.rows(t); !maps.Equal(after, before) {
		t.Errorf("the tables have %v rows, and had %v", after, before)
	}
}

// settle adds a record of each kind to an account.
func settle(ctx context.Context, svc *formsvc.Service, account formsvc.ID, key string) (errs [8]error) {
	user, webhookIn := formsvc.User{Email: "eve@example.com"}, formsvc.WebhookInput{URL: "https://example.com/" + key[:1], Events: webhook.EventTypes()}
	c, err := svc.Campaigns.Create(ctx, account, formsvc.CampaignInput{Title: "c", Status: formsvc.CampaignOpen})
	errs[0] = err
	hook, _, err := svc.Webhooks.Create(ctx, account, webhookIn)
	errs[1] = err
	r, _, err := formsvc.Do(svc, formsvc.Call{Idempotency: &formsvc.Idempotency{Key: key}}, func(svc *formsvc.Service) (formsvc.Response, error) {
		return svc.Responses.Create(ctx, c.Key(), formsvc.ResponseInput{User: user})
	})
	if errs[2] = err; err == nil {
		_, errs[2] = svc.Responses.Update(ctx, r.Key(), formsvc.ResponsePatch{Status: new("confirmed")})
	}
	_, errs[3] = svc.Comments.Create(ctx, r.Key(), formsvc.CommentInput{Body: "b"})
	_, errs[4] = svc.Signatures.Create(ctx, r.Key(), formsvc.SignatureInput{Signer: user})
	_, errs[5] = svc.Webhooks.Test(ctx, formsvc.WebhookKey{AccountID: account, ID: hook.ID})
	_, errs[6] = svc.Keys.Create(ctx, account, formsvc.KeyInput{Name: "k", Permissions: formsvc.AllPermissions()})
	_, _, errs[7] = svc.Sessions.NewLink(ctx, account)
	return errs
}

// rows returns how many rows each table has.
func (d *Database) rows(t *testing.T) map[string]int {
	t.Helper()
	query := "SELECT tablename FROM pg_tables WHERE schemaname = current_schema AND starts_with(tablename, 'formsvc_')"
	if d.DB.Dialect().Name() == dialect.SQLite {
		query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'formsvc_%'"
	}
	tables := must(bunstore.List(t.Context(), d.DB, func(rows *sql.Rows, name *string) error { return rows.Scan(name) }, query))
	counts := make(map[string]int)
	for _, table := range tables {
		count := "SELECT count(*) FROM " + table
		if table == "formsvc_events" { // SQLite keeps the last position in a row without a time
			count += " WHERE created_at <> 0"
		}
		var n int
		noError(t, d.DB.QueryRowContext(t.Context(), count).Scan(&n))
		counts[table] = n
	}
	return counts
}
