package main

import (
	"database/sql"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

func TestTenantsAndRoles(t *testing.T) {
	db, err := sql.Open("pgx", postgrestest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	server, err := newServer(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	do := func(session, method, path, body string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if session != "" {
			r.AddCookie(&http.Cookie{Name: "session", Value: session})
		}
		if len(header) == 2 {
			r.Header.Set(header[0], header[1])
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		return w
	}
	login := func(name, password string) string {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/login", nil)
		r.SetBasicAuth(name, password)
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if cookies := w.Result().Cookies(); len(cookies) == 1 {
			return cookies[0].Value
		}
		return ""
	}
	if login("ada", "wrong") != "" || login("nobody", "secret") != "" {
		t.Fatal("a wrong login began a session")
	}
	ada, bob, carl := login("ada", "secret"), login("bob", "secret"), login("carl", "secret")
	const campaigns, body = "/forms/v1/campaigns", `{"title":"Hello"}`
	made := do(ada, "POST", campaigns, body)
	path := made.Header().Get("Location")
	for _, c := range []struct {
		who, method, path, body string
		want                    int
	}{
		{"", "GET", campaigns, "", 401},
		{"made up", "GET", campaigns, "", 401},
		{bob, "POST", campaigns, body, 403}, // a reviewer
		{bob, "GET", path, "", 200},
		{bob, "POST", path + "/responses", `{"user":{"email":"a@example.com"},"responses":{}}`, 201},
		{carl, "GET", path, "", 404}, // of another tenant
		{carl, "POST", campaigns, body, 201},
	} {
		if w := do(c.who, c.method, c.path, c.body); w.Code != c.want {
			t.Errorf("%s %s: status %d, want %d: %s", c.method, c.path, w.Code, c.want, w.Body)
		}
	}
	if w := do(ada, "POST", campaigns, body, "Sec-Fetch-Site", "cross-site"); w.Code != http.StatusForbidden {
		t.Errorf("another site: status %d, want 403", w.Code)
	}
	for _, c := range []struct {
		who, page string
		want      int
	}{{ada, "", 200}, {ada, "keys", 200}, {bob, "", 200}, {bob, "keys", 403}, {"", "", 401}} {
		if w := do(c.who, "GET", "/forms/console/"+c.page, ""); w.Code != c.want {
			t.Errorf("the pages: /%s: status %d, want %d", c.page, w.Code, c.want)
		}
	}
	page := do(ada, "POST", "/forms/console/keys", "name=website&permissions=campaigns:read", "Content-Type", "application/x-www-form-urlencoded")
	key := regexp.MustCompile(`formsvc_[0-9A-Za-z]{49}`).FindString(page.Body.String())
	if w := do("", "GET", path, "", "Authorization", "Bearer "+key); w.Code != http.StatusOK || !strings.Contains(page.Body.String(), "/forms/v1/campaigns") {
		t.Errorf("with a key of the pages: status %d; the page: %s", w.Code, page.Body)
	}
	var accounts int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM formsvc_accounts").Scan(&accounts); err != nil || accounts != 2 {
		t.Errorf("%d accounts for two tenants (%v)", accounts, err)
	}
}
