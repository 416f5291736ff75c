package intake_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/intake"
)

const (
	logo   = `<svg xmlns="http://www.w3.org/2000/svg"><style>circle{fill:red}</style></svg>`
	css    = "b{color:red}</style><script>alert(1)</script>{{.Title}}"
	layout = `{{define "head"}}<meta name="theme-color" content="#123456">{{end}}
{{define "header"}}<img src="{{.Logo}}" alt="{{.Product}}"> over {{.Title}}{{end}}
{{define "footer"}}<a href="/imprint">{{.Texts.layout_imprint}} ({{.Texts.code}})</a>{{end}}`
)

func rose() formsvc.Theme {
	return formsvc.Theme{
		Product: "Rose & Co", Logo: []byte(logo), Stylesheet: []byte(css), Layout: layout,
		Texts: map[string]map[string]string{
			"":   {"layout_imprint": "Imprint", "date": "%[2]s %[1]d, %[3]d"},
			"en": {"send": "Off with it", "error_odd": "Must be even"},
			"de": {"error_odd": "Bitte gerade", "layout_imprint": "Impressum"},
		},
	}
}

// defining returns a layout with this block, and otherwise empty ones.
func defining(name, block string) string {
	return strings.Replace(`{{define "head"}}{{end}}{{define "header"}}{{end}}{{define "footer"}}{{end}}`, name+`"}}`, name+`"}}`+block, 1)
}

// finnish has all texts of the pages.
func finnish(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile("texts/en.json")
	if err != nil {
		t.Fatal(err)
	}
	var texts map[string]string
	if err := json.Unmarshal(b, &texts); err != nil {
		t.Fatal(err)
	}
	texts["code"], texts["send"] = "fi", "Lähetä"
	return texts
}

