//go:build long

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// published creates a campaign and returns its UUID and the path of its form.
func (s *service) published(t *testing.T, form map[string]any, modules ...map[string]any) (campaign, path string) {
	t.Helper()
	form["enabled"] = true
	var c struct {
		UUID string
		Form struct{ URL string }
	}
	body := s.call(t, http.StatusCreated, http.MethodPost, "/v1/campaigns", map[string]any{"title": "Survey", "requireEmail": false, "modules": modules, "form": form})
	noError(t, json.Unmarshal([]byte(body), &c))
	return c.UUID, strings.TrimPrefix(c.Form.URL, s.url)
}

// answers returns the stored responses, newest first.
func (s *service) answers(t *testing.T, campaign string) string {
	t.Helper()
	var list struct{ Items []struct{ Responses any } }
	noError(t, json.Unmarshal([]byte(s.call(t, http.StatusOK, http.MethodGet, responses(campaign), nil)), &list))
	text, _ := json.Marshal(list.Items)
	return string(text)
}

// A date without its year isn't lost: the page says so, and keeps the field. Fields may have any name.
func TestFormsInBrowsers(t *testing.T) {
	t.Parallel()
	browser, s := launchBrowser(t), newShell(t).serve(t)
	dog := map[string]any{"module": "elements", "equals": []string{"dog"}}
	var modules []map[string]any
	for _, name := range []string{"elements", "action", "submit", "querySelectorAll", "setAttribute", "addEventListener", "dataset", "id", "__proto__", "length"} {
		modules = append(modules, map[string]any{"name": name, "label": "Label of " + name})
	}
	modules = append(modules, map[string]any{"name": "breed", "showIf": dog, "required": true}, map[string]any{"name": "born", "type": "date"})
	campaign, path := s.published(t, map[string]any{}, modules...)
	v := &person{tab: browser.open(t, s.url, path, "light", 0), service: s}
	v.sees("Survey")
	v.until(`document.querySelector("[name=breed]").disabled`)
	v.types("[name=elements]", "dog")
	v.until(`!document.querySelector("[name=breed]").disabled`)
	v.types("[name=breed]", "Pug")
	v.types("[name=born]", "1231")
	v.do(chromedp.Sleep(2100 * time.Millisecond))
	v.clicks("button", "Send")
	v.says("Complete this date, or remove it")
	v.until(`document.activeElement.name === "born" && document.activeElement.getAttribute("aria-describedby").endsWith("-now")`)
	v.audit("incomplete date")
	v.types("[name=born]", kb.Tab+kb.Tab+"2026")
	v.do(chromedp.SetValue(chromedp.CSS("[name=born]"), "2026-12-31"))
	v.clicks("button", "Send")
	v.until(`location.pathname.endsWith("/thanks")`)
	if got := s.answers(t, campaign); !strings.Contains(got, `"born":{"value":["2026-12-31"]}`) || !strings.Contains(got, `"breed":{"value":["Pug"]}`) {
		t.Error(got)
	}
	v.finish()
}

// A form has one page at a time. Pages without a question to ask are skipped, and the first page with an error is shown.
func TestPagesInBrowsers(t *testing.T) {
	t.Parallel()
	browser, s := launchBrowser(t), newShell(t).serve(t)
	dog := map[string]any{"module": "pet", "equals": []string{"dog"}}
	campaign, path := s.published(t, map[string]any{}, map[string]any{"name": "pet", "type": "choice", "options": []string{"cat", "dog"}, "other": true, "required": true},
		map[string]any{"name": "code", "pattern": "[A-Z]+"}, map[string]any{"name": "p2", "label": "Dogs", "type": "section", "page": true},
		map[string]any{"name": "breed", "showIf": dog, "required": true}, map[string]any{"name": "p3", "label": "The end", "type": "section", "page": true}, map[string]any{"name": "note"})
	v := &person{tab: browser.open(t, s.url, path, "light", 0), service: s}
	v.sees("Survey")
	v.clicks("button", "Next")
	v.says("Choose an option")
	v.types(".own", "Newt")
	v.types("[name=code]", "x"+kb.Enter)
	v.says("Page 2 of 2")
	v.until(`document.activeElement.textContent === "The end"`)
	v.audit("last page")
	v.do(chromedp.Sleep(2100 * time.Millisecond))
	v.types("[name=note]", "typed"+kb.Enter)
	v.says("Write this in the expected form")
	v.until(`document.querySelector(".progress").textContent === "Page 1 of 2" && document.querySelector(".own").value === "Newt"`)
	v.do(chromedp.SetValue(chromedp.CSS("[name=code]"), "X"))
	v.clicks("button", "Next")
	v.clicks("button", "Send")
	v.until(`location.pathname.endsWith("/thanks")`)
	if got := s.answers(t, campaign); !strings.Contains(got, `"pet":{"value":["Newt"]}`) || !strings.Contains(got, `"note":{"value":["typed"]}`) {
		t.Error(got)
	}
}

