// Command custom-store measures how long it takes to store a response. Its store wraps
// another one and passes storagetest. GET /stats shows the numbers.
package main

import (
	"context"
	"expvar"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/storage/sqlite"
)

func main() {
	kept, err := sqlite.Open(context.Background(), "forms.db", nil)
	if err != nil {
		log.Fatal(err)
	}
	handler, err := newServer(&metered{Store: kept})
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// newServer serves the API, and the numbers beside it.
func newServer(store *metered) (http.Handler, error) {
	forms, err := formsvc.New(store, nil) // delivery.New takes it as well
	if err != nil {
		return nil, err
	}
	api, err := httpx.New(forms, nil)
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, &store.stats) })
	return mux, err
}

// A metered store has every method of the embedded one, those of the delivery queue
// included, and measures one of them.
type metered struct {
	*sqlite.Store
	stats expvar.Map
}

func (s *metered) CreateResponse(ctx context.Context, r formsvc.Response, campaignVersion int64, change formsvc.Change) error {
	defer func(began time.Time) {
		s.stats.Add("calls", 1)
		s.stats.Add("microseconds", time.Since(began).Microseconds())
	}(time.Now())
	return s.Store.CreateResponse(ctx, r, campaignVersion, change)
}
