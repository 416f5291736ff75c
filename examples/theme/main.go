// Command theme serves forms at /f/ and the console at /forms/console/ in a host's looks and words, and returns mails in them.
package main

import (
	"context"
	_ "embed"
	"log"
	"net/http"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/digest"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/httpx/console"
	"github.com/formsvc/toolkit/httpx/intake"
	"github.com/formsvc/toolkit/storage/sqlite"
)

var (
	//go:embed theme.css
	stylesheet []byte
	//go:embed logo.svg
	logo []byte
	//go:embed layout.html
	layout string
)

func main() {
	store := must(sqlite.Open(context.Background(), "forms.db", nil))
	svc := must(formsvc.New(store, nil))
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: handler(svc), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// theme returns the looks and words of the host.
func theme() formsvc.Theme {
	return formsvc.Theme{
		Product:    "Rose & Co",
		Logo:       logo,
		Stylesheet: stylesheet, // sets --accent, --font and others
		Layout:     layout,     // has a footer
		Texts: map[string]map[string]string{
			"":   {"layout_imprint": "Imprint"}, // for languages that have no text of their own
			"en": {"send": "Send to Rose & Co", "error_invalid_iban": "Enter an IBAN such as DE02 1203 0000 0000 2020 51"},
			"de": {"layout_imprint": "Impressum", "error_invalid_iban": "Geben Sie eine IBAN an"},
		},
		MailFooter: "Rose & Co, 1 Main Street",
	}
}

// handler serves forms and console.
func handler(svc *formsvc.Service) http.Handler {
	api := must(httpx.New(svc, nil))
	forms := must(intake.New(svc, &intake.Options{Theme: theme(), Limits: api.Limits()}))
	pages := must(console.New(svc, api, &console.Options{Theme: theme(), APIURL: "/forms", FormsURL: "/f"}))
	mux := http.NewServeMux()
	mux.Handle("/forms/", http.StripPrefix("/forms", api))
	mux.Handle("/forms/console/", http.StripPrefix("/forms/console", pages))
	mux.Handle("/f/", http.StripPrefix("/f", forms))
	return mux
}

// mails returns a digester whose mails about failed webhooks have the theme's name and footer.
func mails(svc *formsvc.Service, smtp digest.Sender) *digest.Digester {
	return digest.New(svc.Notices, smtp, &digest.Options{Compose: digest.Themed(theme())})
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
