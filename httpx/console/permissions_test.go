package console_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/console"
)

// A guarded is a world whose visitor has changing permissions, with a record of every kind.
type guarded struct {
	*world
	who *console.Visitor
	mux *http.ServeMux    // by pattern of the pages
	ids map[string]string // by name in patterns
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	w := &guarded{world: newWorld(t, nil), mux: http.NewServeMux()}
	w.who = &console.Visitor{AccountID: w.account.ID, UserID: "7", Name: "Ada"}
	w.serve(&console.Options{Authenticate: func(*http.Request) (*console.Visitor, error) { return w.who, nil }})
	for pattern := range w.pages.Pages() {
		w.mux.Handle(pattern, http.NotFoundHandler())
	}
	hook := w.hook(w.receiver(500, ""))
	c, _ := w.published(formsvc.CampaignInput{Title: "Grant", Modules: []formsvc.Module{{Name: "plan", Type: formsvc.TextModule}}})
	r := w.response(&c, "Grace", formsvc.Answer{Name: "plan", Value: []string{"A bridge"}})
	f, err := w.svc.Files.Upload(t.Context(), r.Key(), formsvc.FileInput{Name: "a.txt", Content: strings.NewReader("x")})
	w.must(err)
	key, err := w.svc.Keys.Create(t.Context(), w.account.ID, formsvc.KeyInput{Name: "site", Permissions: formsvc.AllPermissions()})
	w.must(err)
	w.drain()
	deliveries, err := w.svc.Deliveries.List(t.Context(), formsvc.DeliveryQuery{AccountID: w.account.ID, WebhookID: hook.ID})
	w.must(err)
	w.ids = map[string]string{
		"campaign": string(c.ID), "response": string(r.ID), "file": string(f.ID), "key": string(key.ID), "webhook": string(hook.ID), "delivery": string(deliveries.Items[0].ID),
	}
	return w
}

// path returns a path of the pattern with these identifiers, and the export as CSV.
func path(pattern string, ids map[string]string) string {
	_, p, _ := strings.Cut(strings.TrimSuffix(pattern, "{$}"), " ")
	if strings.Contains(p, "/export/") {
		p = strings.ReplaceAll(p, "{file}", "people.csv")
	}
	for name, id := range ids {
		p = strings.ReplaceAll(p, "{"+name+"}", id)
	}
	return p
}

// request sends a request as the visitor; a POST has an empty form.
func (w *guarded) request(pattern string, ids map[string]string) *answer {
	w.t.Helper()
	if strings.HasPrefix(pattern, "GET ") {
		return w.get(path(pattern, ids) + "?once=1") // live pages end at once
	}
	return w.do("POST", path(pattern, ids), url.Values{"once": {"x"}}, func(r *http.Request) { r.Header.Set("Origin", w.server.URL) })
}

// shown returns the patterns of all pages that the visitor finds, from the overview on.
func (w *guarded) shown() map[string]bool {
	w.t.Helper()
	shown, seen, next := map[string]bool{"GET /{$}": true}, map[string]bool{}, []string{"/"}
	note := func(method, address string) {
		p, ours := strings.CutPrefix(address, "/admin/console")
		p, _, _ = strings.Cut(p, "?")
		r, err := http.NewRequestWithContext(w.t.Context(), method, p, nil)
		if _, pattern := w.mux.Handler(r); err == nil && ours && pattern != "" {
			shown[pattern] = true
			if method == "GET" && !strings.Contains(pattern, "/live") && !strings.Contains(pattern, "/export") && !seen[p] {
				seen[p] = true
				next = append(next, p)
			}
		}
	}
	for len(next) > 0 && len(seen) < 100 {
		page := w.get(next[0]).is(200)
		next = next[1:]
		for n := range page.page.Descendants() {
			for _, name := range []string{"href", "src", "data-live"} {
				note("GET", attribute(n, name))
			}
			if n.Data == "form" && attribute(n, "method") == "post" {
				note("POST", attribute(n, "action"))
			}
		}
	}
	return shown
}

