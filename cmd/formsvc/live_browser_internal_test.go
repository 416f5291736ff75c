//go:build long

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// An open table shows new responses in the browser's time zone, without moving, in more tabs than a browser has connections.
func TestLiveTableInBrowser(t *testing.T) {
	t.Parallel()
	browser, s := launchBrowser(t), newShell(t).serve(t)
	p := &person{tab: browser.open(t, s.url, "/console/", "light", 600), service: s}
	called(p.tab, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Pacific/Auckland"})
	p.signsIn()
	one := *s
	one.key = p.generatesKey()
	var modules []map[string]string
	answers := map[string]any{}
	for i := range 4 {
		name := fmt.Sprintf("A question with a long name, number %d", i)
		modules = append(modules, map[string]string{"name": name})
		answers[name] = map[string]any{"value": []string{"An answer that takes some room"}}
	}
	campaign := one.made(t, "/v1/campaigns", map[string]any{"title": "Live", "modules": modules})
	respond := func(name string) {
		one.made(t, responses(campaign), map[string]any{"user": map[string]string{"email": "a@example.com", "firstName": name}, "responses": answers})
	}
	respond("Ada")
	p.opens("/campaigns/"+campaign, "Live")
	p.says("Times are in Pacific/Auckland")
	p.says("1 response,")
	p.eval(`document.querySelector(".scroll").scrollLeft = 150`)
	respond("Grace")
	p.says("Grace")
	p.says("2 responses,")
	equal(t, p.eval(`document.querySelector(".scroll").scrollLeft`), "150", "the table moved to %s")
	p.keep("live.png")
	people := []*person{p}
	for range 7 {
		other := &person{tab: browser.open(t, s.url, "/console/campaigns/"+campaign, "light", 0), service: s}
		other.sees("Live")
		people = append(people, other)
	}
	respond("Mary")
	for _, other := range people {
		other.says("Mary")
		other.finish()
	}
	people[7].keep("live-wide.png")
}

// Tabs share one stream, come back after an error page, and say that live updates are off behind a proxy that can't send parts.
func TestLiveStreamsInBrowser(t *testing.T) {
	t.Parallel()
	browser, s := launchBrowser(t), newShell(t).serve(t)
	to := must(url.Parse(s.url))
	proxy := httputil.NewSingleHostReverseProxy(to)
	var broken, whole atomic.Bool
	var open, most, refused atomic.Int32
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		live := strings.HasSuffix(r.URL.Path, "/live")
		switch {
		case live && broken.Load():
			refused.Add(1)
			w.WriteHeader(http.StatusBadGateway)
			return
		case live && whole.Load():
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprint(w, "retry: 30000\nevent: off\ndata: off\n\n")
			return
		case live && !r.URL.Query().Has("once"):
			n := open.Add(1)
			defer open.Add(-1)
			most.Store(max(most.Load(), n))
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	p := &person{tab: browser.open(t, front.URL, "/console/", "light", 0), service: s}
	p.do(chromedp.Navigate(strings.Replace(strings.TrimSpace(s.do(t, "console-link")), s.url, front.URL, 1)))
	p.clicks("button", "Sign in")
	p.sees("Overview")
	p.forgetConsole()
	one := *s
	one.key = p.generatesKey()
	campaign := one.made(t, "/v1/campaigns", map[string]any{"title": "Live"})
	respond := func(name string) {
		one.made(t, responses(campaign), map[string]any{"user": map[string]string{"email": "a@example.com", "firstName": name}, "responses": map[string]any{}})
	}
	var people []*person
	for range 4 {
		other := &person{tab: browser.open(t, front.URL, "/console/campaigns/"+campaign, "light", 0), service: s}
		other.sees("Live")
		people = append(people, other)
	}
	respond("Ada")
	for _, other := range people {
		other.says("Ada")
	}
	if n := most.Load(); n > 2 { // while one takes over from another
		t.Errorf("%d streams at once", n)
	}
	broken.Store(true)
	until(t, "the stream never ends", func() bool { return refused.Load() > 4 })
	respond("Grace")
	broken.Store(false)
	for _, other := range people {
		other.says("Grace")
	}
	whole.Store(true)
	people[0].do(chromedp.Reload())
	people[0].says("Live updates are off")
}
