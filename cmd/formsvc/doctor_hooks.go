package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/finding"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/webhook/egress"
)

const (
	doctorPatience = 5 * time.Second // for a name lookup or a connection
	lately         = 24 * time.Hour
	lateAfter      = 5 * time.Minute // a delivery overdue by this is a problem
)

// keyFile checks the encryption keys themselves.
func (e *examination) keyFile() (*keyring.Keyring, error) {
	ring, err := e.keys(false)
	switch {
	case err != nil:
		e.found(finding.Bad("secrets key", "Restore the file from a backup. Only its owner may read it (chmod 600).", "%v", err))
	case e.SecretKeys != "":
		e.found(finding.Good("secrets key", "from FORMSVC_SECRET_KEYS (%d); keep a copy elsewhere", len(ring.IDs())))
	case ring != nil:
		e.found(finding.Good("secrets key", "from %s (%d); keep a copy elsewhere", e.keyPath(), len(ring.IDs())))
	default:
		e.found(finding.Good("secrets key", "%s doesn't exist yet; the server creates it", e.keyPath()))
	}
	return ring, err
}

// secrets checks that the keys fit the database.
func (e *examination) secrets(ctx context.Context, s store) {
	missing, err := s.MissingKeys(ctx)
	switch {
	case err != nil:
		e.found(finding.Bad("secrets", "See the findings about the database.", "%v", err))
	case len(missing) > 0:
		e.found(finding.Bad("secrets", "Copy the file secret.keys from the node that created it, or from a backup, to "+e.keyPath()+
			", or set FORMSVC_SECRET_KEYS. A server doesn't start without the keys.",
			"the database has secrets encrypted with keys that are missing here: %s", strings.Join(missing, ", ")))
	default:
		e.found(finding.Good("secrets", "all keys that the database needs are here"))
	}
}

// webhooks checks the webhooks and their deliveries.
func (e *examination) webhooks(ctx context.Context, svc *formsvc.Service, policy *egress.Policy) {
	fail := func(err error) { e.found(finding.Bad("webhooks", "See the findings about the database.", "%v", err)) }
	accounts, err := svc.Accounts.List(ctx)
	if err != nil {
		fail(err)
		return
	}
	total, wrong := 0, len(e.list)
	for i := range accounts {
		hooks, err := svc.Webhooks.List(ctx, accounts[i].ID)
		if err != nil {
			fail(err)
			return
		}
		total += len(hooks)
		for j := range hooks {
			if err := e.webhook(ctx, svc, policy, &hooks[j]); err != nil {
				fail(err)
				return
			}
		}
	}
	stats, err := svc.Deliveries.Stats(ctx)
	if err != nil {
		fail(err)
		return
	}
	if late := time.Since(stats.OldestDue); !stats.OldestDue.IsZero() && late > lateAfter {
		e.found(finding.Bad("deliveries", "Start a server, or check its log and metrics.", "%d are pending, the oldest overdue by %v: no server sends them, or the servers can't keep up",
			stats.Pending, late.Round(time.Second)))
	} else {
		e.found(finding.Good("deliveries", "%d are pending, none overdue by more than %v", stats.Pending, lateAfter))
	}
	if len(e.list) == wrong+1 {
		e.found(finding.Good("webhooks", "their names resolve to allowed addresses, and no delivery failed in the last day (%d checked)", total))
	}
}

// webhook checks one webhook. Of a disabled one it checks only the secret.
func (e *examination) webhook(ctx context.Context, svc *formsvc.Service, policy *egress.Policy, hook *formsvc.Webhook) error {
	name := fmt.Sprintf("webhook %s", hook.ID)
	if hook.Secret == "" {
		e.found(finding.Bad(name, "Give it a new secret: formsvc webhooks rotate "+string(hook.ID), "its secret can't be decrypted, so nothing is sent to it"))
	}
	if hook.Disabled {
		return nil
	}
	if f, bad := e.address(ctx, name, policy, hook.URL); bad {
		e.found(f)
	}
	page, err := svc.Deliveries.List(ctx, formsvc.DeliveryQuery{
		AccountID: hook.AccountID, WebhookID: hook.ID, State: formsvc.DeliveryFailed, NoTotal: true, Page: formsvc.PageQuery{Limit: 100},
	})
	if err != nil {
		return err
	}
	failed := 0
	for i := range page.Items {
		if time.Since(page.Items[i].UpdatedAt) < lately {
			failed++
		}
	}
	if failed > 0 {
		e.found(finding.Warn(name, "See why: formsvc webhooks deliveries "+string(hook.ID)+" --state failed. Then send them again: formsvc webhooks redeliver "+
			string(hook.ID)+" --since 24h", "%d of its newest failures are from the last day", failed))
	}
	return nil
}

// address checks that requests can be sent to a webhook. It shows only the host of the URL, which may contain a token.
func (e *examination) address(ctx context.Context, name string, policy *egress.Policy, raw string) (finding.Finding, bool) {
	if err := policy.CheckURL(ctx, raw); err != nil {
		return finding.Bad(name, "Change its URL, or allow the range if it is yours: --webhook-allow, here and for the server.", "%v", err), true
	}
	u, err := url.Parse(raw)
	if err != nil { // CheckURL has parsed it
		return finding.Finding{}, false
	}
	host := u.Hostname()
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	if _, err := netip.ParseAddr(host); err != nil {
		if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
			return finding.Bad(name, "Correct the name in its URL, or fix name resolution on this machine.", "the name %s does not resolve", host), true
		}
	}
	if !e.Connect {
		return finding.Finding{}, false
	}
	if err := connect(ctx, policy, u); err != nil {
		return finding.Bad(name, "Make sure that the receiver is running, is reachable from here, and has a valid certificate for its name.", "%s: %v", host, err), true
	}
	return finding.Finding{}, false
}

// connect opens a connection and closes it.
func connect(ctx context.Context, policy *egress.Policy, u *url.URL) error {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	dialer := &net.Dialer{Control: policy.Control}
	address := net.JoinHostPort(u.Hostname(), port)
	var conn net.Conn
	var err error
	if u.Scheme == "https" {
		conn, err = (&tls.Dialer{NetDialer: dialer, Config: &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = dialer.DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return err
	}
	return conn.Close()
}

// server checks that the server at --base-url is ready.
func (e *examination) server(ctx context.Context) {
	if e.BaseURL == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	const advice = "Make sure that the server is running, and that --base-url is its public address, through the proxy if there is one."
	address := strings.TrimRight(e.BaseURL, "/") + "/readyz"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		e.found(finding.Bad("server", advice, "--base-url is not a valid address: %v", err))
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		e.found(finding.Bad("server", advice, "%v", err))
		return
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		e.found(finding.Bad("server", advice+" Its log says why it isn't ready.", "%s returns %s", address, resp.Status))
		return
	}
	e.found(finding.Good("server", "%s reports that it is ready", address))
}