// state returns all that pages can change.
func (w *guarded) state() string {
	w.t.Helper()
	c, err := w.svc.Campaigns.List(w.t.Context(), formsvc.CampaignQuery{AccountID: w.account.ID})
	w.must(err)
	r, err := w.svc.Responses.List(w.t.Context(), formsvc.ResponseQuery{AccountID: w.account.ID, CampaignID: formsvc.ID(w.ids["campaign"])})
	w.must(err)
	keys, err := w.svc.Keys.List(w.t.Context(), w.account.ID)
	w.must(err)
	hooks, err := w.svc.Webhooks.List(w.t.Context(), w.account.ID)
	w.must(err)
	d, err := w.svc.Deliveries.List(w.t.Context(), formsvc.DeliveryQuery{AccountID: w.account.ID, WebhookID: formsvc.ID(w.ids["webhook"])})
	w.must(err)
	events, err := w.svc.Events.Recent(w.t.Context(), formsvc.RecentQuery{AccountID: w.account.ID, Limit: 100})
	w.must(err)
	audit, err := w.svc.Audits.List(w.t.Context(), formsvc.AuditQuery{AccountID: w.account.ID})
	w.must(err)
	b, err := json.Marshal([]any{c, r, keys, hooks, d, events, audit})
	w.must(err)
	return string(b)
}

// What a visitor may not do is neither shown nor done. What they may do is both.
func TestPermissions(t *testing.T) {
	w := newGuarded(t)
	offered := w.shown()
	sets := map[string][]formsvc.Permission{"none": {}, "unknown role": formsvc.Role("boss").Permissions()}
	for _, role := range []formsvc.Role{formsvc.Admin, formsvc.Editor, formsvc.Reviewer, formsvc.Viewer} {
		sets[string(role)] = role.Permissions()
	}
	for _, p := range formsvc.Admin.Permissions() {
		sets[string(p)] = []formsvc.Permission{p}
	}
	nowhere := maps.Clone(w.ids)
	for name := range nowhere {
		nowhere[name] = "00000000-0000-4000-8000-000000000000"
	}
	for name, set := range sets {
		w.who.Permissions = set
		before, shown := w.state(), w.shown()
		for pattern, needs := range w.pages.Pages() {
			allowed := !slices.ContainsFunc(needs, func(p formsvc.Permission) bool { return !slices.Contains(set, p) })
			if want := allowed && offered[pattern]; shown[pattern] != want {
				t.Errorf("%s: shown %s: %t", name, pattern, shown[pattern])
			}
			if !allowed {
				w.request(pattern, w.ids).is(403).says("You may not do this", "You lack the permission ")
			} else if a := w.request(pattern, nowhere); a.status == 403 || a.status >= 500 {
				t.Errorf("%s: %s gets %d", name, pattern, a.status)
			}
			if !allowed && w.state() != before {
				t.Errorf("%s: %s changed something", name, pattern)
			}
			before = w.state()
		}
		if may := slices.Contains(set, formsvc.CampaignsRead); strings.Contains(w.get("/").text(), "You may not read the campaigns") == may {
			t.Errorf("%s: the overview says otherwise", name)
		}
		if list := w.get("/campaigns/" + w.ids["campaign"]); list.status == 200 && strings.Contains(list.body, "Select</span></th>") != shown["POST /campaigns/{campaign}/selected"] {
			t.Errorf("%s: the column for selecting is shown, or missing", name)
		}
	}
}

