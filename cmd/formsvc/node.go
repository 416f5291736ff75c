package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/cmd/formsvc/internal/certs"
	"github.com/formsvc/toolkit/cmd/formsvc/internal/mailer"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/digest"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/httpx/intake"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// Time limits. A slow client must not hold a connection forever, and a shutdown must end before process managers kill the
// process.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second // header and body; handlers of long bodies extend it
	writeTimeout      = 90 * time.Second // from the end of the header; likewise
	idleTimeout       = 120 * time.Second
	maxHeaderBytes    = 64 << 10
	shutdownTimeout   = 20 * time.Second
)

// A node runs everything that a server does on its store.
type node struct {
	svc     *formsvc.Service
	handler http.Handler
	// Serves --redirect-addr.
	redirects http.Handler
	ended     func()       // called when the server begins to shut down
	certs     certs.Source // nil: plain HTTP
	engine    *delivery.Engine
	digester  *digest.Digester // nil without --smtp
	metrics   *metrics         // nil without --metrics-addr
	logger    *slog.Logger
	ping      func(context.Context) error // whether the database is usable
	required  []string                    // the components without which the node isn't ready
	full      func() error                // whether a disk is full, or takes no temporary files; nil: unknown
	forms     *intake.Handler

	notifySocket string // "" without a process manager

	drainDelay time.Duration
	leaving    atomic.Bool // whether it is draining before a shutdown
}

// errLeaving is why a stopping node is not ready. It isn't logged as a failure.
var errLeaving = fmt.Errorf("the server is stopping: %w", http.ErrServerClosed)

// backend is the part of a store that a node works on.
type backend interface {
	formsvc.Store
	delivery.Queue
}

// check rejects unusable flags by building a node on an empty store in memory.
func (c *serveCmd) check(g *global) error {
	if _, _, err := g.blobURL(); err != nil {
		return err
	}
	discard := slog.New(slog.DiscardHandler)
	source, err := c.certificates(g, discard)
	if err != nil {
		return err
	}
	s := memory.New()
	_, err = c.node(s, nil, source, discard)
	return errors.Join(err, s.Close())
}

// node builds a node. Its errors name the invalid flags.
func (c *serveCmd) node(s backend, b blobstore.Store, source certs.Source, logger *slog.Logger) (*node, error) {
	policy, err := c.policy()
	if err != nil {
		return nil, err
	}
	n := &node{logger: logger, certs: source, drainDelay: c.DrainDelay, required: c.Ready}
	if err := c.checkFlags(); err != nil {
		return nil, err
	}
	opts := formsvc.Options{
		Blobs: b, MaxFile: int64(c.MaxUpload), HashDownloads: c.HashDownloads, CheckURL: checkURL(policy), Logger: logger,
		Workflow: c.Workflow.Workflow, QuotaWindow: c.QuotaWindow, QuotaPerAccount: c.QuotaPerAccount,
		// A flag of 0 means no limit.
		Retention: cmp.Or(c.Retention, -1), Quota: cmp.Or(c.Quota, -1), MaxKeys: cmp.Or(c.MaxKeys, -1), MaxCampaigns: cmp.Or(c.MaxCampaigns, -1), MaxStored: int(c.MaxStored),
		MailsPerAddress: cmp.Or(c.MailsPerAddress, -1), MailsPerHour: cmp.Or(c.MailsPerHour, -1),
	}
	if db, ok := s.(store); ok {
		n.ping = db.Ping
	}
	if n.svc, err = formsvc.New(s, &opts); err != nil {
		return nil, usageError{fmt.Errorf("--retention: %w", err)}
	}
	handler, err := httpx.New(n.svc, &httpx.Options{
		BaseURL: c.BaseURL, Logger: logger, Rate: c.Rate, Ready: n.ready, ClientAddress: c.clientAddress(),
		Links:       []httpx.Link{{Title: "Console", Path: consolePath}},
		MaxRequests: c.MaxRequests, Timeout: c.RequestTimeout,
	})
	if err != nil {
		return nil, usageError{fmt.Errorf("--base-url: %w", err)}
	}
	forms, err := intake.New(n.svc, &intake.Options{
		PerVisitor: cmp.Or(c.FormsPerVisitor, -1), ClientAddress: c.clientAddress(), Logger: logger, Limits: handler.Limits(),
	})
	if err != nil {
		return nil, err
	}
	n.forms = forms
	n.handler = beside(handler, formsPath, forms)
	sending := &delivery.Options{
		Timeout: c.WebhookTimeout, Retries: c.WebhookRetries, Lease: c.WebhookLease, Concurrency: c.WebhookConcurrency,
		Control: policy.Control, Logger: logger, OnFailure: n.failed,
	}
	if c.MetricsAddr != "" {
		n.metrics = newMetrics(n.svc, s, source)
		n.handler = n.metrics.Handler(n.handler)
		sending.Metrics = n.metrics.Delivery()
	}
	var m *mailer.Mailer
	if c.SMTP != "" {
		if m, err = mailer.New(c.SMTP, c.MailFrom); err != nil {
			return nil, usageError{err}
		}
		n.digester = digest.New(n.svc.Notices, m, &digest.Options{Compose: failureMail, Logger: logger})
		mails, err := digest.NewMailer(n.svc, m, &digest.MailerOptions{FormsURL: c.BaseURL + formsPath, ConsoleURL: c.BaseURL + consolePath})
		if err != nil {
			return nil, err
		}
		sending.Mail = mails.Mail
	}
	if n.engine, err = delivery.New(s, sending); err != nil {
		return nil, usageError{fmt.Errorf("--webhook-timeout, --webhook-retries, --webhook-lease, --webhook-concurrency: %w", err)}
	}
	pages, err := c.console(n, m, handler, forms)
	if err != nil {
		return nil, err
	}
	n.handler = n.partingFrom(beside(n.handler, consolePath, pages))
	if source != nil {
		n.redirects = source.Answering(certs.Redirect(c.BaseURL))
	}
	if c.LogRequests {
		n.handler = logRequests(n.handler, logger, c.clientAddress())
	}
	return n, nil
}

