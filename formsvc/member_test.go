package formsvc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

var memberPattern = regexp.MustCompile(`^m-[0-9A-Z]{52}$`)

// An oddStore runs a function before the next change of a member, and multiplies what is counted.
type oddStore struct {
	formsvc.Store
	meddle func()
	times  int
}

func (s *oddStore) UpdateMember(
	ctx context.Context, key formsvc.MemberKey, decide func(*formsvc.Member) (formsvc.Change, error),
) (formsvc.Member, error) {
	if meddle := s.meddle; meddle != nil {
		s.meddle = nil
		meddle()
	}
	return s.Store.UpdateMember(ctx, key, decide)
}

func (s *oddStore) AddQuota(ctx context.Context, list []formsvc.QuotaCount) ([]int, error) {
	for i := range list {
		list[i].N *= max(s.times, 1)
	}
	return s.Store.AddQuota(ctx, list)
}

// odd returns a service over the world's store.
func (w *world) odd(meddle func()) (*formsvc.Service, *oddStore) {
	s := &oddStore{Store: w.store, meddle: meddle}
	return must(formsvc.New(s, &formsvc.Options{Now: w.clock.Now})), s
}

func input(name string, role formsvc.Role) formsvc.MemberInput {
	return formsvc.MemberInput{Email: name + "@example.com", Name: name, Role: role}
}

// invite returns a person who hasn't joined, and the token of the invitation.
func (w *world) invite(name string, role formsvc.Role) (formsvc.Member, string) {
	w.tb.Helper()
	m, token, err := w.svc.Members.Invite(w.ctx, w.account, input(name, role))
	noError(w.tb, err)
	return m, token
}

// enter signs in with the token of a link.
func (w *world) enter(token string) (formsvc.Session, string, error) {
	return w.svc.Sessions.SignIn(w.ctx, token, "browser")
}

// joined returns a member, a session by link, and its value.
func (w *world) joined(name string, role formsvc.Role) (formsvc.Member, formsvc.Session, string) {
	w.tb.Helper()
	m, token := w.invite(name, role)
	session, value, err := w.enter(token)
	noError(w.tb, err)
	return must(w.svc.Members.Get(w.ctx, m.Key())), session, value
}

func (w *world) mailed(m *formsvc.Member, browser string) string {
	w.tb.Helper()
	token, _, err := w.svc.Sessions.NewMemberLink(w.ctx, m, browser)
	noError(w.tb, err)
	return token
}

func TestInvite(t *testing.T) {
	w := newWorld(t)
	m, token := w.invite("ada", formsvc.Admin)
	if !memberPattern.MatchString(token) || !m.InvitedUntil.Equal(start().Add(7*24*time.Hour)) || !m.JoinedAt.IsZero() {
		t.Errorf("invited %+v", m)
	}
	w.clock.add(formsvc.InvitationTTL - time.Millisecond)
	session, value, err := w.enter(token)
	if err != nil || !memberPattern.MatchString(value) || value == token {
		t.Fatalf("a value of %d characters, %v", len(value), err)
	}
	got, who, err := w.neighbour().Sessions.Authenticate(w.ctx, value)
	if err != nil || got != session || session.MemberID != m.ID || session.AccountID != w.account || !session.LastUsedAt.Equal(w.clock.Now()) {
		t.Errorf("the session is %+v, and was %+v, %v", got, session, err)
	}
	want := m
	want.JoinedAt, want.SignedInAt, want.UpdatedAt, want.InvitedUntil, want.Version = w.clock.Now(), w.clock.Now(), w.clock.Now(), time.Time{}, 2
	equal(t, *who, want, "the member is %+v")
	equalAll(t, must(w.svc.Members.List(w.ctx, w.account)), []formsvc.Member{want}, "members are %+v")
	equal(t, must(w.svc.Members.ByEmail(w.ctx, w.account, "ADA@example.com")), want, "by address: %+v")
	_, _, err = w.enter(token)
	refused(t, "a second use", err)
	_, _, err = w.svc.Members.InviteAgain(w.ctx, m.Key())
	wantError(t, err, formsvc.ErrConflict)
	for _, key := range []formsvc.MemberKey{{AccountID: w.account}, {ID: m.ID}, {AccountID: w.second(), ID: m.ID}} { // "" finds nobody
		wantError(t, failure(w.svc.Members.Get(w.ctx, key)), formsvc.ErrNotFound)
	}
	_, _, err = w.svc.Sessions.SetPassword(w.ctx, &formsvc.Session{AccountID: w.account}, "", "jug kettle heron plum") // the operator's
	refused(t, "a password for nobody", err)
	for _, e := range w.trail()[1:] {
		text := fmt.Sprint(e)
		if strings.Contains(text, "ada") || e.Target != m.ID && e.Details["person"] != string(m.ID) {
			t.Errorf("the trail has %s", text)
		}
	}
}

