package bunstore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/uptrace/bun"
)

// These queries return the columns of the tables formsvc_…, each with its table.
const (
	ColumnsOfSQLite = `
SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
WHERE t.type = 'table' AND t.name LIKE 'formsvc\_%' ESCAPE '\'`
	ColumnsOfPostgres = `
SELECT t.relname::text, c.attname::text FROM pg_class AS t JOIN pg_attribute AS c ON c.attrelid = t.oid
WHERE t.relkind IN ('r', 'p') AND t.relname LIKE 'formsvc\_%' AND pg_table_is_visible(t.oid) AND c.attnum > 0 AND NOT c.attisdropped`
)

// A Schema is the state of a database's schema: its applied steps and its tables.
type Schema struct {
	// Rows are the applied steps, in order.
	Rows []SchemaRow
	// has contains the names of tables, and of columns as table.column.
	has map[string]bool
}

// A SchemaRow is the record of an applied step.
type SchemaRow struct {
	AppliedAt int64
	SHA256    string // "" if a release applied it that didn't record it
}

// A SchemaColumn is a column of a table.
type SchemaColumn struct{ Table, Name string }

// NewSchema returns a Schema with those columns and no steps.
func NewSchema(columns []SchemaColumn) *Schema {
	s := &Schema{has: make(map[string]bool)}
	for _, c := range columns {
		s.has[c.Table], s.has[c.Table+"."+c.Name] = true, true
	}
	return s
}

// SelectRows returns the query of Rows, or "" if no step was applied.
func (s *Schema) SelectRows() string {
	switch {
	case s.has["formsvc_schema.sha256"]:
		return "SELECT applied_at, coalesce(sha256, '') FROM formsvc_schema ORDER BY version"
	case s.has["formsvc_schema"]:
		return "SELECT applied_at, '' FROM formsvc_schema ORDER BY version"
	}
	return ""
}

// ReadSchema reads the schema of a database with its query of columns.
func ReadSchema(ctx context.Context, c bun.IConn, columns string) (*Schema, error) {
	var list []SchemaColumn
	if err := scanPairs(ctx, c, columns, func(c *SchemaColumn) []any { return []any{&c.Table, &c.Name} }, &list); err != nil {
		return nil, err
	}
	s := NewSchema(list)
	query := s.SelectRows()
	if query == "" {
		return s, nil
	}
	return s, scanPairs(ctx, c, query, func(r *SchemaRow) []any { return []any{&r.AppliedAt, &r.SHA256} }, &s.Rows)
}

// scanPairs appends the rows of a query to a list.
func scanPairs[T any](ctx context.Context, c bun.IConn, query string, dest func(*T) []any, list *[]T) (err error) {
	rows, err := c.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var row T
		if err := rows.Scan(dest(&row)...); err != nil {
			return err
		}
		*list = append(*list, row)
	}
	return rows.Err()
}

// Examine returns the steps that this release knows, with their state in the schema. A
// step without a recorded checksum is judged by the tables and columns that it creates.
func (s *Schema) Examine(list []Migration) []Migration {
	list = slices.Clone(list)
	for i := range min(len(s.Rows), len(list)) {
		m, row := &list[i], &s.Rows[i]
		m.AppliedAt, m.noted = fromMicros(row.AppliedAt), row.SHA256 != ""
		switch {
		case !m.noted:
			m.Other = s.lacks(m)
		case row.SHA256 != m.SHA256:
			m.Other = fmt.Sprintf("has the checksum %.12s, not %.12s", row.SHA256, m.SHA256)
		}
	}
	return list
}

// lacks returns what a step creates and the schema doesn't have.
func (s *Schema) lacks(m *Migration) string {
	for _, name := range Made(*m) {
		if s.has[name] {
			continue
		}
		if table, column, ok := strings.Cut(name, "."); ok {
			return fmt.Sprintf("lacks the column %s of the table %s", column, table)
		}
		return "lacks the table " + name
	}
	return ""
}

// Made returns the tables and columns that a step creates. It relies on how steps are
// written: a line for each column, names of columns in lower case and everything else in
// upper case.
func Made(m Migration) (names []string) {
	sql := m.sql
	for _, table := range regexp.MustCompile(`(?ms)^CREATE TABLE (formsvc_\w+) \(\n(.*?)^\)`).FindAllStringSubmatch(sql, -1) {
		names = append(names, table[1])
		for _, column := range regexp.MustCompile(`(?m)^  "?([a-z]\w*)`).FindAllStringSubmatch(table[2], -1) {
			names = append(names, table[1]+"."+column[1])
		}
	}
	for _, added := range regexp.MustCompile(`(?m)^ALTER TABLE (formsvc_\w+) ADD COLUMN (\w+)`).FindAllStringSubmatch(sql, -1) {
		names = append(names, added[1]+"."+added[2])
	}
	return names
}

// note adds the columns for records of steps, and the checksums of those that were
// applied without.
func (s *Schema) note(ctx context.Context, c bun.IConn, list []Migration) error {
	var statements []string
	if !s.has["formsvc_schema"] {
		statements = []string{"CREATE TABLE formsvc_schema (version INTEGER PRIMARY KEY, applied_at BIGINT NOT NULL, sha256 TEXT)"}
	} else if !s.has["formsvc_schema.sha256"] {
		statements = []string{"ALTER TABLE formsvc_schema ADD COLUMN sha256 TEXT"}
	}
	for i := range s.Rows {
		if m := &list[i]; !m.noted {
			statements = append(statements, fmt.Sprintf("UPDATE formsvc_schema SET sha256 = '%s' WHERE version = %d", m.SHA256, m.Version))
		}
	}
	for _, statement := range statements {
		if _, err := c.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
