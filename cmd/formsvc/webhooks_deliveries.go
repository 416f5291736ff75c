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
		Number: a.Number, StartedAt: stamp{a.StartedAt}, DurationMS: milliseconds(a.Duration),
		Status: orNull(a.Status), Error: orNull(a.Error), Answer: strings.ToValidUTF8(string(a.Answer), string(utf8.RuneError)),
	}
}

const deliveryHeader = "DELIVERY\tEVENT\tSTATE\tATTEMPT\tSTARTED\tDURATION\tSTATUS\tERROR"

// deliveryLine returns one row for each attempt, or one row for a delivery without attempts.
func deliveryLine(d deliveryRecord) string {
	event := string(d.Event)
	if d.Test {
		event += " (test)"
	}
	state := string(d.State)
	if !d.SendingSince.IsZero() {
		state = "sending since " + d.SendingSince.String()
	}
	begin := fmt.Sprintf("%s\t%s\t%s\t", d.UUID, event, state)
	if len(d.Attempts) == 0 {
		return begin + "-\t-\t-\t-\t-"
	}
	return begin + strings.Join(mapped(d.Attempts, attemptColumns), "\n"+begin)
}

func attemptColumns(a attemptRecord) string {
	status, class := "-", "-"
	if a.Status != nil {
		status = fmt.Sprint(*a.Status)
	}
	if a.Error != nil {
		class = *a.Error
	}
	took := time.Duration(a.DurationMS * float64(time.Millisecond)).Round(time.Millisecond / 10)
	return fmt.Sprintf("%d\t%s\t%s\t%s\t%s", a.Number, a.StartedAt, took, status, class)
}

func (o output) printDeliveries(std streams, list ...formsvc.Delivery) error {
	return records(o, std.out, deliveryHeader, mapped(list, newDeliveryRecord), deliveryLine)
}

type webhookDeliveriesCmd struct {
	oneWebhook
	output
	State string `enum:",pending,delivered,failed" default:"" help:"Only deliveries in this state: pending, delivered or failed."`
	Limit int    `default:"50" help:"List at most this many deliveries, 1 to 1000."`
}

// Run lists deliveries with their attempts.
func (c *webhookDeliveriesCmd) Run(ctx context.Context, g *global, std streams) error {
	if c.Limit < 1 || c.Limit > formsvc.MaxLimit {
		return usageError{fmt.Errorf("--limit: must be between 1 and %d", formsvc.MaxLimit)}
	}
	return c.hook(ctx, g, func(svc *formsvc.Service, key formsvc.WebhookKey) error {
		page, err := svc.Deliveries.List(ctx, formsvc.DeliveryQuery{
			AccountID: key.AccountID, WebhookID: key.ID, State: formsvc.DeliveryState(c.State),
			Page: formsvc.PageQuery{Limit: c.Limit},
		})
		if err != nil {
			return err
		}
		if page.More {
			_, _ = fmt.Fprintf(std.err, "Showing the newest %d of %d.\n", len(page.Items), page.Total)
		}
		return c.printDeliveries(std, page.Items...)
	})
}

type webhookRedeliverCmd struct {
	inAccount
	output
	UUID  string `arg:"" name:"uuid" help:"UUID of a delivery; with --since, of a webhook."`
	Since string `placeholder:"T" help:"Send every delivery of the webhook again that has permanently failed since then: a time such as 2026-11-21T08:30:00Z, or how long ago, such as 2h."`
}

// Run sends one delivery again, or the failed ones of a webhook.
func (c *webhookRedeliverCmd) Run(ctx context.Context, g *global, std streams) error {
	uuid, err := parseID(c.UUID)
	if err != nil {
		return err
	}
	if c.Since == "" {
		return c.one(ctx, g, std, uuid)
	}
	since, err := parseSince(c.Since, time.Now())
	if err != nil {
		return usageError{fmt.Errorf("--since: %w", err)}
	}
	return c.failed(ctx, g, std, uuid, since)
}

// parseSince parses a time, or a duration before now.
func parseSince(s string, now time.Time) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if ago, durationErr := time.ParseDuration(s); durationErr == nil {
		t, err = now.Add(-ago), nil
	}
	switch {
	case err != nil:
		return t, fmt.Errorf("%q is neither a time such as 2026-11-21T08:30:00Z nor a duration such as 2h", s)
	case t.After(now):
		return t, fmt.Errorf("%s is in the future", t.UTC().Format(time.RFC3339))
	}
	return t, nil
}

func (c *webhookRedeliverCmd) one(ctx context.Context, g *global, std streams, uuid formsvc.ID) error {
	return c.with(ctx, g, func(svc *formsvc.Service, id formsvc.ID) error {
		d, err := svc.Deliveries.Redeliver(ctx, formsvc.DeliveryKey{AccountID: id, ID: uuid})
		switch {
		case errors.Is(err, formsvc.ErrConflict):
			return fmt.Errorf("an attempt of delivery %s is in progress; try again when it has ended", uuid)
		case errors.Is(err, formsvc.ErrNotFound):
			if _, err := svc.Webhooks.Get(ctx, formsvc.WebhookKey{AccountID: id, ID: uuid}); err == nil {
				return usageError{fmt.Errorf("%s is a webhook; add --since to send its failed deliveries again", uuid)}
			}
			return fmt.Errorf("account %q has no delivery %s", c.Account, uuid)
		case err != nil:
			return err
		}
		return c.printDeliveries(std, d)
	})
}

func (c *webhookRedeliverCmd) failed(ctx context.Context, g *global, std streams, uuid formsvc.ID, since time.Time) error {
	return c.with(ctx, g, func(svc *formsvc.Service, id formsvc.ID) error {
		n, err := svc.Deliveries.RedeliverFailed(ctx, formsvc.WebhookKey{AccountID: id, ID: uuid}, since)
		switch {
		case errors.Is(err, formsvc.ErrNotFound):
			if _, err := svc.Deliveries.Get(ctx, formsvc.DeliveryKey{AccountID: id, ID: uuid}); err == nil {
				return usageError{fmt.Errorf("%s is a delivery; --since needs a webhook", uuid)}
			}
			return fmt.Errorf("account %q has no webhook %s", c.Account, uuid)
		case err != nil && n > 0:
			return fmt.Errorf("%d deliveries are sent again, but not all: %w", n, err)
		case err != nil:
			return err
		}
		if c.JSON {
			type redelivered struct {
				Redelivered int `json:"redelivered"`
			}
			return records(c.output, std.out, "", []redelivered{{n}}, nil)
		}
		_, err = fmt.Fprintf(std.out, "%d\n", n)
		_, _ = fmt.Fprintln(std.err, "Deliveries are sent again, 50 per second.")
		return err
	})
}
