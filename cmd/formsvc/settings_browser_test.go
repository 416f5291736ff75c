//go:build long

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Every task in the account settings works in a browser that can reach only the server, with hostile texts on every page.
func TestSettingsInBrowser(t *testing.T) {
	t.Parallel()
	browser := launchBrowser(t)
	for _, db := range databases() {
		t.Run(db.name, func(t *testing.T) {
			dsn := db.dsn(t)
			s := start(t, dsn, allowLoopback...)
			p := &person{tab: browser.open(t, s.url, "/settings/", "light", 0), server: s, dsn: dsn}
			p.signsIn()
			key := p.generatesKey()
			c := newClient(t, s.url, key)
			campaign := c.hostileTexts(t)
			hook := p.addsWebhook(campaign)
			p.readsDeliveries(c, hook)
			p.readsResponses(c, campaign)
			p.lookAtAll(t, browser, []string{
				"/", "/keys", "/webhooks", "/webhooks/new", "/failures", "/campaigns", "/campaigns/" + campaign, p.response, hook, hook + "/edit", p.delivery,
			})
			p.takesBack(c, hook)
			p.signsOut()
			p.finish()
		})
	}
}

// A person uses the pages.
type person struct {
	*tab
	server             *server
	dsn                string
	response, delivery string // paths of pages
}

// link returns a link for the account.
func (p *person) link() string {
	p.t.Helper()
	return strings.TrimSpace(manage(p.t, p.dsn, "settings-link", "--base-url", p.server.url))
}

// sees waits until the page has the heading.
func (p *person) sees(heading string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.readyState === "complete" && (document.querySelector("h1")?.textContent ?? "").includes(%q)`, heading))
}

// until waits until an expression is true, also across page loads.
func (p *person) until(expression string) {
	p.t.Helper()
	deadline := time.Now().Add(3 * patience)
	for {
		v, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](expression))
		if err == nil && v {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("never so: %s (%v); the page: %s", expression, err, p.eval(`document.body.innerText`))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// clicks clicks on the element with the text.
func (p *person) clicks(element, text string) {
	p.t.Helper()
	p.do(chromedp.Click(chromedp.Search(fmt.Sprintf(`//main//%s[normalize-space()=%q]|//header//%[1]s[normalize-space()=%[2]q]`, element, text))))
}

// types types into an empty field.
func (p *person) types(field, text string) {
	p.t.Helper()
	p.do(chromedp.SendKeys(chromedp.CSS(field), text))
}

