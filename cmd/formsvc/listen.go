package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

type listenCmd struct {
	inAccount
	output
	Secret   []string `sep:"none" help:"Secret of the webhook; repeatable during a rotation. Required without --events, which generates one."`
	Addr     string   `default:"127.0.0.1:8081" help:"Address to listen on."`
	Forward  string   `placeholder:"URL" help:"Forward verified deliveries unchanged to this URL, and return its response."`
	Events   []string `help:"Create a webhook for these events (comma-separated types, or all) and delete it at the end. Needs access to the server's database, like \"formsvc webhooks\". Defaults to a webhook that you create."`
	Campaign string   `placeholder:"UUID" help:"With --events, only events of this campaign. Defaults to all."`
}

// forwardTimeout is less than the 30 seconds for which the service waits.
const forwardTimeout = 29 * time.Second

// An arrival is a received request.
type arrival struct {
	At           stamp           `json:"receivedAt"`
	Verified     bool            `json:"verified"`
	Error        *string         `json:"error"` // why it was rejected or not forwarded
	Event        string          `json:"event"`
	EventUUID    string          `json:"eventUuid"`
	DeliveryUUID string          `json:"deliveryUuid"`
	Attempt      int             `json:"attempt"`
	Forwarded    *int            `json:"forwarded"` // the status of the response
	Body         json.RawMessage `json:"body"`      // null if it didn't verify
}

// Run receives deliveries until ctx ends.
func (c *listenCmd) Run(ctx context.Context, g *global, std streams) (err error) {
	target, err := url.Parse(c.Forward)
	switch {
	case len(c.Secret) == 0 && len(c.Events) == 0:
		return usageError{errors.New("--secret: name the secret of a webhook, or use --events to create a webhook")}
	case c.Campaign != "" && len(c.Events) == 0:
		return usageError{errors.New("--campaign: needs --events")}
	case err != nil || c.Forward != "" && (target.Scheme != "http" && target.Scheme != "https" || target.Host == ""):
		return usageError{errors.New("--forward: must be an absolute http or https URL")}
	}
	socket, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return err
	}
	defer func() { _ = socket.Close() }()
	if len(c.Secret) == 0 {
		c.Secret = []string{rand.Text()}
	}
	p := &arrivals{out: std.out, json: c.JSON}
	verifier, err := webhook.NewVerifier(c.Secret, &webhook.Options{OnReject: p.rejected})
	if err != nil {
		return usageError{fmt.Errorf("--secret: %w", err)}
	}
	if len(c.Events) > 0 {
		hook, err := c.subscribe(ctx, g, socket.Addr().(*net.TCPAddr).AddrPort())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.unsubscribe(context.WithoutCancel(ctx), g, &hook)) }()
		_, _ = fmt.Fprintf(std.err, "Created webhook %s, which is deleted when this command ends. Try it with \"formsvc webhooks test\".\nIts secret is %s\n", hook.ID, c.Secret[0])
	}
	_, _ = fmt.Fprintf(std.err, "Listening on http://%s/. \"formsvc serve\" and \"formsvc webhooks create\" need "+
		"--webhook-allow 127.0.0.0/8 to reach it. Press Ctrl-C to stop.\n", socket.Addr())
	handler := verifier.Handler(p.handler(target))
	return serveUntil(ctx, &http.Server{Handler: handler, ReadTimeout: readTimeout, MaxHeaderBytes: maxHeaderBytes}, socket)
}

