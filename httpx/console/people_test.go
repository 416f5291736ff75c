package console_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/console"
)

const (
	goodPassword  = "otter violin granite"
	otherPassword = "lantern cobalt pigeon"
)

// member invites a person and returns the token of the invitation.
func (w *world) member(email string, role formsvc.Role) (formsvc.Member, string) {
	w.t.Helper()
	name, _, _ := strings.Cut(email, "@")
	m, token, err := w.svc.Members.Invite(context.Background(), w.account.ID, formsvc.MemberInput{Email: email, Name: name, Role: role})
	w.must(err)
	return m, token
}

// join signs a new browser in as a new person.
func (w *world) join(email string, role formsvc.Role) formsvc.Member {
	w.t.Helper()
	m, token := w.member(email, role)
	w.client = newClient(w.t)
	w.submit(w.get("/sign-in/"+token), "/sign-in", nil).is(303).leadsTo("/you").is(200)
	return m
}

// password signs a new browser in by a password.
func (w *world) password(email, password string) *answer {
	w.t.Helper()
	w.client = newClient(w.t)
	return w.submit(w.get("/sign-in"), "/sign-in/password", url.Values{"email": {email}, "password": {password}})
}

// The operator becomes the first admin, chooses a password, and invites others, who join by a link.
func TestPeople(t *testing.T) {
	w := newSignedIn(t)
	w.get("/").says("Overview")
	if page := w.get("/you").is(200).says("Add yourself"); !strings.Contains(page.body, "Signed in as") {
		t.Error("the page doesn't say who is signed in")
	}
	w.submit(w.get("/you"), "/you", url.Values{"email": {"ada"}, "name": {""}}).is(422).says("must be an e-mail address", "must not be empty")
	page := w.submit(w.get("/you"), "/you", url.Values{"email": {"ada@example.com"}, "name": {"Ada"}}).is(303).leadsTo("/you").is(200).says("Ada", "admin")
	w.submit(page, "/you/password", url.Values{"password": {"short"}}).is(422).says("at least 15 characters")
	w.submit(page, "/you/password", url.Values{"password": {goodPassword}}).is(303).leadsTo("/you").says("Password saved")
	ada := w.client

	people := w.get("/people").is(200).says("Ada (you)")
	w.submit(people, "/people", url.Values{"email": {"ADA@example.com"}, "name": {"x"}, "role": {"boss"}}).is(422).says("must be admin, editor, reviewer or viewer")
	w.submit(people, "/people", url.Values{"email": {"ADA@example.com"}, "name": {"x"}, "role": {"viewer"}}).is(422).says("is a member of this account already")
	invited := w.submit(people, "/people", url.Values{"email": {"ben@example.com"}, "name": {"Ben"}, "role": {"reviewer"}}).is(200).says("Ben is invited", "isn't shown again")
	_, link, _ := strings.Cut(invited.text(), w.base)
	link, _, _ = strings.Cut(link, " ")
	w.client = newClient(t)
	w.submit(w.get(link), "/sign-in", nil).is(303).leadsTo("/you").is(200).says("Ben", "reviewer", "Welcome. Choose a password")
	w.get("/people").is(403)
	w.get("/keys").is(403)
	ben := w.client
	w.submit(w.get("/you"), "/you", url.Values{"name": {"Benjamin"}}).is(303).leadsTo("/you").says("Benjamin")

	w.client = ada
	list, err := w.svc.Members.List(t.Context(), w.account.ID)
	if err != nil || len(list) != 2 || list[1].Name != "Benjamin" {
		t.Fatalf("members %+v, %v", list, err)
	}
	at := "/people/" + string(list[1].ID)
	w.submit(w.get("/people"), at, url.Values{"role": {"editor"}}).is(303)
	w.client = ben
	w.get("/you").says("editor")
	w.get("/campaigns/new").is(200) // with the session as it was
	w.client = ada
	w.submit(w.get("/people"), "/people/"+string(list[0].ID)+"/remove", nil).is(409).says("without an admin")
	w.submit(w.get("/people"), at+"/remove", nil).is(303).leadsTo("/people").says("Removed")
	w.client = ben
	w.get("/").is(401)
	w.password("ada@example.com", goodPassword).is(303).leadsTo("/").is(200)
}

