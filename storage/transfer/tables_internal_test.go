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

// TestEveryTable compares the tables of a copy with the schema, so that none is forgotten.
func TestEveryTable(t *testing.T) {
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
	has, err := bunstore.List(t.Context(), db, func(rows *sql.Rows, s *string) error { return rows.Scan(s) }, "SELECT t.name FROM sqlite_schema AS t "+
		"WHERE t.type = 'table' AND t.name LIKE 'formsvc%' AND t.name NOT IN ('formsvc_schema', 'formsvc_identity', 'formsvc_links', "+
		"'formsvc_sessions', 'formsvc_counters', 'formsvc_statuses')")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range tables() {
		want = append(want, "formsvc_"+name)
	}
	slices.Sort(has)
	slices.Sort(want)
	if !slices.Equal(has, want) {
		t.Errorf("the schema has\n%s\nand a copy knows\n%s", strings.Join(has, " "), strings.Join(want, " "))
	}
}
