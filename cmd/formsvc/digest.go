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

// The pace of digests. A batch is sent within its lease of five minutes even if each mail takes mailTimeout.
const (
	digestInterval = 30 * time.Second
	digestPause    = time.Second // at least, even with many failures
	digestBatch    = 16
)

// A digester mails accounts about their failing webhooks. Several nodes may run one; each digest is leased to one node.
type digester struct {
	notices formsvc.Notices
	send    func(ctx context.Context, to, subject, text string) error
	logger  *slog.Logger
	wake    chan struct{} // holds one token when something failed
}

func newDigester(svc *formsvc.Service, m *mailer, logger *slog.Logger) *digester {
	return &digester{notices: svc.Notices, send: m.send, logger: logger, wake: make(chan struct{}, 1)}
}

// failed makes run read digests soon. A nil digester does nothing.
func (d *digester) failed() {
	if d == nil {
		return
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// run sends due digests until ctx ends, and then returns nil. It finishes a mail in progress first, so that no other node
// sends it again.
func (d *digester) run(ctx context.Context) error {
	for {
		d.round(ctx)
		if !sleep(ctx, digestPause, nil) || !sleep(ctx, digestInterval-digestPause, d.wake) {
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
func (d *digester) round(ctx context.Context) {
	for ctx.Err() == nil {
		digests, err := d.notices.Digests(ctx, digestBatch)
		if err != nil {
			if ctx.Err() == nil {
				d.logger.LogAttrs(ctx, slog.LevelError, "reading failure digests failed", slog.Any("error", err))
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

// one sends a digest. If that fails, the digest is due again when its lease ends.
func (d *digester) one(ctx context.Context, digest *formsvc.Digest) {
	about := []any{
		slog.String("webhook", string(digest.WebhookID)), slog.String("account", string(digest.AccountID)),
		slog.Int64("failures", digest.Failures),
	}
	logger := d.logger.With(about...)
	if digest.Contact == "" {
		logger.LogAttrs(ctx, slog.LevelWarn, "webhook failure mail not sent: account has no contact")
	} else {
		subject, text := digestMail(digest)
		if err := d.send(ctx, digest.Contact, subject, text); err != nil {
			logger.LogAttrs(ctx, slog.LevelError, "webhook failure mail not sent", slog.Any("error", err))
			return
		}
		logger.LogAttrs(ctx, slog.LevelInfo, "webhook failure mail sent")
	}
	if err := d.notices.Sent(ctx, *digest); err != nil && !errors.Is(err, formsvc.ErrStale) {
		logger.LogAttrs(ctx, slog.LevelError, "webhook failure mail may be sent twice", slog.Any("error", err))
	}
}

// digestMail returns the mail. It names only the host of the URL: the rest may contain a token.
func digestMail(d *formsvc.Digest) (subject, text string) {
	host := "an unknown host"
	if u, err := url.Parse(d.URL); err == nil && u.Host != "" {
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
	fmt.Fprintf(&b, "Since %s, %s to your webhook at %s failed permanently,\n", stamp{d.FirstAt}, deliveries, host)
	fmt.Fprintf(&b, "most recently at %s. They are not retried automatically.\n\n", stamp{d.LastAt})
	fmt.Fprintf(&b, "  webhook      %s\n  account      %s\n  last result  %s\n\n", d.WebhookID, d.AccountID, last)
	fmt.Fprintf(&b, "To see the attempts:\n\n  formsvc webhooks deliveries %s --state failed --account %s\n\n", d.WebhookID, d.AccountID)
	fmt.Fprintf(&b, "To send them again when the receiver works:\n\n  formsvc webhooks redeliver %s --since %s --account %s\n\n",
		d.WebhookID, stamp{d.FirstAt}, d.AccountID)
	b.WriteString("You get at most one such mail an hour for each webhook.\n")
	return fmt.Sprintf("%s to %s failed", deliveries, host), b.String()
}
