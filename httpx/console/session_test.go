package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/console"
)

// I2: a link works once; opening it doesn't redeem it; redeeming it begins a new session.
func TestSignIn(t *testing.T) {
	w := newWorld(t, nil)
	w.get("/").is(401).says("Sign in", "formsvc console-link")
	link := "/sign-in/" + w.link(w.account.ID)
	for range 3 { // mail scanners
		w.get(link).is(200)
	}
	page := w.get(link)
	w.cookie("formsvc_session", "an attacker's")
	a := w.submit(page, "/sign-in", nil).is(303)
	cookie := onlyCookie(t, a)
	if cookie.Name != "formsvc_session" || len(cookie.Value) < 32 || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode ||
		cookie.Path != "/" || cookie.Secure {
		t.Errorf("cookie %v", cookie)
	}
	a.leadsTo("/").is(200).says("Overview")
	w.submit(page, "/sign-in", nil).is(401).says("has been used")
	w.get("/").is(200)

	expired := w.get("/sign-in/" + w.link(w.account.ID))
	w.wait(15*time.Minute + time.Second)
	w.submit(expired, "/sign-in", nil).is(401).says("older than 15 minutes")
	w.submit(expired, "/sign-in", url.Values{"link": {"x"}}).is(401)

	w.signIn() // signing in again ends the session before
	w.cookie("formsvc_session", cookie.Value)
	w.get("/").is(401)
}

func onlyCookie(t *testing.T, a *answer) *http.Cookie {
	t.Helper()
	cookies := (&http.Response{Header: a.header}).Cookies()
	if len(cookies) != 1 {
		t.Fatalf("%s: cookies %v", a.what, cookies)
	}
	return cookies[0]
}

// cookie sets a cookie of the client.
func (w *world) cookie(name, value string) {
	u, _ := url.Parse(w.base + "/")
	w.client.Jar.SetCookies(u, []*http.Cookie{{Name: name, Value: value, Path: "/"}})
}

// I3: signing out ends the session on every node, for every copy of the cookie.
func TestSignOut(t *testing.T) {
	w := newSignedIn(t)
	u, _ := url.Parse(w.base + "/")
	first := w.client.Jar.Cookies(u)[0].Value
	stolen := func(value string) int {
		svc, err := formsvc.New(w.store, &formsvc.Options{Now: w.clock}) // another node
		w.must(err)
		pages, err := console.New(svc, w.newAPI(), nil)
		w.must(err)
		r := httptest.NewRequest("GET", "/", nil)
		r.AddCookie(&http.Cookie{Name: "formsvc_session", Value: value})
		recorder := httptest.NewRecorder()
		pages.ServeHTTP(recorder, r)
		return recorder.Code
	}
	equal(t, stolen(first), 200, "another node doesn't know the session: %v")
	page := w.get("/keys")
	a := w.submit(w.get("/"), "/sign-out", nil).is(303)
	if c := onlyCookie(t, a); c.MaxAge >= 0 || c.Value != "" {
		t.Errorf("cookie %v", c)
	}
	a.leadsTo("/sign-in").is(200)
	w.get("/").is(401)
	w.submit(page, "/keys", url.Values{"name": {"late"}}).is(401)
	equal(t, stolen(first), 401, "another node still knows the session: %v")
}

// Signing out everywhere ends the sessions of other browsers too, and unused links. Other accounts keep theirs.
func TestSignOutEverywhere(t *testing.T) {
	w := newSignedIn(t)
	first := w.client
	w.client = newClient(t)
	other, err := w.svc.Accounts.Create(t.Context(), "other")
	w.must(err)
	w.account, other = other, w.account
	w.signIn()
	theirs := w.client
	w.account, w.client = other, newClient(t)
	w.signIn()
	link := w.get("/sign-in/" + w.link(w.account.ID))
	w.get("/").says("Sign out everywhere", "unused sign-in links")
	a := w.submit(w.get("/"), "/sign-out", url.Values{"everywhere": {"true"}}).is(303)
	if c := onlyCookie(t, a); c.MaxAge >= 0 || c.Value != "" {
		t.Errorf("cookie %v", c)
	}
	w.get("/").is(401)
	w.submit(link, "/sign-in", nil).is(401)
	w.client = first
	w.get("/").is(401)
	w.client = theirs
	w.get("/").is(200)
}

