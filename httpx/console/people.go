package console

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

type peoplePage struct {
	People []personRow
	Pager  pager
	Input  formsvc.MemberInput // as typed
	// Link is what a person was invited with just now, which can't be shown again.
	Link    string
	Invited formsvc.Member
	Mailed  bool
}

type personRow struct {
	formsvc.Member
	State string
	You   bool
}

// stateOf returns whether a person has joined.
func stateOf(m *formsvc.Member, now time.Time) string {
	switch {
	case !m.JoinedAt.IsZero():
		return "active"
	case now.Before(m.InvitedUntil):
		return "invited"
	}
	return "expired"
}

// people lists the members of the account, newest first, with a form to invite one.
func (v *visit) people() error { return v.showPeople(http.StatusOK, &peoplePage{}) }

func (v *visit) showPeople(status int, p *peoplePage) error {
	list, err := v.svc.Members.List(v.ctx(), v.account())
	if err != nil {
		return err
	}
	list, p.Pager = cut(v, list, func(m *formsvc.Member) formsvc.ID { return m.ID }) // an account has few
	for _, m := range list {
		p.People = append(p.People, personRow{m, stateOf(&m, v.svc.Now()), v.who.member != nil && m.ID == v.who.member.ID})
	}
	return v.show(status, "people", "People", p)
}

func (v *visit) personKey() formsvc.MemberKey {
	return formsvc.MemberKey{AccountID: v.account(), ID: v.id("person")}
}

// invite invites a person, and shows the link once.
func (v *visit) invite() error {
	p := peoplePage{Input: formsvc.MemberInput{Email: v.field("email"), Name: v.field("name"), Role: formsvc.Role(v.field("role"))}}
	m, token, err := v.svc.Members.Invite(v.ctx(), v.account(), p.Input)
	if v.invalid(v.taken(err)) {
		return v.showPeople(http.StatusUnprocessableEntity, &p)
	}
	return v.showInvited(&m, token, err)
}

// inviteAgain replaces the invitation of a person.
func (v *visit) inviteAgain() error {
	m, token, err := v.svc.Members.InviteAgain(v.ctx(), v.personKey())
	return v.showInvited(&m, token, err)
}

// showInvited mails and shows the link of an invitation, or passes on an error.
func (v *visit) showInvited(m *formsvc.Member, token string, err error) error {
	if err != nil {
		return err
	}
	p := peoplePage{Link: v.address("/sign-in/" + token), Invited: *m, Mailed: v.h.opts.SendLink != nil}
	if p.Mailed {
		to, link, until := m.Email, p.Link, m.InvitedUntil
		v.mail("an invitation was not sent", func(ctx context.Context) error { return v.h.opts.SendLink(ctx, to, link, until) })
	}
	return v.showPeople(http.StatusOK, &p)
}

// taken makes an address that another member has a fault of its field.
func (v *visit) taken(err error) error {
	if errors.Is(err, formsvc.ErrConflict) && !errors.Is(err, formsvc.ErrLastAdmin) {
		return &formsvc.ValidationError{Fields: []formsvc.FieldError{{Pointer: "/email", Code: "taken", Detail: "is a member of this account already"}}}
	}
	return err
}

// changePerson changes the name and the role of a person.
func (v *visit) changePerson() error {
	m, err := v.svc.Members.Get(v.ctx(), v.personKey())
	if err != nil {
		return err
	}
	in := m.MemberInput
	in.Name, in.Role = v.field("name"), formsvc.Role(v.field("role"))
	_, err = v.svc.Members.Replace(v.ctx(), m.Key(), in)
	return v.done(err, "/people", "person-saved")
}

// removePerson removes a person, and signs them out.
func (v *visit) removePerson() error {
	return v.done(v.svc.Members.Remove(v.ctx(), v.personKey()), "/people", "person-removed")
}

// A youPage is the own page of a member, or of the operator, who may become one.
type youPage struct {
	Member    *formsvc.Member
	Account   string
	Sessions  []sessionRow
	Providers []Provider // that the member can connect
	Old       bool       // whether a new password needs the present one
	Least     int        // characters of a password
	Input     formsvc.MemberInput
}

type sessionRow struct {
	formsvc.Session
	Here   bool
	Device string // in a few words
	Way    string
}

// you shows what concerns the visitor alone.
func (v *visit) you() error { return v.showYou(http.StatusOK, formsvc.MemberInput{}) }

