//go:build long

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// The snippets of the share page work as they are copied into an empty page of another origin: a stranger sends each of them.
func TestSnippetsOnAnotherSite(t *testing.T) {
	t.Parallel()
	browser, s := launchBrowser(t), newShell(t).serve(t)
	var pasted atomic.Value
	pasted.Store("")
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html") // without a character set
		_, _ = fmt.Fprintf(w, "<!doctype html><title>Shop</title><link rel=icon href=data:,><main>%s</main>", pasted.Load())
	}))
	t.Cleanup(site.Close)

	const hostile = `x"><img src=y onerror=alert(1)>`
	id := s.made(t, "/v1/campaigns", map[string]any{"title": `Say "hi"`, "requireEmail": false, "form": map[string]any{"enabled": true}, "modules": []map[string]any{
		{"name": hostile + "ß", "label": "Größe", "type": "text", "required": true}, {"name": "elements", "type": "boolean"}, {"name": "parentNode", "type": "file"},
		{"name": "more", "type": "longtext", "showIf": map[string]any{"module": "elements", "equals": []string{"true"}}},
	}})
	p := &person{tab: browser.open(t, s.url, "/console/", "light", 0), service: s}
	p.signsIn()
	p.opens("/campaigns/"+id+"/share", "Share")
	p.clicks("summary", "In a page of your own")
	p.types("#site", site.URL+"/contact?x#y")
	p.clicks("button", "Allow this site")
	p.says("The site may embed the form now.")
	p.audit("share")
	p.keep("share.png")
	snippet := func(name string) (text string) {
		t.Helper()
		if err := json.Unmarshal([]byte(p.eval(fmt.Sprintf(`document.querySelector('pre[aria-label="%s"]').textContent`, name))), &text); err != nil || text == "" {
			t.Fatal(name, err)
		}
		return text
	}
	open := func(text string) *person {
		t.Helper()
		pasted.Store(text)
		return &person{tab: browser.open(t, site.URL, "/", "light", 0), service: s}
	}
	arrive := func(n int, value string) {
		t.Helper()
		until(t, "no response comes", func() bool {
			return strings.Count(s.call(t, http.StatusOK, http.MethodGet, responses(id), nil), `"reference"`) >= n
		})
		contains(t, "the response", s.call(t, http.StatusOK, http.MethodGet, responses(id)+"?limit=1", nil), `"status":"pending"`, value)
	}

	visitor := open(snippet("HTML form"))
	visitor.keep("form.png")
	visitor.types("input[required]", "by a form, Größe")
	visitor.do(chromedp.Click(chromedp.CSS(`[name=elements][value=true]`)))
	visitor.types("textarea", "one\ntwo")
	visitor.do(chromedp.Click(chromedp.CSS("button")))
	visitor.until(`location.pathname.endsWith("/thanks")`)
	arrive(1, "by a form, Größe")

	visitor = open(snippet("HTML form with a script"))
	visitor.types("input[required]", "by a script")
	visitor.do(chromedp.Click(chromedp.CSS("button")))
	visitor.until(`/Your reference is \w+/.test(document.querySelector("[role=status]").textContent) && !document.querySelector("form")`)
	arrive(2, "by a script")

	visitor = open(snippet("Embed the form") + `<p>below</p>`)
	visitor.until(`document.querySelector("iframe").height > 701`)
	equal(t, visitor.eval(`[document.querySelector("iframe").title, document.querySelectorAll("img").length]`), `["Say \"hi\"",0]`, "the frame is %s")
	visitor.keep("frame.png")
	high := visitor.eval(`document.querySelector("iframe").height`)
	for _, forged := range []string{`1e9`, `-1`, `"5"`, `NaN`, `Infinity`} { // from the page itself
		visitor.eval(`(postMessage({ formHeight: ` + forged + ` }, "*"), 1)`)
	}
	visitor.eval(`(document.querySelector("iframe").focus(), 1)`)
	visitor.do(chromedp.KeyEvent("\t\t\t\t"), chromedp.KeyEvent("by a frame"), chromedp.Sleep(2100*time.Millisecond)) // faster is a bot
	equal(t, visitor.eval(`document.querySelector("iframe").height`), high, "a forged message changes the height from %s to %s", high)
	visitor.do(chromedp.KeyEvent("\r"))
	arrive(3, "by a frame")
	visitor.until(`document.querySelector("iframe").height < 400`) // the thanks are short
	visitor.keep("thanks.png")
}