// Every page has the theme, under the same policy as without.
func TestTheme(t *testing.T) {
	t.Parallel()
	in := formsvc.CampaignInput{Title: "A < B", EmailOptional: true, Modules: []formsvc.Module{{Name: "n", Label: "Number"}}}
	var rule error
	theme := rose()
	theme.Texts["fi"] = finnish(t)
	w := newWorld(t, in, &intake.Options{Theme: theme}, func(o *formsvc.Options) {
		o.CheckResponse = func(context.Context, *formsvc.Campaign, *formsvc.Response, *formsvc.Response) error { return rule }
	})
	plain := newWorld(t, in, nil)
	first := w.get("").is(200).has(">Off with it</button>")
	address := regexp.MustCompile(`"([a-z./]*assets/theme-[0-9a-f]{20}\.(?:css|svg))"`)
	for path, page := range map[string]*answer{
		"": first, "/thanks": w.get("/thanks").is(200), "/../unknown": w.get("/../unknown").is(404), "json": w.do("PUT", w.url, "", nil).is(405),
	} {
		page.has(`<meta name="theme-color" content="#123456"></head>`, ` alt="Rose &amp; Co"> over `, `<footer class="host"><a href="/imprint">Imprint (en)</a></footer>`)
		if found := address.FindAllStringSubmatch(page.body, -1); len(found) != 2 {
			t.Errorf("%s: assets %v", path, found)
		}
		if strings.Contains(page.body, "alert(1)") {
			t.Errorf("%s: the style sheet is in the page", path)
		}
	}
	first.has("over A &lt; B</header>")
	if got, want := first.header.Get("Content-Security-Policy"), plain.get("").header.Get("Content-Security-Policy"); got != want || got == "" {
		t.Errorf("policy %q, want %q", got, want)
	}

	// Addresses are below the handler on every page.
	for at, page := range map[string]*answer{w.url: first, w.url + "/thanks": w.get("/thanks")} {
		base, err := url.Parse(at)
		w.must(err)
		wants := map[string]string{css: "text/css; charset=utf-8", logo: "image/svg+xml"}
		for _, m := range address.FindAllStringSubmatch(page.body, -1) {
			a := w.do("GET", base.ResolveReference(&url.URL{Path: m[1]}).String(), "", nil).is(200)
			if a.header.Get("Content-Type") != wants[a.body] || a.header.Get("Cache-Control") != "public, max-age=31536000, immutable" ||
				a.header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(a.header.Get("Content-Security-Policy"), "sandbox") {
				t.Errorf("%s: %v", m[1], a.header)
			}
			delete(wants, a.body)
		}
		equal(t, len(wants), 0, "%s: not sent: %v, which are %d", at, wants)
	}
	w.get(fmt.Sprintf("/../assets/theme-%.10x.css", sha256.Sum256([]byte(css)))).is(200) // the name is the content's
	w.get("/../assets/theme-00000000000000000000.css").is(404)

	// A host's rule has words in the page's language.
	token := first.token()
	rule = &formsvc.ValidationError{Fields: []formsvc.FieldError{{Pointer: "/responses/n/value/0", Code: "odd", Detail: "must be even"}}}
	for language, word := range map[string]string{"en": "Must be even", "de": "Bitte gerade", "fr": "Must be even"} {
		w.do("POST", w.url, "application/x-www-form-urlencoded", strings.NewReader("n=1&_page="+token), "Accept-Language", language).
			is(422).has("Number\u2069 – "+word, `<footer class="host">`)
	}
	rule = &formsvc.Refusal{Code: "odd", Detail: "Not now."}
	w.post("_page", token, "n", "1").is(409).has("Must be even")
	w.json(`{"responses":{"n":{"value":["1"]}}}`).is(409).has("Not now.")
	w.get("", "Accept-Language", "de").is(200).has("Impressum (de)", ">Absenden</button>")
	w.get("", "Accept-Language", "fi, en;q=0.5").is(200).has(`<html lang="fi" dir="ltr">`, ">Lähetä</button>", "Imprint (fi)")

	// The preview of the console shows the theme, too.
	h, err := intake.New(w.svc, &intake.Options{Theme: theme})
	w.must(err)
	recorder := httptest.NewRecorder()
	h.Preview(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), &w.campaign, "/f/")
	(&answer{t: t, body: recorder.Body.String()}).has(`src="/f/assets/theme-`, `href="/f/assets/theme-`)

	// A form can have a language of the theme. Without it, the page is in that of the browser.
	in.Form.Language = "fi"
	w = newWorld(t, in, &intake.Options{Theme: theme}, func(o *formsvc.Options) { o.Languages = []string{"fi"} })
	w.get("", "Accept-Language", "de").is(200).has(">Lähetä</button>")
	if _, err := intake.New(w.svc, nil); err == nil || !strings.Contains(err.Error(), `no texts in "fi"`) {
		t.Error(err)
	}
	h, err = intake.New(plain.svc.With(w.store), nil)
	w.must(err)
	recorder = httptest.NewRecorder()
	h.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/"+w.campaign.FormToken, nil))
	(&answer{t: t, body: recorder.Body.String()}).has(">Send</button>")
}

// Without a layout, the header has the logo, or the name.
func TestThemeHeader(t *testing.T) {
	t.Parallel()
	theme := formsvc.Theme{Product: "Rose"}
	newWorld(t, formsvc.CampaignInput{}, &intake.Options{Theme: theme}).get("").has("<body>\n<header class=\"host\">Rose</header>\n<main")
	theme.Logo = []byte("\x89PNG\r\n\x1a\n")
	w := newWorld(t, formsvc.CampaignInput{}, &intake.Options{Theme: theme})
	page := w.get("").has(` alt="Rose"></header>`)
	src := regexp.MustCompile(`assets/theme-[0-9a-f]+`).FindString(page.body)
	if a := w.get("/../" + src).is(200); a.header.Get("Content-Type") != "image/png" {
		t.Error(a.header)
	}
}

