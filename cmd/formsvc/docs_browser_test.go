//go:build long

package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The documentation page works in a browser that can reach only the server, at any address: with a mouse, with a keyboard
// alone, and on a phone.
func TestDocsInBrowser(t *testing.T) {
	t.Parallel()
	browser := launchBrowser(t)
	s := start(t, databases()[0].dsn(t), "--base-url", "https://forms.example.com/api")
	c := newClient(t, s.url, s.firstKey(t))
	campaign := c.campaign(t, "Bicycle survey – Übermut")

	t.Run("mouse", func(t *testing.T) {
		d := openDocs(t, browser, s.url, "light", 0)
		d.authorize(c.key)
		if got := d.try("listCampaigns").execute("200"); !strings.Contains(got, "Bicycle survey – Übermut") {
			t.Errorf("listCampaigns shows %s", got)
		}
		got := d.try("createResponse").fill("uuid", campaign).execute("201")
		if list := c.list(t, campaign); len(list) != 1 || !strings.Contains(got, list[0].UUID) {
			t.Errorf("createResponse shows %s\nthere are %v", got, list)
		} else if got := d.try("listResponses").fill("uuid", campaign).execute("200"); !strings.Contains(got, list[0].UUID) {
			t.Errorf("listResponses shows %s", got)
		}
		d.try("createCampaign").execute("201") // one call's Idempotency-Key is not reused for another call
		if got := d.eval(`[...document.querySelectorAll("[data-base]")].every((e) => e.textContent === location.origin)`); got != "true" {
			t.Error("the commands name another server")
		}
		d.screenshot()
		d.finish()
	})

	t.Run("keyboard", func(t *testing.T) {
		d := openDocs(t, browser, s.url, "dark", 0)
		d.tabTo(".skip")
		if got := d.eval(`document.activeElement.getBoundingClientRect().left >= 0`); got != "true" {
			t.Error("the link past the contents is not to be seen")
		}
		d.press(kb.Enter)
		d.tabTo(".btn.authorize").press(kb.Enter)
		d.wait(".modal-ux")
		d.tabTo(".modal-ux input").press(c.key)
		d.tabTo(".modal-ux .auth.authorize").press(kb.Enter)
		d.tabTo(".modal-ux .btn-done").press(kb.Enter)
		o := d.on("listCampaigns")
		d.tabTo(o.at + " .opblock-summary-control").press(kb.Enter)
		d.tabTo(o.at + " .try-out__btn").press(kb.Enter)
		d.tabTo(o.at + " .execute").press(kb.Enter)
		if got := o.answer("200"); !strings.Contains(got, "Bicycle survey – Übermut") {
			t.Errorf("listCampaigns shows %s", got)
		}
		d.screenshot()
		d.finish()
	})

	t.Run("phone", func(t *testing.T) {
		const width = 360
		d := openDocs(t, browser, s.url, "light", width)
		d.fits("/docs", width)
		d.authorize(c.key)
		d.try("listCampaigns").execute("200")
		for _, operation := range []string{"uploadFile", "exportResponsesAsCsv"} {
			d.try(operation)
		}
		d.fits("/docs", width)
		d.screenshot()
		d.finish()
	})
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
	got, err := chromedp.Run(o.ctx, chromedp.TextContent(chromedp.CSS(table+" .response .response-col_status")))
	if err != nil {
		o.t.Fatal(err)
	}
	text, err := chromedp.Run(o.ctx, chromedp.TextContent(chromedp.CSS(table)))
	if err != nil {
		o.t.Fatal(err)
	}
	if strings.TrimSpace(got) != status {
		o.finish()
		o.t.Fatalf("the answer is %s, want %s: %s", got, status, text)
	}
	return text
}
