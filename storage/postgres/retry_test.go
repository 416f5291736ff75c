package postgres_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// The server rolls back a write several times, as after a deadlock: the write is retried
// three times, then it fails as unavailable and has changed nothing. A sequence counts
// the attempts, because rollbacks don't undo it.
func TestRetries(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"40P01", "40001"} { // deadlock_detected, serialization_failure
		for _, c := range []struct {
			failures int
			want     error
		}{{3, nil}, {4, formsvc.ErrUnavailable}} {
			t.Run(fmt.Sprintf("%s %d times", code, c.failures), func(t *testing.T) {
				t.Parallel()
				f := newFeed(t)
				key := formsvc.ResponseKey{AccountID: f.account, CampaignID: f.campaign, ID: f.add(f.svc)}
				for _, statement := range []string{
					"CREATE SEQUENCE tries",
					fmt.Sprintf("CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "+
						"IF nextval('tries') <= %d THEN RAISE EXCEPTION 'undone' USING ERRCODE = '%s'; END IF; RETURN NEW; END $$",
						c.failures, code),
					"CREATE TRIGGER undo BEFORE INSERT OR UPDATE ON formsvc_responses FOR EACH ROW EXECUTE FUNCTION undo()",
				} {
					must(f.db.ExecContext(t.Context(), statement))
				}
				status := "changed"
				if _, err := f.svc.Responses.Update(t.Context(), key, formsvc.ResponsePatch{Status: &status}); !errors.Is(err, c.want) {
					t.Errorf("update: %v, want %v", err, c.want)
				}
				must(f.db.ExecContext(t.Context(), "ALTER SEQUENCE tries RESTART"))
				_, err := f.svc.Responses.Create(t.Context(), formsvc.CampaignKey{AccountID: f.account, ID: f.campaign}, formsvc.ResponseInput{
					User: formsvc.User{Email: "b@example.com"},
				})
				if !errors.Is(err, c.want) {
					t.Errorf("create: %v, want %v", err, c.want)
				}
				page, err := f.svc.Responses.List(t.Context(), formsvc.ResponseQuery{AccountID: f.account, CampaignID: f.campaign})
				if want := 2; err != nil || c.want == nil && len(page.Items) != want || c.want != nil && len(page.Items) != want-1 {
					t.Errorf("%d responses, %v", len(page.Items), err)
				}
				r, err := f.svc.Responses.Get(t.Context(), key)
				if err != nil || (r.Status == status) != (c.want == nil) {
					t.Errorf("status %q, %v", r.Status, err)
				}
			})
		}
	}
}