// A bad theme is an error of New that says what is wrong.
func TestBadThemes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, formsvc.CampaignInput{}, nil)
	for _, c := range []struct {
		want string
		edit func(*formsvc.Theme)
	}{
		{"Logo must be SVG", func(t *formsvc.Theme) { t.Logo = []byte("%PDF-1.7") }},
		{"Logo must be SVG, PNG, JPEG, GIF or WebP, and needs Product", func(t *formsvc.Theme) { t.Product = "" }},
		{"Layout:1:", func(t *formsvc.Theme) { t.Layout = `{{define "head"}}{{if}}` }},
		{`"footer" is undefined`, func(t *formsvc.Theme) { t.Layout = `{{define "head"}}{{end}}{{define "header"}}{{end}}` }},
		{"Nope", func(t *formsvc.Theme) { t.Layout = defining("head", `{{.Nope}}`) }},
		{"layout_more", func(t *formsvc.Theme) { t.Layout = defining("head", `{{.Texts.layout_more}}`) }},
		{"non-text context", func(t *formsvc.Theme) { t.Layout = defining("footer", `<a href="`) }},
		{`"menu"`, func(t *formsvc.Theme) { t.Layout = defining("footer", `{{template "menu"}}`) }},
		{`texts of "de": "sned" is no text`, func(t *formsvc.Theme) { t.Texts["de"]["sned"] = "x" }},
		{`texts of "de": "send" is missing`, func(t *formsvc.Theme) { t.Texts["de"]["send"] = " " }},
		{`"code" must be`, func(t *formsvc.Theme) { t.Texts["de"]["code"] = "at" }},
		{`"dir" must be`, func(t *formsvc.Theme) { t.Texts["de"]["dir"] = "up" }},
		{`"months" must have twelve`, func(t *formsvc.Theme) { t.Texts["de"]["months"] = "Jan Feb" }},
		{`"most" must take the same arguments as "At most %d`, func(t *formsvc.Theme) { t.Texts["de"]["most"] = "Nicht viele" }},
		{`"most" must`, func(t *formsvc.Theme) { t.Texts["de"]["most"] = "%s Zeichen" }},
		{`"most" must`, func(t *formsvc.Theme) { t.Texts[""]["most"] = "%d of %d" }},
		{`texts of "fi": "another" is missing`, func(t *formsvc.Theme) {
			delete(t.Texts["fi"], "another")
			t.Texts["en"]["another"] = "More" // for English only
		}},
		{`"IT": "code" must be the language`, func(t *formsvc.Theme) {
			t.Texts["IT"] = maps.Clone(t.Texts["fi"])
			t.Texts["IT"]["code"] = "IT"
		}},
	} {
		theme := rose()
		theme.Texts["fi"] = finnish(t)
		if _, err := intake.New(w.svc, &intake.Options{Theme: theme}); err != nil {
			t.Fatal(err)
		}
		c.edit(&theme)
		if _, err := intake.New(w.svc, &intake.Options{Theme: theme}); err == nil || !strings.HasPrefix(err.Error(), "intake: options: Theme: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// The plural rules of a language choose a text with a number. A host's text isn't mixed with ours.
func TestPlurals(t *testing.T) {
	in := formsvc.CampaignInput{EmailOptional: true}
	for _, n := range []int{1, 2, 5, 11, 22, 100} {
		in.Modules = append(in.Modules, formsvc.Module{Name: fmt.Sprint(n), MaxLength: n})
	}
	theme := formsvc.Theme{Texts: map[string]map[string]string{"en": {"most": "%d at most"}, "fr": {"most": "%d ou moins"}, "fi": finnish(t)}}
	w := newWorld(t, in, &intake.Options{Theme: theme})
	for language, want := range map[string][]string{
		"pl": {"Najwyżej 1 znak.", "Najwyżej 2 znaki.", "Najwyżej 5 znaków.", "Najwyżej 11 znaków.", "Najwyżej 22 znaki."},
		"ar": {">حرف واحد على", ">حرفان على", ">5 أحرف", ">11 حرفًا", ">100 حرف على"}, "en": {">1 at most<", "2 at most"}, "fr": {"1 ou moins", "100 ou moins"}, "de": {"Höchstens 1 Zeichen"},
		"tr": {"En fazla 2"}, "fi": {"At most 1 characters"}, "ja": {"100文字以内"},
	} {
		w.get("", "Accept-Language", language).is(200).has(want...)
	}
	w.post("11", strings.Repeat("x", 12)).is(422).has("Use at most 11 characters")
	w.post("1", "xx").is(422).has("Use at most 1 character<")
}
