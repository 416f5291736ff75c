package sqltest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// How many files [FillFiles] creates.
const (
	fileResponses    = 200
	filesOfAResponse = 50
	filesOfOneInsert = 1_000
	filesAsked       = 10 // in a list
	fileIDsAsked     = 20 // by calls that take identifiers
)

// MostFiles is how many rows of files a statement of [FileStatements] may need to read:
// all of a response, and those asked for.
const MostFiles = 2*filesOfAResponse + fileIDsAsked

// fileID returns the identifier of the nth file of [FillFiles], which mixes responses.
func fileID(n int) formsvc.ID { return formsvc.ID(fmt.Sprintf("%08x-0000-7000-8000-%012x", n, n)) }

// FillFiles creates an account with a campaign of many responses with files.
func FillFiles(t testing.TB, db *bun.DB) {
	t.Helper()
	account, campaign := fileID(1<<24), fileID(2<<24)
	exec := func(query string) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), query)
		must(t, err)
	}
	exec(fmt.Sprintf("INSERT INTO formsvc_accounts (id, name, contact, created_at) VALUES ('%s', 'a', '', 0)", account))
	exec(fmt.Sprintf("INSERT INTO formsvc_campaigns (id, account_id, title, description, status, opens_at, closes_at, modules, metadata, "+
		"version, created_at, updated_at) VALUES ('%s', '%s', '', '', 'open', 0, 0, '[]', '{}', 1, 0, 0)", campaign, account))
	responses := make([]string, fileResponses)
	for i := range responses {
		responses[i] = fmt.Sprintf("('%s', '%s', '%s', 'R%d', '', '', '', '', '{}', 1, 0, 0, 0, '')", responseOf(i), account, campaign, i)
	}
	exec("INSERT INTO formsvc_responses VALUES " + strings.Join(responses, ", "))
	files := make([]string, filesOfOneInsert)
	for n := 0; n < fileResponses*filesOfAResponse; n += filesOfOneInsert {
		for i := range files {
			files[i] = fmt.Sprintf("('%s', '%s', '%s', '%s', 'n', 't', '', 1, 0)",
				fileID(n+i), account, campaign, responseOf((n+i)%fileResponses))
		}
		exec("INSERT INTO formsvc_files (id, account_id, campaign_id, response_id, name, content_type, module, size, created_at) " +
			"VALUES " + strings.Join(files, ", "))
	}
}

// responseOf returns the identifier of the nth response of [FillFiles].
func responseOf(n int) formsvc.ID { return fileID(3<<24 + n) }

// A recorder records the statements that bun sends, including arguments.
type recorder struct{ statements []string }

// BeforeQuery implements bun.QueryHook.
func (*recorder) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

// AfterQuery implements bun.QueryHook.
func (r *recorder) AfterQuery(_ context.Context, e *bun.QueryEvent) {
	r.statements = append(r.statements, e.Query)
}

// FileStatements makes every call that looks for files, and deletes a response, on a
// database filled by [FillFiles]. It passes each resulting statement to look. open
// returns a store on a database of the caller.
func FileStatements(t *testing.T, db *bun.DB, open func(*bun.DB) Store, look func(call, statement string)) {
	t.Helper()
	ctx := t.Context()
	r := &recorder{}
	s := open(db.WithQueryHook(r))
	account := fileID(1 << 24)
	key := formsvc.ResponseKey{AccountID: account, CampaignID: fileID(2 << 24), ID: responseOf(7)}
	ids := make([]formsvc.ID, fileIDsAsked)
	for i := range ids {
		ids[i] = fileID(1_000 * i)
	}
	files := func(page formsvc.PageQuery) func() error {
		return func() error {
			page.Limit = filesAsked
			_, err := s.Files(ctx, formsvc.FileQuery{AccountID: account, CampaignID: key.CampaignID, ResponseID: key.ID, Page: page})
			return err
		}
	}
	all := func(after formsvc.ID) func() error {
		return func() error {
			page := formsvc.PageQuery{After: after, Limit: filesAsked, Ascending: true}
			_, err := s.Files(ctx, formsvc.FileQuery{AllAccounts: true, Page: page})
			return err
		}
	}
	record := func(name string, call func() error) {
		t.Helper()
		r.statements = nil
		must(t, call())
		if len(r.statements) == 0 {
			t.Errorf("%s: no statement was seen", name)
		}
		for _, statement := range r.statements {
			look(name, statement)
		}
	}
	for name, call := range map[string]func() error{
		"File":                 func() error { _, err := s.File(ctx, formsvc.FileKey{AccountID: account, ID: ids[3]}); return err },
		"Files":                files(formsvc.PageQuery{}),
		"Files ascending":      files(formsvc.PageQuery{Ascending: true}),
		"Files after":          files(formsvc.PageQuery{After: ids[5]}),
		"Files skipped":        files(formsvc.PageQuery{Offset: 20, Ascending: true}),
		"Files beyond the end": files(formsvc.PageQuery{Offset: 1_000}),
		"Files of all":         all(""),
		"Files of all after":   all(ids[3]),
		"UnknownFiles":         func() error { _, err := s.UnknownFiles(ctx, ids); return err },
		"BarFiles":             func() error { _, err := s.BarFiles(ctx, ids); return err },
	} {
		record(name, call)
	}
	record("DeleteResponse", func() error { _, err := s.DeleteResponse(ctx, key, nil); return err }) // after the others, which need it
}
