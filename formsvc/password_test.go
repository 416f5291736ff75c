package formsvc_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// Passwords that are good enough.
const (
	passphrase = "jug kettle heron plum"
	another    = "Überzug, Kürbis & Feld"
)

// secured returns a member with a password, and the value of a session.
func (w *world) secured(name string) (formsvc.Member, formsvc.Session, string) {
	w.tb.Helper()
	_, first, _ := w.joined(name, formsvc.Admin)
	session, value, err := w.svc.Sessions.SetPassword(w.ctx, &first, "", passphrase)
	noError(w.tb, err)
	return must(w.svc.Members.Get(w.ctx, w.keyOf(name))), session, value
}

func login(name, password string) formsvc.PasswordLogin {
	return formsvc.PasswordLogin{Email: name + "@example.com", Password: password, Network: "192.0.2.1", Device: "browser"}
}

func TestPasswordRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, session, _ := w.joined("grace.hopper", formsvc.Admin)
	for _, second := range []bool{false, true} {
		for _, x := range []struct{ password, code, second string }{
			{"", "too_short", "too_short"},
			{"kettle9", "too_short", "too_short"},
			{"jug heron", "too_short", ""},
			{"jug heron plum", "too_short", ""},
			{"jug heron plums", "", ""},
			{"ééüüööääñçøåßþð", "", ""},
			{"🦊🌵🎻🚲🍉🧭🪁🦔🌋🎈🐙🥨🧲🪴🛶", "", ""},
			{strings.Repeat("jug heron plum ", 14)[:200], "", ""},
			{strings.Repeat("jug heron plum ", 14)[:201], "too_long", "too_long"},
			{strings.Repeat("éüöäñ", 40), "", ""},
			{strings.Repeat("éüöäñ", 40) + "x", "too_long", "too_long"},
			{"jug heron\x00 plums", "nul_not_allowed", "nul_not_allowed"},
			{"jug heron\xff plums", "invalid_utf8", "invalid_utf8"},
			{"839201847562910", "", ""},
			{"123451234554321", "too_common", "too_common"},
			{"passwordpassword1234!", "too_common", "too_common"},
			{"PassWord-2026-Summer", "too_common", "too_common"},
			{"correct horse battery staple", "too_common", "too_common"},
			{"aaaaaaaaaaaaaaaaaaaa", "too_common", "too_common"},
			{"xqzvxqzvxqzvxqzvxqzv", "too_common", "too_common"},
			{"1234567890123456789", "too_common", "too_common"},
			{"🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊", "too_common", "too_common"},
			{"Grace.Hopper@example.com", "too_common", "too_common"},
			{"hopper grace 1906!!", "too_common", "too_common"},
		} {
			want, code := []string(nil), x.code
			if second {
				code = x.second
			}
			if code != "" {
				want = []string{"/password " + code}
			}
			got, _, err := w.svc.Sessions.SetPassword(w.ctx, &session, passphrase, x.password)
			if err == nil {
				session = got
			}
			wantFaults(t, err, want...)
			if err == nil {
				noError(t, last(w.svc.Sessions.SignInByPassword(w.ctx, login("grace.hopper", x.password))))
				session.Way = formsvc.SignedInByLink // no old one
			}
		}
		noError(t, failure(w.svc.Members.Connect(w.ctx, w.keyOf("grace.hopper"), formsvc.Identity{Issuer: "a", Subject: "1"})))
	}
}

