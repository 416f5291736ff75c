package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/console"
)

const themeLayout = `{{define "head"}}<meta name="theme-color" content="#123456">{{end}}
{{define "header"}}{{end}}
{{define "footer"}}<a href="/imprint">{{.Texts.layout_imprint}} of {{.Title}}</a>{{end}}`

// Pages and errors have the theme, under the same policy as without.
func TestTheme(t *testing.T) {
	theme := formsvc.Theme{
		Product: "Rose & Co", Logo: []byte("<svg/>"), Stylesheet: []byte("</style>{{.Title}}"), Layout: themeLayout,
		Texts: map[string]map[string]string{"en": {"layout_imprint": "Imprint", "send": "for forms", "notes.commented": "Noted."}, "": {"notes.saved": "Kept."}},
	}
	plain := newSignedIn(t)
	w := newWorld(t, &console.Options{Theme: theme})
	w.get("/sign-in").is(200).has("<title>Sign in – Rose &amp; Co</title>", `" alt="Rose &amp; Co"></a></p>`)
	w.signIn()
	for path, status := range map[string]int{"/keys": 200, "/nothing": 404} {
		a := w.get(path).is(status).has(` – Rose &amp; Co</title>`, `<meta name="theme-color" content="#123456">`, ">Imprint of ").lacks(">Forms<", "</style>")
		if got, want := a.header.Get("Content-Security-Policy"), plain.get(path).header.Get("Content-Security-Policy"); got != want || got == "" {
			t.Errorf("policy %q, want %q", got, want)
		}
	}
	w.get("/keys?note=commented").has("Noted.")
	w.get("/keys?note=saved").has("Kept.")
	found := regexp.MustCompile(`/admin/console(/assets/theme-[0-9a-f]{20}\.(css|svg))"`).FindAllStringSubmatch(w.get("/keys").body, -1)
	if len(found) != 2 {
		t.Fatalf("assets: %v", found)
	}
	for _, m := range found {
		a := w.get(m[1]).is(200)
		if want := map[string]string{"css": "text/css; charset=utf-8", "svg": "image/svg+xml"}[m[2]]; a.header.Get("Content-Type") != want ||
			a.header.Get("Cache-Control") != "public, max-age=31536000, immutable" || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", m[1], a.header)
		}
	}
	w.get("/assets/theme-0.css").is(http.StatusNotFound)

	theme.Layout = strings.Replace(themeLayout, `{{define "header"}}`, `{{define "header"}}<b>{{.Product}}</b>`, 1)
	w.serve(&console.Options{Theme: theme})
	w.get("/sign-in").has("<div class=\"host\"><b>Rose &amp; Co</b></div>").lacks(`class="brand"`, "<img")
}

// A bad theme is an error of New that says what is wrong.
func TestBadThemes(t *testing.T) {
	w := newWorld(t, nil)
	for want, theme := range map[string]formsvc.Theme{
		"console: options: Theme: the Logo":           {Logo: []byte("GIF89a")},
		"console: options: Theme: template: Layout:1": {Layout: "{{"},
		`"head" is undefined`:                         {Layout: "{{.Nope}}"},
		"layout_imprint":                              {Layout: themeLayout},
		`"notes.sved" is no text of the console`:      {Texts: map[string]map[string]string{"en": {"notes.sved": "x"}}},
		`"sections.keys" is no text of the console`:   {Texts: map[string]map[string]string{"en": {"sections.keys": "x"}}},
	} {
		if _, err := console.New(w.svc, w.newAPI(), &console.Options{Theme: theme}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// has checks that the page's source has all texts.
func (a *answer) has(texts ...string) *answer {
	a.w.t.Helper()
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			a.w.t.Errorf("%s lacks %q:\n%s", a.what, text, a.body)
		}
	}
	return a
}
