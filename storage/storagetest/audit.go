package storagetest

import (
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func auditTests() []test {
	return []test{
		{"entry has every field", testAuditMembers},
		{"filters by action, target and time", testAuditFilters},
		{"pages", testAuditPages},
		{"texts", testAuditTexts},
		{"taken identifiers are refused", testAuditTaken},
		{"entries commit with their transaction", testAuditUnits},
		{"arguments and results are copied", testAuditCopied},
	}
}

func (w *world) newAudit(account formsvc.ID) formsvc.AuditEntry {
	id, at := w.next()
	return formsvc.AuditEntry{
		ID: id, AccountID: account, Actor: "key " + string(id), Action: formsvc.AuditKeyCreated, Target: w.nextID(),
		Details: map[string]string{"name": "n", "": "empty"}, CreatedAt: at,
	}
}

func (w *world) addAudit(account formsvc.ID) formsvc.AuditEntry {
	w.Helper()
	entry := w.newAudit(account)
	w.must("AppendAudit", audit(w.ctx, w.store, entry))
	return entry
}

// audit returns all entries that match the query, oldest first.
func (w *world) audit(q formsvc.AuditQuery) []formsvc.AuditEntry {
	w.Helper()
	return all(w, "Audit", func(e *formsvc.AuditEntry) formsvc.ID { return e.ID },
		func(p formsvc.PageQuery) (formsvc.Page[formsvc.AuditEntry], error) {
			q.Page = p
			return w.store.Audit(w.ctx, q)
		})
}

func testAuditMembers(w *world) {
	a, other := w.addAccount(), w.addAccount()
	full, bare := w.newAudit(a.ID), w.newAudit(a.ID)
	bare.Actor, bare.Target, bare.Details, bare.Action = "", "", nil, ""
	bare.CreatedAt = time.Date(2026, 7, 1, 1, 2, 3, 999_999_999, time.FixedZone("east", 5*3600))
	w.must("AppendAudit", audit(w.ctx, w.store, full))
	w.must("AppendAudit", audit(w.ctx, w.store, bare))
	bare.CreatedAt = time.Date(2026, 6, 30, 20, 2, 3, 999_999_000, time.UTC)
	theirs := w.addAudit(other.ID)
	w.same("audit trail", w.audit(formsvc.AuditQuery{AccountID: a.ID}), []formsvc.AuditEntry{full, bare})
	w.same("audit trail of another", w.audit(formsvc.AuditQuery{AccountID: other.ID}), []formsvc.AuditEntry{theirs})
}

func testAuditFilters(w *world) {
	a := w.addAccount()
	list := make([]formsvc.AuditEntry, 12)
	for i := range list {
		list[i] = w.newAudit(a.ID)
		list[i].Target = list[i%4].Target
		if i%3 == 0 {
			list[i].Action = formsvc.AuditKeyRevoked
		}
		w.must("AppendAudit", audit(w.ctx, w.store, list[i]))
	}
	for _, q := range []formsvc.AuditQuery{
		{}, {Action: formsvc.AuditKeyRevoked}, {Target: list[2].Target}, {Action: formsvc.AuditKeyRevoked, Target: list[2].Target},
		{Action: "nothing"}, {Target: "nope"}, {Target: w.nextID()}, {Since: list[5].CreatedAt},
		{Since: list[5].CreatedAt.Add(time.Nanosecond)}, {Since: list[5].CreatedAt.Add(-time.Nanosecond)},
		{Since: nextDay()}, {Since: list[3].CreatedAt.In(time.FixedZone("", 3600)), Action: formsvc.AuditKeyRevoked},
	} {
		q.AccountID = a.ID
		var want []formsvc.AuditEntry
		for _, e := range list {
			if (q.Action == "" || e.Action == q.Action) && (q.Target == "" || e.Target == q.Target) && !e.CreatedAt.Before(q.Since) {
				want = append(want, e)
			}
		}
		w.same("entries", w.audit(q), want)
		page, err := w.store.Audit(w.ctx, q)
		w.must("Audit", err)
		if page.Total != int64(len(want)) {
			w.Errorf("total %d, want %d", page.Total, len(want))
		}
	}
}

// Entries are listed like all records: in pages, newest first or oldest first.
func testAuditPages(w *world) {
	a := w.addAccount()
	var order []formsvc.ID
	for range 23 {
		order = append(order, w.addAudit(a.ID).ID)
		w.addAudit(w.addAccount().ID)
	}
	for _, q := range []formsvc.PageQuery{
		{}, {Limit: 5}, {Limit: 5, Offset: 20}, {Limit: 5, Offset: 30}, {Ascending: true, Limit: 7, Offset: 3},
		{Limit: 5, After: order[10]}, {Limit: 50, After: order[10], Ascending: true}, {After: order[22], Ascending: true},
	} {
		page, err := w.store.Audit(w.ctx, formsvc.AuditQuery{AccountID: a.ID, Page: q})
		w.must("Audit", err)
		want, more := expect(order, q)
		var got []formsvc.ID
		for i := range page.Items {
			got = append(got, page.Items[i].ID)
		}
		w.same("page of the audit trail", got, want)
		if page.More != more || page.Total != int64(len(order)) {
			w.Errorf("Audit with %+v: more %t, total %d; want %t, %d", q, page.More, page.Total, more, len(order))
		}
	}
}

func testAuditTexts(w *world) {
	a := w.addAccount()
	var want []formsvc.AuditEntry
	for _, text := range []string{"ü €𝄞", "a\nb\t\"'\\%_", "<&>?", "\u2028"} {
		e := w.newAudit(a.ID)
		e.Actor, e.Action, e.Target = text, formsvc.AuditAction(text), formsvc.ID(text)
		e.Details = map[string]string{text: text}
		w.must("AppendAudit", audit(w.ctx, w.store, e))
		want = append(want, e)
	}
	w.same("audit trail", w.audit(formsvc.AuditQuery{AccountID: a.ID}), want)
	w.same("entries with that action", w.audit(formsvc.AuditQuery{AccountID: a.ID, Action: want[1].Action}), want[1:2])
	for _, bad := range []string{"\x00", "\xff"} {
		for what, spoil := range map[string]func(*formsvc.AuditEntry){
			"actor":  func(e *formsvc.AuditEntry) { e.Actor = bad },
			"action": func(e *formsvc.AuditEntry) { e.Action = formsvc.AuditAction(bad) },
			"target": func(e *formsvc.AuditEntry) { e.Target = formsvc.ID(bad) },
			"name":   func(e *formsvc.AuditEntry) { e.Details = map[string]string{bad: ""} },
			"value":  func(e *formsvc.AuditEntry) { e.Details = map[string]string{"": bad} },
		} {
			e := w.newAudit(a.ID)
			spoil(&e)
			w.wantError("AppendAudit with a bad "+what, audit(w.ctx, w.store, e), formsvc.ErrInvalid)
		}
	}
	w.same("audit trail", w.audit(formsvc.AuditQuery{AccountID: a.ID}), want)
}

func testAuditTaken(w *world) {
	a, other := w.addAccount(), w.addAccount()
	first := w.addAudit(a.ID)
	again := w.newAudit(other.ID)
	again.ID = first.ID
	w.wantError("AppendAudit with a taken ID", audit(w.ctx, w.store, again), formsvc.ErrConflict)
	key := w.newKey(a.ID)
	again.AccountID = a.ID
	w.wantError("CreateKey with a taken entry", w.store.CreateKey(w.ctx, key, formsvc.Change{Audit: &again}), formsvc.ErrConflict)
	keys, err := w.store.Keys(w.ctx, a.ID)
	w.must("Keys", err)
	if len(keys) != 0 {
		w.Errorf("the key is there without its entry")
	}
	w.same("audit trail", w.audit(formsvc.AuditQuery{AccountID: a.ID}), []formsvc.AuditEntry{first})
}

// testAuditUnits runs transactions of several kinds that succeed and fail: an entry exists exactly if its transaction
// succeeded.
func testAuditUnits(w *world) {
	sc := w.addScene()
	account := sc.account.ID
	entry := func() *formsvc.AuditEntry { return new(w.newAudit(account)) }
	key := w.addKey(account)
	hook := w.newWebhook(account)
	var want []formsvc.AuditEntry
	for what, do := range map[string]func(change formsvc.Change) error{
		"CreateKey":        func(change formsvc.Change) error { return w.store.CreateKey(w.ctx, w.newKey(account), change) },
		"CreateKey, taken": func(change formsvc.Change) error { return w.store.CreateKey(w.ctx, key, change) },
		"RevokeKey, unknown": func(change formsvc.Change) error {
			return w.store.RevokeKey(w.ctx, account, w.nextID(), nextDay(), change)
		},
		"CreateWebhook": func(change formsvc.Change) error {
			_, _, err := w.store.CreateWebhook(w.ctx, hook, 5, func(*formsvc.Webhook, bool) (formsvc.Change, error) { return change, nil })
			return err
		},
		"UpdateWebhook, unknown": func(change formsvc.Change) error {
			_, err := w.store.UpdateWebhook(w.ctx, formsvc.WebhookKey{AccountID: account, ID: w.nextID()},
				func(*formsvc.Webhook) (formsvc.Change, error) { return change, nil })
			return err
		},
		"UpdateWebhook": func(change formsvc.Change) error {
			_, err := w.store.UpdateWebhook(w.ctx, webhookKey(&sc.hook), func(*formsvc.Webhook) (formsvc.Change, error) { return change, nil })
			return err
		},
		"CreateResponse": func(change formsvc.Change) error {
			return w.store.CreateResponse(w.ctx, w.newResponse(&sc.campaign), 1, change)
		},
		"CreateResponse, stale": func(change formsvc.Change) error {
			return w.store.CreateResponse(w.ctx, w.newResponse(&sc.campaign), 2, change)
		},
		"DeleteWebhook, unknown": func(change formsvc.Change) error {
			return w.store.DeleteWebhook(w.ctx, formsvc.WebhookKey{AccountID: account, ID: w.nextID()}, change)
		},
	} {
		e := entry()
		if err := do(formsvc.Change{Audit: e}); err == nil {
			want = append(want, *e)
		}
		w.same("audit trail after "+what, w.audit(formsvc.AuditQuery{AccountID: account}), want)
	}
	if len(want) != 4 {
		w.Errorf("%d units succeeded, want 4", len(want))
	}
}

func testAuditCopied(w *world) {
	a := w.addAccount()
	e := w.newAudit(a.ID)
	want := map[string]string{"name": "n", "": "empty"}
	w.must("AppendAudit", audit(w.ctx, w.store, e))
	clear(e.Details)
	got := w.audit(formsvc.AuditQuery{AccountID: a.ID})
	w.same("details", got[0].Details, want)
	clear(got[0].Details)
	w.same("details", w.audit(formsvc.AuditQuery{AccountID: a.ID})[0].Details, want)
}
