package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// defaultAccount is the account that the first start makes.
const defaultAccount = "default"

// defaultAddr is where servers listen.
const defaultAddr = "127.0.0.1:8080"

type serveCmd struct {
	allowing
	encryption
	reaching
	Addr               string          `default:"127.0.0.1:8080" help:"Where to listen."`
	BaseURL            string          `name:"base-url" placeholder:"URL" help:"The public address of the API. Defaults to http://ADDR, or https://ADDR or https://DOMAIN with TLS."`
	Quota              int             `default:"1000" placeholder:"N" help:"How many requests a key may make in --quota-window, over all servers of a database; 0 for any number. Defaults to 1000."`
	QuotaWindow        time.Duration   `default:"1h" help:"How long a window of the quota is, in whole seconds; windows begin at multiples of it in UTC, those of an hour at full hours."`
	QuotaPerAccount    bool            `help:"Count the requests of all keys of an account together. Defaults to each key by itself."`
	Rate               float64         `default:"0" placeholder:"N" help:"How many requests a second a key may make on this server in the long run, such as 50 or 0.5. Defaults to any number."`
	Burst              int             `default:"0" placeholder:"N" help:"How many requests a key may make at once under --rate. Defaults to as many as it allows in a second."`
	MaxRequests        int             `default:"256" placeholder:"N" help:"How many requests are worked on at once; further ones wait for their turn. Files on their way do not count."`
	MaxWait            time.Duration   `default:"1s" help:"How long a request may wait for its turn before it is answered 503."`
	MaxConnections     int             `default:"10000" placeholder:"N" help:"How many connections may be open at once; further ones wait in the system's queue. Each takes some 30 kB while it rests, and 150 kB while it works."`
	MaxUpload          byteSize        `default:"100MB" placeholder:"SIZE" help:"How large an uploaded file may be: bytes, or with KB, MB, GB, KiB, MiB, GiB."`
	HashDownloads      bool            `help:"Also compare downloads with the SHA-256 of the file, which finds out whoever can write to the blob store and makes checksums fit; costs more processor time than all else. Defaults to checksums, which find every accident."`
	Retention          time.Duration   `default:"720h" help:"How long events and deliveries are kept; at least an hour, 0 for ever."`
	WebhookTimeout     time.Duration   `default:"30s" help:"How long one attempt to deliver may take in all."`
	WebhookRetries     []time.Duration `default:"1m,5m,30m" help:"The delays after each failed attempt; there is one attempt more."`
	WebhookLease       time.Duration   `default:"0" help:"For how long a delivery under way is kept from other servers, and so how long it rests after a crash; 5 seconds more than --webhook-timeout at least. Defaults to a minute, or to 30 seconds more than --webhook-timeout."`
	WebhookConcurrency int             `default:"0" help:"How many deliveries are begun at once. Defaults to 512."`
	DrainDelay         time.Duration   `default:"0s" help:"How long to go on serving after SIGTERM, while /readyz answers 503 and connections are closed behind their answers: longer than a proxy in front takes to see that. Defaults to not at all."`
	MetricsAddr        string          `placeholder:"ADDR" help:"Where Prometheus may scrape /metrics; not open to the public. Defaults to nowhere."`
	SMTP               string          `name:"smtp" placeholder:"URL" help:"The server for mail about webhooks that fail, to the contacts of accounts: smtp://USER:PASSWORD@HOST:PORT (with STARTTLS; ?starttls=optional or off) or smtps://…. Better set in the environment. Defaults to no mail."`
	MailFrom           string          `placeholder:"EMAIL" help:"Who mail is from; needed with --smtp."`
	LogFormat          string          `enum:"text,json" default:"text" help:"How to log: ${enum}."`
}

// gcPercent lets the heap grow to three times what is in use before it is
// cleaned. Little is in use, some 8 MB, so that collecting at the usual double
// costs a tenth of the throughput and saves 2 MB; five times saves nothing.
const gcPercent = 200

