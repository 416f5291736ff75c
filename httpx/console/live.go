package console

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// Limits of the streams that tell open pages about changes.
const (
	liveEvery   = time.Second      // between looks
	liveFor     = 20 * time.Second // after that the browser connects again
	accountLive = 30               // streams of an account at once; further pages ask every livePoll
	maxLive     = 2000             // streams in all
	livePoll    = 5 * time.Second
	liveOff     = 30 * time.Second // between requests if replies can't be sent in parts
	liveEntries = 25               // deliveries, or events, that are compared
)

// Close ends the streams of open pages, which would otherwise keep a server from shutting down for 20 seconds. Pages still work.
func (h *Handler) Close() { h.closeOnce.Do(func() { close(h.closed) }) }

// A look returns what there is now, and whether it concerns the page that has seen since.
type look func(since string) (now string, changed bool, err error)

// streams counts the open streams.
type streams struct {
	mu  sync.Mutex
	all int
	of  map[formsvc.ID]int
}

// add counts a stream of an account for n of 1 unless there are too many, and its end for -1.
func (s *streams) add(account formsvc.ID, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > 0 && (s.all >= maxLive || s.of[account] >= accountLive) {
		return false
	}
	s.all += n
	if s.of[account] += n; s.of[account] == 0 {
		delete(s.of, account)
	}
	return true
}

// seenEvents returns the newest event of the account.
func (v *visit) seenEvents() (string, error) {
	events, err := v.svc.Events.Recent(v.ctx(), formsvc.RecentQuery{AccountID: v.account(), Limit: 1})
	if err != nil || len(events) == 0 {
		return "", err
	}
	return string(events[0].ID), nil
}

// liveCampaign tells the page of a campaign about events of its responses. What a look costs doesn't depend on how many events there are.
func (v *visit) liveCampaign() error {
	return v.live(func(since string) (now string, changed bool, err error) {
		now, err = v.seenEvents()
		if err != nil || now == since {
			return now, false, err
		}
		events, err := v.svc.Events.Recent(v.ctx(), formsvc.RecentQuery{AccountID: v.account(), Limit: liveEntries})
		for _, e := range events {
			if string(e.ID) == since {
				return now, changed, err
			}
			changed = changed || e.CampaignID == v.campaign.ID
		}
		return now, changed || len(events) == liveEntries, err // there may be others in between
	})
}

// liveWebhook tells the page of a webhook about the states of its newest deliveries.
func (v *visit) liveWebhook() error {
	key := v.webhookKey()
	if _, err := v.svc.Webhooks.Get(v.ctx(), key); err != nil {
		return err
	}
	return v.live(func(since string) (now string, changed bool, err error) {
		now, err = v.seenDeliveries(key)
		return now, now != since, err
	})
}

// seenDeliveries returns a hash of the states of the newest deliveries of a webhook.
func (v *visit) seenDeliveries(key formsvc.WebhookKey) (string, error) {
	list, err := v.svc.Deliveries.List(v.ctx(), formsvc.DeliveryQuery{
		AccountID: key.AccountID, WebhookID: key.ID, Page: formsvc.PageQuery{Limit: liveEntries}, NoTotal: true,
	})
	states := ""
	for i := range list.Items {
		states += fmt.Sprintln(list.Items[i].ID, list.Items[i].State, list.Items[i].Attempts)
	}
	return hash(states), err
}

// live sends a server-sent event for each change since the one that the page knows: its identifier, or what the page was made from.
func (v *visit) live(look look) error {
	v.slot.Release()
	since, known := v.r.Header.Get("Last-Event-ID"), v.r.URL.Query().Has("since")
	if since == "" {
		since = v.query("since")
	}
	if since == "" && !known {
		var err error
		if since, _, err = look(""); err != nil {
			return err
		}
	}
	header := v.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no")
	switch err := http.NewResponseController(v.w).Flush(); {
	case errors.Is(err, http.ErrNotSupported):
		v.stream(look, since, fmt.Sprintf("retry: %d\nevent: off\ndata: off\n", liveOff.Milliseconds()), true)
	case err != nil: // the browser has disconnected
	case v.query("once") != "" || !v.h.streams.add(v.account(), 1):
		v.stream(look, since, fmt.Sprintf("retry: %d\n", livePoll.Milliseconds()), true)
	default:
		defer v.h.streams.add(v.account(), -1)
		v.stream(look, since, "retry: 1000\n\n", false)
	}
	return nil
}

// stream sends a message and changes until the stream ends: at once for one that the browser begins again after the time in the message.
func (v *visit) stream(look look, since, message string, once bool) {
	tick, end := time.NewTicker(liveEvery), time.After(liveFor)
	defer tick.Stop()
	for {
		now, changed, err := look(since)
		if err == nil {
			since = now
		}
		if once {
			message += "id: " + since + "\n\n"
		}
		if changed && err == nil {
			message += "data: changed\nid: " + since + "\n\n"
		}
		if message != "" {
			_, err := v.w.Write([]byte(message))
			if once || err != nil || http.NewResponseController(v.w).Flush() != nil {
				return // the browser has disconnected, or asks again
			}
		}
		message = ""
		select {
		case <-v.ctx().Done():
			return
		case <-v.h.closed:
			return
		case <-end:
			return
		case <-tick.C:
		}
		if v.still() != nil {
			return // the next request is refused
		}
	}
}
