//go:build long

package main

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// A person signs in at a provider in a browser: the policy of the pages allows the ways there and back, and a cookie survives them.
func TestOpenIDInBrowser(t *testing.T) {
	t.Parallel()
	addr := freeAddrs(t, 1)[0]
	issuer := startProvider(t, "http://"+addr+"/console/sign-in/with/op/callback")
	sh := newShell(t)
	sh.env = environment{"FORMSVC_OIDC_CLIENT_SECRET=op=secret"}
	s := sh.serve(t, "--addr", addr, "--oidc-issuer", "op="+issuer, "--oidc-client-id", "op=web", "--oidc-title", "op=Corp")
	s.do(t, "people", "add", "--email", "test-user@zitadel.ch", "--role", "viewer")
	p := &person{tab: launchBrowser(t).open(t, s.url, "/console/sign-in", "light", 0), service: s}
	p.clicks("a", "Sign in with Corp")
	p.do(chromedp.SendKeys(chromedp.CSS("input[name=username]"), "test-user@localhost"), chromedp.SendKeys(chromedp.CSS("input[name=password]"), "verysecure"),
		chromedp.Click(chromedp.CSS("button[type=submit], input[type=submit], form button")))
	p.sees("Overview")
	p.opens("/you", "test-user@zitadel.ch")
	p.says("viewer of the account")
	p.clicks("button", "Sign out")
	p.until(`!location.pathname.startsWith("/console/you")`)
	p.opens("/keys", "Sign in")
}
