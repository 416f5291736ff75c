package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/formsvc/toolkit/formsvc"
)

type accountsCmd struct {
	Create  accountCreateCmd  `cmd:"" help:"Create an account."`
	List    accountListCmd    `cmd:"" help:"List the accounts."`
	Contact accountContactCmd `cmd:"" help:"Set the e-mail address that is told about failing webhooks."`
}

type accountRecord struct {
	UUID      formsvc.ID `json:"uuid"`
	Name      string     `json:"name"`
	Contact   *string    `json:"contact"`
	CreatedAt stamp      `json:"createdAt"`
}

func newAccountRecord(a formsvc.Account) accountRecord {
	return accountRecord{a.ID, a.Name, orNull(a.Contact), stamp{a.CreatedAt}}
}

func accountLine(a accountRecord) string {
	contact := "-"
	if a.Contact != nil {
		contact = *a.Contact
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s", a.UUID, a.Name, contact, a.CreatedAt)
}

const accountHeader = "UUID\tNAME\tCONTACT\tCREATED"

func (o output) printAccount(std streams, a formsvc.Account) error {
	return records(o, std.out, accountHeader, []accountRecord{newAccountRecord(a)}, accountLine)
}

type accountCreateCmd struct {
	output
	Name    string `arg:"" help:"The account's name."`
	Contact string `placeholder:"EMAIL" help:"E-mail address that is told about failing webhooks. Defaults to none."`
}

// Run creates an account.
func (c *accountCreateCmd) Run(ctx context.Context, g *global, std streams) error {
	return g.with(ctx, false, nil, func(svc *formsvc.Service) error {
		a, err := svc.Accounts.Create(ctx, c.Name)
		if errors.Is(err, formsvc.ErrConflict) {
			return fmt.Errorf("account %q already exists; choose another name", c.Name)
		}
		if err != nil {
			return err
		}
		if c.Contact != "" {
			if a, err = svc.Accounts.SetContact(ctx, a.ID, c.Contact); err != nil {
				return fmt.Errorf("account %q was created, but --contact was not set: %w", c.Name, err)
			}
		}
		return c.printAccount(std, a)
	})
}

type accountListCmd struct{ output }

// Run lists the accounts.
func (c *accountListCmd) Run(ctx context.Context, g *global, std streams) error {
	return g.withService(ctx, func(svc *formsvc.Service) error {
		accounts, err := svc.Accounts.List(ctx)
		if err != nil {
			return err
		}
		return records(c.output, std.out, accountHeader, mapped(accounts, newAccountRecord), accountLine)
	})
}

type accountContactCmd struct {
	output
	Account string `arg:"" help:"The account, by name or UUID."`
	Email   string `arg:"" help:"The e-mail address, or none to remove it."`
}

// Run sets an account's contact.
func (c *accountContactCmd) Run(ctx context.Context, g *global, std streams) error {
	return g.withService(ctx, func(svc *formsvc.Service) error {
		id, err := account(ctx, svc, c.Account)
		if err != nil {
			return err
		}
		email := c.Email
		if email == "none" {
			email = ""
		}
		a, err := svc.Accounts.SetContact(ctx, id, email)
		if err != nil {
			return err
		}
		return c.printAccount(std, a)
	})
}

// inAccount is the --account flag of commands that work on one account.
type inAccount struct {
	Account string `default:"default" help:"The account, by name or UUID."`
}

func (a *inAccount) with(ctx context.Context, g *global, do func(svc *formsvc.Service, id formsvc.ID) error) error {
	return g.withService(ctx, func(svc *formsvc.Service) error {
		id, err := account(ctx, svc, a.Account)
		if err != nil {
			return err
		}
		return do(svc, id)
	})
}

// account finds an account by name or UUID.
func account(ctx context.Context, svc *formsvc.Service, name string) (formsvc.ID, error) {
	if id, ok := formsvc.ParseID(name); ok {
		a, err := svc.Accounts.Get(ctx, id)
		if errors.Is(err, formsvc.ErrNotFound) {
			return "", fmt.Errorf("there is no account %s: \"formsvc accounts list\" shows all", id)
		}
		return a.ID, err
	}
	a, err := svc.Accounts.ByName(ctx, name)
	if errors.Is(err, formsvc.ErrNotFound) {
		return "", fmt.Errorf("there is no account %q: the first \"formsvc serve\" creates one named %q, "+
			"and \"formsvc accounts create\" creates others", name, defaultAccount)
	}
	return a.ID, err
}
