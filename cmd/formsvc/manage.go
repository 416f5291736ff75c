package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// output is embedded in commands that print records.
type output struct {
	JSON bool `name:"json" help:"Print JSON, one record a line."`
}

// records prints each record, as JSON or as a row of a table.
func records[T any](o output, w io.Writer, header string, list []T, row func(T) string) error {
	if o.JSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		for _, r := range list {
			if err := enc.Encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, header)
	for _, r := range list {
		_, _ = fmt.Fprintln(t, row(r))
	}
	return t.Flush()
}

// stamp is a time in a record: null when it is zero.
type stamp struct{ time.Time }

// MarshalJSON writes the time as the API does.
func (s stamp) MarshalJSON() ([]byte, error) { return formsvc.AppendTime(nil, s.Time), nil }

// String writes the time for a table.
func (s stamp) String() string {
	if s.IsZero() {
		return "-"
	}
	return s.UTC().Format(time.RFC3339)
}

type accountsCmd struct {
	Create accountCreateCmd `cmd:"" help:"Create an account."`
	List   accountListCmd   `cmd:"" help:"List the accounts."`
}

type accountRecord struct {
	UUID      formsvc.ID `json:"uuid"`
	Name      string     `json:"name"`
	CreatedAt stamp      `json:"createdAt"`
}

func newAccountRecord(a formsvc.Account) accountRecord {
	return accountRecord{a.ID, a.Name, stamp{a.CreatedAt}}
}

func accountLine(a accountRecord) string {
	return fmt.Sprintf("%s\t%s\t%s", a.UUID, a.Name, a.CreatedAt)
}

const accountHeader = "UUID\tNAME\tCREATED"

type accountCreateCmd struct {
	output
	Name string `arg:"" help:"The account's name."`
}

