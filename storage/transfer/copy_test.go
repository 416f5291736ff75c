package transfer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

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
