package main

import (
	"context"
	"fmt"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// Time limits of "webhooks test".
const (
	testPatience = 35 * time.Second // an attempt takes 30 by default
	testTaken    = 10 * time.Second // an idle server takes a delivery within a second
	testPoll     = 200 * time.Millisecond
)

type webhookTestCmd struct {
	oneWebhook
	output
	Wait bool `default:"true" negatable:"" help:"Wait for the result, up to 35 seconds, or 10 if no server takes it. The exit status is 1 unless the test event arrived."`
}

// Run sends a test event through a server that runs on the database.
func (c *webhookTestCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.hook(ctx, g, func(svc *formsvc.Service, key formsvc.WebhookKey) error {
		sent, err := svc.Webhooks.Test(ctx, key)
		if err != nil {
			return err
		}
		if !c.Wait {
			return c.printDeliveries(std, sent)
		}
		d, err := await(ctx, svc, sent)
		if err != nil {
			return err
		}
		if err := c.printDeliveries(std, d); err != nil {
			return err
		}
		return judge(&sent, &d, std)
	})
}

// await waits until the delivery is done or waiting is pointless, and returns its current state.
func await(ctx context.Context, svc *formsvc.Service, sent formsvc.Delivery) (formsvc.Delivery, error) {
	begin, d := time.Now(), sent
	for d.State == formsvc.DeliveryPending {
		if waited := time.Since(begin); waited > testPatience || waited > testTaken && !taken(&sent, &d) {
			break
		}
		if !sleep(ctx, testPoll) {
			return d, ctx.Err()
		}
		now, err := svc.Deliveries.Get(ctx, formsvc.DeliveryKey{AccountID: sent.AccountID, ID: sent.ID})
		if err != nil {
			return d, err
		}
		d = now
	}
	return d, nil
}

// taken reports whether a server has begun with a delivery: that moves its due time to the end of the lease.
func taken(sent, now *formsvc.Delivery) bool {
	return now.Attempts > sent.Attempts || !now.DueAt.Equal(sent.DueAt)
}

// judge prints the result of the test. It returns nil only if the event arrived.
func judge(sent, d *formsvc.Delivery, std streams) error {
	switch {
	case d.State == formsvc.DeliveryDelivered:
		_, _ = fmt.Fprintln(std.err, "The test event arrived.")
		return nil
	case d.State == formsvc.DeliveryFailed:
		_, _ = fmt.Fprintln(std.err, "The test event did not arrive:", outcome(d))
	case taken(sent, d):
		_, _ = fmt.Fprintln(std.err, "The attempt is still in progress; \"formsvc webhooks deliveries\" shows its result.")
	default:
		_, _ = fmt.Fprintf(std.err, "No server took the test event within %v: none seems to run on this database, or all are "+
			"busy. It is sent when a server takes it.\n", testTaken)
	}
	return errSilent
}

// outcome describes the last attempt and the beginning of its response.
func outcome(d *formsvc.Delivery) string {
	if len(d.Log) == 0 {
		return "no attempt is recorded"
	}
	last := d.Log[len(d.Log)-1]
	if last.Status == 0 {
		return last.Error
	}
	text := fmt.Sprintf("the receiver returned status %d", last.Status)
	if n := min(len(last.Answer), 200); n > 0 {
		text += fmt.Sprintf(" and %q", last.Answer[:n])
	}
	return text
}

// sleep returns after d or when ctx ends. It reports whether ctx is still active.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