// Run creates an account.
func (c *accountCreateCmd) Run(ctx context.Context, g *global, std streams) error {
	return g.withService(ctx, func(svc *formsvc.Service) error {
		a, err := svc.Accounts.Create(ctx, c.Name)
		if errors.Is(err, formsvc.ErrConflict) {
			return fmt.Errorf("there is an account %q already", c.Name)
		}
		if err != nil {
			return err
		}
		return records(c.output, std.out, accountHeader, []accountRecord{newAccountRecord(a)}, accountLine)
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

func mapped[T, R any](list []T, f func(T) R) []R {
	out := make([]R, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

// inAccount is embedded in commands that work on one account.
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

type keysCmd struct {
	Create keyCreateCmd `cmd:"" help:"Create a key and print its value, which is shown only here."`
	List   keyListCmd   `cmd:"" help:"List the keys."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke a key. Servers notice within 2 seconds."`
}

type keyRecord struct {
	UUID        formsvc.ID           `json:"uuid"`
	Name        string               `json:"name"`
	Prefix      string               `json:"prefix"`
	Permissions []formsvc.Permission `json:"permissions"`
	CreatedAt   stamp                `json:"createdAt"`
	ExpiresAt   stamp                `json:"expiresAt"`
	RevokedAt   stamp                `json:"revokedAt"`
	Key         string               `json:"key,omitempty"`
}

func newKeyRecord(k formsvc.Key) keyRecord {
	return keyRecord{
		k.ID, k.Name, k.Prefix, k.Permissions, stamp{k.CreatedAt}, stamp{k.ExpiresAt}, stamp{k.RevokedAt}, "",
	}
}

type keyCreateCmd struct {
	inAccount
	output
	Name        string        `required:"" help:"What the key is for."`
	Permissions []string      `required:"" help:"Comma-separated permissions, or all."`
	Expires     time.Duration `placeholder:"DUR" help:"How long the key works, such as 720h. Defaults to for ever."`
}

// Run creates a key. Its value alone goes to standard output.
func (c *keyCreateCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, func(svc *formsvc.Service, id formsvc.ID) error {
		in := formsvc.KeyInput{Name: c.Name, Expires: c.Expires}
		for _, p := range c.Permissions {
			if p == "all" {
				in.Permissions = formsvc.AllPermissions()
				break
			}
			in.Permissions = append(in.Permissions, formsvc.Permission(p))
		}
		key, value, err := svc.Keys.Create(ctx, id, in)
		if err != nil {
			return err
		}
		if c.JSON {
			record := newKeyRecord(key)
			record.Key = value
			return records(c.output, std.out, "", []keyRecord{record}, nil)
		}
		_, _ = fmt.Fprintf(std.err, "Key %s (%s). Its value is shown only now:\n", key.ID, key.Name)
		_, err = fmt.Fprintln(std.out, value)
		return err
	})
}

type keyListCmd struct {
	inAccount
	output
}

// Run lists the keys.
func (c *keyListCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, func(svc *formsvc.Service, id formsvc.ID) error {
		keys, err := svc.Keys.List(ctx, id)
		if err != nil {
			return err
		}
		return records(c.output, std.out, "UUID\tNAME\tPREFIX\tPERMISSIONS\tCREATED\tEXPIRES\tREVOKED", mapped(keys, newKeyRecord),
			func(k keyRecord) string {
				return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s", k.UUID, k.Name, k.Prefix, joined(k.Permissions),
					k.CreatedAt, k.ExpiresAt, k.RevokedAt)
			})
	})
}

func joined[S ~string](list []S) string {
	return strings.Join(mapped(list, func(s S) string { return string(s) }), ",")
}

type keyRevokeCmd struct {
	inAccount
	UUID string `arg:"" name:"uuid" help:"The key."`
}

// Run revokes a key.
func (c *keyRevokeCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, func(svc *formsvc.Service, id formsvc.ID) error {
		key, ok := formsvc.ParseID(c.UUID)
		if !ok {
			return usageError{fmt.Errorf("%q is not a UUID", c.UUID)}
		}
		err := svc.Keys.Revoke(ctx, id, key)
		if errors.Is(err, formsvc.ErrNotFound) {
			return fmt.Errorf("account %q has no key %s", c.Account, key)
		}
		if err == nil {
			_, _ = fmt.Fprintf(std.err, "Key %s is revoked.\n", key)
		}
		return err
	})
}

type webhooksCmd struct {
	Create webhookCreateCmd `cmd:"" help:"Create a webhook and print its secret, which is shown only here."`
	List   webhookListCmd   `cmd:"" help:"List the webhooks."`
	Delete webhookDeleteCmd `cmd:"" help:"Delete a webhook. What still waits for it is not sent."`
}

type webhookRecord struct {
	UUID         formsvc.ID          `json:"uuid"`
	URL          string              `json:"url"`
	Events       []formsvc.EventType `json:"events"`
	CampaignUUID formsvc.ID          `json:"campaignUuid,omitempty"`
	CreatedAt    stamp               `json:"createdAt"`
	Secret       string              `json:"secret,omitempty"`
}

func newWebhookRecord(w formsvc.Webhook) webhookRecord {
	return webhookRecord{w.ID, w.URL, w.Events, w.CampaignID, stamp{w.CreatedAt}, ""}
}

type webhookCreateCmd struct {
	inAccount
	output
	URL          string   `name:"url" required:"" help:"Where to send events."`
	Events       []string `required:"" help:"Comma-separated event types, or all."`
	Secret       string   `help:"Signs every request; 16 to 256 bytes. Defaults to a generated one."`
	Campaign     string   `placeholder:"UUID" help:"Only events of this campaign. Defaults to all."`
	WebhookAllow prefixes `name:"webhook-allow" placeholder:"CIDR" help:"Address ranges the webhook may be in although they are not public."`
}

// Run creates a webhook.
func (c *webhookCreateCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, func(svc *formsvc.Service, id formsvc.ID) error {
		in := formsvc.WebhookInput{URL: c.URL, Secret: c.Secret}
		for _, e := range c.Events {
			if e == "all" {
				in.Events = webhook.EventTypes()
				break
			}
			in.Events = append(in.Events, formsvc.EventType(e))
		}
		if c.Campaign != "" {
			var ok bool
			if in.CampaignID, ok = formsvc.ParseID(c.Campaign); !ok {
				return usageError{fmt.Errorf("--campaign: %q is not a UUID", c.Campaign)}
			}
		}
		hook, err := svc.Webhooks.Create(ctx, id, in)
		if errors.Is(err, formsvc.ErrLimit) {
			return fmt.Errorf("account %q has %d webhooks already, which is the limit", c.Account, formsvc.MaxWebhooks)
		}
		if err != nil {
			return err
		}
		record := newWebhookRecord(hook)
		record.Secret = hook.Secret
		if c.JSON {
			return records(c.output, std.out, "", []webhookRecord{record}, nil)
		}
		_, _ = fmt.Fprintln(std.err, "The secret is shown only now.")
		_, err = fmt.Fprintf(std.out, "uuid    %s\nurl     %s\nevents  %s\nsecret  %s\n",
			hook.ID, hook.URL, joined(hook.Events), hook.Secret)
		return err
	})
}

