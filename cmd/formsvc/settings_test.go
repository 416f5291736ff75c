//go:build long

package main_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/cmd/formsvc/internal/smtptest"
)

// A visitor is a browser without scripts.
type visitor struct {
	t      testing.TB
	client *http.Client
	site   string
	body   string
}

func newVisitor(t testing.TB, site string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t: t, client: &http.Client{Jar: jar}, site: site}
}

// get opens a page, follows redirects and returns the status.
func (v *visitor) get(path string) int {
	v.t.Helper()
	return v.answered(v.client.Get(v.site + "/settings" + path))
}

// post sends a form with the token of the last page.
func (v *visitor) post(path string, form url.Values) int {
	v.t.Helper()
	if m := regexp.MustCompile(`name="token" value="([^"]*)"`).FindStringSubmatch(v.body); m != nil {
		form.Set("token", m[1])
	}
	return v.answered(v.client.PostForm(v.site+"/settings"+path, form))
}

func (v *visitor) answered(a *http.Response, err error) int {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	v.body = string(b)
	return a.StatusCode
}

// signIn redeems a link.
func (v *visitor) signIn(link string) int {
	v.t.Helper()
	_, token, ok := strings.Cut(strings.TrimSpace(link), "/settings/sign-in/")
	if !ok {
		v.t.Fatalf("no link: %s", link)
	}
	if status := v.get("/sign-in/" + token); status != 200 {
		return status
	}
	return v.post("/sign-in", url.Values{"link": {token}})
}

// Sign-in links work from the first start, from the command and by mail. All servers of a database share sessions and their
// end.
func TestSignInLinks(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		mails := smtptest.New(t, smtptest.Options{User: "forms", Password: "mail-password", StartTLS: true})
		variables := []string{
			"FORMSVC_SMTP=smtp://forms:mail-password@" + mails.Addr(), "FORMSVC_MAIL_FROM=Forms <forms@example.com>",
			"SSL_CERT_FILE=" + mails.RootsFile(t),
		}
		s := execute(t, dsn, variables, "--quota", "3").started(t)
		s.firstKey(t) // the link is printed with it, independently of the log
		first := regexp.MustCompile(`http://\S+/settings/sign-in/\S+`).FindString(s.out.String())
		v := newVisitor(t, s.url)
		if status := v.signIn(first); status != 200 || !strings.Contains(v.body, "Overview") {
			t.Fatalf("the link of the first start: %d %s\n%s", status, v.body, s.out.String())
		}
		for range 5 { // pages don't count towards the quota
			if status := v.get("/keys"); status != 200 {
				t.Fatalf("keys: %d", status)
			}
		}
		if status := newVisitor(t, s.url).signIn(first); status != 401 {
			t.Errorf("the link works again: %d", status)
		}

		printed := manage(t, dsn, "settings-link", "--base-url", s.url+"/")
		if !regexp.MustCompile(`^` + regexp.QuoteMeta(s.url) + `/settings/sign-in/[\w-]{43}\n$`).MatchString(printed) {
			t.Errorf("settings-link prints %q", printed)
		}
		manage(t, dsn, "accounts", "create", "Other")
		other := newVisitor(t, s.url)
		if status := other.signIn(manage(t, dsn, "settings-link", "--account", "Other")); status != 200 {
			t.Errorf("the link of another account: %d", status)
		}
		if other.get("/keys"); strings.Contains(other.body, "first key") {
			t.Error("another account's keys are shown")
		}

		manage(t, dsn, "accounts", "contact", "default", "ops@example.com")
		mailed := newVisitor(t, s.url)
		mailed.get("/sign-in")
		if status := mailed.post("/sign-in/mail", url.Values{"email": {"ops@example.com"}}); status != 200 {
			t.Errorf("mail: %d", status)
		}
		eventually(t, "the link is mailed", func() bool { return len(mails.Mails()) > 0 })
		got := mails.Mails()
		if len(got) != 1 || got[0].To[0] != "ops@example.com" {
			t.Fatalf("%d mails: %+v", len(got), got)
		}
		text := strings.ReplaceAll(strings.ReplaceAll(got[0].Text, "=\r\n", ""), "=3D", "=")
		link := regexp.MustCompile(`http://\S+/settings/sign-in/[\w-]+`).FindString(text)
		if status := mailed.signIn(link); status != 200 {
			t.Errorf("the link in the mail: %d %s", status, text)
		}
		if strings.Contains(s.log.String(), link) {
			t.Error("the link is in the log")
		}
	})
}
