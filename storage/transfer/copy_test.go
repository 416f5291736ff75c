package transfer_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
	"github.com/formsvc/toolkit/storage/transfer"
)

// TestEveryColumn compares the tables of a copy with the schemas, so that no table or
// column of a new migration is forgotten.
func TestEveryColumn(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"sqlite", "postgres"} {
		d := newDatabase(t, kind)
		s := d.open(t, false)
		has := make(map[string][]string)
		query := "SELECT table_name || '.' || column_name FROM information_schema.columns " +
			"WHERE table_schema = current_schema() AND table_name LIKE 'formsvc%'"
		if kind == "sqlite" {
			query = "SELECT t.name || '.' || c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c WHERE t.type = 'table' AND t.name LIKE 'formsvc%'"
		}
		list, err := bunstore.Strings(t.Context(), d.db(t), query)
		must(t, err)
		for _, one := range list {
			table, column, _ := strings.Cut(one, ".")
			has[table] = append(has[table], column)
		}
		for _, table := range slices.Concat(bunstore.Uncopied(), bunstore.Counted(), []string{"formsvc_feed"}) {
			delete(has, table)
		}
		for _, table := range s.Portable().TablesTo(kind) {
			var want []string
			for _, c := range table.Columns {
				if kind == "postgres" || table.Name != "formsvc_events" || c.Name != "xact" { // SQLite's position is one number
					want = append(want, c.Name)
				}
			}
			got := has[table.Name]
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s: %s has the columns\n%v, and a copy knows\n%v", kind, table.Name, got, want)
			}
			delete(has, table.Name)
		}
		for table := range has {
			t.Errorf("%s: a copy doesn't know %s", kind, table)
		}
	}
}

// Clients continue after a move with everything they had: keys, cursors, positions.
func TestClientsContinueAfterMove(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to database) {
		w := newWorld(t, from)
		// Make positions larger than any that the other database would assign.
		if from.kind == "sqlite" {
			from.exec(t, "UPDATE sqlite_sequence SET seq = seq + 1000000000 WHERE name = 'formsvc_events'")
		} else {
			from.exec(t, `UPDATE formsvc_feed SET "offset" = "offset" + 1000000000`)
		}
		w.respond(t, from, 3)
		w.follow(t, from)
		positions, events := w.positions, w.events
		// Events that were read and are then deleted must not move anybody's position.
		gone := slices.Concat(events[3:4], events[len(events)-4:])
		for _, id := range gone {
			from.exec(t, fmt.Sprintf("DELETE FROM formsvc_events WHERE id = '%s'", id))
		}
		_, err := moved(t, from, to, nil)
		must(t, err)
		w.with(t, to, func(svc *formsvc.Service) {
			if _, err := svc.Keys.Authenticate(t.Context(), w.key); err != nil {
				t.Errorf("the key: %v", err)
			}
			for status, want := range map[string]int64{"": 15, "completed": 5, "pending": 10} {
				q := formsvc.ResponseQuery{AccountID: w.account, CampaignID: w.campaign}
				if status != "" {
					q.Filter.Status = []string{status}
				}
				page, err := svc.Responses.List(t.Context(), q)
				must(t, err)
				if int64(page.Total) != want || len(page.Items) != int(want) {
					t.Errorf("%d responses of %d are %q, want %d", len(page.Items), page.Total, status, want)
				}
			}
		})
		w.respond(t, to, 4)
		w.with(t, to, func(svc *formsvc.Service) {
			fresh := w.page(t, svc, positions[len(positions)-1], formsvc.MaxLimit)
			if len(fresh.Items) != 8 { // two of them completed, with two more events each
				t.Errorf("after all that was read are %d events, want 8", len(fresh.Items))
			}
			for i, at := range positions {
				var want []formsvc.ID
				for _, id := range events[i:] {
					if !slices.Contains(gone, id) {
						want = append(want, id)
					}
				}
				for _, e := range fresh.Items {
					want = append(want, e.ID)
				}
				var got []formsvc.ID
				for _, e := range w.page(t, svc, at, formsvc.MaxLimit).Items {
					got = append(got, e.ID)
				}
				if !slices.Equal(got, want) {
					t.Errorf("after position %d, %v:\n%v, want\n%v", i, at, got, want)
				}
			}
		})
		counted(t, to)
	})
}

// counted checks that the counters maintained by triggers stay correct.
func counted(t *testing.T, d database) {
	t.Helper()
	if n := d.number(t, "SELECT CAST(sum(responses) AS BIGINT) FROM formsvc_counters"); n != 19 {
		t.Errorf("%d responses are counted, want 19", n)
	}
	if n := d.number(t, "SELECT CAST(sum(responses) AS BIGINT) FROM formsvc_statuses WHERE status = 'completed'"); n != 7 {
		t.Errorf("%d completed responses are counted, want 7", n)
	}
	if d.kind == "postgres" {
		if n := d.number(t, "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'formsvc_responses'::regclass AND NOT tgisinternal AND tgenabled = 'O'"); n != 3 {
			t.Errorf("%d triggers count responses, want 3", n)
		}
	}
}

// Verify finds a change of one value, or of one row.
func TestVerifyFindsEveryDifference(t *testing.T) {
	t.Parallel()
	from, to := newSQLite(t), newPostgres(t)
	newWorld(t, from)
	_, err := moved(t, from, to, nil)
	must(t, err)
	a, b := from.open(t, true), to.open(t, true)
	for _, change := range []struct{ table, there, back string }{
		{"formsvc_responses", "UPDATE formsvc_responses SET version = version + 1", "UPDATE formsvc_responses SET version = version - 1"},
		{"formsvc_events", "UPDATE formsvc_events SET xact = xact + 1", "UPDATE formsvc_events SET xact = xact - 1"},
		{"formsvc_counters", "UPDATE formsvc_counters SET responses = responses + 1", "UPDATE formsvc_counters SET responses = responses - 1"},
		{"formsvc_statuses", "UPDATE formsvc_statuses SET responses = responses + 1", "UPDATE formsvc_statuses SET responses = responses - 1"},
		{"formsvc_webhooks", "UPDATE formsvc_webhooks SET secret = secret || 'x'", ""},
	} {
		to.exec(t, change.there)
		_, err := transfer.Verify(t.Context(), a, b, nil)
		if !errors.Is(err, transfer.ErrDiffers) || !strings.Contains(err.Error(), change.table) {
			t.Errorf("%s: %v", change.there, err)
		}
		if change.back != "" {
			to.exec(t, change.back)
			_, err := transfer.Verify(t.Context(), a, b, nil)
			must(t, err)
		}
	}
}