// checkFlags rejects values that the options would treat as defaults, or reject without naming the flag.
func (c *serveCmd) checkFlags() error {
	var schedule time.Duration
	for _, d := range c.WebhookRetries {
		schedule += d
	}
	for _, x := range []struct {
		invalid bool
		why     string
	}{
		{c.Retention < 0, "--retention: must not be negative; 0 keeps events forever"},
		{c.Retention > 0 && c.Retention <= schedule, fmt.Sprintf("--retention: must be longer than the sum of --webhook-retries, which is %v", schedule)},
		{c.Quota < 0 || c.Quota > math.MaxInt32, fmt.Sprintf("--quota: must be from 1 to %d, or 0 for any number of requests", math.MaxInt32)},
		{c.QuotaWindow < time.Second || c.QuotaWindow%time.Second != 0, "--quota-window: must be whole seconds, and at least one"},
		{!(c.Rate >= 0 && c.Rate <= httpx.MaxRate), fmt.Sprintf("--rate: must be from 0 to %d", httpx.MaxRate)}, // also rejects NaN
		{c.MaxRequests < 1, "--max-requests: must be at least 1"},
		{c.MaxKeys < 0, "--max-keys: must not be negative; 0 allows any number"},
		{c.MaxCampaigns < 0, "--max-campaigns: must not be negative; 0 allows any number"},
		{c.MailsPerAddress < 0, "--mails-per-address: must not be negative; 0 allows any number"},
		{c.MailsPerHour < 0, "--mails-per-hour: must not be negative; 0 allows any number"},
		{c.MaxUpload < 1, "--max-upload: must be at least 1"},
		{c.RequestTimeout <= 0, "--request-timeout: must be positive"},
		{c.MaxConnections < 1, "--max-connections: must be at least 1"},
		{c.DrainDelay < 0, "--drain-delay: must not be negative"},
		// Browsers would send cookies unencrypted.
		{c.encrypted() && c.BaseURL != "" && !strings.HasPrefix(c.BaseURL, "https://"), "--base-url: must begin with https:// when the server speaks HTTPS"},
	} {
		if x.invalid {
			return usageError{errors.New(x.why)}
		}
	}
	return nil
}

// partingFrom closes connections after each response while the node is draining. If the node closed an idle connection
// instead, a request that is being sent on it would fail without a response.
func (n *node) partingFrom(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.leaving.Load() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// leave keeps serving for the drain delay, so that proxies that poll /readyz send requests elsewhere and clients
// disconnect. A second signal ends the program meanwhile.
func (n *node) leave() {
	if n.drainDelay > 0 {
		n.leaving.Store(true)
		time.Sleep(n.drainDelay)
	}
}

// failed logs and counts a delivery that failed permanently, and wakes the digester.
func (n *node) failed(ctx context.Context, f delivery.Failure) error {
	n.logger.LogAttrs(ctx, slog.LevelWarn, "webhook delivery failed permanently",
		slog.String("delivery", f.Delivery), slog.String("event", f.Event), slog.String("eventUuid", f.EventID),
		slog.String("webhook", f.Endpoint), slog.String("account", f.Account), slog.String("host", f.Host),
		slog.Int("attempts", f.Attempts), slog.Int("status", f.Status), slog.String("error", f.Error))
	if n.metrics != nil {
		_ = n.metrics.OnFailure(ctx, f) // always nil
	}
	if n.digester != nil {
		n.digester.Wake()
	}
	return nil
}

// run serves HTTP, delivers webhooks and does the periodic work until asked ends or one of them fails. Requests end first,
// since they create deliveries.
func (n *node) run(asked context.Context, on listeners) error {
	server := n.server(n.handler)
	server.RegisterOnShutdown(n.ended)
	ctx, cancel := context.WithCancel(asked)
	defer cancel()
	working, stopWorking := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWorking()
	var work errgroup.Group
	start := func(do func() error) {
		work.Go(func() error {
			defer cancel()
			return do()
		})
	}
	start(func() error { return n.engine.Run(working) })
	start(func() error { return n.svc.Run(working) })
	if n.digester != nil {
		start(func() error { return n.digester.Run(working) })
	}
	if n.metrics != nil {
		start(func() error { return n.metrics.serve(working, on.scrapes) })
	}
	if n.certs != nil {
		start(func() error { n.certs.Run(working); return nil })
	}
	if on.redirects != nil {
		start(func() error { return serveUntil(working, n.server(n.redirects), on.redirects) })
	}
	start(func() error { return n.serve(server, on.api) })
	notify(n.notifySocket, "READY=1")

	<-ctx.Done()
	n.logger.InfoContext(ctx, "stopping")
	notify(n.notifySocket, "STOPPING=1")
	if asked.Err() != nil {
		n.leave()
	}
	patience, done := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer done()
	err := server.Shutdown(patience)
	stopWorking()
	return errors.Join(err, work.Wait())
}
