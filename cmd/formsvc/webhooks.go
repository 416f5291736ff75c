package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

type webhooksCmd struct {
	Create     webhookCreateCmd     `cmd:"" help:"Create a webhook and print its secret, which is shown only once."`
	List       webhookListCmd       `cmd:"" help:"List the webhooks."`
	Get        webhookGetCmd        `cmd:"" help:"Print one webhook."`
	Delete     webhookDeleteCmd     `cmd:"" help:"Delete a webhook. Its pending deliveries are not sent."`
	Disable    webhookSwitchCmd     `cmd:"" help:"Disable a webhook: its pending deliveries pause, and events create no new ones."`
	Enable     webhookSwitchCmd     `cmd:"" help:"Enable a webhook again."`
	Rotate     webhookRotateCmd     `cmd:"" help:"Replace the secret of a webhook and print the new one, alone, on standard output."`
	Test       webhookTestCmd       `cmd:"" help:"Send a test event and print the result."`
	Deliveries webhookDeliveriesCmd `cmd:"" help:"List the deliveries of a webhook, newest first."`
	Redeliver  webhookRedeliverCmd  `cmd:"" help:"Send a delivery again, or all failed ones of a webhook."`
}

// A shownWebhook is a webhook whose JSON has its secret.
type shownWebhook formsvc.Webhook

// AppendJSON appends the webhook in the API's form.
func (w *shownWebhook) AppendJSON(b []byte) []byte {
	b = (*formsvc.Webhook)(w).AppendJSON(b)
	secret, _ := json.Marshal(w.Secret) // can't fail
	return append(append(append(b[:len(b)-1], `,"secret":`...), secret...), '}')
}

// printWebhooks prints webhooks, or passes on an error.
func (o output) printWebhooks(std streams, err error, list ...formsvc.Webhook) error {
	return table[formsvc.Webhook]{"UUID\tURL\tEVENTS\tCAMPAIGN\tSTATE\tCREATED", func(w formsvc.Webhook) string {
		state := "enabled"
		if w.Disabled {
			state = "disabled"
		}
		return cells(w.ID, w.URL, w.Events, w.CampaignID, state, stamp{w.CreatedAt})
	}}.print(o, std, err, list...)
}

type webhookCreateCmd struct {
	inAccount
	output
	allowing
	URL      string   `name:"url" required:"" help:"URL that receives the events; or mailto: and an address that gets mails."`
	Events   []string `required:"" help:"Comma-separated event types, or all."`
	Secret   string   `help:"Secret that signs every request: 1 to 256 bytes, better 16 or more. Defaults to a generated one."`
	Campaign recordID `placeholder:"UUID" help:"Only events of this campaign. Defaults to all."`
	Headers  []string `name:"header" sep:"none" placeholder:"NAME: VALUE" help:"Header to send with every request, such as a token; repeatable."`
	Daily    bool     `help:"With a mailto: URL: one mail a day with the numbers of new responses, instead of one for each event."`
	ReplyTo  bool     `help:"With a mailto: URL: replies go to the person who sent the form."`
}

// Run creates a webhook, or finds the one with the same subscription.
func (c *webhookCreateCmd) Run(ctx context.Context, g *global, std streams) error {
	in, err := c.input()
	if err != nil {
		return err
	}
	policy, err := c.policy()
	if err != nil {
		return err
	}
	n := need{secrets: true, Options: formsvc.Options{CheckURL: checkURL(policy)}}
	return c.with(ctx, g, n, func(svc *formsvc.Service, id formsvc.ID) error {
		hook, created, err := svc.Webhooks.Create(ctx, id, in)
		if err != nil {
			return c.explain(err)
		}
		warn(std, c.Secret)
		return c.print(std, &hook, created)
	})
}

// input returns the webhook of the flags.
func (c *webhookCreateCmd) input() (formsvc.WebhookInput, error) {
	in := formsvc.WebhookInput{URL: c.URL, Secret: c.Secret, CampaignID: formsvc.ID(c.Campaign)}
	in.Mail = formsvc.MailInput{Daily: c.Daily, ReplyTo: c.ReplyTo}
	for _, e := range c.Events {
		in.Events = append(in.Events, formsvc.EventType(e))
	}
	if slices.Contains(c.Events, "all") {
		in.Events = webhook.EventTypes()
	}
	for _, h := range c.Headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok { // it may be a token: not repeated
			return in, usageError{errors.New("--header: must be 'Name: value'")}
		}
		in.Headers = append(in.Headers, formsvc.HeaderInput{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)})
	}
	return in, nil
}

// explain adds advice to the error of a failed creation.
func (c *webhookCreateCmd) explain(err error) error {
	if errors.Is(err, formsvc.ErrLimit) {
		return fmt.Errorf("account %q already has %d webhooks, which is the limit", c.Account, formsvc.MaxWebhooks)
	}
	refused := func(f formsvc.FieldError) bool { return f.Code == "url_refused" }
	if invalid, ok := errors.AsType[*formsvc.ValidationError](err); ok && slices.ContainsFunc(invalid.Fields, refused) {
		return fmt.Errorf("%w; to allow it, use --webhook-allow with this command and with \"formsvc serve\"", err)
	}
	return err
}

