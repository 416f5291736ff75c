package transfer

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/storage/internal/bunstore"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// TestEveryColumn compares the tables of a copy with the schema, so that no table or column is forgotten. Postgres refuses a
// column that is missing there.
func TestEveryColumn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forms.db")
	s, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	db, err := sql.Open("sqlite", sqlite.DSN(path))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	has, err := bunstore.List(t.Context(), db, func(rows *sql.Rows, s *string) error { return rows.Scan(s) }, "SELECT t.name || '.' || c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c "+
		"WHERE t.type = 'table' AND t.name LIKE 'formsvc%' AND t.name NOT IN ('formsvc_schema', 'formsvc_identity', 'formsvc_links', "+
		"'formsvc_sessions', 'formsvc_counters', 'formsvc_statuses') AND t.name || '.' || c.name <> 'formsvc_responses.seq'")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, table := range tables() {
		for _, name := range table.names {
			if name != "xact" { // SQLite's position is one number
				want = append(want, table.name+"."+name)
			}
		}
	}
	slices.Sort(has)
	slices.Sort(want)
	if !slices.Equal(has, want) {
		t.Errorf("the schema has\n%s\nand a copy knows\n%s", strings.Join(has, " "), strings.Join(want, " "))
	}
}
