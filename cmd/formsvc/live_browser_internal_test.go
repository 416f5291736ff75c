//go:build long

package main

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"
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
	if got := p.eval(`document.querySelector(".scroll").scrollLeft`); got != "150" {
		t.Errorf("the table moved to %s", got)
	}
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
