//go:build long

package main

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/formsvctest"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/httpx/console"
	"github.com/formsvc/toolkit/httpx/intake"
)

// A browser loads a theme's assets and applies its colours, without a violation of the policy, on a wide screen and on a phone.
func TestThemeInBrowsers(t *testing.T) {
	t.Parallel()
	browser, forms := launchBrowser(t), formsvctest.New(t, nil)
	theme := formsvc.Theme{
		Product: "Rose & Co", Stylesheet: []byte(":root { --accent: #123456; --on-accent: #fedcba }"),
		Logo: []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30"><rect width="90" height="30"/></svg>`),
	}
	api, apiErr := httpx.New(forms.Service, nil)
	visitor := func(*http.Request) (*console.Visitor, error) {
		return &console.Visitor{AccountID: forms.AccountID}, nil
	}
	pages, pagesErr := console.New(forms.Service, api, &console.Options{Theme: theme, FormsURL: "/f", Authenticate: visitor})
	public, publicErr := intake.New(forms.Service, &intake.Options{Theme: theme})
	noError(t, cmp.Or(apiErr, pagesErr, publicErr))
	mux := http.NewServeMux()
	mux.Handle("/console/", http.StripPrefix("/console", pages))
	mux.Handle("/f/", http.StripPrefix("/f", public))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for _, path := range []string{"/f/" + forms.Campaign().FormToken, "/console/campaigns/new"} {
		for _, width := range []int64{0, 360} {
			d := browser.open(t, server.URL, path, "light", width)
			d.wait("header img")
			const looks = `[document.querySelector("header img").naturalWidth, ...["backgroundColor", "color"].map((of) => getComputedStyle([...document.querySelectorAll("button:not(.plain, .hidden)")].at(-1))[of])]`
			equal(t, d.eval(looks), `[90,"rgb(18, 52, 86)","rgb(254, 220, 186)"]`, "%s: %s", path)
			if width > 0 {
				d.fits(path, int(width))
			}
			d.finish()
		}
	}
}