// says waits until the page shows the text.
func (p *person) says(text string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.readyState === "complete" && !!document.body?.innerText.includes(%q)`, text))
}

func (p *person) path() string {
	p.t.Helper()
	var path string
	if err := json.Unmarshal([]byte(p.eval(`location.pathname`)), &path); err != nil {
		p.t.Fatal(err)
	}
	return strings.TrimPrefix(path, "/settings")
}

// opens opens a page by its address.
func (p *person) opens(path, heading string) {
	p.t.Helper()
	p.do(chromedp.Navigate(p.origin + "/settings" + path))
	p.sees(heading)
}

func (p *person) signsIn() {
	p.t.Helper()
	p.sees("Sign in")
	p.do(chromedp.Navigate(p.link()))
	p.clicks("button", "Sign in")
	p.sees("Overview")
	p.forgetConsole() // the previous page returned 401, which the browser logs
}

// generatesKey creates a key, and checks that it isn't shown again.
func (p *person) generatesKey() (value string) {
	p.t.Helper()
	p.clicks("a", "API keys")
	p.sees("API keys")
	p.types("#name", "Website")
	for _, permission := range []string{"campaigns:read", "campaigns:write", "responses:read", "responses:write", "webhooks:read", "webhooks:write"} {
		p.do(chromedp.Click(chromedp.CSS(fmt.Sprintf(`input[value=%q]`, permission))))
	}
	p.clicks("button", "Generate key")
	p.sees("Your new API key")
	if err := json.Unmarshal([]byte(p.eval(`document.querySelector("pre.secret").textContent`)), &value); err != nil {
		p.t.Fatal(err)
	}
	p.says("Copy the key now")
	newClient(p.t, p.server.url, value).want(p.t, http.StatusOK, http.MethodGet, "/v1/me", nil, nil)
	gone := fmt.Sprintf(`!document.documentElement.outerHTML.includes(%q)`, value)
	p.do(chromedp.Reload()) // resends the form
	p.sees("Already done")
	p.until(gone)
	p.do(chromedp.NavigateBack())
	p.sees("API keys")
	p.until(gone)
	p.says("Website")
	p.forgetConsole() // about the resent form
	return value
}

// takesBack revokes the key and deletes the webhook.
func (p *person) takesBack(c *client, hook string) {
	p.t.Helper()
	p.opens("/keys", "API keys")
	p.clicks("summary", "Revoke Website")
	p.clicks("button", "Revoke key")
	p.says("Key revoked.")
	c.want(p.t, http.StatusUnauthorized, http.MethodGet, "/v1/me", nil, nil)
	p.opens(hook, "/hooks")
	p.clicks("summary", "Delete")
	p.clicks("button", "Delete webhook")
	p.says("Webhook deleted.")
	p.says("No webhooks yet")
}

// hostileTexts creates records whose texts would run if a page didn't escape them, and returns the campaign with one
// response.
func (c *client) hostileTexts(t *testing.T) string {
	t.Helper()
	var campaign string
	for _, text := range hostileTexts() {
		campaign = c.campaign(t, text)
	}
	body := map[string]any{
		"user":      map[string]string{"email": "ada@example.com", "firstName": hostileTexts()[0], "lastName": hostileTexts()[1]},
		"responses": map[string]any{},
	}
	for _, text := range hostileTexts() {
		body["responses"].(map[string]any)[text] = map[string]any{"value": []string{text}}
	}
	c.want(t, http.StatusCreated, http.MethodPost, "/v1/campaigns/"+campaign+"/responses", body, nil)
	return campaign
}

func hostileTexts() []string {
	var list []string
	for _, before := range []string{"", `">`, `'>`, "</textarea>", "</title>", "</style>", "</script>", "-->", "`", "{{"} {
		for _, text := range []string{
			`<script>document.title="ran"</script>`, `<img src=x onerror="alert(1)">`, `<svg onload=alert(1)>`, `<iframe src="https://evil.example"></iframe>`,
		} {
			list = append(list, before+text)
		}
	}
	return append(list, `javascript:alert(1)`, `" onfocus="alert(1)" autofocus="`, "\u202egnp.exe", "{{.}}", strings.Repeat("W", 200))
}

// addsWebhook adds a webhook to a working receiver, and tests it.
func (p *person) addsWebhook(campaign string) (path string) {
	p.t.Helper()
	p.clicks("a", "Webhooks")
	p.sees("Webhooks")
	p.clicks("a", "Add a webhook")
	p.sees("Add webhook")
	p.types("#url", "http://127.0.0.1:1/nobody?<script>alert(1)</script>")
	p.do(chromedp.Click(chromedp.CSS(`input[value="response.updated"]`)))
	p.clicks("button", "Add webhook")
	p.sees("Webhook added")
	var secret string
	if err := json.Unmarshal([]byte(p.eval(`document.querySelector("pre.secret").textContent`)), &secret); err != nil || !strings.HasPrefix(secret, "whsec_") {
		p.t.Fatalf("secret %q, %v", secret, err)
	}
	p.clicks("a", "I've copied it")
	p.sees("http://127.0.0.1:1/nobody")
	p.until(fmt.Sprintf(`!document.documentElement.outerHTML.includes(%q)`, secret))
	path = p.path()

	p.clicks("a", "Edit")
	p.sees("Edit webhook")
	p.do(chromedp.SetValue(chromedp.CSS("#url"), receiver(p.t).URL()+"/hooks"))
	p.do(chromedp.SetValue(chromedp.CSS("#secret"), secretOfTests()))
	p.clicks("button", "Save")
	p.sees("/hooks")
	p.says("Webhook saved.")
	return path
}

// secretOfTests returns the secret of the tests' receiver.
func secretOfTests() string { return secret }

// readsDeliveries opens the deliveries, and sends one again.
func (p *person) readsDeliveries(c *client, hook string) {
	p.t.Helper()
	p.clicks("button", "Send a test event")
	p.sees("response.created (test)")
	p.delivery = p.path()
	p.reloadUntil("Answered 200")
	p.says("x-service-signature")
	p.clicks("button", "Resend")
	p.sees("response.created (test)")
	p.reloadUntil("2. Answered 200")
	p.opens(hook, "/hooks")
	p.says("delivered")
	p.clicks("button", "Disable")
	p.says("Webhook disabled.")
	p.clicks("button", "Enable")
	p.says("Webhook enabled.")
	p.clicks("summary", "Rotate the secret")
	p.clicks("button", "Generate a new secret")
	p.sees("New secret")
	p.says("the old secret still signs")
	p.opens(hook, "/hooks")
	p.clicks("summary", "Resend failed deliveries")
	p.clicks("button", "Resend")
	p.says("No deliveries have failed since then")
}

// reloadUntil reloads the page until it shows the text.
func (p *person) reloadUntil(text string) {
	p.t.Helper()
	for began := time.Now(); time.Since(began) < 3*patience; {
		there, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](fmt.Sprintf(`!!document.body?.innerText.includes(%q)`, text)))
		if err == nil && there {
			return
		}
		time.Sleep(50 * time.Millisecond)
		p.do(chromedp.Reload())
	}
	p.t.Fatalf("the page never says %q: %s", text, p.eval(`document.body.innerText`))
}

// readsResponses browses and filters responses, and edits one.
func (p *person) readsResponses(c *client, campaign string) {
	p.t.Helper()
	reference := c.list(p.t, campaign)[0].Reference
	p.clicks("a", "Campaigns")
	p.sees("Campaigns")
	p.opens("/campaigns/"+campaign, "")
	p.types("#reference", reference+kb.Enter)
	p.until(`document.readyState === "complete" && location.search.includes("reference=")`)
	p.clicks("a", reference)
	p.sees(reference)
	p.response = p.path()
	p.says("ada@example.com")
	p.says(hostileTexts()[0])
	p.types("#status", "validated")
	p.clicks("button", "Change")
	p.says("Status changed.")
	p.types("#body", "Called her. <script>alert(1)</script>")
	p.clicks("button", "Add")
	p.says("Comment added.")
	p.says("Called her. <script>alert(1)</script>")
	if got := c.list(p.t, campaign)[0].Status; got != "validated" {
		p.t.Errorf("the status is %s", got)
	}
	// Times are shown in the reader's zone, with UTC at hand.
	if got := p.eval(`[...document.querySelectorAll("time")].every((e) => e.title.endsWith(" UTC") && e.textContent !== e.title)`); got != "true" {
		p.t.Errorf("times: %s", p.eval(`[...document.querySelectorAll("time")].map((e) => e.outerHTML)`))
	}
}

// lookAtAll checks every page in light and dark mode and on a phone, and keeps a screenshot of each.
func (p *person) lookAtAll(t *testing.T, browser lonelyBrowser, paths []string) {
	t.Helper()
	for _, look := range []struct {
		scheme string
		width  int64
	}{{"light", 0}, {"dark", 0}, {"light", 360}} {
		t.Run(fmt.Sprintf("%s-%d", look.scheme, look.width), func(t *testing.T) {
			q := &person{tab: browser.open(t, p.origin, "/settings/", look.scheme, look.width), server: p.server, dsn: p.dsn}
			for _, path := range paths {
				q.do(chromedp.Navigate(p.origin + "/settings" + path))
				q.until(`document.readyState === "complete"`)
				if look.width > 0 {
					q.fits(path, int(look.width))
				}
				if got := q.eval(`document.title`); got == `"ran"` {
					t.Errorf("%s: a script of others ran", path)
				}
				q.audit(path)
				q.keep(fmt.Sprintf("settings-%s-%d-%s.png", look.scheme, look.width, url.PathEscape(strings.Trim(path, "/"))))
			}
			q.finish()
		})
	}
}

// audit checks the accessibility of the page with axe-core, if that is installed (.ci/judges/run downloads it).
func (p *person) audit(path string) {
	p.t.Helper()
	script := os.Getenv("FORMSVC_TEST_AXE")
	if script == "" {
		return
	}
	b, err := os.ReadFile(script)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := chromedp.Run(p.ctx, chromedp.Evaluate[any](string(b)+"\n;true")); err != nil {
		p.t.Fatal(err)
	}
	result, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}).then(
		(r) => JSON.stringify({passes: r.passes.length, violations: r.violations.map((v) => [v.id, v.help, ...v.nodes.slice(0, 3).map((n) => n.html)])}))`,
		chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatal(err)
	}
	var found struct {
		Passes     int     `json:"passes"`
		Violations [][]any `json:"violations"`
	}
	if err := json.Unmarshal([]byte(result), &found); err != nil || found.Passes < 10 {
		p.t.Fatalf("%s: %v: %s", path, err, result)
	}
	for _, v := range found.Violations {
		p.t.Errorf("%s: %q", path, v)
	}
}

func (p *person) signsOut() {
	p.t.Helper()
	p.clicks("button", "Sign out")
	p.sees("Sign in")
	p.do(chromedp.Navigate(p.origin + "/settings/keys"))
	p.sees("Sign in")
	p.forgetConsole()
}
