package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// printDeliveries prints deliveries with one row for each attempt, or passes on an error.
func (o output) printDeliveries(std streams, err error, list ...formsvc.Delivery) error {
	return table[formsvc.Delivery]{"DELIVERY\tEVENT\tSTATE\tATTEMPT\tSTARTED\tDURATION\tSTATUS\tERROR", deliveryRows}.print(o, std, err, list...)
}

func deliveryRows(d formsvc.Delivery) string {
	event, state := string(d.Event), string(d.State)
	if d.Test {
		event += " (test)"
	}
	if !d.SendingSince.IsZero() {
		state = "sending since " + stamp{d.SendingSince}.String()
	}
	rows := mapped(d.Log, func(a formsvc.Attempt) string {
		return cells(d.ID, event, state, a.Number, stamp{a.StartedAt}, a.Duration.Round(time.Millisecond/10), orNull(a.Status), a.Error)
	})
	if len(rows) == 0 {
		return cells(d.ID, event, state, "", "", "", "", "")
	}
	return strings.Join(rows, "\n")
}

type webhookDeliveriesCmd struct {
	oneWebhook
	State string `enum:",pending,delivered,failed" default:"" help:"Only deliveries in this state: pending, delivered or failed."`
	Limit int    `default:"50" help:"List at most this many deliveries, 1 to 1000."`
}

// Run lists deliveries with their attempts.
func (c *webhookDeliveriesCmd) Run(ctx context.Context, g *global, std streams) error {
	if err := checkLimit(c.Limit); err != nil {
		return err
	}
	return c.hook(ctx, g, need{}, func(svc *formsvc.Service, key formsvc.WebhookKey) error {
		page, err := svc.Deliveries.List(ctx, formsvc.DeliveryQuery{
			AccountID: key.AccountID, WebhookID: key.ID, State: formsvc.DeliveryState(c.State),
			Page: formsvc.PageQuery{Limit: c.Limit},
		})
		if page.More {
			std.note("Showing the newest %d of %d.", len(page.Items), page.Total)
		}
		return c.printDeliveries(std, err, page.Items...)
	})
}

// checkLimit checks a --limit.
func checkLimit(n int) error {
	if n < 1 || n > formsvc.MaxLimit {
		return usageError{fmt.Errorf("--limit: must be between 1 and %d", formsvc.MaxLimit)}
	}
	return nil
}

type webhookRedeliverCmd struct {
	inAccount
	output
	UUID  recordID `arg:"" name:"uuid" help:"UUID of a delivery; with --since, of a webhook."`
	Since moment   `placeholder:"T" help:"Send every delivery of the webhook again that has permanently failed since then: a time such as 2026-11-21T08:30:00Z, or how long ago, such as 2h."`
}

// Run sends one delivery again, or the failed ones of a webhook.
func (c *webhookRedeliverCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, need{}, func(svc *formsvc.Service, id formsvc.ID) error {
		hook := formsvc.WebhookKey{AccountID: id, ID: formsvc.ID(c.UUID)}
		one := formsvc.DeliveryKey{AccountID: id, ID: formsvc.ID(c.UUID)}
		if since := time.Time(c.Since); !since.IsZero() {
			n, err := svc.Deliveries.RedeliverFailed(ctx, hook, since)
			if _, other := svc.Deliveries.Get(ctx, one); errors.Is(err, formsvc.ErrNotFound) && other == nil {
				return usageError{fmt.Errorf("%s is a delivery; --since needs a webhook", c.UUID)}
			}
			return c.missing(c.printCount(std, n, err), "webhook", c.UUID)
		}
		d, err := svc.Deliveries.Redeliver(ctx, one)
		if errors.Is(err, formsvc.ErrConflict) {
			return fmt.Errorf("an attempt of delivery %s is in progress; try again when it has ended", c.UUID)
		}
		if _, other := svc.Webhooks.Get(ctx, hook); errors.Is(err, formsvc.ErrNotFound) && other == nil {
			return usageError{fmt.Errorf("%s is a webhook; add --since to send its failed deliveries again", c.UUID)}
		}
		return c.missing(c.printDeliveries(std, err, d), "delivery", c.UUID)
	})
}

// printCount prints how many deliveries are sent again.
func (c *webhookRedeliverCmd) printCount(std streams, n int, err error) error {
	if err != nil && n > 0 {
		return fmt.Errorf("%d deliveries are sent again, but not all: %w", n, err)
	}
	if err != nil || c.JSON {
		return c.printJSON(std, err, map[string]int{"redelivered": n})
	}
	std.note("Deliveries are sent again, 50 per second.")
	_, err = fmt.Fprintln(std.out, n)
	return err
}