// An invitation is valid once, for the address that it went to, until it is replaced or the person joins in another way.
func TestInvitationEnds(t *testing.T) {
	for name, end := range map[string]func(w *world, m *formsvc.Member) error{
		"time": func(w *world, _ *formsvc.Member) error { w.clock.add(formsvc.InvitationTTL); return nil },
		"another": func(w *world, m *formsvc.Member) error {
			_, token, err := w.svc.Members.InviteAgain(w.ctx, m.Key())
			w.tb.Cleanup(func() { _, _, err := w.enter(token); wantError(w.tb, err, nil) })
			return err
		},
		"address": func(w *world, m *formsvc.Member) error {
			return failure(w.svc.Members.Replace(w.ctx, m.Key(), input("bob", m.Role)))
		},
		"removed": func(w *world, m *formsvc.Member) error {
			w.joined("admin", formsvc.Admin)
			return w.svc.Members.Remove(w.ctx, m.Key())
		},
		"ended": func(w *world, m *formsvc.Member) error { return w.svc.Members.EndSessions(w.ctx, m.Key()) },
		"provider": func(w *world, m *formsvc.Member) error {
			return failure(w.svc.Members.Identify(w.ctx, formsvc.Identity{Issuer: "i", Subject: "1", Email: m.Email}))
		},
		"mail": func(w *world, m *formsvc.Member) error { _, _, err := w.enter(w.mailed(m, "")); return err },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m, token := w.invite("ada", formsvc.Admin)
			noError(t, failure(w.svc.Members.Replace(w.ctx, m.Key(), formsvc.MemberInput{Email: "ADA@example.com", Name: "Ada", Role: formsvc.Admin})))
			noError(t, end(w, &m))
			_, value, err := w.enter(token)
			refused(t, "the invitation", err)
			equal(t, value, "", "a value comes with the error: %q")
		})
	}
}

func TestRemoveMember(t *testing.T) {
	w := newWorld(t)
	_, _, admin := w.joined("admin", formsvc.Admin)
	m, _, value := w.joined("ada", formsvc.Editor)
	token := w.mailed(&m, "secret")
	c := w.campaign()
	r := must(w.svc.AsMember(&m).Responses.Create(w.ctx, c.Key(), formsvc.ResponseInput{User: ada()}))
	noError(t, failure(w.svc.Members.Connect(w.ctx, m.Key(), formsvc.Identity{Issuer: "i", Subject: "1"})))
	noError(t, w.svc.Members.Remove(w.ctx, m.Key()))
	for name, svc := range map[string]*formsvc.Service{"here": w.svc, "on another node": w.neighbour()} {
		refused(t, name, last(svc.Sessions.Authenticate(w.ctx, value)))
		noError(t, last(svc.Sessions.Authenticate(w.ctx, admin)))
	}
	for _, secret := range []string{token, "secret:" + formsvc.SignInCode(token)} {
		refused(t, "a link", last(w.enter(secret)))
	}
	refused(t, "the identity", failure(w.svc.Members.Identify(w.ctx, formsvc.Identity{Issuer: "i", Subject: "1", Email: m.Email})))
	joins := formsvc.Identity{Issuer: "i", Subject: "1", Email: m.Email, Account: "first", Role: formsvc.Admin, Join: formsvc.Viewer}
	refused(t, "to join again", failure(w.svc.Members.Identify(w.ctx, joins)))
	for _, err := range []error{
		w.svc.Members.Remove(w.ctx, m.Key()), w.svc.Members.EndSessions(w.ctx, m.Key()),
		failure(w.svc.Members.Get(w.ctx, m.Key())), failure(w.svc.Members.Replace(w.ctx, m.Key(), m.MemberInput)),
	} {
		wantError(t, err, formsvc.ErrNotFound)
	}
	if e := w.events()[0]; e.ResponseID != r.ID || !strings.Contains(string(e.Payload), `"actor":{"type":"person","id":"`+string(m.ID)+`","name":"ada"}`) {
		t.Errorf("the event is %s", e.Payload)
	}
	if again, _ := w.invite("ada", formsvc.Viewer); again.ID == m.ID {
		t.Error("a former member is the same as the new one")
	}
	noError(t, failure(w.svc.Members.Identify(w.ctx, joins))) // invited
	trail := w.trail()
	w.svc = w.svc.AsMember(&m)
	noError(t, failure(w.svc.Members.Replace(w.ctx, w.keyOf("ada"), input("ada", formsvc.Viewer))))
	equal(t, w.trail()[len(trail)].Actor, "person "+string(m.ID), "the actor is %q")
}

