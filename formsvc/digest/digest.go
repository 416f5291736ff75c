// Package digest has the mails of the service. A [Mailer] makes those of deliveries: an owner's notices, and confirmations to the
// people who sent a form. A [Digester] mails accounts about webhooks whose deliveries failed permanently: at most one mail an hour for
// each webhook, to the contact of its account.
//
//	d, err := digest.New(svc.Notices, mailer, nil)
//	engine, err := delivery.New(store, &delivery.Options{OnFailure: func(context.Context, delivery.Failure) error {
//		d.Wake()
//		return nil
//	}})
//	go d.Run(ctx)
package digest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// The pace of digests. A batch is sent within its lease of five minutes if no mail takes longer than 15 seconds.
const (
	interval = 30 * time.Second
	pause    = time.Second // at least, even with many failures
	batch    = 16
)

// Options are optional settings of a [Digester]. The zero value is usable.
type Options struct {
	// Compose returns the mail about a digest, such as what [Themed] returns. It may be called by one goroutine at a time.
	// Defaults to [Compose].
	Compose func(*formsvc.Digest) (subject, text string)
	// Logger reports mails that were sent, and errors. Addresses are not logged. Defaults to no log.
	Logger *slog.Logger
}

// A Digester sends digests. Several processes may run one on a database: each digest is leased to one of them.
type Digester struct {
	notices formsvc.Notices
	sender  Sender
	opts    Options
	wake    chan struct{} // holds one token when something failed
}

// New returns a digester of the service's Notices. opts may be nil.
func New(notices formsvc.Notices, sender Sender, opts *Options) *Digester {
	d := &Digester{notices: notices, sender: sender, opts: *cmp.Or(opts, &Options{}), wake: make(chan struct{}, 1)}
	if d.opts.Compose == nil {
		d.opts.Compose = Compose
	}
	d.opts.Logger = cmp.Or(d.opts.Logger, slog.New(slog.DiscardHandler))
	return d
}

// Wake makes Run look for digests within about a second instead of half a minute. Call it when a delivery has failed
// permanently. It never waits and is safe for concurrent use.
func (d *Digester) Wake() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run sends due digests until ctx ends, and then returns nil. It finishes a mail in progress first, so that no other node
// sends it again.
func (d *Digester) Run(ctx context.Context) error {
	for {
		d.round(ctx)
		if !sleep(ctx, pause, nil) || !sleep(ctx, interval-pause, d.wake) {
			return nil
		}
	}
}

// sleep returns after d, on a token from wake, or when ctx ends. It reports whether ctx is still active.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-wake:
	}
	return true
}

// round sends all due digests.
func (d *Digester) round(ctx context.Context) {
	for ctx.Err() == nil {
		digests, err := d.notices.Digests(ctx, batch)
		if err != nil {
			if ctx.Err() == nil {
				d.opts.Logger.LogAttrs(ctx, slog.LevelError, "reading failure digests failed", slog.Any("error", err))
			}
			return
		}
		for i := range digests {
			if ctx.Err() != nil {
				return // the rest is sent when its lease has ended
			}
			d.one(context.WithoutCancel(ctx), &digests[i])
		}
		if len(digests) < batch {
			return
		}
	}
}

// one sends a digest. If that fails, the digest is due again when its lease ends.
func (d *Digester) one(ctx context.Context, digest *formsvc.Digest) {
	logger := d.opts.Logger.With(slog.String("webhook", string(digest.WebhookID)), slog.String("account", string(digest.AccountID)),
		slog.Int64("failures", digest.Failures))
	if digest.Contact == "" {
		logger.LogAttrs(ctx, slog.LevelWarn, "webhook failure mail not sent: account has no contact")
	} else {
		subject, text := d.opts.Compose(digest)
		if err := d.sender.Send(ctx, Message{To: digest.Contact, Subject: subject, Text: text}); err != nil {
			logger.LogAttrs(ctx, slog.LevelError, "webhook failure mail not sent", slog.Any("error", err))
			return
		}
		logger.LogAttrs(ctx, slog.LevelInfo, "webhook failure mail sent")
	}
	if err := d.notices.Sent(ctx, *digest); err != nil && !errors.Is(err, formsvc.ErrStale) {
		logger.LogAttrs(ctx, slog.LevelError, "webhook failure mail may be sent twice", slog.Any("error", err))
	}
}

// Compose returns a mail about a digest. It names only the host of the webhook's URL: the rest may contain a token.
func Compose(d *formsvc.Digest) (subject, text string) {
	host, to := "an unknown host", "your webhook at "
	if u, err := url.Parse(d.URL); err == nil && u.Scheme == "mailto" {
		host, to = cmp.Or(u.Opaque, "people who sent a form"), "" // by mail
	} else if err == nil && u.Host != "" {
		host = u.Host
	}
	deliveries := "1 delivery"
	if d.Failures != 1 {
		deliveries = fmt.Sprintf("%d deliveries", d.Failures)
	}
	last := "no response: " + d.Error
	if d.Status != 0 {
		last = fmt.Sprintf("status %d (%s)", d.Status, d.Error)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Since %s, %s to %s failed permanently,\n", d.FirstAt.UTC().Format(time.RFC3339), deliveries, to+host)
	fmt.Fprintf(&b, "most recently at %s. They are not retried automatically.\n", d.LastAt.UTC().Format(time.RFC3339))
	b.WriteString("You get at most one such mail an hour for each webhook.\n\n")
	fmt.Fprintf(&b, "  webhook      %s\n  account      %s\n  last result  %s\n", d.WebhookID, d.AccountID, last)
	return fmt.Sprintf("%s to %s failed", deliveries, host), b.String()
}

// Themed returns a [Compose] whose mails have the Product and MailFooter of a theme.
func Themed(t formsvc.Theme) func(*formsvc.Digest) (subject, text string) {
	return func(d *formsvc.Digest) (subject, text string) {
		subject, text = Compose(d)
		subject, footer := themed(&t, subject)
		if footer != "" {
			text += "\n" + footer + "\n"
		}
		return subject, text
	}
}

// themed returns a subject after the name of the product, and the footer.
func themed(t *formsvc.Theme, subject string) (_, footer string) {
	if product := oneLine(t.Product, maxTitle); product != "" {
		subject = product + ": " + subject
	}
	return subject, strings.TrimSpace(t.MailFooter)
}
