package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// defaultAccount is the account that the first start creates.
const defaultAccount = "default"

// defaultAddr is the default address of servers.
const defaultAddr = "127.0.0.1:8080"

type serveCmd struct {
	allowing
	encryption
	reaching
	Addr               string          `default:"127.0.0.1:8080" help:"Address to listen on."`
	BaseURL            string          `name:"base-url" placeholder:"URL" help:"Public address of the API. Defaults to http://ADDR; with TLS to https://ADDR or https://DOMAIN."`
	PublicURL          string          `kong:"-"` // BaseURL unless it is only a guess: "" lets pages use the address of the request
	Quota              int             `default:"1000" placeholder:"N" help:"Number of requests that a key may make per --quota-window, over all servers of a database; 0 for no limit. Defaults to 1000."`
	QuotaWindow        time.Duration   `default:"1h" help:"Length of a quota window, in whole seconds. Windows begin at multiples of it in UTC, hourly ones at full hours."`
	QuotaPerAccount    bool            `help:"Count the requests of all keys of an account together. Defaults to counting each key by itself."`
	Rate               float64         `default:"0" placeholder:"N" help:"Sustained number of requests per second that a key may make on this server, such as 50 or 0.5; those of a second may come at once. Defaults to no limit."`
	MaxRequests        int             `default:"256" placeholder:"N" help:"Number of requests that are handled at once; further ones wait for up to a second, then get a 503. File transfers don't count."`
	RequestTimeout     time.Duration   `default:"30s" help:"How long the server may work on a request before it gets a 503. Uploads, downloads and exports have no such limit."`
	MaxConnections     int             `default:"10000" placeholder:"N" help:"Number of connections that may be open at once; further ones wait in the system's queue. Each takes about 30 kB when idle, and 150 kB when busy."`
	MaxKeys            int             `default:"100" placeholder:"N" help:"Number of keys that an account may have, without revoked and expired ones; 0 for no limit. Each key has its own quota. The command line has no limit."`
	MaxCampaigns       int             `default:"10000" placeholder:"N" help:"Number of campaigns that an account may have; 0 for no limit."`
	MaxStored          byteSize        `default:"0" placeholder:"SIZE" help:"Number of bytes that the files of an account may have together; 0 for no limit."`
	MaxUpload          byteSize        `default:"100MB" placeholder:"SIZE" help:"Largest size of an uploaded file: bytes, or with KB, MB, GB, KiB, MiB, GiB."`
	HashDownloads      bool            `help:"Also compare downloads with the SHA-256 of the file. This detects deliberate changes in the blob store, and costs more processor time than everything else. Defaults to checksums, which detect accidental damage."`
	Retention          time.Duration   `default:"720h" help:"How long events and deliveries are kept: at least an hour, or 0 for forever."`
	Workflow           workflow        `placeholder:"FILE" help:"JSON file with the statuses that responses may have, such as {\"statuses\": [\"granted\"], \"transitions\": {\"pending\": [\"granted\"]}, \"final\": [\"granted\"]}. Defaults to any status after any, with completed final."`
	WebhookTimeout     time.Duration   `default:"30s" help:"Time limit for one delivery attempt."`
	WebhookRetries     []time.Duration `default:"1m,5m,30m" help:"Delays after failed attempts. There is one more attempt than delays."`
	WebhookLease       time.Duration   `default:"0" help:"How long a delivery in progress is reserved for its server, and so how long it waits after a crash. At least 5 seconds more than --webhook-timeout. Defaults to a minute, or to 30 seconds more than --webhook-timeout."`
	WebhookConcurrency int             `default:"0" help:"Number of deliveries in progress at once. Defaults to 512."`
	DrainDelay         time.Duration   `default:"0s" help:"How long to keep serving after SIGTERM while /readyz returns 503 and each response closes its connection. Choose longer than your proxy needs to notice. Defaults to no delay."`
	Ready              []string        `default:"database" enum:"database,files,disk" placeholder:"COMPONENT,…" help:"What must work for /readyz to return 200: database, files (their directory or bucket), disk (64 MiB free for SQLite and files). While another one of these fails, it returns 200 and says degraded. The database always counts. Defaults to database."`
	MetricsAddr        string          `placeholder:"ADDR" help:"Address where Prometheus can scrape /metrics. Don't expose it to the public. Defaults to none."`
	SMTP               string          `name:"smtp" placeholder:"URL" help:"Mail server for messages about failing webhooks to the contacts of accounts: smtp://USER:PASSWORD@HOST:PORT (with STARTTLS; ?starttls=optional or off) or smtps://…. Better set in the environment. Defaults to no mail."`
	MailFrom           string          `placeholder:"EMAIL" help:"Sender of the mail; required with --smtp."`
	LogFormat          string          `enum:"text,json" default:"text" help:"Log format: ${enum}."`
}

// gcPercent lets the heap grow to three times the live data before a collection. Live data is small, about 8 MB:
// collecting at the default of twice costs a tenth of the throughput and saves 2 MB; five times gains nothing.
const gcPercent = 200

