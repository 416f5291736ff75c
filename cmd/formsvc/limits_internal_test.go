//go:build long

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// post sends a form as a browser does, and returns the reply.
func (s *service) post(ctx context.Context, path string, form url.Values) (answer, error) {
	direct := &service{url: s.url, client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	return direct.ask(ctx, http.MethodPost, path, []byte(form.Encode()), "Content-Type: application/x-www-form-urlencoded", "Accept: text/html")
}

// A thousand visitors send a form with a hundred places to two nodes, or to one on SQLite: exactly a hundred get one.
func TestThousandVisitorsForHundredPlaces(t *testing.T) {
	for name, s := range map[string]*shell{"sqlite": newShell(t), "postgres": onPostgres(t)} {
		t.Run(name, func(t *testing.T) {
			const places, visitors, at = 100, 1000, 40
			nodes := []*service{s.spawn(t, "--forms-per-visitor", "0")}
			if name == "postgres" {
				nodes = append(nodes, s.spawn(t, "--forms-per-visitor", "0"))
			}
			size := map[string]any{"name": "size", "type": "choice", "options": []string{"s", "m"}, "places": map[string]int{"s": at}}
			campaign, path := nodes[0].published(t, map[string]any{"maxResponses": places}, size)
			var got [2]atomic.Int64
			var wait sync.WaitGroup
			gate := make(chan bool, 50)
			for i := range visitors {
				gate <- true
				wait.Go(func() {
					defer func() { <-gate }()
					choice := []string{"s", "m"}[i%2]
					a, err := nodes[i%len(nodes)].post(t.Context(), path, url.Values{"email": {fmt.Sprintf("v%d@example.com", i)}, "size": {choice}})
					switch {
					case err != nil:
						t.Error(err)
					case a.status == http.StatusSeeOther:
						got[i%2].Add(1)
					case a.status != http.StatusConflict || !strings.Contains(a.body, fmt.Sprintf(`value="v%d@example.com"`, i)):
						t.Errorf("status %d: %.300s", a.status, a.body)
					}
				})
			}
			wait.Wait()
			if s, m := got[0].Load(), got[1].Load(); s != at || s+m != places {
				t.Errorf("%d and %d visitors got a place, want %d, and %d together", s, m, at, places)
			}
			list := objects(t, nodes[0].get(t, responses(campaign)+"?limit=1").body)[0]
			if list["total"] != float64(places) {
				t.Errorf("%v responses", list["total"])
			}
			if a := nodes[0].get(t, path); a.status != http.StatusConflict || !strings.Contains(a.body, "All places are taken") {
				t.Errorf("the full form: %d %.300s", a.status, a.body)
			}
			first := list["items"].([]any)[0].(map[string]any)["uuid"].(string)
			nodes[0].call(t, http.StatusNoContent, http.MethodDelete, responses(campaign)+"/"+first, nil)
			for _, want := range []int{http.StatusSeeOther, http.StatusConflict} {
				a, err := nodes[len(nodes)-1].post(t.Context(), path, url.Values{"email": {"late@example.com"}, "size": {"m"}})
				if err != nil || a.status != want {
					t.Errorf("after a place became free: %d, want %d (%v)", a.status, want, err)
				}
			}
		})
	}
}
