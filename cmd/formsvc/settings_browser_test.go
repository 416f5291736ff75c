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
)

// The pages of the account settings work in a browser that can reach only the server, with hostile texts on every page.
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
			response := "/campaigns/" + campaign + "/responses/" + c.list(t, campaign)[0].UUID
			hooked := hook(t, dsn, receiver(t).URL()+"/?<script>alert(1)</script>", "all")
			manage(t, dsn, "webhooks", "test", hooked)
			deliveries := decoded[delivery](t, manage(t, dsn, "webhooks", "deliveries", hooked, "--json"))
			p.lookAtAll(t, browser, []string{
				"/", "/keys", "/webhooks", "/webhooks/new", "/failures", "/campaigns", "/campaigns/" + campaign, response,
				"/webhooks/" + hooked, "/webhooks/" + hooked + "/edit", "/deliveries/" + deliveries[0].UUID,
			})
			p.opens("/keys", "API keys")
			p.clicks("summary", "Revoke Website")
			p.clicks("button", "Revoke key")
			p.says("Key revoked.")
			c.want(t, http.StatusUnauthorized, http.MethodGet, "/v1/me", nil, nil)
			p.signsOut()
			p.finish()
		})
	}
}

// A person uses the pages.
type person struct {
	*tab
	server *server
	dsn    string
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