// I1: only forms of our own pages are accepted.
func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	w := newSignedIn(t)
	page := w.get("/keys")
	fields := url.Values{"name": {"forged"}, "permissions": {"campaigns:read"}}
	origin := func(value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Origin", value) }
	}
	fetch := func(value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", value) }
	}
	form := page.form("/keys")
	for name, values := range fields {
		form[name] = values
	}
	for _, edit := range []func(*http.Request){origin("https://evil.example"), origin("null"), fetch("cross-site"), fetch("same-site")} {
		w.do("POST", "/keys", form, edit).is(403).says("another site")
	}
	for _, token := range [][]string{nil, {""}, {"x"}, {form.Get("token") + "x"}} {
		w.submit(page, "/keys", url.Values{"name": {"forged"}, "token": token}).is(403).says("expired")
	}
	equal(t, len(must(w.svc.Keys.List(t.Context(), w.account.ID))), 0, "%d")
	w.submit(page, "/keys", fields).is(200)

	// The token belongs to the session.
	w.client = newClient(t)
	w.signIn()
	w.submit(page, "/keys", fields).is(403)
	for _, name := range []string{strings.Repeat("x", 800_000), "a\x00", "a\xff"} {
		w.submit(w.get("/keys"), "/keys", url.Values{"name": {name}}).is(400)
	}
}

// Over TLS the cookie is for this host and TLS alone.
func TestCookieOnTLS(t *testing.T) {
	w := newWorld(t, nil)
	for _, base := range []string{"", "https://forms.example.com/console/"} { // which is behind a proxy
		pages, err := console.New(w.svc, w.newAPI(), &console.Options{BaseURL: base})
		w.must(err)
		ask := func(r *http.Request) *httptest.ResponseRecorder {
			if base != "" {
				r.TLS = nil
			}
			recorder := httptest.NewRecorder()
			pages.ServeHTTP(recorder, r)
			return recorder
		}
		form := url.Values{"link": {w.link(w.account.ID)}}
		r := httptest.NewRequest("POST", "https://forms.example.com/sign-in", strings.NewReader(form.Encode()))
		r.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Origin": {"https://forms.example.com"}}
		made := ask(r)
		c := onlyCookie(t, &answer{header: made.Result().Header})
		if made.Code != 303 || c.Name != "__Host-formsvc_session" || !c.Secure || !c.HttpOnly || c.Path != "/" || c.Domain != "" {
			t.Errorf("%q: %d %v", base, made.Code, c)
		}
		equal(t, made.Header().Get("Strict-Transport-Security"), "max-age=31536000", "Strict-Transport-Security: %q")
		r = httptest.NewRequest("GET", "https://forms.example.com/", nil)
		r.AddCookie(&http.Cookie{Name: "formsvc_session", Value: c.Value})
		equal(t, ask(r).Code, 401, "%q: a cookie that a neighbour may have set is taken: %d", base)
	}
}