func TestMemberInput(t *testing.T) {
	w := newWorld(t)
	m, _, value := w.joined("ada", formsvc.Admin)
	w.joined("bob", formsvc.Admin)
	for _, x := range []struct {
		in   formsvc.MemberInput
		want []string
	}{
		{formsvc.MemberInput{}, []string{"/email invalid_email", "/name required", "/role invalid_value"}},
		{formsvc.MemberInput{Email: "ada", Name: strings.Repeat("é", 101), Role: "owner"}, []string{"/email invalid_email", "/name too_long", "/role invalid_value"}},
		{formsvc.MemberInput{Email: "a\x00@example.com", Name: "a\x00b", Role: formsvc.Viewer}, []string{"/email invalid_email", "/name nul_not_allowed"}},
		{input("carol", formsvc.Reviewer), nil},
	} {
		_, _, err := w.svc.Members.Invite(w.ctx, w.account, x.in)
		wantFaults(t, err, x.want...)
		if x.want != nil {
			wantFaults(t, failure(w.svc.Members.Replace(w.ctx, m.Key(), x.in)), x.want...)
		}
	}
	_, _, err := w.svc.Members.Invite(w.ctx, w.account, formsvc.MemberInput{Email: "BOB@example.com", Name: "Bob", Role: formsvc.Viewer})
	wantError(t, err, formsvc.ErrConflict)
	wantError(t, failure(w.svc.Members.Replace(w.ctx, m.Key(), input("bob", formsvc.Viewer))), formsvc.ErrConflict)
	_, _, err = w.svc.Members.Invite(w.ctx, someID, input("bob", formsvc.Viewer))
	wantError(t, err, formsvc.ErrNotFound)
	noError(t, failure(w.svc.Members.Replace(w.ctx, m.Key(), input("ada2", formsvc.Viewer))))
	if _, who, err := w.svc.Sessions.Authenticate(w.ctx, value); err != nil || who.Role != formsvc.Viewer || who.Name != "ada2" {
		t.Errorf("the session goes on with %+v, %v", who, err)
	}
	for i := range formsvc.MaxMembers - 3 {
		w.invite(fmt.Sprint(i), formsvc.Viewer)
	}
	_, _, err = w.svc.Members.Invite(w.ctx, w.account, input("last", formsvc.Viewer))
	wantError(t, err, formsvc.ErrLimit)
}

// An account keeps an admin, and one who has joined if it has one.
func TestLastAdmin(t *testing.T) {
	for _, x := range []struct {
		joined, other string // who has joined, and the role of the other member
		want          error
	}{
		{"ada", "", formsvc.ErrLastAdmin},
		{"", "", formsvc.ErrLastAdmin},
		{"ada bob", "editor", formsvc.ErrLastAdmin},
		{"ada", "admin", formsvc.ErrLastAdmin},
		{"", "admin", nil},
		{"ada bob", "admin", nil},
	} {
		w := newWorld(t)
		for name, role := range map[string]formsvc.Role{"ada": formsvc.Admin, "bob": formsvc.Role(x.other)} {
			if role == "" {
				continue
			}
			if _, token := w.invite(name, role); strings.Contains(x.joined, name) {
				noError(t, last(w.enter(token)))
			}
		}
		key := w.keyOf("ada")
		err := failure(w.svc.Members.Replace(w.ctx, key, input("ada", formsvc.Editor)))
		if err == nil {
			noError(t, failure(w.svc.Members.Replace(w.ctx, key, input("ada", formsvc.Admin))))
		}
		if removed := w.svc.Members.Remove(w.ctx, key); !errors.Is(err, x.want) || !errors.Is(removed, x.want) {
			t.Errorf("%+v: %v, %v", x, err, removed)
		}
	}
}

