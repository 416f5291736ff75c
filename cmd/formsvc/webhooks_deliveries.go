package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/formsvc/toolkit/formsvc"
)

// deliveryRecord is a delivery in the API's form.
type deliveryRecord struct {
	UUID         formsvc.ID            `json:"uuid"`
	WebhookUUID  formsvc.ID            `json:"webhookUuid"`
	EventUUID    formsvc.ID            `json:"eventUuid"`
	Event        formsvc.EventType     `json:"event"`
	Test         bool                  `json:"test,omitempty"`
	State        formsvc.DeliveryState `json:"state"`
	AttemptCount int                   `json:"attemptCount"`
	SendingSince stamp                 `json:"sendingSince"`
	NextAttempt  stamp                 `json:"nextAttemptAt"`
	CreatedAt    stamp                 `json:"createdAt"`
	UpdatedAt    stamp                 `json:"updatedAt"`
	Attempts     []attemptRecord       `json:"attempts"`
}

type attemptRecord struct {
	Number     int     `json:"number"`
	StartedAt  stamp   `json:"startedAt"`
	DurationMS float64 `json:"durationMs"`
	Status     *int    `json:"status"`
	Error      *string `json:"error"`
	Answer     string  `json:"answer"`
}

func newDeliveryRecord(d formsvc.Delivery) deliveryRecord {
	r := deliveryRecord{
		UUID: d.ID, WebhookUUID: d.WebhookID, EventUUID: d.EventID, Event: d.Event, Test: d.Test, State: d.State,
		AttemptCount: d.Attempts, SendingSince: stamp{d.SendingSince}, CreatedAt: stamp{d.CreatedAt}, UpdatedAt: stamp{d.UpdatedAt},
		Attempts: mapped(d.Log, newAttemptRecord),
	}
	if d.State == formsvc.DeliveryPending && d.SendingSince.IsZero() {
		r.NextAttempt = stamp{d.DueAt}
	}
	return r
}

func newAttemptRecord(a formsvc.Attempt) attemptRecord {
	return attemptRecord{
		Number: a.Number, StartedAt: stamp{a.StartedAt}, DurationMS: float64(a.Duration.Microseconds()) / 1000,
		Status: orNull(a.Status), Error: orNull(a.Error), Answer: strings.ToValidUTF8(string(a.Answer), string(utf8.RuneError)),
	}
}

// printDeliveries prints deliveries with one row for each attempt, or passes on an error.
func (o output) printDeliveries(std streams, err error, list ...formsvc.Delivery) error {
	return table[deliveryRecord]{"DELIVERY\tEVENT\tSTATE\tATTEMPT\tSTARTED\tDURATION\tSTATUS\tERROR", deliveryRows}.
		print(o, std, err, mapped(list, newDeliveryRecord)...)
}

func deliveryRows(d deliveryRecord) string {
	event, state := string(d.Event), string(d.State)
	if d.Test {
		event += " (test)"
	}
	if !d.SendingSince.IsZero() {
		state = "sending since " + d.SendingSince.String()
	}
	rows := mapped(d.Attempts, func(a attemptRecord) string {
		took := time.Duration(a.DurationMS * float64(time.Millisecond)).Round(time.Millisecond / 10)
		return cells(d.UUID, event, state, a.Number, a.StartedAt, took, a.Status, a.Error)
	})
	if len(rows) == 0 {
		return cells(d.UUID, event, state, "", "", "", "", "")
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
