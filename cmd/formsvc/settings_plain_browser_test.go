//go:build long

package main_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// Over plain HTTP, at a name other than localhost, browsers send no Sec-Fetch-Site. Even then, the server accepts forms of
// its own pages and rejects those of other sites.
func TestSettingsOverPlainHTTPInBrowser(t *testing.T) {
	t.Parallel()
	browser := launchBrowser(t)
	dsn := databases()[0].dsn(t)
	s := start(t, dsn)
	origin := "http://" + net.JoinHostPort("forms.lan", port(t, s.url))
	p := &person{tab: browser.open(t, origin, "/settings/", "light", 0), server: s, dsn: dsn}
	if p.eval(`isSecureContext`) != "false" {
		t.Fatal("the browser trusts the name, so this tests nothing")
	}
	p.sees("Sign in")
	p.do(chromedp.Navigate(origin + "/settings/sign-in/" + p.linkToken()))
	p.keep("settings-plain-sign-in.png")
	p.clicks("button", "Sign in")
	p.sees("Overview")
	p.generatesKey()
	p.keep("settings-plain-keys.png")
	cookies := p.eval(`document.cookie`)
	if cookies != `""` {
		t.Errorf("scripts can read %s", cookies)
	}
	p.forged(t, browser)
	p.opens("/keys", "API keys")
	p.until(`!document.body.innerText.includes("forged")`)
	p.signsOut()
}

// forged has other sites, with any referrer policy, send the forms of the settings pages from a signed-in browser. They
// also know a sign-in link.
func (p *person) forged(t *testing.T, browser lonelyBrowser) {
	t.Helper()
	var policy, body string
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Referrer-Policy", policy)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, body)
	}))
	defer evil.Close()
	for _, policy = range []string{"", "no-referrer", "same-origin", "unsafe-url"} {
		for _, from := range []string{"evil.lan", "forms.lan"} { // another name, and the same name with another port
			for action, fields := range map[string]url.Values{
				"/settings/keys":    {"name": {"forged"}, "permissions": {"campaigns:read"}},
				"/settings/sign-in": {"link": {p.linkToken()}},
			} {
				body = autoSubmit(p.origin+action, fields)
				q := &person{tab: browser.open(t, p.origin, "/settings/", "light", 0)}
				q.do(chromedp.Navigate("http://" + net.JoinHostPort(from, port(t, evil.URL))))
				q.sees("This form was sent from another site")
			}
		}
	}
}

// autoSubmit returns a page that sends a form by itself.
func autoSubmit(action string, fields url.Values) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<!doctype html><form method="post" action=%q>`, action)
	for name, values := range fields {
		fmt.Fprintf(&b, `<input name=%q value=%q>`, name, values[0])
	}
	b.WriteString(`</form><script>document.forms[0].submit()</script>`)
	return b.String()
}

// linkToken returns the token of a new link.
func (p *person) linkToken() string {
	p.t.Helper()
	link := p.link()
	return link[strings.LastIndexByte(link, '/')+1:]
}

// port returns the port of an address.
func port(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}