type webhookListCmd struct {
	inAccount
	output
}

// Run lists the webhooks, without their secrets.
func (c *webhookListCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, func(svc *formsvc.Service, id formsvc.ID) error {
		hooks, err := svc.Webhooks.List(ctx, id)
		if err != nil {
			return err
		}
		return records(c.output, std.out, "UUID\tURL\tEVENTS\tCAMPAIGN\tCREATED", mapped(hooks, newWebhookRecord),
			func(w webhookRecord) string {
				return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", w.UUID, w.URL, joined(w.Events), w.CampaignUUID, w.CreatedAt)
			})
	})
}

type webhookDeleteCmd struct {
	inAccount
	UUID string `arg:"" name:"uuid" help:"The webhook."`
}

// Run deletes a webhook.
func (c *webhookDeleteCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, func(svc *formsvc.Service, id formsvc.ID) error {
		hook, ok := formsvc.ParseID(c.UUID)
		if !ok {
			return usageError{fmt.Errorf("%q is not a UUID", c.UUID)}
		}
		err := svc.Webhooks.Delete(ctx, formsvc.WebhookKey{AccountID: id, ID: hook})
		if errors.Is(err, formsvc.ErrNotFound) {
			return fmt.Errorf("account %q has no webhook %s", c.Account, hook)
		}
		if err == nil {
			_, _ = fmt.Fprintf(std.err, "Webhook %s is deleted.\n", hook)
		}
		return err
	})
}

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" help:"Bring the schema up to date. \"serve\" does so too."`
	Status migrateStatusCmd `cmd:"" help:"List the steps of the schema."`
}

type migrateUpCmd struct{}

// Run migrates.
func (migrateUpCmd) Run(ctx context.Context, g *global, std streams) (err error) {
	s, err := g.open(ctx, true)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(std.err, "The schema is up to date.")
	return s.Close()
}

type migrateStatusCmd struct{ output }

type migrationRecord struct {
	Version   int    `json:"version"`
	Name      string `json:"name"`
	AppliedAt stamp  `json:"appliedAt"`
}

// Run lists the migrations and changes nothing.
func (c *migrateStatusCmd) Run(ctx context.Context, g *global, std streams) (err error) {
	s, err := g.open(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	list, err := s.Migrations(ctx)
	if err != nil {
		return err
	}
	rows := make([]migrationRecord, len(list))
	for i, m := range list {
		rows[i] = migrationRecord{m.Version, m.Name, stamp{m.AppliedAt}}
	}
	return records(c.output, std.out, "VERSION\tNAME\tAPPLIED", rows, func(m migrationRecord) string {
		return fmt.Sprintf("%d\t%s\t%s", m.Version, m.Name, m.AppliedAt)
	})
}
