//go:build long

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// Somebody who never saw curl makes a form, shares it, and gets an answer in the console and at a webhook. On the way
// every page passes axe.
func TestFormWithoutCode(t *testing.T) {
	t.Parallel()
	browser, s, receiver := launchBrowser(t), newShell(t).serve(t), receive(t)
	p := &person{tab: browser.open(t, s.url, "/console/", "light", 0), service: s}
	p.signsIn()

	p.clicks("a", "Create your first form")
	p.sees("New campaign")
	p.types("#title", "Workshop")
	p.types(`[id="label.0"]`, "What do you want to learn?")
	p.do(chromedp.Click(chromedp.CSS(`.adds [value="add.choice"]`)))
	p.until(`document.activeElement.id === "label.1" && !document.querySelector("#question-0 > details").open`)
	p.do(chromedp.Click(chromedp.CSS(`#question-1 [value="up.1"]`)))
	p.until(`document.activeElement.value === "down.0" || document.activeElement.matches("#question-0 summary")`)
	p.until(`document.getElementById("said").textContent === "“New question” is question 1 of 2."`)
	p.do(chromedp.Click(chromedp.CSS(`#question-0 [value="down.0"]`)))
	p.until(`document.activeElement.value === "up.1" || document.activeElement.matches("#question-1 summary")`)
	p.types(`[id="label.1"]`, "Which day?")
	p.types(`[id="options.1"]`, "Monday\nTuesday")
	p.until(`document.querySelector("iframe").contentDocument?.querySelector("h1")?.textContent === "Workshop"`)
	p.audit("editor")
	p.clicks("button", "Create campaign")
	p.sees("Share")
	p.clicks("button", "Publish the form")
	p.says("The form's address")
	p.audit("share")
	var address string
	noError(t, json.Unmarshal([]byte(p.eval(`document.querySelector("pre.copy").textContent`)), &address))
	campaign := strings.TrimSuffix(strings.TrimPrefix(p.eval(`location.pathname`), `"/console`), `/share"`)

	p.opens("/webhooks/new", "Add webhook")
	p.types("#url", receiver.URL())
	p.types("#secret", testSecret)
	p.clicks("button", "Add webhook")
	p.sees("Webhook added")

	visitor := &person{tab: browser.open(t, s.url, strings.TrimPrefix(address, s.url), "light", 390), service: s}
	visitor.sees("Workshop")
	visitor.audit("form")
	visitor.types("[name=email]", "ada@example.com")
	visitor.types("[name=what_do_you_want_to_learn]", "Go")
	visitor.do(chromedp.Click(chromedp.CSS(`[value="Tuesday"]`)), chromedp.Sleep(2100*time.Millisecond)) // faster is a bot
	visitor.clicks("button", "Send")
	visitor.until(`location.pathname.endsWith("/thanks")`)
	visitor.audit("thanks")
	visitor.finish()

	got := string(arrived(t, receiver, 1)[0].Delivery.Body)
	contains(t, "the webhook", got, `"response.created"`, `"what_do_you_want_to_learn":{"value":["Go"]}`, `"which_day":{"value":["Tuesday"]}`)
	p.opens(campaign, "Workshop")
	p.says("Tuesday")
	p.says("ada@example.com")
	p.finish()
}