// subscribe creates a webhook for the listener at addr. It replaces one that a killed listener left behind.
func (c *listenCmd) subscribe(ctx context.Context, g *global, addr netip.AddrPort) (hook formsvc.Webhook, err error) {
	ip := addr.Addr().Unmap()
	if ip.IsUnspecified() { // all addresses, including this one
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	// The path distinguishes it from other webhooks of this address.
	create := webhookCreateCmd{
		inAccount: c.inAccount, URL: "http://" + netip.AddrPortFrom(ip, addr.Port()).String() + "/formsvc-listen",
		Events: c.Events, Campaign: c.Campaign, Secret: c.Secret[0],
		allowing: allowing{prefixes{netip.PrefixFrom(ip, ip.BitLen())}}, // the server decides by its own flags
	}
	in, err := create.input()
	policy, policyErr := create.policy()
	if err = errors.Join(err, policyErr); err != nil {
		return hook, err
	}
	err = g.withSecrets(ctx, &formsvc.Options{CheckURL: checkURL(policy)}, func(svc *formsvc.Service) error {
		id, err := account(ctx, svc, c.Account)
		if err != nil {
			return err
		}
		left, err := svc.Webhooks.List(ctx, id)
		for i := range left {
			if left[i].URL == in.URL {
				err = errors.Join(err, svc.Webhooks.Delete(ctx, keyOf(&left[i])))
			}
		}
		if err != nil {
			return err
		}
		hook, _, err = svc.Webhooks.Create(ctx, id, in)
		return create.explain(err)
	})
	return hook, err
}

func (c *listenCmd) unsubscribe(ctx context.Context, g *global, hook *formsvc.Webhook) error {
	err := g.withService(ctx, func(svc *formsvc.Service) error { return svc.Webhooks.Delete(ctx, keyOf(hook)) })
	if err != nil && !errors.Is(err, formsvc.ErrNotFound) {
		return fmt.Errorf("webhook %s was not deleted; run \"formsvc webhooks delete\": %w", hook.ID, err)
	}
	return nil
}

func keyOf(hook *formsvc.Webhook) formsvc.WebhookKey {
	return formsvc.WebhookKey{AccountID: hook.AccountID, ID: hook.ID}
}

// arrivals prints and forwards requests. It is safe for concurrent use.
type arrivals struct {
	mu   sync.Mutex
	out  io.Writer
	json bool
}

// handler returns a handler of verified requests, which forwards them to target unless that is empty.
func (p *arrivals) handler(target *url.URL) http.Handler {
	if target.Host == "" {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { p.print(verified(r)) })
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL, r.Out.Host = target, "" },
		// Bodies stay unchanged, and the receiving program may be restarted at any time.
		Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true, ResponseHeaderTimeout: forwardTimeout},
		ModifyResponse: func(r *http.Response) error {
			a := verified(r.Request)
			a.Forwarded = &r.StatusCode
			p.print(a)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			a := verified(r)
			a.Error = orNull("not forwarded: " + err.Error())
			p.print(a)
			http.Error(w, "the URL of \"formsvc listen --forward\" does not respond", http.StatusBadGateway)
		},
	}
}

// verified returns what is known about a verified request.
func verified(r *http.Request) *arrival {
	d, _ := webhook.FromContext(r.Context())
	a := &arrival{At: stamp{time.Now()}, Verified: true, Event: string(d.Event), EventUUID: d.EventID, DeliveryUUID: d.ID, Attempt: d.Attempt}
	if json.Valid(d.Body) {
		a.Body = d.Body
	}
	return a
}

// rejected prints a request that didn't verify. Anyone may have sent it: nothing of it is shown but its headers.
func (p *arrivals) rejected(r *http.Request, err error) {
	text := err.Error()
	if errors.Is(err, webhook.ErrMismatch) {
		text += " (it was signed with another secret, or the body was changed on its way)"
	}
	p.print(&arrival{At: stamp{time.Now()}, Error: &text, Event: r.Header.Get(webhook.EventHeader), DeliveryUUID: r.Header.Get(webhook.DeliveryHeader)})
}

// print prints one arrival without interleaving.
func (p *arrivals) print(a *arrival) {
	var b bytes.Buffer
	if p.json {
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(a) // can't fail: its body is valid
	} else {
		fmt.Fprintf(&b, "%s  %s  event %s  delivery %s  attempt %d\n", a.At, orDash(a.Event), orDash(a.EventUUID), orDash(a.DeliveryUUID), a.Attempt)
		if !a.Verified {
			b.WriteString("NOT ")
		}
		b.WriteString("verified")
		if a.Error != nil {
			b.WriteString(": " + *a.Error)
		}
		if a.Forwarded != nil {
			fmt.Fprintf(&b, ", forwarded: status %d", *a.Forwarded)
		}
		b.WriteString("\n")
		_ = json.Indent(&b, a.Body, "", "  ") // writes nothing if there is none
		b.WriteString("\n\n")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = io.WriteString(p.out, printable(b.String()))
}

// printable escapes characters that control a terminal or reverse its text. Within JSON the result means the same.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
