//go:build long

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The console works in a browser that can reach only the server, with hostile texts on every page.
func TestConsoleInBrowser(t *testing.T) {
	t.Parallel()
	browser, s := launchBrowser(t), newShell(t).serve(t)
	p := &person{tab: browser.open(t, s.url, "/console/", "light", 0), service: s}
	p.signsIn()
	one := *s
	one.key = p.generatesKey()
	campaign, response := one.hostileTexts(t)
	form := "/campaigns/" + one.hostileForm(t)
	hooked := s.hook(t, receive(t).URL()+"/?<script>alert(1)</script>", "all")
	delivery := s.record(t, "webhooks", "test", hooked)["uuid"].(string)
	p.addsThemself()
	p.lookAtAll(t, browser, []string{
		"/", "/people", "/you", "/sign-in", "/keys", "/webhooks", "/webhooks/new", "/failures", "/campaigns", "/campaigns/" + campaign, "/campaigns/" + campaign + "/responses/" + response,
		"/webhooks/" + hooked, "/webhooks/" + hooked + "/edit", "/deliveries/" + delivery,
		"/campaigns/new", form, form + "/edit", form + "/share", form + "/summary", form + "?search=a&status=pending&columns=open",
	})
	p.walksByKeys(&one)
	p.opens("/keys", "API keys")
	p.clicks("summary", "Revoke Website")
	p.clicks("button", "Revoke key")
	p.says("Key revoked.")
	one.call(t, http.StatusUnauthorized, http.MethodGet, "/v1/me", nil)
	p.signsOut()
	p.opens("/sign-in", "Sign in")
	p.types("#email", "ada@example.com")
	p.types("#password", "otter violin granite")
	p.clicks("button", "Sign in")
	p.sees("Overview")
	p.finish()
}

// addsThemself makes the operator a member with a password.
func (p *person) addsThemself() {
	p.t.Helper()
	p.opens("/", "Overview")
	p.clicks("a", "Add yourself")
	p.sees("You")
	p.types("#email", "ada@example.com")
	p.types("#name", "Ada <script>document.title='ran'</script>")
	p.clicks("button", "Become an admin")
	p.sees("Ada <script>")
	p.types("#password", "otter violin granite")
	p.clicks("button", "Choose password")
	p.says("Password saved.")
}

// walksByKeys reads one response after the other.
func (p *person) walksByKeys(s *service) {
	p.t.Helper()
	campaign := s.campaign(p.t)
	var newest string
	for _, name := range []string{"First", "Second"} {
		in := submission("ada@example.com", "x")
		in["user"] = map[string]string{"email": "ada@example.com", "firstName": name}
		newest = s.made(p.t, responses(campaign), in)
	}
	p.opens("/campaigns/"+campaign+"/responses/"+newest, "Second")
	p.do(chromedp.KeyEvent("j"))
	p.sees("First")
	p.do(chromedp.KeyEvent("k"))
	p.sees("Second")
}

// A person uses the pages.
type person struct {
	*tab
	*service
}

// sees waits until the page has the heading.
func (p *person) sees(heading string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.readyState === "complete" && (document.querySelector("h1")?.textContent ?? "").includes(%q)`, heading))
}

// until waits until an expression is true, also across page loads.
func (p *person) until(expression string) {
	p.t.Helper()
	until(p.t, "never so: "+expression, func() bool {
		v, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](expression))
		return err == nil && v
	})
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
	p.do(chromedp.Navigate(p.origin + "/console" + path))
	p.sees(heading)
}

func (p *person) signsIn() {
	p.t.Helper()
	p.sees("Sign in")
	p.do(chromedp.Navigate(strings.TrimSpace(p.shell.do(p.t, "console-link"))))
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
	noError(p.t, json.Unmarshal([]byte(p.eval(`document.querySelector("pre.secret").textContent`)), &value))
	p.says("Copy the key now")
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
func (s *service) hostileTexts(t *testing.T) (campaign, response string) {
	t.Helper()
	for _, text := range hostileTexts() {
		campaign = s.made(t, "/v1/campaigns", map[string]string{"title": text})
	}
	answers := make(map[string]any)
	for _, text := range hostileTexts() {
		answers[text] = map[string]any{"value": []string{text}}
	}
	user := map[string]string{"email": "ada@example.com", "firstName": hostileTexts()[0], "lastName": hostileTexts()[1]}
	return campaign, s.made(t, responses(campaign), map[string]any{"user": user, "responses": answers})
}

// hostileForm creates a campaign with a published form, and a response, whose texts would run.
func (s *service) hostileForm(t *testing.T) (campaign string) {
	t.Helper()
	texts := hostileTexts()
	var modules []map[string]any
	answers := make(map[string]any)
	for i, text := range texts {
		m := map[string]any{"name": text, "label": text, "help": text, "type": "text", "placeholder": text[:min(len(text), 100)]}
		switch i {
		case 1:
			m = map[string]any{"name": text, "label": text, "type": "choice", "options": texts, "multiple": true}
			answers[text] = map[string]any{"value": texts}
		case 2:
			m["showIf"] = map[string]any{"module": texts[1], "equals": texts}
			fallthrough
		default:
			answers[text] = map[string]any{"value": []string{text}}
		}
		modules = append(modules, m)
	}
	campaign = s.made(t, "/v1/campaigns", map[string]any{
		"title": texts[0], "modules": modules, "form": map[string]any{"enabled": true, "description": texts[0], "successMessage": texts[1]},
	})
	s.made(t, responses(campaign), map[string]any{"user": map[string]string{"email": "ada@example.com"}, "responses": answers})
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
			q := &person{tab: browser.open(t, p.origin, "/console/", look.scheme, look.width), service: p.service}
			for _, path := range paths {
				q.do(chromedp.Navigate(p.origin + "/console" + path))
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
func (p *tab) audit(path string) {
	p.t.Helper()
	script := os.Getenv("FORMSVC_TEST_AXE")
	if script == "" {
		return
	}
	b := must(os.ReadFile(script))
	must(chromedp.Run(p.ctx, chromedp.Evaluate[any](string(b)+"\n;true")))
	result := must(chromedp.Run(p.ctx, chromedp.Evaluate[string](`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}).then(
		(r) => JSON.stringify({passes: r.passes.length, violations: r.violations.map((v) => [v.id, v.help, ...v.nodes.slice(0, 3).map((n) => n.html)])}))`,
		chromedp.EvalAwaitPromise)))
	var found struct {
		Passes     int     `json:"passes"`
		Violations [][]any `json:"violations"`
	}
	if err := json.Unmarshal([]byte(result), &found); err != nil || found.Passes < 5 {
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
	p.do(chromedp.Navigate(p.origin + "/console/keys"))
	p.sees("Sign in")
	p.forgetConsole()
}