// An invitation can be replaced and expires, and works once.
func TestInvitations(t *testing.T) {
	w := newSignedIn(t)
	admin := w.client
	ada, first := w.member("ada@example.com", formsvc.Admin)
	again := w.submit(w.get("/people"), "/people/"+string(ada.ID)+"/invite", nil).is(200).says("ada is invited")
	w.client = newClient(t)
	w.submit(w.get("/sign-in/"+first), "/sign-in", nil).is(401).says("has been used")
	_, link, _ := strings.Cut(again.text(), w.base)
	link, _, _ = strings.Cut(link, " ")
	w.wait(7*24*time.Hour + time.Second)
	w.submit(w.get(link), "/sign-in", nil).is(401)
	w.client = admin
	w.signIn() // the operator's session has ended, too
	page := w.get("/people").says("The invitation has expired")
	again = w.submit(page, "/people/"+string(ada.ID)+"/invite", nil).is(200)
	_, link, _ = strings.Cut(again.text(), w.base)
	link, _, _ = strings.Cut(link, " ")
	for _, status := range []int{303, 401} {
		w.client = newClient(t)
		w.submit(w.get(link), "/sign-in", nil).is(status)
	}
	w.client = admin
	w.submit(w.get("/people"), "/people/"+string(ada.ID), url.Values{"role": {"viewer"}}).is(409).says("without an admin")
}

// A password signs in with the same reply for unknown people, and its change ends other sessions.
func TestPasswords(t *testing.T) {
	w := newWorld(t, nil)
	w.join("ada@example.com", formsvc.Admin)
	w.submit(w.get("/you"), "/you/password", url.Values{"password": {goodPassword}}).is(303)
	byLink := w.client
	wrong := w.password("ada@example.com", "wrong wrong wrong").is(401).says("address or the password is wrong")
	equal(t, w.password("eve@example.com", "wrong wrong wrong").is(401).text(), wrong.text(), "unknown people get %q")
	for _, account := range []string{"mine", "none"} {
		w.client = newClient(t)
		a := w.submit(w.get("/sign-in?account="+account), "/sign-in/password", url.Values{"email": {"Ada@Example.com"}, "password": {goodPassword}})
		if a.is(map[string]int{"mine": 303, "none": 401}[account]); account == "none" {
			a.says("Name of the account")
		}
	}
	w.password("ada@example.com", goodPassword).is(303)
	page := w.get("/you").says("Present password")
	old := w.client.Jar.Cookies(must(url.Parse(w.base)))[0].Value
	w.submit(page, "/you/password", url.Values{"old": {"no"}, "password": {otherPassword}}).is(422).says("is not your present password")
	w.submit(page, "/you/password", url.Values{"old": {goodPassword}, "password": {otherPassword}}).is(303).leadsTo("/you").is(200)
	if w.client.Jar.Cookies(must(url.Parse(w.base)))[0].Value == old {
		t.Error("the session keeps its value")
	}
	w.client = byLink
	w.get("/").is(401)
	w.password("ada@example.com", goodPassword).is(401)
	w.password("ada@example.com", otherPassword).is(303)
}

// Somebody who knows the operator's or another person's page can't use their forms, and nobody but an admin ends everybody's sessions.
func TestSessions(t *testing.T) {
	w := newWorld(t, nil)
	w.join("ada@example.com", formsvc.Viewer)
	first := w.client
	m, err := w.svc.Members.ByEmail(t.Context(), w.account.ID, "ada@example.com")
	w.must(err)
	more := func() {
		token, _, err := w.svc.Sessions.NewMemberLink(t.Context(), &m, "")
		w.must(err)
		w.client = newClient(t)
		page := w.get("/sign-in/" + token)
		w.cookie("formsvc_session", "an attacker's")
		w.submit(page, "/sign-in", nil, func(r *http.Request) {
			r.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
		}).is(303)
	}
	more()
	page := w.get("/you").is(200).says("Firefox on Linux this one", "Unknown browser", "by link")
	sessions, err := w.svc.Sessions.List(t.Context(), &m)
	if err != nil || len(sessions) != 2 {
		t.Fatalf("sessions %v, %v", sessions, err)
	}
	w.submit(page, "/sign-out", url.Values{"everywhere": {"true"}}).is(403)
	w.submit(page, "/you/sessions", url.Values{"session": {string(sessions[0].ID)}}).is(303).leadsTo("/you").is(200)
	second := w.client
	w.client = first
	w.get("/").is(401)
	w.client = second
	w.submit(w.get("/you"), "/you/sessions", url.Values{"session": {"x"}}).is(404)
	other := second
	more()
	w.submit(w.get("/you"), "/you/sessions", nil).is(303).leadsTo("/sign-in")
	for _, c := range []*http.Client{w.client, other} {
		w.client = c
		w.get("/").is(401)
	}
}

