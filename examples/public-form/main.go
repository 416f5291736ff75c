// Command public-form serves the public form of a campaign at /f/, and two pages that post to it: form.html with plain
// HTML, and fetch.html with a script. Both work on any site; a script needs the form's AllowedOrigins there.
package main

import (
	"context"
	"embed"
	"html/template"
	"log"
	"net/http"
	"time"

	"github.com/formsvc/toolkit/blobstore/fileblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/intake"
	"github.com/formsvc/toolkit/storage/sqlite"
)

//go:embed form.html fetch.html
var site embed.FS

func main() {
	ctx := context.Background()
	files := must(fileblob.Open("files"))
	store := must(sqlite.Open(ctx, "forms.db", nil))
	svc := must(formsvc.New(store, &formsvc.Options{Blobs: files}))
	form := must(publish(ctx, svc))
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: must(handler(svc, form)), ReadHeaderTimeout: 10 * time.Second}
	log.Println("http://127.0.0.1:8080/f/" + form.FormToken)
	log.Fatal(server.ListenAndServe())
}

// publish returns the campaign with the form, which the first start creates.
func publish(ctx context.Context, svc *formsvc.Service) (formsvc.Campaign, error) {
	account, err := svc.Accounts.Ensure(ctx, "example")
	if err != nil {
		return formsvc.Campaign{}, err
	}
	list, err := svc.Campaigns.List(ctx, formsvc.CampaignQuery{AccountID: account})
	if err != nil || len(list.Items) > 0 {
		return append(list.Items, formsvc.Campaign{})[0], err
	}
	return svc.Campaigns.Create(ctx, account, formsvc.CampaignInput{
		Title: "Contact us",
		Form:  formsvc.Form{Enabled: true, SuccessMessage: "We will write to you soon."},
		Modules: []formsvc.Module{
			{Name: "message", Label: "Your message", Type: formsvc.LongTextModule, Required: true},
			{Name: "photo", Label: "A photo", Type: formsvc.FileModule},
		},
	})
}

// handler serves the form, and the pages with its address.
func handler(svc *formsvc.Service, form formsvc.Campaign) (http.Handler, error) {
	forms, err := intake.New(svc, nil)
	if err != nil {
		return nil, err
	}
	pages := template.Must(template.ParseFS(site, "*.html"))
	mux := http.NewServeMux()
	mux.Handle("/f/", http.StripPrefix("/f", forms))
	mux.HandleFunc("GET /{page}", func(w http.ResponseWriter, r *http.Request) {
		if page := pages.Lookup(r.PathValue("page")); page != nil {
			_ = page.Execute(w, "/f/"+form.FormToken) // on another site: the whole address
		}
	})
	return mux, nil
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