func TestIdentify(t *testing.T) {
	w := newWorld(t)
	other := must(w.svc.Accounts.Create(w.ctx, "other"))
	admin, _, _ := w.joined("admin", formsvc.Admin)
	invited, _ := w.invite("invited", formsvc.Viewer)
	in := func(issuer, subject, name string) formsvc.Identity {
		id := formsvc.Identity{Issuer: issuer, Subject: subject}
		if name != "" {
			id.Email = name + "@example.com"
		}
		return id
	}
	to := func(id formsvc.Identity, account string, role formsvc.Role, join bool) formsvc.Identity {
		if id.Account, id.Role = account, role; join {
			id.Join = role
		}
		return id
	}
	for _, x := range []struct {
		name string
		id   formsvc.Identity
		want string // the member's address and role; "" if refused
	}{
		{"nobody", formsvc.Identity{}, ""},
		{"unknown", in("a", "1", "who"), ""},
		{"address that isn't verified", in("a", "1", ""), ""},
		{"one who has joined without it", in("a", "9", "admin"), ""},
		{"another account", to(in("a", "1", "invited"), "other", "", false), ""},
		{"no such account", to(in("a", "1", "who"), "none", formsvc.Viewer, true), ""},
		{"invited", to(in("a", "1", "INVITED"), "first", "", false), "invited viewer"},
		{"known by subject", in("a", "1", "changed"), "invited viewer"},
		{"changed subject", in("a", "2", "invited"), ""},
		{"other issuer", in("b", "1", "invited"), ""},
		{"role", to(in("a", "1", ""), "", formsvc.Reviewer, false), "invited reviewer"},
		{"no such role", to(in("a", "1", ""), "", "owner", false), "invited reviewer"},
		{"join without a role", to(in("a", "3", "new"), "first", "", true), ""},
		{"join without an account", to(in("a", "3", "new"), "", formsvc.Editor, true), ""},
		{"join without an address", to(in("a", "3", ""), "first", formsvc.Editor, true), ""},
		{"join as one who has joined", to(in("a", "3", "admin"), "first", formsvc.Editor, true), ""},
		{"join", to(in("a", "3", "new"), "first", formsvc.Editor, true), "new editor"},
		{"in another account", to(in("a", "3", "new"), "other", formsvc.Admin, true), "new admin"},
		{"back in the first", to(in("a", "3", ""), "first", "", true), "new editor"},
		{"joins as", formsvc.Identity{Issuer: "a", Subject: "4", Email: "four@example.com", Account: "first", Join: formsvc.Reviewer}, "four reviewer"},
		{"joined before", formsvc.Identity{Issuer: "a", Subject: "3", Account: "first", Join: formsvc.Viewer}, "new editor"},
		{"the first of two", in("a", "3", ""), "new editor"},
		{"last admin", to(in("a", "3", ""), "other", formsvc.Viewer, true), "new admin"},
		{"proxy", in("", "", "ADMIN"), "admin admin"},
		{"role from a proxy", to(in("", "", "invited"), "", formsvc.Viewer, false), "invited viewer"},
		{"last admin from a proxy", to(in("", "", "admin"), "", formsvc.Viewer, false), "admin admin"},
		{"unknown to a proxy", in("", "", "who"), ""},
		{"joins by a proxy", to(in("", "", "proxied"), "first", formsvc.Viewer, true), "proxied viewer"},
	} {
		m, err := w.svc.Members.Identify(w.ctx, x.id)
		if x.want == "" {
			refused(t, x.name, err)
		} else if got := strings.Replace(m.Email, "@example.com", "", 1) + " " + string(m.Role); got != x.want || m.JoinedAt.IsZero() || err != nil {
			t.Errorf("%s: %s, %v", x.name, got, err)
		}
	}
	trail := len(w.trail())
	noError(t, failure(w.svc.Members.Identify(w.ctx, in("a", "1", ""))))
	equal(t, len(w.trail()), trail, "%d entries of what changes nothing")
	session, value, err := w.svc.Sessions.SignInAs(w.ctx, formsvc.Identity{Issuer: "a", Subject: "3", Provider: "sso"}, "browser")
	if err != nil || w.session(value) != nil || session.Way != formsvc.SignedInByProvider+" sso" {
		t.Errorf("%+v, %v", session, err)
	}
	members := w.svc.Members
	equal(t, len(must(members.OfPerson(w.ctx, "NEW@example.com"))), 2, "%d accounts")
	w.invite("late", formsvc.Viewer)
	equal(t, len(must(members.OfPerson(w.ctx, "late@example.com"))), 1, "%d who are invited")
	w.clock.add(formsvc.InvitationTTL)
	for _, email := range []string{"late@example.com", "", "\x00"} {
		equal(t, len(must(members.OfPerson(w.ctx, email))), 0, "%q: %d", email)
	}
	noError(t, failure(members.Connect(w.ctx, admin.Key(), in("a", "9", ""))))
	noError(t, failure(members.Connect(w.ctx, admin.Key(), in("a", "9", ""))))
	wantError(t, failure(members.Connect(w.ctx, admin.Key(), in("a", "8", ""))), formsvc.ErrConflict)
	wantError(t, failure(members.Connect(w.ctx, w.keyOf("proxied"), in("a", "9", ""))), formsvc.ErrConflict)
	wantError(t, failure(members.ByEmail(w.ctx, other.ID, admin.Email)), formsvc.ErrNotFound)
	equal(t, must(members.Identify(w.ctx, in("a", "1", ""))).ID, invited.ID, "then %s")
}

