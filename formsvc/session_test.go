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
	equal(t, value, "", "a value comes with the error: %v")
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

// A member's session lasts a day after its last use, and 30 days at most, on any node.
func TestMemberSessionExpires(t *testing.T) {
	w := newWorld(t)
	m, _, value := w.joined("ada", formsvc.Admin)
	_, unused, err := w.enter(w.mailed(&m, ""))
	noError(t, err)
	for day := range 29 {
		w.clock.add(formsvc.SessionIdleTTL - 2*time.Millisecond)
		noError(t, last(w.neighbour().Sessions.Authenticate(w.ctx, value)))
		if day == 0 {
			equal(t, len(must(w.svc.Sessions.List(w.ctx, &m))), 2, "%d sessions")
			w.clock.add(2 * time.Millisecond)
			refused(t, "a session that wasn't used for a day", w.session(unused))
			equal(t, len(must(w.svc.Sessions.List(w.ctx, &m))), 1, "%d sessions after a day")
			w.clock.add(-2 * time.Millisecond)
		}
	}
	for _, left := range []time.Duration{time.Hour, time.Millisecond} {
		w.clock.set(start().Add(formsvc.SessionMaxTTL - left))
		noError(t, w.session(value))
	}
	w.clock.add(time.Millisecond)
	refused(t, "a session of 30 days", w.session(value))
}

// Uses are written every ten minutes.
func TestUseIsNoted(t *testing.T) {
	w := newWorld(t)
	_, session, value := w.joined("ada", formsvc.Admin)
	for _, x := range []struct{ after, noted time.Duration }{{10*time.Minute - time.Millisecond, 0}, {10 * time.Minute, 10 * time.Minute}, {19 * time.Minute, 10 * time.Minute}} {
		w.clock.set(start().Add(x.after))
		noError(t, w.session(value))
		got := must(w.store.SessionByHash(w.ctx, session.Hash))
		if !got.LastUsedAt.Equal(start().Add(x.noted)) || !got.ExpiresAt.Equal(got.LastUsedAt.Add(formsvc.SessionIdleTTL)) {
			t.Errorf("after %s: %+v", x.after, got)
		}
	}
}

func TestEndSessions(t *testing.T) {
	w := newWorld(t)
	m, _, value := w.joined("ada", formsvc.Admin)
	other, _, others := w.joined("bob", formsvc.Admin)
	_, operators := w.signedIn(w.account)
	second, lost, err := w.svc.Sessions.SignIn(w.ctx, w.mailed(&m, ""), strings.Repeat("é", 150)+"\xff\x00")
	if err != nil || second.Device != strings.Repeat("é", 100) {
		t.Errorf("%q, %v", second.Device, err)
	}
	wantError(t, w.svc.Sessions.End(w.ctx, &other, second.ID), formsvc.ErrNotFound)
	noError(t, w.svc.Sessions.End(w.ctx, &m, second.ID))
	wantError(t, w.svc.Sessions.End(w.ctx, &m, second.ID), formsvc.ErrNotFound)
	refused(t, "a session that was ended", w.session(lost))
	noError(t, w.session(value))
	token := w.mailed(&m, "")
	noError(t, w.svc.Members.EndSessions(w.ctx, m.Key()))
	refused(t, "a session of a person whose sessions ended", w.session(value))
	refused(t, "a link", last(w.enter(token)))
	equal(t, len(must(w.svc.Sessions.List(w.ctx, &m))), 1, "%d sessions of the earlier epoch")
	m = must(w.svc.Members.Get(w.ctx, m.Key()))
	equal(t, len(must(w.svc.Sessions.List(w.ctx, &m))), 0, "%d sessions")
	noError(t, last(w.enter(w.mailed(&m, ""))))
	for _, value := range []string{others, operators} {
		noError(t, w.session(value))
	}
	token = w.mailed(&m, "")
	noError(t, w.svc.Sessions.SignOutAll(w.ctx, w.account))
	for _, value := range []string{others, operators} {
		refused(t, "a session after all ended", w.session(value))
	}
	refused(t, "a link after all ended", last(w.enter(token)))
	noError(t, failure(w.svc.Accounts.Delete(w.ctx, w.account)))
}
