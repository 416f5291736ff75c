package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// How digests are sent. Those of one batch are sent within their lease of five
// minutes even if the server takes mailTimeout for each.
const (
	digestInterval = 30 * time.Second
	digestPause    = time.Second // however many failures there are
	digestBatch    = 16
)

// A digester writes to accounts about their webhooks that fail. Several nodes
// may do so; each digest is leased to one of them.
type digester struct {
	notices formsvc.Notices
	send    func(ctx context.Context, to, subject, text string) error
	logger  *slog.Logger
	wake    chan struct{} // holds one token when something failed
}

func newDigester(svc *formsvc.Service, m *mailer, logger *slog.Logger) *digester {
	return &digester{notices: svc.Notices, send: m.send, logger: logger, wake: make(chan struct{}, 1)}
}

// failed makes run look for digests soon. A nil digester does nothing.
func (d *digester) failed() {
	if d == nil {
		return
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// run sends what is due until ctx ends, and then returns nil. A mail that is
// being sent is finished first, so that it is not sent again by another node.
func (d *digester) run(ctx context.Context) error {
	for {
		d.round(ctx)
		if !sleep(ctx, digestPause, nil) || !sleep(ctx, digestInterval-digestPause, d.wake) {
			return nil
		}
	}
}

// sleep returns after a time or when it is woken, or when ctx ends, and reports
// whether ctx goes on.
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

// round sends every digest that is due.
func (d *digester) round(ctx context.Context) {
	for ctx.Err() == nil {
		digests, err := d.notices.Digests(ctx, digestBatch)
		if err != nil {
			if ctx.Err() == nil {
				d.logger.LogAttrs(ctx, slog.LevelError, "looking for failure digests failed", slog.Any("error", err))
			}
			return
		}
		for i := range digests {
			if ctx.Err() != nil {
				return // the rest is sent when its lease has ended
			}
			d.one(context.WithoutCancel(ctx), &digests[i])
		}
		if len(digests) < digestBatch {
			return
		}
	}
}

// one sends a digest. What can't be sent is due again when its lease ends.
func (d *digester) one(ctx context.Context, digest *formsvc.Digest) {
	about := []any{
		slog.String("webhook", string(digest.WebhookID)), slog.String("account", string(digest.AccountID)),
		slog.Int64("failures", digest.Failures),
	}
	logger := d.logger.With(about...)
	if digest.Contact == "" {
		logger.LogAttrs(ctx, slog.LevelWarn, "no mail about a failing webhook: its account has no contact")
	} else {
		subject, text := digestMail(digest)
		if err := d.send(ctx, digest.Contact, subject, text); err != nil {
			logger.LogAttrs(ctx, slog.LevelError, "a mail about a failing webhook was not sent", slog.Any("error", err))
			return
		}
		logger.LogAttrs(ctx, slog.LevelInfo, "a mail about a failing webhook was sent")
	}
	if err := d.notices.Sent(ctx, *digest); err != nil && !errors.Is(err, formsvc.ErrStale) {
		logger.LogAttrs(ctx, slog.LevelError, "a mail about a failing webhook may be sent twice", slog.Any("error", err))
	}
}

// digestMail writes the mail. Of the address it names the host only: the rest
// may be a token.
func digestMail(d *formsvc.Digest) (subject, text string) {
	host := "an unknown host"
	if u, err := url.Parse(d.URL); err == nil && u.Host != "" {
		host = u.Host
	}
	deliveries := "1 delivery"
	if d.Failures != 1 {
		deliveries = fmt.Sprintf("%d deliveries", d.Failures)
	}
	last := "no answer: " + d.Error
	if d.Status != 0 {
		last = fmt.Sprintf("an answer with status %d (%s)", d.Status, d.Error)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Since %s, %s to your webhook at %s failed for the last time,\n", stamp{d.FirstAt}, deliveries, host)
	fmt.Fprintf(&b, "most recently at %s. They are not sent again by themselves.\n\n", stamp{d.LastAt})
	fmt.Fprintf(&b, "  webhook      %s\n  account      %s\n  last result  %s\n\n", d.WebhookID, d.AccountID, last)
	fmt.Fprintf(&b, "To see what was tried:\n\n  formsvc webhooks deliveries %s --state failed --account %s\n\n", d.WebhookID, d.AccountID)
	fmt.Fprintf(&b, "To send them again, once the receiver works:\n\n  formsvc webhooks redeliver %s --since %s --account %s\n\n",
		d.WebhookID, stamp{d.FirstAt}, d.AccountID)
	b.WriteString("You get at most one such mail an hour for each webhook.\n")
	return fmt.Sprintf("%s to %s failed", deliveries, host), b.String()
}
