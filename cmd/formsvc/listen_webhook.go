package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/egress"
)

// listenPath distinguishes webhooks of "formsvc listen" from others with the same host and port. The command listens on
// every path.
const listenPath = "/formsvc-listen"

// unsubscribeTimeout limits how long deleting the webhook at the end may take.
const unsubscribeTimeout = 10 * time.Second

// subscribe creates a webhook for the listener at addr. It replaces one that a killed listener left behind.
func (c *listenCmd) subscribe(ctx context.Context, g *global, addr netip.AddrPort) (hook formsvc.Webhook, err error) {
	ip := addr.Addr().Unmap()
	if ip.IsUnspecified() { // all addresses, including this one
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	create := webhookCreateCmd{
		inAccount: c.inAccount, URL: "http://" + netip.AddrPortFrom(ip, addr.Port()).String() + listenPath,
		Events: c.Events, Campaign: c.Campaign,
	}
	if len(c.Secret) > 0 {
		create.Secret = c.Secret[0]
	}
	in, err := create.input()
	if err != nil {
		return hook, err
	}
	// The server decides by its own flags whether it may send there.
	policy, err := egress.New(&egress.Options{Allow: []netip.Prefix{netip.PrefixFrom(ip, ip.BitLen())}})
	if err != nil {
		return hook, err
	}
	err = g.withSecrets(ctx, &formsvc.Options{CheckURL: checkURL(policy)}, func(svc *formsvc.Service) error {
		id, err := account(ctx, svc, c.Account)
		if err != nil {
			return err
		}
		left, err := svc.Webhooks.List(ctx, id)
		if err != nil {
			return err
		}
		for i := range left {
			if left[i].URL != in.URL {
				continue
			}
			if err := svc.Webhooks.Delete(ctx, keyOf(&left[i])); err != nil && !errors.Is(err, formsvc.ErrNotFound) {
				return err
			}
		}
		hook, _, err = svc.Webhooks.Create(ctx, id, in)
		return create.explain(err)
	})
	return hook, err
}

// unsubscribe deletes the webhook, even if ctx has ended.
func (c *listenCmd) unsubscribe(ctx context.Context, g *global, hook *formsvc.Webhook) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsubscribeTimeout)
	defer cancel()
	err := g.withService(ctx, func(svc *formsvc.Service) error { return svc.Webhooks.Delete(ctx, keyOf(hook)) })
	if err != nil && !errors.Is(err, formsvc.ErrNotFound) {
		return fmt.Errorf("webhook %s was not deleted; run \"formsvc webhooks delete\": %w", hook.ID, err)
	}
	return nil
}

func keyOf(hook *formsvc.Webhook) formsvc.WebhookKey {
	return formsvc.WebhookKey{AccountID: hook.AccountID, ID: hook.ID}
}
