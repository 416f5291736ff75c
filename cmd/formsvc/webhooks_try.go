package main

import (
	"context"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

const (
	testPatience = 35 * time.Second // an attempt takes up to 30 by default, an idle server begins within a second
	testPoll     = 200 * time.Millisecond
)

type webhookTestCmd struct {
	oneWebhook
	Wait bool `default:"true" negatable:"" help:"Wait for the result, up to 35 seconds. The exit status is 1 unless the test event arrived."`
}

// Run sends a test event through a server that runs on the database.
func (c *webhookTestCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.hook(ctx, g, need{}, func(svc *formsvc.Service, key formsvc.WebhookKey) error {
		sent, err := svc.Webhooks.Test(ctx, key)
		d := sent
		if err == nil && c.Wait {
			d, err = await(ctx, svc, sent)
		}
		if err := c.printDeliveries(std, err, d); err != nil || !c.Wait {
			return err
		}
		return judge(&d, std)
	})
}

// await waits until the delivery is done or waiting is pointless, and returns its current state.
func await(ctx context.Context, svc *formsvc.Service, d formsvc.Delivery) (formsvc.Delivery, error) {
	for begin := time.Now(); d.State == formsvc.DeliveryPending && time.Since(begin) < testPatience; {
		if !sleep(ctx, testPoll) {
			return d, ctx.Err()
		}
		var err error
		if d, err = svc.Deliveries.Get(ctx, formsvc.DeliveryKey{AccountID: d.AccountID, ID: d.ID}); err != nil {
			return d, err
		}
	}
	return d, nil
}

// judge prints the result of the test. It returns nil only if the event arrived.
func judge(d *formsvc.Delivery, std streams) error {
	switch {
	case d.State == formsvc.DeliveryDelivered:
		std.note("The test event arrived.")
		return nil
	case d.State == formsvc.DeliveryPending:
		std.note("No server sent the test event within %v: none seems to run on this database, or all are busy.\n"+
			"It is sent later; \"formsvc webhooks deliveries\" shows its result.", testPatience)
	case len(d.Log) > 0:
		last := d.Log[len(d.Log)-1]
		std.note("The test event did not arrive: status %d, %s, response %.200q", last.Status, last.Error, last.Answer)
	}
	return errSilent
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