func (c *webhookCreateCmd) print(std streams, hook *formsvc.Webhook, created bool) error {
	record := any(hook)
	if created && hook.Address() == "" {
		record = (*shownWebhook)(hook)
	} else if !created {
		std.note("Webhook %s already has this URL, these events and this campaign; nothing was created.", hook.ID)
	}
	if c.JSON {
		return c.printJSON(std, nil, record)
	}
	_, err := fmt.Fprintf(std.out, "uuid    %s\nurl     %s\nevents  %s\n", hook.ID, hook.URL, cells(hook.Events))
	if hook.Address() != "" {
		std.note("The recipient gets a mail with a link to confirm. Until then the webhook is disabled.")
		return err
	}
	if created && err == nil {
		std.note("The secret is shown only once.")
		_, err = fmt.Fprintf(std.out, "secret  %s\n", hook.Secret)
	}
	return err
}

type webhookListCmd struct {
	inAccount
	output
}

// Run lists the webhooks, without their secrets.
func (c *webhookListCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, need{}, func(svc *formsvc.Service, id formsvc.ID) error {
		hooks, err := svc.Webhooks.List(ctx, id)
		return c.printWebhooks(std, err, hooks...)
	})
}

// oneWebhook is the argument of commands that work on one webhook.
type oneWebhook struct {
	inAccount
	output
	UUID recordID `arg:"" name:"uuid" help:"The webhook."`
}

// hook runs do with the webhook's key.
func (c *oneWebhook) hook(ctx context.Context, g *global, n need, do func(*formsvc.Service, formsvc.WebhookKey) error) error {
	return c.with(ctx, g, n, func(svc *formsvc.Service, id formsvc.ID) error {
		return c.missing(do(svc, formsvc.WebhookKey{AccountID: id, ID: formsvc.ID(c.UUID)}), "webhook", c.UUID)
	})
}

type webhookGetCmd struct{ oneWebhook }

// Run prints a webhook.
func (c *webhookGetCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.hook(ctx, g, need{}, func(svc *formsvc.Service, key formsvc.WebhookKey) error {
		hook, err := svc.Webhooks.Get(ctx, key)
		return c.printWebhooks(std, err, hook)
	})
}

type webhookDeleteCmd struct {
	inAccount
	UUID recordID `arg:"" name:"uuid" help:"The webhook."`
}

// Run deletes a webhook.
func (c *webhookDeleteCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, need{}, func(svc *formsvc.Service, id formsvc.ID) error {
		err := svc.Webhooks.Delete(ctx, formsvc.WebhookKey{AccountID: id, ID: formsvc.ID(c.UUID)})
		if err == nil {
			std.note("Webhook %s is deleted.", c.UUID)
		}
		return c.missing(err, "webhook", c.UUID)
	})
}

type webhookSwitchCmd struct{ oneWebhook }

// Run disables or enables a webhook, as the command says.
func (c *webhookSwitchCmd) Run(ctx context.Context, g *global, std streams, command *kong.Context) error {
	return c.hook(ctx, g, need{}, func(svc *formsvc.Service, key formsvc.WebhookKey) error {
		hook, err := svc.Webhooks.SetDisabled(ctx, key, command.Selected().Name == "disable")
		return c.printWebhooks(std, err, hook)
	})
}

type webhookRotateCmd struct {
	oneWebhook
	Secret string        `help:"New secret: 1 to 256 bytes, better 16 or more. Defaults to a generated one."`
	Grace  time.Duration `default:"24h" help:"How long the old secret keeps signing beside the new one; 0 if it leaked."`
}

// Run replaces a webhook's secret. It prints the new one alone on standard output.
func (c *webhookRotateCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.hook(ctx, g, need{secrets: true}, func(svc *formsvc.Service, key formsvc.WebhookKey) error {
		hook, err := svc.Webhooks.Rotate(ctx, key, formsvc.Rotation{Secret: c.Secret, Grace: c.Grace})
		if err != nil {
			return err
		}
		warn(std, c.Secret)
		if c.JSON {
			return c.printJSON(std, nil, (*shownWebhook)(&hook))
		}
		if hook.Previous != "" {
			std.note("Until %s, %s is signed with the old secret, and %s with both.",
				stamp{hook.PreviousUntil}, webhook.SignatureHeader, webhook.StandardSignatureHeader)
		}
		std.note("The new secret is shown only once:")
		_, err = fmt.Fprintln(std.out, hook.Secret)
		return err
	})
}

// warn prints a warning if a secret is weak.
func warn(std streams, secret string) {
	if warning := formsvc.SecretWarning(secret); warning != "" {
		std.note("%s", warning)
	}
}
