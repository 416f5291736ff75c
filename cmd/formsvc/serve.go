package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/formsvc/toolkit/formsvc"
)

// defaultAccount is the account that the first start creates.
const defaultAccount = "default"

// defaultAddr is the default address of servers.
const defaultAddr = "127.0.0.1:8080"

// serveHelp has the help of the flags of serve, one a line.
//
//go:embed serve.txt
var serveHelp string

// describe sets the help of the flags of serve, which would be too long for tags.
func describe(k *kong.Kong) error {
	for _, command := range k.Model.Children {
		for _, f := range command.Flags {
			if _, rest, ok := strings.Cut("\n"+serveHelp, "\n"+f.Name+": "); ok && command.Name == "serve" {
				f.Help, _, _ = strings.Cut(rest, "\n")
			}
		}
	}
	return nil
}

type serveCmd struct {
	allowing
	encryption
	reaching
	signingIn
	Addr               string        `default:"127.0.0.1:8080"`
	BaseURL            string        `name:"base-url" placeholder:"URL"`
	PublicURL          string        `kong:"-"` // BaseURL unless it is only a guess: "" lets pages use the address of the request
	Quota              int           `default:"1000" placeholder:"N"`
	QuotaWindow        time.Duration `default:"1h"`
	QuotaPerAccount    bool
	Rate               float64       `default:"0" placeholder:"N"`
	MaxRequests        int           `default:"256" placeholder:"N"`
	RequestTimeout     time.Duration `default:"30s"`
	MaxConnections     int           `default:"10000" placeholder:"N"`
	MaxKeys            int           `default:"100" placeholder:"N"`
	MaxCampaigns       int           `default:"10000" placeholder:"N"`
	MaxStored          byteSize      `default:"0" placeholder:"SIZE"`
	MaxUpload          byteSize      `default:"100MB" placeholder:"SIZE"`
	HashDownloads      bool
	Retention          time.Duration   `default:"720h"`
	Workflow           workflow        `placeholder:"FILE"`
	WebhookTimeout     time.Duration   `default:"30s"`
	WebhookRetries     []time.Duration `default:"1m,5m,30m"`
	WebhookLease       time.Duration   `default:"0"`
	WebhookConcurrency int             `default:"0"`
	DrainDelay         time.Duration   `default:"0s"`
	Ready              []string        `default:"database" enum:"database,files,disk" placeholder:"COMPONENT,…"`
	MetricsAddr        string          `placeholder:"ADDR"`
	SMTP               string          `name:"smtp" placeholder:"URL"`
	MailFrom           string          `placeholder:"EMAIL"`
	MailsPerAddress    int             `default:"3" placeholder:"N"`
	MailsPerHour       int             `default:"50" placeholder:"N"`
	LogFormat          string          `enum:"text,json" default:"text"`
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