// Run serves until ctx ends, then finishes what it accepted.
func (c *serveCmd) Run(ctx context.Context, g *global, std streams) (err error) {
	logger := slog.New(slog.NewTextHandler(std.err, nil))
	if c.LogFormat == "json" {
		logger = slog.New(slog.NewJSONHandler(std.err, nil))
	}
	logger.InfoContext(ctx, "starting", slog.Any("build", thisBuild()))
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	// Before the database is made or changed, so that a flag that can't be used
	// and a server that runs already leave it alone.
	if err := c.check(g); err != nil {
		return err
	}
	on, err := c.listen(ctx)
	if err != nil {
		return err
	}
	defer on.close()
	s, err := openPatiently(ctx, g, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	if c.BaseURL == "" {
		c.BaseURL = c.publicURL(on.api.Addr())
	}
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	b, err := g.openBlobs()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	certs, err := c.certificates(g, logger)
	if err != nil {
		return err
	}
	n, err := c.node(s, b, certs, logger)
	if err != nil {
		return err
	}
	ready := g.claimFiles(ctx, n.svc)
	if errors.Is(ready, formsvc.ErrOtherBlobs) {
		return ready
	}
	if err := c.welcome(ctx, n.svc.As(serveActor), std); err != nil {
		return err
	}
	if ready == nil {
		ready = n.svc.Ready(ctx)
	}
	if ready != nil {
		logger.WarnContext(ctx, "not ready yet; requests that need what is missing will fail until it is there", slog.Any("error", ready))
	}
	forget, err := g.noteServing(serving{c.BaseURL, on.api.Addr().String()})
	if err != nil {
		logger.WarnContext(ctx, "where it serves was not noted for \"formsvc settings-link\", which then needs --base-url", slog.Any("error", err))
	}
	defer forget()
	c.announce(ctx, g, logger, on)
	err = n.run(ctx, on.bounded(c.MaxConnections))
	logger.InfoContext(ctx, "stopped")
	return err
}

const (
	// openPatience is how long to wait for a database that can't be reached.
	openPatience = time.Minute
	// openPause is between two tries.
	openPause = time.Second
)

// openPatiently opens the database, and waits for one that can't be reached yet: it may
// be starting too, or be on its way from one machine to another.
func openPatiently(ctx context.Context, g *global, logger *slog.Logger) (store, error) {
	for deadline := time.Now().Add(openPatience); ; {
		var s store
		err := g.refuseLeftBehind(ctx)
		if err == nil {
			s, err = g.open(ctx, true)
		}
		if !errors.Is(err, formsvc.ErrUnavailable) || errors.Is(err, formsvc.ErrMoved) || time.Now().After(deadline) {
			return s, err
		}
		logger.WarnContext(ctx, "the database can't be reached; trying again", slog.Any("error", err))
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(openPause):
		}
	}
}

// announce logs that the server serves, and what operators should know of it.
func (c *serveCmd) announce(ctx context.Context, g *global, logger *slog.Logger, on listeners) {
	if len(c.WebhookAllow) > 0 {
		logger.InfoContext(ctx, "webhooks may be in ranges that are not public", slog.String("ranges", c.WebhookAllow.String()))
	}
	if len(c.TrustedProxy) > 0 {
		logger.InfoContext(ctx, "proxies are believed what they say of clients", slog.String("ranges", c.TrustedProxy.String()))
		if !c.encrypted() && strings.HasPrefix(c.BaseURL, "http://") {
			logger.WarnContext(ctx, "browsers send cookies in the clear; if the proxy speaks HTTPS, --base-url must begin with https://")
		}
	}
	if _, s3, _ := g.blobURL(); s3 == nil && strings.HasPrefix(g.DB, "postgres") {
		logger.InfoContext(ctx, "uploaded files are kept in a directory; several nodes need the same one, or --blobs s3://…")
	}
	if on.scrapes != nil {
		logger.InfoContext(ctx, "serving metrics", slog.String("metricsAddr", on.scrapes.Addr().String()))
	}
	if on.redirects != nil {
		logger.InfoContext(ctx, "serving redirects", slog.String("redirectAddr", on.redirects.Addr().String()))
	}
	logger.InfoContext(ctx, "serving", slog.String("addr", on.api.Addr().String()), slog.String("baseUrl", c.BaseURL))
}

// welcome makes the first account on an empty store. Of several nodes that
// start at once, one makes it and shows its key.
func (c *serveCmd) welcome(ctx context.Context, svc *formsvc.Service, std streams) error {
	accounts, err := svc.Accounts.List(ctx)
	if err != nil || len(accounts) > 0 {
		return err
	}
	account, key, err := svc.Accounts.CreateWithKey(ctx, defaultAccount, formsvc.KeyInput{
		Name: "first key", Permissions: formsvc.AllPermissions(),
	})
	if errors.Is(err, formsvc.ErrConflict) {
		return nil
	}
	if err != nil {
		return err
	}
	token, _, err := svc.Sessions.NewLink(ctx, account.ID)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, `This store is new: the account %q was made, with a key that may do everything.
The key is shown only now:

  %s

Create a campaign with it:

  curl -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' \
    -d '{"title":"My first campaign"}' %s/v1/campaigns

The API is at       %s
Its documentation   %s/docs
Account settings    %s
                    (this link works once, for 15 minutes; "formsvc settings-link" makes another)

`, defaultAccount, key, key, c.BaseURL, c.BaseURL, c.BaseURL, signInLink(c.BaseURL, token))
	return err
}
