package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

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

// Limits of a delivery. The service times out after 30 seconds.
const (
	forwardTimeout = 29 * time.Second
	listenTimeout  = 35 * time.Second
	maxForwarded   = 64 << 10 // bytes of a response that are passed back
)

// Run receives deliveries until ctx ends.
func (c *listenCmd) Run(ctx context.Context, g *global, std streams) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	socket, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return err
	}
	defer func() { _ = socket.Close() }()
	secrets := c.Secret
	if len(c.Events) > 0 {
		hook, err := c.subscribe(ctx, g, socket.Addr().(*net.TCPAddr).AddrPort())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.unsubscribe(ctx, g, &hook)) }()
		if len(secrets) == 0 {
			secrets = []string{hook.Secret}
		}
		_, _ = fmt.Fprintf(std.err, "Created webhook %s, which is deleted when this command ends. Try it with \"formsvc webhooks test\".\nIts secret is %s\n",
			hook.ID, hook.Secret)
	}
	verifier, err := webhook.NewVerifier(secrets, nil)
	if err != nil {
		return usageError{fmt.Errorf("--secret: %w", err)}
	}
	l := &listener{verifier: verifier, secrets: len(secrets), forwardTo: c.Forward, out: std.out, json: c.JSON}
	_, _ = fmt.Fprintf(std.err, "Listening on http://%s/. \"formsvc serve\" and \"formsvc webhooks create\" need "+
		"--webhook-allow 127.0.0.0/8 to reach it. Press Ctrl-C to stop.\n", socket.Addr())
	return l.serve(ctx, socket)
}

// check rejects unusable flags before anything is created.
func (c *listenCmd) check() error {
	if len(c.Secret) == 0 && len(c.Events) == 0 {
		return usageError{errors.New("--secret: name the secret of a webhook, or use --events to create a webhook")}
	}
	if c.Campaign != "" && len(c.Events) == 0 {
		return usageError{errors.New("--campaign: needs --events")}
	}
	if len(c.Secret) > 0 {
		if _, err := webhook.NewVerifier(c.Secret, nil); err != nil {
			return usageError{fmt.Errorf("--secret: %w", err)}
		}
	}
	if c.Forward != "" {
		u, err := url.Parse(c.Forward)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return usageError{errors.New("--forward: must be an absolute http or https URL")}
		}
	}
	return nil
}

// A listener verifies, prints and forwards deliveries.
type listener struct {
	verifier  *webhook.Verifier
	secrets   int    // how many there are
	forwardTo string // "" means nowhere
	client    *http.Client
	json      bool

	mu  sync.Mutex // serializes printing
	out io.Writer
}

// serve receives deliveries until ctx ends.
func (l *listener) serve(ctx context.Context, socket net.Listener) error {
	transport := &http.Transport{
		DisableCompression: true, // forwarded bodies stay unchanged
		DisableKeepAlives:  true, // developers often restart the program that receives them
	}
	l.client = &http.Client{
		Transport: transport, Timeout: forwardTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	server := &http.Server{
		Handler: l, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: listenTimeout, WriteTimeout: listenTimeout,
		MaxHeaderBytes: maxHeaderBytes,
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		patience, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer done()
		err := server.Shutdown(patience)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close()
		}
		stopped <- err
	})
	if err := server.Serve(socket); !errors.Is(err, http.ErrServerClosed) || stop() {
		return err
	}
	return <-stopped
}

// ServeHTTP receives one delivery.
func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	seen := arrival{At: stamp{time.Now()}}
	d, err := l.verifier.VerifyRequest(w, r)
	if err != nil {
		seen.refused(r, err)
		l.print(&seen)
		http.Error(w, err.Error(), webhook.Status(err))
		return
	}
	seen.verified(&d, l.secrets)
	if l.forwardTo == "" {
		l.print(&seen)
		return // an empty 200
	}
	begun := time.Now()
	answer, err := l.forward(r, d.Body)
	if err != nil {
		seen.forwardFailed(err)
		l.print(&seen)
		http.Error(w, "the URL of \"formsvc listen --forward\" does not respond", http.StatusBadGateway)
		return
	}
	seen.forwarded(&answer, time.Since(begun))
	l.print(&seen)
	if answer.contentType != "" {
		w.Header().Set("Content-Type", answer.contentType)
	}
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body)
}

type forwardAnswer struct {
	status      int
	contentType string
	body        []byte // its beginning
}

// forward sends a verified delivery to --forward with its original headers and bytes.
func (l *listener) forward(r *http.Request, body []byte) (forwardAnswer, error) {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, l.forwardTo, bytes.NewReader(body))
	if err != nil {
		return forwardAnswer{}, err
	}
	req.Header = r.Header.Clone()
	for _, name := range []string{"Connection", "Keep-Alive", "Te", "Upgrade"} { // of this connection
		req.Header.Del(name)
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return forwardAnswer{}, err
	}
	defer resp.Body.Close()
	a := forwardAnswer{status: resp.StatusCode, contentType: resp.Header.Get("Content-Type")}
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxForwarded))
	return a, err
}
