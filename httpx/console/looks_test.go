package console_test

import (
	"bytes"
	"image"
	"image/png"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/console"
)

// looks submits the looks of a form, with a picture unless it is nil.
func (w *world) looks(page *answer, path, name string, picture []byte, fields url.Values) *answer {
	w.t.Helper()
	form := page.form(path + "/looks")
	maps.Copy(form, fields)
	return w.upload(path+"/looks", form, name, picture)
}

// Looks are saved, previewed and shown, and a logo is chosen once only. A copy has them.
func TestLooks(t *testing.T) {
	w := newForms(t)
	var previewed formsvc.FormTheme
	w.serve(&console.Options{Preview: func(_ http.ResponseWriter, _ *http.Request, c *formsvc.Campaign) { previewed = c.Form.Theme }})
	w.signIn()
	c, path := w.published(formsvc.CampaignInput{Title: "x"})
	theme := func() formsvc.FormTheme {
		t.Helper()
		got, err := w.svc.Campaigns.Get(t.Context(), c.Key())
		w.must(err)
		return got.Form.Theme
	}
	var logo bytes.Buffer
	w.must(png.Encode(&logo, image.NewGray(image.Rect(0, 0, 2_000, 1_000))))
	small, err := w.svc.Campaigns.Picture(t.Context(), "logo", logo.Bytes())
	w.must(err)

	share := w.get(path + "/share").is(200)
	w.looks(share, path, "logo", nil, url.Values{}).is(303)
	if got := theme(); !reflect.DeepEqual(got, formsvc.FormTheme{}) {
		t.Errorf("saved without a change: %+v", got)
	}
	share = w.get(path + "/share")
	w.looks(share, path, "logo cover", []byte("<svg/>"), url.Values{"width": {"wide"}}).is(422).says("must be a whole PNG").
		has(`value="wide" selected`, `id="wrong-form.theme.logo`, `id="wrong-form.theme.cover`)
	want := formsvc.FormTheme{Accent: "#ffff00", Scheme: "dark", Width: "narrow", Logo: small, LogoAlt: "Rose"}
	fields := url.Values{"accent": {"#FFFF00"}, "scheme": {"dark"}, "width": {"narrow"}, "logoAlt": {"Rose"}, "do": {"preview"}}
	w.looks(share, path, "logo", logo.Bytes(), fields).is(200)
	if !reflect.DeepEqual(previewed, want) || !reflect.DeepEqual(theme(), formsvc.FormTheme{}) {
		t.Errorf("previewed %+v, saved %+v", previewed, theme())
	}
	fields.Del("do")
	again := w.looks(share, path, "logo", logo.Bytes(), url.Values{"accent": {"#FFFF00"}, "scheme": {"dark"}, "width": {"narrow"}, "logoAlt": {strings.Repeat("x", 201)}}).is(422).says("The logo that you chose is kept until you save")
	again = w.looks(again, path, "cover", logo.Bytes(), url.Values{"logoAlt": {strings.Repeat("x", 201)}}).is(422).says("The logo that you chose is kept", "The cover that you chose is kept")
	w.looks(again, path, "logo", nil, fields).is(303)
	want.Cover, err = w.svc.Campaigns.Picture(t.Context(), "cover", logo.Bytes())
	w.must(err)
	if !reflect.DeepEqual(theme(), want) {
		t.Errorf("saved %+v", theme())
	}
	w.get(path+"/share").has("Remove the logo", "Remove the cover")
	w.looks(share, path, "logo", nil, url.Values{"scheme": {"light"}}).is(409).says("Someone else changed this campaign").has(`value="light" selected`)
	w.submit(w.get(path+"/share"), path+"/share", nil).is(303) // keeps them
	w.submit(w.get(path+"/edit"), path+"/edit", url.Values{"do": {"save"}}).is(303)
	w.submit(w.get(path), path+"/duplicate", nil).is(303)
	list, err := w.svc.Campaigns.List(t.Context(), formsvc.CampaignQuery{AccountID: w.account.ID})
	w.must(err)
	for _, c := range list.Items {
		if !reflect.DeepEqual(c.Form.Theme, want) {
			t.Errorf("%s has %+v", c.Title, c.Form.Theme)
		}
	}
	w.looks(w.get(path+"/share"), path, "logo", nil, url.Values{"plain": {"true"}, "logoNone": {"true"}, "coverNone": {"true"}}).is(303)
	if got := theme(); got.Accent != "" || got.Logo != nil || got.Cover != nil || got.Width != "narrow" {
		t.Errorf("removed: %+v", got)
	}

	code := w.get(path+"/qr.svg").is(200).has("<svg", "<path")
	if code.header.Get("Content-Type") != "image/svg+xml" {
		t.Error(code.header)
	}
	w.submit(w.get(path+"/share"), path+"/share", url.Values{"enabled": nil}).is(303)
	w.get(path + "/qr.svg").is(404)
}