// A mailed link can be opened elsewhere, where it shows a code for the browser that asked for it.
func TestCodeOfLink(t *testing.T) {
	w := newWorld(t, nil)
	w.join("ada@example.com", formsvc.Viewer)
	links := make(chan string, 2)
	w.serve(&console.Options{BaseURL: "http://forms.example.com/admin/console", SendLink: func(_ context.Context, to, link string, _ time.Time) error {
		if to != "ada@example.com" {
			return errors.New("another address")
		}
		links <- link
		return nil
	}})
	asked := w.submit(w.get("/sign-in"), "/sign-in/mail", url.Values{"email": {"ada@example.com"}}).is(303).leadsTo("/sign-in").says("enter the code")
	asking := w.client
	_, token, _ := strings.Cut(<-links, "/sign-in/")
	w.client = newClient(t)
	_, code, _ := strings.Cut(w.get("/sign-in/"+token).says("Enter this code there").text(), "there: ")
	if len(code) != 9 {
		t.Fatalf("code %q", code)
	}
	w.submit(w.get("/sign-in?mailed=1"), "/sign-in", url.Values{"code": {code}}).is(401).says("doesn't fit")
	w.client = asking
	w.submit(asked, "/sign-in", url.Values{"code": {"AAAA-AAAA"}}).is(401)
	w.submit(asked, "/sign-in", url.Values{"code": {" " + strings.ToLower(code)}}).is(303)
	w.get("/you").says("ada@example.com")
	w.client = newClient(t)
	w.submit(w.get("/sign-in/"+token), "/sign-in", nil).is(401) // the code used it up
}

// A provider is one at which everybody is signed in.
type provider struct {
	id  formsvc.Identity
	err error
	end string
}

func (*provider) Name() string  { return "idp" }
func (*provider) Title() string { return "Example" }
func (*provider) Begin(_ context.Context, callback string) (location, state string, err error) {
	return "https://idp.example.com/?to=" + url.QueryEscape(callback), "the state", nil
}

func (p *provider) Finish(_ context.Context, callback, state string, query url.Values) (formsvc.Identity, error) {
	if state != "the state" || query.Get("state") != "the state" || !strings.HasSuffix(callback, "/admin/console/sign-in/with/idp/callback") {
		return formsvc.Identity{}, formsvc.ErrUnauthenticated
	}
	return p.id, p.err
}

func (p *provider) End(_ context.Context, after string) string { return p.end + after }

// A provider signs in who is invited, by a state that only the browser has, and members connect it to themselves.
func TestProviders(t *testing.T) {
	w := newWorld(t, nil)
	p := &provider{id: formsvc.Identity{Issuer: "https://idp.example.com", Subject: "1", Email: "ada@example.com"}}
	w.serve(&console.Options{Providers: []console.Provider{p}})
	const callback = "/sign-in/with/idp/callback?state=the+state"
	begin := func() {
		w.client = newClient(t)
		if to := w.get("/sign-in/with/idp").is(303).header.Get("Location"); !strings.Contains(to, url.QueryEscape(w.base+"/sign-in/with/idp/callback")) {
			t.Errorf("the browser goes to %s", to)
		}
	}
	if !strings.Contains(w.get("/sign-in").body, "Sign in with Example") {
		t.Error("no button")
	}
	w.get("/sign-in/with/other").is(404)
	w.get(callback).is(401).says("began in another browser")
	begin()
	w.get("/sign-in/with/idp/callback?state=no").is(401).says("didn't sign you in")
	begin()
	w.get(callback).is(401).says("Nobody has invited you")
	w.member("ada@example.com", formsvc.Viewer)
	begin()
	w.get(callback).is(303).leadsTo("/").is(200)
	w.get("/you").says("by Example", "You can also sign in at https://idp.example.com")
	w.submit(w.get("/"), "/sign-out", nil).is(303).leadsTo("/sign-in/with/idp/end")
	p.end = "https://idp.example.com/end?after="
	if to := w.get("/sign-in/with/idp/end").is(200).header.Get("Refresh"); to != "0; url="+p.end+w.base+"/sign-in" {
		t.Errorf("after signing out, the browser goes to %q", to)
	}
	w.get("/").is(401)

	ben := w.join("ben@example.com", formsvc.Viewer) // has joined, so an address alone isn't enough
	p.id.Subject, p.id.Email = "2", "ben@example.com"
	mine := w.client
	begin()
	w.get(callback).is(401).says("connect Example on your own page")
	w.client = mine
	w.get("/sign-in/with/idp").is(303)
	w.get("/sign-in/with/idp/callback?state=no").is(401).says("didn't sign you in")
	w.get("/sign-in/with/idp").is(303)
	w.get(callback).is(303).leadsTo("/you").says("Connected")
	begin()
	w.get(callback).is(303)
	if m, err := w.svc.Members.Get(t.Context(), ben.Key()); err != nil || m.Subject != "2" {
		t.Errorf("%+v, %v", m, err)
	}
	p.id.Subject, p.id.Email = "3", "eve@example.com" // another identity of nobody doesn't replace that of Ben
	w.get("/sign-in/with/idp").is(303)
	w.get(callback).is(401)
	p.err = formsvc.ErrUnavailable
	begin()
	w.get(callback).is(503)
}

