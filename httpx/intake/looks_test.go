package intake_test

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"math/rand/v2"
	"net/http/httptest"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/intake"
)

// Every page of a form has its looks, and tells the sites that embed it its height. Browsers keep what they load.
func TestLooks(t *testing.T) {
	t.Parallel()
	var logo, cover bytes.Buffer
	noise := image.NewGray(image.Rect(0, 0, 300, 130)) // more bytes than a campaign may have that is quick to read
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise.Pix)
	if err := errors.Join(png.Encode(&logo, image.NewGray(image.Rect(0, 0, 20, 10))), png.Encode(&cover, noise)); err != nil {
		t.Fatal(err)
	}
	in := formsvc.CampaignInput{Title: "A < B", Modules: []formsvc.Module{{Name: "n", Required: true}}, Form: formsvc.Form{
		AllowedOrigins: []string{"https://a.example", "https://b.example"},
		Theme:          formsvc.FormTheme{Accent: "#ffff00", Scheme: "dark", Width: "wide", Logo: logo.Bytes(), Cover: cover.Bytes()},
	}}
	w := newWorld(t, in, &intake.Options{Theme: rose()})
	const looks = ":root:root{--accent:#ffff00;--on-accent:#000000}"
	address := regexp.MustCompile(`(?:href|src)="([a-zA-Z0-9./]*(?:/logo-|/cover-|assets/frame)[^"]*)"`)
	w.post("_page", "x", "email", "").is(422) // so that the campaign is known
	for at, page := range map[string]*answer{w.url: w.get("").is(200), w.url + "/thanks": w.get("/thanks").is(200), w.url + "/": w.post("_page", "x", "email", "").is(422)} {
		page.has(`alt="A &lt; B" width="20" height="10"`, `alt="" width="300" height="130"`, ` data-origins="https://a.example https://b.example" defer>`)
		if css := page.styles(); !strings.Contains(css, looks) || !strings.Contains(css, "color-scheme:dark") || !strings.Contains(css, "max-width:56rem") {
			t.Errorf("%s: %s", at, css)
		}
		if strings.Index(page.body, looks) > strings.Index(page.body, "assets/theme-") {
			t.Error("the host's stylesheet comes before")
		}
		base, err := url.Parse(strings.TrimSuffix(at, "/"))
		w.must(err)
		list := address.FindAllStringSubmatch(page.body, -1)
		equal(t, len(list), 3, "%d assets, want %d")
		for _, m := range list {
			to, err := base.Parse(m[1])
			w.must(err)
			a := w.do("GET", to.String(), "", nil).is(200)
			equal(t, a.header.Get("Cache-Control"), "public, max-age=31536000, immutable", m[1]+": %q, want %q")
			look := map[string][]byte{"logo": w.campaign.Form.Theme.Logo, "cover": w.campaign.Form.Theme.Cover}
			if want := look[strings.Split(path.Base(m[1]), "-")[0]]; want != nil && (a.header.Get("Content-Type") != "image/png" || a.body != string(want)) {
				t.Errorf("%s: %v", m[1], a.header)
			}
		}
	}
	equal(t, w.get("/../assets/embed.js").is(200).header.Get("Cache-Control"), "public, max-age=3600", "%q, want %q")
	for _, at := range []string{"/logo", "/logo-", "/cover-", "/cover-00000000000000000000.png", "/logo-00000000000000000000.png", "/../assets/looks---.css", "/../assets/looks-FFFF00--.css", "/../assets/looks-ffff0}--.css", "/../assets/looks--red-.css", "/../assets/looks-ffff00-dark-wide"} {
		w.get(at).is(404)
	}
	hidden, old := w.campaign.CampaignInput, regexp.MustCompile(`/logo-\w+\.png`).FindString(w.get("").body)
	logo.Reset()
	w.must(png.Encode(&logo, image.NewGray(image.Rect(0, 0, 10, 20))))
	hidden.Status, hidden.Form.Theme.Logo = formsvc.CampaignClosed, logo.Bytes()
	_, err := w.svc.Campaigns.Replace(t.Context(), w.campaign.Key(), hidden)
	w.must(err)
	w.get(old).is(404)
	w.get("").is(409).has(`class="cover"`, `class="logo"`)
	plain := newWorld(t, formsvc.CampaignInput{Title: "x"}, nil)
	if page := plain.get("").body; address.MatchString(page) || strings.Contains(page, "<img") {
		t.Error("a form without looks has some")
	}

	h, err := intake.New(w.svc, nil)
	w.must(err)
	recorder := httptest.NewRecorder()
	h.Preview(recorder, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), &w.campaign, "/f/")
	(&answer{t: t, body: recorder.Body.String()}).has(`class="logo" src="data:image/png;base64,`, `class="cover" src="data:image/png;base64,`, `href="/f/assets/form.css?`, `href="/f/assets/looks-ffff00-dark-wide.css`)
	if strings.Contains(recorder.Body.String(), "<style") {
		t.Error("the console's policy doesn't allow the styles of a preview")
	}
	w.get("/../assets/looks-ffff00-dark-wide.css").is(200).has(looks, "color-scheme:dark", "max-width:56rem")
	if policy := recorder.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "img-src 'self' data:;") || strings.Contains(recorder.Body.String(), "frame.js") {
		t.Error(policy)
	}
}
