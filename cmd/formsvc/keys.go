package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

type keysCmd struct {
	Create keyCreateCmd `cmd:"" help:"Create a key and print its value, which is shown only once."`
	List   keyListCmd   `cmd:"" help:"List the keys."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke a key. Servers notice within 2 seconds."`
}

type keyRecord struct {
	UUID        formsvc.ID           `json:"uuid"`
	Name        string               `json:"name"`
	Prefix      string               `json:"prefix"`
	Permissions []formsvc.Permission `json:"permissions"`
	CreatedAt   stamp                `json:"createdAt"`
	LastUsedAt  stamp                `json:"lastUsedAt"` // accurate to about a minute
	ExpiresAt   stamp                `json:"expiresAt"`
	RevokedAt   stamp                `json:"revokedAt"`
	Key         string               `json:"key,omitempty"`
}

func newKeyRecord(k formsvc.Key) keyRecord {
	return keyRecord{
		k.ID, k.Name, k.Prefix, k.Permissions, stamp{k.CreatedAt}, stamp{k.LastUsedAt}, stamp{k.ExpiresAt}, stamp{k.RevokedAt}, "",
	}
}

type keyCreateCmd struct {
	inAccount
	output
	Name        string        `required:"" help:"What the key is for."`
	Permissions []string      `required:"" help:"Comma-separated permissions out of campaigns:read, campaigns:write, responses:read, responses:write, files:read, webhooks:read and webhooks:write; or all."`
	Expires     time.Duration `placeholder:"DUR" help:"How long the key is valid, such as 720h. Defaults to no expiry."`
}

// Run creates a key. It prints only the value to standard output.
func (c *keyCreateCmd) Run(ctx context.Context, g *global, std streams) error {
	in := formsvc.KeyInput{Name: c.Name, Expires: c.Expires, Permissions: mapped(c.Permissions, asPermission)}
	if slices.Contains(c.Permissions, "all") {
		in.Permissions = formsvc.AllPermissions()
	}
	return c.with(ctx, g, need{}, func(svc *formsvc.Service, id formsvc.ID) error {
		key, err := svc.Keys.Create(ctx, id, in)
		if err != nil || c.JSON {
			record := newKeyRecord(key.Key)
			record.Key = key.Value
			return c.printJSON(std, err, record)
		}
		std.note("Created key %s (%s). Its value is shown only once:", key.ID, key.Name)
		_, err = fmt.Fprintln(std.out, key.Value)
		return err
	})
}

func asPermission(s string) formsvc.Permission { return formsvc.Permission(s) }

type keyListCmd struct {
	inAccount
	output
}

// Run lists the keys.
func (c *keyListCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, need{}, func(svc *formsvc.Service, id formsvc.ID) error {
		keys, err := svc.Keys.List(ctx, id)
		return table[keyRecord]{"UUID\tNAME\tPREFIX\tPERMISSIONS\tCREATED\tLAST USED\tEXPIRES\tREVOKED", func(k keyRecord) string {
			return cells(k.UUID, k.Name, k.Prefix, k.Permissions, k.CreatedAt, k.LastUsedAt, k.ExpiresAt, k.RevokedAt)
		}}.print(c.output, std, err, mapped(keys, newKeyRecord)...)
	})
}

type keyRevokeCmd struct {
	inAccount
	UUID recordID `arg:"" name:"uuid" help:"UUID of the key."`
}

// Run revokes a key.
func (c *keyRevokeCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, need{}, func(svc *formsvc.Service, id formsvc.ID) error {
		err := svc.Keys.Revoke(ctx, id, formsvc.ID(c.UUID))
		if err == nil {
			std.note("Key %s is revoked.", c.UUID)
		}
		return c.missing(err, "key", c.UUID)
	})
}
