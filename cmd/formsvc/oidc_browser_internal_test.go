//go:build long

package main

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"github.com/chromedp/chromedp"
)

// startProvider starts the OpenID provider of zitadel/oidc's examples, which sends browsers back to callback, and returns its issuer. Its
// client is "web" with the secret "secret", and its users are test-user@localhost and test-user2 with the password "verysecure".
func startProvider(t testing.TB, callback string) string {
	t.Helper()
	const variable = "FORMSVC_TEST_OIDC"
	program := os.Getenv(variable)
	if program == "" {
		missing(t, variable+` is not set ("make test-long" builds the provider and sets it)`)
	}
	_, port, err := net.SplitHostPort(freeAddrs(t, 1)[0])
	noError(t, err)
	var said transcript
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "PORT="+port, "REDIRECT_URI="+callback)
	cmd.Stdout, cmd.Stderr = &said, &said
	noError(t, cmd.Start())
	t.Cleanup(func() {
		if _, _ = cmd.Process.Kill(), cmd.Wait(); t.Failed() {
			t.Logf("the provider:\n%.20000s", &said)
		}
	})
	issuer := "http://localhost:" + port + "/"
	until(t, "the provider replies", func() bool {
		resp, err := http.Get(issuer + ".well-known/openid-configuration")
		return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
	return issuer
}

// A person signs in at a provider in a browser: the policy of the pages allows the ways there and back, and a cookie survives them. The log
// has neither the person nor the secret.
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
	contains(t, "people list", s.do(t, "people", "list"), "joined", issuer)
	lacks(t, "the log", s.log.String(), "test-user", "verysecure", `"secret"`)
}
