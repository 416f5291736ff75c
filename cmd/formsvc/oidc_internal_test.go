//go:build long

package main

import (
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
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

// A person who was invited signs in at a real provider, and again when the server has restarted. Somebody else isn't let in.
func TestServeOpenID(t *testing.T) {
	t.Parallel()
	addr := freeAddrs(t, 1)[0]
	issuer := startProvider(t, "http://"+addr+"/console/sign-in/with/op/callback")
	sh := newShell(t)
	sh.env = environment{"FORMSVC_OIDC_CLIENT_SECRET=op=secret"}
	flags := []string{"--addr", addr, "--oidc-issuer", "op=" + issuer, "--oidc-client-id", "op=web", "--oidc-title", "op=Corp"}
	s := sh.serve(t, flags...)
	s.do(t, "people", "add", "--email", "test-user@zitadel.ch", "--role", "reviewer")
	signIn := func(user string) (page string, status int) {
		t.Helper()
		client := &http.Client{Jar: must(cookiejar.New(nil))}
		s.client = client
		login := s.get(t, "/console/sign-in/with/op") // ends at the provider's form
		id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindStringSubmatch(login.body)
		if id == nil {
			t.Fatalf("the provider shows %d %s", login.status, login.body)
		}
		resp, err := client.PostForm(issuer+"login/username", url.Values{"id": {id[1]}, "username": {user}, "password": {"verysecure"}})
		noError(t, err)
		noError(t, resp.Body.Close())
		if !strings.HasPrefix(resp.Request.URL.String(), s.url+"/console/") {
			t.Fatalf("%s ends at %s with %s", user, resp.Request.URL, resp.Status)
		}
		return s.get(t, "/console/you").body, resp.StatusCode
	}
	if page, status := signIn("test-user2"); status != http.StatusUnauthorized || strings.Contains(page, "Test User2") {
		t.Errorf("a stranger gets %d and\n%s", status, page)
	}
	if page, status := signIn("test-user@localhost"); status != http.StatusOK || !strings.Contains(page, "test-user@zitadel.ch") {
		t.Errorf("the reviewer gets %d and\n%s", status, page)
	}
	contains(t, "people list", s.do(t, "people", "list"), "joined", issuer)
	contains(t, "the sign-in page", must(s.ask(t.Context(), http.MethodGet, "/console/sign-in", nil)).body, "Corp")
	s.stop()
	s = sh.serve(t, flags...)
	if page, status := signIn("test-user@localhost"); status != http.StatusOK || !strings.Contains(page, "test-user@zitadel.ch") {
		t.Errorf("after a restart the reviewer gets %d and\n%s", status, page)
	}
	lacks(t, "the log", s.log.String(), "test-user", "verysecure", `"secret"`)
}
