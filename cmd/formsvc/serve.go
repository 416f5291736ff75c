package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// defaultAccount is the account that the first start makes.
const defaultAccount = "default"

type serveCmd struct {
	Addr           string          `default:"127.0.0.1:8080" help:"Where to listen."`
	BaseURL        string          `name:"base-url" placeholder:"URL" help:"The public address of the API. Defaults to http://ADDR."`
	Quota          int             `default:"0" help:"Requests a key may make per hour. This release does not count requests yet: it warns and serves without a limit."`
	WebhookTimeout time.Duration   `default:"30s" help:"How long one attempt to deliver may take in all."`
	WebhookRetries []time.Duration `default:"1m,5m,30m" help:"The delays after each failed attempt; there is one attempt more."`
	WebhookAllow   prefixes        `placeholder:"CIDR" help:"Address ranges that webhooks may be in although they are not public; repeatable."`
	LogFormat      string          `enum:"text,json" default:"text" help:"How to log: ${enum}."`
}

// prefixes is a list of address ranges.
type prefixes []netip.Prefix

// UnmarshalText reads comma-separated ranges.
func (p *prefixes) UnmarshalText(text []byte) error {
	for s := range strings.SplitSeq(string(text), ",") {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(s))
		if err != nil {
			return fmt.Errorf("%q is not an address range such as 10.0.0.0/8", s)
		}
		*p = append(*p, prefix.Masked())
	}
	return nil
}

// How long clients may take. A slow client must not keep a connection, and a
// shutdown must end before process managers lose their patience.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second // header and body; a handler that takes long bodies extends it
	writeTimeout      = 90 * time.Second // from the end of the header; likewise
	idleTimeout       = 120 * time.Second
	maxHeaderBytes    = 64 << 10
	shutdownTimeout   = 20 * time.Second
)

// gcPercent lets the heap grow to five times what is in use before it is
// cleaned. Little is in use, some 8 MB, so that collecting at the usual double
// costs a tenth of the throughput and saves 15 MB.
const gcPercent = 400

// Run serves until ctx ends, then finishes what it accepted.
func (c *serveCmd) Run(ctx context.Context, g *global, std streams) (err error) {
	logger := slog.New(slog.NewTextHandler(std.err, nil))
	if c.LogFormat == "json" {
		logger = slog.New(slog.NewJSONHandler(std.err, nil))
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if c.Quota != 0 {
		logger.WarnContext(ctx, "--quota has no effect: this release does not count requests yet")
	}
	s, svc, err := g.service(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	if c.BaseURL == "" {
		c.BaseURL = "http://" + listener.Addr().String()
	}
	handler, err := httpx.New(svc, &httpx.Options{BaseURL: c.BaseURL, Logger: logger, Ready: s.Ping})
	if err != nil {
		return usageError{fmt.Errorf("--base-url: %w", err)}
	}
	engine, err := c.engine(s, logger)
	if err != nil {
		return err
	}
	if err := c.welcome(ctx, svc, std); err != nil {
		return err
	}
	logger.InfoContext(ctx, "serving", slog.String("addr", listener.Addr().String()), slog.String("baseUrl", c.BaseURL))
	err = runAll(ctx, listener, handler, engine, logger)
	logger.InfoContext(ctx, "stopped")
	return err
}

func (c *serveCmd) engine(q delivery.Queue, logger *slog.Logger) (*delivery.Engine, error) {
	engine, err := delivery.New(q, &delivery.Options{
		Timeout: c.WebhookTimeout, Retries: c.WebhookRetries, Logger: logger,
		OnFailure: func(ctx context.Context, f delivery.Failure) {
			logger.LogAttrs(ctx, slog.LevelWarn, "webhook delivery failed for the last time",
				slog.String("delivery", f.Delivery), slog.String("event", f.Event), slog.String("eventUuid", f.EventID),
				slog.String("webhook", f.Endpoint), slog.String("account", f.Account), slog.String("host", f.Host),
				slog.Int("attempts", f.Attempts), slog.Int("status", f.Status), slog.String("error", f.Error))
		},
	})
	if err != nil {
		return nil, usageError{fmt.Errorf("--webhook-timeout, --webhook-retries: %w", err)}
	}
	return engine, nil
}

// welcome makes the first account on an empty store. Of several nodes that
// start at once, one makes it and shows its key.
func (c *serveCmd) welcome(ctx context.Context, svc *formsvc.Service, std streams) error {
	accounts, err := svc.Accounts.List(ctx)
	if err != nil || len(accounts) > 0 {
		return err
	}
	_, _, key, err := svc.Accounts.CreateWithKey(ctx, defaultAccount, formsvc.KeyInput{
		Name: "first key", Permissions: formsvc.AllPermissions(),
	})
	if errors.Is(err, formsvc.ErrConflict) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, `This store is new: the account %q was made, with a key that may do everything.
The key is shown only now:

  %s

Create a campaign with it:

  curl -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' \
    -d '{"title":"My first campaign"}' %s/v1/campaigns

`, defaultAccount, key, key, c.BaseURL)
	return err
}

// runAll serves HTTP and delivers webhooks until ctx ends or one of them fails.
// Requests end first, since they make deliveries.
func runAll(
	ctx context.Context, l net.Listener, h http.Handler, engine *delivery.Engine, logger *slog.Logger,
) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	delivering, stopDelivering := context.WithCancel(context.WithoutCancel(ctx))
	defer stopDelivering()

	served, delivered := make(chan error, 1), make(chan error, 1)
	go func() {
		defer cancel()
		served <- server.Serve(l)
	}()
	go func() {
		defer cancel()
		delivered <- engine.Run(delivering)
	}()

	<-ctx.Done()
	logger.InfoContext(ctx, "stopping")
	patience, done := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer done()
	err := server.Shutdown(patience)
	stopDelivering()
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return errors.Join(err, <-delivered)
}
