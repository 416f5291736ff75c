package console

import (
	"net/http"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

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
