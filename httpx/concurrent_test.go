package httpx_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// E9: of concurrent changes based on the same version, one succeeds and the others get a conflict.
func TestConcurrentChangesConflict(t *testing.T) {
	const clients = 8
	onEveryStore(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		response := w.response(campaign)
		hook := "/v1/webhooks/" + w.do("POST", "/v1/webhooks", hookBody("at-once")).is(201, "").text("uuid")
		for _, row := range []struct{ method, path, body string }{
			{"PATCH", response, `{"user":{"firstName":"client %d"}}`},
			{"PUT", campaign, `{"title":"client %d"}`},
			{"PUT", hook, `{"url":"https://example.com/%d","events":["response.created"]}`},
		} {
			tag := w.do("GET", row.path, "").is(200, "").header.Get("Etag")
			answers := make([]*httptest.ResponseRecorder, clients)
			var all sync.WaitGroup
			for i := range clients {
				r := w.request(row.method, row.path, fmt.Sprintf(row.body, i), header("If-Match", tag))
				answers[i] = httptest.NewRecorder()
				all.Go(func() { w.api.ServeHTTP(answers[i], r) })
			}
			all.Wait()
			var statuses []int
			var made string
			for _, a := range answers {
				statuses = append(statuses, a.Code)
				if a.Code == 200 {
					made = a.Body.String()
				}
			}
			slices.Sort(statuses)
			if want := append([]int{200}, slices.Repeat([]int{412}, clients-1)...); !slices.Equal(statuses, want) {
				t.Errorf("%s %s: %v, want %v", row.method, row.path, statuses, want)
			}
			if got := w.do("GET", row.path, "").is(200, "").body; got != made {
				t.Errorf("%s is\n%s\nwant what was answered\n%s", row.path, got, made)
			}
		}
	})
}
