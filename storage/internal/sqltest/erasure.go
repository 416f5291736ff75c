package sqltest

import (
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// auditOnlyGrows checks that the database itself refuses to change or delete an audit
// entry.
func auditOnlyGrows(t *testing.T, d Database) {
	s := newScene(t, d)
	entry := formsvc.AuditEntry{ID: s.id(), AccountID: s.account, Actor: "somebody", Action: formsvc.AuditKeyCreated, CreatedAt: s.now}
	must(t, s.Note(t.Context(), formsvc.Change{Audit: &entry}))
	for _, statement := range []string{
		"UPDATE formsvc_audit SET actor = 'nobody'", "DELETE FROM formsvc_audit", "UPDATE formsvc_audit SET created_at = 0 WHERE actor = 'somebody'",
	} {
		if _, err := d.DB.ExecContext(t.Context(), statement); err == nil {
			t.Errorf("%s: no error", statement)
		}
	}
	page, err := s.Audit(t.Context(), formsvc.AuditQuery{AccountID: s.account})
	must(t, err)
	if len(page.Items) != 1 || page.Items[0].Actor != "somebody" || !page.Items[0].CreatedAt.Equal(s.now) {
		t.Errorf("the audit trail is %+v", page.Items)
	}
}
