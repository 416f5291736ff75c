// Command custom-store measures how long it takes to store a response. Its store wraps
// another one and passes storagetest. GET /stats shows the numbers.
package main

import (
	"context"
	"expvar"
	"log"
	"net/http"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/storage/sqlite"
)

func main() {
	ctx := context.Background()
	kept, err := sqlite.Open(ctx, "forms.db", nil)
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

// newServer mounts the API, and the numbers beside it.
func newServer(store *metered) (http.Handler, error) {
	forms, err := formsvc.New(store, nil) // delivery.New takes it as well
	if err != nil {
		return nil, err
	}
	api, err := httpx.New(forms, nil)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/forms/", http.StripPrefix("/forms", api))
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(store.stats.String()))
	})
	return mux, nil
}

// A metered store has every method of the embedded one, those of the delivery queue
// included, and measures two of them.
type metered struct {
	*sqlite.Store
	stats expvar.Map
}

func (s *metered) CreateResponse(ctx context.Context, r formsvc.Response, campaignVersion int64, change formsvc.Change) error {
	defer s.measure("create", time.Now())
	return s.Store.CreateResponse(ctx, r, campaignVersion, change)
}

// UpdateResponse passes decide on as it is: the store may call it more than once.
func (s *metered) UpdateResponse(
	ctx context.Context, key formsvc.ResponseKey, decide func(*formsvc.Response) (formsvc.Change, error),
) (formsvc.Response, error) {
	defer s.measure("update", time.Now())
	return s.Store.UpdateResponse(ctx, key, decide)
}

func (s *metered) measure(what string, began time.Time) {
	s.stats.Add(what+" calls", 1)
	s.stats.Add(what+" microseconds", time.Since(began).Microseconds())
}
