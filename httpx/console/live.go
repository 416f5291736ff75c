package console

import (
	"fmt"
	"net/http"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// Limits of the streams that tell open pages about changes.
const (
	liveEvery   = time.Second      // between looks
	liveFor     = 20 * time.Second // after that the browser connects again
	maxLive     = 200              // streams at once
	liveEntries = 25               // deliveries that are compared
)

// Close ends the streams of open pages, which would otherwise keep a server from shutting down for 20 seconds. Pages still work.
func (h *Handler) Close() { h.closeOnce.Do(func() { close(h.closed) }) }

// liveCampaign tells the page of a campaign about events of its responses.
func (v *visit) liveCampaign() error {
	return v.live(func() (string, error) {
		events, err := v.svc.Events.Recent(v.ctx(), formsvc.RecentQuery{AccountID: v.account(), CampaignID: v.campaign.ID, Limit: 1})
		if err != nil || len(events) == 0 {
			return "", err
		}
		return string(events[0].ID), nil
	})
}

// liveWebhook tells the page of a webhook about the states of its newest deliveries.
func (v *visit) liveWebhook() error {
	key := v.webhookKey()
	if _, err := v.svc.Webhooks.Get(v.ctx(), key); err != nil {
		return err
	}
	return v.live(func() (string, error) {
		list, err := v.svc.Deliveries.List(v.ctx(), formsvc.DeliveryQuery{
			AccountID: key.AccountID, WebhookID: key.ID, Page: formsvc.PageQuery{Limit: liveEntries}, NoTotal: true,
		})
		states := ""
		for i := range list.Items {
			states += fmt.Sprint(list.Items[i].ID, list.Items[i].State, list.Items[i].Attempts)
		}
		return states, err
	})
}

// live sends a server-sent event whenever look returns something else.
func (v *visit) live(look func() (string, error)) error {
	if v.h.streams.Add(1) > maxLive {
		v.h.streams.Add(-1)
		return formsvc.ErrUnavailable
	}
	defer v.h.streams.Add(-1)
	last, err := look()
	if err != nil {
		return err
	}
	header, out := v.w.Header(), http.NewResponseController(v.w)
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no")
	message := "retry: 1000\n\n"
	tick, end := time.NewTicker(liveEvery), time.After(liveFor)
	defer tick.Stop()
	for {
		if message != "" {
			if _, err := v.w.Write([]byte(message)); err != nil || out.Flush() != nil {
				return nil // the browser has disconnected
			}
		}
		select {
		case <-v.ctx().Done():
			return nil
		case <-v.h.closed:
			return nil
		case <-end:
			return nil
		case <-tick.C:
		}
		message = ""
		if next, err := look(); err == nil && next != last {
			last, message = next, "data: changed\n\n"
		}
	}
}
