package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/console"
)

// The pages work at a path with and without the last slash, however it is removed, and nothing leads out of it.
func TestMounts(t *testing.T) {
	w := newWorld(t, nil)
	campaign, path := w.published(formsvc.CampaignInput{Title: "Mounted"})
	w.serve(&console.Options{Authenticate: func(*http.Request) (*console.Visitor, error) { return &console.Visitor{AccountID: w.account.ID}, nil }})
	for name, mounted := range map[string]http.Handler{
		"strip": http.StripPrefix("/a/console", w.pages), "strip with the slash": http.StripPrefix("/a/console/", w.pages), "none": http.StripPrefix("", w.pages),
	} {
		prefix := "/a/console"
		if name == "none" {
			prefix = ""
		}
		for target, status := range map[string]int{
			"": 200, "/": 200, "?note=saved": 200, "/?note=saved": 200, "/keys": 200, path + "/share": 200, "//": 404, "/keys/": 404, "//keys": 404, "/./keys": 404, "/..": 404,
			"/campaigns/" + strings.ReplaceAll(string(campaign.ID), "-", "%2D"): 200,
		} {
			if name == "none" && !strings.HasPrefix(target, "/") || name != "strip" && target == "" {
				continue // no such request
			}
			if name == "strip with the slash" && (strings.HasPrefix(target, "?") || strings.HasPrefix(target, "//")) {
				continue // as if they were mounted at another path
			}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			u, err := url.Parse("http://example.com" + prefix + target)
			w.must(err)
			r.URL, r.RequestURI = u, prefix+target
			recorder := httptest.NewRecorder()
			mounted.ServeHTTP(recorder, r)
			if recorder.Code != status || recorder.Header().Get("Location") != "" || recorder.Header().Get("Content-Security-Policy") == "" {
				t.Errorf("%s: %q gets %d %v", name, target, recorder.Code, recorder.Header())
			}
			if page := recorder.Body.String(); status == 200 && !strings.Contains(page, `href="`+prefix+`/campaigns"`) || strings.Contains(page, `href="`+prefix+`//`) {
				t.Errorf("%s: %q has links such as %.900s", name, target, page[strings.Index(page, "href="):])
			}
		}
		for _, target := range []string{path + "/state", path + "/site"} {
			form := url.Values{"status": {"closed"}, "site": {"https://example.com"}, "version": {"1"}}
			r := httptest.NewRequest(http.MethodPost, prefix+target, strings.NewReader(form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			recorder := httptest.NewRecorder()
			if mounted.ServeHTTP(recorder, r); recorder.Code == 303 && !strings.HasPrefix(recorder.Header().Get("Location"), prefix+"/campaigns/") {
				t.Errorf("%s: POST %s leads to %v", name, target, recorder.Header())
			}
		}
	}
}

// The share page has the address of the forms wherever they are.
func TestFormsURL(t *testing.T) {
	w := newWorld(t, nil)
	c, path := w.published(formsvc.CampaignInput{Title: "Elsewhere"})
	for _, x := range []struct{ base, api, forms, want string }{
		{"", "/", "", "http://HOST/f/"}, {"", "/app/forms", "", "http://HOST/app/forms/f/"}, {"", "/app/forms", "/f", "http://HOST/f/"}, {"", "/app/forms", "/f/", "http://HOST/f/"},
		{"", "/app/forms", "/", "http://HOST/"}, {"", "/app/forms", "https://forms.example.com", "https://forms.example.com/"},
		{"https://example.com/console", "/app/forms", "/f", "https://example.com/f/"}, {"https://example.com/console", "https://api.example.com/x/", "", "https://api.example.com/x/f/"},
		{"https://example.com/console", "/", "", "https://example.com/f/"}, {"https://example.com/console", "/", "/", "https://example.com/"},
		{"https://example.com/console", "https://api.example.com/x/", "https://forms.example.com/y/", "https://forms.example.com/y/"},
	} {
		w.api = x.api
		w.serve(&console.Options{BaseURL: x.base, FormsURL: x.forms, Authenticate: func(*http.Request) (*console.Visitor, error) {
			return &console.Visitor{AccountID: w.account.ID}, nil
		}})
		page := w.get(path + "/share").is(200)
		want := strings.Replace(x.want, "HOST", strings.TrimPrefix(w.server.URL, "http://"), 1) + c.FormToken
		if got := page.snippet("Address of the form"); got != want || !strings.Contains(page.snippet("HTML form"), `action="`+want+`"`) || !strings.HasSuffix(page.snippet("Submit with curl"), want) {
			t.Errorf("%+v: the form is at %q, want %q", x, got, want)
		}
		if guessed := strings.Contains(page.text(), "No public address is set"); guessed == (strings.HasPrefix(x.want, "https")) {
			t.Errorf("%+v: it says %t", x, guessed)
		}
	}
	for _, bad := range []string{"f", "ftp://a/f", "https://", "/f?x", "//a/f", "https://u@a/f", "/f#x", "%"} {
		if _, err := console.New(w.svc, w.newAPI(), &console.Options{FormsURL: bad}); err == nil || !strings.Contains(err.Error(), "FormsURL") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
