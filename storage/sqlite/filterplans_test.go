//go:build long

package sqlite_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// A page of a filtered list and its total read only the range of an index that can match, and
// the rows of the page by their identifiers.
func TestFilterPlans(t *testing.T) {
	t.Parallel()
	db := raw(t, filepath.Join(t.TempDir(), "forms.db"))
	var seen statements
	s := sqlite.NewOn(db.WithQueryHook(&seen))
	t.Cleanup(func() { _ = s.Close() })
	noError(t, s.Migrate(t.Context()))
	key := filled(t, s).Responses[0]
	now := time.Now()
	for ranges, f := range map[string]formsvc.ResponseFilter{
		`campaign \(campaign_id=\? AND id<\?\)`:                                                 {CreatedBefore: now},
		`campaign \(campaign_id=\? AND id>\?\)`:                                                 {CreatedAfter: now},
		`(campaign|status) \(campaign_id=\? AND (status=\? AND )?id(<|>|=)\?( AND id<\?)?\)`:    {CreatedBefore: now, Status: []string{"a", "b"}},
		`(person \(<expr>=\? AND person=\?|campaign \(campaign_id=\? AND id=\?)\)`:              {Email: "eve@example.com"},
		`reference \(account_id=\? AND reference=\?\)`:                                          {Reference: "R"},
		`(campaign \(campaign_id=\? AND id[=>]\?|changed \(campaign_id=\? AND updated_at>\?)\)`: {UpdatedAfter: now},
	} {
		read := regexp.MustCompile(`^SEARCH r USING (COVERING )?INDEX formsvc_responses_(` + ranges + `|campaign \(campaign_id=\? AND id=\?\))$`)
		for _, ascending := range []bool{false, true} {
			seen.list = nil
			q := formsvc.ResponseQuery{AccountID: key.AccountID, CampaignID: key.CampaignID, Filter: f}
			q.Page.Ascending = ascending
			must(s.Responses(t.Context(), q))
			for _, statement := range seen.list {
				steps := sqlite.Steps(t, db.DB, statement)
				for _, step := range steps {
					scans := step == "SCAN r" && !slices.Contains(steps, "CO-ROUTINE r") || strings.HasPrefix(step, "SCAN r USING")
					if scans || strings.HasPrefix(step, "SEARCH r ") && !read.MatchString(step) {
						t.Errorf("%s\n%s", step, statement)
					}
				}
			}
		}
	}
}