func (v *visit) showYou(status int, in formsvc.MemberInput) error {
	account, err := v.svc.Accounts.Get(v.ctx(), v.account())
	if err != nil {
		return err
	}
	p := youPage{Member: v.who.member, Account: account.Name, Input: in, Least: formsvc.MinPassword}
	if p.Member == nil {
		return v.show(status, "you", "You", p)
	}
	if in.Name == "" {
		p.Input = p.Member.MemberInput
	}
	p.Old = p.Member.Password != "" && v.began.Way != formsvc.SignedInByLink
	if p.Member.Subject == "" {
		p.Providers = v.h.opts.Providers
	} else {
		p.Least = formsvc.MinSecondPassword
	}
	sessions, err := v.svc.Sessions.List(v.ctx(), p.Member)
	for _, x := range sessions {
		way, name, _ := strings.Cut(x.Way, " ")
		row := sessionRow{x, x.ID == v.began.ID, device(x.Device), v.h.texts["ways"][way]}
		if provider := v.h.provider(name); provider != nil {
			row.Way = provider.Title()
		}
		p.Sessions = append(p.Sessions, row)
	}
	if err != nil {
		return err
	}
	return v.show(status, "you", "You", p)
}

// device names a browser and its system by what the header User-Agent has.
func device(agent string) string {
	first := func(names ...string) string {
		for _, name := range names {
			if sign, word, _ := strings.Cut(name, "="); strings.Contains(agent, sign) {
				return word
			}
		}
		return ""
	}
	browser := first("Edg/=Edge", "OPR/=Opera", "Firefox/=Firefox", "Chrome/=Chrome", "Safari/=Safari", "curl/=curl")
	system := first("Android=Android", "iPhone=iPhone", "iPad=iPad", "Windows=Windows", "Mac OS X=macOS", "Linux=Linux")
	switch {
	case browser == "":
		return "Unknown browser"
	case system == "":
		return browser
	}
	return browser + " on " + system
}

// changeYou changes the visitor's name.
func (v *visit) changeYou() error {
	if v.who.member == nil {
		return v.joinYou()
	}
	in := v.who.member.MemberInput
	in.Name = v.field("name")
	_, err := v.svc.Members.Replace(v.ctx(), v.who.member.Key(), in)
	if v.invalid(err) {
		in.Name = v.who.member.Name
		return v.showYou(http.StatusUnprocessableEntity, in)
	}
	return v.done(err, "/you", "you-saved")
}

// joinYou makes the operator, who came by a link of the account, a member and an admin, whose session goes on.
func (v *visit) joinYou() error {
	in := formsvc.MemberInput{Email: v.field("email"), Name: v.field("name"), Role: formsvc.Admin}
	_, token, err := v.svc.Members.Invite(v.ctx(), v.account(), in)
	if v.invalid(v.taken(err)) {
		return v.showYou(http.StatusUnprocessableEntity, in)
	}
	if err != nil {
		return err
	}
	session, value, err := v.h.svc.Sessions.SignIn(v.ctx(), token, v.r.UserAgent())
	return v.signedIn(&session, value, err)
}

// setPassword changes the password. The session goes on with another value, and all others end.
func (v *visit) setPassword() error {
	if v.session == "" || v.who.member == nil {
		return formsvc.ErrNotFound
	}
	session, value, err := v.svc.Sessions.SetPassword(v.ctx(), &v.began, v.r.PostForm.Get("old"), v.r.PostForm.Get("password"))
	if v.invalid(err) {
		return v.showYou(http.StatusUnprocessableEntity, formsvc.MemberInput{})
	}
	if err != nil {
		return err
	}
	v.giveSession(&session, value)
	return v.done(nil, "/you", "password")
}

// endSession ends one session of the visitor, or all.
func (v *visit) endSession() error {
	if v.who.member == nil {
		return formsvc.ErrNotFound
	}
	var err error
	if id := v.field("session"); id != "" {
		err = v.svc.Sessions.End(v.ctx(), v.who.member, readID(id))
	} else {
		err = v.svc.Members.EndSessions(v.ctx(), v.who.member.Key())
	}
	if err == nil && v.session != "" && v.still() != nil {
		v.setCookie(v.cookieName(), "", "/", -time.Second)
		return v.redirect(nil, "/sign-in", nil)
	}
	return v.done(err, "/you", "session-ended")
}
