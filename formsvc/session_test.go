package formsvc_test

import (
	"crypto/sha256"
	"errors"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

var tokenPattern = regexp.MustCompile(`^[0-9A-Z]{52}$`)

func (w *world) link(account formsvc.ID) string {
	w.tb.Helper()
	token, _, err := w.svc.Sessions.NewLink(w.ctx, account)
	noError(w.tb, err)
	return token
}

// signedIn returns a new session of an account and its value.
func (w *world) signedIn(account formsvc.ID) (formsvc.Session, string) {
	w.tb.Helper()
	session, value, err := w.svc.Sessions.SignIn(w.ctx, w.link(account), "browser")
	noError(w.tb, err)
	return session, value
}

// session returns why a value belongs to no session.
func (w *world) session(value string) error {
	_, _, err := w.svc.Sessions.Authenticate(w.ctx, value)
	return err
}

func (w *world) second() formsvc.ID {
	w.tb.Helper()
	account := must(w.svc.Accounts.Create(w.ctx, "second"))
	return account.ID
}

// refused fails the test unless err is exactly ErrUnauthenticated, without details.
func refused(tb testing.TB, what string, err error) {
	tb.Helper()
	if !errors.Is(err, formsvc.ErrUnauthenticated) || !strings.HasSuffix(err.Error(), ": unauthenticated") { // tells nothing more
		tb.Errorf("%s: error %v, want %v", what, err, formsvc.ErrUnauthenticated)
	}
}

func TestSignIn(t *testing.T) {
	w := newWorld(t)
	w.store.twice = true
	token, expires, err := w.svc.Sessions.NewLink(w.ctx, w.account)
	if err != nil || !tokenPattern.MatchString(token) || !expires.Equal(start().Add(15*time.Minute)) {
		t.Fatalf("a token of %d characters, good until %v, %v", len(token), expires, err)
	}
	w.clock.add(time.Minute)
	session, value, err := w.svc.Sessions.SignIn(w.ctx, token, "browser")
	if err != nil || !tokenPattern.MatchString(value) || value == token {
		t.Fatalf("a value of %d characters, %v", len(value), err)
	}
	want := formsvc.Session{
		ID: session.ID, AccountID: w.account, Hash: sha256.Sum256([]byte(value)),
		Way: "link", Device: "browser", CreatedAt: w.clock.Now(), ExpiresAt: w.clock.Now().Add(12 * time.Hour),
	}
	equal(t, session, want, "the session is %+v")
	if got, m, err := w.svc.Sessions.Authenticate(w.ctx, value); err != nil || got != want || m != nil {
		t.Errorf("authenticated as %+v, %v, %v", got, m, err)
	}
	_, _, err = w.svc.Sessions.SignIn(w.ctx, token, "browser")
	refused(t, "a link that was used", err)
	refused(t, "a token for a value", w.session(token))
	_, _, err = w.svc.Sessions.SignIn(w.ctx, value, "browser")
	refused(t, "a value for a token", err)
	if other, otherValue := w.signedIn(w.account); other.ID == session.ID || otherValue == value {
		t.Error("two sessions are alike")
	}
	_, _, err = w.svc.Sessions.NewLink(w.ctx, session.ID)
	wantError(t, err, formsvc.ErrNotFound)
}

func TestLinkExpires(t *testing.T) {
	w := newWorld(t)
	good, late := w.link(w.account), w.link(w.account)
	w.clock.add(formsvc.LinkTTL - time.Millisecond)
	if _, _, err := w.svc.Sessions.SignIn(w.ctx, good, "browser"); err != nil {
		t.Error(err)
	}
	w.clock.add(time.Millisecond)
	_, value, err := w.svc.Sessions.SignIn(w.ctx, late, "browser")
	refused(t, "a link of 15 minutes", err)
	if value != "" {
		t.Error("a value comes with the error")
	}
}

// A session lasts 12 hours, even if it is used all the time.
func TestSessionExpires(t *testing.T) {
	w := newWorld(t)
	_, value := w.signedIn(w.account)
	for _, after := range []time.Duration{6 * time.Hour, formsvc.SessionTTL - time.Millisecond} {
		w.clock.set(start().Add(after))
		noError(t, w.session(value))
	}
	w.clock.set(start().Add(formsvc.SessionTTL))
	refused(t, "a session of 12 hours", w.session(value))
}

// Invalid tokens are unauthenticated. An unavailable store is neither a yes nor a no.
func TestSessionsAlwaysAskTheStore(t *testing.T) {
	w := newWorld(t)
	_, value := w.signedIn(w.account)
	token := w.link(w.account)
	for _, bad := range []string{"", "x", value[1:], value + "x", strings.Repeat("x", 1<<20)} {
		refused(t, "no value", w.session(bad))
		_, _, err := w.svc.Sessions.SignIn(w.ctx, bad, "browser")
		refused(t, "no token", err)
		wantError(t, w.svc.Sessions.SignOut(w.ctx, bad), nil)
	}
	fault := errors.New("broken pipe")
	w.store.disturb(func(string, int) error { return fault })
	wantError(t, w.session(value), fault)
	_, _, err := w.svc.Sessions.SignIn(w.ctx, token, "browser")
	wantError(t, err, fault)
	wantError(t, w.svc.Sessions.SignOut(w.ctx, value), fault)
	w.store.disturb(nil)
	for range 3 { // there is no cache
		before := w.store.count("SessionByHash")
		if err := w.session(value); err != nil || w.store.count("SessionByHash") != before+1 {
			t.Errorf("asked %d times, want 1; %v", w.store.count("SessionByHash")-before, err)
		}
	}
}

func TestSessionsAreAudited(t *testing.T) {
	w := newWorld(t)
	w.svc = w.svc.As(formsvc.Actor{Name: "somebody"})
	w.clock.add(time.Second)
	since := w.clock.Now()
	session, value := w.signedIn(w.account)
	expired, old := w.signedIn(w.account)
	signOut := func(value string) {
		t.Helper()
		wantError(t, w.svc.Sessions.SignOut(w.ctx, value), nil)
	}
	signOut(value)
	signOut(value)
	w.clock.add(formsvc.SessionTTL)
	signOut(old) // it has expired
	wantError(t, w.svc.Sessions.SignOutAll(w.ctx, w.account), nil)
	page, err := w.svc.Audits.List(w.ctx, formsvc.AuditQuery{
		AccountID: w.account, Since: since, Page: formsvc.PageQuery{Ascending: true},
	})
	if err != nil || len(page.Items) != 6 {
		t.Fatalf("%d entries, %v", len(page.Items), err)
	}
	link, other := page.Items[0].Target, page.Items[2].Target
	for i, want := range []formsvc.AuditEntry{
		{Action: "link.created", Target: link},
		{Action: "session.created", Target: session.ID, Details: map[string]string{"link": string(link)}},
		{Action: "link.created", Target: other},
		{Action: "session.created", Target: expired.ID, Details: map[string]string{"link": string(other)}},
		{Action: "session.ended", Target: session.ID},
		{Action: "session.ended", Target: w.account, Details: map[string]string{"sessions": "all"}},
	} {
		got := page.Items[i]
		if got.Actor != "somebody" || got.Action != want.Action || got.Target != want.Target || !maps.Equal(got.Details, want.Details) {
			t.Errorf("entry %d is %+v, want %+v", i, got, want)
		}
	}
}