// The host application decides who is signed in.
func TestAuthenticate(t *testing.T) {
	w := newWorld(t, nil)
	var failure error
	who := &console.Visitor{AccountID: w.account.ID, Name: "Grace"}
	w.serve(&console.Options{Authenticate: func(*http.Request) (*console.Visitor, error) { return who, failure }})
	w.get("/").is(200).lacks("Sign out")
	w.get("/sign-in/" + w.link(w.account.ID)).is(404)
	w.do("POST", "/sign-in", url.Values{"link": {w.link(w.account.ID)}}).is(404)
	w.do("POST", "/sign-in/mail", url.Values{}).is(404)
	w.submit(w.get("/keys"), "/keys", url.Values{"name": {"embedded"}, "permissions": {"files:read"}}).is(200)
	page, err := w.svc.Audits.List(t.Context(), formsvc.AuditQuery{AccountID: w.account.ID, Action: formsvc.AuditKeyCreated})
	if err != nil || len(page.Items) != 1 || page.Items[0].Actor != "Grace" {
		t.Errorf("audit %+v, %v", page.Items, err)
	}
	failure = formsvc.ErrUnauthenticated
	w.get("/").is(401).says("aren't signed in").lacks("console-link")
	failure = errors.New("secret cause")
	if a := w.get("/").is(500).says("a problem on the server"); strings.Contains(a.body, "secret") || !strings.Contains(w.log.String(), "secret cause") {
		t.Errorf("%s\n%s", a.body, w.log)
	}
	failure, who = nil, nil
	w.get("/").is(401)
}

// Links are mailed to the contact of an account, and the reply doesn't reveal whether the account exists.
func TestMailedLinks(t *testing.T) {
	w := newWorld(t, nil)
	type mail struct {
		to, link string
		until    time.Time
	}
	var mails []mail
	var failure error
	replied := make(chan struct{}, 1)
	_, err := w.svc.Accounts.SetContact(t.Context(), w.account.ID, "ops@example.com")
	w.must(err)
	send := func(address string) {
		t.Helper()
		w.submit(w.get("/sign-in"), "/sign-in/mail", url.Values{"email": {address}}).is(303).leadsTo("/sign-in").is(200).says("sent it a link")
		replied <- struct{}{} // the reply doesn't wait for the mail, so its time is the same for unknown addresses
		w.pages.Mailed()
		select {
		case <-replied:
		default:
		}
	}
	const base = "http://forms.example.com/admin/console"
	w.serve(&console.Options{BaseURL: base})
	w.get("/sign-in").is(200).lacks("/sign-in/mail")
	w.serve(&console.Options{BaseURL: base, SendLink: func(ctx context.Context, to, link string, until time.Time) error {
		<-replied
		mails = append(mails, mail{to, link, until})
		return errors.Join(failure, ctx.Err())
	}})
	send("nobody@example.com")
	send("")
	if len(mails) != 0 {
		t.Fatalf("mails %v", mails)
	}
	send("OPS@example.com ")
	send("ops@example.com") // too soon
	if len(mails) != 1 || mails[0].to != "ops@example.com" || !mails[0].until.After(w.clock()) {
		t.Fatalf("mails %v", mails)
	}
	token, ok := strings.CutPrefix(mails[0].link, base+"/sign-in/")
	if !ok {
		t.Fatalf("link %s", mails[0].link)
	}
	w.submit(w.get("/sign-in/"+token).is(200), "/sign-in", nil).is(303).leadsTo("/").is(200)
	failure = errors.New("no server")
	w.client = newClient(t)
	w.wait(time.Minute)
	send("ops@example.com")
	if len(mails) != 2 || !strings.Contains(w.log.String(), "no server") || strings.Contains(w.log.String(), mails[1].link) {
		t.Errorf("mails %v, log %s", mails, w.log)
	}
}

