//go:build long

package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// F5: two accounts have a hundred endpoints that never respond, each with a large backlog. A third account's deliveries
// still arrive. No attempt at a hanging endpoint ends during the test, so a delivery that waited for one would never
// arrive.
func TestHangingEndpointsDontDelayOtherAccounts(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn, "--webhook-timeout", "10m")
		quiet := newClient(t, s.url, s.firstKey(t))
		r := receiver(t)
		hook(t, dsn, r.URL(), "response.created")
		campaign := quiet.campaign(t, "Quiet")

		end := make(chan struct{})
		var hanging atomic.Int64
		never := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			hanging.Add(1)
			<-end
		}))
		t.Cleanup(never.Close)
		t.Cleanup(func() { close(end) })
		for n := range 2 {
			account := fmt.Sprintf("noisy %d", n)
			manage(t, dsn, "accounts", "create", account)
			key := strings.TrimSpace(manage(t, dsn, "keys", "create", "--account", account, "--name", "k", "--permissions", "all"))
			noisy := newClient(t, s.url, key)
			for i := range 50 {
				noisy.want(t, http.StatusCreated, http.MethodPost, "/v1/webhooks", map[string]any{
					"url": fmt.Sprintf("%s/%d/%d", never.URL, n, i), "events": []string{"response.created"},
				}, nil)
			}
			loud := noisy.campaign(t, "Noisy")
			for range 20 {
				noisy.submit(t, loud, "noise")
			}
		}
		eventually(t, "endpoints hang", func() bool { return hanging.Load() > 20 })
		const n = 50
		for range n {
			quiet.submit(t, campaign, "quiet")
		}
		arrivals(t, r, n)
	})
}