// A change ends all other sessions, and needs the present password unless the session came by a link.
func TestSetPassword(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.clock.Now()
	m, session, value := w.secured("ada")
	if !strings.HasPrefix(m.Password, "$argon2id$v=19$m=") || session.Way != formsvc.SignedInByPassword {
		t.Errorf("%s, by %s", m.Password, session.Way)
	}
	other, others, err := w.svc.Sessions.SignInByPassword(w.ctx, login("ADA", passphrase))
	noError(t, err)
	w.clock.add(time.Minute)
	wantFaults(t, last(w.svc.Sessions.SetPassword(w.ctx, &other, "", another)), "/old invalid_value")
	wantFaults(t, last(w.svc.Sessions.SetPassword(w.ctx, &other, another, another)), "/old invalid_value")
	noError(t, w.session(value))
	changed, newest, err := w.svc.Sessions.SetPassword(w.ctx, &other, passphrase, another)
	noError(t, err)
	noError(t, w.session(newest))
	for _, value := range []string{value, others} {
		refused(t, "an earlier session", last(w.neighbour().Sessions.Authenticate(w.ctx, value)))
	}
	refused(t, "a change in a session that ended", last(w.svc.Sessions.SetPassword(w.ctx, &session, another, passphrase)))
	refused(t, "the earlier password", last(w.svc.Sessions.SignInByPassword(w.ctx, login("ada", passphrase))))
	decomposed := strings.NewReplacer("Ü", "U\u0308", "ü", "u\u0308").Replace(another)
	noError(t, last(w.svc.Sessions.SignInByPassword(w.ctx, login("ada", decomposed))))
	refused(t, "a link from before", last(w.enter(w.mailed(&m, ""))))
	m = must(w.svc.Members.Get(w.ctx, m.Key()))
	linked, _, err := w.enter(w.mailed(&m, ""))
	noError(t, err)
	svc, _ := w.odd(func() { noError(t, w.svc.Members.EndSessions(w.ctx, m.Key())) })
	refused(t, "a session that ended meanwhile", last(svc.Sessions.SetPassword(w.ctx, &linked, "", passphrase)))
	m = must(w.svc.Members.Get(w.ctx, m.Key()))
	linked, _, err = w.enter(w.mailed(&m, ""))
	noError(t, err)
	noError(t, last(w.svc.Sessions.SetPassword(w.ctx, &linked, "", passphrase)))
	refused(t, "the session before", last(w.svc.Sessions.SetPassword(w.ctx, &changed, another, passphrase)))
	for _, e := range w.trail()[1:] {
		if !e.CreatedAt.Before(first) && e.Target != m.ID && e.Details["person"] != string(m.ID) {
			t.Errorf("%+v", e)
		}
	}
}

// Neither the error nor the work tells why somebody isn't let in.
func TestSignInByPassword(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _, _ := w.secured("ada")
	w.invite("invited", formsvc.Viewer)
	for name, in := range map[string]formsvc.PasswordLogin{
		"wrong": login("ada", another), "empty": login("ada", ""), "unknown": login("bob", passphrase), "without a password": login("invited", ""),
		"no address": {Password: passphrase}, "NUL": login("ada\x00", passphrase), "not text": login("ada", "\xff"), "long": login("ada", strings.Repeat("x", 1<<20)),
		"another account": {Email: m.Email, Password: passphrase, Account: "none"}, "account with NUL": {Email: m.Email, Password: passphrase, Account: "\x00"},
	} {
		w.store.disturb(nil)
		session, value, err := w.svc.Sessions.SignInByPassword(w.ctx, in)
		refused(t, name, err)
		if value != "" || session != (formsvc.Session{}) || w.store.count("AddQuota") != 1 {
			t.Errorf("%s: %+v, counted %d times", name, session, w.store.count("AddQuota"))
		}
	}
	in := login("ADA", passphrase)
	in.Account = "first"
	w.clock.add(time.Hour)
	session, value, err := w.svc.Sessions.SignInByPassword(w.ctx, in)
	if err != nil || session.Way != formsvc.SignedInByPassword || w.session(value) != nil {
		t.Errorf("%+v, %v", session, err)
	}
	equal(t, must(w.svc.Members.Get(w.ctx, m.Key())).SignedInAt, w.clock.Now(), "signed in at %v")
	w.store.disturb(func(string, int) error { return errFrail })
	wantError(t, last(w.svc.Sessions.SignInByPassword(w.ctx, in)), errFrail)

	// A change of password while it is compared.
	link, _, err := func() (formsvc.Session, string, error) { w.store.disturb(nil); return w.enter(w.mailed(&m, "")) }()
	noError(t, err)
	w.store.disturb(func(method string, n int) error {
		if method == "AddQuota" && n == 1 {
			return last(w.neighbour().Sessions.SetPassword(w.ctx, &link, "", another))
		}
		return nil
	})
	refused(t, "a sign-in beside a change", last(w.svc.Sessions.SignInByPassword(w.ctx, in)))
	w.store.disturb(nil)
	m = must(w.svc.Members.Get(w.ctx, m.Key()))
	equal(t, len(must(w.svc.Sessions.List(w.ctx, &m))), 1, "%d sessions") // that of the change
}

