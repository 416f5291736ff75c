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
	Delete  accountDeleteCmd  `cmd:"" help:"Remove an account with all its data."`
}

type accountRecord struct {
	UUID      formsvc.ID `json:"uuid"`
	Name      string     `json:"name"`
	Contact   *string    `json:"contact"`
	CreatedAt stamp      `json:"createdAt"`
}

// printAccounts prints accounts, or passes on an error.
func (o output) printAccounts(std streams, err error, list ...formsvc.Account) error {
	return table[accountRecord]{
		"UUID\tNAME\tCONTACT\tCREATED", func(a accountRecord) string { return cells(a.UUID, a.Name, a.Contact, a.CreatedAt) },
	}.print(o, std, err, mapped(list, func(a formsvc.Account) accountRecord {
		return accountRecord{a.ID, a.Name, orNull(a.Contact), stamp{a.CreatedAt}}
	})...)
}

type accountCreateCmd struct {
	output
	Name    string `arg:"" help:"The account's name."`
	Contact string `placeholder:"EMAIL" help:"E-mail address that is told about failing webhooks. Defaults to none."`
}

// Run creates an account.
func (c *accountCreateCmd) Run(ctx context.Context, g *global, std streams) error {
	return g.with(ctx, need{create: true}, func(svc *formsvc.Service) error {
		a, err := svc.Accounts.Create(ctx, c.Name)
		if errors.Is(err, formsvc.ErrConflict) {
			return fmt.Errorf("account %q already exists; choose another name", c.Name)
		}
		if err == nil && c.Contact != "" {
			if a, err = svc.Accounts.SetContact(ctx, a.ID, c.Contact); err != nil {
				return fmt.Errorf("account %q was created, but --contact was not set: %w", c.Name, err)
			}
		}
		return c.printAccounts(std, err, a)
	})
}

type accountListCmd struct{ output }

// Run lists the accounts.
func (c *accountListCmd) Run(ctx context.Context, g *global, std streams) error {
	return g.with(ctx, need{}, func(svc *formsvc.Service) error {
		accounts, err := svc.Accounts.List(ctx)
		return c.printAccounts(std, err, accounts...)
	})
}

type accountContactCmd struct {
	output
	Account string `arg:"" help:"The account, by name or UUID."`
	Email   string `arg:"" help:"The e-mail address, or none to remove it."`
}

// Run sets an account's contact.
func (c *accountContactCmd) Run(ctx context.Context, g *global, std streams) error {
	if c.Email == "none" {
		c.Email = ""
	}
	in := inAccount{c.Account}
	return in.with(ctx, g, need{}, func(svc *formsvc.Service, id formsvc.ID) error {
		a, err := svc.Accounts.SetContact(ctx, id, c.Email)
		return c.printAccounts(std, err, a)
	})
}

type accountDeleteCmd struct {
	output
	Account string `arg:"" help:"The account, by name or UUID."`
	Yes     bool   `required:"" help:"Confirms the deletion, which can't be undone."`
}

// Run deletes an account and prints the receipt.
func (c *accountDeleteCmd) Run(ctx context.Context, g *global, std streams) error {
	in := inAccount{c.Account}
	return in.with(ctx, g, need{files: true}, func(svc *formsvc.Service, id formsvc.ID) error {
		receipt, err := svc.Accounts.Delete(ctx, id)
		return c.printReceipt(std, &receipt, err)
	})
}

// inAccount is the --account flag of commands that work on one account.
type inAccount struct {
	Account string `default:"default" help:"The account, by name or UUID."`
}

// with runs a management command on the account.
func (a *inAccount) with(ctx context.Context, g *global, n need, do func(svc *formsvc.Service, id formsvc.ID) error) error {
	return g.with(ctx, n, func(svc *formsvc.Service) error {
		find := func() (formsvc.Account, error) { return svc.Accounts.ByName(ctx, a.Account) }
		if id, ok := formsvc.ParseID(a.Account); ok {
			find = func() (formsvc.Account, error) { return svc.Accounts.Get(ctx, id) }
		}
		found, err := find()
		if errors.Is(err, formsvc.ErrNotFound) {
			return fmt.Errorf("there is no account %q: \"formsvc accounts list\" shows all, the first \"formsvc serve\" creates one named %q, "+
				"and \"formsvc accounts create\" creates others", a.Account, defaultAccount)
		}
		if err != nil {
			return err
		}
		return do(svc, found.ID)
	})
}

// missing replaces an error about a record that isn't in the account.
func (a *inAccount) missing(err error, kind string, id recordID) error {
	if errors.Is(err, formsvc.ErrNotFound) {
		return fmt.Errorf("account %q has no %s %s", a.Account, kind, id)
	}
	return err
}