// Without scripts the browser itself keeps half a date, and with them the page asks for a file before anything is sent.
func TestChecksBeforeSending(t *testing.T) {
	t.Parallel()
	browser, s := launchBrowser(t), newShell(t).serve(t)
	for _, scripts := range []bool{false, true} {
		campaign, path := s.published(t, map[string]any{}, map[string]any{"name": "born", "type": "date"}, map[string]any{"name": "note"}, map[string]any{"name": "cv", "type": "file", "required": scripts})
		v := &person{tab: browser.open(t, s.url, "/f/assets/form.svg", "light", 0), service: s}
		called(v.tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !scripts})
		v.do(chromedp.Navigate(s.url + path))
		v.sees("Survey")
		if !scripts {
			v.types("[name=born]", "1231")
		}
		v.types("[name=note]", "typed")
		v.do(chromedp.Sleep(2100 * time.Millisecond))
		v.clicks("button", "Send")
		v.do(chromedp.Sleep(time.Second))
		if at := v.eval(`[location.pathname, document.querySelector("[name=note]").value, document.activeElement.name]`); at != fmt.Sprintf(`["%s","typed","%s"]`, path, map[bool]string{false: "born", true: "cv"}[scripts]) {
			t.Errorf("scripts %v: %s", scripts, at)
		}
		if got := s.answers(t, campaign); got != "[]" {
			t.Error(got)
		}
		if scripts {
			v.says("Choose a file")
		}
	}
}

// A visitor can go back to a page with errors after it was corrected, and finds what they typed.
func TestBackAfterCorrection(t *testing.T) {
	t.Parallel()
	browser, s := launchBrowser(t), newShell(t).serve(t)
	campaign, path := s.published(t, map[string]any{}, map[string]any{"name": "n", "type": "number"}, map[string]any{"name": "text"},
		map[string]any{"name": "pet", "type": "choice", "options": []string{"cat"}, "other": true})
	v := &person{tab: browser.open(t, s.url, path, "light", 0), service: s}
	v.sees("Survey")
	v.types("[name=n]", "two")
	v.types("[name=text]", "typed")
	v.types(".own", "Newt")
	v.do(chromedp.Sleep(2100 * time.Millisecond))
	v.clicks("button", "Send")
	v.says("Enter a number such as")
	v.do(chromedp.SetValue(chromedp.CSS("[name=n]"), "2"))
	v.clicks("button", "Send")
	v.until(`location.pathname.endsWith("/thanks")`)
	v.eval(`(history.back(), 0)`)
	v.until(`document.querySelector("[name=text]")?.value === "typed"`)
	v.do(chromedp.SetValue(chromedp.CSS("[name=n]"), "3"))
	v.clicks("button", "Send")
	v.until(`location.pathname.endsWith("/thanks")`)
	v.eval(`(history.back(), 0)`)
	v.until(`document.querySelector("[name=text]")?.value === "typed"`)
	v.eval(`(history.back(), 0)`)
	v.until(`document.querySelector(".own")?.value === "Newt"`) // on the first page, which came without it
	if got := s.answers(t, campaign); !strings.Contains(got, `["2"]`) || !strings.Contains(got, `["3"]`) {
		t.Error(got)
	}
}

// The owner's address after a form may send the browser on, and a script of an allowed origin reads every reply.
func TestFormsAmongSites(t *testing.T) {
	t.Parallel()
	browser, s := launchBrowser(t), newShell(t).serve(t)
	end := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, `<title>Site</title><link rel="icon" href="data:,"><h1>The owner's site</h1>`)
	}))
	defer end.Close()
	www := httptest.NewServer(http.RedirectHandler(strings.Replace(end.URL, "127.0.0.1", "www.lan", 1)+"/done", http.StatusFound))
	defer www.Close()
	_, path := s.published(t, map[string]any{"redirectUrl": www.URL, "allowedOrigins": []string{end.URL}}, map[string]any{"name": "a"})
	v := &person{tab: browser.open(t, s.url, path, "light", 0), service: s}
	v.sees("Survey")
	v.types("[name=a]", "x")
	v.clicks("button", "Send")
	v.sees("The owner's site")

	v.do(chromedp.Navigate(end.URL))
	v.sees("The owner's site")
	for body, want := range map[string]string{
		`new FormData()`: "201", `(() => {const f = new FormData(); f.append("a", "x"); f.append("b", "y"); return f})()`: "422",
	} {
		v.eval(fmt.Sprintf(`(window.got = "", fetch(%q, {method: "POST", body: %s, headers: {"X-Requested-With": "XMLHttpRequest"}}).then(async (r) => got = r.status + (await r.text())), 0)`, s.url+path, body))
		v.until(fmt.Sprintf(`got.startsWith(%q)`, want))
	}
}
