//go:build long

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The documentation page works in a browser that can reach only the server, at any address, and on a phone.
func TestDocsInBrowser(t *testing.T) {
	t.Parallel()
	browser := launchBrowser(t)
	s := newShell(t).serve(t, "--base-url", "https://forms.example.com/api")
	campaign := s.campaign(t)

	d := openDocs(t, browser, s.url, "light", 0)
	d.authorize(s.key)
	contains(t, "the reply to listCampaigns", d.try("listCampaigns").execute("200"), "Survey")
	got := d.try("createResponse").fill("uuid", campaign).execute("201")
	list := objects(t, s.do(t, "export", "--campaign", campaign, "--format", "ndjson"))
	if len(list) != 1 || !strings.Contains(got, list[0]["uuid"].(string)) {
		t.Errorf("createResponse shows %s\nthere are %v", got, list)
	}
	d.try("createCampaign").execute("201") // one call's Idempotency-Key is not reused for another call
	if got := d.eval(`[...document.querySelectorAll("[data-base]")].every((e) => e.textContent === location.origin)`); got != "true" {
		t.Error("the commands name another server")
	}
	d.keep("docs.png")
	d.audit("/docs")
	d.finish()
	phone := openDocs(t, browser, s.url, "dark", 360)
	phone.find("nothing can call you", "Events", "#follow-events")
	phone.find("transition_not", "transition_not_allowed", phone.on("updateResponse").at)
	phone.find("post campaigns/{uuid}/responses", "Create a response", phone.on("createResponse").at)
	phone.fits("/docs", 360)
	phone.samples(s.url)
	phone.audit("/docs")
	phone.finish()
}

// find searches and goes to the first result, with keys only.
func (d *docs) find(text, name, place string) {
	d.t.Helper()
	d.eval(`document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "/", bubbles: true}))`) // KeyEvent would type it, too
	d.do(chromedp.KeyEvent(text))
	got := d.eval(`[document.activeElement.id, query.value, document.getElementById(query.getAttribute("aria-activedescendant"))?.firstChild.textContent]`)
	if want := fmt.Sprintf("[%q,%q,%q]", "query", text, name); got != want {
		d.t.Fatalf("the field and the first result are %s, want %s", got, want)
	}
	d.do(chromedp.KeyEvent("\r"))
	until(d.t, "the focus isn't in "+place, func() bool {
		return d.eval(fmt.Sprintf(`results.hidden && document.activeElement.closest(%q) !== null`, place)) == "true"
	})
}

// samples chooses the language of the examples, which stays for all operations and the next visit.
func (d *docs) samples(origin string) {
	d.t.Helper()
	until(d.t, "there are no examples", func() bool { return d.eval(`document.querySelectorAll(".samples").length`) == "2" })
	d.eval(`[document.querySelector(".samples [value=Python]").click()]`)
	shown := `[...document.querySelectorAll(".samples")].map((e) => [e.querySelector(":checked").value, e.querySelector("code").textContent.match(/Client\("(.*?)"/)?.[1]])`
	want := fmt.Sprintf(`["Python",%q]`, origin)
	equal(d.t, d.eval(shown), "["+want+","+want+"]", "the examples are %s")
	d.do(chromedp.Navigate(origin + "/docs#/Files/uploadFile"))
	d.do(chromedp.Reload())
	d.wait(d.on("uploadFile").at + " .samples")
	equal(d.t, d.eval(shown), "["+want+"]", "the examples of the next visit are %s")
	d.eval(`[localStorage.clear()]`) // nothing else is stored
}

// docs is the page of the documentation.
type docs struct{ *tab }

func openDocs(t *testing.T, b lonelyBrowser, origin, scheme string, width int64) *docs {
	t.Helper()
	d := &docs{b.open(t, origin, "/docs", scheme, width)}
	d.wait(d.on("listCampaigns").at)
	return d
}

// authorize enters the key on the page.
func (d *docs) authorize(key string) {
	d.t.Helper()
	d.clickFor(".btn.authorize", ".modal-ux input")
	d.do(chromedp.SendKeys(chromedp.CSS(".modal-ux input"), key), chromedp.Click(chromedp.CSS(".modal-ux .auth.authorize")),
		chromedp.Click(chromedp.CSS(".modal-ux .btn-done")), chromedp.WaitNotPresent(chromedp.CSS(".modal-ux")))
}

// An operation is an entry of the reference.
type operation struct {
	*docs
	at string // the selector
}

// on returns an operation.
func (d *docs) on(name string) operation {
	return operation{d, `[id^="operations-"][id$="-` + name + `"]`}
}

// try opens an operation and enables its form.
func (d *docs) try(name string) operation {
	d.t.Helper()
	o := d.on(name)
	d.clickFor(o.at+" .opblock-summary-control", o.at+" .try-out__btn")
	d.clickFor(o.at+" .try-out__btn", o.at+" .execute")
	return o
}

// fill enters the value of an empty parameter.
func (o operation) fill(parameter, value string) operation {
	o.t.Helper()
	o.do(chromedp.SendKeys(chromedp.CSS(fmt.Sprintf(`%s tr[data-param-name=%q] input`, o.at, parameter)), value))
	return o
}

// execute makes the call and returns the response that the page shows.
func (o operation) execute(status string) string {
	o.t.Helper()
	o.clickFor(o.at+" .execute", o.at+" .live-responses-table .response-col_status")
	return o.answer(status)
}

// answer returns the response that the page shows, which must have the status.
func (o operation) answer(status string) string {
	o.t.Helper()
	table := o.at + " .live-responses-table"
	o.wait(table + " .response-col_status")
	got := must(chromedp.Run(o.ctx, chromedp.TextContent(chromedp.CSS(table+" .response .response-col_status"))))
	text := must(chromedp.Run(o.ctx, chromedp.TextContent(chromedp.CSS(table))))
	if strings.TrimSpace(got) != status {
		o.finish()
		o.t.Fatalf("the answer is %s, want %s: %s", got, status, text)
	}
	return text
}