// 100 failures in an hour and 200 in a day reject a network for one person, on every node, and nobody else.
func TestFailuresLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.secured("ada")
	w.secured("bob")
	here, counts := w.odd(nil)
	there, _ := w.odd(nil)
	try := func(svc *formsvc.Service, n int, in formsvc.PasswordLogin) error {
		counts.times = n
		return last(svc.Sessions.SignInByPassword(w.ctx, in))
	}
	right, wrong, elsewhere := login("ada", passphrase), login("ada", another), login("ada", passphrase)
	elsewhere.Network = "192.0.2.2"
	next := func(d time.Duration) { w.clock.set(w.clock.Now().Truncate(d).Add(d)) }
	next(24 * time.Hour)
	refused(t, "wrong", try(here, 99, wrong))
	noError(t, try(here, 1, right)) // the hundredth; counting begins again
	refused(t, "wrong", try(here, 99, wrong))
	refused(t, "the hundredth", try(here, 1, wrong))
	refused(t, "right after a hundred failures", try(here, 1, right))
	refused(t, "on another node", try(there, 1, right))
	noError(t, try(here, 1, login("bob", passphrase)))
	w.clock.add(time.Hour - time.Millisecond)
	refused(t, "in that hour", try(there, 1, right))
	w.clock.add(time.Millisecond)
	refused(t, "in the next hour", try(here, 96, wrong)) // 199 in the day, with those that were right
	noError(t, try(there, 1, right))
	refused(t, "wrong", try(here, 100, wrong))
	next(time.Hour)
	refused(t, "two hundred", try(here, 100, wrong))
	next(time.Hour)
	refused(t, "on that day", try(there, 1, right))
	next(24 * time.Hour)
	noError(t, try(there, 1, right))
	refused(t, "wrong", try(here, 300, wrong))
	w.clock.add(time.Millisecond)
	noError(t, try(here, 1, elsewhere)) // and counting begins again
	noError(t, try(here, 1, right))
	refused(t, "unknown", try(here, 300, login("nobody", passphrase)))
	noError(t, try(here, 1, right))

	_, session, _ := w.secured("carol")
	counts.times = 100
	wantFaults(t, last(here.Sessions.SetPassword(w.ctx, &session, another, another)), "/old invalid_value")
	counts.times = 1
	wantFaults(t, last(here.Sessions.SetPassword(w.ctx, &session, passphrase, another)), "/old invalid_value")
	noError(t, try(here, 1, login("carol", passphrase))) // another count
}

// Two nodes and a busy one: hashes wait for their turn.
func TestHashesWait(t *testing.T) {
	w := newWorld(t)
	turns := w.svc.Hashing()
	equal(t, cap(turns), max(1, min(runtime.GOMAXPROCS(0)/2, 4)), "%d hashes at once")
	for range cap(turns) {
		turns <- struct{}{}
	}
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	svc := w.svc.AsMember(&formsvc.Member{})
	wantError(t, last(svc.Sessions.SignInByPassword(ctx, login("ada", ""))), context.Canceled)
	<-turns
	refused(t, "with a free turn", last(svc.Sessions.SignInByPassword(w.ctx, login("ada", ""))))
	equal(t, len(turns), cap(turns)-1, "%d turns are taken")
}