// memoryLimit makes the collector run more often instead of letting the heap grow further. It is no hard limit.
const memoryLimit = 384 << 20

// Run serves until ctx ends, then finishes the accepted requests.
func (c *serveCmd) Run(ctx context.Context, g *global, std streams) (err error) {
	logger := slog.New(slog.NewTextHandler(std.err, nil))
	if c.LogFormat == "json" {
		logger = slog.New(slog.NewJSONHandler(std.err, nil))
	}
	logger.InfoContext(ctx, "starting", slog.String("build", build()))
	if g.Env.get("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if g.Env.get("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	// Before the database is created or changed, so that an unusable flag or a server that is already running leaves it
	// unchanged.
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

	guessed := c.BaseURL == "" && len(c.AutocertDomain) == 0
	if c.BaseURL == "" {
		c.BaseURL = c.publicURL(on.api.Addr())
	}
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	if !guessed {
		c.PublicURL = c.BaseURL
	}
	b, err := g.openBlobs()
	if err != nil {
		return err
	}
	source, err := c.certificates(g, logger)
	if err != nil {
		return err
	}
	n, err := c.node(s, b, source, logger)
	if err != nil {
		return err
	}
	n.notifySocket = g.Env.get("NOTIFY_SOCKET")
	n.full = func() error { return errors.Join(g.diskFull(minFree), n.forms.Ready()) }
	ready := g.claimFiles(ctx, n.svc)
	if errors.Is(ready, formsvc.ErrOtherBlobs) || errors.Is(ready, errors.ErrUnsupported) {
		return ready
	}
	if err := c.welcome(ctx, n.svc.As(formsvc.Actor{Name: serveActor}), std); err != nil {
		return err
	}
	if ready == nil {
		ready = n.svc.Ready(ctx)
	}
	if ready != nil {
		logger.WarnContext(ctx, "not ready yet; requests may fail until then", slog.Any("error", ready))
	}
	forget, err := g.noteServing(c.BaseURL)
	if err != nil {
		logger.WarnContext(ctx, "the file serving was not written; \"formsvc console-link\" needs --base-url", slog.Any("error", err))
	}
	defer forget()
	c.announce(ctx, g, logger, on)
	err = n.run(ctx, on)
	logger.InfoContext(ctx, "stopped")
	return err
}

const (
	openPatience = time.Minute // how long to wait for an unreachable database
	openPause    = time.Second // between two tries
)

// openPatiently opens the database, and waits for an unreachable one: it may be starting too, or failing over.
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
		logger.WarnContext(ctx, "database unreachable; retrying", slog.Any("error", err))
		if !sleep(ctx, openPause) {
			return nil, err
		}
	}
}

// announce logs that the server serves, and what operators should know about its settings.
func (c *serveCmd) announce(ctx context.Context, g *global, logger *slog.Logger, on listeners) {
	if len(c.WebhookAllow) > 0 {
		logger.InfoContext(ctx, "webhooks may use addresses that aren't public", slog.Any("ranges", c.WebhookAllow))
	}
	if len(c.TrustedProxy) > 0 {
		logger.InfoContext(ctx, "trusting X-Forwarded-For of proxies", slog.Any("ranges", c.TrustedProxy))
		if !c.encrypted() && strings.HasPrefix(c.BaseURL, "http://") {
			logger.WarnContext(ctx, "browsers send cookies unencrypted; if the proxy speaks HTTPS, --base-url must begin with https://")
		}
	}
	if _, s3, _ := g.blobURL(); s3 == nil && strings.HasPrefix(g.DB, "postgres") {
		logger.InfoContext(ctx, "uploaded files are stored in a directory; several nodes must share it, or use --blobs s3://…")
	}
	if on.scrapes != nil {
		logger.InfoContext(ctx, "serving metrics", slog.String("metricsAddr", on.scrapes.Addr().String()))
	}
	if on.redirects != nil {
		logger.InfoContext(ctx, "serving redirects", slog.String("redirectAddr", on.redirects.Addr().String()))
	}
	logger.InfoContext(ctx, "serving", slog.String("addr", on.api.Addr().String()), slog.String("baseUrl", c.BaseURL))
}

// welcome creates the first account in an empty database. If several nodes start at once, one creates it and prints its
// key.
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
	_, err = fmt.Fprintf(std.out, `This is a new database. Created the account %q and an API key with all permissions.
The key is shown only once:

  %s

Make a form in the console, or create a campaign with the key:

  curl -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' \
    -d '{"title":"My first campaign"}' %s/v1/campaigns

API                 %s
Documentation       %s/docs
Console             %s
                    (this link signs you in once, within 15 minutes; "formsvc console-link" prints another)

`, defaultAccount, key.Value, key.Value, c.BaseURL, c.BaseURL, c.BaseURL, signInLink(c.BaseURL, token))
	return err
}