// What happens between the reads and the write of a sign-in counts.
func TestIdentifyBesideChanges(t *testing.T) {
	w := newWorld(t)
	w.joined("admin", formsvc.Admin)
	first, _ := w.invite("ada", formsvc.Editor)
	id := formsvc.Identity{Issuer: "a", Subject: "1", Email: first.Email}
	svc, store := w.odd(func() { noError(t, failure(w.svc.Members.Replace(w.ctx, first.Key(), input("ada", formsvc.Viewer)))) })
	equal(t, must(svc.Members.Identify(w.ctx, id)).Role, formsvc.Viewer, "the role is %s")
	m, token := w.invite("bob", formsvc.Editor)
	id.Subject, id.Email = "2", m.Email
	store.meddle = func() { noError(t, last(w.enter(token))) }
	refused(t, "an address of one who has joined meanwhile", failure(svc.Members.Identify(w.ctx, id)))
	store.meddle = func() { noError(t, w.svc.Members.Remove(w.ctx, m.Key())) }
	refused(t, "by a link of one who was removed meanwhile", last(svc.Sessions.SignIn(w.ctx, w.mailed(&m, ""), "")))
}

// Erasure removes a former member, and what it did from events and comments. Others stay.
func TestEraseFormerMember(t *testing.T) {
	w := newWorld(t)
	admin, _, _ := w.joined("admin", formsvc.Admin)
	m, _, _ := w.joined("ada", formsvc.Editor)
	c := w.campaign()
	r := must(w.svc.AsMember(&admin).Responses.Create(w.ctx, c.Key(), formsvc.ResponseInput{User: formsvc.User{Email: "eve@example.com"}}))
	for _, of := range []*formsvc.Member{&m, &admin} {
		svc := w.svc.AsMember(of)
		noError(t, failure(svc.Responses.Update(w.ctx, r.Key(), formsvc.ResponsePatch{Email: new(of.Name + "x@example.com")})))
		noError(t, failure(svc.Comments.Create(w.ctx, r.Key(), formsvc.CommentInput{Body: "b", Author: of.Name})))
	}
	noError(t, failure(w.svc.Accounts.ErasePerson(w.ctx, w.account, m.Email)))
	equal(t, len(w.events()), 3, "%d events before the member is removed")
	noError(t, w.svc.Members.Remove(w.ctx, m.Key()))
	var out bytes.Buffer
	noError(t, failure(w.svc.Accounts.ExportPerson(w.ctx, w.account, m.Email, &out)))
	if texts := archive(t, out.Bytes()); !strings.Contains(texts["people.ndjson"], `"name":"ada"`) || texts["events.ndjson"] != "" || strings.Contains(texts["people.ndjson"], "argon") {
		t.Errorf("exported %q", texts)
	}
	w.store.after = func(method string) error { // the first call fails after the first write
		if method == "Erase" {
			return errFrail
		}
		return nil
	}
	wantError(t, failure(w.svc.Accounts.ErasePerson(w.ctx, w.account, m.Email)), errFrail)
	w.store.after = nil
	noError(t, failure(w.svc.Accounts.ErasePerson(w.ctx, w.account, strings.ToUpper(m.Email))))
	for _, e := range w.events() {
		if strings.Contains(string(e.Payload), string(m.ID)) {
			t.Errorf("an event is left: %s", e.Payload)
		}
	}
	equal(t, len(w.events()), 2, "%d events")
	var authors []string
	for _, x := range must(w.svc.Comments.List(w.ctx, r.Key(), formsvc.PageQuery{Ascending: true})).Items {
		authors = append(authors, x.Author)
	}
	equalAll(t, authors, []string{"", "admin"}, "authors are %q")
	for removed, want := range map[bool]int{false: 1, true: 0} {
		equal(t, len(must(w.store.Members(w.ctx, formsvc.MemberQuery{AccountID: w.account, Removed: removed}))), want, "removed %t: %d", removed)
	}
}

// last returns the error of a call.
func last[A, B any](_ A, _ B, err error) error { return err }

func (w *world) keyOf(name string) formsvc.MemberKey {
	w.tb.Helper()
	m := must(w.svc.Members.ByEmail(w.ctx, w.account, name+"@example.com"))
	return m.Key()
}