func TestOptions(t *testing.T) {
	w := newWorld(t, nil)
	send := func(context.Context, string, string, time.Time) error { return nil }
	api := w.newAPI()
	nobody := func(*http.Request) (*console.Visitor, error) { return nil, formsvc.ErrUnauthenticated }
	for _, o := range []console.Options{
		{BaseURL: "ftp://example.com"}, {BaseURL: "https://a@example.com"}, {SendLink: send}, {SendLink: send, BaseURL: "https://example.com", Authenticate: nobody},
	} {
		if _, err := console.New(w.svc, api, &o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	for _, bad := range []string{"forms", "//example.com/forms", "ftp://example.com", "https://", "/forms?x", "https://example.com#x"} {
		if _, err := console.New(w.svc, api, &console.Options{APIURL: bad}); err == nil {
			t.Errorf("the API %q is taken", bad)
		}
	}
	if _, err := console.New(nil, api, nil); err == nil {
		t.Error("no service is needed")
	}
}

// Guesses of links and sessions are limited by address, as those of keys are. A valid link or session always passes.
func TestGuessesAreLimited(t *testing.T) {
	w := newWorld(t, nil)
	address := "192.0.2.1"
	w.serve(&console.Options{ClientAddress: func(*http.Request) string { return address }})
	w.still = true // no time passes
	link := w.link(w.account.ID)
	for i, guess := range []func() *answer{
		func() *answer { w.cookie("formsvc_session", "guess"); return w.get("/keys") },
		func() *answer {
			w.client = newClient(t)
			return w.submit(w.get("/sign-in/guess"), "/sign-in", nil)
		},
	} {
		address = fmt.Sprintf("192.0.2.%d", i)
		for range 120 {
			guess().is(401)
		}
		if a := guess().is(429).says("Too many tries"); a.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		address = "198.51.100.1"
		guess().is(401)
		address = fmt.Sprintf("192.0.2.%d", i)
	}
	w.client = newClient(t)
	w.get("/").is(401) // without a guess
	w.submit(w.get("/sign-in/"+link), "/sign-in", nil).is(303)
	w.get("/").is(200)
}

// An endless store can't end sessions.
type endless struct{ formsvc.Store }

func (endless) EndSession(context.Context, formsvc.ID, [32]byte, formsvc.Change) error {
	return formsvc.ErrUnavailable
}

// A link that was used up signs in, even if the session before can't be ended.
func TestSignInDespiteOldSession(t *testing.T) {
	w := newSignedIn(t)
	svc, err := formsvc.New(endless{w.store}, &formsvc.Options{Now: w.clock})
	w.must(err)
	w.svc = svc
	jar := w.client.Jar.Cookies(must(url.Parse(w.base + "/")))
	w.serve(nil)
	w.cookie(jar[0].Name, jar[0].Value)
	w.submit(w.get("/sign-in/"+w.link(w.account.ID)), "/sign-in", nil).is(303).leadsTo("/").is(200)
	if !strings.Contains(w.log.String(), "a previous session was not ended") {
		t.Errorf("log: %s", w.log)
	}
}

// Anonymous requests for links are limited by address, and few are worked on at once.
func TestAnonymousMailIsBounded(t *testing.T) {
	w := newWorld(t, nil)
	_, err := w.svc.Accounts.SetContact(t.Context(), w.account.ID, "ops@example.com")
	w.must(err)
	hold, began := make(chan struct{}), make(chan struct{}, 20)
	n := 0
	w.serve(&console.Options{
		BaseURL: "http://forms.example.com", SendLink: func(context.Context, string, string, time.Time) error { began <- struct{}{}; <-hold; return nil },
		ClientAddress: func(*http.Request) string { return fmt.Sprintf("192.0.2.%d", n) },
	})
	ask := func() *answer {
		if !w.still {
			w.wait(2 * time.Minute)
		}
		r := httptest.NewRequest("POST", "/sign-in/mail", strings.NewReader("email=ops@example.com"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		recorder := httptest.NewRecorder()
		w.pages.ServeHTTP(recorder, r)
		return &answer{w: w, what: "mail", status: recorder.Code, body: recorder.Body.String(), page: &html.Node{}}
	}
	for n = range 4 {
		ask().is(303)
		<-began
	}
	ask().is(503)
	close(hold)
	w.pages.Mailed()
	w.still = true
	n = 100
	for range 10 {
		ask().is(303)
		w.pages.Mailed()
	}
	ask().is(429)
}