// Every page names a permission, a change one to write, and the roles differ as they are documented.
func TestPagesNeedPermissions(t *testing.T) {
	w := newGuarded(t)
	offered := w.shown()
	unwritten := []string{"POST /campaigns/{campaign}/columns", "POST /campaigns/{campaign}/summary"}
	for pattern, needs := range w.pages.Pages() {
		if len(needs) == 0 && pattern != "GET /{$}" {
			t.Errorf("%s needs no permission", pattern)
		}
		may := func(r formsvc.Role) bool {
			return !slices.ContainsFunc(needs, func(p formsvc.Permission) bool { return !slices.Contains(r.Permissions(), p) })
		}
		changes := !slices.Contains(unwritten, pattern) && (strings.HasPrefix(pattern, "POST") || strings.HasSuffix(pattern, "/new") || strings.HasSuffix(pattern, "/edit") || strings.HasSuffix(pattern, "/delete") || strings.HasSuffix(pattern, "/form-file"))
		keys := strings.Contains(pattern, "/keys")
		answers := strings.Contains(pattern, "/responses/") || strings.HasSuffix(pattern, "/selected") || strings.HasSuffix(pattern, "/views") || slices.Contains(unwritten, pattern)
		hooks := strings.Contains(pattern, "/webhooks") || strings.Contains(pattern, "/deliveries") || strings.Contains(pattern, "/failures") || strings.Contains(pattern, "/mail")
		if !may(formsvc.Admin) || may(formsvc.Editor) == keys || may(formsvc.Viewer) == (changes || keys) || may(formsvc.Reviewer) == (hooks || keys || changes && !answers) {
			t.Errorf("%s needs %v", pattern, needs)
		}
		if hidden := pattern == "POST /campaigns/sample" || pattern == "GET /campaigns/{campaign}/delete"; offered[pattern] == hidden {
			t.Errorf("an administrator is shown %s: %t", pattern, !hidden)
		}
	}
}

// Nobody makes a key that may do more than themselves, and changes have the name of their visitor.
func TestKeyHasNoMorePermissionsThanItsMaker(t *testing.T) {
	w := newGuarded(t)
	w.who.Permissions = []formsvc.Permission{formsvc.KeysWrite, formsvc.CampaignsRead}
	page := w.get("/keys").is(200)
	equal(t, strings.Count(page.body, `name="permissions"`), 1, "%d permissions are offered")
	w.submit(page, "/keys", url.Values{"name": {"much"}, "permissions": {"campaigns:read", "campaigns:write"}}).is(403).says("campaigns:write")
	w.submit(page, "/keys", url.Values{"name": {"little"}, "permissions": {"campaigns:read"}}).is(200)
	keys, err := w.svc.Keys.List(t.Context(), w.account.ID)
	if err != nil || len(keys) != 2 {
		t.Errorf("%v, %v", keys, err)
	}
}

// Every change has the visitor as its actor, in the audit trail, in events and in the history.
func TestChangesNameTheVisitor(t *testing.T) {
	w := newGuarded(t)
	audits := func() []formsvc.AuditEntry {
		list, err := w.svc.Audits.List(t.Context(), formsvc.AuditQuery{AccountID: w.account.ID})
		w.must(err)
		return list.Items
	}
	old := len(audits())
	c, r, hook := path("GET /campaigns/{campaign}", w.ids), path("GET /campaigns/{campaign}/responses/{response}", w.ids), path("GET /webhooks/{webhook}", w.ids)
	w.submit(w.get(r), r+"/status", url.Values{"status": {"approved"}, "new": {"approved"}}).is(303)
	w.submit(w.get(r), r+"/comments", url.Values{"body": {"Good"}}).is(303)
	w.get(r).is(200).says("by Ada", "Good Ada,")
	for _, x := range []struct{ page, form string }{
		{"/keys", path("POST /keys/{key}/revoke", w.ids)}, {hook, hook + "/test"}, {hook, hook + "/rotate"}, {path("GET /deliveries/{delivery}", w.ids), path("POST /deliveries/{delivery}/redeliver", w.ids)},
		{hook, hook + "/state"}, {hook, hook + "/delete"}, {r, r + "/delete"}, {c, c + "/delete"},
	} {
		if a := w.submit(w.get(x.page), x.form, nil); a.status != 303 && a.status != 200 {
			t.Errorf("%s gets %d", x.form, a.status)
		}
	}
	list := audits()
	if len(list)-old < 7 {
		t.Errorf("%d entries", len(list)-old)
	}
	for _, e := range list[:len(list)-old] {
		equal(t, e.Actor, "Ada", "%s by %q", e.Action)
	}
}
