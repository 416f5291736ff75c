package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

type peopleCmd struct {
	Add    peopleAddCmd    `cmd:"" help:"Invite a person to the console, or invite again, and print the link of the invitation."`
	List   peopleListCmd   `cmd:"" help:"List the people of an account."`
	Role   peopleRoleCmd   `cmd:"" help:"Change the role of a person."`
	Remove peopleRemoveCmd `cmd:"" help:"Remove a person and end their sessions."`
	Link   peopleLinkCmd   `cmd:"" help:"Print a link that signs a person in once, within 15 minutes."`
}

// memberRecord is a person without the hash of a password.
type memberRecord struct {
	UUID         formsvc.ID   `json:"uuid"`
	Email        string       `json:"email"`
	Name         string       `json:"name"`
	Role         formsvc.Role `json:"role"`
	State        string       `json:"state"` // joined, invited or expired
	InvitedUntil stamp        `json:"invitedUntil"`
	SignedInAt   stamp        `json:"signedInAt"`
	Ways         []string     `json:"ways"` // of signing in, beside links
	Link         string       `json:"link,omitempty"`
}

func newMemberRecord(m formsvc.Member) memberRecord {
	r := memberRecord{m.ID, m.Email, m.Name, m.Role, "joined", stamp{m.InvitedUntil}, stamp{m.SignedInAt}, []string{}, ""}
	if m.JoinedAt.IsZero() {
		r.State = "invited"
		if !time.Now().Before(m.InvitedUntil) {
			r.State = "expired"
		}
	}
	if m.Password != "" {
		r.Ways = append(r.Ways, "password")
	}
	if m.Subject != "" {
		r.Ways = append(r.Ways, m.Issuer)
	}
	return r
}

// printMembers prints people, or passes on an error.
func (o output) printMembers(std streams, err error, list ...formsvc.Member) error {
	return table[memberRecord]{"EMAIL\tNAME\tROLE\tSTATE\tINVITED UNTIL\tLAST SIGNED IN\tBY", func(r memberRecord) string {
		return cells(r.Email, r.Name, r.Role, r.State, r.InvitedUntil, r.SignedInAt, r.Ways)
	}}.print(o, std, err, mapped(list, newMemberRecord)...)
}

// inPerson are the flags of commands that work on one person.
type inPerson struct {
	inAccount
	Email string `required:"" placeholder:"EMAIL" help:"E-mail address of the person, in upper or lower case."`
}

// with runs a command on the person.
func (c *inPerson) with(ctx context.Context, g *global, do func(svc *formsvc.Service, m formsvc.Member) error) error {
	return c.inAccount.with(ctx, g, need{}, func(svc *formsvc.Service, id formsvc.ID) error {
		m, err := svc.Members.ByEmail(ctx, id, c.Email)
		if err == nil {
			err = do(svc, m)
		}
		return c.explain(err)
	})
}

// explain replaces an error about the person.
func (c *inPerson) explain(err error) error {
	switch {
	case errors.Is(err, formsvc.ErrLastAdmin):
		return fmt.Errorf("%s is the last admin of account %q: make another person who has joined an admin first", c.Email, c.Account)
	case errors.Is(err, formsvc.ErrNotFound):
		return fmt.Errorf("account %q has no person with the address %q: \"formsvc people list\" shows all", c.Account, c.Email)
	}
	return err
}

type peopleAddCmd struct {
	inPerson
	output
	linking
	Name string       `placeholder:"NAME" help:"Name of the person, which stands at what they do. Defaults to the address."`
	Role formsvc.Role `required:"" enum:"admin,editor,reviewer,viewer" help:"Role of the person: ${enum}."`
}

// Run invites a person and prints only the link to standard output.
func (c *peopleAddCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.inAccount.with(ctx, g, need{}, func(svc *formsvc.Service, id formsvc.ID) error {
		m, token, err := c.invite(ctx, svc, id)
		if err != nil {
			return c.explain(err)
		}
		link := signInLink(c.base(g, std), token)
		if c.JSON {
			record := newMemberRecord(m)
			record.Link = link
			return c.printJSON(std, nil, record)
		}
		std.note("Invited %q (%s) as %s of account %q. The link signs in once, until %s:", m.Name, m.Email, m.Role, c.Account, stamp{m.InvitedUntil})
		_, err = fmt.Fprintln(std.out, link)
		return err
	})
}

// invite invites a person, or replaces the invitation of one who hasn't joined.
func (c *peopleAddCmd) invite(ctx context.Context, svc *formsvc.Service, id formsvc.ID) (m formsvc.Member, token string, err error) {
	m, err = svc.Members.ByEmail(ctx, id, c.Email)
	if errors.Is(err, formsvc.ErrNotFound) {
		return svc.Members.Invite(ctx, id, formsvc.MemberInput{Email: c.Email, Name: cmp.Or(c.Name, c.Email), Role: c.Role})
	}
	if err == nil && !m.JoinedAt.IsZero() {
		err = fmt.Errorf("%s has joined account %q: \"formsvc people role\" changes the role, \"formsvc people link\" prints a link to sign in", m.Email, c.Account)
	}
	if err == nil {
		_, err = svc.Members.Replace(ctx, m.Key(), formsvc.MemberInput{Email: m.Email, Name: cmp.Or(c.Name, m.Name), Role: c.Role})
	}
	if err != nil {
		return m, "", err
	}
	return svc.Members.InviteAgain(ctx, m.Key())
}

type peopleListCmd struct {
	inAccount
	output
}

// Run lists the people.
func (c *peopleListCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, need{}, func(svc *formsvc.Service, id formsvc.ID) error {
		list, err := svc.Members.List(ctx, id)
		return c.printMembers(std, err, list...)
	})
}

type peopleRoleCmd struct {
	inPerson
	output
	Role formsvc.Role `required:"" enum:"admin,editor,reviewer,viewer" help:"The new role: ${enum}."`
}

// Run changes a role.
func (c *peopleRoleCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, func(svc *formsvc.Service, m formsvc.Member) error {
		in := m.MemberInput
		in.Role = c.Role
		m, err := svc.Members.Replace(ctx, m.Key(), in)
		return c.printMembers(std, err, m)
	})
}

type peopleRemoveCmd struct{ inPerson }

// Run removes a person.
func (c *peopleRemoveCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, func(svc *formsvc.Service, m formsvc.Member) error {
		err := svc.Members.Remove(ctx, m.Key())
		if err == nil {
			std.note("%s is removed from account %q. All sessions have ended; the name stays at what %s did until \"formsvc erase\".", m.Email, c.Account, m.Email)
		}
		return err
	})
}

type peopleLinkCmd struct {
	inPerson
	linking
}

// Run prints a link, alone, to standard output.
func (c *peopleLinkCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, func(svc *formsvc.Service, m formsvc.Member) error {
		if newMemberRecord(m).State == "expired" {
			return fmt.Errorf("the invitation of %s has expired: \"formsvc people add\" invites again", m.Email)
		}
		token, until, err := svc.Sessions.NewMemberLink(ctx, &m, "")
		if err != nil {
			return err
		}
		std.note("This link signs in %s once to the console of account %q, until %s:", m.Email, c.Account, until.Local().Format("15:04:05"))
		_, err = fmt.Fprintln(std.out, signInLink(c.base(g, std), token))
		return err
	})
}
