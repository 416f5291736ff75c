package sqltest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// How many responses [FillResponses] creates in each of two campaigns, and how many
// [ResponseStatements] asks for.
const (
	responsesOfACampaign = 5_000
	responsesAsked       = 10
)

// lately is a time in seconds after which only a few scattered responses have changed.
const lately = 2 * responsesOfACampaign

// MostResponses is how many rows a statement of [ResponseStatements] may need to read:
// those asked for, of which half match the filter, and some more.
const MostResponses = 10 * responsesAsked

// responseID returns the identifier of the nth response of [FillResponses], created a
// second after the previous one.
func responseID(campaign, n int) formsvc.ID {
	floor := formsvc.FloorID(time.Unix(int64(n), 0))
	return floor[:24] + formsvc.ID(fmt.Sprintf("%012x", campaign))
}

// FillResponses creates an account with two campaigns of many responses.
func FillResponses(t testing.TB, db *bun.DB) {
	t.Helper()
	account := fileID(1 << 24)
	exec := func(query string) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), query)
		must(t, err)
	}
	exec(fmt.Sprintf("INSERT INTO formsvc_accounts (id, name, contact, created_at) VALUES ('%s', 'a', '', 0)", account))
	for campaign := range 2 {
		id := fileID(2<<24 + campaign)
		exec(fmt.Sprintf("INSERT INTO formsvc_campaigns (id, account_id, title, description, status, opens_at, closes_at, modules, metadata, "+
			"version, created_at, updated_at) VALUES ('%s', '%s', '', '', 'open', 0, 0, '[]', '{}', 1, 0, 0)", id, account))
		rows := make([]string, responsesOfACampaign)
		for n := range rows {
			at := time.Unix(int64(n), 0).UnixMicro()
			updated, mail := at, fmt.Sprintf("p%d", n%2)
			if n%5 == 0 && n%(responsesOfACampaign/2) < 100 || n > responsesOfACampaign-50 {
				updated, mail = time.Unix(lately+int64(n), 0).UnixMicro(), "Few"
			}
			rows[n] = fmt.Sprintf("('%s', '%s', '%s', 'R%d-%d', '%s', '%s@example.com', '', '', '{}', 1, %d, %d, 0, '')",
				responseID(campaign, n), account, id, campaign, n, []string{"pending", "validated"}[n%2], mail, at, updated)
		}
		exec("INSERT INTO formsvc_responses VALUES " + strings.Join(rows, ", "))
	}
}

// ResponseStatements reads parts of a campaign's list without a total, on a database
// filled by [FillResponses], and passes each resulting statement to look. open returns a
// store on a database of the caller.
func ResponseStatements(t *testing.T, db *bun.DB, open func(*bun.DB) Store, look func(call, statement string)) {
	t.Helper()
	r := &recorder{}
	s := open(db.WithQueryHook(r))
	account, campaign := fileID(1<<24), fileID(2<<24+1)
	for _, statement := range bunstore.BarePages() { // bun's hooks don't see these
		args := []any{campaign, account, responseID(1, 2_000), responsesAsked}
		if strings.Count(statement, "?") == 3 {
			args = slices.Delete(args, 2, 3)
		}
		look("everything", fmt.Sprintf(strings.ReplaceAll(statement, "?", "'%v'"), args...))
	}
	middle := time.Unix(responsesOfACampaign/2, 0)
	for name, q := range filteredPages() {
		q.AccountID, q.CampaignID, q.Page.Limit = account, campaign, responsesAsked
		for _, q.Page.Ascending = range []bool{true, false} {
			for _, q.Page.After = range []formsvc.ID{"", responseID(1, 1_000), formsvc.FloorID(middle), responseID(1, 4_500)} {
				r.statements = nil
				page, err := s.Responses(t.Context(), q)
				must(t, err)
				call := fmt.Sprintf("%s, ascending %t after %q", name, q.Page.Ascending, q.Page.After)
				if len(page.Items) != responsesAsked || len(r.statements) != 1 {
					t.Errorf("%s: %d responses, %d statements", call, len(page.Items), len(r.statements))
				}
				for _, statement := range r.statements {
					look(call, statement)
				}
			}
		}
	}
}

// filteredPages returns the filters that [ResponseStatements] uses.
func filteredPages() map[string]formsvc.ResponseQuery {
	list := make(map[string]formsvc.ResponseQuery)
	for name, filter := range map[string]formsvc.ResponseFilter{
		"status":         {Status: []string{"pending"}},
		"statuses":       {Status: []string{"pending", "other", "validated"}},
		"e-mail":         {Email: "p1@example.com"},
		"rare e-mail":    {Email: "Few@example.com"},
		"any such":       {Email: "few@example.com", AnyCase: true},
		"created after":  {CreatedAfter: time.Unix(100, 0)},
		"created before": {CreatedBefore: time.Unix(responsesOfACampaign, 0)},
		"updated after":  {UpdatedAfter: time.Unix(1, 0), Status: []string{"pending"}},
		"changed":        {UpdatedAfter: time.Unix(lately-1, 0)},
	} {
		list[name] = formsvc.ResponseQuery{Filter: filter, NoTotal: true}
		if strings.HasPrefix(name, "status") {
			list[name+", counted"] = formsvc.ResponseQuery{Filter: filter}
		}
	}
	return list
}