// A trusted proxy signs members in with each request.
func TestProxied(t *testing.T) {
	w := newWorld(t, nil)
	var id *formsvc.Identity
	var failure error
	w.serve(&console.Options{Proxied: func(*http.Request) (*formsvc.Identity, error) { return id, failure }})
	w.get("/").is(401)
	id = &formsvc.Identity{Email: "ada@example.com"}
	w.get("/").is(403).says("nobody has invited")
	m, _ := w.member("ada@example.com", formsvc.Reviewer)
	w.get("/").is(200).lacks("Sign out")
	w.get("/you").is(200).says("signs you in with each request").lacks("New password")
	w.get("/people").is(403)
	w.submit(w.get("/you"), "/you", url.Values{"name": {"Ada"}}).is(303)
	w.do("POST", "/you/password", url.Values{"password": {goodPassword}}).is(404)
	id = &formsvc.Identity{Email: "ben@example.com", Account: "mine", Join: formsvc.Editor}
	w.get("/you").is(200).says("ben@example.com", "editor")
	id.Role = formsvc.Viewer
	w.get("/you").is(200).says("viewer")
	failure = formsvc.ErrUnauthenticated
	w.get("/").is(401)
	failure, id = nil, &formsvc.Identity{Email: "ada@example.com"}
	w.join("root@example.com", formsvc.Admin)
	w.must(w.svc.Members.Remove(t.Context(), m.Key()))
	w.get("/").is(403)
	for _, o := range []console.Options{{Providers: []console.Provider{&provider{}}}, {Proxied: func(*http.Request) (*formsvc.Identity, error) { return nil, nil }}} {
		o.Authenticate = func(*http.Request) (*console.Visitor, error) { return nil, formsvc.ErrUnauthenticated }
		if _, err := console.New(w.svc, w.newAPI(), &o); err == nil {
			t.Error("a host that authenticates may have providers or a proxy")
		}
	}
}

// Guesses from elsewhere don't delay a network from where somebody has signed in, and those of one network are limited.
func TestGuessesOfPasswords(t *testing.T) {
	w := newWorld(t, nil)
	w.join("ada@example.com", formsvc.Admin)
	w.submit(w.get("/you"), "/you/password", url.Values{"password": {goodPassword}}).is(303)
	address := "192.0.2.1"
	w.serve(&console.Options{ClientAddress: func(*http.Request) string { return address }})
	w.password("ada@example.com", goodPassword).is(303)
	release, err := w.pages.HoldPasswords(t.Context())
	w.must(err)
	w.password("ada@example.com", goodPassword).is(303)
	release()
	w.still = true // no time passes
	address = "192.0.2.2"
	for range 120 {
		w.get("/sign-in/x")
		w.submit(w.get("/sign-in/x"), "/sign-in", nil).is(401)
	}
	if a := w.password("ada@example.com", "wrong").is(429).says("Too many tries"); a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	w.password("ada@example.com", goodPassword).is(303)
}
