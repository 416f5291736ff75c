package console

import (
	"context"
	"errors"
	"net/http"
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
